"""The table: a row per learner, mean over its seeds; on screen, as Markdown, LaTeX and JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table

from calm.metrics import Result, Summary, summarise
from calm.report.gates import gate_facts, gate_sentence
from calm.report.runs import Group

COLUMNS = {"ppl": "ppl", "ppl_at_switch": "ppl@sw", "recovery": "rec", "bits": "bits"}
ORACLE = "oracle: knows what no contender may, not ranked"
INTERVAL = "±: half of the 95 % interval over seeds"
LEGEND = (
    "ppl: second half of the stream. ppl@sw: 10 batches after a switch. rec: batches to recover.",
    "–: not defined, as when no class comes back",
)
BELOW = "below the floor, which nobody can be: does it keep to the protocol? See calm check"


def summaries(results: Sequence[Result]) -> dict[str, Summary]:
    """Every column of a row, over seeds."""
    return {key: summarise([getattr(result, key) for result in results]) for key in COLUMNS}


def screen_table(setting: str, groups: Sequence[Group]) -> Table:
    """Return the table of one setting for a terminal."""
    table = Table(title=setting, title_justify="left", box=box.SIMPLE, caption_justify="left")
    table.add_column("learner", no_wrap=True)
    for heading in (*COLUMNS.values(), "tokens/s", "seeds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for group in groups:
        style = "dim" if group.oracle else ""
        table.add_row(*_cells(group, "±"), style=style)
    table.caption = "\n".join((*_notes(groups, "*"), *LEGEND))
    return table


def too_good(groups: Sequence[Group]) -> list[str]:
    """Return a remark on every contender that is below the floor of its stream."""
    floors = [group.mean_ppl for group in groups if group.learner == "floor-known"]
    return [
        f"{group.learner} is {BELOW}"
        for group in groups
        if floors and not group.oracle and group.mean_ppl < floors[0]
    ]


def class_table(result: Result) -> Table:
    """Return the scores of one run class by class, for a terminal."""
    table = Table(box=box.SIMPLE)
    for heading in ("class", "ppl", "ppl@sw", "rec"):
        table.add_column(heading, justify="left" if heading == "class" else "right")
    for name, scores in result.per_class.items():
        table.add_row(name, *(number(value) for value in asdict(scores).values()))
    return table


def markdown(settings: Mapping[str, Sequence[Group]]) -> str:
    """Return the tables as GitHub Markdown."""
    lines = []
    for setting, groups in settings.items():
        headings = ("learner", *COLUMNS.values(), "tokens/s", "seeds")
        lines += [f"### {setting}", "", "| " + " | ".join(headings) + " |"]
        lines.append("| --- |" + " ---: |" * (len(headings) - 1))
        lines += ["| " + " | ".join(_cells(group, " ± ", r"\*")) + " |" for group in groups]
        notes = _notes(groups, r"\*") + [gate_sentence(fact) for fact in gate_facts(groups)]
        lines += [line for note in notes for line in ("", note)] + [""]
    return "\n".join(lines)


def latex(settings: Mapping[str, Sequence[Group]]) -> str:
    """Return the tables as LaTeX; they need the package booktabs."""
    lines = []
    for setting, groups in settings.items():
        headings = ("learner", *COLUMNS.values(), "tokens/s", "seeds")
        lines += [f"% {setting}", r"\begin{tabular}{l" + "r" * (len(headings) - 1) + "}"]
        lines += [r"\toprule", " & ".join(headings) + r" \\", r"\midrule"]
        for i, group in enumerate(groups):
            if group.oracle and i and not groups[i - 1].oracle:
                lines.append(r"\midrule")
            cells = [_escape(cell) for cell in _cells(group, " ± ", "*")]
            lines.append(" & ".join(cells) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [f"% {note}" for note in _notes(groups, "*")] + [""]
    return "\n".join(lines)


def to_json(settings: Mapping[str, Sequence[Group]]) -> str:
    """Return everything measured, every seed, as JSON."""
    facts = {(s, f["learner"]): f for s, groups in settings.items() for f in gate_facts(groups)}
    data = {
        setting: [
            {
                "learner": group.learner,
                "oracle": group.oracle,
                **{key: _finite(asdict(s)) for key, s in summaries(group.results).items()},
                "gate": {
                    key: _finite(asdict(value))
                    for key, value in facts.get((setting, group.learner), {}).items()
                    if isinstance(value, Summary)
                },
                "results": [result.to_dict() for result in group.results],
                "runs": [str(run.path) for run in group.runs],
            }
            for group in groups
        ]
        for setting, groups in settings.items()
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _notes(groups: Sequence[Group], star: str) -> list[str]:
    notes = [f"{star} {ORACLE}"] if any(group.oracle for group in groups) else []
    return notes + ([INTERVAL] if any(len(group.results) > 1 for group in groups) else [])


def _cells(group: Group, plus_minus: str, star: str = "*") -> list[str]:
    cells = [group.learner + (star if group.oracle else "")]
    for summary in summaries(group.results).values():
        text = number(summary.mean)
        if not math.isnan(summary.interval):
            text += plus_minus + number(summary.interval)
        cells.append(text)
    speed = sum(group.speeds) / len(group.speeds) if group.speeds else math.nan
    return [*cells, "–" if math.isnan(speed) else f"{speed:,.0f}", str(len(group.results))]


def number(value: float) -> str:
    """Three or four digits that matter, a dash for what is undefined."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"


def _escape(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text.replace("±", r"$\pm$").replace("–", "--")


def _finite(data: dict[str, Any]) -> dict[str, Any]:
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in data.items()
    }
