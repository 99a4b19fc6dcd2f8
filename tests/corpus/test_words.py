from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.corpus import words
from calm.corpus.words import WordCounts, Words

SPACES = " \t\v\f\r\x1c\x85\u00a0\u1680\u2003\u2028\u202f\u205f\u3000\n\n"
characters = st.one_of(
    st.sampled_from("abč"), st.sampled_from(SPACES), st.characters(codec="utf-8")
)
texts = st.text(characters, min_size=1, max_size=80).map(lambda text: text + "\n")


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("words")


def block(text):
    return np.frombuffer(text.encode(), dtype=np.uint8)


def most_frequent(text, top):
    counts = Counter(word for word in text.split() if word != "<unk>")
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0].encode()))[:top])


@given(texts=st.lists(texts, min_size=1, max_size=3), top=st.integers(1, 5))
def test_it_keeps_the_most_frequent_words_of_every_class(work, texts, top):
    cleaner = Words(top, work)
    for c, text in enumerate(texts):
        cleaner.count(c, block(text))
    vocabulary = cleaner.settle(len(texts))
    total = Counter()
    for text in texts:
        total.update(most_frequent(text, top))
    ordered = sorted(total, key=lambda word: (-total[word], word.encode()))
    assert list(vocabulary) == ["<unk>", *ordered]
    for c, text in enumerate(texts):
        encoded = cleaner.encode(c, block(text))
        expected = [word if word in total else "<unk>" for word in text.split()]
        assert [vocabulary[t] for t in encoded.tokens] == expected
        by_line = [len(line.split()) for line in text.split("\n")[:-1]]
        assert encoded.line_lengths.tolist() == by_line


def test_an_unknown_word_in_the_text_is_the_unknown_word(tmp_path):
    cleaner = Words(1, tmp_path)
    cleaner.count(0, block("<unk> <unk> a b\n"))
    assert cleaner.settle(1) == ("<unk>", "a")
    assert cleaner.encode(0, block("<unk> a b\n")).tokens.tolist() == [0, 1, 0]


@given(
    st.lists(st.lists(st.integers(0, 400), max_size=60), min_size=1, max_size=12),
    st.integers(1, 30),
)
def test_counts_are_exact_however_small_the_table(work, numbers, top):
    """Tables that grow, overflow and are merged give the counts of a plain counter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "SMALL", 8)
        patch.setattr(words, "LARGE", 32)
        counts, expected = WordCounts(work / "x"), Counter()
        for part in numbers:
            text = "".join(f"{'w' * (n % 50)}{n} " for n in part) + "\n"
            counts.add(block(text))
            expected.update(text.encode().split())
        found = counts.most_frequent(top)
    assert found == sorted(expected.items(), key=lambda item: (-item[1], item[0]))[:top]


def test_classes_may_take_turns(tmp_path):
    cleaner = Words(10, tmp_path)
    for c, text in ((0, "a b"), (1, "c"), (0, "b"), (1, "c d")):
        cleaner.count(c, block(text + "\n"))
    assert cleaner.settle(2) == ("<unk>", "b", "c", "a", "d")


def test_long_words_of_equal_key_are_told_apart_by_their_letters():
    from calm.corpus import wordtable

    text = block(" ".join(f"longword{i}" for i in range(7)) + "\n")
    slots, starts, pool = np.zeros((32, 2), np.uint64), np.arange(0, 90, 9), np.zeros(99, np.uint8)
    key = wordtable.LONG | np.uint64(5)
    words = [(i, np.uint64(10 * i), np.uint64(10 * i + 9)) for i in range(7)]
    for i, begin, end in words:
        slot = wordtable.find(text, begin, end, key, slots, starts, pool)
        assert slots[slot, 0] == 0
        slots[slot] = key, i
        pool[9 * i : 9 * i + 9] = text[10 * i : 10 * i + 9]
    for i, begin, end in words:
        slot = wordtable.find(text, begin, end, key, slots, starts, pool)
        assert slots[slot].tolist() == [int(key), i]


@given(st.binary(min_size=1, max_size=9), st.binary(min_size=1, max_size=9))
def test_short_words_have_keys_of_their_own(x, y):
    from calm.corpus import wordtable

    def key(word):
        data = np.frombuffer(word.translate(None, b" \t\n\v\f\r\x1c\x1d\x1e\x1f") or b"x", np.uint8)
        kinds = np.minimum(wordtable.KINDS, 1)
        kinds[128:] = 0
        end, found = wordtable.end_of_word(data, np.uint64(0), wordtable.SPACES, kinds)
        assert end == len(data)
        assert (found >= wordtable.LONG) == (len(data) > 7)
        return data.tobytes(), found

    (x, of_x), (y, of_y) = key(x), key(y)
    if len(x) <= 7 and len(y) <= 7:
        assert (x == y) == (of_x == of_y)
