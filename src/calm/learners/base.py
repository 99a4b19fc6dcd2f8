"""What a learner is: something that predicts a batch, and only then learns from it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]
State = dict[str, NDArray[Any]]


class Learner(ABC):
    """The interface of every learner; constructed as `Class(vocabulary=V, seed=S, **options)`.

    w is the window, b the rows, V the vocabulary; arrays that come in are read-only. `sizes` names
    bundles of options, for `--size`. An `oracle` knows what no contender may: it is marked
    wherever results are shown, and its constructor is also handed the `stream`.
    """

    oracle: ClassVar[bool] = False
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @abstractmethod
    def predict(self, inputs: Tokens) -> Any:
        """Log-probabilities of the next token at every position: (w, b) -> (w, b, V).

        A numpy array or a torch tensor. The prediction at position j may depend on inputs up to j
        and on batches learned before, and predicting leaves no trace.
        """

    @abstractmethod
    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Learn from the batch just predicted, both of shape (w, b), and move on past it."""

    @abstractmethod
    def read(self, inputs: Tokens) -> None:
        """Move on past inputs (w, b) without learning: what generating text needs.

        A learner that keeps nothing of a row's past has nothing to do here.
        """

    @abstractmethod
    def state(self) -> State:
        """Everything that changes while learning, as named arrays."""

    @abstractmethod
    def load_state(self, state: State) -> None:
        """Go on exactly as the learner that the state was taken from."""


class InformedLearner(Learner):
    """An oracle that is told the class of every batch before it predicts."""

    @abstractmethod
    def tell(self, class_index: int) -> None:
        """Hear the class of the batch to come."""


class GatedLearner(Learner):
    """A learner that weighs several experts; the weights are recorded with every batch."""

    @abstractmethod
    def gate_weights(self) -> NDArray[np.float64] | None:
        """What each expert counted in the last prediction, (n,); None if it is always the same."""
