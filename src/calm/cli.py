"""The command line: parsing and printing, nothing else."""

import contextlib
import inspect
import io
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional, arg

from calm.config import Choice, Config, StreamConfig, read_config
from calm.errors import CalmError, RunFailedError

if TYPE_CHECKING:
    from rich.console import Console

    from calm.report import Run as FinishedRun

Options = dict[str, dict[str, Any]]  # of --corpus.KEY VALUE and --learner.KEY VALUE


@dataclass(frozen=True)
class RunCommand:
    """Run a learner over a stream, into a new folder.

    Options of the corpus or the learner are given as --corpus.KEY VALUE and --learner.KEY VALUE.

    Examples:
      calm run --learner lstm --size tiny --stream.fragments 40 --stream.mean-length 4000
      calm run --corpus texts/ --corpus.level word --learner unigram --seed 3
      calm run experiment.toml --learner my_module:MyLearner --learner.rate 0.1 --out runs/mine
    """

    experiment: Annotated[
        Positional[Path | None], arg(metavar="[EXPERIMENT.toml]", help_behavior_hint="")
    ] = None
    """A config file; what else is given here overrides it."""
    corpus: str = "synthetic"
    """Corpora set: synthetic, or a folder with one NAME.txt per class."""
    learner: str = "lstm"
    """Learner: uniform, unigram, lstm, floor, floor-known, or your own as module:Class."""
    size: Annotated[str | None, arg(metavar="tiny|small|paper", help_behavior_hint="")] = None
    """Size of a learner that comes in sizes (default: small)."""
    seed: int = 0
    """Seed of the stream and the learner."""
    out: Annotated[Path | None, arg(help_behavior_hint="(default: a new folder in runs/)")] = None
    """Folder of the run."""
    checkpoint_seconds: float = 10.0
    """Time between two checkpoints."""
    stream: StreamConfig = field(default_factory=StreamConfig)


@dataclass(frozen=True)
class ResumeCommand:
    """Go on with a run that was stopped or killed.

    Examples:
      calm resume runs/synthetic-lstm-tiny-s0
    """

    run: Positional[Path]
    """Folder of the run."""
    checkpoint_seconds: float = 10.0
    """Time between two checkpoints."""


@dataclass(frozen=True)
class ReportCommand:
    """Compare finished runs: a table (on screen, Markdown, LaTeX, JSON) and two figures.

    Examples:
      calm report runs/synthetic-lstm-tiny-s0 runs/synthetic-unigram-s0 --out reports/first
      calm report runs --out reports/all
    """

    runs: Positional[tuple[Path, ...]]
    """Folders of runs, or folders that hold such."""
    out: Path = Path("reports")
    """Folder for the files."""


@dataclass(frozen=True)
class GenerateCommand:
    """Sample text from a run's checkpoint, one token at a time.

    Examples:
      calm generate runs/synthetic-lstm-tiny-s0 --length 300
      calm generate runs/synthetic-lstm-tiny-s0 --class coro
    """

    run: Positional[Path]
    """Folder of the run."""
    length: int = 300
    """How many tokens."""
    class_name: Annotated[str | None, arg(name="class", metavar="NAME")] = None
    """First learn 10 batches of this class, as after a switch."""
    seed: int = 0
    """Seed of the sampling."""


@dataclass(frozen=True)
class CheckCommand:
    """Audit a learner: does it keep to the protocol?

    Options of the learner are given as --learner.KEY VALUE.

    Examples:
      calm check my_module:MyLearner
      calm check lstm --size tiny
    """

    learner: Positional[str]
    """Learner: a name, or your own as module:Class."""
    size: Annotated[str | None, arg(metavar="tiny|small|paper", help_behavior_hint="")] = None
    """Size of a learner that comes in sizes (default: small)."""
    batches: int = 80
    """How many batches it is watched for."""
    seed: int = 0
    """Seed of the learner."""


def run(command: RunCommand, options: Options) -> None:
    """`calm run`."""
    from calm.run import start

    base = read_config(command.experiment) if command.experiment else Config()
    if command.size is not None:
        options["learner"]["size"] = command.size
    config = Config(
        corpus=_override(base.corpus, command.corpus, options["corpus"]),
        stream=command.stream,
        learner=_override(base.learner, command.learner, options["learner"]),
        seed=command.seed,
    )
    out = command.out or _new_folder(config)
    folder = start(config, out, command.checkpoint_seconds)
    _show_results(folder.path)


def resume(command: ResumeCommand, options: Options) -> None:
    """`calm resume`."""
    from calm.run import resume

    _show_results(resume(command.run, command.checkpoint_seconds).path)


def report(command: ReportCommand, options: Options) -> None:
    """`calm report`."""
    from calm.report import load_runs, write_report

    runs = load_runs(command.runs)
    _print_tables(runs)
    written = write_report(runs, command.out)
    print(f"{len(written)} files in {command.out}: {', '.join(path.name for path in written)}")


def generate(command: GenerateCommand, options: Options) -> None:
    """`calm generate`."""
    from calm.generate import generate

    print(generate(command.run, command.length, command.class_name, command.seed))


