"""Numbers become tables and figures."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from calm.report.compare import Setting, compare
from calm.report.figures import loss_figure, save, switch_figure
from calm.report.gate_figure import gate_figure
from calm.report.gates import gate_facts, gate_sentence
from calm.report.latex import latex, paper_layout
from calm.report.runs import Run, load_runs, settings
from calm.report.samples import latex_samples, markdown_samples
from calm.report.table import class_table, markdown, screen_table, too_good
from calm.report.written import differences_page, to_json

__all__ = [
    "Run",
    "Setting",
    "class_table",
    "compare",
    "gate_facts",
    "gate_sentence",
    "latex_samples",
    "load_runs",
    "markdown_samples",
    "screen_table",
    "settings",
    "too_good",
    "write_report",
]

SETTINGS, GATES = 12, 8  # so many are drawn at most, however many there are
PANELS = 4  # settings side by side in a figure


def write_report(compared: Sequence[Setting], out: Path) -> list[Path]:
    """Write the table in its formats, the differences and the figures; return the files written."""
    out.mkdir(parents=True, exist_ok=True)
    texts = {
        "table.md": markdown(compared),
        "table.tex": latex(compared),
        "table.json": to_json(compared),
        "paper.tex": paper_layout(compared),
        "differences.md": differences_page(compared),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    written = [out / name for name in texts]
    for name, figure in _figures(compared):
        save(figure, out / name)
        written += [out / f"{name}.png", out / f"{name}.svg"]
    return written


def _figures(compared: Sequence[Setting]) -> Iterator[tuple[str, Figure]]:
    """Draw the figures, one at a time: of many settings the first, of many learners the best."""
    several = len(compared) > 1
    drawn = compared[:SETTINGS]
    for start in range(0, len(drawn), PANELS):
        suffix = f"-{start // PANELS + 1}" if len(drawn) > PANELS else ""
        yield f"switch{suffix}", switch_figure(drawn[start : start + PANELS])
    for i, setting in enumerate(drawn):
        suffix = f"-{i + 1}" if several else ""
        yield f"loss{suffix}", loss_figure(setting)
        gated = [group for group in setting.groups if group.runs and group.runs[0].similarity]
        for group in gated[: max(1, GATES // len(drawn))]:
            name = re.sub(r"[^\w.=-]+", "-", f"gates-{group.learner}")
            yield name + suffix, gate_figure(group)
