"""Hand-made classes of text, told apart by which symbol follows which, each where it stopped."""

import numpy as np


def two_classes(vocabulary, lengths, rows=2, window=10, usual=0.85, seed=0):
    """Batches of classes 0 and 1 in turn, and each batch's class; lengths in batches."""
    draws, batches, along = np.random.default_rng(seed), [], []
    symbols = draws.integers(0, vocabulary, (2, rows))
    last = symbols[0]
    for fragment, length in enumerate(lengths):
        c = fragment % 2
        for _ in range(length):
            text = [last]
            for _ in range(window):
                following = 5 * symbols[c] + 2 if c else symbols[c] + 1
                other = draws.integers(0, vocabulary, rows)
                symbols[c] = np.where(draws.random(rows) < usual, following, other) % vocabulary
                text.append(symbols[c].copy())
            batches.append((read_only(text[:-1]), read_only(text[1:])))
            along.append(c)
            last = text[-1]
    return batches, along


def read_only(symbols):
    """An array of the type that streams hand out, so that all share what numba compiles."""
    array = np.array(symbols, dtype=np.int64, order="C")
    array.setflags(write=False)
    return array
