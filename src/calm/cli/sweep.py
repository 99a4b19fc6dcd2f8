"""`calm sweep`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from calm.errors import CalmError, RunFailedError

if TYPE_CHECKING:
    from calm.sweep.plan import Planned
    from calm.sweep.state import State
    from calm.sweep.work import Engine


@dataclass(frozen=True)
class SweepCommand:
    """Do all runs of a file: learners × streams × seeds. Done ones are skipped, stopped ones go on.

    Examples:
      calm sweep paper/table1-small --dry-run
      calm sweep paper/table1-small --corpora synthetic,newstest --workers 4
      calm sweep my_sweep.toml --retry
      calm sweep my_sweep.toml --engine ray --address auto
    """

    sweep: Annotated[Positional[Path], arg(metavar="SWEEP.toml")]
    """A sweep file or a preset, such as paper/table1-small: see docs/sweeps.md."""
    out: Annotated[
        Path | None, arg(metavar="DIR", help_behavior_hint="(default: the file's, or sweeps/NAME)")
    ] = None
    """Folder of the runs."""
    corpora: Annotated[str | None, arg(metavar="NAME[,NAME ...]", help_behavior_hint="")] = None
    """Corpora sets or folders that take the place of the file's."""
    engine: Literal["local", "ray"] = "local"
    """Processes of this machine, or tasks of a Ray cluster."""
    workers: Annotated[
        int | None, arg(metavar="K", help_behavior_hint="(default: as many as there are cores)")
    ] = None
    """How many runs at a time."""
    address: Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint="")] = None
    """Address of the Ray cluster, such as auto; without one, this machine becomes one."""
    via: Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint="")] = None
    """Where runs are exchanged by machines that share no file system, such as s3://bucket/sweep."""
    retry: bool = False
    """Try runs that failed again."""
    dry_run: bool = False
    """Only say how many runs there are, how long they take, and how much memory."""
    checkpoint_seconds: float = 10.0
    """Time between two checkpoints of a run."""


def sweep(command: SweepCommand, options: dict[str, dict[str, Any]]) -> None:
    """`calm sweep`."""
    from calm.sweep.drive import carry_out
    from calm.sweep.local import cores
    from calm.sweep.plan import read_sweep

    if command.workers is not None and command.workers < 1:
        raise CalmError(f"workers is {command.workers}: take 1 or more")
    if command.engine == "local" and (command.address or command.via):
        raise CalmError("--address and --via are for --engine ray")
    workers = command.workers or cores()
    plan = read_sweep(command.sweep, command.corpora.split(",") if command.corpora else None)
    out = command.out or plan.out
    if command.dry_run:
        _print_estimate(plan.runs, out, workers)
        return

    def engine() -> "Engine":
        if command.engine == "ray":
            from calm.sweep.on_ray import RayEngine

            return RayEngine(command.address, command.workers, workers, command.via, out)
        from calm.sweep.local import LocalEngine

        return LocalEngine(workers)

    states = carry_out(plan.runs, out, engine, command.retry, command.checkpoint_seconds)
    _print_outcome(plan.runs, states, out)


def _print_estimate(runs: "Sequence[Planned]", out: Path, workers: int) -> None:
    """Print how much there is to do, and how long it takes."""
    from rich import box
    from rich.table import Table

    from calm.cli.screen import console
    from calm.sweep.drive import check, survey, unfinished
    from calm.sweep.estimate import estimate, whole
    from calm.sweep.live import duration

    states = survey(runs, out)
    batches = check(unfinished(runs, states))
    estimates = estimate(runs, states, out, batches, workers)
    table = Table(box=box.SIMPLE)
    for heading in ("setting", "learner"):
        table.add_column(heading, overflow="fold")
    for heading in ("runs", "finished", "failed", "to do", "time a run", "memory a run"):
        table.add_column(heading, justify="right")
    for one in estimates:
        time = duration(one.left / one.todo) if one.todo and one.left is not None else "–"
        size = f"{one.memory / 1e9:.2f} GB" if one.memory else "–"
        counts = (one.runs, one.finished, one.failed, one.todo)
        table.add_row(*_labels(one.example), *map(str, counts), time, size)
    console().print(table)
    for one in estimates:
        if one.fault:
            print(f"{one.example.config.learner.name} could not be tried: {one.fault}")
    todo = sum(one.todo for one in estimates)
    print(f"{len(runs)} runs in {out}, {todo} to do")
    if todo:
        seconds, memory = whole(estimates, workers)
        print(
            f"with {workers} workers: about {duration(seconds)}, and {memory / 1e9:.1f} GB of "
            "memory at a time (the peak of the first batches; counts grow)"
        )
    _print_failures(states, out)


def _print_outcome(runs: "Sequence[Planned]", states: "dict[str, State]", out: Path) -> None:
    """Print what has become of the runs; failures make the command fail."""
    from rich import box
    from rich.table import Table

    from calm.cli.screen import console

    groups: dict[tuple[str, str], list[State]] = {}
    for run in runs:
        groups.setdefault(_labels(run), []).append(states[run.name])
    table = Table(box=box.SIMPLE)
    for heading in ("setting", "learner"):
        table.add_column(heading, overflow="fold")
    for heading in ("runs", "finished", "failed"):
        table.add_column(heading, justify="right")
    for labels, group in groups.items():
        kinds = [state.kind for state in group]
        counts = (len(kinds), kinds.count("finished"), kinds.count("failed"))
        table.add_row(*labels, *map(str, counts))
    console().print(table)
    print(f"compare them: calm report {out} --out {out / 'report'}")
    if failed := _print_failures(states, out):
        raise RunFailedError(
            f"{failed} of {len(runs)} runs failed, as said above; --retry tries them again"
        )


def _print_failures(states: "dict[str, State]", out: Path) -> int:
    """Print why runs failed; return how many did."""
    failed = {name: state.reason for name, state in states.items() if state.kind == "failed"}
    for name, reason in failed.items():
        print(f"failed: {name}: {reason}")
    return len(failed)


def _labels(run: "Planned") -> tuple[str, str]:
    """Name setting and learner as reports do."""
    from calm.report.runs import Run

    named = Run(Path(run.name), run.config, {})
    return named.setting, named.learner
