"""Oracles for synthetic languages: the best that can be done by whoever knows how they are made.

Both keep, for every class and row, where in the class's text the row has come to. The distribution
of the next character given that is exact; what is left to infer is the class. A switch comes with
probability `switch_rate` before any batch, to any other class alike; from there the posterior
sharpens along the inputs of all rows. After a batch the likeliest class is taken for certain,
which with 200 characters of evidence it is.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from calm.learners.base import InformedLearner, Learner, State, Tokens

Floats = NDArray[np.float64]
DOUBT = 1e-9  # share of the uniform distribution, so that nothing is ever impossible
IMPOSSIBLE = -1e3  # log-likelihood of a text that goes on where it did not stop


class Predictor(Protocol):
    """The exact next-character distribution of one language."""

    def start(self, rows: int) -> Tokens:
        """States (rows,) at the beginning of a text."""

    def trace(self, states: Tokens, tokens: Tokens) -> tuple[Floats, Tokens]:
        """Distributions before every token and after the last, and the states at the end."""


@runtime_checkable
class KnownLanguages(Protocol):
    """Corpora that know how they are made."""

    def predictors(self) -> Sequence[Predictor]:
        """For each class, the exact distribution of the next character."""


class KnownStream(Protocol):
    """What an oracle is told of a stream of synthetic languages."""

    @property
    def rows(self) -> int:
        """How many rows a batch has."""

    @property
    def switch_rate(self) -> float:
        """Probability that a batch begins a new fragment."""

    @property
    def boundary(self) -> str:
        """Whose token the first input of a fragment is."""

    @property
    def corpora(self) -> Any:
        """The languages."""


class Reader:
    """Follows a stream of known languages: per class and row, the state of its text.

    After learning, a state includes the batch's last target, which is the next batch's first
    input; after reading it does not (`ahead`). In a seamless stream the first input of a new class
    belongs to the class before, in one with the paper's boundary it is of the new class.
    """

    def __init__(self, vocabulary: int, stream: KnownStream) -> None:
        corpora = stream.corpora
        if not isinstance(corpora, KnownLanguages):
            raise ValueError("it knows synthetic languages only: take --corpus synthetic")
        self.predictors: Sequence[Predictor] = corpora.predictors()
        self.switch_rate = stream.switch_rate
        self.seamless = stream.boundary == "seamless"
        self.vocabulary = vocabulary
        self.states = np.stack([p.start(stream.rows) for p in self.predictors])  # (classes, b)
        self.current = -1
        self.ahead = False
        self.last = np.zeros(stream.rows, dtype=np.int64)

    def path(self, c: int, inputs: Tokens) -> tuple[Floats, float]:
        """If the batch is of class c: next-character probabilities (w, b, V), and the
        log-likelihood of the first input.
        """
        read_before = self._read_before(c)
        raw, _ = self.predictors[c].trace(self.states[c], inputs[1:] if read_before else inputs)
        probabilities = (1 - DOUBT) * raw + DOUBT / self.vocabulary
        evidence = 0.0
        if not read_before:
            if c != self.current:
                evidence = float(np.log(_pick(probabilities[:1], inputs[:1])).sum())
            probabilities = probabilities[1:]
        elif c == self.current and not (self.seamless or np.array_equal(inputs[0], self.last)):
            evidence = IMPOSSIBLE
        return probabilities, evidence

    def move_on(self, c: int, inputs: Tokens, targets: Tokens) -> None:
        """Take the batch to be of class c, and go past its inputs and `targets` (0 or w, b)."""
        tokens = np.concatenate([inputs[1:] if self._read_before(c) else inputs, targets[-1:]])
        before = self.current
        if before not in (-1, c) and self.seamless and not self.ahead:
            self._follow(before, inputs[:1])
        self._follow(c, tokens)
        self.current, self.ahead = c, len(targets) > 0
        if self.ahead:
            self.last = targets[-1].copy()

    def save(self) -> State:
        """Everything that changes."""
        return {
            "states": self.states.copy(),
            "current": np.array(self.current),
            "ahead": np.array(self.ahead),
            "last": self.last.copy(),
        }

    def load(self, state: State) -> None:
        """Restore what was saved."""
        self.states, self.last = state["states"].copy(), state["last"].copy()
        self.current, self.ahead = int(state["current"]), bool(state["ahead"])

    def _read_before(self, c: int) -> bool:
        """Whether class c has nothing to do with the first input any more."""
        return self.ahead if c == self.current else self.seamless and self.current >= 0

    def _follow(self, c: int, tokens: Tokens) -> None:
        _, self.states[c] = self.predictors[c].trace(self.states[c], tokens)


class FloorKnown(InformedLearner):
    """Knows the languages and is told the class."""

    oracle: ClassVar[bool] = True

    def __init__(self, vocabulary: int, seed: int, stream: KnownStream) -> None:
        self._reader = Reader(vocabulary, stream)
        self._class = 0

    def tell(self, class_index: int) -> None:
        """Hear the class of the batch to come."""
        self._class = class_index

    def predict(self, inputs: Tokens) -> Floats:
        """Exact log-probabilities: (w, b) -> (w, b, V)."""
        probabilities, _ = self._reader.path(self._class, inputs)
        return np.log(probabilities)

    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Move on."""
        self._reader.move_on(self._class, inputs, targets)

    def read(self, inputs: Tokens) -> None:
        """Move on."""
        self._reader.move_on(self._class, inputs, inputs[:0])

    def state(self) -> State:
        """Where every class's text has come to, and the class."""
        return {**self._reader.save(), "class": np.array(self._class)}

    def load_state(self, state: State) -> None:
        """Restore it."""
        self._reader.load(state)
        self._class = int(state["class"])


