"""A run from its start, or from where it was stopped, to its metrics."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from calm.build import build_learner, build_stream, code_hash, learner_class
from calm.config import Choice, Config
from calm.errors import CalmError, RunFailedError, StoppedError, blame, reason
from calm.files import room_in
from calm.folder import RunFolder
from calm.learners.base import Learner
from calm.loop import Record, prequential, to_records
from calm.metrics import Result, measure
from calm.observer import Observer, Watch, watching
from calm.progress import RunProgress, say
from calm.stream import Stream


@runtime_checkable
class KnownTree(Protocol):
    """Corpora that know how their classes are related."""

    def tree_distances(self) -> NDArray[np.float64]:
        """Distance of every two classes, (classes, classes)."""


FLOORS = ("floor-known", "floor")
CHECKPOINT_SECONDS = 10.0
CHECKPOINT_SHARE = 0.05  # checkpoints may take this share of the time and no more


def start(
    config: Config,
    path: Path,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    observers: Sequence[Observer] = (),
) -> RunFolder:
    """Run a config in a new folder, to its end."""
    check_interval(checkpoint_seconds)
    stream = build_stream(config)
    learner = build_learner(config, stream)
    folder = RunFolder(path)
    with folder.lock():
        _begin(folder, config, stream, learner, checkpoint_seconds, observers)
    return folder


def resume(
    path: Path,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    observers: Sequence[Observer] = (),
) -> RunFolder:
    """Go on with a run that was stopped, however it was; a finished one stays as it is."""
    check_interval(checkpoint_seconds)
    folder = RunFolder.open(path)
    with folder.lock():
        _go_on(folder, checkpoint_seconds, observers)
    return folder


def start_or_resume(config: Config, path: Path, checkpoint_seconds: float) -> RunFolder:
    """Do whichever the folder asks for, decided while other processes are kept away."""
    folder = RunFolder(path)
    with folder.lock():
        if folder.exists():
            _go_on(folder, checkpoint_seconds)
        else:
            stream = build_stream(config)
            _begin(folder, config, stream, build_learner(config, stream), checkpoint_seconds)
    return folder


def _begin(
    folder: RunFolder,
    config: Config,
    stream: Stream,
    learner: Learner,
    checkpoint_seconds: float,
    observers: Sequence[Observer] = (),
) -> None:
    with room_in(folder.path):
        folder.create(config)
    with _resumable(folder):
        _drive(folder, stream, learner, 0, checkpoint_seconds, observers)


def _go_on(
    folder: RunFolder, checkpoint_seconds: float, observers: Sequence[Observer] = ()
) -> None:
    with _resumable(folder):
        if folder.finished:
            return
        folder.check_origin()
        config = folder.config()
        stream = build_stream(config)
        folder.check_origin(stream.corpora.fingerprint())
        learner = build_learner(config, stream)
        step = folder.restore(learner)
        if step == 0:
            say("there is no checkpoint yet: the run begins again")
        _drive(folder, stream, learner, step, checkpoint_seconds, observers)


def check_interval(checkpoint_seconds: float) -> None:
    """Refuse what is no time between two checkpoints."""
    if not checkpoint_seconds > 0:
        raise CalmError(f"checkpoint_seconds is {checkpoint_seconds:g}: take a time above 0")


def _drive(
    folder: RunFolder,
    stream: Stream,
    learner: Learner,
    step: int,
    checkpoint_seconds: float,
    observers: Sequence[Observer],
) -> None:
    """Run the loop from batch `step`, measure at the end, with observers told of both."""
    code = code_hash(folder.config().learner.name)
    folder.note_start(stream.corpora.fingerprint(), step, code)
    with watching(observers, folder.config(), folder.path, step) as watch:
        _advance(folder, stream, learner, step, checkpoint_seconds, watch)
        watch.result = _finish(folder, stream)


def _advance(
    folder: RunFolder,
    stream: Stream,
    learner: Learner,
    step: int,
    checkpoint_seconds: float,
    watch: Watch,
) -> None:
    """Run the loop from batch `step` and write everything down."""
    name = folder.config().learner.name
    batch_tokens = stream.rows * stream.window
    trace = folder.path / "traceback.txt"
    with (
        folder.journals(step) as journals,
        stop_signals() as stop,
        RunProgress(name, len(stream), step, batch_tokens) as progress,
    ):
        saved, wait = time.monotonic(), checkpoint_seconds

        def save(learned: int) -> None:
            nonlocal saved, wait
            begin = time.monotonic()
            journals.sync()
            with blame("the learner", trace):
                state = learner.state()
            folder.save_checkpoint(learned, state)
            saved = time.monotonic()
            wait = max(checkpoint_seconds, (saved - begin) / CHECKPOINT_SHARE)

        records = prequential(stream, learner, step)
        since = time.perf_counter()
        while True:
            with blame("the learner", trace):
                record = next(records, None)
            if record is None:
                break
            seconds = time.perf_counter() - since
            if stop.is_set() or time.monotonic() - saved > wait:
                save(record.step)
            if stop.is_set():
                raise StoppedError(
                    f"stopped before batch {record.step} of {len(stream)}: "
                    f"go on with `calm resume {folder.path}`"
                )
            journals.write(record, seconds)
            watch.batch(record)
            progress.advance(record.loss)
            since = time.perf_counter()
        save(len(stream))


def _finish(folder: RunFolder, stream: Stream) -> Result:
    """Measure the run, and on synthetic text the floor below it."""
    result = measure(folder.records())
    seconds = folder.seconds()
    tokens = len(stream) * stream.rows * stream.window
    metrics: dict[str, Any] = {
        **result.to_dict(),
        "oracle": learner_class(folder.config().learner.name).oracle,
        "seconds": round(seconds, 3),
        "tokens_per_second": round(tokens / seconds) if seconds else None,
    }
    if floors := floors_of(folder.config().corpus):
        metrics["floors"] = {name: _floor(name, folder, stream).to_dict() for name in floors}
    if isinstance(stream.corpora, KnownTree):
        matrix = stream.corpora.tree_distances().tolist()
        metrics["distances"] = {"classes": stream.classes, "matrix": matrix}
    folder.save_metrics(metrics)
    return result


def floors_of(corpus: Choice) -> Sequence[str]:
    """Name the oracles that are run below every learner, where the truth is known."""
    return FLOORS if corpus.name == "synthetic" else ()


def _floor(name: str, folder: RunFolder, stream: Stream) -> Result:
    """Run one of the oracles over the same stream; the run's own records serve if it is the one."""
    if folder.config().learner.name == name:
        return measure(folder.records())
    config = Config(learner=Choice(name))
    learner = build_learner(config, stream)
    with RunProgress(name, len(stream), 0, stream.rows * stream.window) as progress:

        def watched() -> Iterator[Record]:
            for record in prequential(stream, learner):
                progress.advance(record.loss)
                yield record

        return measure(to_records(watched(), stream.fragments))


@contextmanager
def _resumable(folder: RunFolder) -> Iterator[None]:
    """Say how to go on after what stops a run but does it no harm."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunFailedError(f"{reason(error)}; {_how(folder)}") from None
    except KeyboardInterrupt:
        raise StoppedError(f"stopped; {_how(folder)}") from None


def _how(folder: RunFolder) -> str:
    return f"go on with `calm resume {folder.path}`"


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Collect Ctrl-C and SIGTERM in an event; a second Ctrl-C acts at once, as usual.

    SIGTERM may come twice without anybody being impatient, as from a parent and from its parent.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before[signal.SIGINT])

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
