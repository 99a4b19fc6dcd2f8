import random
from pathlib import Path

import numpy as np
import pytest

from calm.corpus import store
from calm.corpus.store import INDEX, StoredCorpora, holds_set, read_index, verify, write_index
from calm.corpus.vocabulary import read_vocabulary, write_vocabulary
from calm.errors import CalmError
from calm.stream import Stream
from corpus.texts import build, make_text


@pytest.fixture
def path(tmp_path):
    return build(tmp_path / "set", {"a": make_text(1), "b": make_text(2)}, "word")


def flipped(data, chance, end):
    bad = bytearray(data)
    bad[chance.randrange(end)] ^= 1 << chance.randrange(8)
    return bytes(bad)


@pytest.mark.parametrize("flips", range(8))
def test_a_flipped_bit_is_found_wherever_it_is(path, flips):
    assert verify(path) == []
    chance = random.Random(flips)
    for file in sorted(path.iterdir()):
        good = file.read_bytes()
        file.write_bytes(flipped(good, chance, len(good)))
        (fault,) = verify(path)
        if file.name == INDEX:
            assert fault.startswith(f"{file} is damaged (")
        else:
            assert fault == f"{file} has changed: its SHA-256 is another than when it was built"
        file.write_bytes(good)


@pytest.mark.filterwarnings("ignore")
def test_a_set_whose_small_parts_are_damaged_is_not_opened(path):
    def read_all():
        stored = StoredCorpora(path)
        stored.counts()
        for c in range(len(stored.classes)):
            stored.line_ends(c, "dev"), stored.line_ends(c, "test")

    chance = random.Random(0)
    for file in sorted(path.iterdir()):
        good = file.read_bytes()
        written_in_full = file.suffix != ".npy"
        for _ in range(40):
            file.write_bytes(flipped(good, chance, len(good) if written_in_full else 80))
            try:
                read_all()
            except CalmError as error:
                assert str(file) in str(error)
            else:
                assert not written_in_full
        file.write_bytes(good[: len(good) // 2])
        with pytest.raises(CalmError, match=f"{file.name}.* build the "):
            read_all()
        file.unlink()
        with pytest.raises(CalmError, match=str(file)):
            read_all()
        file.write_bytes(good)


def test_an_index_without_its_last_line_is_damaged(path):
    lines = (path / INDEX).read_text().splitlines(keepends=True)
    (path / INDEX).write_text("".join(lines[:-1]))
    with pytest.raises(CalmError, match="its checksum is missing.*: build the set again"):
        StoredCorpora(path)


def test_a_file_that_may_not_be_read_is_not_called_damaged(path, monkeypatch):
    def refuse(file, *_, **__):
        raise PermissionError(13, "Permission denied", str(file))

    with monkeypatch.context() as patch:
        patch.setattr(np, "load", refuse)
        with pytest.raises(CalmError, match="npy cannot be read: Permission denied$"):
            StoredCorpora(path)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(CalmError, match="toml cannot be read: Permission denied$"):
        StoredCorpora(path)


def test_a_missing_file_is_found(path):
    (path / "b.test.npy").unlink()
    assert verify(path) == [f"{path / 'b.test.npy'} is missing"]
    with pytest.raises(CalmError, match=r"b.test.npy cannot be read .* build the corpora"):
        StoredCorpora(path)


@pytest.mark.parametrize(("number", "words"), [(1, "build the set again"), (9, "update calm")])
def test_another_format_is_said(path, number, words, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(store, "FORMAT", number)
        write_index(path, {})
    with pytest.raises(CalmError, match=f"was written in format {number}.*{words}"):
        StoredCorpora(path)


def test_formats_without_a_checksum_are_told_from_damage(path):
    (path / INDEX).write_text("format = 2\n")
    with pytest.raises(CalmError, match="was written in format 2.*build the set again"):
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