class Floor(Learner):
    """Knows the languages and how often they switch; infers the class from the past alone."""

    oracle: ClassVar[bool] = True

    def __init__(self, vocabulary: int, seed: int, stream: KnownStream) -> None:
        self._reader = Reader(vocabulary, stream)

    def predict(self, inputs: Tokens) -> Floats:
        """Log of the classes' exact distributions, weighted by the posterior: (w, b, V)."""
        paths, log_posterior = self._infer(inputs)
        weights = np.exp(log_posterior - log_posterior.max(axis=0))  # (classes, w)
        weights /= weights.sum(axis=0)
        mixed: Floats = np.einsum("cw,cwbv->wbv", weights, paths)
        return np.log(mixed)

    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Settle on the likeliest class and move on; only the last targets are news."""
        paths, log_posterior = self._infer(inputs)
        last = [np.log(_pick(path[-1:], targets[-1:])).sum() for path in paths]
        self._reader.move_on(int(np.argmax(log_posterior[:, -1] + last)), inputs, targets)

    def read(self, inputs: Tokens) -> None:
        """Settle on the likeliest class and move on."""
        _, log_posterior = self._infer(inputs)
        self._reader.move_on(int(np.argmax(log_posterior[:, -1])), inputs, inputs[:0])

    def state(self) -> State:
        """Where every class's text has come to, and the class."""
        return self._reader.save()

    def load_state(self, state: State) -> None:
        """Restore it."""
        self._reader.load(state)

    def _infer(self, inputs: Tokens) -> tuple[Floats, Floats]:
        """Each class's distributions (classes, w, b, V) and log-posterior (classes, w)."""
        reader = self._reader
        count = len(reader.predictors)
        prior = np.full(count, 1 / count)
        if reader.current >= 0:
            rate = reader.switch_rate if reader.ahead else 0.0  # not in the middle of a window
            prior[:] = rate / max(count - 1, 1)
            prior[reader.current] = 1 - rate
        log_posterior = np.empty((count, len(inputs)))
        paths = np.empty((count, *inputs.shape, reader.vocabulary))
        for c in range(count):
            paths[c], evidence = reader.path(c, inputs)
            seen = np.log(_pick(paths[c, :-1], inputs[1:])).sum(axis=1)  # (w - 1,)
            log_posterior[c] = np.log(prior[c] + 1e-300) + evidence
            log_posterior[c, 1:] += np.cumsum(seen)
        return paths, log_posterior


def _pick(probabilities: Floats, tokens: Tokens) -> Floats:
    """Probabilities (w, b, V) of the tokens (w, b)."""
    picked: Floats = np.take_along_axis(probabilities, tokens[..., None], axis=2)[..., 0]
    return picked
