"""The file `vocabulary.txt`: a symbol a line, the first is token 0."""

from collections.abc import Sequence
from pathlib import Path

UNKNOWN = "<unk>"  # stands for every word that is not in the vocabulary

_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})


def write_vocabulary(symbols: Sequence[str], path: Path) -> None:
    """Write symbols, those that would break a line as backslash escapes."""
    escaped = (symbol.translate(_ESCAPES) for symbol in symbols)
    path.write_bytes("".join(f"{symbol}\n" for symbol in escaped).encode())


def read_vocabulary(path: Path) -> tuple[str, ...]:
    """Read the symbols back."""
    lines = path.read_bytes().decode().split("\n")[:-1]
    return tuple(_unescape(line) if "\\" in line else line for line in lines)


def _unescape(line: str) -> str:
    parts = iter(line)
    letters = {"n": "\n", "r": "\r", "\\": "\\"}
    return "".join(letters[next(parts)] if part == "\\" else part for part in parts)
