import os
import zipfile

import pytest

from calm.corpus.bnc import bnc_sentences, bnc_texts
from calm.errors import CalmError

TEXT = """<?xml version="1.0" encoding="UTF-8"?>
<bncDoc xml:id="{name}"><teiHeader><s>no text</s></teiHeader>
<wtext type="FICTION"><div level="1"><p>
<s n="1"><w c5="PNP" hw="we" pos="PRON">We </w><w c5="VVD" hw="see" pos="VERB">saw </w>
<mw c5="AV0"><w c5="PRP" hw="of">of </w><w c5="NN1" hw="course">course</w></mw>
<c c5="PUN">,</c><w c5="NP0" hw="{name}" pos="SUBST">{name}</w><c c5="PUN">.</c></s>
<s n="2"><w c5="ITJ" hw="yes" pos="INTERJ">caf&#233; </w></s>
</p></div></wtext></bncDoc>"""
SENTENCES = ["We saw of course , {name} .", "café"]


def files():
    texts = {f"download/Texts/{n[0]}/{n[:2]}/{n}.xml": TEXT.format(name=n) for n in ("B0A", "A0B")}
    return {**texts, "download/Doc/manual.xml": "<doc><s>none of it</s></doc>"}


def expected():
    return [sentence.format(name=name) for name in ("A0B", "B0A") for sentence in SENTENCES]


def test_zip_and_folder_give_the_same_sentences(tmp_path):
    archive = tmp_path / "2554.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for name, text in files().items():
            packed.writestr(name, text)
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
    assert list(bnc_sentences(archive)) == expected()
    assert list(bnc_sentences(tmp_path / "download")) == expected()


def test_a_folder_that_may_not_be_read_is_not_passed_over(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(CalmError, match="cannot be read: Permission denied"):
        bnc_texts(tmp_path)


def test_what_is_not_the_bnc_is_said(tmp_path):
    with pytest.raises(CalmError, match="there is no"):
        list(bnc_sentences(tmp_path / "nowhere"))
    with pytest.raises(CalmError, match="is it the BNC's XML edition"):
        list(bnc_sentences(tmp_path))
    (tmp_path / "x.zip").write_bytes(b"nonsense")
    with pytest.raises(CalmError, match="x.zip is damaged or cut short"):
        list(bnc_sentences(tmp_path / "x.zip"))
    broken = tmp_path / "Texts" / "A.xml"
    broken.parent.mkdir()
    broken.write_text("<bncDoc><s><w>cut")
    with pytest.raises(CalmError, match=r"A.xml is not XML"):
        list(bnc_sentences(tmp_path))
