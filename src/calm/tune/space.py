"""The space of a learner's options: a table [space.LEARNER] of an experiment, an axis per key.

dropout = [0.1, 0.2]                             a list: each of these
learning_rate = { low = 1e-4, high = 1e-2, log = true }   a range, which only a search can try
shape = [{ heads = 4, width = 192 }, { heads = 8, width = 512 }]   several options at once
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from calm.build import knows
from calm.config import Experiment, convert, read_experiment, read_toml
from calm.errors import CalmError

Point = dict[str, Any]  # of options


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both among them; whole ones if both are whole."""

    low: Any
    high: Any
    log: bool = False
    """Whether orders of magnitude are searched evenly."""

    def __post_init__(self) -> None:
        for key, value in (("low", self.low), ("high", self.high)):
            if type(value) not in (int, float):
                raise CalmError(f"{key} is {value!r}: expected a number")
        if not self.low < self.high or (self.log and self.low <= 0):
            least = "above 0 and " if self.log else ""
            raise CalmError(f"low is {self.low}, high {self.high}: take low {least}below high")

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return type(self.low) is int and type(self.high) is int


@dataclass(frozen=True)
class Axis:
    """One choice to be made: from some points, or of one option from a range."""

    name: str
    values: tuple[Point, ...] | Range


Space = tuple[Axis, ...]


def read_space(path: Path, learner: str, given: Mapping[str, Any]) -> tuple[Experiment, Space]:
    """Read an experiment and the space in it for a learner, without what is given anyway."""
    experiment = read_experiment(path)
    split = read_toml(path).get("stream", {}).get("split", "dev")
    if split != "dev":
        raise CalmError(
            f"{path}: split is {split!r}: options are chosen on the dev half, and the test half "
            "must not be seen before; leave split away"
        )
    if learner not in experiment.spaces:
        there = ", ".join(experiment.spaces) or "none"
        raise CalmError(
            f"{path} has no table [space.{learner}], which says what is to be tried; there are "
            f"spaces for: {there}"
        )
    where = f"{path}: space.{learner}"
    table = experiment.spaces[learner]
    axes = tuple(_axis(key, value, f"{where}: {key}") for key, value in table.items())
    for axis in axes:
        for option in _options(axis):
            if not knows(learner, option):
                raise CalmError(f"{where}: {axis.name}: {learner} has no option {option!r}")
    left = tuple(axis for axis in axes if not _options(axis) & given.keys())
    if not left:
        raise CalmError(f"{where} leaves nothing to try: name an option that is not given")
    return experiment, left


def grid(space: Space) -> list[Point]:
    """Return every combination, the last axis the fastest."""
    for axis in space:
        if isinstance(axis.values, Range):
            raise CalmError(
                f"{axis.name} is a range, of which a grid cannot try all: add --by optuna, or "
                "make it a list"
            )
    values = [axis.values for axis in space if not isinstance(axis.values, Range)]
    return [_joined(points) for points in product(*values)]


def _joined(points: tuple[Point, ...]) -> Point:
    return {key: value for point in points for key, value in point.items()}


def _options(axis: Axis) -> set[str]:
    """Name the options that an axis is about."""
    if isinstance(axis.values, Range):
        return {axis.name}
    return {key for point in axis.values for key in point}


def _axis(name: str, value: Any, where: str) -> Axis:
    if isinstance(value, dict):
        try:
            return Axis(name, convert(Range, value, where))
        except TypeError:
            raise CalmError(f"{where} needs low and high") from None
    if not isinstance(value, list) or not value:
        raise CalmError(f"{where} is {value!r}: expected a list, or a table with low and high")
    tables = [isinstance(item, dict) for item in value]
    if any(tables) and not all(tables):
        raise CalmError(f"{where}: expected either tables of options or plain values, not both")
    return Axis(name, tuple(item if isinstance(item, dict) else {name: item} for item in value))
