"""A hash table from words to numbers, in compiled code: words are compared, not merely hashed."""

from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from calm.corpus.base import Tokens
from calm.corpus.characters import CODE_POINTS, code_point
from calm.corpus.cleaner import Block

LOAD = 2  # slots per word, at least


class WordTable:
    """Words numbered in the order they came, each with a count; with room for `capacity` of them.

    Letters begin[i] … begin[i + 1] - 1 of the pool are word i. A slot is a word's key (0: none) and
    its number; a word is in the first slot from its key's place on that was free. The key of a
    word of up to 7 bytes is those bytes and their number, which no other word shares; that of a
    longer one is a hash, and then the letters are compared.
    """

    def __init__(self, capacity: int, letters: int) -> None:
        self.size = 0
        self.counts = np.zeros(capacity, dtype=np.int64)
        self._begin = np.zeros(capacity + 1, dtype=np.int64)
        self._pool = np.empty(letters, dtype=np.uint8)
        bits = max(LOAD * capacity - 1, 1).bit_length()
        self._slots = np.zeros((1 << bits, 2), dtype=np.uint64)

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
            self._slots, self._begin, self._pool, self.counts,
            SPACES, KINDS,
        )  # fmt: skip
        return int(stop)

    def encode(self, block: Block, tokens: Tokens, line_lengths: NDArray[np.int32]) -> int:
        """Write the number of every word, 0 for one that is not here, and the words of every line.

        Returns how many words there are.
        """
        size = encode_words(
            block, self._slots, self._begin, self._pool, SPACES, KINDS,
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
        rehash(self._slots, table._slots)
        return table


def _spaces() -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Whether a code point is white space; of a byte: whether it is (1), or may begin it (2)."""
    points = np.zeros(CODE_POINTS, dtype=np.bool_)
    kinds = np.zeros(256, dtype=np.uint8)
    for point in range(0x3001):
        if chr(point).isspace():
            points[point] = True
            kinds[chr(point).encode()[0]] = 1 if point < 0x80 else 2
    return points, kinds


SPACES, KINDS = _spaces()


# Indices are unsigned below: numba then leaves out what makes a negative index count from the end.
ZERO, ONE = np.uint64(0), np.uint64(1)
SHORT, LONG = np.uint64(7), np.uint64(1 << 63)


@njit(cache=True, nogil=True)
def space_length(block, i, spaces):  # type: ignore[no-untyped-def]
    """Return how many bytes of white space stand at byte i, which may begin it; else 0."""
    point, after = code_point(block, np.int64(i))
    return np.uint64(after) - i if spaces[point] else ZERO


@njit(cache=True, nogil=True)
def end_of_word(block, i, spaces, kinds):  # type: ignore[no-untyped-def]
    """Return where the word that begins at byte i ends, and its key."""
    size, start = np.uint64(block.shape[0]), i
    key = hashed = ZERO
    while i < size:
        byte = block[i]
        if kinds[byte] != 0 and (kinds[byte] == 1 or space_length(block, i, spaces) != ZERO):
            break
        if i - start < SHORT:
            key |= np.uint64(byte) << (np.uint64(8) * (i - start))
        else:
            hashed = (hashed ^ np.uint64(byte)) * np.uint64(0x100000001B3)
        i += ONE
    if i - start <= SHORT:
        return i, key | (i - start) << np.uint64(56)
    key = (key ^ hashed) * np.uint64(0xBF58476D1CE4E5B9)
    return i, (key ^ key >> np.uint64(32)) | LONG


@njit(cache=True, nogil=True)
def find(block, begin, end, key, slots, starts, pool):  # type: ignore[no-untyped-def]
    """Return the slot of a word: the one that holds it, or the free one where it belongs."""
    mask = np.uint64(slots.shape[0] - 1)
    slot = place(key) & mask
    while slots[slot, 0] != ZERO:
        if slots[slot, 0] == key:
            if key < LONG:
                return slot
            first = np.uint64(starts[slots[slot, 1]])
            length = np.uint64(starts[slots[slot, 1] + ONE]) - first
            if length == end - begin:
                k = ZERO
                while k < length and pool[first + k] == block[begin + k]:
                    k += ONE
                if k == length:
                    return slot
        slot = (slot + ONE) & mask
    return slot


@njit(cache=True, nogil=True)
def place(key):  # type: ignore[no-untyped-def]
    """Spread keys over the slots."""
    key *= np.uint64(0x9E3779B97F4A7C15)
    return key ^ key >> np.uint64(32)


@njit(cache=True, nogil=True)
def count_words(block, start, size, slots, starts, pool, counts, spaces, kinds):  # type: ignore[no-untyped-def]
    """Count words; returns where it stopped and how many words the table has."""
    i = np.uint64(start)
    while i < np.uint64(block.shape[0]):
        kind = kinds[block[i]]
        if kind != 0:
            space = ONE if kind == 1 else space_length(block, i, spaces)
            if space != ZERO:
                i += space
                continue
        end, key = end_of_word(block, i, spaces, kinds)
        slot = find(block, i, end, key, slots, starts, pool)
        if slots[slot, 0] == ZERO:
            stop = starts[size] + np.int64(end - i)
            if size == counts.shape[0] or stop > pool.shape[0]:
                break
            slots[slot, 0], slots[slot, 1] = key, size
            pool[starts[size] : stop] = block[i:end]
            size += 1
            starts[size] = stop
        counts[slots[slot, 1]] += 1
        i = end
    return i, size


@njit(cache=True, nogil=True)
def encode_words(block, slots, starts, pool, spaces, kinds, tokens, line_lengths):  # type: ignore[no-untyped-def]
    """Write the words' numbers and the lines' lengths; returns how many words there are."""
    i = size = line = before = ZERO
    while i < np.uint64(block.shape[0]):
        kind = kinds[block[i]]
        if kind != 0:
            if block[i] == 10:
                line_lengths[line] = size - before
                line += ONE
                before = size
            space = ONE if kind == 1 else space_length(block, i, spaces)
            if space != ZERO:
                i += space
                continue
        end, key = end_of_word(block, i, spaces, kinds)
        slot = find(block, i, end, key, slots, starts, pool)
        tokens[size] = slots[slot, 1]  # of a free slot 0
        size += ONE
        i = end
    return size


@njit(cache=True, nogil=True)
def rehash(old, slots):  # type: ignore[no-untyped-def]
    """Move every word to its slot in a larger table."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(old.shape[0]):
        if old[i, 0] != ZERO:
            slot = place(old[i, 0]) & mask
            while slots[slot, 0] != ZERO:
                slot = (slot + ONE) & mask
            slots[slot] = old[i]
