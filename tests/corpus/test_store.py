import random

import numpy as np
import pytest

from calm.corpus.store import INDEX, StoredCorpora, holds_set, read_index, verify
from calm.corpus.vocabulary import read_vocabulary, write_vocabulary
from calm.errors import CalmError
from calm.stream import Stream
from corpus.texts import build, make_text


@pytest.fixture
def path(tmp_path):
    return build(tmp_path / "set", {"a": make_text(1), "b": make_text(2)}, "word")


def test_a_flipped_bit_is_found_wherever_it_is(path):
    assert verify(path) == []
    chance = random.Random(0)
    for file in sorted(path.iterdir()):
        if file.name == INDEX:
            continue
        good = file.read_bytes()
        bad = bytearray(good)
        bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        file.write_bytes(bad)
        (fault,) = verify(path)
        assert fault == f"{file} has changed: its SHA-256 is another than when it was built"
        file.write_bytes(good)


def test_a_missing_file_is_found(path):
    (path / "b.test.npy").unlink()
    assert verify(path) == [f"{path / 'b.test.npy'} is missing"]
    with pytest.raises(CalmError, match=r"b.test.npy cannot be read .* build the corpora"):
        StoredCorpora(path)


@pytest.mark.parametrize(("number", "words"), [(1, "build the set again"), (9, "update calm")])
def test_another_format_is_said(path, number, words):
    index = path / INDEX
    index.write_text(index.read_text().replace("format = 2", f"format = {number}"))
    with pytest.raises(CalmError, match=f"was written in format {number}.*{words}"):
        StoredCorpora(path)


def test_a_damaged_index_is_said(path):
    (path / INDEX).write_text("format = ")
    assert holds_set(path)
    with pytest.raises(CalmError, match=r"corpora.toml is damaged .* build the set again"):
        read_index(path)


def test_tokens_are_mapped_not_read(path):
    stored = StoredCorpora(path)
    tokens = stored.tokens(0, 0, 10)
    assert isinstance(tokens.base.base, np.memmap) or isinstance(tokens.base, np.memmap)
    assert not tokens.flags.writeable
    assert tokens.dtype == np.uint16


def test_a_stream_over_a_stored_set_equals_one_in_memory(tmp_path):
    from calm.corpus.memory import folder_corpora

    texts = {"a": make_text(1, 900), "b": make_text(2, 900)}
    (tmp_path / "texts").mkdir()
    for name, text in texts.items():
        (tmp_path / "texts" / f"{name}.txt").write_text(text)
    corpora = folder_corpora(tmp_path / "texts"), StoredCorpora(build(tmp_path / "set", texts))
    streams = [Stream(c, 6, 900, rows=3, window=5, split="all") for c in corpora]
    for x, y in zip(*streams, strict=True):
        assert np.array_equal(x.inputs, y.inputs)
        assert np.array_equal(x.targets, y.targets)


def test_any_symbol_survives_the_vocabulary_file(tmp_path):
    symbols = ("\n", "\r", "\\", "n", "\\n", "<unk>", "\u2028", "\x85", " ", "č", "🙂", "")
    write_vocabulary(symbols, tmp_path / "vocabulary.txt")
    assert read_vocabulary(tmp_path / "vocabulary.txt") == symbols
