"""The command line: one function per command, which calls the library and prints."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calm.cli.arguments import (
    CheckCommand,
    GenerateCommand,
    Options,
    ReportCommand,
    ResumeCommand,
    RunCommand,
    parse,
)
from calm.cli.corpus import CORPUS_COMMANDS, Command
from calm.cli.generate import generate
from calm.cli.publish import PublishCommand, VerifyCommand, publish, verify
from calm.cli.sweep import SweepCommand, sweep
from calm.cli.tune import TuneCommand, tune
from calm.config import Choice, Config, Experiment, read_experiment
from calm.errors import CalmError, RunFailedError, reason

if TYPE_CHECKING:
    from calm.report import Setting


def run(command: RunCommand, options: Options) -> None:
    """`calm run`."""
    from calm.build import placed, with_size
    from calm.observer import make_observers
    from calm.run import start

    base = read_experiment(command.experiment) if command.experiment else Experiment()
    chosen = {key: getattr(command, key) for key in ("size", "device", "precision")}
    options["learner"] |= {key: value for key, value in chosen.items() if value is not None}
    config = Config(
        corpus=placed(_override(base.config.corpus, command.corpus, options["corpus"])),
        stream=command.stream,
        learner=with_size(base.choice(command.learner, options["learner"])),
        seed=command.seed,
    )
    out = command.out or _new_folder(config)
    folder = start(config, out, command.checkpoint_seconds, make_observers(command.observe))
    _show_results(folder.path)


def resume(command: ResumeCommand, options: Options) -> None:
    """`calm resume`."""
    from calm.observer import make_observers
    from calm.run import resume

    observers = make_observers(command.observe)
    _show_results(resume(command.run, command.checkpoint_seconds, observers).path)


def report(command: ReportCommand, options: Options) -> None:
    """`calm report`."""
    from calm.files import make_folder, room_in
    from calm.report import compare, load_runs, write_report
    from calm.report.page import charting, write_page

    if command.html:
        charting()  # whatever is missing is said before the work
    runs, passed_over = load_runs(command.runs)
    compared = compare(runs, command.published, command.against)
    make_folder(command.out)
    _print_tables(compared)
    for sentence in passed_over:
        print(f"passed over: {sentence}")
    with room_in(command.out):
        written = write_report(compared, command.out)
        if command.html:
            written.append(write_page(compared, command.out / "page.html"))
    print(f"{len(written)} files in {command.out}: {', '.join(path.name for path in written)}")


def check(command: CheckCommand, options: Options) -> None:
    """`calm check`."""
    from calm.audit import check
    from calm.build import build_learner, load
    from calm.stream import Stream

    corpora = load("synthetic", **options["corpus"])
    fragments = 2 * len(corpora.classes)
    stream = Stream(
        corpora, fragments, mean_length=200 * max(command.batches / fragments * 2, 10), seed=1
    )

    if command.size is not None:
        options["learner"]["size"] = command.size
    config = Config(learner=Choice(command.learner, options["learner"]), seed=command.seed)

    def make() -> Any:
        return build_learner(config, stream)

    make()  # a wrong name or option is no fault of the learner
    faults = 0
    for outcome in check(make, stream, command.batches):
        print(f"{'ok   ' if outcome.fault is None else 'FAULT'} {outcome.rule}")
        if outcome.fault is not None:
            faults += 1
            print(f"      {outcome.fault}")
    if faults:
        raise RunFailedError(f"{command.learner} does not keep to the protocol: see above")
    print(f"{command.learner} keeps to the protocol, in {command.batches} batches")


COMMANDS: dict[str, Command] = {
    "run": (RunCommand, run),
    "resume": (ResumeCommand, resume),
    "sweep": (SweepCommand, sweep),
    "tune": (TuneCommand, tune),
    "report": (ReportCommand, report),
    "publish": (PublishCommand, publish),
    "verify": (VerifyCommand, verify),
    "generate": (GenerateCommand, generate),
    "check": (CheckCommand, check),
    **{f"corpus {name}": command for name, command in CORPUS_COMMANDS.items()},
}


def main() -> None:
    """Entry point: exit 0 when fine, 1 when something failed, 2 when misused."""
    try:
        _dispatch(sys.argv[1:])
    except CalmError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("stopped", 1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has had enough
        sys.exit(1)
    except OSError as error:
        _fail(reason(error), 1)


def _dispatch(arguments: Sequence[str]) -> None:
    if arguments and arguments[0] == "--version":
        from calm import __version__

        print(f"calm {__version__}")
        return
    words = 2 if arguments and arguments[0] == "corpus" else 1
    name = " ".join(arguments[:words])
    if not arguments or arguments[words - 1 :][:1] in ([], ["-h"], ["--help"]):
        print(_overview("corpus " if words == 2 else ""))
        sys.exit(0 if "-h" in name or "--help" in name else 2)
    if name not in COMMANDS:
        names = (known.split() for known in COMMANDS)
        known = dict.fromkeys(" ".join(n[:words]) for n in names if len(n) >= words)
        raise CalmError(f"there is no command {name!r}: take one of {', '.join(known)}")
    kind, action = COMMANDS[name]
    command, options = parse(kind, name, arguments[words:])
    action(command, options)


def _overview(prefix: str) -> str:
    lines = ["calm: a benchmark of online continual learning on text", "", "commands:"]
    for name, (kind, _) in COMMANDS.items():
        if name.startswith(prefix):
            summary = (kind.__doc__ or "").strip().splitlines()[0]
            lines.append(f"  calm {name:<13} {summary}")
    lines += ["", "`calm COMMAND --help` has options and examples. To begin:"]
    lines.append("  calm run --learner lstm --size tiny --stream.mean-length 4000")
    return "\n".join(lines)


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
    from calm.cli.screen import console
    from calm.report import class_table, compare, load_runs

    runs, _ = load_runs([path])
    _print_tables(compare(runs))
    console().print(class_table(runs[0].result))
    print(f"run folder: {path}")


def _print_tables(compared: "Sequence[Setting]") -> None:
    from calm.cli.screen import console
    from calm.report import screen_table, too_good

    for setting in compared:
        console().print(screen_table(setting))
        for remark in (*too_good(setting.groups), *setting.gate_sentences()):
            print(remark)


def _fail(sentence: str, code: int) -> None:
    print(f"calm: {sentence}", file=sys.stderr)
    sys.exit(code)
