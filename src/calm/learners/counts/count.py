"""Counts a batch: every target after all of its contexts."""

import numpy as np
from numba import njit

from calm.learners.counts.tree import add, find_or_add, fits


@njit(cache=True)
def count_batch(tree, inputs, targets, rows, column, first):  # type: ignore[no-untyped-def]
    """Count every target from the first on after its contexts, making those that are new.

    Returns the one that there was no room for, or -1.
    """
    order = rows.shape[1]
    nodes = np.empty(order + 1, dtype=np.int32)
    rows = rows.copy()
    for j in range(inputs.shape[0]):
        for r in range(inputs.shape[1]):
            rows[r, : order - 1] = rows[r, 1:]
            rows[r, order - 1] = inputs[j, r]
            p = j * inputs.shape[1] + r
            if p < first:
                continue
            nodes[:] = -1
            nodes[0] = 0
            for k in range(1, order + 1):
                if rows[r, order - k] < 0:
                    break
                nodes[k] = find_or_add(tree, nodes[k - 1], rows[r, order - k])
            if not fits(tree, nodes):
                return p
            add(tree, nodes, targets[j, r], column)
    return -1
