"""Plastic weights of the experts: fitted to the last batch only, by one step along its gradient.

The weight of an expert is a sum: one of its own, one for how confident it is, and one for each of
some circumstances, such as the last symbol. The gradient of the batch's log-likelihood with respect
to a weight is what the feature was less what was expected of it, and a step is scaled by the
running mean of its square (the diagonal of the Fisher information), so it is the same in any unit.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from calm.learners.base import State
from calm.learners.counts.features import BUCKETS
from calm.learners.counts.tree import Array

KEEP = 0.99  # of the running mean, a batch
FLOOR = 1e-3  # added to it


class Trace(NamedTuple):
    """What predicting a batch leaves for learning it.

    P = w·b positions, n experts whose features are sparse, d whose are given for every symbol,
    m circumstances. The features of expert i at position p are start[p, i] … start[p, i + 1] - 1.
    """

    nodes: Array  # (w, b, K + 1)
    losses: Array  # (columns,): of the inputs, but for the first ones
    start: Array  # (P, n + 1)
    names: Array  # the features' symbols
    values: Array
    bucket: Array  # (P, n)
    circumstances: Array  # (P, m): rows of Weights.chosen
    expected: Array  # (P, n + d)
    slope: Array  # (P, n): the gradient by the weight of an expert at a position
    share: Array  # (n + d,): mean weights


class Weights(NamedTuple):
    """own (n + d,), by_confidence (n, BUCKETS), chosen (rows, n)."""

    own: Array
    by_confidence: Array
    chosen: Array


@dataclass(frozen=True)
class Rates:
    """How large a step is."""

    own: float = 0.02
    others: float = 0.03


class Mixer:
    """The weights, and their learning."""

    def __init__(self, start: Array, sparse: int, rows: int, rates: Rates) -> None:
        self.weights = Weights(start, np.zeros((sparse, BUCKETS)), np.zeros((rows, sparse)))
        self._square = np.full(len(start), 0.1)
        self._rates = rates

    def learn(self, targets: Array, dense: Array, trace: Trace) -> None:
        """Take a step; dense (d, V)."""
        own, by_confidence, chosen = self.weights
        square, of_own, of_confidence = map(np.zeros_like, (own, own, by_confidence))
        add_gradients(targets, dense, trace, of_own, of_confidence, square)
        self._square *= KEEP
        self._square += (1 - KEEP) * square / targets.size
        scale = 1 / (targets.size * (self._square + FLOOR))
        steps = self._rates.others * scale[: chosen.shape[1]]
        own += self._rates.own * of_own * scale
        by_confidence += of_confidence * steps[:, None]
        change_chosen(chosen, trace, steps)

    def state(self) -> State:
        """Everything; of the circumstances, those that ever were."""
        rows = np.flatnonzero(self.weights.chosen.any(axis=1))
        return {
            "own": self.weights.own, "by_confidence": self.weights.by_confidence,
            "rows": rows, "chosen": self.weights.chosen[rows], "square": self._square,
        }  # fmt: skip

    def load_state(self, state: State) -> None:
        """Restore it."""
        self.weights.own[:] = state["own"]
        self.weights.by_confidence[:] = state["by_confidence"]
        self.weights.chosen[:] = 0
        self.weights.chosen[state["rows"]] = state["chosen"]
        self._square[:] = state["square"]


@njit(cache=True, error_model="numpy")
def add_gradients(targets, dense, trace, own, by_confidence, square):  # type: ignore[no-untyped-def]
    """Add up the gradient over all positions, and the square of each of its parts."""
    w, b = targets.shape
    n, d = len(by_confidence), dense.shape[0]
    start, names, values = trace.start, trace.names, trace.values
    bucket, expected, slope = trace.bucket, trace.expected, trace.slope
    for j in range(w):
        for r in range(b):
            p, y = j * b + r, targets[j, r]
            for i in range(d):
                g = dense[i, y] - expected[p, n + i]
                own[n + i] += g
                square[n + i] += g * g
            for i in range(n):
                slope[p, i] = 0.0
                if start[p, i + 1] == start[p, i]:
                    continue
                g = -expected[p, i]
                for f in range(start[p, i], start[p, i + 1]):
                    if names[f] == y:
                        g += values[f]
                        break
                own[i] += g
                square[i] += g * g
                by_confidence[i, bucket[p, i]] += g
                slope[p, i] = g


@njit(cache=True, error_model="numpy")
def change_chosen(chosen, trace, steps):  # type: ignore[no-untyped-def]
    """Take a step along the gradient by the weights of circumstances, most of which never were."""
    for p in range(len(trace.slope)):
        for row in trace.circumstances[p]:
            for i in range(len(steps)):
                chosen[row, i] += steps[i] * trace.slope[p, i]
