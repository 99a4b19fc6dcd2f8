"""The gradient of a product's loss by its weights, on a CPU, in one pass over the logits.

Gates take many steps on the same logits, which are far larger than the caches if the vocabulary is.
So a block of symbols is read once: weighed, taken to the exponential, and weighed by that in turn,
while it is still at hand.
"""

from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from calm.learners.neural.cell import wide
from calm.learners.neural.threads import as_array, share

BLOCK = 2048  # symbols that are worked on at a time
GROUP = 6  # experts that go through a loop together, as `_fold` has it
LARGE = 1 << 24  # numbers from which on this is faster than a few operations of torch

ONE, LOG2_E = np.float32(1), np.float32(1.442695)
POWER = tuple(  # of 2 between -1/2 and 1/2: 1 + x (c₀ + x (c₁ + …))
    np.float32(c) for c in (0.6931472, 0.2402265, 0.0555041, 0.0096181, 0.0013333)
)


def applies(logits: Tensor) -> bool:
    """Whether this is the way to go about these logits."""
    known = logits.dtype in (torch.float32, torch.bfloat16)
    return logits.device.type == "cpu" and known and logits.numel() >= LARGE


def product_slope(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Mean over positions of E[ỹ_i] - ỹ_i(target), (n,), in float32.

    Logits (n, positions, V) are float32 or bfloat16.
    """
    logits = logits.contiguous()
    y = as_array(logits)
    n, positions, _ = logits.shape
    w = np.zeros(-(-n // GROUP) * GROUP, dtype=np.float32)
    w[:n] = weights.numpy()
    mean = np.empty((positions, n))
    share(lambda first, last: _expectation(y, w, first, last, mean), positions)
    wanted = logits[:, torch.arange(positions), targets].double().mean(dim=1)
    return (torch.from_numpy(mean).mean(dim=0) - wanted).float()


@njit(cache=True, nogil=True, fastmath=True)
def _expectation(
    y: NDArray[Any], w: NDArray[np.float32], first: int, last: int, result: NDArray[np.float64]
) -> None:
    """Write E[ỹ_i], (positions, n), of positions first … last-1.

    Logits in bfloat16 come as the upper halves of float32. Weights come in whole groups: those of
    no expert are 0.
    """
    n, _, vocabulary = y.shape
    mixed = np.empty(BLOCK, dtype=np.float32)
    whole = np.empty(BLOCK, dtype=np.int32)
    mean = np.empty(len(w))
    for p in range(first, last):
        highest, total = np.float32(-np.inf), 0.0
        mean[:] = 0
        for start in range(0, vocabulary, BLOCK):
            size = min(BLOCK, vocabulary - start)
            highest, total = _fold(y, p, start, size, w, mixed, whole, highest, total, mean)
        result[p] = mean[:n] / total


@njit(cache=True, nogil=True, fastmath=True)
def _fold(
    y: NDArray[Any],
    p: int,
    start: int,
    size: int,
    w: NDArray[np.float32],
    mixed: NDArray[np.float32],
    whole: NDArray[np.int32],
    highest: np.float32,
    total: float,
    mean: NDArray[np.float64],
) -> tuple[np.float32, float]:
    """Add a block to the sums Σ exp(x - highest) and, for every expert, that times its logit.

    `mixed` and `whole` are room to work in. Returns the highest x so far, and the first sum.
    """
    power = whole.view(np.float32)
    mixed[:size] = 0
    for i in range(0, len(w), GROUP):  # past the last expert, weights are 0 and sums not looked at
        y0, y1, y2, y3, y4, y5 = _group(y, i, p, start, size)
        w0, w1, w2, w3, w4, w5 = w[i], w[i + 1], w[i + 2], w[i + 3], w[i + 4], w[i + 5]
        for v in range(size):
            mixed[v] += (
                w0 * wide(y0[v]) + w1 * wide(y1[v]) + w2 * wide(y2[v])
                + w3 * wide(y3[v]) + w4 * wide(y4[v]) + w5 * wide(y5[v])
            )  # fmt: skip
    top = mixed[0]
    for v in range(size):
        top = max(top, mixed[v])
    if top > highest:
        scale = np.exp(np.float64(highest) - top)
        total *= scale
        mean *= scale
        highest = top
    c0, c1, c2, c3, c4 = POWER
    for v in range(size):  # exp(x) = 2^whole 2^x, whole being written as an exponent
        x = max((mixed[v] - highest) * LOG2_E, np.float32(-126))
        nearest = np.floor(x + np.float32(0.5))
        whole[v] = (np.int32(nearest) + 127) << 23
        x -= nearest
        mixed[v] = ONE + x * (c0 + x * (c1 + x * (c2 + x * (c3 + x * c4))))
    part = np.float32(0)
    for v in range(size):
        mixed[v] *= power[v]
        part += mixed[v]
    for i in range(0, len(w), GROUP):
        y0, y1, y2, y3, y4, y5 = _group(y, i, p, start, size)
        s0 = s1 = s2 = s3 = s4 = s5 = np.float32(0)
        for v in range(size):
            x = mixed[v]
            s0 += x * wide(y0[v])
            s1 += x * wide(y1[v])
            s2 += x * wide(y2[v])
            s3 += x * wide(y3[v])
            s4 += x * wide(y4[v])
            s5 += x * wide(y5[v])
        mean[i] += s0
        mean[i + 1] += s1
        mean[i + 2] += s2
        mean[i + 3] += s3
        mean[i + 4] += s4
        mean[i + 5] += s5
    return highest, float(total + part)


@njit(inline="always")
def _group(y: NDArray[Any], i: int, p: int, start: int, size: int) -> Any:
    """Return a block of expert i and of the five after it; the last stands in for missing ones."""
    last, stop = len(y) - 1, start + size
    return (
        y[i, p, start:stop],
        y[min(i + 1, last), p, start:stop],
        y[min(i + 2, last), p, start:stop],
        y[min(i + 3, last), p, start:stop],
        y[min(i + 4, last), p, start:stop],
        y[min(i + 5, last), p, start:stop],
    )
