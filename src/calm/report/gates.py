"""What the gate of a run does: along the stream, from class to class, over time."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from calm.analysis import LAST, GateSimilarity, tree_agreement
from calm.metrics import Summary, summarise
from calm.report.figures import LINES, POINTS, shade_classes
from calm.report.runs import Group, Run

Floats = NDArray[np.float64]


def gate_facts(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Describe the gates of every gated learner by means over its seeds, nan where undefined.

    `tree` is the rank correlation with the true tree, None where there is none.
    """
    facts = []
    for group in groups:
        pairs = [(run, run.similarity) for run in group.runs]
        gated = [(run, each) for run, each in pairs if each is not None]
        if not gated:
            continue
        found = [each for _, each in gated]
        agreements = [
            tree_agreement(each.between, run.distances)
            for run, each in gated
            if run.distances is not None
        ]
        facts.append(
            {
                "learner": group.learner,
                "within": summarise([float(np.diag(s.between).mean()) for s in found]),
                "between": summarise([_mean_off_diagonal(s.between) for s in found]),
                "over_time": summarise([float(s.over_time.mean()) for s in found]),
                "tree": summarise(agreements) if agreements else None,
            }
        )
    return facts


def gate_sentence(fact: dict[str, Any]) -> str:
    """Say it in a line."""

    def number(summary: Summary) -> str:
        interval = "" if math.isnan(summary.interval) else f" ± {summary.interval:.2f}"
        return f"{_shown(summary.mean)}{interval}"

    sentence = (
        f"gate of {fact['learner']}: correlation of its weights within a class "
        f"{number(fact['within'])}, with its {LAST} batches before {number(fact['over_time'])}, "
        f"between classes {number(fact['between'])}"
    )
    if fact["tree"] is not None:
        sentence += f"; rank correlation with the true tree {number(fact['tree'])}"
    return sentence


def gate_figure(run: Run) -> Figure:
    """Heat map of the weights along the stream; correlations between classes, and over time."""
    gates, found = run.gates, run.similarity
    assert gates is not None and found is not None
    figure = Figure(figsize=(12, 7.5), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(1.1, 1), width_ratios=(1, 1, 0.05))
    _draw_weights(figure, grid, run, gates)
    _draw_matrix(figure, figure.add_subplot(grid[1, 0]), found)
    _draw_over_time(figure.add_subplot(grid[1, 1]), found)
    figure.suptitle(f"{run.learner} on {run.setting}, seed {run.config.seed}", fontsize=10)
    return figure


def _draw_weights(figure: Figure, grid: Any, run: Run, gates: Floats) -> None:
    inner = grid[0, :2].subgridspec(2, 1, height_ratios=(0.06, 1), hspace=0.02)
    strip, axes = figure.add_subplot(inner[0]), figure.add_subplot(inner[1])
    shades = shade_classes(strip, run.records, alpha=1)
    strip.set(xlim=(0, len(gates)), xticks=[], yticks=[])
    for name, shade in shades.items():
        strip.plot([], [], color=shade, linewidth=6, label=name)
    strip.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1), ncol=len(shades), frameon=False, fontsize=8
    )
    names = run.records.class_name
    means = np.array([gates[names == name].mean(axis=0) for name in shades])
    order = np.lexsort((-means.max(axis=0), means.argmax(axis=0)))
    step = -(-len(gates) // POINTS)
    starts = np.arange(0, len(gates), step)
    counts = np.diff([*starts, len(gates)])[:, None]
    drawn = (np.add.reduceat(gates, starts, axis=0) / counts)[:, order].T
    limit = float(np.quantile(np.abs(drawn), 0.995)) or 1.0
    low, colours = (-limit, "RdBu_r") if drawn.min() < 0 else (0, "Blues")
    image = axes.imshow(
        drawn, aspect="auto", cmap=colours, vmin=low, vmax=limit, interpolation="nearest",
        extent=(0, len(gates), gates.shape[1], 0),
    )  # fmt: skip
    axes.set(xlabel="batch", ylabel="expert, by the class that uses it most")
    figure.colorbar(image, cax=figure.add_subplot(grid[0, 2]), label="weight")


def _draw_matrix(figure: Figure, axes: Axes, found: GateSimilarity) -> None:
    places = range(len(found.classes))
    axes.imshow(found.between, cmap="RdBu_r", vmin=-1, vmax=1)
    for i in places:
        for j in places:
            value = found.between[i, j]
            axes.text(
                j, i, _shown(value), ha="center", va="center", fontsize=8,
                color="white" if abs(value) > 0.6 else "black",
            )  # fmt: skip
    axes.set(xticks=places, yticks=places, xticklabels=found.classes, yticklabels=found.classes)
    axes.set_title(f"correlation of weights, last {LAST} batches of each class", fontsize=9)


def _draw_over_time(axes: Axes, found: GateSimilarity) -> None:
    places = np.arange(len(found.classes))
    values = np.nan_to_num(found.over_time)
    bars = axes.bar(places, values, color=LINES[0], width=0.6)
    axes.bar_label(bars, [_shown(value) for value in found.over_time], padding=2, fontsize=8)
    axes.set(xticks=places, xticklabels=found.classes, ylim=(min(0, values.min() * 1.1), 1.08))
    axes.set_title(f"correlation with the {LAST} batches before them", fontsize=9)
    axes.grid(axis="y", alpha=0.3)


def _shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _mean_off_diagonal(matrix: Floats) -> float:
    values = matrix[~np.eye(len(matrix), dtype=bool)]
    return float(values.mean()) if values.size else math.nan
