"""What the harness costs a batch at V = 211, on one core: loop, scoring, records, progress.

A learner that returns a ready-made prediction takes no time of its own, so what a run takes is the
harness. The same batches are also streamed alone, and scored by a bare loop that keeps nothing.
"""

import cProfile
import pstats
import tempfile
import time
from pathlib import Path

import numpy as np

from calm.config import Choice, Config, StreamConfig
from calm.folder import RunFolder
from calm.learners.base import Learner
from calm.loop import prequential
from calm.run import _drive
from calm.stream import Stream
from corpora import random_corpora

VOCABULARY = 211


class ReadyMade(Learner):
    """Always the same prediction, made beforehand."""

    def __init__(self) -> None:
        logits = np.random.default_rng(0).normal(size=(20, 10, VOCABULARY))
        normaliser = np.log(np.exp(logits).sum(axis=2, keepdims=True))
        self.prediction = (logits - normaliser).astype(np.float32)

    def predict(self, inputs):
        return self.prediction

    def learn(self, inputs, targets):
        pass

    def read(self, inputs):
        pass

    def state(self):
        return {}

    def load_state(self, state):
        pass


def milliseconds(work, batches):
    """Shortest of five runs, per batch."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times) / batches * 1e3


def main():
    stream = Stream(random_corpora(VOCABULARY, 400_000), 100, 10_000)
    learner, batches = ReadyMade(), len(stream)

    def streamed():
        for _ in stream.batches():
            pass

    def looped():
        for _ in prequential(stream, learner):
            pass

    def run():
        with tempfile.TemporaryDirectory() as path:
            folder = RunFolder(Path(path))
            config = StreamConfig(fragments=100, mean_length=10_000)
            folder.create(Config(Choice("random"), config, Choice("uniform")))
            _drive(folder, stream, learner, 0, 10.0)

    print(f"{batches} batches of 200 targets, V = {VOCABULARY}; milliseconds a batch, best of 5")
    for name, work in (
        ("stream", streamed),
        ("+ loop, scoring", looped),
        ("+ records, progress, checkpoint, metrics", run),
    ):
        print(f"  {name:<42} {milliseconds(work, batches):.4f}")
    profile = cProfile.Profile()
    profile.runcall(run)
    pstats.Stats(profile).sort_stats("tottime").print_stats(8)


if __name__ == "__main__":
    main()
