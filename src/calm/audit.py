"""Does a learner keep to the protocol? A learner that does not has no comparable numbers."""

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from calm.checkpoint import as_arrays, read_arrays, write_arrays
from calm.errors import CalmError, RunFailedError
from calm.learners.base import InformedLearner, Learner
from calm.loop import score, to_numpy
from calm.stream import Batch, Stream

EQUAL = 1e-5  # log-probabilities that may not depend on what changed differ by no more
CLOSE = 1e-3  # log-probabilities computed along another way differ by no more
SUM_TO_ONE = 1e-4
BATCHES, MIN_BATCHES = 80, 8

Make = Callable[[], Learner]


@dataclass(frozen=True)
class Check:
    """The outcome of one check: what holds, and the fault found if it does not."""

    rule: str
    fault: str | None


class FaultError(Exception):
    """A learner broke a rule."""


def check(make: Make, stream: Stream, batches: int = BATCHES) -> list[Check]:
    """Put a learner through every check, on the first batches of a stream, which it must have.

    `make` builds the learner anew, each time with the same seed. A learner that fails outright is
    checked no further.
    """
    if not MIN_BATCHES <= batches <= len(stream):
        raise CalmError(
            f"batches is {batches}: take {MIN_BATCHES} or more, and no more than the stream's "
            f"{len(stream)}"
        )
    outcomes: list[Check] = []
    for rule, test in RULES.items():
        fault = None
        try:
            test(make, stream, batches)
        except FaultError as error:
            fault = str(error)
        except RunFailedError as error:  # its predictions are of no use: nothing else to be learned
            return [*outcomes, Check(rule, str(error))]
        except Exception as error:
            return [*outcomes, Check(rule, f"it failed with {type(error).__name__}: {error}")]
        outcomes.append(Check(rule, fault))
    return outcomes


def predict(learner: Learner, batch: Batch, inputs: np.ndarray | None = None) -> np.ndarray:
    """Predict a batch, or other inputs in its place: log-probabilities (w, b, V) in float64."""
    if isinstance(learner, InformedLearner):
        learner.tell(batch.class_index)
    return to_numpy(learner.predict(batch.inputs if inputs is None else inputs))


def walk(learner: Learner, stream: Stream, start: int, stop: int) -> Iterator[tuple[Batch, float]]:
    """Go through batches start … stop-1 by the protocol, yielding each with its loss, unlearned."""
    for batch in islice(stream.batches(start), stop - start):
        loss = score(predict(learner, batch), batch, len(stream.vocabulary))
        yield batch, loss
        learner.learn(batch.inputs, batch.targets)


def predictions_are_distributions(make: Make, stream: Stream, batches: int) -> None:
    """Every position's probabilities sum to 1."""
    learner = make()
    for batch, _ in walk(learner, stream, 0, batches):
        log_probabilities = predict(learner, batch)
        if np.isnan(log_probabilities).any():
            raise FaultError(f"batch {batch.step}: predicted NaN")
        sums = np.exp(log_probabilities).sum(axis=2)
        worst = float(sums.flat[np.abs(sums - 1).argmax()])
        if abs(worst - 1) > SUM_TO_ONE:
            raise FaultError(f"batch {batch.step}: probabilities sum to {worst:.6g}, not 1")


def predictions_do_not_look_ahead(make: Make, stream: Stream, batches: int) -> None:
    """Inputs after a position change nothing at it."""
    learner = make()
    size = len(stream.vocabulary)
    draws = np.random.default_rng(0)
    for batch, _ in walk(learner, stream, 0, batches):
        original = predict(learner, batch)
        for j in {0, int(draws.integers(0, max(len(batch.inputs) - 1, 1)))}:
            changed = batch.inputs.copy()
            shift = draws.integers(1, max(size, 2), changed[j + 1 :].shape)
            changed[j + 1 :] = (changed[j + 1 :] + shift) % size
            again = predict(learner, batch, changed)
            if _same(original[: j + 1], again[: j + 1], EQUAL):
                continue
            if not _same(original, predict(learner, batch), EQUAL):
                raise FaultError(
                    f"batch {batch.step}: whether it looks ahead cannot be told, as it predicts "
                    "the same inputs in two ways; does it learn or draw in predict?"
                )
            raise FaultError(
                f"batch {batch.step}: it looks ahead: changing inputs after position {j} "
                f"changed its prediction at or before it"
            )


