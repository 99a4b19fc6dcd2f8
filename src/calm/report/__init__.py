"""Numbers become tables and figures."""

import re
from collections.abc import Sequence
from pathlib import Path

from calm.report.compare import Setting, compare
from calm.report.figures import loss_figure, save, switch_figure
from calm.report.gates import gate_facts, gate_figure, gate_sentence
from calm.report.latex import latex, paper_layout
from calm.report.runs import Run, load_runs, settings
from calm.report.table import class_table, markdown, screen_table, too_good
from calm.report.written import differences_page, to_json

__all__ = [
    "Run",
    "Setting",
    "class_table",
    "compare",
    "gate_facts",
    "gate_sentence",
    "load_runs",
    "screen_table",
    "settings",
    "too_good",
    "write_report",
]


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
    for i, (setting, members) in enumerate((s.name, s.groups) for s in compared):
        suffix = f"-{i + 1}" if len(compared) > 1 else ""
        for name, draw in (("loss", loss_figure), ("switch", switch_figure)):
            path = out / f"{name}{suffix}"
            save(draw(setting, members), path)
            written += [path.with_suffix(".png"), path.with_suffix(".svg")]
        for run in (group.runs[0] for group in members if group.runs):
            if run.gates is not None:
                name = re.sub(r"[^\w.=-]+", "-", f"gates-{run.learner}") + suffix
                save(gate_figure(run), out / name)
                written += [out / f"{name}.png", out / f"{name}.svg"]
    return written
