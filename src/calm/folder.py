"""A run folder: config, records, timings, checkpoint, metrics, environment. Plain files, no more.

config.toml       what is run; never changes
environment.json  the corpora's hash; machine and versions of every start
records.jsonl     a line per batch: step, fragment, class, loss
timings.jsonl     a line per batch: step, seconds
checkpoint/       the learner's state after so many batches
metrics.json      once the run has finished
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from calm.config import Config, read_config
from calm.environment import environment
from calm.errors import CalmError, blame
from calm.learners.base import Learner, State
from calm.loop import Record, to_records
from calm.metrics import Records

JOURNALS = ("records.jsonl", "timings.jsonl")


class RunFolder:
    """The files of one run; every file but the journals is replaced whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, config: Config) -> None:
        """Begin a run, in a folder without one."""
        if self.exists():
            raise CalmError(f"{self.path} already holds {self._describe(config)}")
        _replace(self.path / "config.toml", lambda new: new.write_text(config.to_toml(), "utf-8"))

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Find the run in a folder."""
        folder = cls(path)
        if not folder.exists():
            raise CalmError(f"{path} holds no run: there is no config.toml in it")
        return folder

    def exists(self) -> bool:
        """Whether there is a run."""
        return (self.path / "config.toml").is_file()

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return (self.path / "metrics.json").is_file()

    def config(self) -> Config:
        """What is run."""
        return read_config(self.path / "config.toml")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes away; a lock dies with its process."""
        lock = FileLock(self.path / ".lock")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock.acquire(blocking=False)
        except Timeout:
            raise CalmError(f"another process is working on {self.path}") from None
        except OSError as error:
            raise CalmError(f"cannot write to {self.path}: {error.strerror or error}") from None
        try:
            yield
        finally:
            lock.release()

    def note_start(self, fingerprint: str, step: int) -> None:
        """Write down machine and versions; refuse to go on over text that has changed."""
        path = self.path / "environment.json"
        noted: dict[str, Any] = {"corpora": fingerprint, "starts": []}
        if path.is_file():
            noted = self._json("environment.json")
        if noted.get("corpora") != fingerprint:
            raise CalmError(f"the text that {self.path} began with has changed: start a new run")
        starts = [*noted.get("starts", []), {"step": step, **environment()}]
        _write_json(path, {**noted, "starts": starts})

    def corpora(self) -> str:
        """Return the hash of the text that the run began with."""
        return str(self._json("environment.json").get("corpora"))

    def save_checkpoint(self, step: int, state: State) -> None:
        """Keep the state of a learner that has learned `step` batches."""
        checkpoint = self.path / "checkpoint"
        checkpoint.mkdir(exist_ok=True)
        with blame("saving what the learner's state() returned"):
            arrays = {name: _numeric(name, array) for name, array in state.items()}
        _replace(
            checkpoint / "learner.safetensors",
            lambda new: save_file(arrays, new, metadata={"step": str(step)}),
        )

    def restore(self, learner: Learner) -> int:
        """Load the checkpoint, if there is one; return how many batches it has learned."""
        path = self.path / "checkpoint" / "learner.safetensors"
        if not path.is_file():
            return 0
        try:
            with safe_open(path, framework="numpy") as file:
                step = int(file.metadata()["step"])
                learner.load_state({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        except Exception as error:  # what load_state raises is up to the learner
            raise CalmError(
                f"{path} is damaged or of another learner ({type(error).__name__}: {error}): "
                "delete it to let the run begin again"
            ) from None
        return step

    @contextmanager
    def journals(self, step: int) -> Iterator["Journals"]:
        """Open records and timings to go on after their first `step` lines."""
        with ExitStack() as stack:
            files = []
            for name in JOURNALS:
                path = self.path / name
                path.touch()
                file = stack.enter_context(path.open("r+b"))
                for _ in range(step):
                    if not file.readline().endswith(b"\n"):
                        raise CalmError(
                            f"{path} has fewer lines than the {step} batches that the checkpoint "
                            "has learned: delete the folder checkpoint to let the run begin again"
                        )
                file.truncate()
                files.append(file)
            yield Journals(*files)

    def records(self) -> Records:
        """Everything recorded so far, as columns."""
        rows = self._lines("records.jsonl", ("step", "fragment", "class", "loss"))
        return to_records((Record(*row) for row in rows), self.config().stream.fragments)

    def seconds(self) -> float:
        """Time spent by stream and learner together."""
        return float(sum(row[0] for row in self._lines("timings.jsonl", ("seconds",))))

    def metrics(self) -> dict[str, Any]:
        """What was measured at the end of the run."""
        if not self.finished:
            raise CalmError(f"{self.path} is not finished: go on with `calm resume {self.path}`")
        return self._json("metrics.json")

    def save_metrics(self, metrics: dict[str, Any]) -> None:
        """Mark the run as finished."""
        _write_json(self.path / "metrics.json", metrics)

    def _describe(self, wanted: Config) -> str:
        """Say how the run here relates to one that somebody wants to start here."""
        here, there = _flat(self.config().to_dict()), _flat(wanted.to_dict())
        differing = [key for key in sorted({*here, *there}) if here.get(key) != there.get(key)]
        if differing:
            return f"a run with another {differing[0]}: choose another --out"
        if self.finished:
            return f"this very run, finished: see `calm report {self.path}`"
        return f"this very run, unfinished: go on with `calm resume {self.path}`"

    def _lines(self, name: str, keys: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        path = self.path / name
        if not path.is_file():
            raise CalmError(f"{self.path} has no {name} yet: go on with `calm resume {self.path}`")
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file):
                try:
                    row = json.loads(line)
                    if row["step"] != number:
                        raise ValueError(f"step {row['step']} out of place")
                    yield tuple(row[key] for key in keys)
                except (ValueError, KeyError, TypeError) as error:
                    raise CalmError(f"{path} is damaged in line {number + 1}: {error}") from None

    def _json(self, name: str) -> dict[str, Any]:
        try:
            data: dict[str, Any] = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CalmError(f"{self.path / name} cannot be read: {error}") from None
        return data


class Journals:
    """The two files that grow by a line a batch."""

    def __init__(self, records: BinaryIO, timings: BinaryIO) -> None:
        self._files = (records, timings)

    def write(self, record: Record, seconds: float) -> None:
        """Write a record as it happens."""
        line = {
            "step": record.step,
            "fragment": record.fragment,
            "class": record.class_name,
            "loss": record.loss,
        }
        records, timings = self._files
        records.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        timings.write(b'{"step": %d, "seconds": %.6f}\n' % (record.step, seconds))
        records.flush()

    def sync(self) -> None:
        """Make sure that all of it is on the disk."""
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())


def _numeric(name: str, value: Any) -> NDArray[Any]:
    array = np.asarray(value, order="C")
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"{name!r} is no array of numbers")
    return array


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file so that, whatever happens, either the old or the new one is there."""
    new = path.with_name(f".{path.name}.new")
    try:
        write(new)
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.replace(path)
    except SafetensorError as error:
        raise OSError(f"{path} could not be written: {error}") from None
    finally:
        new.unlink(missing_ok=True)


def _write_json(path: Path, data: dict[str, Any]) -> None:
    _replace(path, lambda new: new.write_text(json.dumps(data, indent=2) + "\n", "utf-8"))


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
