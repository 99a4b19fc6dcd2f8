"""Where the weights of the experts come from.

Weights are raw: the combination knows whether they count as they are or through a softmax.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calm.learners.neural.combination import Combination, Product, chunks, weigh
from calm.learners.neural.recurrence import lstm_layer

BETAS, EPSILON = (0.9, 0.999), 1e-8  # of Adam

State = list[Tensor]


class Gate(nn.Module, ABC):
    """Weights for n experts; parameters are trained along with the experts, buffers only kept."""

    @abstractmethod
    def initialise(self, source: torch.Generator) -> None:
        """Draw what is random."""

    @abstractmethod
    def weights(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Tokens (w, b) -> weights (n,) or (w·b, n), and what runs on to the next window."""

    @abstractmethod
    def adapt(self, logits: Tensor, targets: Tensor) -> None:
        """Fit the weights to a batch whose logits (n, w·b, V) are held fixed."""


class FixedGate(Gate):
    """All experts count alike, always."""

    def __init__(self, experts: int, combination: Combination) -> None:
        super().__init__()
        self._combination = combination
        self.w = nn.Buffer(torch.empty(experts))

    def initialise(self, source: torch.Generator) -> None:
        """Nothing is random."""
        self.w.copy_(self._combination.even(len(self.w)))

    def weights(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The same weights (n,) everywhere."""
        return self.w, []

    def adapt(self, logits: Tensor, targets: Tensor) -> None:
        """Nothing adapts."""


class LSTMGate(Gate):
    """A small LSTM over the tokens gives weights for every position; without biases."""

    def __init__(
        self, experts: int, vocabulary: int, hidden: int, embedding: int, softmax: bool
    ) -> None:
        super().__init__()
        self._softmax = softmax
        self.embedding = nn.Parameter(torch.empty(vocabulary, embedding))
        self.w_in = nn.Parameter(torch.empty(1, embedding, 4 * hidden))
        self.w_rec = nn.Parameter(torch.empty(1, hidden, 4 * hidden))
        self.decoder = nn.Parameter(torch.empty(hidden, experts))

    def initialise(self, source: torch.Generator) -> None:
        """Embedding and decoder uniform ±0.1, the LSTM uniform ±1/√H."""
        for weights in (self.embedding, self.decoder):
            nn.init.uniform_(weights, -0.1, 0.1, generator=source)
        bound = self.w_rec.shape[1] ** -0.5
        for weights in (self.w_in, self.w_rec):
            nn.init.uniform_(weights, -bound, bound, generator=source)

    def weights(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Weights (w·b, n); the hidden state runs on."""
        zeros = self.w_in.new_zeros(1, x.shape[1], self.w_rec.shape[1])
        before = (state[0], state[1]) if state else (zeros, zeros)
        bias = self.w_in.new_zeros(1, self.w_in.shape[2])
        y = F.embedding(x, self.embedding)[None]
        y, after = lstm_layer(y, before, self.w_in, self.w_rec, bias, torch.float32)
        weights = y.flatten(0, 2) @ self.decoder
        return (weights.softmax(dim=-1) if self._softmax else weights), list(after)

    def adapt(self, logits: Tensor, targets: Tensor) -> None:
        """It learns by the experts' gradient steps."""


class PlasticGate(Gate):
    """Weights of their own, fitted by `steps` Adam steps to every batch, after the experts."""

    def __init__(
        self, experts: int, combination: Combination, steps: int, learning_rate: float
    ) -> None:
        super().__init__()
        self._combination, self._steps = combination, steps
        self._learning_rate = learning_rate
        self.w = nn.Buffer(torch.empty(experts))
        self.mean = nn.Buffer(torch.empty(experts))
        self.square = nn.Buffer(torch.empty(experts))
        self.count = nn.Buffer(torch.empty(()))

    def initialise(self, source: torch.Generator) -> None:
        """Uniform ±0.1."""
        self.w.uniform_(-0.1, 0.1, generator=source)
        for moment in (self.mean, self.square, self.count):
            moment.zero_()

    def weights(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The weights (n,) as they are."""
        return self.w, []

    @torch.no_grad()
    def adapt(self, logits: Tensor, targets: Tensor) -> None:
        """Take the steps."""
        slope = self._combination.slope(logits, targets)
        for _ in range(self._steps):
            gradient = slope(self.w)
            self.count.add_(1)
            self.mean.lerp_(gradient, 1 - BETAS[0])
            self.square.lerp_(gradient.square(), 1 - BETAS[1])
            mean = self.mean / (1 - BETAS[0] ** self.count)
            square = self.square / (1 - BETAS[1] ** self.count)
            self.w.sub_(self._learning_rate * mean / (square.sqrt() + EPSILON))


class NewtonGate(Gate):
    """Weights of a product that minimise the last batch's loss, near where they were before.

    The loss is convex in w. To it comes a pull of (proximity / 2) |w - w_before|²; Newton steps,
    halved until the sum falls, go to its minimum.
    """

    STEPS, HALVINGS = 10, 12
    ENOUGH = 1e-7  # a step that promises less than this is not taken

    def __init__(self, experts: int, combination: Combination, proximity: float) -> None:
        super().__init__()
        if not isinstance(combination, Product):
            raise ValueError("gate newton needs combination product, whose loss is convex in w")
        if proximity <= 0:
            raise ValueError("proximity is above 0")
        self._proximity = proximity
        self.w = nn.Buffer(torch.empty(experts))

    def initialise(self, source: torch.Generator) -> None:
        """Uniform ±0.1, as plastic gates."""
        self.w.uniform_(-0.1, 0.1, generator=source)

    def weights(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The weights (n,) as they are."""
        return self.w, []

    @torch.no_grad()
    def adapt(self, logits: Tensor, targets: Tensor) -> None:
        """Go to the minimum."""
        before, w = self.w.clone(), self.w.clone()
        value = _loss(logits, targets, w)
        for _ in range(self.STEPS):
            gradient, hessian = _curvature(logits, targets, w)
            gradient += self._proximity * (w - before)
            hessian.diagonal().add_(self._proximity)
            step = torch.linalg.solve(hessian, gradient)
            promised = float(gradient @ step)
            if promised < self.ENOUGH:
                break
            size = 1.0
            for _ in range(self.HALVINGS):
                candidate = w - size * step
                pull = self._proximity / 2 * float((candidate - before).square().sum())
                found = _loss(logits, targets, candidate) + pull
                if found <= value - 1e-4 * size * promised:
                    break
                size /= 2
            else:
                break
            w, value = candidate, found
        self.w.copy_(w)


def _loss(logits: Tensor, targets: Tensor, w: Tensor) -> float:
    parts = chunks(logits, targets)
    total = sum(F.cross_entropy(weigh(part, w), y, reduction="sum") for part, y in parts)
    return float(total) / len(targets)


def _curvature(logits: Tensor, targets: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Gradient (n,) and Hessian (n, n) of a product's loss: the experts' mean and covariance."""
    gradient, hessian = torch.zeros_like(w), w.new_zeros(len(w), len(w))
    for part, wanted in chunks(logits, targets):
        each = part.transpose(0, 1)  # (positions, n, V)
        weighted = each * weigh(part, w).softmax(dim=-1)[:, None]
        mean = weighted.sum(dim=-1)  # (positions, n)
        hessian += torch.einsum("piv,pjv->ij", weighted, each) - mean.T @ mean
        gradient += (mean - each[torch.arange(len(wanted)), :, wanted]).sum(dim=0)
    return gradient / len(targets), hessian / len(targets)
