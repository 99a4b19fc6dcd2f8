"""The loop of a sweep: give runs to an engine until each is finished or failed."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from calm.build import build_corpora, build_stream, check_learner
from calm.corpus.base import Corpora
from calm.errors import StoppedError
from calm.files import make_folder
from calm.run import check_interval, stop_signals
from calm.sweep.live import Board
from calm.sweep.plan import Planned
from calm.sweep.state import State, forget_failure, inspect, note_failure, progress
from calm.sweep.work import Engine, Job, Outcome

ATTEMPTS = 3  # times that a run's process may die without getting further
AGAIN_SECONDS = 2.0  # before a run that another process is at is looked at again
POLL_SECONDS = 0.5
OVER = ("finished", "failed")
STOPPED = Outcome("stopped")


def survey(runs: Sequence[Planned], out: Path) -> dict[str, State]:
    """Look at the folder of every run."""
    return {run.name: inspect(run, out) for run in runs}


def unfinished(runs: Sequence[Planned], states: dict[str, State]) -> list[Planned]:
    """Return the runs that are neither finished nor failed."""
    return [run for run in runs if states[run.name].kind not in OVER]


def check(runs: Sequence[Planned]) -> dict[str, int]:
    """Refuse, before anything runs, what cannot; return how many batches each run has, by name."""
    corpora: dict[str, Corpora] = {}
    lengths: dict[str, int] = {}
    batches = {}
    for run in runs:
        check_learner(run.config.learner)
        corpus = repr(run.config.corpus)
        key = f"{corpus} {run.config.stream} {run.config.seed}"
        if corpus not in corpora:
            corpora[corpus] = build_corpora(run.config.corpus)
        if key not in lengths:
            lengths[key] = len(build_stream(run.config, corpora[corpus]))
        batches[run.name] = lengths[key]
    return batches


def carry_out(
    runs: Sequence[Planned],
    out: Path,
    engine: Callable[[], Engine],
    retry: bool,
    checkpoint_seconds: float,
) -> dict[str, State]:
    """Do all runs that are not done, on the engine made for them; return what becomes of each."""
    check_interval(checkpoint_seconds)
    states = survey(runs, out)
    if retry:
        for run in runs:
            if states[run.name].kind == "failed":
                forget_failure(out / run.name)
        states = survey(runs, out)
    if todo := unfinished(runs, states):
        batches = check(todo)
        make_folder(out)
        chosen = engine()
        with Board(runs, states, out, batches) as board:
            Drive(todo, out, chosen, board, checkpoint_seconds).run()
    return states


class Drive:
    """Does runs until each is over, and tells the board what becomes of them.

    Several of these may share a folder: a run that another one is at is left to it, and taken over
    if it is left unfinished.
    """

    def __init__(
        self,
        runs: Sequence[Planned],
        out: Path,
        engine: Engine,
        board: Board,
        checkpoint_seconds: float,
    ) -> None:
        self._waiting, self._out = list(runs), out.resolve()
        self._engine, self._board = engine, board
        self._checkpoint_seconds = checkpoint_seconds
        self._not_before: dict[str, float] = {}
        self._deaths: dict[str, tuple[int, int]] = {}  # how often, and at which batch at the latest

    def run(self) -> None:
        """Go on until every run is finished or failed, or somebody stops it."""
        with stop_signals() as stop:
            try:
                running = 0
                while self._waiting or running:
                    if stop.is_set():
                        for job, outcome in self._engine.stop():
                            self._settle(job, STOPPED if outcome.kind == "died" else outcome)
                        raise StoppedError("stopped: the same command goes on with what is left")
                    while run := self._next():
                        self._engine.start(self._job(run))
                        self._board.tell(run, State("running"))
                        running += 1
                    for job, outcome in self._engine.poll(POLL_SECONDS):
                        self._settle(job, outcome)
                        running -= 1
                    self._board.show()
            finally:
                self._engine.close()

    def _next(self) -> Planned | None:
        """Take the first run that waits and may begin, looking at its folder once more."""
        now = time.monotonic()
        for run in list(self._waiting):
            if self._not_before.get(run.name, 0) > now or not self._engine.room(run):
                continue
            state = inspect(run, self._out)
            self._board.tell(run, state)
            if state.kind == "elsewhere":
                self._not_before[run.name] = now + AGAIN_SECONDS
                continue
            self._waiting.remove(run)
            if state.kind not in OVER:
                return run
        return None

    def _job(self, run: Planned) -> Job:
        return Job(run, self._out, Path.cwd(), self._checkpoint_seconds)

    def _settle(self, job: Job, outcome: Outcome) -> None:
        """Note what has become of a run, and let it wait again if it is not over."""
        run = job.planned
        match outcome.kind:
            case "finished":
                self._board.tell(run, inspect(run, self._out))
            case "failed":
                self._board.tell(run, State("failed", outcome.reason))
            case "died" if self._hopeless(job):
                why = f"{outcome.reason}, {ATTEMPTS} times without getting further; see {job.log}"
                with suppress(OSError):
                    note_failure(job.path, why)
                self._board.tell(run, State("failed", why))
            case _:
                self._board.tell(run, State("interrupted", outcome.reason))
                self._not_before[run.name] = time.monotonic() + AGAIN_SECONDS
                self._waiting.append(run)

    def _hopeless(self, job: Job) -> bool:
        """Count a death, anew if the run got further than at the last one."""
        step = progress(job.path)[0]
        times, before = self._deaths.get(job.planned.name, (0, -1))
        times = times + 1 if step <= before else 1
        self._deaths[job.planned.name] = (times, max(step, before))
        return times >= ATTEMPTS
