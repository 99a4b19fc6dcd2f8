"""Within a window: which table is believed, by the inputs alone, and what if the class changes."""

import numpy as np
from numba import njit

from calm.learners.counts.features import add_surprise, find_contexts


@njit(cache=True, error_model="numpy")
def follow_belief(model, tree, past, inputs, j, nodes, losses):  # type: ignore[no-untyped-def]
    """Weigh the tables by what they make of the inputs at j, each after its own text.

    The losses are after the text of the table that was believed, to compare tables alone.
    """
    if j == 0 and past.known:
        return
    columns = len(losses)
    usual, own, p = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    one = np.zeros(columns)
    begins, sizes, symbols, counts = tree.begin, tree.size, tree.symbol, tree.counts
    before = np.zeros(model.high + 1, dtype=np.int32)
    differ = j - past.known < model.high  # contexts reach back to where the text may differ
    end = model.order + j
    for r in range(inputs.shape[1]):
        y = inputs[j, r]
        if j > 0:
            p[:] = past.zeroth[0, y]
            add_surprise(
                begins, sizes, symbols, counts, nodes[j - 1, r], y, p,
                model.low, model.high, model.discounts, usual,
            )  # fmt: skip
        for a in range(1, columns if differ else 0):
            if past.active[a]:
                context = past.text[a, r, end - model.high : end]
                find_contexts(tree.slots, tree.parent, tree.label, context, before)
                p[:] = past.zeroth[0, y]
                one[:] = 0.0
                add_surprise(
                    begins, sizes, symbols, counts, before, y, p,
                    model.low, model.high, model.discounts, one,
                )  # fmt: skip
                own[a] += one[a]
    for a in range(columns):
        losses[a] += usual[a]
        past.belief[a] -= model.trust * (own[a] if differ else usual[a])


@njit(cache=True)
def most_believed(active, belief):  # type: ignore[no-untyped-def]
    """The table that is most probable; column 0 if there are none."""
    best = 0
    for a in range(1, len(active)):
        if active[a] and (best == 0 or belief[a] > belief[best]):
            best = a
    return best


@njit(cache=True, error_model="numpy")
def hedge(past, r, row):  # type: ignore[no-untyped-def]
    """Mix the prediction for the first targets with what follows a switch to each other table."""
    home = np.exp(past.belief[past.home])
    total = home
    row[:] = np.exp(row) * np.float32(home)
    for a in range(1, len(past.active)):
        if past.active[a] and a != past.home:
            share = np.exp(past.belief[a])
            total += share
            row += past.foretold[a, r] * np.float32(share)
    row[:] = np.log(row / np.float32(total))


@njit(cache=True, error_model="numpy")
def last_losses(model, tree, nodes, targets, past, losses):  # type: ignore[no-untyped-def]
    """Add the surprise at the last targets (b,), which no input shows, after nodes (b, K + 1)."""
    for r in range(len(targets)):
        p = np.full(len(losses), past.zeroth[0, targets[r]])
        add_surprise(
            tree.begin, tree.size, tree.symbol, tree.counts, nodes[r], targets[r], p,
            model.low, model.high, model.discounts, losses,
        )  # fmt: skip
