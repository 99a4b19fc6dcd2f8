import random
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calm.config import Cleaning
from calm.corpus import builder, documents
from calm.corpus.builder import build_set
from calm.corpus.documents import Document
from calm.corpus.memory import folder_corpora
from calm.corpus.store import StoredCorpora, read_index, verify
from calm.errors import CalmError, RunFailedError
from corpus.texts import KEEP_ALL, build, make_text
from helpers import small_files

TEXTS = {"a": make_text(1), "b": make_text(2, letters="efghijkl ä"), "c": make_text(3, lines=31)}


def folder_of(path, texts):
    path.mkdir()
    for name, text in texts.items():
        (path / f"{name}.txt").write_bytes(text.encode())
    return path


def lines_of(text, level):
    """How many tokens the lines of each half have."""
    lines = text.splitlines(keepends=True)
    lengths = [len(line if level == "char" else line.split()) for line in lines]
    return lengths[: len(lines) // 2], lengths[len(lines) // 2 :]


@pytest.mark.parametrize("level", ["char", "word"])
@pytest.mark.parametrize("block_bytes", [50, 4096, 1 << 22])
def test_a_stored_set_is_the_one_in_memory(tmp_path, monkeypatch, level, block_bytes):
    monkeypatch.setattr(documents, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(builder, "BLOCK_BYTES", block_bytes)
    expected = folder_corpora(folder_of(tmp_path / "texts", TEXTS), level)
    stored = StoredCorpora(build(tmp_path / "set", TEXTS, level))
    assert stored.classes == expected.classes
    assert set(stored.vocabulary) - {"<unk>"} == set(expected.vocabulary)
    for c in range(3):
        for split in ("dev", "test", "all"):
            first, end = expected.extent(c, split)
            assert stored.extent(c, split) == (first, end)
            found = stored.text(stored.tokens(c, first, end))
            assert found == expected.text(expected.tokens(c, first, end))
        halves = lines_of(TEXTS[stored.classes[c]], level)
        for half, lengths in zip(("dev", "test"), halves, strict=True):
            assert stored.line_ends(c, half).tolist() == np.cumsum(lengths).tolist()
    counted = [np.bincount(stored.tokens(c, 0, stored.bounds(c)[1])) for c in range(3)]
    for c, counts in enumerate(counted):
        assert stored.counts()[c, : len(counts)].tolist() == counts.tolist()
        assert stored.counts()[c].sum() == counts.sum()


@settings(max_examples=15)
@given(st.integers(0, 700), st.integers(0, 700))
def test_any_stretch_of_tokens_can_be_read(tmp_path_factory, start, length):
    path = tmp_path_factory.getbasetemp() / "stretch"
    if not path.exists():
        build(path, {"a": make_text(4, lines=40)})
    stored = StoredCorpora(path)
    whole = np.concatenate([np.load(path / "a.dev.npy"), np.load(path / "a.test.npy")])
    stop = min(start + length, len(whole))
    assert np.array_equal(stored.tokens(0, start, stop), whole[start:stop])


def test_the_same_input_gives_the_same_bytes(tmp_path):
    for place in ("x", "y"):
        build(tmp_path / place / "set", TEXTS, "word")
    files = sorted(p.name for p in (tmp_path / "x" / "set").iterdir())
    assert files == sorted(p.name for p in (tmp_path / "y" / "set").iterdir())
    for name in files:
        x, y = ((tmp_path / place / "set" / name).read_bytes() for place in ("x", "y"))
        assert x == y
    assert [p.name for p in (tmp_path / "x").iterdir() if p.is_dir()] == ["set"]


def test_what_was_dropped_is_on_record(tmp_path):
    documents = [
        Document("a", "a", BytesIO(b"xy\nxq\nx\xff\nyx\n"), strict=False),
        Document("b", "b", BytesIO(b"yx\nxy\n")),
    ]
    path = build_set(
        tmp_path / "set", ("a", "b"), documents, "char", Cleaning(rare=2), lambda *_: None
    )
    index = read_index(path)
    assert index["classes"]["a"] == {
        "lines": 2, "dev": 3, "test": 3,
        "dropped_lines": 1, "dropped_tokens": 3, "undecodable_lines": 1,
    }  # fmt: skip
    assert index["rules"] == {"rare": 2, "rare_in": "set"}


@pytest.mark.parametrize(
    ("texts", "cleaning", "words"),
    [
        ({"a": "x\ny\n", "b": ""}, KEEP_ALL, "class 'b' is empty: every class needs text"),
        ({"a": "x\n" * 9, "b": "y\n"}, Cleaning(rare=5), "class 'b' is empty once cleaned: all of"),
        ({"a": "x\n", "b": "a\0b\n"}, KEEP_ALL, "b is not UTF-8 text: byte 1 is 0x00"),
    ],
)
def test_text_that_will_not_do_is_one_sentence_and_leaves_nothing(tmp_path, texts, cleaning, words):
    with pytest.raises(CalmError, match=words):
        build(tmp_path / "set", texts, cleaning=cleaning)
    assert [path.name for path in tmp_path.iterdir()] == [".set.lock"]


def test_a_class_without_words_is_not_blamed_on_rare_characters(tmp_path):
    with pytest.raises(CalmError, match="class 'b' is empty once cleaned: there are no words"):
        build(tmp_path / "set", {"a": "x\n" * 9, "b": " \n\n"}, "word")


def test_a_failed_build_leaves_the_old_set(tmp_path):
    path = build(tmp_path / "set", TEXTS)
    before = StoredCorpora(path).fingerprint()
    with pytest.raises(CalmError):
        build(path, {"a": ""})
    assert StoredCorpora(path).fingerprint() == before
    assert verify(path) == []


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CalmError, match="cannot write to"):
        build(tmp_path / "file" / "set", TEXTS)


@pytest.mark.parametrize("size", [1000, 5000, 10_000])  # text, words, counts
def test_a_full_disk_names_the_folder_and_leaves_the_old_set(tmp_path, size):
    path = build(tmp_path / "set", TEXTS)
    many = {name: " ".join(map(str, range(1, 1000))) + "\n" for name in "ab"}
    words = f"no room for more in {tmp_path} "
    with small_files(size), pytest.raises(RunFailedError, match=words):
        build(path, many, "word")
    assert StoredCorpora(path).level == "char"
    assert verify(path) == []
    assert {p.name for p in tmp_path.iterdir()} == {"set", ".set.lock"}


def test_one_build_at_a_time(tmp_path):
    def tell(*_):
        with pytest.raises(CalmError, match="another process is building"):
            build(tmp_path / "set", TEXTS)

    build(tmp_path / "set", TEXTS, tell=tell)


PROGRAM = """
import sys, time
from pathlib import Path
from corpus.texts import build, make_text
target, seed = Path(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
build(target, {"a": make_text(seed, 9000), "b": make_text(seed + 1, 9000)}, "word")
print("done", flush=True)
"""


def test_a_build_killed_anywhere_leaves_the_old_set_or_none(tmp_path):
    chance, target = random.Random(0), tmp_path / "set"
    known = set()
    for old in (False, True):
        if old:
            build(target, {"a": make_text(8), "b": make_text(9)})
            known.add(StoredCorpora(target).fingerprint())
        for _ in range(6):
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(target), "5"],
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parent.parent,
            )
            assert process.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0, 0.35))
            process.kill()
            finished = "done" in process.communicate()[0]
            if target.exists():
                assert verify(target) == []
                fingerprint = StoredCorpora(target).fingerprint()
                assert finished or not old or fingerprint in known or len(known) < 2
                known.add(fingerprint)
            else:
                assert not finished
    build(target, {"a": make_text(5, 9000), "b": make_text(6, 9000)}, "word")
    assert verify(target) == []
    hidden = {path.name for path in tmp_path.iterdir()}
    assert hidden == {"set", ".set.lock"}
