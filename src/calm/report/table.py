"""The table: a row per learner, mean over its seeds; on screen and as Markdown."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from rich import box
from rich.markup import escape
from rich.table import Table

from calm.metrics import Result, Summary, summarise
from calm.report.compare import Setting
from calm.report.published import METRICS
from calm.report.runs import Group
from calm.report.significance import LEVEL

COLUMNS = {**METRICS, "bits": "bits"}
ORACLE = "oracle: knows what no contender may, not ranked"
INTERVAL = "±: half of the 95 % interval over seeds"
DEVIATION = "±: standard deviation over seeds"
LEGEND = (
    "ppl: second half of the stream. ppl@sw: 10 batches after a switch. rec: batches to recover.",
    "–: not defined, as when no class comes back",
)
TIED = f"not to be told from the best (bold) at {100 * LEVEL:g} %: paired t-test over seeds, Holm"
BELOW = "below the floor, which nobody can be: does it keep to the protocol? See calm check"


@dataclass(frozen=True)
class Style:
    """How a format writes what tables need."""

    plus_minus: str
    star: str  # of an oracle
    dagger: str  # of a contender not to be told from the best
    double_dagger: str  # of numbers of the paper's that are of another setting
    bold: str
    escape: Callable[[str], str]


SCREEN = Style("±", "*", "†", "‡", "[bold]{}[/bold]", escape)
MARKDOWN = Style(" ± ", r"\*", "†", "‡", "**{}**", lambda text: text.replace("|", r"\|"))


def headings(setting: Setting, style: Style) -> list[str]:
    """Return the names of the columns; beside the paper's numbers there is room for less."""
    paper = setting.published
    if paper is None:
        return ["learner", *COLUMNS.values(), "tokens/s", "seeds"]
    beside = f"paper{style.double_dagger if paper.departures else ''}"
    return ["learner", *(name for own in METRICS.values() for name in (own, beside)), "seeds"]


def cells(setting: Setting, group: Group, style: Style) -> list[str]:
    """Return a learner's row."""
    row = [style.escape(group.learner) + (style.star if group.oracle else "")]
    paper = setting.published
    for metric in METRICS:
        text = _spread(summarise(group.values(metric)), style, deviation=paper is not None)
        if group.learner == setting.best(metric):
            text = style.bold.format(text)
        row.append(text + (style.dagger if setting.tied(group.learner, metric) else ""))
        if paper is not None:
            row.append(_as_published(paper.results.get(group.name, {}).get(metric), style))
    if paper is None:
        speed = sum(group.speeds) / len(group.speeds) if group.speeds else math.nan
        row.append(_spread(summarise(group.values("bits")), style, deviation=False))
        row.append("–" if math.isnan(speed) else f"{speed:,.0f}")
    return [*row, str(len(group.results))]


def notes(setting: Setting, style: Style) -> list[str]:
    """Explain the marks of a table."""
    groups, paper = setting.groups, setting.published
    found = [f"{style.star} {ORACLE}"] if any(group.oracle for group in groups) else []
    if any(setting.tied(group.learner, metric) for group in groups for metric in METRICS):
        found.append(f"{style.dagger} {TIED}")
    if untested := setting.untested:
        names = ", ".join(style.escape(name) for name in untested)
        found.append(f"not compared with the best, for want of two seeds in common: {names}")
    if any(len(group.results) > 1 for group in groups):
        found.append(DEVIATION if paper else INTERVAL)
    if paper:
        found.append(f"paper{style.double_dagger if paper.departures else ''}: {paper.note}")
    return found


def screen_table(setting: Setting) -> Table:
    """Return the table of one setting for a terminal."""
    table = Table(
        title=escape(setting.name), title_justify="left", box=box.SIMPLE, caption_justify="left"
    )
    for heading in headings(setting, SCREEN):
        table.add_column(heading, justify="left" if heading == "learner" else "right", no_wrap=True)
    for group in setting.groups:
        table.add_row(*cells(setting, group, SCREEN), style="dim" if group.oracle else "")
    table.caption = escape("\n".join((*notes(setting, SCREEN), *LEGEND)))
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


def markdown(settings: Sequence[Setting]) -> str:
    """Return the tables as GitHub Markdown."""
    lines = []
    for setting in settings:
        rows = [cells(setting, group, MARKDOWN) for group in setting.groups]
        lines += [f"### {setting.name}", "", *markdown_table(headings(setting, MARKDOWN), rows)]
        said = notes(setting, MARKDOWN) + setting.gate_sentences()
        lines += [line for note in said for line in ("", note)] + [""]
    return "\n".join(lines)


def markdown_table(names: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """Return the lines of a table whose first columns are flush left."""
    rule = ["---"] * left + ["---:"] * (len(names) - left)
    return ["| " + " | ".join(row) + " |" for row in (names, rule, *rows)]


def number(value: float) -> str:
    """Three or four digits that matter, a dash for what is undefined."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"


def _as_published(summary: Summary | None, style: Style) -> str:
    """Write a number of the paper's with its digits."""
    if summary is None:
        return ""
    deviation = summary.deviation
    return f"{summary.mean:g}" + (
        "" if math.isnan(deviation) else f"{style.plus_minus}{deviation:g}"
    )


def _spread(summary: Summary, style: Style, *, deviation: bool) -> str:
    """Write a mean and its spread, if it has one."""
    spread = summary.deviation if deviation else summary.interval
    mean = number(summary.mean)
    return mean if math.isnan(spread) else f"{mean}{style.plus_minus}{number(spread)}"
