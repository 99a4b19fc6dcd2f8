"""One LSTM per class: an oracle that cannot forget, and has nothing to transfer."""

from typing import Any, ClassVar, Protocol

import numpy as np

from calm.learners.base import InformedLearner, State, Tokens
from calm.learners.experts import Experts
from calm.learners.neural.online import Device, Precision


class ClassedStream(Protocol):
    """What this oracle is told of a stream."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""


class IndependentLSTMs(InformedLearner):
    """Each class has an LSTM of its own, with its own optimiser and hidden state."""

    oracle: ClassVar[bool] = True

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        stream: ClassedStream,
        hidden: int = 160,
        embedding: int = 100,
        dropout: float = 0.2,
        iterations: int = 2,
        learning_rate: float = 1e-3,
        clip: float = 1.0,
        eval_dropout: bool = False,
        device: Device = "cpu",
        precision: Precision = "float32",
    ) -> None:
        self.learners = [
            Experts(
                vocabulary, seed + i, hidden=hidden, embedding=embedding, dropout=dropout,
                iterations=iterations, learning_rate=learning_rate, clip=clip,
                eval_dropout=eval_dropout, device=device, precision=precision,
            )
            for i in range(len(stream.classes))
        ]  # fmt: skip
        self._class = 0

    def tell(self, class_index: int) -> None:
        """Hear the class of the batch to come."""
        self._class = class_index

    def predict(self, inputs: Tokens) -> Any:
        """Ask the LSTM of the class: (w, b) -> (w, b, V)."""
        return self.learners[self._class].predict(inputs)

    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Let the LSTM of the class learn."""
        self.learners[self._class].learn(inputs, targets)

    def read(self, inputs: Tokens) -> None:
        """Let the LSTM of the class read."""
        self.learners[self._class].read(inputs)

    def state(self) -> State:
        """All of the LSTMs' states, and the class."""
        states = {
            f"{i}.{name}": array
            for i, learner in enumerate(self.learners)
            for name, array in learner.state().items()
        }
        return {**states, "class": np.array(self._class)}

    def load_state(self, state: State) -> None:
        """Restore them."""
        self._class = int(state["class"])
        for i, learner in enumerate(self.learners):
            prefix = f"{i}."
            learner.load_state(
                {k.removeprefix(prefix): a for k, a in state.items() if k.startswith(prefix)}
            )
