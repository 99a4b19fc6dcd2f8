"""Texts that several learners wrote at the same points of a stream, as a table."""

from collections.abc import Sequence

from calm.errors import CalmError
from calm.report.latex import escaped
from calm.report.table import markdown_table

Samples = Sequence[tuple[str, str]]  # at every point: what it is, and the text
MARKS = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>#|~$&"})


def markdown_samples(learners: Sequence[str], samples: Sequence[Samples]) -> str:
    """Return a table in GitHub Markdown: a row per point, a column per learner."""
    rows = [[cell.translate(MARKS) for cell in row] for row in _rows(samples)]
    names = [name.translate(MARKS) for name in learners]
    return "\n".join(markdown_table(["", *names], rows, left=len(names) + 1)) + "\n"


def latex_samples(learners: Sequence[str], samples: Sequence[Samples]) -> str:
    """Return the same as LaTeX."""
    column = rf"p{{{0.76 / len(learners):.2f}\linewidth}}"
    lines = [
        "% needs booktabs, and fontenc with T1",
        rf"\begin{{tabular}}{{p{{0.12\linewidth}}{column * len(learners)}}}",
        r"\toprule",
        " & ".join(["", *map(escaped, learners)]) + r" \\",
    ]
    for row in _rows(samples):
        lines += [r"\midrule", " & ".join(map(escaped, row)) + r" \\"]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _rows(samples: Sequence[Samples]) -> list[list[str]]:
    """Line the points up; a text becomes one line."""
    rows = []
    for points in zip(*samples, strict=True):
        titles = {title for title, _ in points}
        if len(titles) > 1:
            found = "; ".join(sorted(titles))
            raise CalmError(
                f"the runs do not stand at the same point of a stream ({found}): "
                "take runs of one seed"
            )
        rows.append([titles.pop(), *(" ".join(text.split()) for _, text in points)])
    return rows
