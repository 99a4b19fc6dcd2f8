import dataclasses
import gzip
import json
import threading
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from calm.corpus import recipes
from corpus.test_recipes import publish
from corpus.texts import make_text
from helpers import calm

SMALL = ("--stream.rows", 2, "--stream.fragments", 10, "--stream.mean-length", 60, "--seed", 2)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("CALM_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def say(monkeypatch, capsys):
    return partial(calm, monkeypatch, capsys)


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for seed, name in enumerate(("a", "b")):
        data = make_text(seed, 200).encode()
        (folder / f"{name}.txt.gz").write_bytes(gzip.compress(data))
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A server with the recipes' archives, and the recipes pointing at it."""
    folder = publish(tmp_path / "published")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()

    def here(remote):
        address = f"http://127.0.0.1:{server.server_port}/{remote.name}"
        return dataclasses.replace(remote, addresses=(address,), size=None, sha256=None)

    for name, recipe in recipes.RECIPES.items():
        parts = tuple(dataclasses.replace(p, remote=here(p.remote)) for p in recipe.parts)
        monkeypatch.setitem(recipes.RECIPES, name, dataclasses.replace(recipe, parts=parts))
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()


def test_newstest_from_download_to_table(published, data, say, tmp_path):
    code, out, errors = say("corpus", "fetch", "newstest", "--rare", 5)
    assert code == 0
    assert "newstest: level char" in out
    assert "use it: calm run --corpus newstest" in out
    assert "download dev.tgz" in errors
    manifest = json.loads((data / "downloads" / "manifest.json").read_text())
    assert set(manifest) == {"dev.tgz"}
    code, out, _ = say("corpus", "list")
    assert code == 0
    code, out, _ = say("corpus", "verify")
    assert (code, out) == (0, "as they were built: newstest\n")
    run = ("run", "--corpus", "newstest", "--learner", "lstm", "--size", "tiny", *SMALL)
    code, out, _ = say(*run, "--out", tmp_path / "run")
    assert code == 0
    assert "newstest: N = 10" in out
    code, out, _ = say("generate", tmp_path / "run", "--length", 20, "--class", "fr")
    assert code == 0


def test_a_first_download_that_was_none_is_replaced_once_it_is_deleted(published, data, say):
    good = (published / "dev.tgz").read_bytes()
    (published / "dev.tgz").write_bytes(b"<html>Log in first</html>")
    for _ in range(2):
        code, _, errors = say("corpus", "fetch", "newstest", "--rare", 5)
        assert code == 2
        assert "is damaged or cut short" in errors
        assert "delete the file and get it again" in errors
    (published / "dev.tgz").write_bytes(good)
    (data / "downloads" / "dev.tgz").unlink()
    code, _, _ = say("corpus", "fetch", "newstest", "--rare", 5)
    assert code == 0
    download = data / "downloads" / "dev.tgz"
    download.write_bytes(good[:-1] + b"x")
    code, _, errors = say("corpus", "fetch", "newstest", "--rare", 5, "--replace")
    assert code == 2
    assert f"delete {download} to have it downloaded again" in errors


def test_multidomain_from_download_to_table(published, data, say, tmp_path):
    code, out, _ = say("corpus", "fetch", "multidomain", "--top", 300)
    assert code == 0
    assert "Without the British National Corpus the set has three domains" in out
    for name in ("news", "europarl", "wiki"):
        assert f"\n  {name}" in out
    run = ("run", "--corpus", "multidomain", "--learner", "unigram", *SMALL)
    code, out, _ = say(*run, "--stream.fragments", 9, "--out", tmp_path / "run")
    assert code == 0
    code, out, _ = say("corpus", "show", "multidomain")
    assert code == 0
    assert "share of words in common" in out
    assert "unknown" in out


def test_text_of_ones_own(texts, data, say, tmp_path):
    (texts / "notes.md").write_text("x")
    code, out, _ = say("corpus", "add", "mine", texts, "--rare", 1)
    assert code == 0
    assert "left aside, as no text: notes.md" in out
    code, out, _ = say("corpus", "add", "mine", texts)
    assert code == 2
    code, out, _ = say("corpus", "add", "mine", texts, "--level", "word", "--replace")
    assert code == 0
    assert "mine: level word" in out
    code, out, _ = say("corpus", "list")
    (row,) = (line.split() for line in out.splitlines() if line.split()[:1] == ["mine"])
    assert row[1:3] == ["word", "yes"]
    (index,) = data.glob("corpora/mine/corpora.toml")
    classes = tomllib.loads(index.read_text())["classes"].values()
    assert row[3:5] == [f"{sum(facts['dev'] + facts['test'] for facts in classes):,}", "words"]
    good = index.read_text()
    index.write_text(good[:-9])
    code, out, _ = say("corpus", "list")
    assert code == 0
    assert "is damaged" in " ".join(out.split())
    index.write_text(good)
    run = ("run", "--corpus", "mine", "--learner", "unigram", *SMALL, "--stream.fragments", 4)
    code, out, _ = say(*run, "--out", tmp_path / "run")
    assert code == 0
    arguments = ("--class", f"one={texts / 'a.txt.gz'}", "--class", f"two={texts / 'b.txt.gz'}")
    code, out, _ = say("corpus", "add", "other", "--level", "char", "--rare", 1, *arguments)
    assert code == 0
    assert "\n  one" in out


def test_verify_names_what_changed(texts, data, say):
    say("corpus", "add", "mine", texts, "--rare", 1)
    file = data / "corpora" / "mine" / "a.dev.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    code, out, errors = say("corpus", "verify", "mine")
    assert code == 1
    assert out == f"{file} has changed: its SHA-256 is another than when it was built\n"
    assert errors.startswith("calm: something is not as it was")


def test_a_set_that_cannot_be_opened_does_not_keep_others_from_being_verified(texts, data, say):
    for name in ("broken", "old", "whole"):
        say("corpus", "add", name, texts, "--rare", 1)
    vocabulary = data / "corpora" / "broken" / "vocabulary.txt"
    vocabulary.write_bytes(b"\xff" + vocabulary.read_bytes()[1:])
    (data / "corpora" / "old" / "corpora.toml").write_text("format = 1\n")
    token = data / "corpora" / "whole" / "b.test.npy"
    token.write_bytes(token.read_bytes()[:-1] + b"\xff")
    code, out, errors = say("corpus", "verify")
    assert code == 1
    assert "Traceback" not in errors
    first, second, third = out.splitlines()
    assert first.startswith(f"{vocabulary} has changed")
    assert "old was written in format 1" in second
    assert third.startswith(f"{token} has changed")
    code, _, errors = say("corpus", "show", "broken")
    assert code == 2
    assert errors.startswith(f"calm: {vocabulary} has changed")


def test_show_takes_any_corpora(texts, data, say):
    code, out, _ = say("corpus", "show", "synthetic")
    assert code == 0
    assert "share of characters in common" in out
    assert "coro: '" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fetch nowhere", "there is no recipe 'nowhere': take one of newstest"),
        ("fetch newstest --bnc x", "newstest has no use for --bnc"),
        ("add mine", "no text is named: give a FOLDER, or --class NAME=SOURCE"),
        ("add mine nowhere", "there is no folder nowhere"),
        ("add synthetic TEXTS", "synthetic is a set of `calm corpus list`"),
        ("add newstest TEXTS", "newstest is a set of `calm corpus list`: choose another name"),
        ("add a/b TEXTS", "'a/b' is no name for a corpora set"),
        ("add a;b TEXTS", "'a;b' is no name for a corpora set: take letters, digits, dashes"),
        ("add .a TEXTS", "'.a' is no name for a corpora set"),
        ("fetch newstest --rare 0", "rare is 0"),
        ("fetch multidomain --bnc nowhere", "there is no nowhere: give the BNC's zip"),
        ("fetch multidomain --bnc TEXTS", "is it the BNC's XML edition"),
        ("add mine TEXTS --rare 0", "rare is 0"),
        ("add mine TEXTS --level word --top 0", "top is 0"),
        ("add mine TEXTS --rare 100000", "is empty once cleaned"),
        ("add mine TEXTS --class a=x", "class 'a' is named twice"),
        ("add mine --class a=hf:x", "hf:x is not hf:OWNER/NAME"),
        ("add mine TEXTS --tokens 0", "tokens is 0"),
        ("add mine BINARY", "is not UTF-8 text: byte 1 is 0x00"),
        ("show nowhere", "unknown corpus 'nowhere'"),
        ("show newstest", "corpus 'newstest' is not here yet: calm corpus fetch newstest"),
        ("verify nowhere", "there is no corpora set 'nowhere'"),
        ("dance", "there is no command 'corpus dance': take one of corpus list"),
    ],
)
def test_wrong_input_is_one_sentence(texts, data, say, tmp_path, arguments, words):
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "a.txt").write_bytes(b"a\0b\n")
    arguments = arguments.replace("TEXTS", str(texts)).replace("BINARY", str(tmp_path / "binary"))
    code, _, errors = say("corpus", *arguments.split())
    assert code == 2
    last = errors.strip().splitlines()[-1]
    assert last.startswith("calm: ")
    assert words in last
    assert "Traceback" not in errors


def test_data_kept_where_nothing_can_be_written_is_said(texts, say, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("CALM_DATA", str(tmp_path / "file"))
    for arguments in (("add", "mine", texts), ("fetch", "newstest")):
        code, _, errors = say("corpus", *arguments)
        assert code == 2
        assert errors.startswith("calm: cannot write to ")
        assert errors.count("\n") == 1
