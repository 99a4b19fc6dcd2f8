"""Contexts made of words: what is spelled of the current word, alone and after the words before it.

Nobody says which symbol separates words; it is taken to be the most frequent one. A word is the
node that its letters lead to, so words are never confused either. One context is of the words of
a row alone: it reads one document after the other, and documents repeat their words.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from calm.learners.base import State, Tokens
from calm.learners.counts.compact import tree_from_state, tree_state, without_rare
from calm.learners.counts.tree import (
    MOST,
    NODES,
    entry_or_add,
    find,
    find_or_add,
    fits,
    make_tree,
    size_in_bytes,
    with_more_entries,
    with_room,
)

# A row's nodes: contexts first, then two words. Roots: none, then of words, of words after the last
# one, of words after the one before it, of words in a row.
WORD, PAIR, TRIPLE, SKIP, OWN, LAST, BEFORE = range(7)
CONTEXTS, NODES_OF_A_ROW, ROOTS = 5, 7, 5
ROW = 1 << 29  # a label from here on names a row
REFERENCE = 1 << 30  # a label from here on names a word

Array = NDArray[Any]


class WordContexts:
    """For every table and row, the nodes of five contexts of words; and what followed them.

    `known`: the first inputs are the last targets that were learned, which rows are past already.
    """

    def __init__(self, vocabulary: int, budget: int, columns: int = 1) -> None:
        self._vocabulary, self._budget = vocabulary, budget
        self.tree = make_tree(ROOTS, 1, vocabulary)
        self._frequency = np.zeros(vocabulary, dtype=np.int64)
        self._rows = np.full((columns, 0, NODES_OF_A_ROW), -1, dtype=np.int32)

    @property
    def separator(self) -> int:
        """The symbol that is taken to separate words."""
        return int(self._frequency.argmax())

    def rows(self, b: int) -> Array:
        """Where the rows of every table are: (columns, b, 7), -1 for what was never seen."""
        if self._rows.shape[1] != b:
            return np.full((len(self._rows), b, NODES_OF_A_ROW), -1, dtype=np.int32)
        return self._rows

    def read(self, inputs: Tokens, known: bool) -> None:
        """Move the rows of all tables on past the inputs."""
        self._rows = self.rows(inputs.shape[1]).copy()
        for rows in self._rows:
            follow_words(self.tree, inputs, known, self.separator, rows, False)

    def learn(
        self, inputs: Tokens, targets: Tokens, known: bool, source: int = 0, table: int = 0
    ) -> None:
        """Move the rows of `source` on past the targets, to be those of `table`; and count.

        Contexts that are new are made.
        """
        room = CONTEXTS * (inputs.size + targets.shape[1])
        self._make_room(3 * room, 2 * room * 8)
        self._rows = self.rows(inputs.shape[1]).copy()
        self._rows[table] = self._rows[source]
        rows = self._rows[table]
        nodes = follow_words(self.tree, inputs, known, self.separator, rows, True)
        follow_words(self.tree, targets[-1:], False, self.separator, rows, True)
        done = 0
        while (done := _count(self.tree, nodes, targets, done)) >= 0:
            self.tree = with_more_entries(self.tree)
        self._frequency += np.bincount(inputs.ravel(), minlength=self._vocabulary)

    def state(self) -> State:
        """Everything."""
        return {**tree_state(self.tree), "frequency": self._frequency, "rows": self._rows}

    def load_state(self, state: State) -> None:
        """Restore it."""
        self.tree = tree_from_state(state, ROOTS, 1, self._vocabulary)
        self._frequency, self._rows = state["frequency"].copy(), state["rows"].copy()

    def _make_room(self, nodes: int, entries: int) -> None:
        grown = with_room(self.tree, nodes, entries)
        least = 2
        while size_in_bytes(grown) > self._budget and self.tree.used[NODES] > ROOTS:
            kept, new = without_rare(self.tree, ROOTS, least, REFERENCE)
            self._rows = np.where(self._rows >= 0, new[self._rows], -1).astype(np.int32)
            self.tree = kept
            grown = with_room(kept, nodes, entries)
            least *= 2
        self.tree = grown


@njit(cache=True)
def _child(tree, node, label, create):  # type: ignore[no-untyped-def]
    if node < 0 or label < 0:
        return np.int32(-1)
    if create:
        return find_or_add(tree, node, label)
    return find(tree.slots, tree.parent, tree.label, node, label)


@njit(cache=True)
def follow_words(tree, inputs, known, separator, rows, create):  # type: ignore[no-untyped-def]
    """Move rows (b, 7) along the inputs (w, b), but the first if that is known.

    Returns the contexts after each, (w, b, 5), -1 for those never seen.
    """
    w, b = inputs.shape
    nodes = np.empty((w, b, CONTEXTS), dtype=np.int32)
    for j in range(w):
        for r in range(b):
            symbol, row = inputs[j, r], rows[r]
            if j == 0 and known:
                pass
            elif symbol == separator:
                if row[WORD] != 1:  # not a second separator
                    row[BEFORE] = row[LAST]
                    row[LAST] = row[WORD]
                last = REFERENCE + row[LAST] if row[LAST] >= 0 else -1
                before = REFERENCE + row[BEFORE] if row[BEFORE] >= 0 else -1
                row[WORD] = 1
                row[PAIR] = _child(tree, 2, last, create)
                row[TRIPLE] = _child(tree, row[PAIR], before, create)
                row[SKIP] = _child(tree, 3, before, create)
                row[OWN] = _child(tree, 4, ROW + r, create)
            else:
                for i in range(CONTEXTS):
                    row[i] = _child(tree, row[i], symbol, create)
            nodes[j, r] = row[:CONTEXTS]
    return nodes


@njit(cache=True)
def _count(tree, nodes, targets, first):  # type: ignore[no-untyped-def]
    """Count the targets from the first on after every context.

    Returns the one that there was no room for, or -1.
    """
    b = targets.shape[1]
    for p in range(first, targets.size):
        j, r = p // b, p % b
        if not fits(tree, nodes[j, r]):
            return p
        for i in range(CONTEXTS):
            if nodes[j, r, i] >= 0:
                e = entry_or_add(tree, nodes[j, r, i], targets[j, r])
                if tree.counts[e, 0] < MOST:
                    tree.counts[e, 0] += 1
    return -1
