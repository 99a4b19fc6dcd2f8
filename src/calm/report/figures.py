"""Two figures: the loss along the stream, and the mean loss of the batches after a switch."""

from collections.abc import Sequence
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from calm.metrics import CURVE, Records
from calm.report.runs import Group, Run

LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#666666")
SHADES = ("#f6c9a8", "#b9d7f0", "#bfe3bf", "#f2c3d8", "#e9e3a6", "#d2c7ea", "#c9e6e2", "#d9d9d9")
STYLES = ("-", (0, (5, 1.5)), (0, (1, 1)))  # the colours come round again in another style
POINTS = 1500  # a longer stream is drawn in so many steps, each with its mean and its extremes
FEW, COARSE = 3, 250  # more learners are drawn in fewer steps, without the extremes, to be seen


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and SVG; the same figure gives the same files."""
    figure.savefig(f"{path}.png", dpi=150)
    with rc_context({"svg.hashsalt": "calm"}):
        figure.savefig(f"{path}.svg", metadata={"Date": None})


def loss_figure(setting: str, groups: Sequence[Group]) -> Figure:
    """Loss along the stream, one line per learner, for the first seed."""
    runs = _runs_on_one_stream(groups)
    records = runs[0].records
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    axes = figure.add_subplot()
    shades = shade_classes(axes, records)
    for (color, style), run in zip(_lines(len(runs)), runs, strict=True):
        _draw_losses(axes, run.records.loss, color, style, few=len(runs) <= FEW)
    half = int(np.searchsorted(records.fragment, records.fragments / 2))
    axes.axvline(half, color="black", linestyle="--", linewidth=1)
    axes.annotate(
        "counted from here on", (half, 1), (4, -4), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=8,
    )  # fmt: skip
    axes.set(
        xlim=(0, len(records.loss)), xlabel="batch", ylabel="loss (nats per token)",
        title=f"{setting}, seed {runs[0].config.seed}",
    )  # fmt: skip
    lines = [
        Line2D([], [], color=color, linestyle=style, label=run.learner)
        for (color, style), run in zip(_lines(len(runs)), runs, strict=True)
    ]
    patches = [Patch(color=shade, label=name) for name, shade in shades.items()]
    figure.legend(handles=lines + patches, loc="outside right upper", frameon=False, fontsize=8)
    return figure


def switch_figure(setting: str, groups: Sequence[Group]) -> Figure:
    """Mean loss 1 … 15 batches after a switch, one curve per learner; a band spans the seeds."""
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.add_subplot()
    batches = np.arange(1, CURVE + 1)
    oracle_styles = cycle(("--", ":", "-."))
    for group, (color, line) in zip(groups, _lines(len(groups)), strict=True):
        curves = np.array([result.curve for result in group.results])
        style, shade = (next(oracle_styles), "#555555") if group.oracle else (line, color)
        axes.plot(
            batches, curves.mean(axis=0), linestyle=style, color=shade, label=group.learner,
            marker=None if group.oracle else "o", markersize=3,
        )  # fmt: skip
        if len(curves) > 1:
            axes.fill_between(
                batches, curves.min(axis=0), curves.max(axis=0), color=shade, alpha=0.15
            )
    axes.set(
        xlabel="batches after a switch", ylabel="mean loss (nats per token)", title=setting,
        xticks=batches,
    )  # fmt: skip
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _runs_on_one_stream(groups: Sequence[Group]) -> list[Run]:
    """Pick a run of every learner that has one on the first learner's first stream."""
    runs = [run for group in groups for run in group.runs]
    seed = runs[0].config.seed
    return [run for run in runs if run.config.seed == seed]


def shade_classes(axes: Axes, records: Records, alpha: float = 0.55) -> dict[str, str]:
    """Shade every fragment by its class; returns the shades by class."""
    names = sorted(set(records.class_name.tolist()))
    shades = dict(zip(names, cycle(SHADES), strict=False))
    edges = np.flatnonzero(np.diff(records.fragment)) + 1
    bounds = [0, *edges.tolist(), len(records.fragment)]
    for first, last in pairwise(bounds):
        shade = shades[str(records.class_name[first])]
        axes.axvspan(first, last, color=shade, alpha=alpha, linewidth=0)
    return shades


def _draw_losses(axes: Axes, loss: NDArray[np.float64], color: str, style: Any, few: bool) -> None:
    step = -(-len(loss) // (POINTS if few else COARSE))
    starts = np.arange(0, len(loss), step)
    counts = np.diff([*starts, len(loss)])
    if few and step > 1:
        low, high = np.minimum.reduceat(loss, starts), np.maximum.reduceat(loss, starts)
        axes.fill_between(starts, low, high, color=color, alpha=0.25, linewidth=0)
    means = np.add.reduceat(loss, starts) / counts
    axes.plot(starts, means, color=color, linestyle=style, linewidth=0.9 if few else 1.3)


def _lines(count: int) -> list[tuple[str, Any]]:
    """Return a colour and a line style for every learner, no two alike for a while."""
    return [(LINES[i % len(LINES)], STYLES[i // len(LINES) % len(STYLES)]) for i in range(count)]
