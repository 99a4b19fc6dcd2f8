import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.learners.counts.features import (
    BUCKETS,
    add_expert,
    add_surprise,
    confidence,
    find_contexts,
)
from calm.learners.counts.tree import add, find_or_add, make_tree

V, COLUMNS, K = 5, 3, 4
DISCOUNTS = np.tile([0.0, 0.7, 0.85, 0.95], (K + 1, 1)) * np.linspace(1.0, 0.9, K + 1)[:, None]
texts = st.lists(
    st.tuples(st.integers(0, V - 1), st.integers(0, COLUMNS - 1)), min_size=K, max_size=120
)


def counted(text):
    """A tree of a text with a column for each symbol, and the nodes after its last symbols."""
    tree, past = make_tree(1, COLUMNS, V), []
    nodes = np.full(K + 1, -1, dtype=np.int32)
    for symbol, column in text:
        nodes[:] = -1
        nodes[0] = 0
        for k in range(1, min(K, len(past)) + 1):
            nodes[k] = find_or_add(tree, nodes[k - 1], past[-k])
        add(tree, nodes, symbol, column)
        past.append(symbol)
    find_contexts(tree.slots, tree.parent, tree.label, np.array(past[-K:]), nodes)
    return tree, nodes


def after(tree, node, column):
    """The counts after a node, (V,)."""
    counts = np.zeros(V, dtype=int)
    for e in range(tree.begin[node], tree.begin[node] + tree.size[node]):
        counts[tree.symbol[e]] = tree.counts[e, column]
    return counts


def longer(p, counts, k):
    """From the distribution of order k - 1 to that of order k."""
    n = counts.sum()
    if n == 0:
        return p
    d = DISCOUNTS[k][np.minimum(counts, 3)]
    return (np.maximum(counts - d, 0) + d.sum() * p) / n


@given(texts, st.integers(0, COLUMNS - 1))
def test_features_with_a_weight_of_1_add_up_to_the_longest_order(text, column):
    tree, nodes = counted(text)
    q = np.random.default_rng(len(text)).dirichlet(np.ones(V))
    expected, logits = q.copy(), np.log(q)
    names, values = np.zeros(K * V, dtype=np.int32), np.zeros(K * V)
    scale, used = 1.0, 0
    for k in range(1, K + 1):
        if nodes[k] < 0:
            break
        counts = after(tree, nodes[k], column)
        expected = longer(expected, counts, k)
        first = used
        scale, used, bucket = add_expert(
            tree.begin[nodes[k]], tree.size[nodes[k]], tree.symbol, tree.counts, column,
            DISCOUNTS[k], q, scale, True, values, names, used,
        )  # fmt: skip
        assert sorted(names[first:used]) == np.flatnonzero(counts).tolist()
        assert (values[first:used] > 0).all()
        assert -1 <= bucket < BUCKETS
        assert (bucket < 0) == (counts.sum() == 0)
        assert np.allclose(q * scale, expected, rtol=1e-9)
        np.add.at(logits, names[first:used], values[first:used])
        product = np.exp(logits - logits.max())
        assert np.allclose(product / product.sum(), expected, rtol=1e-9)


def test_an_expert_that_does_not_move_leaves_what_is_below_it():
    tree, nodes = counted([(0, 0), (1, 0), (0, 0), (2, 0), (0, 0)])
    q, scale = np.full(V, 0.2), 0.5
    names, values = np.zeros(V, dtype=np.int32), np.zeros(V)
    arguments = tree.begin[nodes[1]], tree.size[nodes[1]], tree.symbol, tree.counts, 0, DISCOUNTS[1]
    _, used, _ = add_expert(*arguments, q, scale, False, values, names, 0)
    assert (q == 0.2).all()
    d = DISCOUNTS[1, 1]  # after 0 there were 1 and 2, once each
    assert sorted(names[:used]) == [1, 2]
    assert values[:used] == pytest.approx(np.log((1 - d + 2 * d * 0.1) / (2 * d * 0.1)))


@given(texts, st.integers(0, V - 1), st.integers(1, K), st.integers(0, K))
def test_surprise_is_of_a_columns_own_orders_over_common_ones(text, y, low, high):
    tree, nodes = counted(text)
    start = np.random.default_rng(y).dirichlet(np.ones(V), COLUMNS)
    if low > 1:  # what is below common orders is common
        start[:] = start[0]
    total = np.arange(COLUMNS, dtype=float)
    expected = total.copy()
    for column in range(COLUMNS):
        p = start[column]
        for k in range(1, high + 1):
            if nodes[k] < 0:
                break
            p = longer(p, after(tree, nodes[k], 0 if k < low else column), k)
        expected[column] -= np.log(p[y])
    add_surprise(
        tree.begin, tree.size, tree.symbol, tree.counts, nodes, y, start[:, y].copy(),
        low, high, DISCOUNTS, total,
    )  # fmt: skip
    assert np.allclose(total, expected, rtol=1e-9)


@given(texts)
def test_contexts_are_found_from_short_to_long_up_to_the_first_that_is_unknown(text):
    tree, _ = counted(text)
    symbols = [symbol for symbol, _ in text]
    past = np.random.default_rng(len(text)).integers(-1, V, K)
    seen = {tuple(symbols[i : i + k]) for k in range(K + 1) for i in range(len(symbols) - k)}
    nodes = np.zeros(K + 1, dtype=np.int32)
    longest = find_contexts(tree.slots, tree.parent, tree.label, past, nodes)
    known = [k for k in range(K + 1) if tuple(past[K - k :].tolist()) in seen]
    assert known == list(range(longest + 1))
    assert (nodes >= 0).tolist() == [k <= longest for k in range(K + 1)]
    for k in range(1, longest + 1):
        assert (tree.parent[nodes[k]], tree.label[nodes[k]]) == (nodes[k - 1], past[K - k])


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_confidence_is_one_of_the_buckets(counts):
    bucket = confidence(float(sum(counts)), len(counts), max(counts))
    assert 0 <= bucket < BUCKETS
    few, two, many = range(5), range(5, 8), range(8, BUCKETS)
    assert bucket in {1: few, 2: two}.get(len(counts), many)


def test_more_of_the_same_is_more_confidence():
    for distinct in (1, 2, 3, 9):
        buckets = [confidence(float(c * distinct), distinct, c) for c in range(1, 30)]
        assert buckets == sorted(buckets)
        assert buckets[-1] == {1: 4, 2: 7}.get(distinct, BUCKETS - 1)
