"""The protocol: predict, score, record, and only then learn. There is one such loop: this one."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calm.errors import CalmError, RunFailedError
from calm.learners.base import GatedLearner, InformedLearner, Learner
from calm.metrics import Records, Result, measure
from calm.stream import Batch, Stream

OFF_ONE = 1e-3  # how far from 1 the probabilities of a position may sum


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a batch once it is scored; `gates` if the learner weighs experts."""

    step: int
    fragment: int
    class_name: str
    loss: float
    gates: tuple[float, ...] | None = None


def prequential(stream: Stream, learner: Learner, start: int = 0) -> Iterator[Record]:
    """Run a learner over a stream from batch `start` on, yielding each record as it is made.

    When a record is yielded its batch is not yet learned: the learner has learned `record.step`
    batches.
    """
    if not isinstance(learner, Learner):
        raise CalmError(f"a learner is needed, such as calm.learner('lstm', …), not {learner!r}")
    for batch in stream.batches(start):
        if isinstance(learner, InformedLearner):
            learner.tell(batch.class_index)
        log_probabilities = learner.predict(batch.inputs)
        loss = score(log_probabilities, batch, len(stream.vocabulary))
        weights = learner.gate_weights() if isinstance(learner, GatedLearner) else None
        gates = None if weights is None else tuple(weights.tolist())
        yield Record(batch.step, batch.fragment, stream.classes[batch.class_index], loss, gates)
        learner.learn(batch.inputs, batch.targets)


def score(log_probabilities: Any, batch: Batch, vocabulary: int) -> float:
    """Mean negative log-likelihood of a batch's targets, in nats; refuses what is no prediction.

    `log_probabilities` (w, b, V) is an array or a tensor on any device: both are indexed alike.
    Of every batch one position is checked to sum to 1, a different one each time.
    """
    window, rows = batch.inputs.shape
    where = f"batch {batch.step}: the learner"
    expected = (window, rows, vocabulary)
    if isinstance(log_probabilities, np.ndarray):
        log_probabilities = np.asarray(log_probabilities)  # no subclass answers in its own way
    shape = tuple(getattr(log_probabilities, "shape", ()))
    if shape != expected:
        raise RunFailedError(
            f"{where} predicted {'an array of shape ' + str(shape) if shape else 'no array'}, "
            f"not log-probabilities of shape (w, b, V) = {expected}"
        )
    here = log_probabilities[batch.step % window, batch.step // window % rows]
    total = float(np.exp(np.asarray(here.tolist(), dtype=np.float64)).sum())
    targets = batch.targets.copy()  # torch warns of an index that it could not write to
    picked = log_probabilities[np.arange(window)[:, None], np.arange(rows), targets]
    loss = -float(np.mean(picked.tolist()))
    if np.isnan(loss) or np.isnan(total):
        raise RunFailedError(f"{where} predicted NaN")
    if np.isinf(loss):
        raise RunFailedError(f"{where} gave probability 0 to what came: its loss is infinite")
    if abs(total - 1) > OFF_ONE:
        raise RunFailedError(
            f"{where}'s probabilities sum to {total:.6g}, not 1: "
            "return log_softmax of the logits, in float32"
        )
    return loss


def to_numpy(log_probabilities: Any) -> NDArray[np.float64]:
    """Copy a prediction, an array or a tensor on any device, in float64."""
    plain = log_probabilities.tolist() if hasattr(log_probabilities, "tolist") else None
    return np.array(log_probabilities if plain is None else plain, dtype=np.float64)


def to_records(records: Iterable[Record], fragments: int) -> Records:
    """Turn records into columns, compact while they come in."""
    fragment, name, loss = array("q"), array("q"), array("d")
    names: dict[str, int] = {}
    for record in records:
        fragment.append(record.fragment)
        name.append(names.setdefault(record.class_name, len(names)))
        loss.append(record.loss)
    class_name = np.array(list(names), dtype=np.str_)[np.array(name)]
    return Records(np.array(fragment), class_name, np.array(loss), fragments)


def evaluate(stream: Stream, learner: Learner) -> Result:
    """Run a learner over a whole stream and measure it."""
    return measure(to_records(prequential(stream, learner), stream.fragments))


class Scorer:
    """The protocol for a loop of your own: of every batch, score first, then read the targets.

    From now on, iterating over the stream yields batches whose targets cannot be read before
    `score` has had the prediction.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._pending: Batch | None = None
        self.records: list[Record] = []
        stream.guard = self._expect

    def score(self, log_probabilities: Any) -> float:
        """Score the batch at hand, and unlock its targets; returns the loss."""
        batch = self._pending
        if batch is None:
            raise CalmError("there is no batch to score: take the next one from the stream first")
        batch.locked = False
        loss = score(log_probabilities, batch, len(self._stream.vocabulary))
        self._pending = None
        name = self._stream.classes[batch.class_index]
        self.records.append(Record(batch.step, batch.fragment, name, loss))
        return loss

    def result(self) -> Result:
        """Measure the whole stream, and let go of it: from now on it can be iterated as before."""
        if len(self.records) < len(self._stream):
            raise CalmError(
                f"{len(self.records)} of {len(self._stream)} batches are scored: a result is that "
                "of a whole stream"
            )
        self._stream.guard = None
        return measure(to_records(self.records, self._stream.fragments))

    def _expect(self, batch: Batch) -> None:
        if self._pending is not None and batch.step > 0:
            raise CalmError(
                f"batch {self._pending.step} was never scored: call scorer.score(...) once a batch"
            )
        if batch.step == 0:
            self.records.clear()
        batch.locked = True
        self._pending = batch
