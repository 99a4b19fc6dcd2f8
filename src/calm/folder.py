"""A run folder: config, records, timings, checkpoint, metrics, environment. Plain files, no more.

config.toml       what is run; never changes
environment.json  the hashes of corpora and config; machine and versions of every start
records.jsonl     a line per batch: step, fragment, class, loss, the gate's weights if it has one
timings.jsonl     a line per batch: step, seconds
checkpoint/       the learner's state after so many batches
metrics.json      once the run has finished
failed.json       why a sweep gave it up
"""

import json
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calm.checkpoint import as_arrays, read_arrays, write_arrays
from calm.config import Config, read_config
from calm.environment import environment
from calm.errors import CalmError, blame
from calm.files import locked, replace_file, replace_json, sha256
from calm.journals import GATES, Journals, read_blocks
from calm.learners.base import Learner
from calm.metrics import Records

JOURNALS = ("records.jsonl", "timings.jsonl")
MEASURED = ("config.toml", "records.jsonl")  # what the metrics follow from
HIDDEN = (".config.toml.new",)  # what a kill may leave of a file that was being replaced


class RunFolder:
    """The files of one run; every file but the journals is replaced whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, config: Config) -> None:
        """Begin a run, in a folder without one."""
        if self.exists():
            raise CalmError(f"{self.path} already holds {self._describe(config)}")
        if strangers := {path.name for path in self.path.iterdir()} - {".lock", *HIDDEN}:
            raise CalmError(
                f"{self.path} holds other files ({min(strangers)}): choose an empty or a new folder"
            )
        text = config.to_toml()
        replace_file(self.path / "config.toml", lambda new: new.write_text(text, encoding="utf-8"))

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
        """Keep other processes away."""
        with locked(self.path / ".lock", f"working on {self.path}"):
            yield

    def note_start(self, fingerprint: str, step: int, code: str | None) -> None:
        """Write down text, config, the hash of a user's learner, machine and versions."""
        origin = {"corpora": fingerprint, "config": sha256(self.path / "config.toml")}
        starts = [*self.starts(), {"step": step, "code": code, **environment()}]
        replace_json(self.path / "environment.json", {**origin, "starts": starts})

    def check_origin(self, fingerprint: str | None = None) -> None:
        """Refuse to go on with another config than the run began with, or with other text."""
        noted = self._noted()
        if noted and noted.get("config") != sha256(self.path / "config.toml"):
            raise CalmError(
                f"{self.path / 'config.toml'} has changed since the run began: put it back as it "
                "was, or start a new run"
            )
        if noted and fingerprint is not None and noted.get("corpora") != fingerprint:
            raise CalmError(f"the text that {self.path} began with has changed: start a new run")

    def corpora(self) -> str:
        """Return the hash of the text that the run began with."""
        return str(self._noted().get("corpora"))

    def starts(self) -> list[dict[str, Any]]:
        """Return at which batch, when and where the run was started and resumed."""
        starts: list[dict[str, Any]] = self._noted().get("starts", [])
        return starts

    def save_checkpoint(self, step: int, state: Any) -> None:
        """Keep the state of a learner that has learned `step` batches."""
        checkpoint = self.path / "checkpoint"
        checkpoint.mkdir(exist_ok=True)
        with blame("saving what the learner's state() returned"):
            arrays = as_arrays(state)
        path = checkpoint / "learner.safetensors"
        replace_file(path, lambda new: write_arrays(new, step, arrays))

    def restore(self, learner: Learner) -> int:
        """Load the checkpoint, if there is one; return how many batches it has learned."""
        path = self.path / "checkpoint" / "learner.safetensors"
        if not path.is_file():
            return 0
        step, state = read_arrays(path)
        with blame(f"loading {path} into the learner"):
            learner.load_state(state)
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
                for number in range(step):
                    line = file.readline()
                    if not line.startswith(b'{"step": %d, ' % number) or not line.endswith(b"}\n"):
                        raise CalmError(
                            f"{path} is damaged in line {number + 1} of the {step} before the "
                            "checkpoint: delete the folder checkpoint to let the run begin again"
                        )
                file.truncate()
                files.append(file)
            yield Journals(*files)

    def records(self) -> Records:
        """Everything recorded so far, as columns."""
        path = self._journal("records.jsonl")
        fragment, loss = array("q"), array("d")
        names = [np.array([], dtype=np.str_)]
        for numbers, classes, losses in read_blocks(path, ("fragment", "class", "loss"), GATES):
            fragment.extend(numbers)
            names.append(np.array(classes, dtype=np.str_))
            loss.extend(losses)
        fragments = self.config().stream.fragments
        return Records(np.array(fragment), np.concatenate(names), np.array(loss), fragments)

    def gates(self) -> NDArray[np.float64] | None:
        """Return the gate's weights in every batch, (batches, experts), if there is a gate."""
        path = self._journal("records.jsonl")
        with path.open("rb") as file:
            if not GATES.search(file.readline()):
                return None
        return np.concatenate([np.array(gates) for (gates,) in read_blocks(path, ("gates",))])

    def seconds(self) -> float:
        """Time spent by stream and learner together."""
        blocks = read_blocks(self._journal("timings.jsonl"), ("seconds",))
        return float(sum(sum(seconds) for (seconds,) in blocks))

    def metrics(self) -> dict[str, Any]:
        """What was measured at the end of the run."""
        if not self.finished:
            raise CalmError(f"{self.path} is not finished: go on with `calm resume {self.path}`")
        metrics = self._json("metrics.json", "sha256")
        for name in MEASURED:
            path = self.path / name
            if not path.is_file() or metrics["sha256"].get(name) != sha256(path):
                raise CalmError(
                    f"{path} is not the one that metrics.json was made from: put it back as it "
                    "was, or run it again in a new folder"
                )
        return metrics

    def save_metrics(self, metrics: dict[str, Any]) -> None:
        """Mark the run as finished, and its files as what the metrics were made from."""
        hashes = {name: sha256(self.path / name) for name in MEASURED}
        replace_json(self.path / "metrics.json", {**metrics, "sha256": hashes})

    def _describe(self, wanted: Config) -> str:
        """Say how the run here relates to one that somebody wants to start here."""
        here, there = _flat(self.config().to_dict()), _flat(wanted.to_dict())
        differing = [key for key in sorted({*here, *there}) if here.get(key) != there.get(key)]
        if differing:
            return f"a run with another {differing[0]}: choose another --out"
        if self.finished:
            return f"this very run, finished: see `calm report {self.path}`"
        return f"this very run, unfinished: go on with `calm resume {self.path}`"

    def _journal(self, name: str) -> Path:
        path = self.path / name
        if not path.is_file():
            raise CalmError(f"{self.path} has no {name} yet: go on with `calm resume {self.path}`")
        return path

    def _noted(self) -> dict[str, Any]:
        """Return what was written down at the start, or nothing before it was."""
        there = (self.path / "environment.json").is_file()
        return self._json("environment.json", "starts") if there else {}

    def _json(self, name: str, key: str) -> dict[str, Any]:
        """Read a file of plain data that has a certain key, at least."""
        path = self.path / name
        try:
            data: dict[str, Any] = json.loads(path.read_bytes())
            data[key]
        except OSError as error:
            raise CalmError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise CalmError(
                f"{path} is damaged: delete it, then `calm resume {self.path}`"
            ) from None
        return data


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
