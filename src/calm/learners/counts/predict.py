"""Predicts a batch: position by position, what the experts add up to."""

from typing import NamedTuple

import numpy as np
from numba import njit

from calm.learners.counts.features import BUCKETS, add_expert, add_surprise, find_contexts
from calm.learners.counts.tree import Array

CIRCUMSTANCES = 4


class Model(NamedTuple):
    """Orders of the experts, and of those that tell classes apart; discounts (order + 1, 4)."""

    order: int
    class_order: int
    low: int
    high: int
    trust: float  # of the evidence for a class among the inputs, as a power of its likelihood
    discounts: Array


class Past(NamedTuple):
    """What is known before a batch.

    rows (b, K): the last symbols of every row, the newest last; -1 before the first. read: whether
    the first inputs are news, or the targets of a batch that was learned.
    """

    rows: Array
    word_nodes: Array  # (w, b, contexts)
    home: int  # the table of the last batch
    active: Array  # (columns,)
    belief: Array  # (columns,): log probabilities; changed as the inputs come in
    zeroth: Array  # (columns, V): frequencies, all in all and in every table
    dense: Array  # (d, V): features given for every symbol
    read: bool


def circumstance_rows(order: int, vocabulary: int) -> int:
    """Return how many rows of weights circumstances need."""
    return order + 1 + (1 << 4) + (BUCKETS + 1) ** 2 + vocabulary


@njit(cache=True, error_model="numpy")
def predict_batch(model, tree, words, past, weights, inputs, trace, out):  # type: ignore[no-untyped-def]
    """Write log-probabilities (w, b, V) to out; False if the trace has no room for the features."""
    w, b = inputs.shape
    order = model.order
    n, vocabulary = weights.chosen.shape[1], past.zeroth.shape[1]
    base, mass, sums = _dense_part(past.dense, weights.own[n:])
    total = mass.sum()
    rows = past.rows.copy()
    q_all, q_table = past.zeroth[0].copy(), past.zeroth[past.home].copy()
    gain = np.zeros(vocabulary)
    chance = np.zeros(vocabulary)
    met = np.zeros(vocabulary, dtype=np.int64)  # the last position at which a symbol had a feature
    touched = np.zeros(vocabulary, dtype=np.int64)
    nodes = trace.nodes
    trace.losses[:] = 0.0
    trace.share[:] = 0.0
    trace.share[n:] = weights.own[n:] * (w * b)
    used = 0
    for j in range(w):
        _follow_belief(model, tree, past, inputs, j, nodes, trace.losses)
        column = _believed(past.active, past.belief)
        for r in range(b):
            rows[r, : order - 1] = rows[r, 1:]
            rows[r, order - 1] = inputs[j, r]
            p = j * b + r
            find_contexts(tree.slots, tree.parent, tree.label, rows[r], nodes[j, r])
            if column != past.home and not past.read:
                nodes[j, r, j + 1 :] = -1  # a switch was before this window: so was the context
            used = _gather(
                model, tree, words, nodes[j, r], past.word_nodes[j, r], column,
                q_all, q_table, trace, p, used,
            )  # fmt: skip
            if used < 0:
                return False
            rows_of_weights = trace.circumstances[p]
            _circumstances(model, nodes[j, r], trace.bucket[p], inputs[j, r], rows_of_weights)
            count = _weigh(weights, trace, p, gain, met, touched)
            whole = total
            for t in range(count):
                v = touched[t]
                chance[v] = mass[v] * np.exp(gain[v])
                whole += chance[v] - mass[v]
            log_whole = np.log(whole)
            row = out[j, r]
            for v in range(vocabulary):
                row[v] = base[v] - log_whole
            for t in range(count):
                v = touched[t]
                row[v] += gain[v]
                q_all[v] = past.zeroth[0, v]
                q_table[v] = past.zeroth[past.home, v]
            _expect(past.dense, sums, mass, chance, whole, touched[:count], trace, p)
    trace.share[:] /= w * b
    return True


@njit(cache=True, error_model="numpy")
def last_losses(model, tree, nodes, targets, past, losses):  # type: ignore[no-untyped-def]
    """Add the surprise at the last targets (b,), which no input shows, after nodes (b, K + 1)."""
    for r in range(len(targets)):
        p = np.full(len(losses), past.zeroth[0, targets[r]])
        add_surprise(
            tree.begin, tree.size, tree.symbol, tree.counts, nodes[r], targets[r], p,
            model.low, model.high, model.discounts, losses,
        )  # fmt: skip


@njit(cache=True, error_model="numpy")
def _dense_part(dense, own):  # type: ignore[no-untyped-def]
    """The logits that all positions share, their exponentials, and the sums of those by feature."""
    base = np.zeros(dense.shape[1])
    for i in range(len(dense)):
        base += own[i] * dense[i]
    base -= base.max()
    mass = np.exp(base)
    sums = np.zeros(len(dense))
    for i in range(len(dense)):
        sums[i] = (mass * dense[i]).sum()
    return base, mass, sums


