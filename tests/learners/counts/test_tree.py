import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.learners.counts.compact import entry_places, tree_from_state, tree_state, without_rare
from calm.learners.counts.learner import NOTHING
from calm.learners.counts.tree import (
    ENTRIES,
    MOST,
    NODES,
    add,
    find,
    find_or_add,
    fits,
    make_tree,
    place,
    size_in_bytes,
    with_more_entries,
    with_room,
)

V, COLUMNS, K = 7, 3, 3
texts = st.lists(st.tuples(st.integers(0, V - 1), st.integers(0, COLUMNS - 1)), max_size=150)


def grow(tree, text, past=()):
    """Count each symbol after contexts of up to K before it, as the learner does."""
    past = list(past)
    for symbol, column in text:
        while not (tree.used[NODES] + K <= len(tree.parent)):
            tree = with_room(tree, K, 0)
        nodes = np.full(K + 1, -1, dtype=np.int32)
        nodes[0] = 0
        for k in range(1, min(K, len(past)) + 1):
            nodes[k] = find_or_add(tree, nodes[k - 1], past[-k])
        while not fits(tree, nodes):
            tree = with_more_entries(tree)
        add(tree, nodes, symbol, column)
        past.append(symbol)
    return tree


def transcribe(text):
    """The same in dicts: a context, newest symbol first, to its symbols' counts."""
    counts, past = {(): {v: [0] * COLUMNS for v in range(V)}}, []
    for symbol, column in text:
        contexts = [tuple(past[::-1][:k]) for k in range(min(K, len(past)) + 1)]
        for context in contexts:
            counts.setdefault(context, {})
        wanted = {0, column}
        for context in contexts[::-1]:
            if not wanted:
                break
            entry = counts[context].setdefault(symbol, [0] * COLUMNS)
            for a in sorted(wanted):
                entry[a] += 1
                if entry[a] > 1:
                    wanted.discard(a)
        past.append(symbol)
    return counts


def contexts(tree, roots=1):
    """Each node's path of labels, beginning with its root where there are several."""
    paths = [(root,) if roots > 1 else () for root in range(roots)]
    for node in range(roots, int(tree.used[NODES])):
        paths.append((*paths[tree.parent[node]], int(tree.label[node])))
    return paths


def contents(tree, roots=1):
    found = {}
    for node, path in enumerate(contexts(tree, roots)):
        places = range(tree.begin[node], tree.begin[node] + tree.size[node])
        found[path] = {int(tree.symbol[e]): tree.counts[e].tolist() for e in places}
        assert len(found[path]) == tree.size[node]
    return found


def in_order(tree):
    nodes = int(tree.used[NODES])
    places = entry_places(tree.begin[:nodes], tree.size[:nodes])
    return [
        array.tolist()
        for array in (
            tree.parent[:nodes], tree.label[:nodes], tree.size[:nodes],
            tree.symbol[places], tree.counts[places],
        )
    ]  # fmt: skip


def saved(tree):
    return {name: array.copy() for name, array in tree_state(tree).items()}


def small_tree():
    return make_tree(1, COLUMNS, V, nodes=K + 1, entries=2)


@given(texts)
def test_a_tree_equals_dicts_by_whole_context(text):
    assert contents(grow(small_tree(), text)) == transcribe(text)


def test_a_long_text_equals_dicts_by_whole_context():
    draws = np.random.default_rng(0)
    text = draws.integers(0, [V, COLUMNS], (4000, 2)).tolist()
    tree = grow(small_tree(), text)
    assert contents(tree) == transcribe(text)
    live = [range(b, b + s) for b, s in zip(tree.begin, tree.size, strict=True)]
    assert len({e for block in live for e in block}) == sum(map(len, live))  # no block overlaps


def test_update_exclusion_is_by_column():
    tree = make_tree(1, COLUMNS, V)
    nodes = np.array([0, find_or_add(tree, 0, 4)], dtype=np.int32)
    for column in (1, 1, 2, 0):
        add(tree, nodes, 5, column)
    after = contents(tree)
    assert after[(4,)] == {5: [4, 2, 1]}  # where all counts go
    assert after[()][5] == [1, 1, 1]  # only what was new after 4, in each column


def test_labels_that_all_fall_into_one_slot_are_told_apart():
    tree = make_tree(1, 1, V, nodes=64)
    mask = len(tree.slots) - 1
    labels = [label for label in range(40_000) if place(0, label, mask) == place(0, 0, mask)][:60]
    assert len(labels) == 60
    nodes = [find_or_add(tree, 0, label) for label in labels]
    assert nodes == list(range(1, 61))
    arrays = tree.slots, tree.parent, tree.label
    assert [find(*arrays, 0, label) for label in labels] == nodes
    absent = next(label for label in range(labels[-1] + 1, 90_000) if label not in labels)
    assert find(*arrays, 0, absent) == -1
    assert find(*arrays, 5, labels[0]) == -1


