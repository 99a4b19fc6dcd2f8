"""The numbers of the benchmark: pure functions of what a run recorded.

Only fragments of the second half of the stream count. A `return` is a counted fragment, not the
last one, whose class already occurred among the counted ones: only there can forgetting show.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_SWITCH = 10  # batches of a return that count for ppl@sw
CURVE = 15  # batches of the post-switch curve

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Records:
    """What a run recorded, a value per batch (batches,), and how many fragments the stream has."""

    fragment: NDArray[np.int64]
    class_name: NDArray[np.str_]
    loss: Floats
    fragments: int


@dataclass(frozen=True)
class Scores:
    """Perplexity overall and after a switch, and batches until recovered; nan if undefined."""

    ppl: float
    ppl_at_switch: float
    recovery: float


@dataclass(frozen=True)
class Result(Scores):
    """The scores of a run, the same per class, and the mean loss 1 … 15 batches after a switch."""

    bits: float
    per_class: dict[str, Scores]
    curve: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data; what is undefined is None."""
        data: dict[str, Any] = plain(asdict(self))
        return data


@dataclass(frozen=True)
class Fragment:
    """A counted fragment: its class, its losses, its class's mean loss the last time, if any."""

    class_name: str
    losses: Floats
    previous_mean: float | None

    @property
    def at_switch(self) -> float:
        """Mean loss of the first batches."""
        return float(self.losses[:AT_SWITCH].mean())

    @property
    def recovery(self) -> int:
        """How many batches pass before the loss is below the class's mean of the last time."""
        assert self.previous_mean is not None
        below = np.flatnonzero(self.losses < self.previous_mean)
        return int(below[0]) if below.size else len(self.losses)


def measure(records: Records) -> Result:
    """All metrics of a run."""
    counted = list(counted_fragments(records))
    returns = [f for f in counted[:-1] if f.previous_mean is not None]
    overall = _scores(counted, returns)
    per_class = {
        name: _scores(
            [f for f in counted if f.class_name == name],
            [f for f in returns if f.class_name == name],
        )
        for name in sorted({f.class_name for f in counted})
    }
    return Result(
        **asdict(overall),
        bits=math.log2(overall.ppl),
        per_class=per_class,
        curve=tuple(
            _mean([f.losses[i] for f in returns if i < len(f.losses)]) for i in range(CURVE)
        ),
    )


def counted_fragments(records: Records) -> Iterator[Fragment]:
    """Yield the fragments of the second half, in order."""
    last_mean: dict[str, float] = {}
    edges = np.flatnonzero(np.diff(records.fragment)) + 1
    for losses, numbers, names in zip(
        np.split(records.loss, edges),
        np.split(records.fragment, edges),
        np.split(records.class_name, edges),
        strict=True,
    ):
        if len(losses) and 2 * numbers[0] >= records.fragments:
            name = str(names[0])
            yield Fragment(name, losses, last_mean.get(name))
            last_mean[name] = float(losses.mean())


def fragment_means(records: Records) -> list[float]:
    """Mean loss of every fragment, counted or not."""
    edges = np.flatnonzero(np.diff(records.fragment)) + 1
    return [float(losses.mean()) for losses in np.split(records.loss, edges)]


@dataclass(frozen=True)
class Summary:
    """A number over several seeds: mean, standard deviation, half-width of its 95 % interval."""

    mean: float
    deviation: float
    interval: float
    seeds: int


def summarise(values: Sequence[float]) -> Summary:
    """Mean over seeds; deviation and Student's interval are nan for one seed, or without end."""
    n = len(values)
    mean = _mean(values)
    if n < 2 or not math.isfinite(mean):
        return Summary(mean, math.nan, math.nan, n)
    deviation = float(np.std(values, ddof=1))
    return Summary(mean, deviation, student_975(n - 1) * deviation / math.sqrt(n), n)


def student_975(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t, by bisection."""
    low, high = 0.0, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_within(middle, degrees) < 0.95 else (low, middle)
    return high


def student_within(t: float, degrees: int) -> float:
    """Return the probability that Student's t lies between -t and t.

    For whole degrees of freedom that is a finite sum in the angle atan(t / sqrt(degrees)).
    """
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= cosine**2 * k / (k + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def _scores(counted: Sequence[Fragment], returns: Sequence[Fragment]) -> Scores:
    batches = sum(len(f.losses) for f in counted)
    total = math.fsum(loss for f in counted for loss in f.losses)
    return Scores(
        ppl=perplexity(total / batches if batches else math.nan),
        ppl_at_switch=perplexity(_mean([f.at_switch for f in returns])),
        recovery=_mean([f.recovery for f in returns]),
    )


def perplexity(loss: float) -> float:
    """exp(loss), infinite where that overflows."""
    return math.inf if loss > 709 else math.exp(loss)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def plain(value: Any) -> Any:
    """Make what is undefined None, however deep it is, as JSON knows no nan."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
