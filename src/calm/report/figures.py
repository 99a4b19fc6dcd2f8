"""Two figures: the loss along the stream, and the mean loss of the batches after a switch."""

from collections.abc import Sequence
from itertools import cycle, pairwise
from pathlib import Path

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
POINTS = 1500  # a longer stream is drawn in so many steps, each with its mean and its extremes


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and SVG; the same figure gives the same files."""
    figure.savefig(path.with_suffix(".png"), dpi=150)
    with rc_context({"svg.hashsalt": "calm"}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})


def loss_figure(setting: str, groups: Sequence[Group]) -> Figure:
    """Loss of every batch, one line per learner, on the stream of the first seed they share."""
    runs = _runs_on_one_stream(groups)
    records = runs[0].records
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    axes = figure.add_subplot()
    shades = _shade_classes(axes, records)
    for color, run in zip(_cycle(LINES, len(runs)), runs, strict=True):
        _draw_losses(axes, run.records.loss, color)
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
        Line2D([], [], color=c, label=run.learner)
        for c, run in zip(_cycle(LINES, len(runs)), runs, strict=True)
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
    for group, color in zip(groups, _cycle(LINES, len(groups)), strict=True):
        curves = np.array([result.curve for result in group.results])
        style, shade = (next(oracle_styles), "#555555") if group.oracle else ("-", color)
        axes.plot(
            batches, curves.mean(axis=0), style, color=shade, label=group.learner,
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


def _shade_classes(axes: Axes, records: Records) -> dict[str, str]:
    """Shade every fragment by its class; returns the shades by class."""
    names = sorted(set(records.class_name.tolist()))
    shades = dict(zip(names, _cycle(SHADES, len(names)), strict=True))
    edges = np.flatnonzero(np.diff(records.fragment)) + 1
    bounds = [0, *edges.tolist(), len(records.fragment)]
    for first, last in pairwise(bounds):
        shade = shades[str(records.class_name[first])]
        axes.axvspan(first, last, color=shade, alpha=0.55, linewidth=0)
    return shades


def _draw_losses(axes: Axes, loss: NDArray[np.float64], color: str) -> None:
    step = -(-len(loss) // POINTS)
    if step == 1:
        axes.plot(np.arange(len(loss)), loss, color=color, linewidth=0.9)
        return
    starts = np.arange(0, len(loss), step)
    low, high = np.minimum.reduceat(loss, starts), np.maximum.reduceat(loss, starts)
    counts = np.diff([*starts, len(loss)])
    axes.fill_between(starts, low, high, color=color, alpha=0.25, linewidth=0)
    axes.plot(starts, np.add.reduceat(loss, starts) / counts, color=color, linewidth=0.9)


def _cycle(colors: Sequence[str], count: int) -> list[str]:
    return [colors[i % len(colors)] for i in range(count)]
