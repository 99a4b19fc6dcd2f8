"""What a corpora set is like: sizes, coverage, how alike its classes are, samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calm.corpus.base import Corpora
from calm.corpus.store import StoredCorpora
from calm.corpus.vocabulary import UNKNOWN
from calm.randomness import Draw

MEASURED = 1_000_000  # tokens of a class that are looked at when a set has no counts of its own


@dataclass(frozen=True)
class ClassDescription:
    """Tokens in each half, symbols used, the few that make 99 % of the text, unknown words."""

    name: str
    dev: int
    test: int
    symbols: int
    symbols_of_99_percent: int
    unknown: float


def symbol_counts(corpora: Corpora) -> NDArray[np.int64]:
    """Return how often every class has every symbol, (classes, V)."""
    if isinstance(corpora, StoredCorpora):
        return corpora.counts()
    return np.array(
        [
            np.bincount(
                corpora.tokens(c, 0, min(corpora.bounds(c)[1], MEASURED)),
                minlength=len(corpora.vocabulary),
            )
            for c in range(len(corpora.classes))
        ]
    )


def describe(corpora: Corpora) -> list[ClassDescription]:
    """Describe every class."""
    unknown = corpora.vocabulary.index(UNKNOWN) if UNKNOWN in corpora.vocabulary else None
    rows = []
    for c, counts in enumerate(symbol_counts(corpora)):
        half, end = corpora.bounds(c)
        share = np.cumsum(np.sort(counts)[::-1]) / counts.sum()
        rows.append(
            ClassDescription(
                corpora.classes[c],
                half,
                end - half,
                int(np.count_nonzero(counts)),
                int(np.searchsorted(share, 0.99)) + 1,
                0.0 if unknown is None else float(counts[unknown] / counts.sum()),
            )
        )
    return rows


def symbol_overlap(corpora: Corpora) -> NDArray[np.float64]:
    """Share of symbols that two classes have in common, (classes, classes): 1 for equal shares.

    It is the sum over symbols of the smaller of their two relative frequencies.
    """
    counts = symbol_counts(corpora)
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.array([[np.minimum(a, b).sum() for b in shares] for a in shares])


def sample(corpora: Corpora, class_index: int, length: int, seed: int = 0) -> str:
    """Return some text from a class's test half, from where a line begins if that is known."""
    first, end = corpora.extent(class_index, "test")
    draw = Draw("sample", corpora.classes[class_index], seed)
    if isinstance(corpora, StoredCorpora):
        ends = corpora.line_ends(class_index, "test")
        starts = ends[: np.searchsorted(ends, end - first - length, side="right")]
        place = draw.below(len(starts) + 1)
        start = first + (int(starts[place - 1]) if place else 0)
    else:
        places = max(end - first - length, 0) // corpora.entry + 1
        start = first + draw.below(places) * corpora.entry
    return corpora.text(corpora.tokens(class_index, start, min(start + length, end)))
