"""A corpora set on disk: memory-mapped, opened in milliseconds, whatever its size.

    corpora.toml         format, name, level, rules, and of every class its sizes and hashes
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
from numpy.typing import NDArray

from calm.corpus.base import Corpora, Tokens
from calm.corpus.vocabulary import read_vocabulary
from calm.errors import CalmError
from calm.files import sha256

FORMAT = 2
INDEX = "corpora.toml"
HALVES = ("dev", "test")


class StoredCorpora(Corpora):
    """A set that was built before; its tokens stay on disk until they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = read_index(path)
        self.name = self.index["name"]
        self.level = self.index["level"]
        self.classes = tuple(self.index["classes"])
        self.vocabulary = read_vocabulary(path / "vocabulary.txt")
        self._halves = [
            [self._open(f"{name}.{half}.npy") for half in HALVES] for name in self.classes
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
        return self._open(f"{self.classes[class_index]}.{half}.lines.npy")

    def counts(self) -> NDArray[np.int64]:
        """Return how often every class has every symbol, (classes, V)."""
        counts: NDArray[np.int64] = self._open("counts.npy")
        return counts

    def _open(self, name: str) -> NDArray[Any]:
        try:
            mapped = np.load(self.path / name, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise CalmError(
                f"{self.path / name} cannot be read ({error}): build the corpora set again"
            ) from None
        return np.asarray(mapped)


def holds_set(path: Path) -> bool:
    """Whether there is a corpora set in a folder."""
    return (path / INDEX).is_file()


def read_index(path: Path) -> dict[str, Any]:
    """Read what a set says of itself."""
    try:
        index = tomllib.loads((path / INDEX).read_text(encoding="utf-8"))
        written = int(index["format"])
    except (OSError, ValueError, KeyError) as error:
        raise CalmError(f"{path / INDEX} is damaged ({error}): build the set again") from None
    if written != FORMAT:
        raise CalmError(
            f"{path} was written in format {written}, this version of calm reads format {FORMAT}: "
            + ("build the set again" if written < FORMAT else "update calm")
        )
    return index


def verify(path: Path) -> list[str]:
    """Compare every file of a set with its hash; returns what is wrong."""
    faults = []
    for name, expected in read_index(path)["sha256"].items():
        if not (path / name).is_file():
            faults.append(f"{path / name} is missing")
        elif sha256(path / name) != expected:
            faults.append(
                f"{path / name} has changed: its SHA-256 is another than when it was built"
            )
    return faults
