"""Curves and heat maps of long streams in few numbers, and those as short texts."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calm.analysis import LAST, alike_together
from calm.report.thin import thin

Floats = NDArray[np.float64]


def curve(loss: Floats, numbers: int) -> dict[str, Any]:
    """Describe a loss (batches,) by so many numbers: all of them, or lows, highs and means."""
    if len(loss) <= numbers:
        return {"step": 1, "values": text(loss, "<f4")}
    step, *rows = thin(loss, numbers // 3)
    return {"step": step, "values": text(np.concatenate(rows), "<f4")}


def heat_map(gates: Floats, class_name: NDArray[np.str_], numbers: int) -> dict[str, Any]:
    """Describe weights (batches, n) by so many numbers from 0 to 255: the means of steps.

    Experts that are used alike are neighbours.
    """
    step, _, _, means = thin(gates, max(1, numbers // gates.shape[1]))
    last = [gates[class_name == name][-LAST:] for name in np.unique(class_name)]
    shown = means[:, alike_together(np.concatenate(last))].T
    high = float(np.quantile(np.abs(shown), 0.995)) or 1.0
    low = -high if shown.min() < 0 else 0.0
    levels = np.rint((shown.clip(low, high) - low) / (high - low) * 255)
    size = {"step": step, "experts": len(shown), "low": low, "high": high}
    return {**size, "values": text(levels, "u1")}


def text(values: NDArray[Any], kind: str) -> str:
    """Write numbers as the base64 of their bytes."""
    return base64.b64encode(values.astype(kind).tobytes()).decode("ascii")
