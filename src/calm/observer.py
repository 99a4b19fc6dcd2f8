"""Who follows a run along: told of every record once it is written, and able to change none."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from calm.build import find_class
from calm.config import Config
from calm.errors import CalmError, blame
from calm.loop import Record
from calm.metrics import Result
from calm.progress import say

OBSERVERS = {
    "tensorboard": "calm.trackers:TensorBoard",
    "wandb": "calm.trackers:WeightsAndBiases",
    "trackio": "calm.trackers:Trackio",
}


class Observer(ABC):
    """Shows a run, or acts on it, outside its folder; made anew, without arguments, for each."""

    @abstractmethod
    def start(self, config: dict[str, Any], folder: Path, step: int) -> None:
        """Begin with batch `step`; above 0 the run is resumed, and later batches come once more."""

    @abstractmethod
    def batch(self, record: Record) -> None:
        """Take note of a batch that is scored and written down."""

    @abstractmethod
    def finish(self, result: Result | None) -> None:
        """End; with the run's result, or with None where it was stopped on the way."""


def make_observers(names: Sequence[str]) -> list[Observer]:
    """Make observers by their names, or as `module:Class`."""
    made = []
    for name in dict.fromkeys(names):
        cls = find_class("observer", name, OBSERVERS, Observer)
        with blame(f"observer {name}"):
            made.append(cls())
    return made


class Watch:
    """The observers of one run. One that raises is dismissed; the run goes on."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self.result: Result | None = None

    def batch(self, record: Record) -> None:
        """Tell of a batch."""
        self.tell(lambda observer: observer.batch(record))

    def tell(self, call: Callable[[Observer], None]) -> None:
        """Call a method of every one; what they print is no result and goes to standard error."""
        for observer in list(self._observers):
            try:
                with blame(f"observer {type(observer).__name__}"), redirect_stdout(sys.stderr):
                    call(observer)
            except CalmError as error:
                say(f"{error}: the run goes on without it")
                self._observers.remove(observer)


@contextmanager
def watching(
    observers: Sequence[Observer], config: Config, folder: Path, step: int
) -> Iterator[Watch]:
    """Let observers follow a run to its end, whatever that is; its result is left in the watch."""
    watch = Watch(observers)
    watch.tell(lambda observer: observer.start(config.to_dict(), folder, step))
    try:
        yield watch
    finally:
        watch.tell(lambda observer: observer.finish(watch.result))
