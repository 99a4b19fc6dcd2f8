"""Where corpora and downloads are kept: the folder CALM_DATA, or one for this user."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from calm.corpus.store import StoredCorpora, holds_set
from calm.errors import CalmError


def data_folder() -> Path:
    """Return the folder of all data."""
    if chosen := os.environ.get("CALM_DATA"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "calm"


def downloads_folder() -> Path:
    """Return the folder of what was downloaded."""
    return data_folder() / "downloads"


def set_path(name: str) -> Path:
    """Return where the set of a name is, or would be."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise CalmError(
            f"{name!r} is no name for a corpora set: take letters, digits, dashes, dots and "
            "underscores"
        )
    return data_folder() / "corpora" / name


def is_set(name: str) -> bool:
    """Whether there is a set of this name."""
    return name in stored_names()


def stored_names() -> Iterator[str]:
    """Yield the names of all sets that are here."""
    folder = data_folder() / "corpora"
    if folder.is_dir():
        yield from sorted(p.name for p in folder.iterdir() if p.name[0] != "." and holds_set(p))


def find_set(name: str) -> Path:
    """Return where the set of a name is; an error if there is none."""
    path = set_path(name)
    if not holds_set(path):
        here = ", ".join(stored_names()) or "none"
        raise CalmError(f"there is no corpora set {name!r} in {path.parent}; there are: {here}")
    return path


def open_set(name: str) -> StoredCorpora:
    """Open the set of a name."""
    return StoredCorpora(find_set(name))
