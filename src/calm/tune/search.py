"""Trials: points of a space, each an ordinary run for every seed, compared by a metric."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calm.build import placed, with_size
from calm.config import Config, Experiment
from calm.errors import CalmError, RunFailedError
from calm.files import replace_file
from calm.folder import RunFolder
from calm.metrics import Summary, summarise
from calm.sweep.plan import Planned
from calm.sweep.state import State
from calm.tune.space import Point, Range, Space

METRICS = ("ppl", "ppl_at_switch", "recovery")
ROUND = 4  # points that are proposed before the first of them is known, however many run at a time
DIGITS = 4  # of a proposed number


@dataclass(frozen=True)
class Trial:
    """A point of the space, and every metric over seeds; or why there is none."""

    point: Point
    scores: dict[str, Summary]
    fault: str = ""


@dataclass(frozen=True)
class Tuner:
    """Tries points: makes runs of them, on the dev half, and lets them be carried out."""

    experiment: Experiment
    learner: str
    options: dict[str, Any]
    """What is the same in every trial."""
    metric: str
    seeds: int
    out: Path
    carry_out: Callable[[Sequence[Planned]], dict[str, State]]

    def config(self, point: Point) -> Config:
        """Return the experiment with a point's options, on the test half."""
        own = self.experiment.config
        choice = with_size(self.experiment.choice(self.learner, {**self.options, **point}))
        stream = replace(own.stream, split="test")
        return Config(placed(own.corpus), stream, choice, own.seed)

    def runs(self, point: Point) -> list[Planned]:
        """Return the runs of a trial."""
        config = self.config(point)
        dev = replace(config.stream, split="dev")
        return [Planned(replace(config, stream=dev, seed=seed)) for seed in range(self.seeds)]

    def try_all(self, points: Sequence[Point]) -> list[Trial]:
        """Try points; what is finished is not run again."""
        plans = [self.runs(point) for point in points]
        states = self.carry_out(list({run.name: run for plan in plans for run in plan}.values()))
        return [self._trial(*pair, states) for pair in zip(points, plans, strict=True)]

    def _trial(self, point: Point, plan: Sequence[Planned], states: dict[str, State]) -> Trial:
        for run in plan:
            if states[run.name].kind != "finished":
                return Trial(point, {}, states[run.name].reason)
        metrics = [RunFolder(self.out / run.name).metrics() for run in plan]
        if any(each[self.metric] is None for each in metrics):
            raise CalmError(
                f"{self.metric} is not defined on these streams, as no class comes back in their "
                "second half: take more fragments, or another metric"
            )
        numbers = {
            key: [math.nan if m[key] is None else m[key] for m in metrics] for key in METRICS
        }
        return Trial(point, {key: summarise(values) for key, values in numbers.items()})

    def rank(self, trial: Trial) -> float:
        """Return what is to be low; of a trial that failed it is not."""
        return trial.scores[self.metric].mean if trial.scores else math.inf

    def best(self, trials: Sequence[Trial]) -> Trial:
        """Return the best, the first of several that are alike."""
        best = min(trials, key=self.rank)
        if best.fault:
            raise RunFailedError(f"all {len(trials)} trials failed, the first: {best.fault}")
        return best

    def write(self, trials: Sequence[Trial]) -> Path:
        """Write the best as an experiment, which runs on the test half."""
        best = self.best(trials)
        summary = best.scores[self.metric]
        text = (
            f"# The best of {len(trials)} trials on the dev half: {self.metric} "
            f"{summary.mean:.4f}, over {summary.seeds} seeds.\n\n"
            + self.config(best.point).to_toml()
        )
        path = self.out / "best.toml"
        replace_file(path, lambda new: new.write_text(text, encoding="utf-8"))
        return path


def search(tuner: Tuner, space: Space, trials: int, seed: int) -> list[Trial]:
    """Let Optuna propose points from what is known of earlier ones.

    It keeps nothing: the same proposals follow from the seed and the results, which the folders of
    the runs hold.
    """
    try:
        import optuna
    except ImportError:
        raise CalmError("to search by optuna: pip install 'calm-bench[optuna]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    done: list[Trial] = []
    while len(done) < trials:
        asked = [study.ask() for _ in range(min(ROUND, trials - len(done)))]
        tried = tuner.try_all([propose(space, one) for one in asked])
        for one, trial in zip(asked, tried, strict=True):
            if trial.fault:
                study.tell(one, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(one, trial.scores[tuner.metric].mean)
        done += tried
    return done


def propose(space: Space, trial: Any) -> Point:
    """Let a trial of Optuna's choose from every axis."""
    point: Point = {}
    for axis in space:
        if not isinstance(axis.values, Range):
            point |= axis.values[trial.suggest_categorical(axis.name, range(len(axis.values)))]
            continue
        low, high, log = axis.values.low, axis.values.high, axis.values.log
        if axis.values.whole:
            point[axis.name] = trial.suggest_int(axis.name, low, high, log=log)
        else:
            number = trial.suggest_float(axis.name, low, high, log=log)
            point[axis.name] = float(f"{number:.{DIGITS}g}")
    return point
