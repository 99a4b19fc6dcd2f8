"""The training schedule of every neural learner: what happens on each batch, and what is saved."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from calm.learners.base import Learner, State, Tokens
from calm.learners.neural.dropout import generator
from calm.learners.neural.memory import keep_freed_memory
from calm.learners.neural.threads import crew

Precision = Literal["float32", "bfloat16"]
Device = Literal["cpu", "cuda", "auto"]


class Network(nn.Module, ABC):
    """A model that is predicted with and trained, window by window.

    `carried` is what runs on from one window to the next: nothing before the first. `pieces` is how
    many parts can go side by side on a CPU.
    """

    pieces = 1

    @abstractmethod
    def initialise(self, source: torch.Generator) -> None:
        """Draw every parameter."""

    @abstractmethod
    def forward(
        self, x: Tensor, carried: list[Tensor], dropout: torch.Generator | None, step: int
    ) -> tuple[Any, list[Tensor]]:
        """Tokens (w, b) in batch number `step` -> an output, and what to carry on."""

    @abstractmethod
    def log_probabilities(self, output: Any) -> Tensor:
        """From an output, (w·b, V)."""

    @abstractmethod
    def loss(self, output: Any, targets: Tensor) -> Tensor:
        """Mean negative log-likelihood of targets (w·b,)."""

    @abstractmethod
    def clip(self, limit: float) -> None:
        """Bound the gradients."""

    @abstractmethod
    def learning_rate(self, step: int) -> float:
        """Return the rate in batch number `step`, as a share of the highest."""

    @abstractmethod
    def carry(self, carried: list[Tensor]) -> list[Tensor]:
        """Return what is left of it for the next batch, once one is learned."""

    @abstractmethod
    def adapt(self, output: Any, targets: Tensor, step: int) -> None:
        """Fit what is not learned by gradient steps on the loss; after each of those."""


class WholeNetwork(Network, ABC):
    """A network in one piece: clipped and carried on as a whole, and nothing besides is fitted."""

    def clip(self, limit: float) -> None:
        """Bound the norm of the whole gradient."""
        nn.utils.clip_grad_norm_(self.parameters(), limit)

    def carry(self, carried: list[Tensor]) -> list[Tensor]:
        """All of it."""
        return carried

    def adapt(self, output: Any, targets: Tensor, step: int) -> None:
        """Nothing besides."""


@dataclass(frozen=True)
class Schedule:
    """How a network learns; see Neural."""

    seed: int
    iterations: int
    learning_rate: float
    clip: float
    betas: tuple[float, float]
    eval_dropout: bool
    dropout: float
    device: Device


@dataclass
class Pending:
    """A forward pass that made a prediction and may yet serve for learning."""

    inputs: Tokens
    output: Any
    carried: list[Tensor]


N = TypeVar("N", bound=Network)


class Neural(Learner, Generic[N]):
    """Takes one or more Adam steps a batch; what a network carries runs on from batch to batch.

    With several iterations a batch, each starts from what was carried to it, and that of the last
    is carried on. Predictions are made without dropout unless `eval_dropout`, which scores the
    training pass as the paper's code did. The pass that made a prediction serves for the first
    iteration too if it is the same: with `eval_dropout`, or where nothing is dropped.
    """

    def __init__(self, build: Callable[[], N], schedule: Schedule) -> None:
        if schedule.iterations < 1 or not 0 <= schedule.dropout < 1:
            raise ValueError("iterations start at 1, dropout is in [0, 1)")
        if schedule.learning_rate <= 0 or schedule.clip <= 0:
            raise ValueError("learning_rate and clip are above 0")
        keep_freed_memory()
        self._schedule = schedule
        self._device = find_device(schedule.device)
        with torch.device("meta"):  # or the modules would initialise themselves, by a global draw
            network = build()
        network.to_empty(device="cpu").initialise(generator(torch.device("cpu"), schedule.seed))
        self.network = network.to(self._device)
        self._optimiser = torch.optim.Adam(
            self.network.parameters(), lr=schedule.learning_rate, betas=schedule.betas, fused=True
        )
        self._carried: list[Tensor] = []
        self._pending: Pending | None = None
        self._step = 0

    def predict(self, inputs: Tokens) -> Any:
        """(w, b) -> log-probabilities (w, b, V): an array, or a tensor on the GPU."""
        with crew(self.network.pieces):
            return self._predict(inputs)

    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Take the gradient steps and adapt after each, then carry on."""
        with crew(self.network.pieces):
            self._learn(inputs, targets)

    def read(self, inputs: Tokens) -> None:
        """Carry on past the inputs (w, b)."""
        self._pending = None
        with torch.no_grad(), crew(self.network.pieces):
            _, self._carried = self.network(self._move(inputs), self._carried, None, self._step)

    def _predict(self, inputs: Tokens) -> Any:
        self._pending = None
        training = self._schedule.eval_dropout or self._schedule.dropout == 0
        dropout = self._dropout(0) if self._schedule.eval_dropout else None
        with torch.set_grad_enabled(training):
            output, carried = self.network(self._move(inputs), self._carried, dropout, self._step)
        if training:
            self._pending = Pending(inputs.copy(), output, carried)
        with torch.no_grad():
            result = self.network.log_probabilities(output).view(*inputs.shape, -1)
        return result.numpy() if result.device.type == "cpu" else result

    def _learn(self, inputs: Tokens, targets: Tokens) -> None:
        x, y = self._move(inputs), self._move(targets).flatten()
        pending, self._pending = self._pending, None
        carried: list[Tensor] = []
        for iteration in range(self._schedule.iterations):
            if iteration == 0 and pending and np.array_equal(pending.inputs, inputs):
                output, carried = pending.output, pending.carried
            else:
                dropout = self._dropout(iteration)
                output, carried = self.network(x, self._carried, dropout, self._step)
            self._descend(self.network.loss(output, y))
            self.network.adapt(output, y, self._step)
        self._carried = [tensor.detach() for tensor in self.network.carry(carried)]
        self._step += 1

    def state(self) -> State:
        """Everything that changes; the arrays of a CPU are not copies."""
        tensors = {f"network.{name}": t for name, t in self.network.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            for slot, value in self._optimiser.state.get(parameter, {}).items():
                tensors[f"adam.{slot}.{name}"] = value
        tensors |= {f"carried.{i}": tensor for i, tensor in enumerate(self._carried)}
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        return {**arrays, "step": np.array(self._step)}

    def load_state(self, state: State) -> None:
        """Restore all of it."""
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
        self._pending = None
        self._step = int(state["step"])
        self.network.load_state_dict(_below("network.", tensors))
        slots = ("step", "exp_avg", "exp_avg_sq")
        adam = {
            i: {slot: tensors[f"adam.{slot}.{name}"] for slot in slots}
            for i, (name, _) in enumerate(self.network.named_parameters())
            if f"adam.step.{name}" in tensors
        }
        self._optimiser.load_state_dict({**self._optimiser.state_dict(), "state": adam})
        carried = _below("carried.", tensors)
        self._carried = [carried[str(i)].to(self._device) for i in range(len(carried))]

    def _descend(self, loss: Tensor) -> None:
        """Take one clipped Adam step; gradients are gone afterwards, which saves their memory."""
        loss.backward()  # type: ignore[no-untyped-call]
        self.network.clip(self._schedule.clip)
        for group in self._optimiser.param_groups:
            rate = self.network.learning_rate(self._step)
            group["lr"] = self._schedule.learning_rate * rate
        self._optimiser.step()
        self._optimiser.zero_grad()

    def _dropout(self, iteration: int) -> torch.Generator:
        """Masks depend on seed, step and iteration alone: predicting draws nothing."""
        return generator(self._device, self._schedule.seed, self._step, iteration)

    def _move(self, tokens: Tokens) -> Tensor:
        return torch.tensor(tokens, device=self._device)


def find_device(name: Device) -> torch.device:
    """`auto` is the GPU if there is one."""
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise ValueError("device is cuda, but torch sees no GPU: take cpu or auto")
    return torch.device("cuda" if name != "cpu" and there else "cpu")


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
