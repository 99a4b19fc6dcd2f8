"""A bank of LSTM experts, a combination and a gate: most of the paper's models are one of these."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calm.learners.base import GatedLearner
from calm.learners.neural.bank import LAYERS, Decoder, LSTMStack, clip_each
from calm.learners.neural.combination import Combination, Mixture, Product
from calm.learners.neural.gates import FixedGate, Gate, LSTMGate, NewtonGate, PlasticGate
from calm.learners.neural.online import Device, Network, Neural, Precision, Schedule

STATES = 2 * LAYERS  # tensors that the experts carry on; behind them come those of the gate
COMBINATIONS: dict[str, type[Combination]] = {"product": Product, "mixture": Mixture}


@dataclass(frozen=True)
class GateOptions:
    """What a gate may need to know; see Experts."""

    kind: str
    steps: int
    learning_rate: float
    proximity: float
    hidden: int
    embedding: int
    softmax: bool


@dataclass
class Combined:
    """The experts' logits (n, w·b, V) and their weights."""

    logits: Tensor
    weights: Tensor


class ExpertNetwork(Network):
    """Experts, a combination and a gate; each is told nothing of how the others work."""

    def __init__(
        self,
        stack: LSTMStack,
        decoder: Decoder,
        combination: Combination,
        gate: Gate,
        warmup: int,
        clear_gate: bool,
        precision: torch.dtype,
    ) -> None:
        super().__init__()
        self.stack, self.decoder, self.gate = stack, decoder, gate
        self._combination, self._warmup = combination, warmup
        self._clear_gate, self._precision = clear_gate, precision
        self.pieces = stack.experts
        self.latest = torch.empty(0)  # raw weights of the last forward pass

    def initialise(self, source: torch.Generator) -> None:
        """Draw every parameter."""
        for part in (self.stack, self.decoder, self.gate):
            part.initialise(source)

    def forward(
        self, x: Tensor, carried: list[Tensor], dropout: torch.Generator | None, step: int
    ) -> tuple[Combined, list[Tensor]]:
        """The experts' state runs on, and the gate's behind it."""
        y, after = self.stack(x, carried[:STATES], dropout, self._precision)
        if step < self._warmup:
            weights = self._combination.even(self.stack.experts).to(x.device)
        else:
            weights, gate_after = self.gate.weights(x, carried[STATES:])
            after += gate_after
        self.latest = weights.detach()
        return Combined(self.decoder(y), weights), after

    def shares(self) -> Tensor:
        """What each expert counted in the last forward pass, (n,); a mean over positions."""
        shares = self._combination.shares(self.latest)
        return shares if shares.dim() == 1 else shares.mean(dim=0)

    def log_probabilities(self, output: Combined) -> Tensor:
        """Combine."""
        return self._combination.log_probabilities(output.logits, output.weights)

    def loss(self, output: Combined, targets: Tensor) -> Tensor:
        """Of the combination; the experts take the weights as they are."""
        return self._combination.loss(output.logits, output.weights, targets)

    def clip(self, limit: float) -> None:
        """Bound the norm of each expert's gradient; the gate's is left alone."""
        clip_each([*self.stack.parameters(), *self.decoder.parameters()], limit)

    def learning_rate(self, step: int) -> float:
        """The same always."""
        return 1.0

    def carry(self, carried: list[Tensor]) -> list[Tensor]:
        """The experts' state, and the gate's unless it is cleared with every batch."""
        return carried[:STATES] if self._clear_gate else carried

    def adapt(self, output: Combined, targets: Tensor, step: int) -> None:
        """Let the gate adapt, once it counts."""
        if step >= self._warmup:
            self.gate.adapt(output.logits.detach(), targets)


def build_gate(
    options: GateOptions, experts: int, vocabulary: int, combination: Combination
) -> Gate:
    """Make the gate of a kind."""
    if options.kind == "plastic":
        return PlasticGate(experts, combination, options.steps, options.learning_rate)
    if options.kind == "newton":
        return NewtonGate(experts, combination, options.proximity)
    if options.kind == "lstm":
        return LSTMGate(experts, vocabulary, options.hidden, options.embedding, options.softmax)
    return FixedGate(experts, combination)


class Experts(Neural[ExpertNetwork], GatedLearner):
    """n LSTMs whose outputs are combined by weights from a gate.

    `combination` is a product or a mixture. `gate`: `fixed` weights 1/n; `plastic` ones, fitted to
    the last batch by `steps` Adam steps after each of the experts'; `newton`, fitted by Newton
    steps and held near where they were by `proximity`; or from an `lstm`, with a softmax on top of
    it if `softmax_gate`, and a state that is cleared every batch if `clear_gate`. In the first
    `warmup` batches all experts count alike.
    """

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        experts: int = 1,
        combination: Literal["product", "mixture"] = "product",
        gate: Literal["fixed", "plastic", "newton", "lstm"] = "fixed",
        hidden: int = 360,
        embedding: int = 200,
        dropout: float = 0.2,
        iterations: int = 2,
        steps: int = 10,
        gate_learning_rate: float = 1e-3,
        proximity: float = 0.1,
        gate_hidden: int = 100,
        gate_embedding: int = 100,
        clear_gate: bool = False,
        softmax_gate: bool = False,
        warmup: int = 0,
        learning_rate: float = 1e-3,
        clip: float = 1.0,
        eval_dropout: bool = False,
        device: Device = "cpu",
        precision: Precision = "float32",
    ) -> None:
        if min(experts, hidden, embedding, gate_hidden, gate_embedding) < 1:
            raise ValueError("experts, hidden and embedding sizes start at 1")
        if min(steps, warmup) < 0 or gate_learning_rate <= 0:
            raise ValueError("steps and warmup start at 0, gate_learning_rate is above 0")
        options = GateOptions(
            gate, steps, gate_learning_rate, proximity, gate_hidden, gate_embedding,
            softmax_gate,
        )  # fmt: skip
        rule = COMBINATIONS[combination]()

        def build() -> ExpertNetwork:
            stack = LSTMStack(experts, vocabulary, embedding, hidden, dropout)
            decoder = Decoder(experts, hidden, vocabulary)
            chosen = build_gate(options, experts, vocabulary, rule)
            return ExpertNetwork(
                stack, decoder, rule, chosen, warmup, clear_gate, getattr(torch, precision)
            )

        super().__init__(
            build,
            Schedule(
                seed, iterations, learning_rate, clip, (0.9, 0.999), eval_dropout, dropout, device
            ),
        )

    def gate_weights(self) -> NDArray[np.float64] | None:
        """What each expert counted in the last prediction, (n,); a mean over positions."""
        if isinstance(self.network.gate, FixedGate):
            return None
        weights: NDArray[np.float64] = self.network.shares().double().cpu().numpy()
        return weights
