"""SWEEP.toml -> runs: every experiment × corpus × stream × learner × seed, with exceptions."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from calm.build import knows, placed, with_size
from calm.config import (
    Choice,
    Config,
    Experiment,
    StreamConfig,
    check_keys,
    convert,
    read_experiment,
    read_toml,
)
from calm.errors import CalmError

T = TypeVar("T")
DIGITS = 8  # of the hash that ends a run's name


@dataclass(frozen=True)
class Needs:
    """What a run takes of a machine, for an engine that places runs by it."""

    cpus: float = 1
    """Cores."""
    gpus: float | None = None
    """Graphics processors; 1 for a learner with device = "cuda" if it is not said."""
    memory: float | None = None
    """Gigabytes."""

    def __post_init__(self) -> None:
        for key, value in (("cpus", self.cpus), ("gpus", self.gpus), ("memory", self.memory)):
            if value is not None and value < 0:
                raise CalmError(f"needs: {key} is {value:g}: take 0 or more")


@dataclass(frozen=True)
class Planned:
    """A run that a sweep is to have."""

    config: Config
    needs: Needs = Needs()

    @cached_property
    def hash(self) -> str:
        """Hash of the full config: that of the file config.toml in the run's folder."""
        return hashlib.sha256(self.config.to_toml().encode()).hexdigest()

    @cached_property
    def name(self) -> str:
        """What the run is, readably, and its hash: the name of its folder."""
        stream, learner = self.config.stream, self.config.learner
        parts = [
            Path(self.config.corpus.name).name,
            f"{stream.fragments}x{stream.mean_length:g}",
            learner.name.replace(":", "."),
            *([str(learner.options["size"])] if "size" in learner.options else []),
            f"s{self.config.seed}",
            self.hash[:DIGITS],
        ]
        return "-".join(parts)


@dataclass(frozen=True)
class Sweep:
    """All runs of a sweep, and the folder that the file names for them."""

    out: Path
    runs: tuple[Planned, ...]


@dataclass(frozen=True)
class Matrix:
    """The axes of a sweep; what is None is as the experiment has it."""

    experiments: tuple[str, ...] = ()
    corpora: tuple[Choice, ...] | None = None
    streams: tuple[dict[str, Any], ...] | None = None
    learners: tuple[Choice, ...] | None = None
    seeds: tuple[int, ...] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    needs: Needs = Needs()


@dataclass(frozen=True)
class Cell:
    """One run of a matrix, and the names it goes by there."""

    experiment: str
    planned: Planned


def read_sweep(path: Path, corpora: Sequence[str] | None = None) -> Sweep:
    """Read a sweep file, or a preset by its name; `corpora` take the place of those it has."""
    data, where = read_toml(path), str(path)
    check_keys(data, ["out", *AXES, "include", "exclude"], where)
    out = _text(data.pop("out", f"sweeps/{path.stem}"), f"{where}: out")
    includes = _list(data.pop("include", []), f"{where}: include", _table)
    excludes = _list(data.pop("exclude", []), f"{where}: exclude", _table)
    if corpora:
        data["corpora"] = list(corpora)
    matrix = _matrix(data, where, Matrix())
    cells = list(_expand(matrix, matrix.options, where))
    for number, table in enumerate(excludes, 1):
        cells = _exclude(cells, table, f"{where}: exclude {number}")
    for number, table in enumerate(includes, 1):
        here = f"{where}: include {number}"
        cells += _expand(_matrix(table, here, matrix), table.get("options", ()), here)
    runs = {cell.planned.hash: cell.planned for cell in cells}
    if not runs:
        raise CalmError(f"{where} leaves no run: exclude less")
    return Sweep(Path(out), tuple(runs.values()))


def _matrix(data: dict[str, Any], where: str, base: Matrix) -> Matrix:
    """Read the axes that are given; those that are not are the base's."""
    check_keys(data, list(AXES), where)
    return replace(base, **{key: AXES[key](data[key], f"{where}: {key}") for key in data})


