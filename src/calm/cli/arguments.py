"""What can be said on the command line, and how it is read."""

import contextlib
import inspect
import io
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import Positional, UseAppendAction, arg

from calm.config import EXPECTED, StreamConfig, read_experiment
from calm.errors import CalmError

PYTHONS = {  # what Python says of a text that is none of these
    "invalid literal for int() with base 10": int,
    "could not convert string to float": float,
}
Options = dict[str, dict[str, Any]]  # of --corpus.KEY VALUE and --learner.KEY VALUE
Observe = Annotated[
    UseAppendAction[tuple[str, ...]], arg(metavar="tensorboard|wandb|trackio|module:Class")
]


@dataclass(frozen=True)
class RunCommand:
    """Run a learner over a stream, into a new folder.

    Options of the corpus or the learner are given as --corpus.KEY VALUE and --learner.KEY VALUE.

    Examples:
      calm run --learner lstm --size tiny --stream.fragments 40 --stream.mean-length 4000
      calm run --corpus texts/ --corpus.level word --learner unigram --seed 3
      calm run paper/multilingual-10k --learner poe-pw-30 --size small
      calm run experiment.toml --learner my_module:MyLearner --learner.rate 0.1 --out runs/mine
      calm run demo --observe tensorboard
    """

    experiment: Annotated[
        Positional[Path | None], arg(metavar="[EXPERIMENT.toml]", help_behavior_hint="")
    ] = None
    """A config file or a preset, such as demo or paper/multilingual-10k; the rest overrides it."""
    corpus: str = "synthetic"
    """Corpora set: synthetic, one of `calm corpus list`, or a folder of NAME.txt, one a class."""
    learner: str = "lstm"
    """Learner: a name from docs/learners.md, such as poe-pw-30, or your own as module:Class."""
    size: Annotated[str | None, arg(metavar="tiny|small|paper", help_behavior_hint="")] = None
    """Size of a learner that comes in sizes (default: small)."""
    device: Annotated[str | None, arg(metavar="cpu|cuda|auto", help_behavior_hint="")] = None
    """Where a neural learner computes (default: cpu)."""
    precision: Annotated[str | None, arg(metavar="float32|bfloat16", help_behavior_hint="")] = None
    """In what precision a neural learner multiplies matrices (default: float32)."""
    seed: int = 0
    """Seed of the stream and the learner."""
    out: Annotated[
        Path | None, arg(metavar="DIR", help_behavior_hint="(default: a new folder in runs/)")
    ] = None
    """Folder of the run."""
    checkpoint_seconds: float = 10.0
    """Time between two checkpoints."""
    observe: Observe = ()
    """Show the run there while it goes on, or to an observer of yours; may be said repeatedly."""
    stream: StreamConfig = field(default_factory=StreamConfig)


@dataclass(frozen=True)
class ResumeCommand:
    """Go on with a run that was stopped or killed.

    Examples:
      calm resume runs/synthetic-lstm-tiny-s0
    """

    run: Annotated[Positional[Path], arg(metavar="RUN")]
    """Folder of the run."""
    checkpoint_seconds: float = 10.0
    """Time between two checkpoints."""
    observe: Observe = ()
    """As for `calm run`."""


@dataclass(frozen=True)
class ReportCommand:
    """Compare finished runs: tables (on screen, Markdown, LaTeX, JSON), differences and figures.

    Examples:
      calm report runs/synthetic-lstm-tiny-s0 runs/synthetic-unigram-s0 --out reports/first
      calm report runs --out reports/all --against lstm
      calm report runs --published newstest=multilingual-10k
      calm report runs --html
    """

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN [RUN ...]")]
    """Folders of runs, or folders that hold such."""
    out: Path = Path("reports")
    """Folder for the files."""
    html: bool = False
    """Also write page.html: everything in one page to look at in a browser, or to send."""
    published: Annotated[
        tuple[str, ...], arg(metavar="[CORPUS=]SETTING ...", help_behavior_hint="")
    ] = ()
    """Setting of the paper whose numbers to put beside other data: multilingual-10k …"""
    against: Annotated[str | None, arg(metavar="LEARNER", help_behavior_hint="")] = None
    """Compare every learner with this one too, not only with the best."""


