"""Runs as tasks of a Ray cluster, whose machines share the file system that the runs are on."""

import io
import logging
import os
import re
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

from calm.errors import CalmError
from calm.files import locked
from calm.progress import say
from calm.sweep.exchange import Exchange, perform_via
from calm.sweep.local import THREADS, apart, imported
from calm.sweep.plan import Planned
from calm.sweep.work import Job, Outcome, perform

PASSED_ON = ("CALM_DATA", "PYTHONPATH", "XDG_DATA_HOME", THREADS)  # of the environment, if set
STOP_SECONDS = 120.0  # for checkpoints to be saved
CANCEL_SECONDS = 0.2  # before a run hears that it is cancelled
ANSWER_SECONDS = 10.0
GIGABYTE = 10**9


class RayEngine:
    """As many runs at a time as the cluster has room for, or so many at most."""

    def __init__(
        self, address: str | None, workers: int | None, cores: int, via: str | None, out: Path
    ) -> None:
        self._via = via
        self._exchange = Exchange(via) if via else None
        self._until_closed = ExitStack()
        if via:  # or each run's folder is locked where it is worked on
            self._until_closed.enter_context(locked(out / ".lock", f"sweeping into {out}"))
        self._ray = _connect(address, cores)
        quiet = redirect_stdout(io.StringIO())  # Ray prints of every lost worker at length
        self._until_closed.enter_context(quiet)
        self._workers, self._imports = workers, imported()
        self._task = self._ray.remote(max_retries=0)(_perform)
        self._running: dict[Any, tuple[Job, dict[str, float]]] = {}
        self._environment = {key: os.environ[key] for key in PASSED_ON if key in os.environ}

    def room(self, run: Planned) -> bool:
        """Whether the cluster could hold one more; the first may wait for a machine to come."""
        if not self._running:
            return True
        total, needs = self._ray.cluster_resources(), self._needs(run)
        taken = [taken for _, taken in self._running.values()]
        return len(taken) < (self._workers or len(taken) + 1) and all(
            need + sum(one[key] for one in taken) <= total.get(key, 0)
            for key, need in needs.items()
        )

    def start(self, job: Job) -> None:
        """Submit a run."""
        needs = self._needs(job.planned)
        if not any(_holds(node, needs) for node in self._ray.nodes()):
            wanted = ", ".join(f"{need:g} {key}" for key, need in needs.items() if need)
            say(f"{job.planned.name} waits for a machine with {wanted}: the cluster has none")
        environment = {THREADS: str(max(int(needs["CPU"]), 1)), **self._environment}
        task = self._task.options(
            runtime_env={"env_vars": environment},
            num_cpus=needs["CPU"], num_gpus=needs["GPU"], memory=needs["memory"],
            name=job.planned.name,
        )  # fmt: skip
        name = job.planned.name
        if self._exchange and (job.path / "config.toml").is_file() and not self._exchange.has(name):
            self._exchange.push(job.out, name)
        self._running[task.remote(job, self._via, self._imports)] = (job, needs)

    def poll(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Wait so long at most, and return what has ended."""
        tasks = list(self._running)
        if not tasks:
            time.sleep(seconds)
            return []
        ended, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=seconds)
        return [self._outcome(task, self._running.pop(task)[0]) for task in ended]

    def stop(self) -> list[tuple[Job, Outcome]]:
        """Stop all runs, their checkpoints saved, and return how they ended."""
        for task in self._running:
            self._ray.cancel(task)
        return self.poll(STOP_SECONDS if self._running else 0)

    def close(self) -> None:
        """End whatever still runs, at once."""
        self._ray.shutdown()
        self._until_closed.close()

    def _needs(self, run: Planned) -> dict[str, float]:
        device, gpus = run.config.learner.options.get("device", "cpu"), run.needs.gpus
        if gpus is None:
            there = device == "auto" and self._ray.cluster_resources().get("GPU", 0) > 0
            gpus = float(device == "cuda" or there)
        memory = (run.needs.memory or 0) * GIGABYTE
        return {"CPU": run.needs.cpus, "GPU": gpus, "memory": memory}

    def _outcome(self, task: Any, job: Job) -> tuple[Job, Outcome]:
        try:
            outcome = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            outcome = Outcome("died", f"its task was lost ({type(error).__name__})")
        try:
            if self._exchange and self._exchange.has(job.planned.name):
                self._exchange.pull(job.out, job.planned.name)
        except CalmError as error:
            outcome = Outcome("failed", str(error))
        return job, outcome


def _connect(address: str | None, cores: int) -> Any:
    """Join a cluster, or make one of this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns
    try:
        import ray
    except ImportError:
        raise CalmError("for --engine ray: pip install 'calm-bench[ray]'") from None
    own: dict[str, Any] = {"num_cpus": cores, "include_dashboard": False} if address is None else {}
    address = address or "local"  # none would be any that somebody runs on this machine
    try:
        if place := re.fullmatch(r"([^/]+):(\d+)", address):
            with socket.create_connection((place[1], int(place[2])), ANSWER_SECONDS):
                pass  # Ray itself would take minutes to find nobody there
        ray.init(address, **own, log_to_driver=False, logging_level=logging.ERROR)
    except OSError:
        raise CalmError(
            f"there is no Ray cluster at {address}: start one with `ray start --head --port 6379`"
        ) from None
    except Exception as error:  # of all kinds, its plainest included
        first = str(error).strip().splitlines()[0]
        raise CalmError(f"Ray ({address}) cannot be used: {first}") from None
    return ray


def _holds(node: dict[str, Any], needs: dict[str, float]) -> bool:
    has = node["Resources"] if node["Alive"] else {}
    return all(need <= has.get(key, 0) for key, need in needs.items())


def _perform(job: Job, via: str | None, imports: Sequence[str]) -> Outcome:
    """Do a run in a process of its own; that of the task stays, and so does its server."""
    task = (perform_via, via, job) if via else (perform, job)
    one = apart(*task, imports=imports)
    try:
        while one.process.is_alive():
            one.process.join(CANCEL_SECONDS)
    except KeyboardInterrupt:  # which is how Ray cancels
        one.process.terminate()
        return one.result() or Outcome("stopped")
    return one.result() or Outcome("died", one.how())
