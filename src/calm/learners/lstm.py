"""One large LSTM, trained online: the paper's simplest neural learner."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from calm.learners.base import Learner, State, Tokens

Hidden = list[tuple[Tensor, Tensor]]  # per layer (h, c), each (1, b, H)
LAYERS = 2


class LSTM(Learner):
    """Embedding, two LSTM layers, decoder; one or more Adam steps a batch.

    The hidden state runs on from batch to batch, detached. With several `iterations` a batch, each
    starts from the same hidden state and that of the last is carried on. Dropout acts on the
    embeddings, between the layers and before the decoder; predictions are made without it unless
    `eval_dropout`, which scores the training pass as the paper's code did.
    """

    sizes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"hidden": 96, "embedding": 48, "dropout": 0.0, "learning_rate": 4e-3},
        "small": {"hidden": 360},
        "paper": {"hidden": 1300},
    }

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        hidden: int = 360,
        embedding: int = 200,
        dropout: float = 0.2,
        iterations: int = 2,
        learning_rate: float = 1e-3,
        clip: float = 1.0,
        eval_dropout: bool = False,
    ) -> None:
        if min(hidden, embedding, iterations) < 1 or not 0 <= dropout < 1:
            raise ValueError("hidden, embedding, iterations start at 1, dropout is in [0, 1)")
        self._seed = seed
        self._iterations = iterations
        self._clip = clip
        self._eval_dropout = eval_dropout
        with torch.device("meta"):  # or the modules would initialise themselves, by a global draw
            self.model = Network(vocabulary, hidden, embedding, dropout)
        self.model.to_empty(device="cpu").initialise(_generator(seed))
        self._optimiser = torch.optim.Adam(self.model.parameters(), lr=learning_rate, fused=True)
        self._hidden: Hidden | None = None
        self._step = 0

    def predict(self, inputs: Tokens) -> NDArray[np.float32]:
        """(w, b) -> log-probabilities (w, b, V)."""
        dropout = self._dropout_source(iteration=0) if self._eval_dropout else None
        with torch.no_grad():
            logits, _ = self.model(torch.tensor(inputs), self._hidden, dropout)
            result: NDArray[np.float32] = F.log_softmax(logits, dim=-1).numpy()
        return result

    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Take `iterations` gradient steps on the batch, then carry the hidden state on."""
        x, y = torch.tensor(inputs), torch.tensor(targets)
        hidden: Hidden = []
        for iteration in range(self._iterations):
            logits, hidden = self.model(x, self._hidden, self._dropout_source(iteration))
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.model.parameters(), self._clip)
            self._optimiser.step()
        self._hidden = [(h.detach(), c.detach()) for h, c in hidden]
        self._step += 1

    def read(self, inputs: Tokens) -> None:
        """Carry the hidden state past the inputs (w, b)."""
        with torch.no_grad():
            _, self._hidden = self.model(torch.tensor(inputs), self._hidden, None)

    def state(self) -> State:
        """Weights, Adam's moments, hidden state, and the step, from which all dropout follows."""
        tensors: dict[str, Tensor] = {
            f"model.{name}": p for name, p in self.model.named_parameters()
        }
        for i, slots in self._optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{i}.{name}": value for name, value in slots.items()}
        for i, (h, c) in enumerate(self._hidden or []):
            tensors |= {f"hidden.{i}.h": h, f"hidden.{i}.c": c}
        arrays = {name: tensor.detach().numpy().copy() for name, tensor in tensors.items()}
        return {**arrays, "step": np.array(self._step)}

    def load_state(self, state: State) -> None:
        """Restore all of it."""
        tensors = {name: torch.tensor(array) for name, array in state.items()}
        self._step = int(state["step"])
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[f"model.{name}"])
        adam: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("adam."):
                _, i, slot = name.split(".")
                adam.setdefault(int(i), {})[slot] = tensor
        self._optimiser.load_state_dict({**self._optimiser.state_dict(), "state": adam})
        self._hidden = None
        if "hidden.0.h" in tensors:
            self._hidden = [
                (tensors[f"hidden.{i}.h"], tensors[f"hidden.{i}.c"]) for i in range(LAYERS)
            ]

    def _dropout_source(self, iteration: int) -> torch.Generator:
        """Dropout masks depend on seed, step and iteration alone: predicting draws nothing."""
        return _generator(self._seed, self._step, iteration)


class Network(nn.Module):
    """Tokens (w, b) -> logits (w, b, V)."""

    def __init__(self, vocabulary: int, hidden: int, embedding: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.layers = nn.ModuleList(
            nn.LSTM(embedding if i == 0 else hidden, hidden) for i in range(LAYERS)
        )
        self.decoder = nn.Linear(hidden, vocabulary)
        self.dropout = dropout

    def initialise(self, generator: torch.Generator) -> None:
        """Embedding and decoder uniform ±0.1, decoder bias 0, LSTM weights uniform ±1/√H."""
        for name, parameter in self.named_parameters():
            bound = self.decoder.in_features**-0.5 if name.startswith("layers") else 0.1
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        nn.init.zeros_(self.decoder.bias)

    def forward(
        self, x: Tensor, hidden: Hidden | None, dropout: torch.Generator | None
    ) -> tuple[Tensor, Hidden]:
        """Logits and the hidden state after the window; without a dropout source, no dropout."""
        after: Hidden = []
        y = self._drop(self.embedding(x), dropout)
        for i, layer in enumerate(self.layers):
            y, state = layer(y, hidden[i] if hidden else None)
            y = self._drop(y, dropout)
            after.append(state)
        return self.decoder(y), after

    def _drop(self, y: Tensor, generator: torch.Generator | None) -> Tensor:
        if generator is None or self.dropout == 0:
            return y
        keep = torch.empty_like(y).bernoulli_(1 - self.dropout, generator=generator)
        return y * keep / (1 - self.dropout)


def _generator(*key: int) -> torch.Generator:
    """Make a private generator for a key of whole numbers."""
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))
