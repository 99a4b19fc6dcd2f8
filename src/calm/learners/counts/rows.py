"""What each row last read of every class: a class goes on where it stopped."""

from typing import NamedTuple

import numpy as np

from calm.learners.base import Tokens
from calm.learners.counts.tree import Array


class Rows(NamedTuple):
    """What is remembered of the texts of all tables, of which the current one runs on.

    last (columns, b, order + 1): the last symbols of each, -1 before the first. learned: whether
    the current table's end with the last targets, as the next inputs begin. foretold (columns, b,
    V): what was to come next where the text left a table; there are none without tables.
    """

    last: Array
    learned: bool
    foretold: Array

    def know(self, inputs: Tokens, table: int) -> bool:
        """Tell whether the first inputs are not news."""
        return self.learned and np.array_equal(self.last[table, :, -1], inputs[0])

    def text(self, inputs: Tokens, known: bool) -> Array:
        """What comes before every target, table by table: (columns, b, order + w)."""
        new = np.broadcast_to(inputs.T, (len(self.last), *inputs.T.shape))
        parts = (self.last, new[:, :, 1:]) if known else (self.last[:, :, 1:], new)
        return np.ascontiguousarray(np.concatenate(parts, axis=2))

    def learn(self, text: Array, targets: Tokens, table: int) -> "Rows":
        """Move on past the targets; text (b, order + w): what came before them is now a table's."""
        last = self.last.copy()
        last[table] = np.concatenate([text, targets[-1:].T], axis=1)[:, -last.shape[2] :]
        return Rows(last, True, self.foretold)

    def read(self, text: Array) -> "Rows":
        """Move all tables on past a text (columns, b, order + w): whose it was is not certain."""
        return Rows(text[:, :, -self.last.shape[2] :].copy(), False, self.foretold)


def no_rows(columns: int, b: int, order: int, vocabulary: int) -> Rows:
    """Nothing was read yet."""
    tables = columns if columns > 1 else 0
    return Rows(
        np.full((columns, b, order + 1), -1, dtype=np.int64), False,
        np.full((tables, b, vocabulary), 1 / vocabulary, dtype=np.float32),
    )  # fmt: skip
