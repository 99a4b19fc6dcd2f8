"""How long a sweep will take, and how much memory: from finished runs, and from trying."""

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from calm.build import build_learner, build_stream
from calm.config import Choice, Config
from calm.errors import CalmError, blame
from calm.folder import RunFolder
from calm.loop import prequential
from calm.progress import say
from calm.run import floors_of
from calm.stream import Stream
from calm.sweep.local import apart, share_threads
from calm.sweep.plan import Planned
from calm.sweep.state import State, progress

FIRST = 3  # batches that are not timed: what is compiled or allocated once
SECONDS, MOST = 2.0, 50  # a trial is over after so long, or so many batches


@dataclass(frozen=True)
class Trial:
    """What a few batches of a run took."""

    pace: float
    """Seconds a batch."""
    floors: float
    """Seconds a batch that the floors under a finished run take, where there are any."""
    memory: int
    """Bytes, at the most."""


@dataclass(frozen=True)
class Estimate:
    """Of all runs that differ in nothing but the seed."""

    example: Planned
    runs: int
    finished: int
    failed: int
    left: float | None
    """Seconds that those which are not over will take, one after the other; None: not known."""
    memory: int | None
    """Bytes that one run takes; None: not known, or none is left."""
    fault: str = ""
    """What went wrong when it was tried."""

    @property
    def todo(self) -> int:
        """How many runs are left."""
        return self.runs - self.finished - self.failed


def estimate(
    runs: Sequence[Planned],
    states: dict[str, State],
    out: Path,
    batches: dict[str, int],
    workers: int,
) -> list[Estimate]:
    """Estimate each group of runs that differ in the seed alone; learners are tried one by one."""
    share_threads(workers)
    groups: dict[str, list[Planned]] = {}
    for run in runs:
        groups.setdefault(repr(replace(run.config, seed=0)), []).append(run)
    return [_estimate(group, states, out, batches) for group in groups.values()]


def whole(estimates: Sequence[Estimate], workers: int) -> tuple[float, int]:
    """Seconds that everything takes with so many workers, and bytes at a time at the most."""
    known = [one for one in estimates if one.left is not None and one.todo]
    longest = max((one.left / one.todo for one in known if one.left is not None), default=0.0)
    seconds = sum(one.left for one in known if one.left is not None)
    sizes = sorted((one.memory or 0 for one in known for _ in range(one.todo)), reverse=True)
    return max(seconds / workers, longest), sum(sizes[:workers])


def _estimate(
    group: Sequence[Planned], states: dict[str, State], out: Path, batches: dict[str, int]
) -> Estimate:
    kinds = [states[run.name].kind for run in group]
    counts = (len(group), kinds.count("finished"), kinds.count("failed"))
    todo = [run for run in group if states[run.name].kind not in ("finished", "failed")]
    if not todo:
        return Estimate(group[0], *counts, left=0.0, memory=None)
    say(f"trying {group[0].config.learner.name} …")
    trial = try_out(todo[0].config)
    if isinstance(trial, str):
        return Estimate(group[0], *counts, left=None, memory=None, fault=trial)
    measured = [_pace(run, out) for run in group if states[run.name].kind == "finished"]
    pace = sum(measured) / len(measured) if measured else trial.pace
    total = sum(batches[run.name] for run in todo)
    recorded = sum(progress(out / run.name)[0] for run in todo)
    left = (total - recorded) * pace + total * trial.floors
    return Estimate(group[0], *counts, left=left, memory=trial.memory)


def _pace(run: Planned, out: Path) -> float:
    """Seconds a batch of a finished run."""
    stream = run.config.stream
    tokens = stream.rows * stream.window
    return float(tokens / (RunFolder(out / run.name).metrics()["tokens_per_second"] or 1e9))


def try_out(config: Config) -> Trial | str:
    """Run a few batches in a process of their own; what goes wrong is said."""
    one = apart(_trial, config)
    result: Trial | str = one.result() or one.how()
    return result


def _trial(config: Config) -> Trial | str:
    try:
        with blame("the learner"):
            stream = build_stream(config)
            pace = _time(stream, config)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            floors = [
                _time(stream, replace(config, learner=Choice(name)))
                for name in floors_of(config.corpus)
                if name != config.learner.name
            ]
    except CalmError as error:
        return str(error)
    return Trial(pace, sum(floors), peak * (1 if sys.platform == "darwin" else 1024))


def _time(stream: Stream, config: Config) -> float:
    """Seconds a batch."""
    records = prequential(stream, build_learner(config, stream))
    for _ in islice(records, FIRST):
        pass
    begin, done = time.perf_counter(), 0
    for _ in islice(records, MOST):
        done += 1
        if time.perf_counter() - begin > SECONDS:
            break
    return (time.perf_counter() - begin) / max(done, 1)
