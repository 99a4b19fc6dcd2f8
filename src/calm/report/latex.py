"""The tables as LaTeX, to be included where the package booktabs is used."""

from collections.abc import Callable, Sequence
from itertools import accumulate, groupby, pairwise

from calm.metrics import summarise
from calm.report.compare import Setting, line_up
from calm.report.published import METRICS, names_in_the_paper
from calm.report.runs import Group
from calm.report.table import Style, cells, headings, notes, number

SPECIAL = str.maketrans(
    {
        **{character: "\\" + character for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "λ": r"$\lambda$",
        "–": "--",
    }
)


def escaped(text: str) -> str:
    """Return a text as LaTeX sets it."""
    return text.translate(SPECIAL)


LATEX = Style(r" $\pm$ ", "*", r"$^\dagger$", r"$^\ddagger$", r"\textbf{{{}}}", escaped)


def latex(settings: Sequence[Setting]) -> str:
    """Return a table for each setting."""
    lines = []
    for setting in settings:
        names = headings(setting, LATEX)
        lines += [f"% {setting.name}", rf"\begin{{tabular}}{{l{'r' * (len(names) - 1)}}}"]
        lines += [r"\toprule", _line(names), r"\midrule"]
        for i, group in enumerate(setting.groups):
            if group.oracle and i and not setting.groups[i - 1].oracle:
                lines.append(r"\midrule")
            lines.append(_line(cells(setting, group, LATEX)))
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [f"% {note}" for note in notes(setting, LATEX)] + [""]
    return "\n".join(lines)


def paper_layout(settings: Sequence[Setting]) -> str:
    """Return all settings side by side, as in the paper: the means, then the deviations.

    Under a learner's means stand the paper's, where they were asked for or are of that setting.
    """
    columns = sorted(settings, key=lambda s: (s.run.corpus, s.run.config.stream.mean_length))
    rows = _rows(columns)
    lines = []
    for title, shown in (("means", _mean), ("standard deviations over seeds", _deviation)):
        lines += [f"% {title}", *_header(columns)]
        for i, (label, groups) in enumerate(rows):
            if i and _oracle(rows[i - 1][1]) and not _oracle(groups):
                lines.append(r"\midrule")
            lines.append(_line([label, *_across(columns, groups, shown)]))
            published = _across(columns, groups, _papers)
            if shown is _mean and any(published):
                lines.append(_line([r"\quad in the paper", *published]))
        lines += [r"\bottomrule", r"\end{tabular}", ""]
    for setting in columns:
        lines.append(f"% {setting.name}: {', '.join(group.learner for group in setting.groups)}")
        lines += [f"%   {note}" for note in notes(setting, LATEX)]
    return "\n".join(lines) + "\n"


def _rows(columns: Sequence[Setting]) -> list[tuple[str, list[Group | None]]]:
    """Return a label, and a learner for every setting that has it; oracles first, as there."""
    called = names_in_the_paper()
    order = [*called]

    def place(row: tuple[str, list[Group | None]]) -> tuple[bool, int]:
        return not _oracle(row[1]), order.index(row[0]) if row[0] in order else len(order)

    return [
        (escaped(called.get(name, name)) + (LATEX.star if _oracle(groups) else ""), groups)
        for name, groups in sorted(line_up(columns).items(), key=place)
    ]


def _across(
    columns: Sequence[Setting], groups: Sequence[Group | None], shown: Callable[..., str]
) -> list[str]:
    return [shown(s, g, m) for s, g in zip(columns, groups, strict=True) for m in METRICS]


def _header(columns: Sequence[Setting]) -> list[str]:
    """Return the head of the table: corpora, lengths of fragments, metrics."""
    width = len(METRICS)
    upper: list[tuple[str, int]] = []
    for corpus, members in groupby(columns, key=lambda setting: setting.run.corpus):
        upper.append((corpus, width * len(list(members))))
    lower = [(label, width) for label in _lengths(columns)]
    lines = [rf"\begin{{tabular}}{{l{'r' * width * len(columns)}}}", r"\toprule"]
    for spans in (upper, lower):
        ends = list(accumulate((size for _, size in spans), initial=1))
        lines.append(_line(["", *(rf"\multicolumn{{{n}}}{{c}}{{{escaped(x)}}}" for x, n in spans)]))
        lines.append(" ".join(rf"\cmidrule(lr){{{a + 1}-{b}}}" for a, b in pairwise(ends)))
    return [
        *lines,
        _line(["", *METRICS.values()] + [*METRICS.values()] * (len(columns) - 1)),
        r"\midrule",
    ]


def _lengths(columns: Sequence[Setting]) -> list[str]:
    """Name settings by λ, or in full where that leaves two of a corpus alike."""
    short = [f"λ = {setting.run.config.stream.mean_length / 1000:g}k" for setting in columns]
    places = [(setting.run.corpus, name) for setting, name in zip(columns, short, strict=True)]
    return [
        name if places.count(place) == 1 else setting.name.partition(": ")[2]
        for setting, name, place in zip(columns, short, places, strict=True)
    ]


def _mean(setting: Setting, group: Group | None, metric: str) -> str:
    if group is None:
        return ""
    text = number(summarise(group.values(metric)).mean)
    if group.learner == setting.best(metric):
        text = LATEX.bold.format(text)
    return text + (LATEX.dagger if setting.tied(group.learner, metric) else "")


def _deviation(setting: Setting, group: Group | None, metric: str) -> str:
    return number(summarise(group.values(metric)).deviation) if group else ""


def _papers(setting: Setting, group: Group | None, metric: str) -> str:
    results = setting.published.results if setting.published else {}
    found = results.get(group.name, {}).get(metric) if group else None
    return rf"\textit{{{found.mean:g}}}" if found else ""


def _oracle(groups: Sequence[Group | None]) -> bool:
    return any(group.oracle for group in groups if group)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells).replace("–", "--") + r" \\"
