"""Observers that hand records on to TensorBoard, Weights & Biases and Trackio."""

import importlib
import math
from abc import abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from calm.errors import CalmError
from calm.loop import Record
from calm.metrics import Result
from calm.observer import Observer


def curves(record: Record) -> dict[str, float]:
    """Return a batch's point of every curve; each class has one of its own, and each expert."""
    gates = enumerate(record.gates or ())
    return {
        "loss": record.loss,
        f"loss/{record.class_name}": record.loss,
        "fragment": float(record.fragment),
        **{f"gate/{expert}": weight for expert, weight in gates},
    }


def scores(result: Result | None) -> dict[str, float]:
    """Return the numbers of a finished run that are defined."""
    numbers = asdict(result).items() if result else ()
    return {f"result/{k}": v for k, v in numbers if isinstance(v, float) and math.isfinite(v)}


def _load(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CalmError(f"to observe with {extra}: pip install 'calm-bench[{extra}]'") from None


class TensorBoard(Observer):
    """Event files in the run's folder `tensorboard`: see them by `tensorboard --logdir runs`.

    They are flushed with every batch, as records are, so that a kill loses nothing; what a resumed
    run repeats takes the place of what was there.
    """

    def __init__(self) -> None:
        self._library = _load("torch.utils.tensorboard", "tensorboard")

    def start(self, config: dict[str, Any], folder: Path, step: int) -> None:
        """Open one more event file."""
        self._writer = self._library.SummaryWriter(str(folder / "tensorboard"), purge_step=step)
        self._step = step - 1

    def batch(self, record: Record) -> None:
        """Write a point of every curve."""
        self._step = record.step
        self._write(curves(record))

    def finish(self, result: Result | None) -> None:
        """Write the result at the last batch."""
        self._write(scores(result))
        self._writer.close()

    def _write(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, self._step)
        self._writer.flush()


class _Tracker(Observer):
    """A library with the calls init, log and finish.

    A run's log is named in a file in its folder, so that it goes on when the run is resumed.
    """

    library: ClassVar[str]

    def __init__(self) -> None:
        self._library = _load(self.library, self.library)

    @abstractmethod
    def _names(self, folder: Path, log: str) -> dict[str, str]:
        """Return what the library calls the run and its log."""

    def start(self, config: dict[str, Any], folder: Path, step: int) -> None:
        """Begin a log, or go on with it."""
        note = folder / f"{self.library}.txt"
        if not note.exists():
            note.write_text(f"{folder.name}-{uuid4().hex[:8]}\n", encoding="utf-8")
        names = self._names(folder, note.read_text(encoding="utf-8").strip())
        self._library.init(project="calm", config=config, resume="allow", **names)

    def batch(self, record: Record) -> None:
        """Log a point of every curve."""
        self._library.log(curves(record), step=record.step)

    def finish(self, result: Result | None) -> None:
        """Log the result."""
        if result:
            self._library.log(scores(result))
        self._library.finish()


class WeightsAndBiases(_Tracker):
    """Weights & Biases; offline, its files are in the run's folder `wandb`."""

    library = "wandb"

    def _names(self, folder: Path, log: str) -> dict[str, str]:
        return {"name": folder.name, "id": log, "dir": str(folder)}


class Trackio(_Tracker):
    """Trackio: see it by `trackio show`."""

    library = "trackio"

    def _names(self, folder: Path, log: str) -> dict[str, str]:
        return {"name": log}