@given(texts, st.integers(0, 3000), st.integers(0, 3000))
def test_room_keeps_everything_and_is_room(text, nodes, entries):
    tree = grow(small_tree(), text)
    before = contents(tree)
    roomy = with_room(tree, nodes, entries)
    assert contents(roomy) == before
    assert roomy.used[NODES] + nodes <= len(roomy.parent)
    assert roomy.used[ENTRIES] + entries <= len(roomy.symbol)
    for node in range(1, int(roomy.used[NODES])):
        arrays = roomy.slots, roomy.parent, roomy.label
        assert find(*arrays, roomy.parent[node], roomy.label[node]) == node


def test_room_that_is_there_already_costs_nothing():
    tree = make_tree(1, COLUMNS, V)
    assert with_room(tree, 100, 100) is tree


def test_fits_tells_when_a_large_block_has_to_move():
    tree = make_tree(1, 1, 100, nodes=4, entries=63 + 63)
    node = find_or_add(tree, 0, 3)
    nodes = np.array([0, node], dtype=np.int32)
    for symbol in range(32):
        assert fits(tree, nodes)
        add(tree, nodes, symbol, 0)
    assert tree.used[ENTRIES] == 100 + 63
    assert not fits(tree, nodes)  # 63 places are left, and a block of 64 is needed
    tree = with_more_entries(tree)
    assert fits(tree, nodes)


@given(texts, texts)
def test_a_state_gives_the_same_tree_which_goes_on_alike(text, more):
    tree = grow(small_tree(), text)
    restored = tree_from_state(saved(tree), 1, COLUMNS, V)
    assert in_order(restored) == in_order(tree)
    assert size_in_bytes(restored) == size_in_bytes(tree)
    past = [symbol for symbol, _ in text]
    tree, restored = grow(tree, more, past), grow(restored, more, past)
    assert in_order(restored) == in_order(tree)
    assert size_in_bytes(restored) == size_in_bytes(tree)
    assert restored.used.tolist() == tree.used.tolist()


@given(texts, st.integers(1, 6))
def test_what_is_rare_is_forgotten_but_for_what_leads_to_the_rest(text, least):
    tree = grow(small_tree(), text)
    before = contents(tree)
    often = {c for c, symbols in before.items() if sum(n[0] for n in symbols.values()) >= least}
    kept = {()} | {c[:k] for c in often for k in range(len(c) + 1)}
    pruned, new = without_rare(tree, 1, least, NOTHING)
    assert contents(pruned) == {c: symbols for c, symbols in before.items() if c in kept}
    paths, pruned_paths = contexts(tree), contexts(pruned)
    assert len(new) == len(paths)
    for path, number in zip(paths, new, strict=True):
        assert (number >= 0) == (path in kept)
        assert number < 0 or pruned_paths[number] == path
    grow(pruned, text)  # and it is sound


def test_what_is_referred_to_is_kept_and_renumbered():
    reference = 1 << 20
    tree = make_tree(2, 1, V)
    rare, word, other = (find_or_add(tree, 0, label) for label in (1, 2, 3))
    part = find_or_add(tree, word, 5)
    often = find_or_add(tree, 1, reference + part)
    unseen = find_or_add(tree, 1, reference + other)
    for _ in range(2):
        add(tree, np.array([often], dtype=np.int32), 4, 0)
    pruned, new = without_rare(tree, 2, 2, reference)
    assert new.tolist() == [0, 1, -1, 2, -1, 3, 4, -1]
    assert (new[rare], new[other], new[unseen]) == (-1, -1, -1)
    label = int(reference + new[part])
    assert find(pruned.slots, pruned.parent, pruned.label, 1, label) == new[often]
    assert contents(pruned, 2)[(1, label)] == {4: [2]}


def test_counts_stop_where_they_would_overflow():
    tree = make_tree(1, 2, V)
    nodes = np.array([0, find_or_add(tree, 0, 0)], dtype=np.int32)
    add(tree, nodes, 1, 1)
    tree.counts[tree.begin[nodes[1]]] = MOST - 1
    for _ in range(3):
        add(tree, nodes, 1, 1)
    assert contents(tree)[(0,)] == {1: [MOST, MOST]}
    assert contents(tree)[()][1] == [1, 1]


@pytest.mark.parametrize("columns", [1, 2])
def test_a_tree_without_anything_survives_its_state(columns):
    tree = make_tree(1, columns, V)
    restored = tree_from_state(saved(tree), 1, columns, V)
    assert in_order(restored) == in_order(tree)
