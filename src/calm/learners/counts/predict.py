"""Predicts a batch: position by position, what the experts add up to."""

from typing import NamedTuple

import numpy as np
from numba import njit

from calm.learners.counts.belief import follow_belief, hedge, most_believed
from calm.learners.counts.features import BUCKETS, add_expert, find_contexts
from calm.learners.counts.tree import Array
from calm.learners.counts.words import CONTEXTS, follow_words

CIRCUMSTANCES = 4


class Model(NamedTuple):
    """Orders of the experts, and of those that tell classes apart; discounts (order + 1, 4)."""

    order: int
    class_order: int
    low: int
    high: int
    trust: float  # of the evidence for a class among the inputs, as a power of its likelihood
    discounts: Array
    pairs: int  # rows of weights for the last two symbols


class Past(NamedTuple):
    """What is known before a batch.

    Of every table, what its text would be in each row: text (columns, b, K + w), such that the
    context of order k at position j ends with text[…, K + j]; -1 before the first symbol. known:
    whether the first inputs are targets of a batch that was learned; if not they are news.
    """

    text: Array
    known: bool
    word_rows: Array  # (columns, b, nodes)
    separator: int
    foretold: Array  # (columns, b, V): what was to come when the text left a table
    home: int  # the table of the last batch
    active: Array  # (columns,)
    belief: Array  # (columns,): log probabilities; changed as the inputs come in
    zeroth: Array  # (columns, V): frequencies, all in all and in every table
    dense: Array  # (d, V): features given for every symbol


def circumstance_rows(order: int, pairs: int, vocabulary: int) -> int:
    """Return how many rows of weights circumstances need."""
    return order + 1 + (1 << CONTEXTS) + (BUCKETS + 1) ** 2 + vocabulary + pairs


@njit(cache=True, error_model="numpy")
def predict_batch(model, tree, words, past, weights, inputs, trace, out):  # type: ignore[no-untyped-def]
    """Write log-probabilities (w, b, V) to out; False if the trace has no room for the features."""
    w, b = inputs.shape
    order = model.order
    n, vocabulary = weights.chosen.shape[1], past.zeroth.shape[1]
    base, mass, sums = _dense_part(past.dense, weights.own[n:])
    total = mass.sum()
    q_all, q_table = past.zeroth[0].copy(), past.zeroth[past.home].copy()
    gain = np.zeros(vocabulary)
    chance = np.zeros(vocabulary)
    met = np.zeros(vocabulary, dtype=np.int64)  # the last position at which a symbol had a feature
    touched = np.zeros(vocabulary, dtype=np.int64)
    nodes = trace.nodes
    trace.losses[:] = 0.0
    trace.share[:] = 0.0
    trace.share[n:] = weights.own[n:] * (w * b)
    used, column = 0, -1
    word_nodes = np.empty((w, b, 0), dtype=np.int32)
    for j in range(w):
        follow_belief(model, tree, past, inputs, j, nodes, trace.losses)
        believed = most_believed(past.active, past.belief)
        if believed != column:
            column = believed
            if n > order + model.class_order:
                word_nodes = follow_words(
                    words, inputs, past.known, past.separator, past.word_rows[column].copy(), False
                )
        for r in range(b):
            p = j * b + r
            context = past.text[column, r, j + 1 : j + 1 + order]
            find_contexts(tree.slots, tree.parent, tree.label, context, nodes[j, r])
            used = _gather(
                model, tree, words, nodes[j, r], word_nodes[j, r], column,
                q_all, q_table, trace, p, used,
            )  # fmt: skip
            if used < 0:
                return False
            rows = trace.circumstances[p]
            _circumstances(model, nodes[j, r], trace.bucket[p], context, vocabulary, rows)
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
            if j == 0 and past.known and len(past.active) > 2:
                hedge(past, r, row)
    trace.share[:] /= w * b
    return True


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
def _circumstances(model, nodes, bucket, context, vocabulary, rows):  # type: ignore[no-untyped-def]
    """Choose weights by the longest context, the word contexts known, confidence, and symbols."""
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
    row = model.order + 1 + (1 << CONTEXTS)
    rows[2] = row + (BUCKETS + 1) * (best + 1) + bucket[max(longest - 1, 0)] + 1
    row += (BUCKETS + 1) ** 2
    symbol, before = context[len(context) - 1], context[max(len(context) - 2, 0)]
    rows[3] = row + symbol
    if model.pairs:
        rows[4] = row + vocabulary + (symbol * 5051 + before) % model.pairs


@njit(cache=True)
def _weigh(weights, trace, p, gain, met, touched):  # type: ignore[no-untyped-def]
    """Add up the weighted features of each symbol in gain; returns how many symbols have any."""
    by_confidence, chosen = weights.by_confidence, weights.chosen
    start, names, values = trace.start, trace.names, trace.values
    bucket, share = trace.bucket, trace.share
    n = chosen.shape[1]
    total = weights.own[:n].copy()
    for row in trace.circumstances[p]:
        for i in range(n):
            total[i] += chosen[row, i]
    count = 0
    for i in range(n):
        first, last = start[p, i], start[p, i + 1]
        if first == last:
            continue
        weight = total[i] + by_confidence[i, bucket[p, i]]
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
