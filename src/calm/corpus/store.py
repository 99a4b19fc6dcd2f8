"""A corpora set on disk: memory-mapped, opened in milliseconds, whatever its size.

    corpora.toml         format, name, level, rules, the sizes of every class, all hashes
    vocabulary.txt       a symbol a line, in the order of the tokens
    counts.npy           how often every class has every symbol, (classes, V)
    CLASS.dev.npy        the tokens of the first half of a class's lines
    CLASS.test.npy       those of the second half
    CLASS.HALF.lines.npy where each line of a half ends, counted in the half's tokens

Plain NumPy files: all of it can be read without this library.
"""

import hashlib
import tomllib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tomli_w
from numpy.typing import DTypeLike, NDArray

from calm.corpus.base import Corpora, Tokens
from calm.corpus.cleaner import token_type
from calm.corpus.vocabulary import read_vocabulary
from calm.errors import CalmError
from calm.files import sha256

FORMAT = 3
INDEX = "corpora.toml"
SEAL = b"# sha256 of what stands above: "
HALVES: tuple[Literal["dev", "test"], ...] = ("dev", "test")


class StoredCorpora(Corpora):
    """A set that was built before; its tokens stay on disk until they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = read_index(path)
        self.name = self.index["name"]
        self.level = self.index["level"]
        self.classes = tuple(self.index["classes"])
        self.vocabulary = read_vocabulary(self._whole("vocabulary.txt"))
        kind = token_type(len(self.vocabulary))
        self._halves = [
            [self._open(f"{name}.{half}.npy", kind, facts[half]) for half in HALVES]
            for name, facts in self.index["classes"].items()
        ]

    def bounds(self, class_index: int) -> tuple[int, int]:
        """Return (half, end) of a class."""
        dev, test = self._halves[class_index]
        return len(dev), len(dev) + len(test)

    def tokens(self, class_index: int, start: int, stop: int) -> Tokens:
        """Tokens start … stop-1 of a class."""
        dev, test = self._halves[class_index]
        if start >= len(dev):
            return test[start - len(dev) : stop - len(dev)]
        if stop <= len(dev):
            return dev[start:stop]
        return np.concatenate([dev[start:], test[: stop - len(dev)]])

    def fingerprint(self) -> str:
        """Return a hash of the index, which holds the hash of every file."""
        return hashlib.sha256((self.path / INDEX).read_bytes()).hexdigest()[:16]

    def line_ends(self, class_index: int, half: Literal["dev", "test"]) -> NDArray[np.int64]:
        """Return where each line of a half ends, counted in tokens from the half's beginning."""
        name = self.classes[class_index]
        lines = self.index["classes"][name]["lines"]
        count = lines // 2 if half == "dev" else lines - lines // 2
        return self._open(f"{name}.{half}.lines.npy", np.int64, count)

    def counts(self) -> NDArray[np.int64]:
        """Return how often every class has every symbol, (classes, V)."""
        return self._open("counts.npy", np.int64, len(self.classes), len(self.vocabulary))

    def _whole(self, name: str) -> Path:
        """Return the path of a small file, once its hash is found to be right."""
        if fault := _fault(self.path / name, self.index["sha256"][name]):
            raise CalmError(f"{fault}: build the corpora set again")
        return self.path / name

    def _open(self, name: str, kind: DTypeLike, *shape: int) -> NDArray[Any]:
        """Map a file that is too large to be hashed; what its first bytes say has to be right."""
        path = self.path / name
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            if (mapped.dtype, mapped.shape) != (np.dtype(kind), shape):
                raise ValueError(f"it holds {mapped.dtype} {mapped.shape}")
        except PermissionError as error:
            raise CalmError(f"{path} cannot be read: {error.strerror}") from None
        except Exception as error:  # whatever damage does to a parser
            raise CalmError(
                f"{path} cannot be read ({error}): build the corpora set again"
            ) from None
        return np.asarray(mapped)


def holds_set(path: Path) -> bool:
    """Whether there is a corpora set in a folder."""
    return (path / INDEX).is_file()


def write_index(path: Path, index: dict[str, Any]) -> None:
    """Write what a set says of itself, and a hash of that in the last line."""
    text = tomli_w.dumps({"format": FORMAT, **index}).encode()
    (path / INDEX).write_bytes(text + SEAL + hashlib.sha256(text).hexdigest().encode() + b"\n")


def read_index(path: Path) -> dict[str, Any]:
    """Read what a set says of itself."""
    try:
        data = (path / INDEX).read_bytes()
        text, seal, digest = data.rpartition(SEAL)
        if seal and digest != hashlib.sha256(text).hexdigest().encode() + b"\n":
            raise ValueError("its checksum is wrong")
        index = tomllib.loads(data.decode())
        written = int(index["format"])
        if written == FORMAT and not seal:
            raise ValueError("its checksum is missing")
    except OSError as error:
        raise CalmError(f"{path / INDEX} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CalmError(f"{path / INDEX} is damaged ({error}): build the set again") from None
    if written != FORMAT:
        raise CalmError(
            f"{path} was written in format {written}, this version of calm reads format {FORMAT}: "
            + ("build the set again" if written < FORMAT else "update calm")
        )
    return index


def verify(path: Path) -> list[str]:
    """Compare every file of a set with its hash; returns what is wrong."""
    try:
        hashes = read_index(path)["sha256"]
    except CalmError as error:
        return [str(error)]
    faults = (_fault(path / name, expected) for name, expected in hashes.items())
    return [fault for fault in faults if fault]


def _fault(path: Path, expected: str) -> str | None:
    """Say what is wrong with a file, if anything is."""
    try:
        if sha256(path) == expected:
            return None
    except FileNotFoundError:
        return f"{path} is missing"
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})"
    return f"{path} has changed: its SHA-256 is another than when it was built"
