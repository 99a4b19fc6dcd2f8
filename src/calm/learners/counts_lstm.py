"""A product of counts and an LSTM, which learns what the counts do not know."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from calm.learners.base import GatedLearner, State, Tokens
from calm.learners.counts.learner import Counts
from calm.learners.neural.bank import Decoder, LSTMStack
from calm.learners.neural.online import Device, Neural, Precision, Schedule, WholeNetwork

START = 0.1  # of the decoder's usual weights: the LSTM begins by changing little


@dataclass
class Sum:
    """Logits (w·b, V)."""

    logits: Tensor


class ResidualNetwork(WholeNetwork):
    """An LSTM whose logits are added to log-probabilities that are given, (w·b, V)."""

    def __init__(self, stack: LSTMStack, precision: torch.dtype) -> None:
        super().__init__()
        self.stack = stack
        self.decoder = Decoder(1, stack.hidden, stack.vocabulary)
        self.trust = nn.Parameter(torch.empty(()))
        self.given = torch.empty(0)
        self._precision = precision

    def initialise(self, source: torch.Generator) -> None:
        """Trust what is given as it is."""
        self.stack.initialise(source)
        self.decoder.initialise(source)
        with torch.no_grad():
            self.decoder.weight.mul_(START)
            self.trust.fill_(1)

    def forward(
        self, x: Tensor, carried: list[Tensor], dropout: torch.Generator | None, step: int
    ) -> tuple[Sum, list[Tensor]]:
        """The LSTM's state runs on."""
        y, after = self.stack(x, carried, dropout, self._precision)
        return Sum(self.trust * self.given + self.decoder(y)[0].float()), after

    def log_probabilities(self, output: Sum) -> Tensor:
        """Normalise."""
        return F.log_softmax(output.logits, dim=-1)

    def loss(self, output: Sum, targets: Tensor) -> Tensor:
        """Of the product."""
        return F.cross_entropy(output.logits, targets)

    def learning_rate(self, step: int) -> float:
        """The same always."""
        return 1.0


class CountsLSTM(GatedLearner):
    """`counts`, and a two-layer LSTM trained on the loss of the product of both."""

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        hidden: int = 128,
        embedding: int = 64,
        dropout: float = 0.0,
        iterations: int = 1,
        learning_rate: float = 4e-3,
        clip: float = 1.0,
        memory: float = 4000.0,
        device: Device = "cpu",
        precision: Precision = "float32",
    ) -> None:
        if min(hidden, embedding) < 1:
            raise ValueError("hidden and embedding start at 1")

        def build() -> ResidualNetwork:
            stack = LSTMStack(1, vocabulary, embedding, hidden, dropout)
            return ResidualNetwork(stack, getattr(torch, precision))

        self._counts = Counts(vocabulary, seed, memory=memory)
        self._given_for: Tokens | None = None
        self._lstm = Neural(
            build,
            Schedule(
                seed, iterations, learning_rate, clip, (0.9, 0.999), False, dropout, device
            ),
        )  # fmt: skip

    @property
    def table(self) -> int:
        """The table of counts that the last batch went to."""
        return self._counts.table

    def predict(self, inputs: Tokens) -> NDArray[np.float32]:
        """(w, b) -> log-probabilities (w, b, V)."""
        self._give(inputs)
        prediction: NDArray[np.float32] = self._lstm.predict(inputs)
        return prediction

    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Both learn; the LSTM from what the counts predicted before they do."""
        self._give(inputs)
        self._lstm.learn(inputs, targets)
        self._counts.learn(inputs, targets)
        self._given_for = None

    def read(self, inputs: Tokens) -> None:
        """Both move on."""
        self._give(inputs)
        self._lstm.read(inputs)
        self._counts.read(inputs)
        self._given_for = None

    def gate_weights(self) -> NDArray[np.float64] | None:
        """Return the weights among the counts."""
        return self._counts.gate_weights()

    def state(self) -> State:
        """Everything of both."""
        parts = {"counts": self._counts.state(), "lstm": self._lstm.state()}
        return {f"{part}.{name}": a for part, state in parts.items() for name, a in state.items()}

    def load_state(self, state: State) -> None:
        """Restore both."""
        for part, learner in (("counts.", self._counts), ("lstm.", self._lstm)):
            own = {k.removeprefix(part): a for k, a in state.items() if k.startswith(part)}
            learner.load_state(own)
        self._given_for = None

    def _give(self, inputs: Tokens) -> None:
        """Let the LSTM have what the counts predict, if it has not."""
        if self._given_for is not None and np.array_equal(self._given_for, inputs):
            return
        self._given_for = inputs.copy()
        given = torch.from_numpy(self._counts.predict(inputs)).flatten(0, 1)
        self._lstm.network.given = given.to(self._lstm.network.trust.device)
