import hashlib
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calm.corpus.synthetic.generate import BLOCK


def test_the_text_is_the_same_on_every_machine(synthetic):
    text = synthetic.tokens(0, 0, 100_000).tobytes()
    assert hashlib.sha256(text).hexdigest()[:16] == "f6b5f570412d9128"


@given(start=st.integers(0, 5 * BLOCK), lengths=st.lists(st.integers(0, BLOCK), max_size=4))
def test_any_offset_gives_the_same_text(synthetic, start, lengths):
    edges = np.cumsum([start, *lengths]).tolist()
    pieces = [synthetic.tokens(1, first, last) for first, last in pairwise(edges)]
    whole = synthetic.tokens(1, start, edges[-1])
    assert np.array_equal(np.concatenate([np.empty(0, np.uint8), *pieces]), whole)


def test_every_block_begins_and_ends_with_a_sentence(synthetic):
    for c in range(len(synthetic.classes)):
        for block in (0, 7, 10**6):
            text = synthetic.text(synthetic.tokens(c, block * BLOCK, (block + 1) * BLOCK))
            assert text[0] == " "
            assert text[-1] in ".?!"


def test_words_are_as_frequent_as_the_chain_says(synthetic):
    language = synthetic.languages[0]
    text = synthetic.text(synthetic.tokens(0, 0, 16 * BLOCK))
    for mark in ",.?!":
        text = text.replace(mark, f" {mark}")
    tokens = text.split()
    chain = language.bigram
    stationary = np.linalg.matrix_power(chain, 200)[0]
    expected = stationary[language.category] * language.frequency
    for token in np.argsort(-expected)[:40]:
        share = expected[token]
        count = tokens.count(language.spelling[token].strip())
        spread = np.sqrt(len(tokens) * share)
        assert abs(count - len(tokens) * share) < 6 * spread, language.spelling[token]
