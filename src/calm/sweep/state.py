"""What each run of a sweep is: read from its folder, which is all that is known of it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from calm.errors import BusyError, CalmError, reason
from calm.files import replace_json, sha256
from calm.folder import RunFolder
from calm.sweep.plan import Planned

Kind = Literal["new", "interrupted", "running", "elsewhere", "finished", "failed"]
FAILED = "failed.json"
TAIL = 1 << 15  # bytes at the end of the records that are read to see how far a run is


@dataclass(frozen=True)
class State:
    """What a run is, and if it failed, why."""

    kind: Kind
    reason: str = ""


def inspect(planned: Planned, out: Path) -> State:
    """Look at the folder of a run; what is wrong with one that was edited is a failure."""
    path = out / planned.name
    folder = RunFolder(path)
    try:
        if folder.exists() and sha256(path / "config.toml") != planned.hash:
            raise CalmError(
                f"{path / 'config.toml'} is not what the sweep wrote: put it back as it was, or "
                f"delete {path} to let the run begin again"
            )
        if folder.exists() and folder.finished:
            folder.metrics()
            return State("finished")
        if why := _failure(path):
            return State("failed", why)
        if not folder.exists():
            return State("new")
        with folder.lock():
            return State("interrupted")
    except BusyError:
        return State("elsewhere")
    except CalmError as error:
        return State("failed", str(error))
    except OSError as error:
        return State("failed", reason(error))


def note_failure(path: Path, why: str) -> None:
    """Write beside the run why it failed."""
    replace_json(path / FAILED, {"reason": why})


def forget_failure(path: Path) -> None:
    """Let a run be tried again."""
    (path / FAILED).unlink(missing_ok=True)


def _failure(path: Path) -> str:
    """Why a run failed, or nothing."""
    try:
        return str(json.loads((path / FAILED).read_bytes())["reason"])
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (ValueError, KeyError, TypeError):
        return f"{path / FAILED} is damaged"


def progress(path: Path) -> tuple[int, list[float]]:
    """Return how many batches a run under way has recorded, and the losses of the last ones."""
    try:
        with (path / "records.jsonl").open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - TAIL, 0))
            lines = file.read().splitlines(keepends=True)[1 if size > TAIL else 0 :]
        rows = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return (rows[-1]["step"] + 1, [row["loss"] for row in rows]) if rows else (0, [])
    except (OSError, ValueError, KeyError, TypeError):  # not there yet, or not what it should be
        return 0, []
