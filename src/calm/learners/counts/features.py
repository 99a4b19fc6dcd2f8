"""What every expert says of the next symbol, as features of a log-linear model.

The expert of order k mixes what followed its context with the expert of order k - 1:
p_k(v) = (max(c - d, 0) + rest · p_(k-1)(v)) / n, where rest is the sum of the discounts d. Of a
symbol that did not follow the context it says nothing new, but for a constant:
log p_k = log p_(k-1) + log(rest / n), which the product's normalisation cancels. So an expert's
features are what it adds, log(p_k / p_(k-1)) less that constant: above 0 for symbols that were
seen, 0 for all others. With a weight of 1 for each order the product is the longest one's
prediction; other weights give every product Π p_k^w, at the cost of the symbols that were seen.

Functions that are called for every expert take a tree's arrays, which is faster than the tree.
"""

import numpy as np
from numba import njit

from calm.learners.counts.tree import Array, find

BUCKETS = 12  # of confidence
ROOT_DISCOUNT = 0.5


def order_0(counts: Array) -> Array:
    """How often each symbol is, from its counts in every column: (columns, V)."""
    counts = counts.astype(np.float64)
    n = counts.sum(axis=1, keepdims=True)
    rest = ROOT_DISCOUNT * np.count_nonzero(counts, axis=1)[:, None]
    known = np.maximum(counts - ROOT_DISCOUNT, 0) + rest / counts.shape[1]
    frequencies: Array = np.where(n > 0, known / np.maximum(n, 1), 1 / counts.shape[1])
    return frequencies


@njit(cache=True)
def find_contexts(slots, parents, labels, past, nodes):  # type: ignore[no-untyped-def]
    """Find the contexts of lengths 0 … K that end here; past (K,), the newest last (-1: none).

    Returns the length of the longest that is known; nodes (K + 1,) of longer ones are -1.
    """
    node = np.int32(0)
    nodes[0] = 0
    longest = 0
    order = len(past)
    for k in range(1, order + 1):
        if node >= 0:
            label = past[order - k]
            node = find(slots, parents, labels, node, label) if label >= 0 else np.int32(-1)
        nodes[k] = node
        if node >= 0:
            longest = k
    return longest


@njit(cache=True, error_model="numpy")
def confidence(n, distinct, top):  # type: ignore[no-untyped-def]
    """Put how much is known after a context into one of a few buckets."""
    if distinct == 1:
        return top - 1 if top <= 3 else (3 if top < 8 else 4)
    mean = n / distinct
    if distinct == 2:
        return 5 if mean < 2 else (6 if mean < 5 else 7)
    if mean < 1.5:
        return 8
    if mean < 3:
        return 9
    return 10 if mean < 8 else 11


@njit(cache=True, error_model="numpy")
def add_expert(  # type: ignore[no-untyped-def]
    begin, size, symbols, counts, column, discount, q, scale, moves, values, names, used
):  # fmt: skip
    """Write one expert's features behind the first `used`; q · scale is the distribution below it.

    If it `moves`, q becomes the expert's own distribution. Returns its scale, how many features
    there are now, and its bucket of confidence, -1 if it knows nothing.
    """
    n, rest, distinct, top = 0.0, 0.0, 0, 0
    for e in range(begin, begin + size):
        c = counts[e, column]
        if c > 0:
            n += c
            rest += discount[min(c, 3)]
            distinct += 1
            top = max(top, c)
    if distinct == 0:
        return scale, used, -1
    below = scale * rest
    for e in range(begin, begin + size):
        c = counts[e, column]
        if c > 0:
            v = symbols[e]
            more = (c - discount[min(c, 3)]) / below
            names[used] = v
            values[used] = np.log(1.0 + more / q[v])
            used += 1
            if moves:
                q[v] += more
    return below / n, used, confidence(n, distinct, top)


@njit(cache=True, error_model="numpy")
def add_surprise(begins, sizes, symbols, counts, nodes, y, p, low, high, discounts, total):  # type: ignore[no-untyped-def]
    """Add -log p(y) to each column's total: its own orders low … high over common ones below.

    p (columns,) comes in as what is below order 1.
    """
    columns = counts.shape[1]
    n, rest, hit = np.empty(columns), np.empty(columns), np.empty(columns)
    for k in range(1, high + 1):
        node = nodes[k]
        if node < 0:
            break
        width = 1 if k < low else columns
        n[:width] = 0.0
        rest[:width] = 0.0
        hit[:width] = 0.0
        for e in range(begins[node], begins[node] + sizes[node]):
            found = symbols[e] == y
            for a in range(width):
                c = counts[e, a]
                if c > 0:
                    d = discounts[k, min(c, 3)]
                    n[a] += c
                    rest[a] += d
                    if found:
                        hit[a] = c - d
        if k < low:
            if n[0] > 0:
                p[:] = (hit[0] + rest[0] * p[0]) / n[0]
        else:
            for a in range(columns):
                if n[a] > 0:
                    p[a] = (hit[a] + rest[a] * p[a]) / n[a]
    for a in range(columns):
        total[a] -= np.log(p[a])
