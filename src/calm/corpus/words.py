"""Word level: the most frequent words of every class are the vocabulary, the rest is `<unk>`.

A word is what stands between white space, as Python's `str.split` sees it; line ends are no tokens.
"""

import heapq
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from calm.corpus.base import Level
from calm.corpus.cleaner import Block, Cleaner, Encoded, token_type
from calm.corpus.vocabulary import UNKNOWN
from calm.corpus.wordtable import WordTable

SMALL, LARGE = 1 << 16, 1 << 20  # words a table has room for, at first and at most
LETTERS = 12  # a word, on average


class Words(Cleaner):
    """Keeps the `top` most frequent words of every class; equally frequent ones by their letters.

    The vocabulary is `<unk>`, then the words by how often they occur in the classes that keep them.
    """

    level: Level = "word"

    def __init__(self, top: int, work: Path) -> None:
        self._top, self._work = top, work
        self._counts: dict[int, WordCounts] = {}
        self._current = -1
        self._table = WordTable(1, 1)
        self._type = token_type(1)

    def count(self, class_index: int, block: Block) -> None:
        """Count the block's words."""
        if class_index != self._current and self._current >= 0:
            self._counts[self._current].spill()  # one class at a time is in memory
        self._current = class_index
        if class_index not in self._counts:
            self._counts[class_index] = WordCounts(self._work / f"words-{class_index}")
        self._counts[class_index].add(block)

    def settle(self, class_count: int) -> tuple[str, ...]:
        """Merge the classes' most frequent words."""
        total: Counter[bytes] = Counter()
        for counts in self._counts.values():
            frequent = dict(counts.most_frequent(self._top + 1))
            frequent.pop(UNKNOWN.encode(), None)
            total.update(dict(islice(frequent.items(), self._top)))
        self._counts.clear()
        ordered = sorted(total, key=lambda word: (-total[word], word))
        letters = np.frombuffer(b"\n".join([UNKNOWN.encode(), *ordered]), dtype=np.uint8)
        self._table = WordTable(len(ordered) + 1, len(letters))
        self._table.count(letters, 0)
        self._type = token_type(len(ordered) + 1)
        return (UNKNOWN, *(word.decode() for word in ordered))

    def encode(self, class_index: int, block: Block) -> Encoded:
        """Encode the block; nothing is dropped, but some words are unknown."""
        tokens = np.empty(len(block) // 2 + 1, dtype=self._type)
        lengths = np.empty(int(np.count_nonzero(block == ord("\n"))), dtype=np.int32)
        size = self._table.encode(block, tokens, lengths)
        return Encoded(tokens[:size], lengths, 0, 0)

    def rules(self) -> dict[str, Any]:
        """Return how many words of a class are kept."""
        return {"top": self._top}


class WordCounts:
    """How often every word of a text occurs, in bounded memory.

    When the table is full its words go to a file in the folder `work`, sorted; in the end the
    files are merged. So the counts are exact, whatever the size of the text.
    """

    def __init__(self, work: Path) -> None:
        self._table = WordTable(SMALL, LETTERS * SMALL)
        self._work = work
        self._runs: list[Path] = []

    def add(self, block: Block) -> None:
        """Count the words of a block."""
        position = self._table.count(block, 0)
        while position < len(block):
            letters = LETTERS * LARGE + len(block)  # any word of the block will fit
            if len(self._table.counts) < LARGE:
                self._table = self._table.grown(LARGE, letters)
            else:
                self.spill()
                self._table = WordTable(LARGE, letters)
            position = self._table.count(block, position)

    def spill(self) -> None:
        """Move the words to a file."""
        self._work.mkdir(exist_ok=True)
        run = self._work / str(len(self._runs))
        pairs = zip(self._table.words(), self._table.counts.tolist(), strict=False)
        with run.open("wb") as file:
            file.writelines(b"%b %d\n" % pair for pair in sorted(pairs))
        self._runs.append(run)
        self._table = WordTable(SMALL, LETTERS * SMALL)

    def most_frequent(self, top: int) -> list[tuple[bytes, int]]:
        """Return the most frequent words and their counts, the most frequent first."""
        self.spill()
        pairs = heapq.merge(*(_read(run) for run in self._runs), key=itemgetter(0))
        merged = (
            (-sum(count for _, count in same), word)
            for word, same in groupby(pairs, key=itemgetter(0))
        )
        frequent = [(word, -count) for count, word in heapq.nsmallest(top, merged)]
        shutil.rmtree(self._work)
        return frequent


def _read(run: Path) -> Iterator[tuple[bytes, int]]:
    with run.open("rb") as file:
        for line in file:
            word, _, count = line.rpartition(b" ")
            yield word, int(count)
