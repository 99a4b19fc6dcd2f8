"""The text of a language: without end, at any offset, never stored.

The text is a sequence of blocks of BLOCK characters, each made of whole sentences and drawn from
its own seed, so that reading may begin at any block. The last sentences of a block are drawn again
until they fill it exactly. Such a text is the Markov chain of the language given that a sentence
ends at every multiple of BLOCK, which costs a predictor that does not know about blocks
log(mean sentence length) nats a block: some 6e-5 a character.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from calm.corpus.synthetic.language import STOP, Language

BLOCK = 1 << 16
TAIL = 192  # characters that are drawn again until they fit: long against a word, short of a block


@dataclass(frozen=True)
class Tables:
    """A language made ready for drawing: Vose's alias tables, one per category, and the spelling.

    accept, alias: (categories, tokens); letters: all spellings laid end to end, token t at
    letters[begin[t]:begin[t + 1]].
    """

    accept: NDArray[np.float64]
    alias: NDArray[np.int32]
    category: NDArray[np.int64]
    letters: NDArray[np.uint8]
    begin: NDArray[np.int64]


def tables(language: Language, symbols: dict[str, int]) -> Tables:
    """Prepare a language whose letters have the given numbers."""
    rows = [_alias_table(row) for row in language.next_token()]
    lengths = [len(spelling) for spelling in language.spelling]
    return Tables(
        accept=np.array([accept for accept, _ in rows]),
        alias=np.array([alias for _, alias in rows], dtype=np.int32),
        category=language.category,
        letters=np.array([symbols[x] for word in language.spelling for x in word], dtype=np.uint8),
        begin=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )


class Text:
    """The endless text of one language."""

    def __init__(self, drawn: Tables, seed: int) -> None:
        self._tables = drawn
        self._seed = seed
        self._block = lru_cache(maxsize=32)(self._make_block)

    def read(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Characters start … stop-1."""
        pieces = []
        while start < stop:
            number, offset = divmod(start, BLOCK)
            piece = self._block(number)[offset : offset + stop - start]
            pieces.append(piece)
            start += len(piece)
        return pieces[0] if len(pieces) == 1 else np.concatenate([_NOTHING, *pieces])

    def _make_block(self, number: int) -> NDArray[np.uint8]:
        block = np.empty(BLOCK, dtype=np.uint8)
        t = self._tables
        seed = np.uint64(_mix(np.uint64(self._seed), np.uint64(number)))
        fill_block(block, seed, t.accept, t.alias, t.category, t.letters, t.begin)
        return block


_NOTHING = np.empty(0, dtype=np.uint8)


def _alias_table(weights: NDArray[np.float64]) -> tuple[list[float], list[int]]:
    """Vose's method: draw cell i, keep i with probability accept[i], else take alias[i]."""
    scaled = (weights * (len(weights) / weights.sum())).tolist()
    accept, alias = [1.0] * len(scaled), list(range(len(scaled)))
    small = [i for i, weight in enumerate(scaled) if weight < 1]
    large = [i for i, weight in enumerate(scaled) if weight >= 1]
    while small and large:
        less, more = small.pop(), large[-1]
        accept[less], alias[less] = scaled[less], more
        scaled[more] -= 1 - scaled[less]
        if scaled[more] < 1:
            small.append(large.pop())
    for i in small:  # what rounding left over; a token of weight zero must stay impossible
        if weights[i] == 0:
            accept[i], alias[i] = 0.0, int(np.argmax(weights))
    return accept, alias


@njit(cache=True)
def _mix(seed: np.uint64, number: np.uint64) -> np.uint64:
    """Return the state that the generator of a block starts from."""
    return _scatter(seed * np.uint64(0xD1342543DE82EF95) + number)


@njit(cache=True)
def _scatter(z: np.uint64) -> np.uint64:
    """Return the output function of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def fill_block(block, state, accept, alias, category, letters, begin):  # type: ignore[no-untyped-def]
    """Fill `block` (BLOCK,) with sentences drawn from splitmix64 started at `state`."""
    size = block.shape[0]
    count = accept.shape[1]
    position = restart = 0
    last = STOP
    while position < size:
        state += np.uint64(0x9E3779B97F4A7C15)
        bits = _scatter(state)
        scaled = (bits >> np.uint64(11)) * (count / 9007199254740992.0)  # in [0, count)
        token = int(scaled)
        if scaled - token >= accept[last, token]:
            token = alias[last, token]
        length = begin[token + 1] - begin[token]
        if position + length > size or (position + length == size and category[token] != STOP):
            position, last = restart, STOP
            continue
        block[position : position + length] = letters[begin[token] : begin[token + 1]]
        position += length
        last = category[token]
        if last == STOP and position <= size - TAIL:
            restart = position