def _expand(matrix: Matrix, options: Iterable[str], where: str) -> Iterator[Cell]:
    """Yield every run of a matrix; somebody there has to have those options."""
    known: set[str] = set()
    for name in matrix.experiments or ("",):
        experiment = read_experiment(Path(name)) if name else Experiment()
        own = experiment.config
        choices = [
            _choice(choice, experiment, matrix.options, known)
            for choice in matrix.learners or _learners(experiment)
        ]
        for corpus in matrix.corpora or (own.corpus,):
            for stream in matrix.streams or ({},):
                for learner in choices:
                    for seed in matrix.seeds or (own.seed,):
                        stream_config = replace(own.stream, **stream)
                        config = Config(placed(corpus), stream_config, learner, seed)
                        yield Cell(name, Planned(config, matrix.needs))
    if unknown := [key for key in options if key not in known]:
        raise CalmError(f"{where}: options: no learner here has {unknown[0]!r}")


def _learners(experiment: Experiment) -> list[Choice]:
    """All that an experiment has options for, or the one it has."""
    return [Choice(name) for name in experiment.learners] or [
        Choice(experiment.config.learner.name)
    ]


def _choice(
    choice: Choice, experiment: Experiment, options: dict[str, Any], known: set[str]
) -> Choice:
    """Give a learner its options: its own before the sweep's before the experiment's."""
    shared = {key: value for key, value in options.items() if knows(choice.name, key)}
    known.update(shared)
    return with_size(experiment.choice(choice.name, {**shared, **choice.options}))


def _exclude(cells: list[Cell], table: dict[str, Any], where: str) -> list[Cell]:
    """Leave out the runs that are among those named, on every axis that the table has."""
    check_keys(table, [key for key in AXES if key not in ("options", "needs")], where)
    if not table:
        raise CalmError(f"{where} is empty: it would leave out everything")
    wanted = _matrix(table, where, Matrix())
    left = [cell for cell in cells if not _among(cell, wanted)]
    if len(left) == len(cells):
        raise CalmError(f"{where} leaves out nothing: no run is all that it says")
    return left


def _among(cell: Cell, wanted: Matrix) -> bool:
    config = cell.planned.config
    stream = {key: getattr(config.stream, key) for key in StreamConfig.__dataclass_fields__}
    return (
        (not wanted.experiments or cell.experiment in wanted.experiments)
        and _named(config.corpus, wanted.corpora and [placed(c) for c in wanted.corpora])
        and (wanted.streams is None or any(s.items() <= stream.items() for s in wanted.streams))
        and _named(config.learner, wanted.learners)
        and (wanted.seeds is None or config.seed in wanted.seeds)
    )


def _named(choice: Choice, wanted: Iterable[Choice] | None) -> bool:
    """Whether one of those is meant: the same name, and no other option where one is said."""
    return wanted is None or any(
        choice == Choice(one.name, {**choice.options, **one.options}) for one in wanted
    )


def _list(value: Any, where: str, convert_one: Callable[[Any, str], T]) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise CalmError(f"{where} is {value!r}: expected a list")
    return tuple(convert_one(item, f"{where} {i}") for i, item in enumerate(value, 1))


def _filled(value: Any, where: str, convert_one: Callable[[Any, str], T]) -> tuple[T, ...]:
    items = _list(value, where, convert_one)
    if not items:
        raise CalmError(f"{where} is empty: name one, or leave the key away")
    return items


def _text(value: Any, where: str) -> str:
    return convert(str, value, where)


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CalmError(f"{where} is {value!r}: expected a table of keys")
    return value


def _name_or_table(value: Any, where: str) -> Choice:
    return Choice(value) if isinstance(value, str) else convert(Choice, value, where)


def _stream(value: Any, where: str) -> dict[str, Any]:
    """Return the keys of a stream that are given."""
    stream = convert(StreamConfig, value, where)
    return {key: getattr(stream, key) for key in value}


def _seeds(value: Any, where: str) -> tuple[int, ...]:
    """Read a list of seeds, or how many from 0 on."""
    if type(value) is int and value > 0:
        return tuple(range(value))
    if not isinstance(value, list):
        raise CalmError(f"{where} is {value!r}: expected how many, or a list of seeds")
    return _filled(value, where, lambda item, at: convert(int, item, at))


AXES: dict[str, Callable[[Any, str], Any]] = {
    "experiments": lambda value, where: _filled(value, where, _text),
    "corpora": lambda value, where: _filled(value, where, _name_or_table),
    "streams": lambda value, where: _filled(value, where, _stream),
    "learners": lambda value, where: _filled(value, where, _name_or_table),
    "seeds": _seeds,
    "options": _table,
    "needs": lambda value, where: convert(Needs, value, where),
}