@njit(cache=True, error_model="numpy")
def _follow_belief(model, tree, past, inputs, j, nodes, losses):  # type: ignore[no-untyped-def]
    """Weigh the tables by what they make of the inputs at j, given those before.

    If there was a switch, it was before the window, and what another table makes of the first
    inputs does not depend on what came before that.
    """
    if j == 0 and not past.read:
        return
    columns = len(losses)
    usual, entering, p = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    begins, sizes, symbols, counts = tree.begin, tree.size, tree.symbol, tree.counts
    before = np.zeros(model.order + 1, dtype=np.int32)
    first = not past.read and j <= model.high + 1
    for r in range(inputs.shape[1]):
        y = inputs[j, r]
        if j == 0:
            find_contexts(tree.slots, tree.parent, tree.label, past.rows[r], before)
        context = before if j == 0 else nodes[j - 1, r]
        p[:] = past.zeroth[0, y]
        add_surprise(
            begins, sizes, symbols, counts, context, y, p,
            model.low, model.high, model.discounts, usual,
        )  # fmt: skip
        if first:
            p[:] = past.zeroth[:, y]
            add_surprise(
                begins, sizes, symbols, counts, context, y, p,
                1, min(model.high, j - 1), model.discounts, entering,
            )  # fmt: skip
    for a in range(columns):
        losses[a] += usual[a]
        past.belief[a] -= model.trust * (entering[a] if first and a != past.home else usual[a])


@njit(cache=True)
def _believed(active, belief):  # type: ignore[no-untyped-def]
    """The table that is most probable; column 0 if there are none."""
    best = 0
    for a in range(1, len(active)):
        if active[a] and (best == 0 or belief[a] > belief[best]):
            best = a
    return best


@njit(cache=True, error_model="numpy")
def _gather(model, tree, words, nodes, word_nodes, column, q_all, q_table, trace, p, used):  # type: ignore[no-untyped-def]
    """Write the features of all experts at a position; -1 if there is no room for them."""
    begins, sizes, symbols, counts = tree.begin, tree.size, tree.symbol, tree.counts
    values, names, bucket, start = trace.values, trace.names, trace.bucket, trace.start
    i = 0
    q, scale = q_all, 1.0
    for which in range(2 if model.class_order > 0 else 1):  # all text, then the table
        q = q_all if which == 0 else q_table
        scale = 1.0
        for k in range(1, (model.order if which == 0 else model.class_order) + 1):
            start[p, i] = used
            bucket[p, i] = -1
            node = nodes[k]
            if node >= 0:
                if used + sizes[node] > len(values):
                    return -1
                scale, used, bucket[p, i] = add_expert(
                    begins[node], sizes[node], symbols, counts, 0 if which == 0 else column,
                    model.discounts[k], q, scale, True, values, names, used,
                )  # fmt: skip
            i += 1
    for x in range(len(word_nodes)):  # each by itself, over the last of those
        start[p, i] = used
        bucket[p, i] = -1
        node = word_nodes[x]
        if node >= 0:
            if used + words.size[node] > len(values):
                return -1
            _, used, bucket[p, i] = add_expert(
                words.begin[node], words.size[node], words.symbol, words.counts, 0,
                model.discounts[model.order], q, scale, False, values, names, used,
            )  # fmt: skip
        i += 1
    start[p, i] = used
    return used


@njit(cache=True)
def _circumstances(model, nodes, bucket, symbol, rows):  # type: ignore[no-untyped-def]
    """Choose weights by the longest context, the word contexts known, confidence, and symbol."""
    longest = model.order
    while longest > 0 and nodes[longest] < 0:
        longest -= 1
    first_word = model.order + model.class_order
    known, best = 0, -1
    for i in range(first_word, len(bucket)):
        known = 2 * known + (bucket[i] >= 0)
    if len(bucket) > first_word:
        best = bucket[first_word]
    rows[0] = longest
    rows[1] = model.order + 1 + known
    row = model.order + 1 + (1 << 4)
    rows[2] = row + (BUCKETS + 1) * (best + 1) + bucket[max(longest - 1, 0)] + 1
    rows[3] = row + (BUCKETS + 1) ** 2 + symbol


@njit(cache=True)
def _weigh(weights, trace, p, gain, met, touched):  # type: ignore[no-untyped-def]
    """Add up the weighted features of each symbol in gain; returns how many symbols have any."""
    own, by_confidence, chosen = weights.own, weights.by_confidence, weights.chosen
    start, names, values = trace.start, trace.names, trace.values
    rows, bucket, share = trace.circumstances, trace.bucket, trace.share
    count = 0
    for i in range(chosen.shape[1]):
        first, last = start[p, i], start[p, i + 1]
        if first == last:
            continue
        weight = own[i] + by_confidence[i, bucket[p, i]]
        for m in range(rows.shape[1]):
            weight += chosen[rows[p, m], i]
        share[i] += weight
        for f in range(first, last):
            v = names[f]
            if met[v] != p + 1:
                met[v] = p + 1
                gain[v] = 0.0
                touched[count] = v
                count += 1
            gain[v] += weight * values[f]
    return count


@njit(cache=True, error_model="numpy")
def _expect(dense, sums, mass, chance, whole, touched, trace, p):  # type: ignore[no-untyped-def]
    """What is expected of every feature under the prediction."""
    start, names, values, expected = trace.start, trace.names, trace.values, trace.expected
    n = start.shape[1] - 1
    for i in range(len(dense)):
        total = sums[i]
        for v in touched:
            total += (chance[v] - mass[v]) * dense[i, v]
        expected[p, n + i] = total / whole
    for i in range(n):
        total = 0.0
        for f in range(start[p, i], start[p, i + 1]):
            total += chance[names[f]] * values[f]
        expected[p, i] = total / whole
