"""What the gates of a learner do, in a picture: along the stream, class by class, over time."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from calm.analysis import LAST, alike_together
from calm.metrics import summarise
from calm.report.figures import LINES, POINTS, shade_classes
from calm.report.gates import shown
from calm.report.runs import Group, Run
from calm.report.thin import thin

Floats = NDArray[np.float64]


def gate_figure(group: Group) -> Figure:
    """Weights of the first seed, along the stream and class by class; correlations of all seeds.

    Experts that are used alike stand side by side.
    """
    run = group.runs[0]
    gates, names = run.gates, run.records.class_name
    assert gates is not None
    classes = sorted(set(names.tolist()))
    last = [gates[names == name][-LAST:] for name in classes]
    order = alike_together(np.concatenate(last))
    limit = float(np.quantile(np.abs(gates), 0.995)) or 1.0
    low, colours = (-limit, "RdBu_r") if gates.min() < 0 else (0, "Blues")
    look = {"vmin": low, "vmax": limit, "cmap": colours, "aspect": "auto"}
    figure = Figure(figsize=(12, 7.8), layout="constrained")
    grid = figure.add_gridspec(2, 4, height_ratios=(1.1, 1), width_ratios=(1, 1, 1, 0.05))
    _draw_along(figure, grid, run, gates[:, order], look)
    _draw_by_class(figure.add_subplot(grid[1, 0]), classes, [w[:, order] for w in last], look)
    found = [each for run in group.runs if (each := run.similarity)]
    between = np.array([each.between for each in found])
    _draw_matrix(figure.add_subplot(grid[1, 1]), classes, between)
    _draw_over_time(
        figure.add_subplot(grid[1, 2]), classes, np.array([each.over_time for each in found])
    )
    seeds = f"seed {run.config.seed}"
    if len(found) > 1:
        seeds = f"weights of {seeds}, correlations over {len(found)} seeds ± their deviation"
    figure.suptitle(f"{group.learner} on {run.setting}, {seeds}", fontsize=10)
    return figure


def _draw_along(figure: Figure, grid: Any, run: Run, gates: Floats, look: dict[str, Any]) -> None:
    """Draw the weights (batches, n) along the stream, under a strip of its classes."""
    inner = grid[0, :3].subgridspec(2, 1, height_ratios=(0.06, 1), hspace=0.02)
    strip, axes = figure.add_subplot(inner[0]), figure.add_subplot(inner[1])
    shades = shade_classes(strip, run.records, alpha=1)
    strip.set(xlim=(0, len(gates)), xticks=[], yticks=[])
    for name, shade in shades.items():
        strip.plot([], [], color=shade, linewidth=6, label=name)
    strip.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1), ncol=len(shades), frameon=False, fontsize=8
    )
    *_, drawn = thin(gates, POINTS)
    image = axes.imshow(
        drawn.T, interpolation="nearest", extent=(0, len(gates), gates.shape[1], 0), **look
    )
    axes.set(xlabel="batch", ylabel="expert")
    figure.colorbar(image, cax=figure.add_subplot(grid[0, 3]), label="weight")


def _draw_by_class(
    axes: Axes, classes: list[str], last: list[Floats], look: dict[str, Any]
) -> None:
    """Draw the weights in the last batches of every class, one class below the other."""
    axes.imshow(np.concatenate(last), interpolation="nearest", **look)
    ends = np.cumsum([0, *map(len, last)])
    for end in ends[1:-1]:
        axes.axhline(end - 0.5, color="black", linewidth=1)
    axes.set_yticks((ends[:-1] + ends[1:]) / 2, classes)
    axes.set_xlabel("expert")
    axes.set_title(f"weights, last {LAST} batches of each class", fontsize=9)


def _draw_matrix(axes: Axes, classes: list[str], between: Floats) -> None:
    """Draw the correlations (seeds, classes, classes), their mean and deviation."""
    places = range(len(classes))
    means = between.mean(axis=0)
    axes.imshow(means, cmap="RdBu_r", vmin=-1, vmax=1)
    for i in places:
        for j in places:
            axes.text(
                j, i, _with_deviation(between[:, i, j]), ha="center", va="center", fontsize=7,
                color="white" if abs(means[i, j]) > 0.6 else "black",
            )  # fmt: skip
    axes.set(xticks=places, yticks=places, xticklabels=classes, yticklabels=classes)
    axes.set_title(f"correlation of weights, last {LAST} batches of each class", fontsize=9)


def _draw_over_time(axes: Axes, classes: list[str], over_time: Floats) -> None:
    """Draw the correlations with earlier batches (seeds, classes), their mean and deviation."""
    places = np.arange(len(classes))
    values = np.nan_to_num(over_time.mean(axis=0))
    spread = np.nan_to_num(over_time.std(axis=0, ddof=1)) if len(over_time) > 1 else None
    bars = axes.bar(places, values, yerr=spread, color=LINES[0], width=0.6, capsize=3)
    texts = [_with_deviation(column) for column in over_time.T]
    axes.bar_label(bars, texts, padding=2, fontsize=7)
    axes.set(xticks=places, xticklabels=classes, ylim=(min(0, values.min() * 1.1), 1.15))
    axes.set_title(f"correlation with the {LAST} batches before them", fontsize=9)
    axes.grid(axis="y", alpha=0.3)


def _with_deviation(values: Floats) -> str:
    summary = summarise(values.tolist())
    text = shown(summary.mean)
    return text if math.isnan(summary.deviation) else f"{text}\n±{summary.deviation:.2f}"
