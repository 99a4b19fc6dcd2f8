"""Private random numbers: equal keys give equal numbers, so no generator has to be kept."""

from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import Function

from calm.learners.neural.cell import narrow, wide
from calm.learners.neural.threads import as_array, share

STEPS = 1 << 16  # a rate is rounded to this many parts


def generator(device: torch.device, *key: int) -> torch.Generator:
    """Make a generator for a key of whole numbers."""
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    return torch.Generator(device).manual_seed(int(state >> np.uint64(1)))


def drop(y: Tensor, rate: float, source: torch.Generator | None) -> Tensor:
    """Set a share of `y` to zero and scale the rest up; without a source nothing is dropped.

    Four decisions are made from every random number of 64 bits, which are dear on a CPU.
    """
    if source is None or rate == 0:
        return y
    dropped = round(rate * STEPS)
    words = torch.empty(-(-y.numel() // 4), dtype=torch.int64, device=y.device)
    words.random_(-(2**63), None, generator=source)
    bits = words.view(torch.int16)[: y.numel()].view(y.shape)
    threshold, scale = dropped - STEPS // 2, STEPS / (STEPS - dropped)
    if y.device.type == "cpu":
        result: Tensor = InOnePass.apply(y, bits, threshold, scale)  # type: ignore[no-untyped-call]
        return result
    return y * (bits >= threshold).to(y.dtype).mul_(scale)


class InOnePass(Function):
    """What is kept, scaled; where `bits` are below the threshold, 0."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, bits: Tensor, threshold: int, scale: float) -> Tensor:
        """Keep no mask but the bits."""
        ctx.given = bits, threshold, scale
        return _kept(y, bits, threshold, scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Drop the same."""
        return _kept(gradients[0], *ctx.given), None, None, None


def _kept(y: Tensor, bits: Tensor, threshold: int, scale: float) -> Tensor:
    y, kept = y.contiguous(), torch.empty_like(y, memory_format=torch.contiguous_format)
    arrays = [as_array(tensor).reshape(len(y), -1) for tensor in (y, bits, kept)]

    def work(first: int, last: int) -> None:
        given, chances, result = (array[first:last] for array in arrays)
        _keep(given, chances, threshold, np.float32(scale), result)

    share(work, len(y))
    return kept


@njit(cache=True, nogil=True)
def _keep(
    y: NDArray[Any], bits: NDArray[np.int16], threshold: int, scale: np.float32, kept: NDArray[Any]
) -> None:
    for i in range(len(y)):
        given, chances, result = y[i], bits[i], kept[i]
        for j in range(len(given)):
            value = wide(given[j]) * scale
            result[j] = narrow(value if chances[j] >= threshold else np.float32(0), kept)
