"""A tree of contexts, in flat arrays: what followed each context, and how often.

A node is a context: its parent's, and one more symbol before it. Children are found through a hash
table whose every hit is verified by parent and label, so no two contexts are ever confused. What
followed a node are its entries: a symbol, and a count in each of several columns.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

NODES, ENTRIES = 0, 1  # places in `used`
MOST = 65_535  # a count goes no further
BLOCK_SIZES = 32  # powers of two

Array = NDArray[Any]


class Tree(NamedTuple):
    """Nodes 0 … used[0] - 1, roots first; the first root has an entry for every symbol, in order.

    The entries of any other node lie in a block with room for a power of two of them. A free block
    keeps the place of the next one of its size in its first symbol.
    """

    parent: Array
    label: Array
    begin: Array
    size: Array
    slots: Array
    symbol: Array
    counts: Array
    free: Array
    used: Array


def make_tree(
    roots: int, columns: int, vocabulary: int, nodes: int = 1 << 12, entries: int = 1 << 12
) -> Tree:
    """Make a tree without counts, with room for some nodes, and entries beyond the first root's."""
    entries += vocabulary
    tree = Tree(
        parent=np.full(nodes, -1, dtype=np.int32),
        label=np.zeros(nodes, dtype=np.int32),
        begin=np.zeros(nodes, dtype=np.int32),
        size=np.zeros(nodes, dtype=np.int32),
        slots=_slots(nodes),
        symbol=np.zeros(entries, dtype=np.int32),
        counts=np.zeros((entries, columns), dtype=np.uint16),
        free=np.full(BLOCK_SIZES, -1, dtype=np.int64),
        used=np.array([roots, vocabulary], dtype=np.int64),
    )
    tree.symbol[:vocabulary] = np.arange(vocabulary)
    tree.size[0] = vocabulary
    return tree


def size_in_bytes(tree: Tree) -> int:
    """Return how much memory a tree takes."""
    return sum(array.nbytes for array in tree)


