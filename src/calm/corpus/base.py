"""What every corpora set offers: one vocabulary, several classes, tokens at any offset."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[Any]
Level = Literal["char", "word"]
Split = Literal["dev", "test", "all"]
Tell = Callable[[str, int, int], None]  # a work, bytes of it done, of how many (0: unknown)
LEVELS: tuple[Level, ...] = get_args(Level)
SPLITS: tuple[Split, ...] = get_args(Split)


class Corpora(ABC):
    """Several encoded corpora, one per class, under one vocabulary.

    The tokens of class c are numbered 0 … end-1; `dev` is what comes before `half`, `test` the
    rest. Reading is possible only from multiples of `entry` when a text has places where it can be
    entered without its past (1: anywhere).
    """

    name: str
    level: Level
    vocabulary: tuple[str, ...]
    classes: tuple[str, ...]
    entry: int = 1

    def __repr__(self) -> str:
        return f"<Corpora {self.name}: {', '.join(self.classes)}; {self.level} level>"

    @abstractmethod
    def bounds(self, class_index: int) -> tuple[int, int]:
        """Return (half, end): where the class's test half begins, and how many tokens it has."""

    @abstractmethod
    def tokens(self, class_index: int, start: int, stop: int) -> Tokens:
        """Tokens start … stop-1 of a class, unsigned integers of shape (stop - start,)."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash that changes whenever a token or the vocabulary does."""

    def extent(self, class_index: int, split: Split) -> tuple[int, int]:
        """Return (first, last + 1) of a class's tokens in a split."""
        half, end = self.bounds(class_index)
        return {"dev": (0, half), "test": (half, end), "all": (0, end)}[split]

    def text(self, tokens: Tokens) -> str:
        """Spell tokens out."""
        separator = "" if self.level == "char" else " "
        return separator.join(self.vocabulary[token] for token in np.asarray(tokens).tolist())
