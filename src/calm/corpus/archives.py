"""Text files, plain or compressed, and archives: opened as streams, never unpacked to disk."""

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from calm.corpus.documents import Stream, readable
from calm.errors import CalmError

BOMB = 200  # text that unpacks to more times its size than this is none


def _zstandard(path: Path) -> BinaryIO:
    try:
        from backports import zstd
    except ImportError:
        raise CalmError(f"to read {path}: pip install 'calm-bench[zst]'") from None
    return cast(BinaryIO, zstd.open(path, "rb"))


OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _zstandard,
}


@contextmanager
def open_text(path: Path) -> Iterator[Stream]:
    """Open a file, uncompressing it if its name says so."""
    if path.suffix in OPENERS:
        with OPENERS[path.suffix](path) as stream:
            yield Limited(path, stream)
    else:
        with path.open("rb") as plain:
            yield plain


def text_name(path: Path) -> str:
    """Return a file's name without what says how it is stored: `en` for `en.txt.gz`."""
    name = path.with_suffix("") if path.suffix in OPENERS else path
    return name.stem if name.suffix == ".txt" else name.name


class Limited:
    """A stream that refuses to give more than BOMB times the size of the file it comes from."""

    def __init__(self, path: Path, stream: Stream) -> None:
        self._path, self._stream = path, stream
        self._left = BOMB * path.stat().st_size

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise CalmError(f"{self._path} unpacks to over {BOMB} times its size: not read on")
        return data


def members(archive: Path, names: Collection[str]) -> Iterator[tuple[str, Stream]]:
    """Yield the named files of a tar or zip archive, in its order; each is read before the next.

    Paths that lead out of the archive and a link in place of a file are refused; a file that is
    not there is an error.
    """
    missing = set(names)
    walk = _zip_members if archive.suffix == ".zip" else _tar_members
    with readable(str(archive)):
        for name, stream in walk(archive, names):
            missing.discard(name)
            yield name, Limited(archive, stream)
    if missing:
        raise CalmError(
            f"{archive} holds no {min(missing)}: it is not the published archive, or not whole; "
            "delete the file and get it again"
        )


def _tar_members(archive: Path, names: Collection[str]) -> Iterator[tuple[str, Stream]]:
    left = set(names)
    with tarfile.open(archive, "r|*") as tar:
        for member in tar:
            name = _inside(archive, member.name)
            if name not in left:
                continue
            stream = tar.extractfile(member) if member.isfile() else None
            if stream is None:
                raise CalmError(f"{archive} holds {name} as a link or device: not read")
            yield name, stream
            left.discard(name)
            if not left:
                return


def _zip_members(archive: Path, names: Collection[str]) -> Iterator[tuple[str, Stream]]:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            name = _inside(archive, member.filename)
            if name in names:
                if stat.S_ISLNK(member.external_attr >> 16):
                    raise CalmError(f"{archive} holds {name} as a link: not read")
                with packed.open(member) as stream:
                    yield name, stream


def _inside(archive: Path, name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise CalmError(f"{archive} holds a path that leads out of it, {name}: not read")
    return str(path)