def with_room(tree: Tree, nodes: int, entries: int) -> Tree:
    """Return the tree itself if so many more fit, else a larger copy."""
    want_nodes, want_entries = tree.used[NODES] + nodes, tree.used[ENTRIES] + entries
    if want_nodes > len(tree.parent):
        length = max(len(tree.parent) * 3 // 2, int(want_nodes))
        tree = tree._replace(
            parent=_longer(tree.parent, length), label=_longer(tree.label, length),
            begin=_longer(tree.begin, length), size=_longer(tree.size, length),
            slots=_slots(length),
        )  # fmt: skip
        rehash(tree)
    if want_entries > len(tree.symbol):
        length = max(len(tree.symbol) * 3 // 2, int(want_entries))
        tree = tree._replace(
            symbol=_longer(tree.symbol, length), counts=_longer(tree.counts, length)
        )
    return tree


def with_more_entries(tree: Tree) -> Tree:
    """Return a copy with room for half as many entries again: where `fits` says no."""
    return with_room(tree, 0, len(tree.symbol) - int(tree.used[ENTRIES]) + 1)


def _longer(array: Array, length: int) -> Array:
    longer = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _slots(nodes: int) -> Array:
    """Return an empty hash table, at most half of which so many nodes fill."""
    return np.full(1 << max(2 * nodes - 1, 1).bit_length(), -1, dtype=np.int32)


@njit(cache=True)
def place(parent, label, mask):  # type: ignore[no-untyped-def]
    """Return the slot at which the search for a child begins."""
    key = np.uint64(parent) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(label)
    key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((key >> np.uint64(32)) & np.uint64(mask))


@njit(cache=True)
def rehash(tree):  # type: ignore[no-untyped-def]
    """Fill the empty hash table."""
    parents, labels, slots = tree.parent, tree.label, tree.slots
    mask = len(slots) - 1
    for node in range(tree.used[NODES]):
        if parents[node] >= 0:
            slot = place(parents[node], labels[node], mask)
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
            slots[slot] = node


@njit(cache=True)
def find(slots, parents, labels, parent, label):  # type: ignore[no-untyped-def]
    """Return the child of a node, or -1; takes a tree's arrays, which is faster than the tree."""
    mask = len(slots) - 1
    slot = place(parent, label, mask)
    while True:
        node = slots[slot]
        if node < 0 or (parents[node] == parent and labels[node] == label):
            return node
        slot = (slot + 1) & mask


@njit(cache=True)
def find_or_add(tree, parent, label):  # type: ignore[no-untyped-def]
    """Return the child of a node, made if there is none; there has to be room for it."""
    parents, labels, slots = tree.parent, tree.label, tree.slots
    node = find(slots, parents, labels, parent, label)
    if node >= 0:
        return node
    node = np.int32(tree.used[NODES])
    tree.used[NODES] += 1
    parents[node] = parent
    labels[node] = label
    tree.size[node] = 0
    mask = len(slots) - 1
    slot = place(parent, label, mask)
    while slots[slot] >= 0:
        slot = (slot + 1) & mask
    slots[slot] = node
    return node


@njit(cache=True)
def entry_or_add(tree, node, symbol):  # type: ignore[no-untyped-def]
    """Return the entry of a symbol after a node, made with counts of 0 if there is none."""
    symbols, counts = tree.symbol, tree.counts
    begin, size = tree.begin[node], tree.size[node]
    if node == 0:
        return begin + symbol
    for e in range(begin, begin + size):
        if symbols[e] == symbol:
            return e
    if size & (size - 1) == 0:  # the block is full, or there is none
        begin = _move(tree, node, begin, size)
    e = begin + size
    symbols[e] = symbol
    counts[e] = 0
    tree.size[node] = size + 1
    return e


@njit(cache=True)
def _move(tree, node, begin, size):  # type: ignore[no-untyped-def]
    """Move the entries of a node to a block of twice the size."""
    symbols, counts, free = tree.symbol, tree.counts, tree.free
    k = 0
    while (1 << k) <= size:
        k += 1
    new = free[k]
    if new >= 0:
        free[k] = symbols[new]
    else:
        new = tree.used[ENTRIES]
        tree.used[ENTRIES] += 1 << k
    for i in range(size):
        symbols[new + i] = symbols[begin + i]
        counts[new + i] = counts[begin + i]
    if size:
        give_back(tree, begin, k - 1)
    tree.begin[node] = new
    return new


@njit(cache=True)
def give_back(tree, begin, k):  # type: ignore[no-untyped-def]
    """Free a block."""
    tree.symbol[begin] = tree.free[k]
    tree.free[k] = begin


@njit(cache=True)
def fits(tree, nodes):  # type: ignore[no-untyped-def]
    """Tell whether there is room for one more symbol after each of some nodes (-1: none)."""
    entries = tree.used[ENTRIES]
    for node in nodes:
        if node > 0:
            size = tree.size[node]
            if size & (size - 1) == 0:
                entries += max(2 * size, 1)
    return entries <= len(tree.symbol)


@njit(cache=True)
def add(tree, nodes, symbol, column):  # type: ignore[no-untyped-def]
    """Count a symbol after contexts that go from short to long (-1: none), if it `fits`.

    From the longest down, in column 0 and in another one; each stops after the first that knew it.
    """
    counts = tree.counts
    first, second = True, column > 0
    for k in range(len(nodes) - 1, -1, -1):
        if nodes[k] < 0:
            continue
        e = entry_or_add(tree, nodes[k], symbol)
        if first:
            first = _increase(counts, e, 0)
        if second:
            second = _increase(counts, e, column)
        if not (first or second):
            break


@njit(cache=True)
def _increase(counts, e, column):  # type: ignore[no-untyped-def]
    """Count one more; return whether it is the first."""
    count = counts[e, column]
    if count < MOST:
        counts[e, column] = count + 1
    return count == 0
