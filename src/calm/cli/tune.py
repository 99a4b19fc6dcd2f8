"""`calm tune`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from calm.errors import CalmError

if TYPE_CHECKING:
    from calm.sweep.plan import Planned
    from calm.sweep.state import State
    from calm.tune.search import Trial, Tuner

Options = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class TuneCommand:
    """Choose a learner's options: try a space of them on the dev half, write down the best.

    The experiment declares what to try in a table [space.LEARNER]. Options that are the same in all
    trials are given as --learner.KEY VALUE. Each trial is a run; done ones are not run again.

    Examples:
      calm tune demo --learner lstm
      calm tune demo --learner lstm --by optuna --trials 30 --seeds 3 --workers 4
      calm tune paper/multilingual-10k --learner poe-pw-30 --metric ppl_at_switch
    """

    experiment: Annotated[Positional[Path], arg(metavar="EXPERIMENT.toml")]
    """A config file with a space, or a preset such as demo or paper/multilingual-10k."""
    learner: Annotated[str, arg(metavar="NAME")]
    """Learner: a name, or your own as module:Class."""
    size: Annotated[str | None, arg(metavar="tiny|small|paper", help_behavior_hint="")] = None
    """Size of a learner that comes in sizes (default: the experiment's, or small)."""
    by: Literal["grid", "optuna"] = "grid"
    """Try every combination, or let Optuna propose some."""
    trials: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: 20)")] = None
    """How many combinations Optuna proposes."""
    search_seed: int = 0
    """Seed of Optuna's proposals."""
    metric: Literal["ppl", "ppl_at_switch", "recovery"] = "ppl"
    """What is to be low."""
    seeds: int = 1
    """Over how many seeds, from 0 on, its mean is taken."""
    out: Annotated[
        Path | None, arg(metavar="DIR", help_behavior_hint="(default: tune/EXPERIMENT-LEARNER)")
    ] = None
    """Folder of the runs, and of best.toml."""
    workers: Annotated[
        int | None, arg(metavar="K", help_behavior_hint="(default: as many as there are cores)")
    ] = None
    """How many runs at a time."""
    retry: bool = False
    """Try runs that failed again."""
    checkpoint_seconds: float = 10.0
    """Time between two checkpoints of a run."""


def tune(command: TuneCommand, options: Options) -> None:
    """`calm tune`."""
    from calm.sweep.drive import carry_out
    from calm.sweep.local import LocalEngine, cores
    from calm.tune.search import Tuner, search
    from calm.tune.space import grid, read_space

    for name in ("trials", "seeds", "workers"):
        if (value := getattr(command, name)) is not None and value < 1:
            raise CalmError(f"{name} is {value}: take 1 or more")
    if command.by == "grid" and command.trials is not None:
        raise CalmError("a grid is tried as a whole: leave --trials away, or add --by optuna")
    given = options["learner"] | ({"size": command.size} if command.size else {})
    experiment, space = read_space(command.experiment, command.learner, given)
    name = f"{command.experiment.stem}-{command.learner.replace(':', '.')}"
    out = command.out or Path("tune") / name
    workers = command.workers or cores()

    def carry(runs: "Sequence[Planned]") -> "dict[str, State]":
        return carry_out(
            runs, out, lambda: LocalEngine(workers), command.retry, command.checkpoint_seconds
        )

    tuner = Tuner(experiment, command.learner, given, command.metric, command.seeds, out, carry)
    if command.by == "grid":
        trials = tuner.try_all(grid(space))
    else:
        trials = search(tuner, space, command.trials or 20, command.search_seed)
    best = tuner.write(trials)
    _print_trials(trials, tuner)
    print(f"the best is {best}; on the test half: calm run {best}")


def _print_trials(trials: "Sequence[Trial]", tuner: "Tuner") -> None:
    """Print all trials, best first."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from calm.cli.screen import console
    from calm.report.table import COLUMNS, number
    from calm.tune.search import METRICS

    best = tuner.best(trials)
    options = list(dict.fromkeys(key for trial in trials for key in trial.point))
    table = Table(box=box.SIMPLE)
    for heading in ("", *options):
        table.add_column(escape(heading))
    for metric in METRICS:
        table.add_column(COLUMNS[metric], justify="right")
    for trial in sorted(trials, key=tuner.rank):
        row = [str(trial.point.get(option, "")) for option in options]
        for score in trial.scores.values():
            spread = f"±{number(score.interval)}" if score.seeds > 1 else ""
            row.append(number(score.mean) + spread)
        row += ["failed"] * (not trial.scores)
        table.add_row("best" if trial is best else "", *map(escape, row))
    console().print(table)
    for trial in trials:
        if trial.fault:
            print(f"failed: {trial.point}: {trial.fault}")
