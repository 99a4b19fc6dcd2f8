"""Files that are hashed, and replaced whole or not at all; folders that can be written to."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from filelock import FileLock, Timeout

from calm.errors import BusyError, CalmError, RunFailedError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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


def files_below(folder: Path) -> list[Path]:
    """Find every file in a folder and those in it; a folder that may not be read is an error."""

    def fail(error: OSError) -> None:
        raise error

    try:
        walk = os.walk(folder, onerror=fail)
        paths = (Path(parent, name) for parent, _, names in walk for name in names)
        return sorted(path for path in paths if _is_file(path))
    except OSError as error:
        raise CalmError(f"{error.filename} cannot be read: {error.strerror}") from None


def _is_file(path: Path) -> bool:
    """Whether it is a plain file; unlike `Path.is_file`, an error if that may not be known."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:  # a link that leads nowhere
        return False


def make_folder(folder: Path) -> None:
    """Make sure that there is a folder and that files can be put into it."""
    with _writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass


@contextmanager
def locked(lock_file: Path, work: str) -> Iterator[None]:
    """Make a file's folder and keep other processes away; a lock dies with its process."""
    lock = FileLock(lock_file)
    with _writing_to(lock_file.parent):
        lock_file.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise BusyError(f"another process is {work}") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CalmError(f"cannot write to {folder}: {error.strerror or error}") from None


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """Say which folder has no room for more: of a file half written the system names none."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise RunFailedError(
            f"there is no room for more in {folder} ({error.strerror}): free some, then try again"
        ) from None


def replace_json(path: Path, data: dict[str, Any]) -> None:
    """Write plain data so."""
    text = json.dumps(data, indent=2) + "\n"
    replace_file(path, lambda new: new.write_text(text, encoding="utf-8"))
