"""How the outputs of n experts become one prediction, given a weight for each.

Logits are (n, positions, V); weights are one for each expert, (n,), or differ from position to
position, (positions, n). A combination does not know where they come from.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from calm.learners.neural import slope

CHUNK = 1 << 22  # numbers that are worked on at a time where memory matters

Slope = Callable[[Tensor], Tensor]  # weights (n,) -> the gradient of the loss, (n,)


class Combination(ABC):
    """A rule; its loss is the mean negative log-likelihood of the targets (positions,)."""

    @abstractmethod
    def even(self, experts: int) -> Tensor:
        """Return the weights of experts that count alike."""

    @abstractmethod
    def shares(self, weights: Tensor) -> Tensor:
        """Return what each expert counts in the end."""

    @abstractmethod
    def log_probabilities(self, logits: Tensor, weights: Tensor) -> Tensor:
        """Predict: (positions, V), in float32."""

    @abstractmethod
    def loss(self, logits: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
        """Return the loss, differentiable."""

    @abstractmethod
    def slope(self, logits: Tensor, targets: Tensor) -> Slope:
        """Return the gradient of the loss as a function of the weights, the logits held fixed."""


class Product(Combination):
    """softmax(Σ w_i ỹ_i): linear in the logits."""

    def even(self, experts: int) -> Tensor:
        """1/n each."""
        return torch.full((experts,), 1 / experts)

    def shares(self, weights: Tensor) -> Tensor:
        """The weights themselves."""
        return weights

    def log_probabilities(self, logits: Tensor, weights: Tensor) -> Tensor:
        """log softmax(Σ w_i ỹ_i)."""
        return F.log_softmax(weigh(logits, weights), dim=-1)

    def loss(self, logits: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy of the weighted sum."""
        return F.cross_entropy(weigh(logits, weights), targets)

    def slope(self, logits: Tensor, targets: Tensor) -> Slope:
        """Mean over positions of E[ỹ_i] - ỹ_i(target)."""
        if slope.applies(logits):
            return partial(slope.product_slope, logits, targets)
        if logits.numel() < slope.LARGE:
            logits = logits.float()  # once, not at every step

        def gradient(weights: Tensor) -> Tensor:
            total = torch.zeros_like(weights)
            for part, wanted in chunks(logits, targets):
                excess = weigh(part, weights).softmax(dim=-1)
                excess[torch.arange(len(wanted)), wanted] -= 1
                total += part.flatten(1) @ excess.flatten()
            return total / len(targets)

        return gradient


class Mixture(Combination):
    """Σ softmax(w)_i softmax(ỹ_i), computed from logarithms."""

    def even(self, experts: int) -> Tensor:
        """0 each, so that their softmax is 1/n."""
        return torch.zeros(experts)

    def shares(self, weights: Tensor) -> Tensor:
        """softmax(w)."""
        return weights.softmax(dim=-1)

    def log_probabilities(self, logits: Tensor, weights: Tensor) -> Tensor:
        """log Σ exp(log softmax(w)_i + log softmax(ỹ_i))."""
        prior = weights.log_softmax(dim=-1).expand(logits.shape[1], -1)
        parts = [
            (F.log_softmax(part, dim=-1) + shares.T[..., None]).logsumexp(dim=0)
            for part, shares in chunks(logits, prior)
        ]
        return torch.cat(parts)

    def loss(self, logits: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
        """Needs of every expert nothing but the likelihood of the targets."""
        return _mixed(self._surprise(logits, targets), weights).mean()

    def slope(self, logits: Tensor, targets: Tensor) -> Slope:
        """By automatic differentiation, of a small function."""
        surprise = self._surprise(logits, targets)

        def gradient(weights: Tensor) -> Tensor:
            with torch.enable_grad():
                w = weights.detach().requires_grad_()
                return torch.autograd.grad(_mixed(surprise, w).mean(), w)[0]

        return gradient

    def _surprise(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Every expert's negative log-likelihood of the targets, (n, positions)."""
        n, positions, _ = logits.shape
        flat = F.cross_entropy(
            logits.flatten(0, 1).float(), targets.expand(n, -1).flatten(), reduction="none"
        )
        return flat.view(n, positions)


def _mixed(surprise: Tensor, weights: Tensor) -> Tensor:
    """Negative log-likelihood of the mixture, (positions,), from that of its experts."""
    prior = weights.log_softmax(dim=-1)
    return -((prior[:, None] if prior.dim() == 1 else prior.T) - surprise).logsumexp(dim=0)


def weigh(logits: Tensor, weights: Tensor) -> Tensor:
    """Σ w_i ỹ_i: (positions, V), in float32."""
    if weights.dim() == 1:
        return (weights @ logits.flatten(1).float()).view(logits.shape[1:])
    return torch.einsum("pi,ipv->pv", weights, logits.float())


def chunks(logits: Tensor, beside: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield logits, in float32, a few positions at a time, with what stands beside them."""
    n, _, vocabulary = logits.shape
    size = max(CHUNK // (n * vocabulary), 1)
    for part, other in zip(
        torch.split(logits, size, dim=1), torch.split(beside, size), strict=True
    ):
        yield part.float(), other
