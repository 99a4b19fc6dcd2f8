"""Runs in processes of this machine, one for each: a crash harms one, and memory is given back."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.resource_tracker import ensure_running
from typing import Any

from calm.sweep.plan import Planned
from calm.sweep.work import Job, Outcome, perform

THREADS = "OMP_NUM_THREADS"


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_threads(workers: int) -> None:
    """Give the processes to come their share of the cores, unless the user has said how many."""
    os.environ.setdefault(THREADS, str(max(cores() // workers, 1)))


@dataclass(frozen=True)
class Apart:
    """A function that runs in a process of its own, and the end of the pipe it answers by."""

    process: BaseProcess
    answer: Connection

    def result(self) -> Any:
        """What it returned, once the process has ended; None if it died."""
        self.process.join()
        with self.answer, suppress(EOFError):
            return self.answer.recv()
        return None

    def how(self) -> str:
        """Say how a process ended that gave no answer."""
        code = self.process.exitcode or 0
        if code >= 0:
            return f"its process ended by itself, with exit code {code}"
        name = signal.Signals(-code).name
        hint = ", as happens when memory runs out" if name == "SIGKILL" else ""
        return f"its process was killed by {name}{hint}"


def imported() -> list[str]:
    """Name the modules that runs need, as far as somebody here has needed them."""
    learners = [name for name in sys.modules if name.startswith("calm.learners.")]
    late = ["torch._dynamo"] if "torch" in sys.modules else []  # an optimiser imports it, slowly
    return ["calm.run", *learners, *late]


def apart(
    function: Callable[..., Any], *arguments: Any, imports: Sequence[str] | None = None
) -> Apart:
    """Start a function in a process of its own, which ends with this one.

    It is forked from a server that is started the first time, and imports what is needed once. It
    does not hear of Ctrl-C, which a terminal tells to all: whoever started it will stop it.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", *(imports or imported())])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, *arguments))
    ensure_running()  # or it would be started below, and lift what is blocked there
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # which it inherits
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    sender.close()
    return Apart(process, receiver)


def _answer(sender: Connection, function: Callable[..., Any], *arguments: Any) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    result = function(*arguments)
    with suppress(BrokenPipeError):
        sender.send(result)


def _end_with_parent() -> None:
    """Be stopped as by a user once the parent is gone, however that came."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


class LocalEngine:
    """So many runs at a time."""

    def __init__(self, workers: int) -> None:
        share_threads(workers)
        self._workers = workers
        self._running: dict[str, tuple[Job, Apart]] = {}

    def room(self, run: Planned) -> bool:
        """Whether a worker is free."""
        return len(self._running) < self._workers

    def start(self, job: Job) -> None:
        """Begin with a run."""
        one = apart(perform, job)
        self._running[job.planned.name] = (job, one)

    def poll(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Wait so long at most, and return what has ended."""
        wait([one.process.sentinel for _, one in self._running.values()], seconds)
        ended = [name for name, (_, one) in self._running.items() if not one.process.is_alive()]
        return [self._outcome(name) for name in ended]

    def stop(self) -> list[tuple[Job, Outcome]]:
        """Stop all runs, their checkpoints saved, and return how they ended."""
        for _, one in self._running.values():
            one.process.terminate()
        return [self._outcome(name) for name in list(self._running)]

    def close(self) -> None:
        """End whatever still runs, at once."""
        for _, one in self._running.values():
            one.process.kill()

    def _outcome(self, name: str) -> tuple[Job, Outcome]:
        job, one = self._running[name]
        outcome = one.result() or Outcome("died", one.how())
        del self._running[name]
        return job, outcome
