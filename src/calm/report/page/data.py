"""Everything the page shows, as plain data."""

import math
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from calm import __version__
from calm.folder import RunFolder
from calm.metrics import Records, Scores, summarise
from calm.report.compare import Setting
from calm.report.figures import FEW, LINES, SHADES
from calm.report.page.encode import curve, heat_map
from calm.report.runs import Group, Run
from calm.report.table import BELOW, COLUMNS, too_good

NUMBERS = 2_400_000  # in the curves of all runs together, 4 bytes each; a run has its share
LEVELS = 2_400_000  # in all heat maps together, one byte each
WIDEST = 600  # steps of a heat map
FILES = ("records.jsonl", "metrics.json", "config.toml", "environment.json")

Data = dict[str, Any]


def page_data(settings: Sequence[Setting], out: Path) -> Data:
    """Describe settings, streams, learners and runs; links lead from the folder `out`."""
    runs = [run for setting in settings for group in setting.groups for run in group.runs]
    gated = sum(run.similarity is not None for run in runs)
    data: Data = {
        "version": __version__,
        "columns": COLUMNS,
        "look": {"lines": LINES, "shades": SHADES, "few": FEW},
        "settings": [], "streams": [], "learners": [], "runs": [],
    }  # fmt: skip
    for number, setting in enumerate(settings):
        run, stream = setting.run, setting.run.config.stream
        data["settings"].append(
            {"name": setting.name, "corpus": run.corpus, "length": stream.mean_length}
        )
        remarks = too_good(setting.groups)
        streams: dict[int, int] = {}
        for group in setting.groups:
            data["learners"].append(
                {
                    "setting": number,
                    "remark": BELOW if f"{group.learner} is {BELOW}" in remarks else None,
                    **_learner(group),
                }
            )
            for run in group.runs:
                records = run.records
                if run.config.seed not in streams:
                    streams[run.config.seed] = len(data["streams"])
                    data["streams"].append(
                        {
                            "setting": number,
                            "seed": run.config.seed,
                            **_stream(records),
                        }
                    )
                data["runs"].append(
                    {
                        "learner": len(data["learners"]) - 1,
                        "stream": streams[run.config.seed],
                        **_run(run, out),
                        "loss": curve(records.loss, NUMBERS // len(runs)),
                        "gates": _gates(run, records, LEVELS // max(gated, 1)),
                    }
                )
    return data


def _learner(group: Group) -> Data:
    curves = np.array([result.curve for result in group.results])
    names = sorted({name for result in group.results for name in result.per_class})
    return {
        "learner": group.learner,
        "oracle": group.oracle,
        "scores": {
            key: _pair([getattr(result, key) for result in group.results]) for key in COLUMNS
        },
        "speed": _number(math.fsum(group.speeds) / len(group.speeds)) if group.speeds else None,
        "seeds": len(group.results),
        "curve": [_numbers(part) for part in (curves.mean(0), curves.min(0), curves.max(0))],
        "classes": {
            name: _scores([r.per_class[name] for r in group.results if name in r.per_class])
            for name in names
        },
    }


def _run(run: Run, out: Path) -> Data:
    folder = os.path.relpath(run.path, out)
    return {
        "seed": run.config.seed,
        "scores": {key: _number(getattr(run.result, key)) for key in COLUMNS},
        "speed": run.metrics["tokens_per_second"],
        "folder": folder,
        "links": {name: quote(os.fsencode(Path(folder) / name)) for name in FILES},
        "config": run.config.to_toml(),
        "environment": RunFolder(run.path).starts(),
    }


def _stream(records: Records) -> Data:
    """Where the fragments begin, and of which class they are."""
    starts = np.flatnonzero(np.diff(records.fragment, prepend=-1))
    names, classes = np.unique(records.class_name[starts], return_inverse=True)
    return {
        "batches": len(records.loss),
        "counted": int(np.searchsorted(records.fragment, records.fragments / 2)),
        "starts": starts.tolist(),
        "classes": classes.tolist(),
        "names": names.tolist(),
    }


def _gates(run: Run, records: Records, numbers: int) -> Data | None:
    gates = run.gates
    if gates is None:
        return None
    return heat_map(gates, records.class_name, min(numbers, WIDEST * gates.shape[1]))


def _scores(scores: Sequence[Scores]) -> Data:
    keys = [field.name for field in fields(Scores)]
    return {key: _pair([getattr(each, key) for each in scores]) for key in keys}


def _pair(values: Sequence[float]) -> list[float | None]:
    """Mean over seeds, and half of its interval."""
    found = summarise(values)
    return [_number(found.mean), _number(found.interval)]


def _numbers(values: Any) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float | None) -> float | None:
    """Six digits that matter, None for what is undefined."""
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
