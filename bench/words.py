"""Every learner of a word-level preset, at its full size, for a few batches: peak memory and time.

    python bench/words.py [PRESET [LEARNER ...]]    # paper/multidomain-10k and all of its learners

Each runs in a process of its own, one at a time, on random text under a vocabulary of 51,200.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from calm.build import build_learner
from calm.config import Config, read_experiment
from calm.corpus.memory import MemoryCorpora
from calm.loop import prequential
from calm.stream import Stream

V, BATCHES = 51_200, 3


def measure(preset, name):
    """In this process: peak memory in GB, seconds a batch after the first, and the losses."""
    draws = np.random.default_rng(0)
    halves = {f"c{i}": (np.empty(0, np.int64), draws.integers(0, V, 60_000)) for i in range(4)}
    corpora = MemoryCorpora("random", "word", [f"w{i}" for i in range(V)], halves)
    stream = Stream(corpora, 4, 10_000)
    choice = read_experiment(Path(preset)).choice(name, {})
    learner = build_learner(Config(learner=choice), stream)
    losses, times = [], []
    since = time.perf_counter()
    for record in prequential(stream, learner):
        losses.append(record.loss)
        times.append(time.perf_counter() - since)
        since = time.perf_counter()
        if len(losses) == BATCHES + 1:  # the last one is predicted only
            break
    status = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return {"gigabytes": kilobytes / 2**20, "seconds": min(times[1:]), "losses": losses}


def main():
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(*sys.argv[2:])))
        return
    preset, *names = sys.argv[1:] or ["paper/multidomain-10k"]
    print(f"{preset}, V = {V:,}, {BATCHES} batches\n\n| learner | peak | a batch | losses |")
    print("| --- | ---: | ---: | --- |")
    for name in names or read_experiment(Path(preset)).learners:
        command = [sys.executable, __file__, "measure", preset, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        losses = ", ".join(f"{loss:.2f}" for loss in found["losses"])
        print(
            f"| `{name}` | {found['gigabytes']:.1f} GiB | {found['seconds']:.0f} s | {losses} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