def predicting_changes_nothing(make: Make, stream: Stream, batches: int) -> None:
    """A batch may be predicted any number of times, and other inputs too."""
    learner, bystander = make(), make()
    pairs = zip(walk(learner, stream, 0, batches), walk(bystander, stream, 0, batches), strict=True)
    for (batch, loss), (_, expected) in pairs:
        if loss != expected:
            raise FaultError(
                f"batch {batch.step}: predicting left a trace: more predictions on the way led to "
                f"loss {loss:.6f}, fewer to {expected:.6f}; does it learn in predict?"
            )
        before = predict(learner, batch)
        predict(learner, batch, batch.inputs[::-1].copy())
        if not np.array_equal(before, predict(learner, batch)):
            raise FaultError(
                f"batch {batch.step}: predicting it twice gave two predictions; "
                "does it learn or draw in predict?"
            )


def nothing_is_drawn_from_global_generators(make: Make, stream: Stream, batches: int) -> None:
    """The global generators of Python, numpy and torch are left alone."""
    make()  # whatever it imports is imported now
    _stir_global_generators()  # a seeding is a change too, if not to where they stand anyway
    before = _global_generators()

    def compare(when: str) -> None:
        now = _global_generators()
        for name in before:
            if before[name] != now[name]:
                raise FaultError(
                    f"{when}: it draws from or seeds the global generator of {name}; "
                    "use one of its own, made from the seed"
                )

    learner = make()
    compare("when it is made")
    for batch, _ in walk(learner, stream, 0, batches):
        compare(f"batch {batch.step}")


def same_seed_gives_same_losses(make: Make, stream: Stream, batches: int) -> None:
    """Two learners with one seed are alike, to the bit."""
    first = [loss for _, loss in walk(make(), stream, 0, batches)]
    for (batch, loss), expected in zip(walk(make(), stream, 0, batches), first, strict=True):
        if loss != expected:
            raise FaultError(
                f"batch {batch.step}: losses {expected:.9f} and {loss:.9f} with the same seed"
            )


def a_checkpoint_holds_everything(make: Make, stream: Stream, batches: int) -> None:
    """Save, load into a new learner, go on: as if never stopped, to the bit."""
    learner = make()
    middle = batches // 2
    for _ in walk(learner, stream, 0, middle):
        pass
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.safetensors"
        try:
            write_arrays(path, middle, as_arrays(learner.state()))
        except TypeError as error:
            raise FaultError(str(error)) from None
        _, state = read_arrays(path)
    expected = [loss for _, loss in walk(learner, stream, middle, batches)]
    restored = make()
    restored.load_state(state)
    for (batch, loss), uninterrupted in zip(
        walk(restored, stream, middle, batches), expected, strict=True
    ):
        if loss != uninterrupted:
            raise FaultError(
                f"batch {batch.step}: after loading a checkpoint of batch {middle} the loss is "
                f"{loss:.9f}, without the stop it is {uninterrupted:.9f}; state() misses something"
            )


def reading_carries_on(make: Make, stream: Stream, batches: int) -> None:
    """Reading half a window and predicting the rest is predicting the whole: text can be made."""
    learner = make()
    for _ in walk(learner, stream, 0, batches // 4):
        pass
    batch = next(stream.batches(batches // 4))
    half = len(batch.inputs) // 2
    expected = predict(learner, batch)[half:]
    learner.read(batch.inputs[:half])
    if not _same(predict(learner, batch, batch.inputs[half:]), expected, CLOSE):
        raise FaultError(
            "after read(first half) it predicts the second half unlike within a window"
        )


RULES: dict[str, Callable[[Make, Stream, int], None]] = {
    "probabilities sum to 1": predictions_are_distributions,
    "no looking ahead": predictions_do_not_look_ahead,
    "predicting leaves no trace": predicting_changes_nothing,
    "no global random numbers": nothing_is_drawn_from_global_generators,
    "same seed, same losses": same_seed_gives_same_losses,
    "a checkpoint holds everything": a_checkpoint_holds_everything,
    "reading carries on": reading_carries_on,
}


def _same(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=0, atol=tolerance))


def _global_generators() -> dict[str, Any]:
    """The states of the global random generators; torch's only if somebody imported torch."""
    states: dict[str, Any] = {"random": random.getstate()}
    kind, keys, *rest = np.random.get_state()
    states["numpy"] = (kind, np.asarray(keys).tobytes(), *rest)
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


def _stir_global_generators() -> None:
    random.random()
    np.random.random()
    if "torch" in sys.modules:
        sys.modules["torch"].rand(())
