"""Character level: lines with a rare character are dropped, so that every character is known well.

The paper counts a character over the whole set, its authors' script within each class; the rule
is applied once. A line end is a token, and never rare.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from calm.corpus.base import Level
from calm.corpus.cleaner import Block, Cleaner, Encoded, token_type

CODE_POINTS = 0x110000


class Characters(Cleaner):
    """Drops every line with a character that occurs fewer than `rare` times in set or class."""

    level: Level = "char"

    def __init__(self, rare: int, scope: str) -> None:
        self._rare, self._scope = rare, scope
        self._counts: dict[int, NDArray[np.int64]] = {}
        self._tables: list[NDArray[np.int32]] = []
        self._type = token_type(1)

    def count(self, class_index: int, block: Block) -> None:
        """Count the block's characters."""
        counts = self._counts.setdefault(class_index, np.zeros(CODE_POINTS, dtype=np.int64))
        count_characters(block, counts)

    def settle(self, class_count: int) -> tuple[str, ...]:
        """Take the characters that are frequent enough, in the order of their code points."""
        nothing = np.zeros(CODE_POINTS, dtype=np.int64)
        counts = [self._counts.get(c, nothing) for c in range(class_count)]
        if self._scope == "set":
            counts = [sum(counts, nothing)] * class_count
        kept = [(c >= self._rare) | (np.arange(CODE_POINTS) == ord("\n")) for c in counts]
        points = np.flatnonzero(np.logical_or.reduce(kept))
        self._type = token_type(len(points))
        tokens = np.full(CODE_POINTS, -1, dtype=np.int32)
        tokens[points] = np.arange(len(points))
        self._tables = [np.where(mask, tokens, np.int32(-1)) for mask in kept]
        self._counts.clear()
        return tuple(chr(point) for point in points.tolist())

    def encode(self, class_index: int, block: Block) -> Encoded:
        """Encode the lines whose characters are all known."""
        tokens = np.empty(len(block), dtype=self._type)
        lengths = np.empty(int(np.count_nonzero(block == ord("\n"))), dtype=np.int32)
        size, kept, dropped = encode_characters(block, self._tables[class_index], tokens, lengths)
        return Encoded(tokens[:size], lengths[:kept], len(lengths) - kept, dropped)

    def rules(self) -> dict[str, Any]:
        """Return threshold and scope."""
        return {"rare": self._rare, "rare_in": self._scope}


@njit(cache=True, nogil=True)
def code_point(block, i):  # type: ignore[no-untyped-def]
    """Decode the character at byte i of valid UTF-8; returns it and where the next one begins."""
    b = np.int64(block[i])
    if b < 0x80:
        return b, i + 1
    if b < 0xE0:
        return (b & 0x1F) << 6 | (block[i + 1] & 0x3F), i + 2
    if b < 0xF0:
        return (b & 0x0F) << 12 | (block[i + 1] & 0x3F) << 6 | (block[i + 2] & 0x3F), i + 3
    high = (b & 0x07) << 18 | (block[i + 1] & 0x3F) << 12
    return high | (block[i + 2] & 0x3F) << 6 | (block[i + 3] & 0x3F), i + 4


@njit(cache=True, nogil=True)
def count_characters(block, counts):  # type: ignore[no-untyped-def]
    """Add how often every code point occurs to `counts` (CODE_POINTS,)."""
    i = 0
    while i < block.shape[0]:
        point, i = code_point(block, i)
        counts[point] += 1


@njit(cache=True, nogil=True)
def encode_characters(block, table, tokens, lengths):  # type: ignore[no-untyped-def]
    """Write the tokens of every line that has no character of token -1, and the lines' lengths.

    Returns how many tokens and lines were written, and how many characters were dropped.
    """
    i = begin = end = kept = dropped = 0
    good = True
    while i < block.shape[0]:
        point, i = code_point(block, i)
        token = table[point]
        good &= token >= 0
        tokens[end] = token
        end += 1
        if point == 10:
            if good:
                lengths[kept] = end - begin
                kept += 1
                begin = end
            else:
                dropped += end - begin
                end, good = begin, True
    return end, kept, dropped
