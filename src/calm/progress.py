"""How far a long work is: a bar on a terminal, a line now and then elsewhere; on standard error."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

SMOOTHING = 0.02  # the perplexity shown is a running mean over some 50 batches
BAR_SECONDS, LINE_SECONDS = 0.1, 15.0


def say(sentence: str) -> None:
    """Tell something that is no result."""
    print(sentence, file=sys.stderr)


class Display:
    """One bar, or its lines."""

    def __init__(self, name: str, done: int, total: int) -> None:
        self._name = name
        self._shown = time.monotonic()
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[figures]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                auto_refresh=False,
            )
            self._task = self._bar.add_task(name, total=total or None, completed=done, figures="")
            self._bar.start()

    @property
    def due(self) -> bool:
        """Whether it is time to show something."""
        return time.monotonic() - self._shown > (BAR_SECONDS if self._bar else LINE_SECONDS)

    def show(self, done: int, figures: str) -> None:
        """Show how far it is."""
        self._shown = time.monotonic()
        if self._bar:
            self._bar.update(self._task, completed=done, figures=figures, refresh=True)
        else:
            say(f"{self._name}: {figures}")

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar:
            self._bar.stop()


class RunProgress:
    """Shows batch, current perplexity, tokens a second and time left."""

    def __init__(self, name: str, total: int, done: int, tokens_per_batch: int) -> None:
        self._name, self._total, self._done = name, total, done
        self._tokens = tokens_per_batch
        self._loss = math.nan
        self._first = done

    def __enter__(self) -> Self:
        self._begin = time.monotonic()
        self._display = Display(self._name, self._done, self._total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._show()
        self._display.close()

    def advance(self, loss: float) -> None:
        """One more batch is scored."""
        self._done += 1
        known = not math.isnan(self._loss)
        self._loss = self._loss + SMOOTHING * (loss - self._loss) if known else loss
        if self._display.due:
            self._show()

    def _show(self) -> None:
        seconds = max(time.monotonic() - self._begin, 1e-9)
        speed = (self._done - self._first) * self._tokens / seconds
        figures = f"batch {self._done}/{self._total}"
        if self._done > self._first:
            ppl = math.exp(min(self._loss, 700))
            figures += f"  ppl now {ppl:.2f}  {speed:,.0f} tokens/s"
        self._display.show(self._done, figures)


class ByteProgress:
    """Shows the bytes of one work after the other, each begun when its name is first told."""

    def __init__(self) -> None:
        self._work = ""
        self._display: Display | None = None
        self._figures = (0, "")

    def tell(self, work: str, done: int, total: int) -> None:
        """So many bytes of the work are done, of a total (0: not known)."""
        if work != self._work:
            self.close()
            self._work, self._begin = work, time.monotonic()
            self._first, self._display = done, Display(work, done, total)
        speed = (done - self._first) / max(time.monotonic() - self._begin, 1e-9)
        of = f"/{total / 1e6:,.1f}" if total else ""
        self._figures = (done, f"{done / 1e6:,.1f}{of} MB  {speed / 1e6:,.0f} MB/s")
        if self._display and self._display.due:
            self._display.show(*self._figures)

    def close(self) -> None:
        """Show the end of the last work."""
        if self._display:
            self._display.show(*self._figures)
            self._display.close()
            self._display = None


@contextmanager
def byte_progress() -> Iterator[ByteProgress]:
    """Progress that is closed whatever happens."""
    progress = ByteProgress()
    try:
        yield progress
    finally:
        progress.close()
