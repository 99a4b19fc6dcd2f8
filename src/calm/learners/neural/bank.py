"""A bank of n experts: two-layer LSTMs, trained side by side."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calm.learners.neural.dropout import drop
from calm.learners.neural.recurrence import lstm_layer

LAYERS = 2

State = list[Tensor]  # h, c of the first layer, h, c of the second, each (n, b, H)


class LSTMStack(nn.Module):
    """Embeddings and two LSTM layers for each of n experts; every parameter is (n, …).

    Dropout acts on the embeddings, between the layers and after them.
    """

    def __init__(
        self, experts: int, vocabulary: int, embedding: int, hidden: int, dropout: float
    ) -> None:
        super().__init__()
        self.experts, self.vocabulary, self.hidden = experts, vocabulary, hidden
        self.dropout = dropout
        self.embedding = nn.Parameter(torch.empty(experts, vocabulary, embedding))
        sizes = [embedding, *[hidden] * (LAYERS - 1)]
        self.w_in = nn.ParameterList(torch.empty(experts, size, 4 * hidden) for size in sizes)
        self.w_rec = nn.ParameterList(torch.empty(experts, hidden, 4 * hidden) for _ in sizes)
        self.bias = nn.ParameterList(torch.empty(experts, 4 * hidden) for _ in sizes)

    def initialise(self, source: torch.Generator) -> None:
        """Embeddings uniform ±0.1, all else uniform ±1/√H; a bias is the sum of two such draws."""
        nn.init.uniform_(self.embedding, -0.1, 0.1, generator=source)
        bound = self.hidden**-0.5
        for weights in (*self.w_in, *self.w_rec):
            nn.init.uniform_(weights, -bound, bound, generator=source)
        with torch.no_grad():
            for bias in self.bias:
                second = torch.empty_like(bias).uniform_(-bound, bound, generator=source)
                bias.uniform_(-bound, bound, generator=source).add_(second)

    def forward(
        self, x: Tensor, state: State, dropout: torch.Generator | None, precision: torch.dtype
    ) -> tuple[Tensor, State]:
        """Tokens (w, b) -> the upper layer's outputs (n, w·b, H), and the state after them.

        An empty state is all zeros; without a source there is no dropout.
        """
        w, b = x.shape
        offsets = torch.arange(self.experts, device=x.device) * self.vocabulary
        y = F.embedding(x + offsets[:, None, None], self.embedding.flatten(0, 1)).to(precision)
        y = drop(y, self.dropout, dropout)
        if not state:
            state = [y.new_zeros(self.experts, b, self.hidden, dtype=torch.float32)] * 2 * LAYERS
        after: State = []
        for layer in range(LAYERS):
            before = (state[2 * layer], state[2 * layer + 1])
            weights = self.w_in[layer], self.w_rec[layer], self.bias[layer]
            y, (h, c) = lstm_layer(y, before, *weights, precision)
            y = drop(y, self.dropout, dropout)
            after += [h, c]
        return y.reshape(self.experts, w * b, self.hidden), after


class Decoder(nn.Module):
    """From outputs to logits, for each of n experts."""

    def __init__(self, experts: int, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(experts, hidden, vocabulary))
        self.bias = nn.Parameter(torch.empty(experts, vocabulary))

    def initialise(self, source: torch.Generator) -> None:
        """Weights uniform ±0.1, biases 0."""
        nn.init.uniform_(self.weight, -0.1, 0.1, generator=source)
        nn.init.zeros_(self.bias)

    def forward(self, y: Tensor) -> Tensor:
        """(n, positions, H) -> (n, positions, V), in the precision of `y`."""
        return torch.baddbmm(self.bias.to(y.dtype)[:, None], y, self.weight.to(y.dtype))


def clip_each(parameters: list[nn.Parameter], limit: float) -> None:
    """Scale the gradient of every expert, over all parameters (n, …), to a norm of `limit`."""
    gradients = [p.grad.flatten(1) for p in parameters if p.grad is not None]
    norms = torch.stack([torch.linalg.vector_norm(g, dim=1) for g in gradients]).norm(dim=0)
    scale = limit / (norms + 1e-6)
    if bool((scale < 1).any()):
        for gradient in gradients:
            gradient.mul_(scale.clamp(max=1)[:, None])
