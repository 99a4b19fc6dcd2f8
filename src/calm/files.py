"""Files that are hashed, and replaced whole or not at all."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def sha256(path: Path) -> str:
    """Hash a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def replace_file(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file so that, whatever happens, either the old or the new one is there."""
    new = path.with_name(f".{path.name}.new")
    try:
        write(new)
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def replace_json(path: Path, data: dict[str, Any]) -> None:
    """Write plain data so."""
    text = json.dumps(data, indent=2) + "\n"
    replace_file(path, lambda new: new.write_text(text, encoding="utf-8"))
