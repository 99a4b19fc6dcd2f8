"""What a run is made from, as data: read from TOML, checked strictly, written beside the run."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import tomli_w

from calm.errors import CalmError

T = TypeVar("T")
PRESETS = Path(__file__).parent / "presets"


@dataclass(frozen=True)
class Choice:
    """Something chosen by name, and its options: a table with the key `name` and any others."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamConfig:
    """How the text is cut into fragments and batches."""

    fragments: int = 100
    """How many fragments; a multiple of the number of classes."""
    mean_length: float = 10_000
    """Mean length λ of a fragment, in tokens."""
    rows: int = 10
    """Parallel rows b of a batch."""
    window: int = 20
    """Tokens w that a batch takes from each row."""
    split: Literal["dev", "test", "all"] = "test"
    """Half of the text to read."""
    boundary: Literal["seamless", "paper"] = "seamless"
    """Whether a row runs on across a switch, or jumps as the paper's iterator does."""


@dataclass(frozen=True)
class Cleaning:
    """What is kept of a text; each level has its own rules."""

    rare: int = 100
    """Level char: lines with a character that occurs fewer times are dropped; 1 keeps all."""
    rare_in: Literal["set", "class"] = "set"
    """Level char: whether a character is counted over the set (the paper) or in its class."""
    top: int = 25_000
    """Level word: how many words of each class are kept, the most frequent ones."""

    def __post_init__(self) -> None:
        if self.rare < 1:
            raise CalmError(f"rare is {self.rare}: take 1 or more (1 keeps every line)")
        if self.top < 1:
            raise CalmError(f"top is {self.top}: take 1 or more words of every class")


@dataclass(frozen=True)
class Config:
    """One run: a learner over a stream of a corpora set, with one seed for everything."""

    corpus: Choice = Choice("synthetic")
    stream: StreamConfig = StreamConfig()
    learner: Choice = Choice("lstm")
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As nested plain data, ready for TOML."""
        data = asdict(self)
        for key in ("corpus", "learner"):
            data[key] = {"name": data[key]["name"], **data[key]["options"]}
        return data

    def to_toml(self) -> str:
        """As the text of a config file."""
        return tomli_w.dumps(self.to_dict())


@dataclass(frozen=True)
class Experiment:
    """A config file: a run, and the options of learners that may take the place of its own."""

    config: Config = Config()
    learners: dict[str, dict[str, Any]] = field(default_factory=dict)
    spaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of learners, by name, what their options may be, for `calm tune` to choose from."""

    def choice(self, learner: str, options: dict[str, Any]) -> Choice:
        """Choose a learner by name; options that are given go before the file's for it."""
        own = self.config.learner
        named = own.options if learner == own.name else self.learners.get(learner, {})
        return Choice(learner, {**named, **options})


def read_config(path: Path) -> Config:
    """Read a run's TOML file; what it does not mention keeps its default."""
    return convert(Config, read_toml(path), str(path))


def read_experiment(path: Path) -> Experiment:
    """Read a TOML file that may also have tables [learners.NAME] and [space.NAME], or a preset."""
    data = read_toml(path)
    learners, spaces = (_tables(data, key, path) for key in ("learners", "space"))
    if learners and "learner" not in data:
        name = next(iter(learners))
        data["learner"] = {"name": name, **learners[name]}
    return Experiment(convert(Config, data, str(path)), learners, spaces)


def _tables(data: dict[str, Any], key: str, path: Path) -> dict[str, dict[str, Any]]:
    """Take the tables [key.NAME] out of a file."""
    tables = data.pop(key, {})
    if not isinstance(tables, dict) or not all(isinstance(x, dict) for x in tables.values()):
        raise CalmError(f"{path}: {key}: expected tables such as [{key}.lstm]")
    return tables


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; a preset goes by its name."""
    preset = PRESETS / f"{path}.toml"
    if preset.is_file() and not path.is_file():
        path = preset
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        files = sorted(PRESETS.rglob("*.toml"))
        presets = ", ".join(file.relative_to(PRESETS).with_suffix("").as_posix() for file in files)
        raise CalmError(f"there is no file {path}, nor such a preset: take {presets}") from None
    except OSError as error:
        raise CalmError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CalmError(f"{path} is not TOML: {error}") from None


def convert(kind: type[T], value: Any, where: str) -> T:
    """Make plain data into a `kind`: a dataclass, a literal or a scalar; no key may be unknown."""
    result: Any
    if kind is Choice:
        result = _convert_choice(value, where)
    elif is_dataclass(kind):
        result = _convert_table(kind, value, where)
    else:
        result = _convert_scalar(kind, value, where)
    return result  # type: ignore[no-any-return]


def check_keys(given: Mapping[str, Any], known: list[str], where: str) -> None:
    """Refuse a key that nobody knows, naming those that exist."""
    for key in given:
        if key not in known:
            options = ", ".join(known) if known else "none"
            raise CalmError(f"{where}: unknown key {key!r}; there are: {options}")


def _convert_choice(value: Any, where: str) -> Choice:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise CalmError(f'{where} needs a name, in a table such as {{ name = "NAME" }}')
    return Choice(value["name"], {key: item for key, item in value.items() if key != "name"})


def _convert_table(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise CalmError(f"{where}: expected a table of keys, not {value!r}")
    check_keys(value, [f.name for f in fields(kind)], where)
    hints = get_type_hints(kind)
    return kind(**{k: convert(hints[k], item, f"{where}: {k}") for k, item in value.items()})


def _convert_scalar(kind: Any, value: Any, where: str) -> Any:
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if value in choices:
            return value
        raise CalmError(f"{where} is {value!r}: take one of {', '.join(map(str, choices))}")
    if get_origin(kind) in (Union, UnionType):
        kinds = get_args(kind)
        if value is None and type(None) in kinds:
            return None
        kind = next(k for k in kinds if k is not type(None))
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is kind or kind is Any:
        return value
    raise CalmError(f"{where} is {value!r}: expected {EXPECTED.get(kind, kind.__name__)}")


EXPECTED = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text in quotes",
}
