"""Datasets of the hub, with the library itself on folders of this machine."""

import json
import logging

import pytest

from calm.corpus import sources
from calm.corpus.documents import blocks
from calm.corpus.hub import HubText, hub_lines, parse_hub
from calm.errors import CalmError, RunFailedError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hf:o/n:text", HubText("o/n", None, "train", "text")),
        ("hf:o/n:fr:text", HubText("o/n", "fr", "train", "text")),
        ("hf:o/n:test:text", HubText("o/n", None, "test", "text")),
        ("hf:o/n:train[:10%]:text", None),
        ("hf:o/n:fr:validation:text", HubText("o/n", "fr", "validation", "text")),
        ("hf:o/n", None),
        ("hf::text", None),
        ("hf:a:b:c:d:e", None),
    ],
)
def test_a_source_is_read_or_refused(text, expected):
    if expected:
        assert parse_hub(text) == expected
    else:
        with pytest.raises(CalmError, match="is not hf:OWNER/NAME"):
            parse_hub(text)


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    folder = tmp_path / "owner" / "name"
    folder.mkdir(parents=True)
    rows = [{"id": i, "text": f"row {i}\nsecond line {i}"} for i in range(50)]
    rows.insert(2, {"id": 99, "text": None})
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    return "owner/name"


@pytest.mark.filterwarnings("ignore")
def test_lines_come_until_the_budget_is_spent(dataset):
    source = HubText(dataset, None, "train", "text")
    lines = list(hub_lines(source, "word", 10**9))
    assert lines[:3] == ["row 0", "second line 0", "row 1"]
    assert len(lines) == 100
    assert list(hub_lines(source, "word", 6)) == ["row 0", "second line 0", "row 1"]
    assert list(hub_lines(source, "char", 7)) == ["row 0", "second line 0"]


@pytest.mark.filterwarnings("ignore")
def test_what_is_not_there_is_one_sentence(dataset):
    with pytest.raises(CalmError, match="has no column 'txt': take one of id, text"):
        list(hub_lines(HubText(dataset, None, "train", "txt"), "word", 9))
    for wrong in (HubText(dataset, None, "test", "text"), HubText("no/where", None, "train", "x")):
        with pytest.raises(RunFailedError, match="^hf:") as error:
            list(hub_lines(wrong, "word", 9))
        assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore")
def test_a_column_that_is_no_text_is_said(dataset):
    with pytest.raises(CalmError, match="'id' of hf:owner/name holds no text, but int: take one"):
        list(hub_lines(HubText(dataset, None, "train", "id"), "word", 9))


@pytest.mark.filterwarnings("ignore")
def test_the_library_does_not_talk(dataset, caplog):
    with pytest.raises(RunFailedError):
        list(hub_lines(HubText("no/where", None, "train", "x"), "word", 9))
    for library in ("datasets", "huggingface_hub.utils._http"):
        logging.getLogger(library).error("Retrying in 1s")
    assert caplog.records == []


def test_lines_that_are_no_text_are_left_out_and_counted(monkeypatch):
    lines = ["good", "half \ud83d", "nu\0ll", "😀 fine"]
    monkeypatch.setattr(sources, "hub_lines", lambda *_: iter(lines))
    (document,) = sources.source_documents({"a": "hf:o/n:text"}, "char", 100)
    assert b"".join(blocks(document)).decode() == "good\n😀 fine\n"
    assert document.left_out == 2