def check(command: CheckCommand, options: Options) -> None:
    """`calm check`."""
    from calm.audit import check
    from calm.build import learner, load
    from calm.stream import Stream

    corpora = load("synthetic", **options["corpus"])
    stream = Stream(corpora, fragments=2 * len(corpora.classes), mean_length=2000, seed=1)

    def make() -> Any:
        return learner(
            command.learner, vocabulary=len(stream.vocabulary), seed=command.seed,
            size=command.size, stream=stream, **options["learner"],
        )  # fmt: skip

    make()  # a wrong name or option is no fault of the learner
    faults = 0
    for outcome in check(make, stream, min(command.batches, len(stream))):
        print(f"{'ok   ' if outcome.fault is None else 'FAULT'} {outcome.rule}")
        if outcome.fault is not None:
            faults += 1
            print(f"      {outcome.fault}")
    if faults:
        raise RunFailedError(f"{command.learner} does not keep to the protocol: see above")
    print(f"{command.learner} keeps to the protocol")


COMMANDS: dict[str, tuple[type[Any], Callable[[Any, Options], None]]] = {
    "run": (RunCommand, run),
    "resume": (ResumeCommand, resume),
    "report": (ReportCommand, report),
    "generate": (GenerateCommand, generate),
    "check": (CheckCommand, check),
}


def main() -> None:
    """Entry point: exit 0 when fine, 1 when something failed, 2 when misused."""
    try:
        _dispatch(sys.argv[1:])
    except CalmError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("stopped; a run goes on with `calm resume`", 1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has had enough
        sys.exit(1)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"{error.strerror or error}{where}; a run goes on with `calm resume`", 1)


def _dispatch(arguments: Sequence[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        from calm import __version__

        print(f"calm {__version__}")
        return
    name, rest = arguments[0], list(arguments[1:])
    if name not in COMMANDS:
        raise CalmError(f"there is no command {name!r}: take one of {', '.join(COMMANDS)}")
    kind, action = COMMANDS[name]
    rest, options = _take_options(rest)
    action(_parse(kind, name, rest), options)


def _overview() -> str:
    lines = ["calm: a benchmark of online continual learning on text", "", "commands:"]
    for name, (kind, _) in COMMANDS.items():
        summary = (kind.__doc__ or "").strip().splitlines()[0]
        lines.append(f"  calm {name:<9} {summary}")
    lines += ["", "`calm COMMAND --help` has options and examples. To begin:"]
    lines.append("  calm run --learner lstm --size tiny --stream.mean-length 4000")
    return "\n".join(lines)


def _parse(kind: type[Any], name: str, arguments: list[str]) -> Any:
    """Let tyro parse; its boxed complaints become one line."""
    default = _run_defaults(arguments) if kind is RunCommand else None
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
        raise CalmError(f"{_one_line(complaints.getvalue())} (see `calm {name} --help`)") from None


def _one_line(box: str) -> str:
    """Return the text of the first part of a box drawn around a complaint."""
    words = []
    for line in box.splitlines()[1:]:
        inner = line.strip("│ ")
        if inner.startswith(("─", "╰")):
            break
        words.append(inner)
    return " ".join(words).rstrip(".")


def _run_defaults(arguments: Sequence[str]) -> Any:
    """Let a config file on the command line provide the defaults of what it does not override."""
    path = next((Path(a) for a in arguments[:1] if a.endswith(".toml")), None)
    if path is None:
        return RunCommand()
    config = read_config(path)
    return RunCommand(
        experiment=path,
        corpus=config.corpus.name,
        learner=config.learner.name,
        seed=config.seed,
        stream=config.stream,
    )


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


def _override(base: Choice, name: str, options: dict[str, Any]) -> Choice:
    """Lay the command line's options over a file's, which go with the file's name only."""
    return Choice(name, {**base.options, **options} if name == base.name else options)


def _new_folder(config: Config) -> Path:
    """Name a folder in runs/ after the run; number it if there is one."""
    size = config.learner.options.get("size")
    parts = [Path(config.corpus.name).name, config.learner.name.replace(":", "."), size]
    name = "-".join([*(str(p) for p in parts if p), f"s{config.seed}"])
    candidates = [Path("runs") / (name if i == 1 else f"{name}-{i}") for i in range(1, 10_000)]
    return next(path for path in candidates if not path.exists())


def _show_results(path: Path) -> None:
    """Print a run's table and its classes."""
    from calm.report import class_table, load_runs

    runs = load_runs([path])
    _print_tables(runs)
    _console().print(class_table(runs[0].result))
    print(f"run folder: {path}")


def _print_tables(runs: "Sequence[FinishedRun]") -> None:
    from calm.report import screen_table, settings

    for setting, groups in settings(runs).items():
        _console().print(screen_table(setting, groups))


def _console() -> "Console":
    """Make a console: as wide as the terminal, or wide enough for a table when there is none."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120)


def _fail(sentence: str, code: int) -> None:
    print(f"calm: {sentence}", file=sys.stderr)
    sys.exit(code)