@dataclass(frozen=True)
class GenerateCommand:
    """Sample text from a run's checkpoint, one token at a time.

    Examples:
      calm generate runs/synthetic-lstm-tiny-s0 --length 300
      calm generate runs/synthetic-lstm-tiny-s0 --class coro
      calm generate runs/synthetic-lstm-tiny-s0 --class coro --after 0,5,10,50
      calm generate runs/lstm-s0 runs/poe-5-s0 --class fr --after 0,5,10,50 --table texts.tex
    """

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN [RUN ...]")]
    """Folder of the run; texts of several become a table."""
    length: int = 300
    """How many tokens."""
    class_name: Annotated[str | None, arg(name="class", metavar="NAME")] = None
    """First learn 10 batches of this class, as after a switch."""
    after: Annotated[str | None, arg(metavar="COUNT[,COUNT ...]", help_behavior_hint="")] = None
    """Write a text after each of so many batches of the class; 0 is where the run stands."""
    seed: int = 0
    """Seed of the sampling."""
    table: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write the texts as a table into a file, whose name ends in .md or .tex."""


@dataclass(frozen=True)
class CheckCommand:
    """Audit a learner: does it keep to the protocol?

    Options of the learner are given as --learner.KEY VALUE.

    Examples:
      calm check my_module:MyLearner
      calm check lstm --size tiny
    """

    learner: Annotated[Positional[str], arg(metavar="LEARNER")]
    """Learner: a name, or your own as module:Class."""
    size: Annotated[str | None, arg(metavar="tiny|small|paper", help_behavior_hint="")] = None
    """Size of a learner that comes in sizes (default: small)."""
    batches: int = 80
    """How many batches it is watched for."""
    seed: int = 0
    """Seed of the learner."""


def parse(kind: type[Any], name: str, arguments: Sequence[str]) -> tuple[Any, Options]:
    """Read a command's arguments, and the options of the corpus and the learner among them.

    A config file provides the defaults of what is not said.
    """
    rest, options = _take_options(arguments)
    command = _parse(kind, name, rest, None)
    if kind is RunCommand and command.experiment:
        config = read_experiment(command.experiment).config
        defaults = RunCommand(
            corpus=config.corpus.name,
            learner=config.learner.name,
            seed=config.seed,
            stream=config.stream,
        )
        command = _parse(kind, name, rest, defaults)
    return command, options


def _parse(kind: type[Any], name: str, arguments: Sequence[str], default: Any) -> Any:
    """Let tyro parse; its boxed complaints become one line."""
    complaints = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaints):
            return tyro.cli(
                kind,
                prog=f"calm {name}",
                description=inspect.getdoc(kind),
                args=arguments,
                default=default,
            )
    except SystemExit as exit:
        if not exit.code:
            raise
        complaint = _plain(_one_line(complaints.getvalue()))
        raise CalmError(f"{complaint} (see `calm {name} --help`)") from None


def _one_line(box: str) -> str:
    """Return the text of the first part of a box drawn, in Unicode or ASCII, around a complaint."""
    lines = (line.strip("│ ") for line in box.splitlines()[1:])  # without the title
    parts = groupby(lines, key=lambda line: set(line) <= set("─╰╯-"))
    first = next((part for is_rule, part in parts if not is_rule), ())
    return " ".join(first).rstrip(".")


def _plain(complaint: str) -> str:
    """Say of a text that is no number what the reader of config files would say."""
    for pythons, kind in PYTHONS.items():
        complaint = re.sub(
            rf"Error parsing (\S+): {re.escape(pythons)}: (.*)",
            rf"\1 is \2: expected {EXPECTED[kind]}",
            complaint,
        )
    return complaint


def _take_options(arguments: Sequence[str]) -> tuple[list[str], Options]:
    """Take --corpus.KEY VALUE and --learner.KEY VALUE out; values are read as TOML, or as text."""
    rest: list[str] = []
    options: Options = {"corpus": {}, "learner": {}}
    queue = list(arguments)
    while queue:
        argument = queue.pop(0)
        table, dot, key = argument.removeprefix("--").partition(".")
        if not (argument.startswith("--") and dot and table in options):
            rest.append(argument)
            continue
        key, equals, value = key.partition("=")
        if not equals:
            if not queue:
                raise CalmError(f"{argument} needs a value")
            value = queue.pop(0)
        options[table][key.replace("-", "_")] = _value(value)
    return rest, options


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
