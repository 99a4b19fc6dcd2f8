"""What a report writes beside its tables: the differences in full, and everything as JSON."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from calm.metrics import Summary, summarise
from calm.report.compare import Setting
from calm.report.gates import gate_facts
from calm.report.published import METRICS
from calm.report.runs import Group
from calm.report.significance import Difference
from calm.report.table import COLUMNS, MARKDOWN, markdown_table, number

DIFFERENCES = """Paired t-tests over the seeds that two learners have in common; a seed is a stream.
A difference is the learner's mean less the other's, ± half of its 95 % interval. p (Holm) is
corrected for the number of learners that are compared with the same one in the same metric. The
best is the contender with the lowest mean. –: no test, for want of two common seeds or of numbers.
"""


def differences_page(settings: Sequence[Setting]) -> str:
    """Return every comparison as Markdown."""
    lines = ["# Differences", "", DIFFERENCES]
    for setting in settings:
        rows = [_row(found, setting) for found in setting.differences]
        lines += [f"### {setting.name}", ""]
        if rows:
            names = ("metric", "learner", "against", "difference", "p", "p (Holm)", "seeds")
            lines += [*markdown_table(names, rows, left=3), ""]
        else:
            lines += ["There is nothing to compare.", ""]
    return "\n".join(lines)


def _row(found: Difference, setting: Setting) -> tuple[str, ...]:
    mean, interval = found.summary.mean, found.summary.interval
    difference = "–" if math.isnan(mean) else f"{mean:+.2f}"
    if not math.isnan(interval):
        difference += f" ± {number(interval)}"
    against = found.against + (", the best" if found.against == setting.best(found.metric) else "")
    return (
        METRICS[found.metric],
        MARKDOWN.escape(found.learner),
        MARKDOWN.escape(against),
        difference,
        _probability(found.p),
        _probability(found.p_holm),
        str(found.seeds),
    )


def _probability(p: float) -> str:
    return "–" if math.isnan(p) else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def to_json(settings: Sequence[Setting]) -> str:
    """Return everything measured, every seed, as JSON."""
    data = {}
    for setting in settings:
        facts = {fact["learner"]: fact for fact in gate_facts(setting.groups)}
        data[setting.name] = [
            _learner(setting, group, facts.get(group.learner, {})) for group in setting.groups
        ]
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _learner(setting: Setting, group: Group, gate: dict[str, Any]) -> dict[str, Any]:
    return {
        "learner": group.learner,
        "oracle": group.oracle,
        **{metric: _plain(summarise(group.values(metric))) for metric in COLUMNS},
        "paper": _paper(setting, group),
        "differences": [
            {
                "metric": found.metric,
                "against": found.against,
                **_plain(found.summary),
                "p": _finite(found.p),
                "p_holm": _finite(found.p_holm),
            }
            for found in setting.differences
            if found.learner == group.learner
        ],
        "gate": {
            key: _plain(value) if isinstance(value, Summary) else value
            for key, value in gate.items()
            if key not in ("name", "learner")
        },
        "seeds": list(group.seeds),
        "results": [result.to_dict() for result in group.results],
        "tokens_per_second": list(group.speeds),
        "runs": [str(run.path) for run in group.runs],
    }


def _paper(setting: Setting, group: Group) -> dict[str, Any] | None:
    """Return the paper's numbers of a learner."""
    published = setting.published
    if published is None or group.name not in published.results:
        return None
    numbers = published.results[group.name]
    return {
        "setting": published.setting,
        "departures": published.departures,
        **{
            metric: {"mean": summary.mean, "deviation": _finite(summary.deviation)}
            for metric, summary in numbers.items()
        },
    }


def _plain(summary: Summary) -> dict[str, Any]:
    return {key: _finite(value) for key, value in asdict(summary).items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
