import gzip
import os

import pytest

from calm.corpus.documents import blocks
from calm.corpus.sources import check_sources, folder_sources, parse_class, source_documents
from calm.errors import CalmError


def test_a_class_is_a_file_or_a_folder(tmp_path):
    (tmp_path / "en.txt").write_text("one\n")
    (tmp_path / "fr.txt.gz").write_bytes(gzip.compress(b"deux\n"))
    (tmp_path / "de" / "deep").mkdir(parents=True)
    (tmp_path / "de" / "b.txt").write_text("zwei\n")
    (tmp_path / "de" / "deep" / "a.txt").write_text("drei")
    (tmp_path / "de" / "notes.md").write_text("none\n")
    (tmp_path / "README.md").write_text("none\n")
    (tmp_path / ".hidden.txt").write_text("none\n")
    sources, aside = folder_sources(tmp_path)
    assert list(sources) == ["de", "en", "fr"]
    assert aside == ["README.md"]
    check_sources(sources)
    found = [
        (document.class_name, b"".join(blocks(document)))
        for document in source_documents(sources, "char", 10)
    ]
    assert found == [("de", b"zwei\n"), ("de", b"drei\n"), ("en", b"one\n"), ("fr", b"deux\n")]


def test_a_class_is_named_with_its_source(tmp_path):
    assert parse_class("fr=hf:o/n:text") == ("fr", "hf:o/n:text")
    assert parse_class(f"en={tmp_path}") == ("en", tmp_path)
    for wrong in ("en", "=x", "en=", "a/b=x", ".x=y"):
        with pytest.raises(CalmError, match="is not NAME=SOURCE"):
            parse_class(wrong)


def test_a_class_whose_name_cannot_be_printed_is_refused(tmp_path):
    for name in ("a\nb", "a\x1b[1m", "a\udcff"):
        with pytest.raises(CalmError, match="is no name for a class"):
            check_sources({name: "hf:o/n:text"})
    check_sources({"Old English, ca. 900": "hf:o/n:text"})


@pytest.mark.parametrize("inside", [".", "deep"])
def test_a_folder_that_may_not_be_read_is_said(tmp_path, monkeypatch, inside):
    (tmp_path / "deep").mkdir()
    (tmp_path / "en.txt").write_text("x")
    scandir, closed = os.scandir, str(tmp_path / inside)

    def refuse(path):
        if str(path) == closed:
            raise PermissionError(13, "Permission denied", closed)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(CalmError, match=f"{closed} cannot be read: Permission denied"):
        check_sources({"en": tmp_path})


def test_a_bomb_is_not_read_to_its_end(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"x\n" * 5_000_000))
    with pytest.raises(CalmError, match="unpacks to over 200 times its size"):
        for document in source_documents({"a": tmp_path / "a.txt.gz"}, "char", 10):
            list(blocks(document))


def test_what_holds_no_text_is_said(tmp_path):
    with pytest.raises(CalmError, match="there is no folder"):
        folder_sources(tmp_path / "nowhere")
    with pytest.raises(CalmError, match="holds no text: put one file per class"):
        folder_sources(tmp_path)
    with pytest.raises(CalmError, match="holds no text: no .txt file"):
        check_sources({"a": tmp_path})
    with pytest.raises(CalmError, match="there is no"):
        check_sources({"a": tmp_path / "nowhere"})
    with pytest.raises(CalmError, match="is not hf:"):
        check_sources({"a": "hf:nothing"})
    (tmp_path / "en.txt").write_text("x")
    (tmp_path / "en").mkdir()
    with pytest.raises(CalmError, match="are both class 'en'"):
        folder_sources(tmp_path)
