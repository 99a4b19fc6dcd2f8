"""Which fragments a stream has: their classes, their lengths, and where their tokens lie."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calm.errors import CalmError
from calm.randomness import Draw

Boundary = Literal["seamless", "paper"]
MOST, LONGEST = 10_000_000, 1e12  # fragments, and their mean length in tokens


@dataclass(frozen=True)
class Plan:
    """The fragments of a stream, all arrays of shape (N,).

    `first_batch[i]` is the batch in which fragment i begins; `position[i]` counts the tokens of the
    class's row that come before the fragment's first target. `used[c]` is how many tokens every
    row takes from class c in all.
    """

    classes: NDArray[np.int64]
    lengths: NDArray[np.int64]
    first_batch: NDArray[np.int64]
    position: NDArray[np.int64]
    used: NDArray[np.int64]


def make_plan(
    class_count: int,
    fragments: int,
    mean_batches: float,
    window: int,
    boundary: Boundary,
    seed: int,
) -> Plan:
    """Deal the classes, draw the lengths, lay the fragments out."""
    classes = np.array(deal_classes(class_count, fragments, Draw("classes", seed)))
    draw = Draw("lengths", seed)
    lengths = np.array([draw_length(mean_batches, draw) for _ in range(fragments)])
    used = np.zeros(class_count, dtype=np.int64)
    position = np.empty(fragments, dtype=np.int64)
    for i, (c, length) in enumerate(zip(classes, lengths, strict=True)):
        if i == 0 or boundary == "paper":
            used[c] += 1  # a token that is only ever an input
        position[i] = used[c]
        used[c] += length * window
    return Plan(classes, lengths, np.cumsum(lengths) - lengths, position, used)


def draw_length(mean_batches: float, draw: Draw) -> int:
    """Draw a fragment's length in batches; the mean is about 1.1 times `mean_batches`."""
    return max(1, round(mean_batches * (0.1 + draw.exponential(limit=10.0))))


def deal_classes(class_count: int, fragments: int, draw: Draw) -> list[int]:
    """Give every class the same number of fragments, in random order, neighbours unlike."""
    if fragments > MOST:
        raise CalmError(f"{fragments:,} fragments are too many: take {MOST:,} at most")
    if fragments < 1 or fragments % class_count:
        lower = max(fragments // class_count, 1) * class_count
        raise CalmError(
            f"{fragments} fragments cannot be dealt evenly to {class_count} classes: "
            f"take a multiple of {class_count}, such as {lower} or {lower + class_count}"
        )
    if class_count == 1 and fragments > 1:
        raise CalmError("a single class never switches: give it 1 fragment, or add a class")
    left = [fragments // class_count] * class_count
    dealt: list[int] = []
    for remaining in range(fragments, 0, -1):
        # A class that makes up more than half of what is left has to come now.
        due = [c for c in range(class_count) if 2 * left[c] > remaining]
        weights = [0 if dealt and c == dealt[-1] else n for c, n in enumerate(left)]
        chosen = due[0] if due else draw.weighted(weights)
        left[chosen] -= 1
        dealt.append(chosen)
    return dealt


def mean_in_batches(mean_length: float, rows: int, window: int) -> float:
    """λ / (b·w), refusing what is not a stream."""
    for name, value in (("rows", rows), ("window", window)):
        if value < 1:
            raise CalmError(f"{name} is {value}: take 1 or more")
    if not 0 < mean_length <= LONGEST:
        raise CalmError(
            f"mean length is {mean_length:g}: take a number of tokens above 0, {LONGEST:g} at most"
        )
    return mean_length / (rows * window)
