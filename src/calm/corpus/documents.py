"""Documents: plain text read as a stream, checked, and cut into blocks of whole lines."""

import codecs
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from calm.errors import CalmError

DAMAGE: tuple[type[Exception], ...] = (
    EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile,
)  # fmt: skip
with suppress(ImportError):
    from backports.zstd import ZstdError

    DAMAGE = (*DAMAGE, ZstdError)

BLOCK_BYTES = 4 << 20
LONGEST_LINE = 64 << 20


class Stream(Protocol):
    """Anything bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most `size`; none at the end."""


class Lines:
    """A stream of lines that are made one after the other.

    One with half of a surrogate pair, which no UTF-8 can hold, comes as bytes that are not UTF-8.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def read(self, size: int) -> bytes:
        """Return the next lines, some `size` bytes of them."""
        taken, length = [], 0
        while length < size and (line := next(self._lines, None)) is not None:
            taken.append(f"{line}\n".encode(errors="surrogatepass"))
            length += len(taken[-1])
        return b"".join(taken)


@dataclass
class Document:
    """Text of one class: an open stream of its bytes, and the name that errors give it.

    A strict document has to be UTF-8 throughout; of another, lines that are not are left out and
    counted. It is read once, before the next one is opened.
    """

    class_name: str
    origin: str
    stream: Stream
    strict: bool = True
    left_out: int = 0


def blocks(document: Document) -> Iterator[bytes]:
    """Yield a document in blocks of whole lines, each ended by a line feed.

    A byte order mark and carriage returns before line feeds are taken away.
    """
    rest, position = b"", 0
    with readable(document.origin):
        while chunk := document.stream.read(BLOCK_BYTES):
            if position == 0 and not rest:
                position = len(codecs.BOM_UTF8) if chunk.startswith(codecs.BOM_UTF8) else 0
                chunk = chunk[position:]
            end = chunk.rfind(b"\n") + 1
            if end == 0:
                rest += chunk
                if len(rest) > LONGEST_LINE:
                    raise CalmError(
                        f"{document.origin} has a line of over {LONGEST_LINE >> 20} MB at byte "
                        f"{position}: break the text into lines"
                    )
                continue
            lines, rest = rest + chunk[:end], chunk[end:]
            yield _checked(document, lines, position)
            position += len(lines)
    if rest:
        yield _checked(document, rest + b"\n", position)


@contextmanager
def readable(origin: str) -> Iterator[None]:
    """Say in one sentence that a compressed file or an archive is damaged."""
    try:
        yield
    except DAMAGE as error:
        raise _damaged(origin, error) from None
    except OSError as error:
        if error.errno is None:  # what bz2 and gzip raise for bad data
            raise _damaged(origin, error) from None
        raise


def _damaged(origin: str, error: Exception) -> CalmError:
    return CalmError(
        f"{origin} is damaged or cut short ({error}): delete the file and get it again"
    )


def _checked(document: Document, lines: bytes, position: int) -> bytes:
    try:
        lines.decode()
        fault = lines.find(0) if 0 in lines else None
    except UnicodeDecodeError as error:
        fault = error.start
    if fault is not None:
        if document.strict:
            raise CalmError(
                f"{document.origin} is not UTF-8 text: byte {position + fault} is "
                f"0x{lines[fault]:02x}; convert the file to UTF-8"
            )
        lines = _without_bad_lines(document, lines)
    return lines.replace(b"\r\n", b"\n")


def _without_bad_lines(document: Document, lines: bytes) -> bytes:
    kept = []
    for line in lines.split(b"\n")[:-1]:
        try:
            line.decode()
            good = 0 not in line
        except UnicodeDecodeError:
            good = False
        if good:
            kept.append(line + b"\n")
        else:
            document.left_out += 1
    return b"".join(kept)
