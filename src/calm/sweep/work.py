"""What the process of one run does, whichever engine started it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from calm.errors import BusyError, CalmError, StoppedError, blame, reason
from calm.sweep.plan import Planned
from calm.sweep.state import note_failure


@dataclass(frozen=True)
class Job:
    """A run, and where it is to be done; all paths are absolute."""

    planned: Planned
    out: Path
    here: Path
    """The folder that the sweep was started from: learners of the user's own may be in it."""
    checkpoint_seconds: float

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self.out / self.planned.name

    @property
    def log(self) -> Path:
        """What the run prints."""
        return self.out / "logs" / f"{self.planned.name}.txt"


@dataclass(frozen=True)
class Outcome:
    """How a run's process ended; `died` is said of it by the engine, all else by itself."""

    kind: Literal["finished", "failed", "stopped", "elsewhere", "died"]
    reason: str = ""


class Engine(Protocol):
    """Where runs are done."""

    def room(self, run: Planned) -> bool:
        """Whether it can begin with a run now."""

    def start(self, job: Job) -> None:
        """Begin with a run."""

    def poll(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Wait so long at most, and return what has ended."""

    def stop(self) -> list[tuple[Job, Outcome]]:
        """Stop all runs, their checkpoints saved, and return how they ended."""

    def close(self) -> None:
        """End whatever still runs, at once."""


def perform(job: Job) -> Outcome:
    """Start a run or go on with it; a failure is also written down in its folder."""
    try:
        with _logged(job):
            from calm.run import start_or_resume

            with blame("the run"):
                start_or_resume(job.planned.config, job.path, job.checkpoint_seconds)
    except BusyError:
        return Outcome("elsewhere")
    except (StoppedError, KeyboardInterrupt):
        return Outcome("stopped")
    except (CalmError, OSError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        with suppress(OSError):  # a disk that is full, or read-only
            note_failure(job.path, why)
        return Outcome("failed", why)
    return Outcome("finished")


@contextmanager
def _logged(job: Job) -> Iterator[None]:
    """Be where the sweep was started, and print into the log."""
    os.chdir(job.here)
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with job.log.open("a", encoding="utf-8") as log, redirect_stdout(log), redirect_stderr(log):
        yield
