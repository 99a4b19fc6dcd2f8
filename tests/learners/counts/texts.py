"""Hand-made classes of text, told apart by which symbol follows which."""

import numpy as np


def two_classes(vocabulary, lengths, rows=2, window=10, usual=0.85, seed=0):
    """Batches of classes 0 and 1 in turn, and each batch's class; lengths in batches."""
    draws, batches, along = np.random.default_rng(seed), [], []
    symbol = draws.integers(0, vocabulary, rows)
    for fragment, length in enumerate(lengths):
        for _ in range(length):
            text = [symbol]
            for _ in range(window):
                following = symbol + 1 if fragment % 2 == 0 else 5 * symbol + 2
                other = draws.integers(0, vocabulary, rows)
                symbol = np.where(draws.random(rows) < usual, following, other) % vocabulary
                text.append(symbol)
            batches.append((read_only(text[:-1]), read_only(text[1:])))
            along.append(fragment % 2)
    return batches, along


def read_only(symbols):
    """An array of the type that streams hand out, so that all share what numba compiles."""
    array = np.array(symbols, dtype=np.int64, order="C")
    array.setflags(write=False)
    return array
