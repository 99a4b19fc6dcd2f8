"""Counts a batch: every target after all of its contexts."""

import numpy as np
from numba import njit

from calm.learners.counts.tree import add, find_or_add, fits


@njit(cache=True)
def count_batch(tree, targets, text, column, first):  # type: ignore[no-untyped-def]
    """Count every target from the first on after its contexts, making those that are new.

    text (b, K + w): what each row read before its targets, see Rows. Returns the target that there
    was no room for, or -1.
    """
    w, b = targets.shape
    order = text.shape[1] - w
    nodes = np.empty(order + 1, dtype=np.int32)
    for p in range(first, targets.size):
        j, r = p // b, p % b
        nodes[:] = -1
        nodes[0] = 0
        for k in range(1, order + 1):
            symbol = text[r, order + j + 1 - k]
            if symbol < 0:
                break
            nodes[k] = find_or_add(tree, nodes[k - 1], symbol)
        if not fits(tree, nodes):
            return p
        add(tree, nodes, targets[j, r], column)
    return -1
