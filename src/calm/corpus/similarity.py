"""How alike the classes of a corpora set are, by what they are written with."""

import numpy as np
from numpy.typing import NDArray

from calm.corpus.base import Corpora


def ngram_overlap(corpora: Corpora, n: int = 3, tokens: int = 100_000) -> NDArray[np.float64]:
    """Share of n-grams that two classes have in common, (classes, classes): 1 for equal texts.

    It is the sum over n-grams of the smaller of their two relative frequencies, measured on the
    first `tokens` of every class.
    """
    size = len(corpora.vocabulary)
    shares = []
    for c in range(len(corpora.classes)):
        first, end = corpora.extent(c, "all")
        text = corpora.tokens(c, first, min(first + tokens, end)).astype(np.int64)
        grams = sum(text[i : len(text) - n + 1 + i] * size ** (n - 1 - i) for i in range(n))
        keys, counts = np.unique(grams, return_counts=True)
        shares.append(dict(zip(keys.tolist(), (counts / counts.sum()).tolist(), strict=True)))
    return np.array(
        [[sum(min(x, b.get(k, 0.0)) for k, x in a.items()) for b in shares] for a in shares]
    )
