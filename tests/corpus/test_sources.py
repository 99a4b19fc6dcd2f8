import gzip

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
