from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calm.corpus.characters import Characters

lines = st.text(
    st.one_of(st.sampled_from("ab č€🙂"), st.characters(codec="utf-8", exclude_characters="\n")),
    max_size=12,
)
texts = st.lists(lines, min_size=1, max_size=8).map(lambda parts: "".join(x + "\n" for x in parts))


def block(text):
    return np.frombuffer(text.encode(), dtype=np.uint8)


def transcription(texts, rare, scope):
    """What is kept, read aloud: the lines of every class, and all characters in them."""
    counts = [Counter(text) for text in texts]
    if scope == "set":
        counts = [sum(counts, Counter())] * len(texts)
    kept = [
        [
            line
            for line in text.split("\n")[:-1]
            if all(count[character] >= rare for character in line)
        ]
        for text, count in zip(texts, counts, strict=True)
    ]
    frequent = {c for count in counts for c, n in count.items() if n >= rare} | {"\n"}
    return kept, sorted(frequent)


@given(
    texts=st.lists(texts, min_size=1, max_size=3),
    rare=st.integers(1, 4),
    scope=st.sampled_from(["set", "class"]),
)
def test_it_keeps_what_the_rule_says(texts, rare, scope):
    cleaner = Characters(rare, scope)
    for c, text in enumerate(texts):
        for line in text.split("\n")[:-1]:  # in blocks of a line each
            cleaner.count(c, block(line + "\n"))
    vocabulary = cleaner.settle(len(texts))
    kept, expected = transcription(texts, rare, scope)
    assert list(vocabulary) == expected
    for c, text in enumerate(texts):
        encoded = cleaner.encode(c, block(text))
        assert "".join(vocabulary[t] for t in encoded.tokens) == "".join(x + "\n" for x in kept[c])
        assert encoded.line_lengths.tolist() == [len(line) + 1 for line in kept[c]]
        assert encoded.dropped_lines == text.count("\n") - len(kept[c])
        assert encoded.dropped_tokens == len(text) - len(encoded.tokens)


def test_tokens_have_the_smallest_type():
    for size, kind in ((250, np.uint8), (300, np.uint16)):
        cleaner = Characters(1, "set")
        text = block("".join(chr(0x4E00 + i) for i in range(size)) + "\n")
        cleaner.count(0, text)
        cleaner.settle(1)
        assert cleaner.encode(0, text).tokens.dtype == kind
