"""A causal Transformer over a buffer of each row's last tokens."""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calm.learners.neural.dropout import drop
from calm.learners.neural.online import Device, Neural, Precision, Schedule, WholeNetwork

Decay = Literal["none", "flat", "decay"]


class Block(nn.Module):
    """Attention to what came before, then two layers at every position; each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, y: Tensor, rate: float, dropout: torch.Generator | None) -> Tensor:
        """(b, length, d) -> the same."""
        parts = self.mix(self.before_attention(y)).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)  # (b, heads, length, d / heads) each
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y + drop(self.out(attended.transpose(1, 2).flatten(2)), rate, dropout)
        inner = self.up(self.before_layers(y)).relu()
        return y + drop(self.down(inner), rate, dropout)


class TransformerNetwork(WholeNetwork):
    """Carries the last `context` tokens of every row; only the newest window is predicted."""

    def __init__(
        self, vocabulary: int, width: int, heads: int, layers: int, context: int,
        dropout: float, warmup: int, decay: Decay, precision: torch.dtype,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(vocabulary, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.decoder = nn.Linear(width, vocabulary)
        self._context, self._dropout = context, dropout
        self._warmup, self._decay, self._precision = warmup, decay, precision

    def initialise(self, source: torch.Generator) -> None:
        """Embedding and decoder uniform ±0.1, other matrices Xavier uniform, biases 0."""
        for name, parameter in self.named_parameters():
            if name in ("embedding", "decoder.weight"):
                nn.init.uniform_(parameter, -0.1, 0.1, generator=source)
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter, generator=source)
            else:
                norm = "norm" in name or "before" in name
                nn.init.constant_(parameter, float(norm and name.endswith("weight")))

    def forward(
        self, x: Tensor, carried: list[Tensor], dropout: torch.Generator | None, step: int
    ) -> tuple[Tensor, list[Tensor]]:
        """Logits (w·b, V) of the window, given what the buffer holds; the buffer runs on."""
        tokens = torch.cat([*carried, x])[-max(self._context, len(x)) :]
        width = self.embedding.shape[1]
        y = F.embedding(tokens.T, self.embedding) * math.sqrt(width)
        y = drop(y + positions(len(tokens), width).to(y), self._dropout, dropout)
        device = x.device.type
        with torch.autocast(device, self._precision, self._precision != torch.float32):
            for block in self.blocks:
                y = block(y, self._dropout, dropout)
            logits = self.decoder(self.norm(y[:, -len(x) :])).float()
        return logits.transpose(0, 1).flatten(0, 1), [tokens[-self._context :]]

    def log_probabilities(self, output: Tensor) -> Tensor:
        """Normalise."""
        return F.log_softmax(output, dim=-1)

    def loss(self, output: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy."""
        return F.cross_entropy(output, targets)

    def learning_rate(self, step: int) -> float:
        """Rise linearly over the warm-up; then stay, or fall with the root of the time."""
        if self._decay == "none" or not self._warmup:
            return 1.0
        share = (step + 1) / self._warmup
        return min(share, share**-0.5 if self._decay == "decay" else 1.0)


def positions(length: int, width: int) -> Tensor:
    """Sines and cosines of geometrically falling frequency, (length, width)."""
    place = torch.arange(length)[:, None]
    frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    return torch.stack([torch.sin(place * frequency), torch.cos(place * frequency)], -1).flatten(1)


class Transformer(Neural[TransformerNetwork]):
    """A Transformer that looks at the last `context` tokens of every row.

    `schedule`: the learning rate rises over `warmup` batches and then stays `flat` or falls, as
    `decay`; or there is `none`. `betas` of Adam: those of PyTorch, or of Vaswani et al. (2017).
    """

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        width: int = 192,
        heads: int = 4,
        layers: int = 4,
        context: int = 512,
        dropout: float = 0.2,
        iterations: int = 1,
        learning_rate: float = 1e-3,
        warmup: int = 400,
        schedule: Decay = "flat",
        betas: Literal["default", "vaswani"] = "default",
        clip: float = 1.0,
        eval_dropout: bool = False,
        device: Device = "cpu",
        precision: Precision = "float32",
    ) -> None:
        if min(width, heads, layers, context) < 1 or width % (2 * heads) or warmup < 0:
            raise ValueError("sizes start at 1, warmup at 0; width is a multiple of 2 · heads")

        def build() -> TransformerNetwork:
            return TransformerNetwork(
                vocabulary, width, heads, layers, context, dropout, warmup, schedule,
                getattr(torch, precision),
            )  # fmt: skip

        chosen = (0.9, 0.98) if betas == "vaswani" else (0.9, 0.999)
        super().__init__(
            build,
            Schedule(seed, iterations, learning_rate, clip, chosen, eval_dropout, dropout, device),
        )
