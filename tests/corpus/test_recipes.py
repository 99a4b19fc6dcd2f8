"""Recipes from archives of exactly the published layout, made here."""

import gzip
import io
import tarfile
import zipfile

import pytest

from calm.corpus.documents import blocks
from calm.corpus.recipes import LANGUAGES, RECIPES, recipe_classes, recipe_documents
from calm.errors import CalmError
from corpus.texts import make_text

YEARS = ("news-test2008", "newstest2009", "newstest2010", "newstest2011", "newstest2012")


def put(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def publish(folder, lines=40):
    """Write every archive of the recipes, with what else is in the real ones."""
    folder.mkdir(parents=True)
    with tarfile.open(folder / "dev.tgz", "w:gz") as tar:
        for i, year in enumerate(YEARS):
            for j, language in enumerate(("cs", "de", "en", "es", "fr", "hu", "ru")):
                put(tar, f"dev/{year}.{language}", make_text(100 * i + j, lines).encode())
            put(tar, f"dev/{year}-src.de.sgm", b"<srcset></srcset>\n")
    with tarfile.open(folder / "training-monolingual-news-2009.tgz", "w:gz") as tar:
        for j, language in enumerate(("cs", "de", "en", "es", "fr", "hu")):
            text = make_text(1000 + j, 5 * lines).encode() + b"broken \xff line\n"
            put(tar, f"training-monolingual/news.2009.{language}.shuffled", text)
    europarl = gzip.compress(make_text(2000, 5 * lines).encode())
    (folder / "europarl-v7.en.gz").write_bytes(europarl)
    with zipfile.ZipFile(folder / "wikitext-103-raw-v1.zip", "w") as packed:
        for j, split in enumerate(("test", "train", "valid")):
            text = make_text(3000 + j, 5 * lines)
            packed.writestr(f"wikitext-103-raw/wiki.{split}.raw", text)
    return folder


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("data") / "downloads")


def read(recipe, downloads, bnc=None):
    texts, left_out = {}, {}
    for document in recipe_documents(recipe, downloads, bnc):
        name = document.class_name
        texts[name] = texts.get(name, "") + b"".join(blocks(document)).decode()
        left_out[name] = left_out.get(name, 0) + document.left_out
    return texts, left_out


def test_news_of_five_languages(downloads):
    texts, left_out = read(RECIPES["wmt-news"], downloads)
    assert texts == {name: make_text(1000 + j, 200) for j, name in enumerate(LANGUAGES)}
    assert left_out == dict.fromkeys(LANGUAGES, 1)
    assert recipe_classes(RECIPES["wmt-news"], None) == LANGUAGES


def test_newstest_is_all_years_shuffled_always_alike(downloads):
    texts, _ = read(RECIPES["newstest"], downloads)
    again, _ = read(RECIPES["newstest"], downloads)
    assert texts == again
    for j, name in enumerate(LANGUAGES):
        years = [make_text(100 * i + j, 40) for i in range(5)]
        assert sorted(texts[name].split("\n")) == sorted("".join(years).split("\n"))
        first_half = texts[name].split("\n")[:100]
        shares = [len(set(first_half) & set(year.split("\n"))) for year in years]
        assert min(shares) > 8  # of every year's 40 lines


def test_three_domains_and_with_the_users_archive_four(downloads, tmp_path):
    recipe = RECIPES["multidomain"]
    texts, _ = read(recipe, downloads)
    assert texts == {
        "news": make_text(1002, 200), "europarl": make_text(2000, 200), "wiki": make_text(3001, 200)
    }  # fmt: skip
    sentence = "<s><w>Yes </w><c>.</c></s>"
    (tmp_path / "Texts" / "A").mkdir(parents=True)
    (tmp_path / "Texts" / "A" / "A00.xml").write_text(f"<bncDoc>{sentence * 3}</bncDoc>")
    texts, _ = read(recipe, downloads, tmp_path)
    assert texts["bnc"] == "Yes .\n" * 3
    assert recipe_classes(recipe, tmp_path) == ("news", "europarl", "wiki", "bnc")


def test_an_archive_of_another_layout_is_said(downloads, tmp_path):
    with tarfile.open(tmp_path / "dev.tgz", "w:gz") as tar:
        put(tar, "dev/newstest2009.cs", b"x\n")
    with pytest.raises(CalmError, match=r"dev.tgz holds no dev/news-test2008.cs"):
        read(RECIPES["newstest"], tmp_path)
    whole = (downloads / "dev.tgz").read_bytes()
    (tmp_path / "dev.tgz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CalmError, match=r"dev.tgz.* is damaged or cut short"):
        read(RECIPES["newstest"], tmp_path)
