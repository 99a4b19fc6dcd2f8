import numpy as np
import pytest

from calm.corpus.memory import MemoryCorpora, folder_corpora
from calm.errors import CalmError


def write(folder, **texts):
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}.txt").write_bytes(data)
    return folder


def test_characters_with_line_ends_and_halves(tmp_path):
    corpora = folder_corpora(write(tmp_path, b="ba\nab\nč\n", a="aa\nbb\n"))
    assert corpora.classes == ("a", "b")
    assert corpora.vocabulary == ("\n", "a", "b", "č")
    assert corpora.text(corpora.tokens(0, *corpora.extent(0, "dev"))) == "aa\n"
    assert corpora.text(corpora.tokens(0, *corpora.extent(0, "test"))) == "bb\n"
    assert corpora.text(corpora.tokens(1, *corpora.extent(1, "all"))) == "ba\nab\nč\n"
    assert corpora.tokens(0, 0, 2).dtype == np.uint8


def test_words_are_what_stands_between_white_space(tmp_path):
    corpora = folder_corpora(write(tmp_path, a="the cat\nsat  on\tit\n"), level="word")
    assert corpora.vocabulary == ("cat", "it", "on", "sat", "the")
    assert corpora.text(corpora.tokens(0, 0, 5)) == "the cat sat on it"
    assert corpora.extent(0, "dev") == (0, 2)


def test_windows_line_ends_and_a_byte_order_mark_are_no_tokens(tmp_path):
    corpora = folder_corpora(write(tmp_path, a=b"\xef\xbb\xbfx\r\ny"))
    assert corpora.text(corpora.tokens(0, 0, 4)) == "x\ny\n"


def test_fingerprint_follows_the_text(tmp_path):
    first = folder_corpora(write(tmp_path, a="abc\nabd\n")).fingerprint()
    assert folder_corpora(write(tmp_path, a="abc\nabd\n")).fingerprint() == first
    assert folder_corpora(write(tmp_path, a="abc\nadb\n")).fingerprint() != first


@pytest.mark.parametrize(
    ("texts", "level", "words"),
    [
        ({}, "char", "holds no text"),
        ({"a": "x\n", "b": ""}, "char", "b.txt is empty"),
        ({"a": b"ab\xff"}, "char", "a.txt is not UTF-8 text: byte 2 is 0xff"),
        ({"a": "x\n"}, "letter", "level 'letter' is not one of char, word"),
    ],
)
def test_a_wrong_folder_is_one_sentence(tmp_path, texts, level, words):
    with pytest.raises(CalmError) as error:
        folder_corpora(write(tmp_path, **texts), level=level)
    assert words in str(error.value)


def test_the_smallest_type_that_holds_the_vocabulary():
    tokens = np.array([0, 256])
    corpora = MemoryCorpora("x", "word", [str(i) for i in range(257)], {"a": (tokens, tokens)})
    assert corpora.tokens(0, 0, 4).dtype == np.uint16
