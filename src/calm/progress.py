"""How far a run is: a bar on a terminal, a line now and then elsewhere."""

import math
import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

SMOOTHING = 0.02  # the perplexity shown is a running mean over some 50 batches
BAR_SECONDS, LINE_SECONDS = 0.1, 15.0


class RunProgress:
    """Shows batch, current perplexity, tokens a second and time left, on standard error."""

    def __init__(self, name: str, total: int, done: int, tokens_per_batch: int) -> None:
        self._name, self._total, self._done = name, total, done
        self._tokens = tokens_per_batch
        self._loss = math.nan
        self._first = done
        self._begin = self._shown = time.monotonic()
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} batches"),
                TextColumn("{task.fields[figures]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                auto_refresh=False,
            )
            self._task = self._bar.add_task(
                self._name, total=self._total, completed=self._done, figures=""
            )
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._show()
        if self._bar:
            self._bar.stop()

    def advance(self, loss: float) -> None:
        """One more batch is scored."""
        self._done += 1
        known = not math.isnan(self._loss)
        self._loss = self._loss + SMOOTHING * (loss - self._loss) if known else loss
        if time.monotonic() - self._shown > (BAR_SECONDS if self._bar else LINE_SECONDS):
            self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        speed = (self._done - self._first) * self._tokens / max(self._shown - self._begin, 1e-9)
        figures = f"ppl {math.exp(min(self._loss, 700)):.2f}  {speed:,.0f} tokens/s"
        if self._bar:
            self._bar.update(self._task, completed=self._done, figures=figures, refresh=True)
        else:
            print(f"{self._name}: batch {self._done}/{self._total}  {figures}", file=sys.stderr)
