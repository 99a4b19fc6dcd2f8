"""The two simplest learners: the yardsticks at the bottom of every table."""

import numpy as np
from numpy.typing import NDArray

from calm.learners.base import Learner, State, Tokens


class Uniform(Learner):
    """Every token is equally likely, always."""

    def __init__(self, vocabulary: int, seed: int) -> None:
        self._row = np.full(vocabulary, -np.log(vocabulary))

    def predict(self, inputs: Tokens) -> NDArray[np.float64]:
        """1/V everywhere: (w, b) -> (w, b, V)."""
        return np.broadcast_to(self._row, (*inputs.shape, len(self._row)))

    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Nothing to learn."""

    def read(self, inputs: Tokens) -> None:
        """Nothing to remember."""

    def state(self) -> State:
        """Nothing changes."""
        return {}

    def load_state(self, state: State) -> None:
        """Nothing to restore."""


class Unigram(Learner):
    """How often each token was seen, in all of the past, plus `prior`."""

    def __init__(self, vocabulary: int, seed: int, prior: float = 0.5) -> None:
        if prior <= 0:
            raise ValueError(f"prior is {prior}: take a number above 0")
        self._prior = prior
        self._counts = np.zeros(vocabulary, dtype=np.int64)

    def predict(self, inputs: Tokens) -> NDArray[np.float64]:
        """Relative frequencies, the same at every position: (w, b) -> (w, b, V)."""
        weights = self._counts + self._prior
        row = np.log(weights) - np.log(weights.sum())
        return np.broadcast_to(row, (*inputs.shape, len(row)))

    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Count the targets."""
        self._counts += np.bincount(targets.ravel(), minlength=len(self._counts))

    def read(self, inputs: Tokens) -> None:
        """Nothing to remember of a row's past."""

    def state(self) -> State:
        """The counts."""
        return {"counts": self._counts.copy()}

    def load_state(self, state: State) -> None:
        """Restore the counts."""
        self._counts = state["counts"].copy()
