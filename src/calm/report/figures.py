"""Two figures: the loss along the stream, and the mean loss of the batches after a switch."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from calm.metrics import CURVE, Records
from calm.report.compare import Setting, line_up
from calm.report.runs import Group
from calm.report.thin import thin

LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#666666")
SHADES = ("#f6c9a8", "#b9d7f0", "#bfe3bf", "#f2c3d8", "#e9e3a6", "#d2c7ea", "#c9e6e2", "#d9d9d9")
STYLES = ("-", (0, (5, 1.5)), (0, (1, 1)))  # the colours come round again in another style
POINTS = 1500  # a longer stream is drawn in so many steps, each with its mean and its extremes
MOST = 16  # curves in a panel
BAND = 0.15  # how solid a band is
FEW, COARSE = 3, 250  # more learners are drawn in fewer steps, without the extremes, to be seen


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and SVG; the same figure gives the same files."""
    figure.savefig(f"{path}.png", dpi=150)
    figure.set_layout_engine("none")  # what was laid out stays where it is, in half the time
    with rc_context({"svg.hashsalt": "calm"}):
        figure.savefig(f"{path}.svg", metadata={"Date": None})


def loss_figure(setting: Setting) -> Figure:
    """Loss along the stream, a line per learner, for one seed: the others have other streams."""
    first = setting.run
    seed = first.config.seed
    everybody = [group for group in setting.groups if seed in group.seeds and group.runs]
    groups = foremost(everybody, len(LINES))
    records = first.records
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    axes = figure.add_subplot()
    shades = shade_classes(axes, records)
    lines = []
    for (color, style), group in zip(_lines(len(groups)), groups, strict=True):
        run = group.runs[group.seeds.index(seed)]
        _draw_losses(axes, run.records.loss, color, style, few=len(groups) <= FEW)
        lines.append(Line2D([], [], color=color, linestyle=style, label=group.learner))
    half = int(np.searchsorted(records.fragment, records.fragments / 2))
    axes.axvline(half, color="black", linestyle="--", linewidth=1)
    axes.annotate(
        "counted from here on", (half, 1), (4, -4), xycoords=("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=8,
    )  # fmt: skip
    axes.set(
        xlim=(0, len(records.loss)), xlabel="batch", ylabel="loss (nats per token)",
        title=f"{setting.name}, seed {seed}{left_out(groups, everybody)}",
    )  # fmt: skip
    patches = [Patch(color=shade, label=name) for name, shade in shades.items()]
    figure.legend(handles=lines + patches, loc="outside right upper", frameon=False, fontsize=8)
    return figure


def switch_figure(settings: Sequence[Setting]) -> Figure:
    """Mean loss 1 … 15 batches after a switch, settings side by side, a curve per learner.

    A band spans the seeds. A learner looks the same in every panel.
    """
    columns = min(len(settings), 2)
    rows = -(-len(settings) // columns)
    figure = Figure(figsize=(2 + 6 * columns, 4.6 * rows), layout="constrained")
    panels = [figure.add_subplot(rows, columns, i + 1) for i in range(len(settings))]
    drawn = [replace(setting, groups=foremost(setting.groups, MOST)) for setting in settings]
    for axes, setting, cut in zip(panels, settings, drawn, strict=True):
        axes.set(xlabel="batches after a switch", ylabel="mean loss (nats per token)")
        axes.set_xticks(np.arange(1, CURVE + 1))
        axes.set_title(setting.name + left_out(cut.groups, setting.groups), fontsize=10)
        axes.grid(axis="y", alpha=0.3)
    learners = line_up(drawn)
    handles: list[Artist] = []
    oracle_styles = cycle(("--", ":", "-."))
    for (name, groups), (color, line) in zip(learners.items(), _lines(len(learners)), strict=True):
        here = [(axes, group) for axes, group in zip(panels, groups, strict=True) if group]
        oracle = here[0][1].oracle
        look: dict[str, Any] = {
            "linestyle": next(oracle_styles) if oracle else line,
            "color": "#555555" if oracle else color,
            "marker": None if oracle else "o",
        }
        for axes, group in here:
            _draw_curves(axes, group, look)
        labels = {group.learner for _, group in here}
        handles.append(Line2D([], [], **look, label=labels.pop() if len(labels) == 1 else name))
    if any(len(group.results) > 1 for cut in drawn for group in cut.groups):
        handles.append(Patch(color="#555555", alpha=BAND, label="range over seeds"))
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8)
    return figure


def foremost(groups: Sequence[Group], most: int) -> list[Group]:
    """Return the best contenders, and some oracles."""
    contenders = [group for group in groups if not group.oracle]
    return contenders[:most] + [group for group in groups if group.oracle][:FEW]


def left_out(shown: Sequence[Group], everybody: Sequence[Group]) -> str:
    """Say in a title that not everybody is drawn."""
    return "" if len(shown) == len(everybody) else f" ({len(shown)} of {len(everybody)} learners)"


def _draw_curves(axes: Axes, group: Group, look: dict[str, Any]) -> None:
    curves = np.array([result.curve for result in group.results])
    batches = np.arange(1, CURVE + 1)
    axes.plot(batches, curves.mean(axis=0), markersize=3, **look)
    if len(curves) > 1:
        low, high = curves.min(axis=0), curves.max(axis=0)
        axes.fill_between(batches, low, high, color=look["color"], alpha=BAND, linewidth=0)


def shade_classes(axes: Axes, records: Records, alpha: float = 0.55) -> dict[str, str]:
    """Shade every fragment by its class; returns the shades by class."""
    names = sorted(set(records.class_name.tolist()))
    shades = dict(zip(names, cycle(SHADES), strict=False))
    edges = np.flatnonzero(np.diff(records.fragment)) + 1
    bounds = [0, *edges.tolist(), len(records.fragment)]
    for name, shade in shades.items():
        spans = [(a, b - a) for a, b in pairwise(bounds) if records.class_name[a] == name]
        axes.broken_barh(
            spans, (0, 1), transform=axes.get_xaxis_transform(), color=shade, alpha=alpha,
            linewidth=0,
        )  # fmt: skip
    return shades


def _draw_losses(axes: Axes, loss: NDArray[np.float64], color: str, style: Any, few: bool) -> None:
    step, lows, highs, means = thin(loss, POINTS if few else COARSE)
    starts = np.arange(0, len(loss), step)
    if few and step > 1:
        axes.fill_between(starts, lows, highs, color=color, alpha=0.25, linewidth=0)
    axes.plot(starts, means, color=color, linestyle=style, linewidth=0.9 if few else 1.3)


def _lines(count: int) -> list[tuple[str, Any]]:
    """Return a colour and a line style for every learner, no two alike for a while."""
    return [(LINES[i % len(LINES)], STYLES[i // len(LINES) % len(STYLES)]) for i in range(count)]
