"""What differs between text in characters and text in words."""

from dataclasses import dataclass

from calm.learners.counts.classes import Patience


@dataclass(frozen=True)
class Level:
    """Settings; see Counts. Classes are told apart by orders low … high."""

    order: int
    class_order: int
    tables: int
    words: bool
    low: int
    high: int
    patience: Patience
    discounts: tuple[float, float, float]
    pairs: int  # rows of weights for the last two symbols, which may share some; 0: none
    recent: float  # share of a cache of recent symbols that is kept from batch to batch; 0: none


LEVELS = {
    "char": Level(8, 6, 8, True, 3, 3, Patience(0.2, 0.45, 0.08), (0.8, 0.9, 1.0), 1 << 14, 0.0),
    "word": Level(3, 2, 0, False, 1, 1, Patience(0.1, 0.3, 0.02), (0.8, 0.9, 1.0), 0, 0.8),
}
