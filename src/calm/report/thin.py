"""Long streams in few steps, to be drawn."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def thin(values: Floats, points: int) -> tuple[int, Floats, Floats, Floats]:
    """Cut values (n,) or (n, k) into a few steps; return their length, lows, highs and means."""
    step = max(1, -(-len(values) // points))
    starts = np.arange(0, len(values), step)
    counts = np.diff([*starts, len(values)]).reshape(-1, *[1] * (values.ndim - 1))
    lows, highs = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return step, lows, highs, np.add.reduceat(values, starts) / counts
