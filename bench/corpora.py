"""Random text for benchmarks."""

import numpy as np

from calm.corpus.memory import MemoryCorpora


def random_corpora(vocabulary: int, tokens: int, classes: int = 5) -> MemoryCorpora:
    """Return `classes` classes with so many tokens in the test half, drawn uniformly."""
    draws = np.random.default_rng(0)
    nothing = np.empty(0, dtype=np.int64)
    halves = {f"c{i}": (nothing, draws.integers(0, vocabulary, tokens)) for i in range(classes)}
    return MemoryCorpora("random", "char", [chr(0x4E00 + i) for i in range(vocabulary)], halves)
