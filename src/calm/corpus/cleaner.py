"""What is kept of a text: the rules of one level, applied in two passes over blocks of lines.

A block is UTF-8 text of whole lines, each ended by a line feed.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calm.corpus.base import Level, Tokens

Block = NDArray[np.uint8]


@dataclass(frozen=True)
class Encoded:
    """A block after cleaning: its tokens, how many of them each kept line has, what was dropped."""

    tokens: Tokens
    line_lengths: NDArray[np.int32]
    dropped_lines: int
    dropped_tokens: int


class Cleaner(ABC):
    """Counts every block, settles on a vocabulary, then encodes every block."""

    level: Level

    @abstractmethod
    def count(self, class_index: int, block: Block) -> None:
        """First pass: count what a class's block holds."""

    @abstractmethod
    def settle(self, class_count: int) -> tuple[str, ...]:
        """Between the passes: choose the vocabulary."""

    @abstractmethod
    def encode(self, class_index: int, block: Block) -> Encoded:
        """Second pass: encode a class's block; may run in several threads at once."""

    @abstractmethod
    def rules(self) -> dict[str, Any]:
        """Return the parameters, as plain data."""


def token_type(vocabulary: int) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds every token."""
    return np.dtype(np.min_scalar_type(max(vocabulary - 1, 0)))
