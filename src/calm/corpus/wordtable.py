"""A hash table from words to numbers, in compiled code: words are compared, not merely hashed."""

from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from calm.corpus.base import Tokens
from calm.corpus.characters import code_point
from calm.corpus.cleaner import Block

LOAD = 2  # slots per word, at least


class WordTable:
    """Words numbered in the order they came, each with a count; with room for `capacity` of them.

    Letters begin[i] … begin[i + 1] - 1 of the pool are word i. A slot holds the hash of a word
    (0: none) and its number; a word is in the first slot from its hash on that was free.
    """

    def __init__(self, capacity: int, letters: int) -> None:
        self.size = 0
        self.counts = np.zeros(capacity, dtype=np.int64)
        self._begin = np.zeros(capacity + 1, dtype=np.int64)
        self._pool = np.empty(letters, dtype=np.uint8)
        slots = 1 << max(LOAD * capacity - 1, 1).bit_length()
        self._hashes = np.zeros(slots, dtype=np.uint64)
        self._numbers = np.zeros(slots, dtype=np.int32)

    def words(self) -> Iterator[bytes]:
        """Yield all words."""
        letters, edges = self._pool.tobytes(), self._begin[: self.size + 1].tolist()
        for number in range(self.size):
            yield letters[edges[number] : edges[number + 1]]

    def count(self, block: Block, start: int) -> int:
        """Count the words of a block from byte `start` on, until it ends or the table is full.

        Returns where it stopped.
        """
        stop, self.size = count_words(
            block, start, self.size,
            self._hashes, self._numbers, self._begin, self._pool, self.counts, SPACES,
        )  # fmt: skip
        return int(stop)

    def encode(self, block: Block, tokens: Tokens, line_lengths: NDArray[np.int32]) -> int:
        """Write the number of every word, 0 for one that is not here, and the words of every line.

        Returns how many words there are.
        """
        size = encode_words(
            block, self._hashes, self._numbers, self._begin, self._pool, SPACES,
            tokens, line_lengths,
        )  # fmt: skip
        return int(size)

    def grown(self, capacity: int, letters: int) -> "WordTable":
        """Return a larger table of the same words and counts."""
        table, size = WordTable(capacity, letters), self.size
        table.size = size
        table.counts[:size] = self.counts[:size]
        table._begin[: size + 1] = self._begin[: size + 1]
        table._pool[: self._begin[size]] = self._pool[: self._begin[size]]
        rehash(self._hashes, self._numbers, table._hashes, table._numbers)
        return table


def _spaces() -> NDArray[np.bool_]:
    spaces = np.zeros(0x110000, dtype=np.bool_)
    for point in range(0x3001):
        spaces[point] = chr(point).isspace()
    return spaces


SPACES = _spaces()  # of every code point


@njit(cache=True, nogil=True, inline="always")
def _finish(hashed):  # type: ignore[no-untyped-def]
    """Spread a hash over all bits; it is never 0."""
    hashed ^= hashed >> np.uint64(29)
    hashed *= np.uint64(0xBF58476D1CE4E5B9)
    hashed ^= hashed >> np.uint64(32)
    return hashed | np.uint64(1)


@njit(cache=True, nogil=True)
def next_word(block, i, spaces):  # type: ignore[no-untyped-def]
    """Find the next word from byte i on: its begin and end, where the text goes on, its hash.

    It begins at the end of the block if there is none.
    """
    size = block.shape[0]
    point = np.int64(32)
    begin = i
    while i < size:
        begin = i
        point, i = code_point(block, i)
        if not spaces[point]:
            break
    else:
        return size, size, size, np.uint64(0)
    hashed = np.uint64(0xCBF29CE484222325) ^ np.uint64(point)
    end = i
    while i < size:
        end = i
        point, i = code_point(block, i)
        if spaces[point]:
            break
        hashed = (hashed ^ np.uint64(point)) * np.uint64(0x100000001B3)
        end = i
    return begin, end, i, _finish(hashed)


@njit(cache=True, nogil=True)
def find(block, begin, end, hashed, hashes, numbers, starts, pool):  # type: ignore[no-untyped-def]
    """Return the slot of a word: the one that holds it, or the free one where it belongs."""
    mask = hashes.shape[0] - 1
    slot = np.int64(hashed >> np.uint64(1)) & mask
    while hashes[slot] != 0:
        if hashes[slot] == hashed:
            first = starts[numbers[slot]]
            length = starts[numbers[slot] + 1] - first
            if length == end - begin:
                same = True
                for k in range(length):
                    if pool[first + k] != block[begin + k]:
                        same = False
                        break
                if same:
                    return slot
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)
def count_words(block, i, size, hashes, numbers, starts, pool, counts, spaces):  # type: ignore[no-untyped-def]
    """Count words; returns where it stopped and how many words the table has."""
    while i < block.shape[0]:
        begin, end, after, hashed = next_word(block, i, spaces)
        if begin == end:
            return block.shape[0], size
        slot = find(block, begin, end, hashed, hashes, numbers, starts, pool)
        if hashes[slot] == 0:
            if size == counts.shape[0] or starts[size] + end - begin > pool.shape[0]:
                return begin, size
            hashes[slot], numbers[slot] = hashed, size
            stop = starts[size] + end - begin
            pool[starts[size] : stop] = block[begin:end]
            size += 1
            starts[size] = stop
        counts[numbers[slot]] += 1
        i = after
    return i, size


@njit(cache=True, nogil=True)
def encode_words(block, hashes, numbers, starts, pool, spaces, tokens, line_lengths):  # type: ignore[no-untyped-def]
    """Write the words' numbers and the lines' lengths; returns how many words there are."""
    i = size = line = before = 0
    while i < block.shape[0]:
        point, after = code_point(block, i)
        if spaces[point]:
            if point == 10:
                line_lengths[line] = size - before
                line, before = line + 1, size
            i = after
            continue
        begin, i, _, hashed = next_word(block, i, spaces)
        slot = find(block, begin, i, hashed, hashes, numbers, starts, pool)
        tokens[size] = numbers[slot] if hashes[slot] != 0 else 0
        size += 1
    return size


@njit(cache=True, nogil=True)
def rehash(old_hashes, old_numbers, hashes, numbers):  # type: ignore[no-untyped-def]
    """Move every word to its slot in a larger table."""
    mask = hashes.shape[0] - 1
    for old in range(old_hashes.shape[0]):
        if old_hashes[old] != 0:
            slot = np.int64(old_hashes[old] >> np.uint64(1)) & mask
            while hashes[slot] != 0:
                slot = (slot + 1) & mask
            hashes[slot], numbers[slot] = old_hashes[old], old_numbers[old]
