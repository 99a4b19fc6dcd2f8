"""Mixture of softmaxes: one LSTM, several softmaxes, mixed anew at every position."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from calm.learners.neural.bank import Decoder, LSTMStack
from calm.learners.neural.combination import Mixture
from calm.learners.neural.dropout import drop
from calm.learners.neural.online import Device, Neural, Precision, Schedule, WholeNetwork


@dataclass
class Mixed:
    """The softmaxes' logits (K, w·b, V), and the logarithm of their shares, (w·b, K)."""

    logits: Tensor
    prior: Tensor


class SoftmaxesNetwork(WholeNetwork):
    """prior = softmax(W h); latents tanh(W' h), with dropout; one decoder for all of them."""

    def __init__(self, stack: LSTMStack, softmaxes: int, precision: torch.dtype) -> None:
        super().__init__()
        hidden = stack.hidden
        self.stack = stack
        self.prior = nn.Parameter(torch.empty(hidden, softmaxes))
        self.latent = nn.Parameter(torch.empty(hidden, softmaxes * hidden))
        self.latent_bias = nn.Parameter(torch.empty(softmaxes * hidden))
        self.decoder = Decoder(1, hidden, stack.vocabulary)
        self._softmaxes, self._precision = softmaxes, precision
        self._mixture = Mixture()

    def initialise(self, source: torch.Generator) -> None:
        """Prior and latents uniform ±1/√H, the rest as everywhere."""
        self.stack.initialise(source)
        self.decoder.initialise(source)
        bound = self.stack.hidden**-0.5
        for weights in (self.prior, self.latent, self.latent_bias):
            nn.init.uniform_(weights, -bound, bound, generator=source)

    def forward(
        self, x: Tensor, carried: list[Tensor], dropout: torch.Generator | None, step: int
    ) -> tuple[Mixed, list[Tensor]]:
        """The LSTM's state runs on."""
        y, after = self.stack(x, carried, dropout, self._precision)
        kind = y.dtype
        latent = torch.addmm(self.latent_bias.to(kind), y[0], self.latent.to(kind)).tanh()
        latent = drop(latent, self.stack.dropout, dropout)
        positions = latent.view(len(latent), self._softmaxes, -1).transpose(0, 1)
        logits = self.decoder(positions.reshape(1, -1, self.stack.hidden))
        logits = logits.view(self._softmaxes, len(latent), -1)
        return Mixed(logits, y[0].float() @ self.prior), after

    def log_probabilities(self, output: Mixed) -> Tensor:
        """Mix."""
        return self._mixture.log_probabilities(output.logits, output.prior)

    def loss(self, output: Mixed, targets: Tensor) -> Tensor:
        """Of the mixture."""
        return self._mixture.loss(output.logits, output.prior, targets)

    def learning_rate(self, step: int) -> float:
        """The same always."""
        return 1.0


class MixtureOfSoftmaxes(Neural[SoftmaxesNetwork]):
    """One two-layer LSTM with `softmaxes` softmaxes on top of it."""

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        softmaxes: int = 15,
        hidden: int = 250,
        embedding: int = 200,
        dropout: float = 0.2,
        iterations: int = 2,
        learning_rate: float = 1e-3,
        clip: float = 1.0,
        eval_dropout: bool = False,
        device: Device = "cpu",
        precision: Precision = "float32",
    ) -> None:
        if min(softmaxes, hidden, embedding) < 1:
            raise ValueError("softmaxes, hidden and embedding start at 1")

        def build() -> SoftmaxesNetwork:
            stack = LSTMStack(1, vocabulary, embedding, hidden, dropout)
            return SoftmaxesNetwork(stack, softmaxes, getattr(torch, precision))

        super().__init__(
            build,
            Schedule(
                seed, iterations, learning_rate, clip, (0.9, 0.999), eval_dropout, dropout, device
            ),
        )
