"""Learners as users write them, for tests that name them as `user_learners:Class`."""

import os
import signal
import time
from pathlib import Path

from calm.learners.simple import Unigram


class Fine(Unigram):
    """Nothing wrong with it."""

    def __init__(self, vocabulary, seed, rate: float = 0.5):
        super().__init__(vocabulary, seed, prior=rate)


class FailsAtTwelve(Unigram):
    """Raises in the middle."""

    steps = 0

    def learn(self, inputs, targets):
        self.steps += 1
        if self.steps == 12:
            raise ZeroDivisionError("twelve")
        super().learn(inputs, targets)


class FailsWithout(Unigram):
    """Raises in the middle as long as a file is missing."""

    steps = 0

    def __init__(self, vocabulary, seed, file: str):
        super().__init__(vocabulary, seed)
        self.file = Path(file)

    def learn(self, inputs, targets):
        self.steps += 1
        if self.steps == 12 and not self.file.exists():
            raise FileNotFoundError("no such luck")
        super().learn(inputs, targets)


class DiesAtTwelve(Unigram):
    """Takes its process with it."""

    steps = 0

    def learn(self, inputs, targets):
        self.steps += 1
        if self.steps == 12:
            os.kill(os.getpid(), signal.SIGKILL)
        super().learn(inputs, targets)


class NaNAtTwelve(Unigram):
    """Predicts NaN in the middle."""

    steps = 0

    def predict(self, inputs):
        self.steps += 1
        return super().predict(inputs) * (float("nan") if self.steps > 12 else 1)


class Slow(Unigram):
    """Takes its time, so that a test can interrupt it."""

    def learn(self, inputs, targets):
        time.sleep(0.02)
        super().learn(inputs, targets)


class Half:
    """Is no learner."""


class OddState(Unigram):
    """Its state is no array."""

    def state(self):
        return {"note": "text"}


class NoState(Unigram):
    """Cannot say what its state is."""

    def state(self):
        raise TypeError("no state")
