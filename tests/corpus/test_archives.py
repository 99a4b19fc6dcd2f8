import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
from backports import zstd

from calm.corpus.archives import BOMB, members, open_text, text_name
from calm.corpus.documents import Document, blocks
from calm.errors import CalmError

TEXT = b"".join(b"line %d\n" % i for i in range(5000))
COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd.compress}


def tar(path, files, links=()):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, target in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return path


def read_all(path, names):
    return {name: stream.read(1 << 30) for name, stream in members(path, names)}


def read_text(path):
    with open_text(path) as stream:
        return b"".join(blocks(Document("a", str(path), stream)))


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_text_is_read_however_it_is_compressed(tmp_path, suffix):
    path = tmp_path / f"en.txt{suffix}"
    path.write_bytes(COMPRESS.get(suffix, bytes)(TEXT))
    assert read_text(path) == TEXT
    assert text_name(path) == "en"


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("damage", ["cut", "nonsense"])
def test_a_damaged_file_is_said(tmp_path, suffix, damage):
    path = tmp_path / f"en.txt{suffix}"
    data = COMPRESS[suffix](TEXT)
    path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"nonsense" * 50)
    with pytest.raises(CalmError, match=r"en.txt.* is damaged or cut short"):
        read_text(path)


def test_named_files_come_in_the_archives_order(tmp_path):
    files = {"dev/b": b"2", "dev/other": b"x", "./dev/a": b"1"}
    packed = tmp_path / "x.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    for path in (tar(tmp_path / "x.tgz", files), packed):
        assert list(read_all(path, {"dev/a", "dev/b"}).items()) == [
            ("dev/b", b"2"),
            ("dev/a", b"1"),
        ]


def test_a_missing_file_is_said(tmp_path):
    path = tar(tmp_path / "x.tgz", {"a": b"1"})
    with pytest.raises(CalmError, match="x.tgz holds no b: it is not the published archive"):
        read_all(path, {"a", "b"})


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil"])
def test_paths_that_lead_out_are_refused(tmp_path, name):
    packed = tmp_path / "x.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, b"x")
    for path in (tar(tmp_path / "x.tgz", {name: b"x", "a": b"1"}), packed):
        with pytest.raises(CalmError, match="a path that leads out of it"):
            read_all(path, {"a"})


def test_a_link_in_place_of_a_file_is_refused_and_others_are_passed_over(tmp_path):
    path = tar(tmp_path / "x.tgz", {"a": b"1"}, links=[("b", "/etc/passwd")])
    assert read_all(path, {"a"}) == {"a": b"1"}
    with pytest.raises(CalmError, match="holds b as a link"):
        read_all(path, {"a", "b"})
    packed = tmp_path / "x.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        link = zipfile.ZipInfo("b")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(CalmError, match="holds b as a link"):
        read_all(packed, {"b"})


def test_a_bomb_is_not_read_to_its_end(tmp_path):
    path = tar(tmp_path / "x.tgz", {"a": b"x" * 10_000_000})
    with pytest.raises(CalmError, match=f"unpacks to over {BOMB} times its size"):
        read_all(path, {"a"})
    single = tmp_path / "a.gz"
    single.write_bytes(gzip.compress(b"x" * 10_000_000))
    with pytest.raises(CalmError, match=f"unpacks to over {BOMB} times its size"):
        read_text(single)


@pytest.mark.parametrize("name", ["x.tgz", "x.zip"])
def test_a_truncated_archive_is_said(tmp_path, name):
    import random

    noise = random.Random(0).randbytes(50_000)
    path = tmp_path / name
    if name == "x.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a", noise)
    else:
        tar(path, {"a": noise})
    path.write_bytes(path.read_bytes()[:30_000])
    with pytest.raises(CalmError, match=f"{name}.* is damaged or cut short"):
        for member, stream in members(path, {"a"}):
            list(blocks(Document("a", f"{path}: {member}", stream, strict=False)))
