"""How far a sweep is: a table on a terminal, a line now and then elsewhere; on standard error."""

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from calm.progress import LINE_SECONDS, say
from calm.sweep.plan import Planned
from calm.sweep.state import State, progress

SHOWN = 20  # runs under way in the table, at most
RECENT = 50  # batches that the perplexity shown is a mean over, at most
UNDER_WAY = ("running", "elsewhere")


class Board:
    """Shows the runs under way, how many are over, the time left, and of failed ones the reason."""

    def __init__(
        self, runs: Sequence[Planned], states: dict[str, State], out: Path, batches: dict[str, int]
    ) -> None:
        self._runs, self._states, self._out, self._batches = runs, states, out, batches
        self._steps = {run.name: progress(out / run.name)[0] for run in runs if run.name in batches}
        self._since: dict[str, tuple[float, int]] = {}  # when, and at which batch, a run was begun
        self._pace: dict[str, float] = {}  # seconds a batch, by learner and setting
        self._shown = time.monotonic()
        self._live: Live | None = None
        if sys.stderr.isatty():
            self._live = Live(console=Console(stderr=True), auto_refresh=False)

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._show()
        if self._live:
            self._live.stop()

    def tell(self, run: Planned, state: State) -> None:
        """Note what has become of a run."""
        news = self._states.get(run.name) != state
        self._states[run.name] = state
        if state.kind == "running":
            self._since[run.name] = (time.monotonic(), self._steps[run.name])
        elif state.kind == "finished" and run.name in self._since:
            self._advance(run, self._batches[run.name])
        if news and (state.reason or (state.kind in ("running", "finished") and not self._live)):
            self._say(f"{run.name}: {state.kind}" + (f": {state.reason}" if state.reason else ""))

    def show(self) -> None:
        """Show how far it is, if it is time to."""
        if self._live or time.monotonic() - self._shown > LINE_SECONDS:
            self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        rows = []
        for run in self._runs:
            if self._states[run.name].kind in UNDER_WAY:
                step, losses = progress(self._out / run.name)
                self._advance(run, step)
                rows.append((run.name, step, losses[-RECENT:]))
        if not self._live:
            say(self._summary(len(rows)))
            return
        table = Table(box=box.SIMPLE)
        for heading in ("run", "batch", "of", "ppl now"):
            table.add_column(heading, justify="left" if heading == "run" else "right")
        for name, step, losses in rows[:SHOWN]:
            ppl = f"{math.exp(min(sum(losses) / len(losses), 700)):.2f}" if losses else ""
            where = "" if self._states[name].kind == "running" else " (another process)"
            table.add_row(name + where, f"{step:,}", f"{self._batches[name]:,}", ppl)
        summary = Text(self._summary(len(rows)))
        self._live.update(Group(table, summary) if rows else summary, refresh=True)

    def _summary(self, under_way: int) -> str:
        kinds = [self._states[run.name].kind for run in self._runs]
        parts = [f"{kinds.count('finished')} of {len(kinds)} runs finished"]
        if failed := kinds.count("failed"):
            parts.append(f"{failed} failed")
        if under_way:
            parts.append(f"{under_way} under way")
            if left := self._left():
                parts.append(f"about {duration(left / under_way)} left")
        return ", ".join(parts)

    def _advance(self, run: Planned, step: int) -> None:
        """Note how far a run is, and how fast it goes."""
        self._steps[run.name] = step
        began, first = self._since.get(run.name, (0.0, step))
        if step > first:
            self._pace[_like(run)] = (time.monotonic() - began) / (step - first)

    def _left(self) -> float:
        """Seconds of work left, as far as the pace of learners is known; others take the mean."""
        usual = sum(self._pace.values()) / max(len(self._pace), 1)
        return sum(
            (self._batches[run.name] - self._steps[run.name]) * self._pace.get(_like(run), usual)
            for run in self._runs
            if self._states[run.name].kind not in ("finished", "failed")
        )

    def _say(self, sentence: str) -> None:
        if self._live:
            self._live.console.print(sentence, markup=False, highlight=False)
        else:
            say(sentence)


def duration(seconds: float) -> str:
    """Say a time in two units at most."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 99.5:
        return f"{max(round(seconds), 1)} s"
    if minutes < 100:
        return f"{minutes} min"
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{hours / 24:.1f} days"


def _like(run: Planned) -> str:
    """What runs of the same pace have in common."""
    return repr((run.config.corpus, run.config.stream, run.config.learner))
