"""Curves and heat maps of long streams in few numbers, and those as short texts."""

import base64
from typing import Any

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


def curve(loss: Floats, numbers: int) -> dict[str, Any]:
    """Describe a loss (batches,) by so many numbers: all of them, or lows, highs and means."""
    if len(loss) <= numbers:
        return {"step": 1, "values": text(loss, "<f4")}
    step, *rows = thin(loss, numbers // 3)
    return {"step": step, "values": text(np.concatenate(rows), "<f4")}


def heat_map(gates: Floats, class_name: NDArray[np.str_], numbers: int) -> dict[str, Any]:
    """Describe weights (batches, n) by so many numbers from 0 to 255: the means of steps.

    The experts are in the order of the class that uses each of them most.
    """
    step, _, _, means = thin(gates, max(1, numbers // gates.shape[1]))
    used = np.array([gates[class_name == name].mean(axis=0) for name in np.unique(class_name)])
    shown = means[:, np.lexsort((-used.max(axis=0), used.argmax(axis=0)))].T
    high = float(np.quantile(np.abs(shown), 0.995)) or 1.0
    low = -high if shown.min() < 0 else 0.0
    levels = np.rint((shown.clip(low, high) - low) / (high - low) * 255)
    size = {"step": step, "experts": len(shown), "low": low, "high": high}
    return {**size, "values": text(levels, "u1")}


def text(values: NDArray[Any], kind: str) -> str:
    """Write numbers as the base64 of their bytes."""
    return base64.b64encode(values.astype(kind).tobytes()).decode("ascii")
