"""Private random numbers: equal keys give equal numbers, so no generator has to be kept."""

import numpy as np
import torch
from torch import Tensor

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
    kept = (bits >= dropped - STEPS // 2).to(y.dtype)
    return y * kept.mul_(STEPS / (STEPS - dropped))
