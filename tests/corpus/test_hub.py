"""Datasets of the hub, with the library itself on folders of this machine."""

import json

import pytest

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
