"""What the gates of a learner do, in numbers and in a sentence."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calm.analysis import LAST, clusters, tree_agreement
from calm.metrics import Summary, summarise
from calm.report.runs import Group

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
        between = np.array([each.between for each in found]).mean(axis=0)
        facts.append(
            {
                "name": group.name,
                "learner": group.learner,
                "within": summarise([float(np.diag(s.between).mean()) for s in found]),
                "between": summarise([_mean_off_diagonal(s.between) for s in found]),
                "over_time": summarise([float(s.over_time.mean()) for s in found]),
                "tree": summarise(agreements) if agreements else None,
                "clusters": clusters(found[0].classes, between),
            }
        )
    return facts


def gate_sentence(fact: dict[str, Any], published: float | None = None) -> str:
    """Say it in a line, beside what the paper has of the correlation over time."""

    def number(summary: Summary) -> str:
        interval = "" if math.isnan(summary.interval) else f" ± {summary.interval:.2f}"
        return f"{shown(summary.mean)}{interval}"

    sentence = (
        f"gate of {fact['learner']}: correlation of its weights within a class "
        f"{number(fact['within'])}, with its {LAST} batches before {number(fact['over_time'])}"
        f"{'' if published is None else f' (paper: {published:g})'}, "
        f"between classes {number(fact['between'])}"
    )
    if fact["clusters"]:
        sentence += f", which joins {fact['clusters']}"
    if fact["tree"] is not None:
        sentence += f"; rank correlation with the true tree {number(fact['tree'])}"
    return sentence


def shown(value: float) -> str:
    """Two digits of a correlation, or a dash."""
    return "–" if math.isnan(value) else f"{value:.2f}"


def _mean_off_diagonal(matrix: Floats) -> float:
    values = matrix[~np.eye(len(matrix), dtype=bool)]
    return float(values.mean()) if values.size else math.nan
