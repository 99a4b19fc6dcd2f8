"""Small sweeps over text that is read in no time, and what is left in their folders."""

import json
import time
from pathlib import Path

import tomli_w

from helpers import spawn

STREAM = {"fragments": 4, "mean_length": 1200}
ENDLESS = {"fragments": 4, "mean_length": 8000, "rows": 1}  # takes a slow learner half a minute


def write_sweep(folder, **keys):
    """Write a sweep file whose runs go to `out` beside it."""
    texts = folder / "texts"
    texts.mkdir(exist_ok=True)
    for name in ("ab", "cd"):
        (texts / f"{name}.txt").write_text(f"{name} and {name[::-1]} \n" * 30_000)
    sweep = {"out": str(folder / "out"), "corpora": [str(texts)], "streams": [STREAM], **keys}
    path = folder / "sweep.toml"
    path.write_text(tomli_w.dumps(sweep))
    return path


def done(*arguments):
    """Run a sweep in a process of its own, to its end; return code, output and errors."""
    process = spawn("sweep", *arguments)
    out, errors = process.communicate()
    return process.returncode, out, errors


def records(out):
    """Records of every run."""
    return {p.parent.name: p.read_bytes() for p in out.glob("*/records.jsonl")}


def starts(folder):
    """At which batches a run was started and resumed."""
    noted = json.loads((folder / "environment.json").read_text())
    return [start["step"] for start in noted["starts"]]


def finished(out):
    """Folders of finished runs."""
    return {path.parent for path in out.glob("*/metrics.json")}


def workers(driver):
    """Process ids of the processes that do the runs of a sweep on this machine."""
    return [worker for server in _children(driver) for worker in _children(server)]


def _children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []


def wait_for(condition):
    while not condition():
        time.sleep(0.01)
