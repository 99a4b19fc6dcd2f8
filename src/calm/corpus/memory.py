"""Corpora held in memory: from arrays, or from a folder of NAME.txt files."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from calm.corpus.base import LEVELS, Corpora, Level, Tokens
from calm.errors import CalmError


class MemoryCorpora(Corpora):
    """One array of tokens per class, and where its test half begins."""

    def __init__(
        self,
        name: str,
        level: Level,
        vocabulary: Sequence[str],
        halves: Mapping[str, tuple[Tokens, Tokens]],
    ) -> None:
        self.name = name
        self.level = level
        self.vocabulary = tuple(vocabulary)
        self.classes = tuple(halves)
        smallest = np.min_scalar_type(max(len(self.vocabulary) - 1, 0))
        self._tokens = [np.concatenate(pair).astype(smallest) for pair in halves.values()]
        self._halves = [len(dev) for dev, _ in halves.values()]

    def bounds(self, class_index: int) -> tuple[int, int]:
        """Return (half, end) of a class."""
        return self._halves[class_index], len(self._tokens[class_index])

    def tokens(self, class_index: int, start: int, stop: int) -> Tokens:
        """Tokens start … stop-1 of a class."""
        return self._tokens[class_index][start:stop]

    def fingerprint(self) -> str:
        """Return a hash of the vocabulary, the classes and every token."""
        digest = hashlib.sha256(repr((self.level, self.vocabulary, self.classes)).encode())
        for half, tokens in zip(self._halves, self._tokens, strict=True):
            digest.update(f"{half} {len(tokens)} {tokens.dtype}".encode())
            digest.update(tokens.tobytes())
        return digest.hexdigest()[:16]


def folder_corpora(folder: Path, level: str = "char") -> MemoryCorpora:
    """Read every NAME.txt of a folder as the class NAME.

    The first half of a file's lines is dev, the second test. At level char a line end is a token;
    at level word a token is what stands between white space.
    """
    if level not in LEVELS:
        raise CalmError(f"level {level!r} is not one of {', '.join(LEVELS)}")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".txt")
    if not paths:
        raise CalmError(f"{folder} holds no text: put one NAME.txt per class into it")
    texts = {path.stem: _halves(path) for path in paths}
    symbols = {
        name: tuple(list(half) if level == "char" else half.split() for half in pair)
        for name, pair in texts.items()
    }
    vocabulary = sorted({s for pair in symbols.values() for half in pair for s in half})
    index = {symbol: i for i, symbol in enumerate(vocabulary)}
    encoded = {
        name: (
            np.array([index[s] for s in dev], dtype=np.int64),
            np.array([index[s] for s in test], dtype=np.int64),
        )
        for name, (dev, test) in symbols.items()
    }
    return MemoryCorpora(folder.resolve().name, LEVELS[LEVELS.index(level)], vocabulary, encoded)


def _halves(path: Path) -> tuple[str, str]:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CalmError(
            f"{path} is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}; "
            "convert the file to UTF-8"
        ) from None
    if not text.strip():
        raise CalmError(f"{path} is empty: every class needs text")
    lines = [line + "\n" for line in text.replace("\r\n", "\n").rstrip("\n").split("\n")]
    middle = len(lines) // 2
    return "".join(lines[:middle]), "".join(lines[middle:])
