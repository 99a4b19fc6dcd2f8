"""Random numbers that are the same on every machine and with every library version.

Python guarantees the stream of `random.Random(seed).random()`; it promises nothing for its other
methods, nor does numpy for its distributions. So everything is derived from that one method.
"""

import math
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A private source of random numbers, named by what it is for: `Draw("stream", seed)`."""

    def __init__(self, *name: object) -> None:
        self._random = random.Random(" ".join(str(part) for part in name))

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def below(self, n: int) -> int:
        """A whole number in 0 … n-1."""
        return int(self.uniform() * n)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, all equally likely."""
        return items[self.below(len(items))]

    def weighted(self, weights: Sequence[float]) -> int:
        """An index, each as likely as its weight says."""
        left = self.uniform() * math.fsum(weights)
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        return max(index for index, weight in enumerate(weights) if weight > 0)

    def exponential(self, limit: float = math.inf) -> float:
        """Exp(1), truncated to [0, limit]."""
        return -math.log1p(self.uniform() * math.expm1(-limit))

    def normal(self) -> float:
        """A standard normal."""
        radius = math.sqrt(2 * self.exponential())
        return radius * math.cos(2 * math.pi * self.uniform())
