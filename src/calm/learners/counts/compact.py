"""A tree of contexts without gaps: saved, restored, and without what is rare."""

import numpy as np
from numba import njit

from calm.learners.base import State
from calm.learners.counts.tree import (
    BLOCK_SIZES,
    ENTRIES,
    NODES,
    Array,
    Tree,
    give_back,
    make_tree,
    rehash,
)


def tree_state(tree: Tree) -> State:
    """Return everything that a tree holds, without gaps; columns beyond the first as non-zeros."""
    nodes = int(tree.used[NODES])
    size = tree.size[:nodes]
    places = entry_places(tree.begin[:nodes], size)
    others = tree.counts[places, 1:].ravel()
    where = np.flatnonzero(others)
    return {
        "parent": tree.parent[:nodes],
        "label": tree.label[:nodes],
        "size": size,
        "symbol": tree.symbol[places],
        "count": tree.counts[places, 0],
        "where": where.astype(np.int32 if len(others) < 1 << 31 else np.int64),
        "what": others[where],
        "free": _free_blocks(tree),
        "length": np.array([len(tree.parent), len(tree.symbol)]),
    }


def tree_from_state(state: State, roots: int, columns: int, vocabulary: int) -> Tree:
    """Make the tree that a state was taken from; only where its blocks lie may differ."""
    size = state["size"]
    nodes = len(size)
    room = 1 << np.ceil(np.log2(np.maximum(size, 1))).astype(np.int64)
    room[size == 0] = 0
    room[0] = vocabulary
    begin = np.cumsum(room) - room
    entries = room.sum() + (state["free"] << np.arange(BLOCK_SIZES)).sum()
    length = np.maximum(state["length"], [nodes, entries])
    tree = make_tree(roots, columns, vocabulary, int(length[0]), int(length[1]) - vocabulary)
    for name, array in (("parent", state["parent"]), ("label", state["label"])):
        getattr(tree, name)[:nodes] = array
    tree.begin[:nodes], tree.size[:nodes] = begin, size
    tree.used[:] = nodes, room.sum()
    _add_free_blocks(tree, state["free"])
    places = entry_places(begin, size)
    tree.symbol[places] = state["symbol"]
    others = np.zeros((len(places), columns - 1), dtype=np.uint16)
    others.reshape(-1)[state["where"]] = state["what"]
    tree.counts[places] = np.concatenate([state["count"][:, None], others], axis=1)
    rehash(tree)
    return tree


def without_rare(tree: Tree, roots: int, least: int, reference: int) -> tuple[Tree, Array]:
    """Return a tree of the contexts with a count of `least` in all, and what they lead to.

    Labels from `reference` on name other nodes, `reference` + node. Also returns each node's new
    number, or -1 where it is gone.
    """
    nodes = int(tree.used[NODES])
    new = np.zeros(nodes, dtype=np.int32)
    _mark(tree, roots, least, reference, new)
    keep = new > 0
    new[:] = np.where(keep, np.cumsum(keep) - 1, -1)
    label = tree.label[:nodes][keep]
    named = label >= reference
    label[named] = new[label[named] - reference] + reference
    parent = tree.parent[:nodes][keep]
    parent[roots:] = new[parent[roots:]]
    places = entry_places(tree.begin[:nodes][keep], tree.size[:nodes][keep])
    count = tree.counts[places]
    where = np.flatnonzero(count[:, 1:].ravel())
    state = {
        "parent": parent, "label": label, "size": tree.size[:nodes][keep],
        "symbol": tree.symbol[places], "count": count[:, 0],
        "where": where, "what": count[:, 1:].ravel()[where],
        "free": np.zeros(BLOCK_SIZES, dtype=np.int64), "length": np.zeros(2, dtype=np.int64),
    }  # fmt: skip
    return tree_from_state(state, roots, count.shape[1], int(tree.size[0])), new


def entry_places(begin: Array, size: Array) -> Array:
    """Return where the entries are, node by node."""
    total = int(size.sum())
    shift = np.repeat(begin.astype(np.int64) - (np.cumsum(size) - size), size)
    places: Array = np.arange(total) + shift
    return places


@njit(cache=True)
def _mark(tree, roots, least, reference, keep):  # type: ignore[no-untyped-def]
    """Mark what is kept: children and what refers to a node come after it."""
    keep[:roots] = 1
    for node in range(len(keep) - 1, roots - 1, -1):
        total = 0
        for e in range(tree.begin[node], tree.begin[node] + tree.size[node]):
            total += tree.counts[e, 0]
        if total >= least:
            keep[node] = 1
        if keep[node]:
            keep[tree.parent[node]] = 1
            if tree.label[node] >= reference:
                keep[tree.label[node] - reference] = 1


@njit(cache=True)
def _free_blocks(tree):  # type: ignore[no-untyped-def]
    """Count the free blocks of every size."""
    blocks = np.zeros(len(tree.free), dtype=np.int64)
    for k in range(len(blocks)):
        begin = tree.free[k]
        while begin >= 0:
            blocks[k] += 1
            begin = np.int64(tree.symbol[begin])
    return blocks


@njit(cache=True)
def _add_free_blocks(tree, blocks):  # type: ignore[no-untyped-def]
    """Add so many free blocks of every size."""
    for k in range(len(blocks)):
        for _ in range(blocks[k]):
            give_back(tree, tree.used[ENTRIES], k)
            tree.used[ENTRIES] += 1 << k
