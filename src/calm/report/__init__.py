"""Numbers become tables and figures."""

import re
from collections.abc import Sequence
from pathlib import Path

from calm.report.figures import loss_figure, save, switch_figure
from calm.report.gates import gate_facts, gate_figure, gate_sentence
from calm.report.runs import Run, load_runs, settings
from calm.report.table import class_table, latex, markdown, screen_table, to_json, too_good

__all__ = [
    "Run",
    "class_table",
    "gate_facts",
    "gate_sentence",
    "load_runs",
    "screen_table",
    "settings",
    "too_good",
    "write_report",
]


def write_report(runs: Sequence[Run], out: Path) -> list[Path]:
    """Write the table in three formats and two figures per setting; return the files written."""
    groups = settings(runs)
    out.mkdir(parents=True, exist_ok=True)
    texts = {
        "table.md": markdown(groups),
        "table.tex": latex(groups),
        "table.json": to_json(groups),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    written = [out / name for name in texts]
    for i, (setting, members) in enumerate(groups.items()):
        suffix = f"-{i + 1}" if len(groups) > 1 else ""
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
