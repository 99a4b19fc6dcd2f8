"""Documents become a corpora set on disk, in two passes and bounded memory.

First every document is checked, counted and copied to a plain file of its class, which is where
the second pass reads: archives are unpacked once, and the text cannot change in between. Then the
lines are cleaned and encoded, and the halves written. Nothing is at its place before all is done.
"""

import hashlib
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numba import njit
from numpy.typing import DTypeLike, NDArray

from calm.config import Cleaning
from calm.corpus.base import Level, Tell
from calm.corpus.characters import Characters
from calm.corpus.cleaner import Cleaner, Encoded, token_type
from calm.corpus.documents import BLOCK_BYTES, Document, blocks
from calm.corpus.store import write_index
from calm.corpus.vocabulary import write_vocabulary
from calm.corpus.words import Words
from calm.errors import CalmError
from calm.files import locked, room_in, sha256

T = TypeVar("T")
R = TypeVar("R")
WORKERS = 2


@dataclass
class ClassFacts:
    """What became of a class's text."""

    lines: int = 0
    dev: int = 0
    test: int = 0
    dropped_lines: int = 0
    dropped_tokens: int = 0
    undecodable_lines: int = 0


def build_set(
    target: Path,
    classes: Sequence[str],
    documents: Iterable[Document],
    level: Level,
    cleaning: Cleaning,
    tell: Tell,
    recipe: str | None = None,
) -> Path:
    """Build a set in the folder `target`, in place of what may be there, by a recipe if any."""
    with _workshop(target) as work, ThreadPoolExecutor(WORKERS) as pool:
        cleaner: Cleaner = (
            Characters(cleaning.rare, cleaning.rare_in)
            if level == "char"
            else Words(cleaning.top, work)
        )
        building = _Building(work, tuple(classes), cleaner, tell)
        building.read(documents)
        building.encode(pool)
        building.describe(target.name, recipe)
        _install(work, target)
    return target


class _Building:
    """The state of one build, in a folder of its own."""

    def __init__(self, work: Path, classes: tuple[str, ...], cleaner: Cleaner, tell: Tell) -> None:
        self.work, self.classes, self.cleaner, self.tell = work, classes, cleaner, tell
        self.facts = {name: ClassFacts() for name in classes}
        self.vocabulary: tuple[str, ...] = ()
        self.hashes: dict[str, str] = {}

    def read(self, documents: Iterable[Document]) -> None:
        """First pass: check, copy and count every document."""

        def count(item: tuple[int, bytes]) -> None:
            self.cleaner.count(item[0], np.frombuffer(item[1], dtype=np.uint8))

        with ThreadPoolExecutor(1) as pool:
            for _ in _in_order(pool, count, self._copied(documents)):
                pass
        for name in self.classes:
            path = self._text(name)
            if not path.is_file() or not path.stat().st_size:
                raise CalmError(f"class {name!r} is empty: every class needs text")
        self.vocabulary = self.cleaner.settle(len(self.classes))

    def encode(self, pool: Executor) -> None:
        """Second pass: clean and encode every class, and write its halves."""
        total = sum(self._text(name).stat().st_size for name in self.classes)
        done = 0
        counts = np.zeros((len(self.classes), len(self.vocabulary)), dtype=np.int64)
        for c, name in enumerate(self.classes):

            def encode(block: bytes, c: int = c) -> tuple[Encoded, NDArray[np.int64], int]:
                encoded = self.cleaner.encode(c, np.frombuffer(block, dtype=np.uint8))
                counted = np.zeros(len(self.vocabulary), dtype=np.int64)
                count_tokens(encoded.tokens, counted)
                return encoded, counted, len(block)

            with (
                (self.work / "tokens").open("w+b") as tokens,
                (self.work / "lines").open("w+b") as lines,
                self._text(name).open("rb") as text,
            ):
                copy = Document(name, name, text)
                for encoded, counted, size in _in_order(pool, encode, blocks(copy)):
                    tokens.write(encoded.tokens.data)
                    lines.write(encoded.line_lengths.data)
                    self._note(name, encoded)
                    counts[c] += counted
                    done += size
                    self.tell("encode", done, total)
                self._write_halves(name, tokens, lines)
            self._text(name).unlink()
        (self.work / "tokens").unlink()
        (self.work / "lines").unlink()
        with self._array("counts.npy", np.dtype("<i8"), *counts.shape) as write:
            write(counts)
        write_vocabulary(self.vocabulary, self.work / "vocabulary.txt")
        self.hashes["vocabulary.txt"] = sha256(self.work / "vocabulary.txt")

    def describe(self, name: str, recipe: str | None) -> None:
        """Write the index, which makes it a set."""
        index = {
            "name": name,
            "level": self.cleaner.level,
            **({"recipe": recipe} if recipe else {}),
            "rules": self.cleaner.rules(),
            "classes": {name: asdict(facts) for name, facts in self.facts.items()},
            "sha256": self.hashes,
        }
        write_index(self.work, index)

    def _text(self, name: str) -> Path:
        return self.work / f"{name}.text"

    def _copied(self, documents: Iterable[Document]) -> Iterator[tuple[int, bytes]]:
        """Copy every document to its class's file; yields class and block on the way."""
        done = 0
        for document in documents:
            with self._text(document.class_name).open("ab") as copy:
                for block in blocks(document):
                    copy.write(block)
                    yield self.classes.index(document.class_name), block
                    done += len(block)
                    self.tell("read", done, 0)
            self.facts[document.class_name].undecodable_lines += document.left_out

    def _note(self, name: str, encoded: Encoded) -> None:
        facts = self.facts[name]
        facts.lines += len(encoded.line_lengths)
        facts.dropped_lines += encoded.dropped_lines
        facts.dropped_tokens += encoded.dropped_tokens

    def _write_halves(self, name: str, tokens: BinaryIO, lines: BinaryIO) -> None:
        """Divide a class's tokens after half of its lines: tokens and line ends of each half."""
        facts, kind = self.facts[name], token_type(len(self.vocabulary))
        if not tokens.tell():
            why = "there are no words in it"
            if dropped := facts.dropped_lines:
                why = f"all of its {dropped:,} lines have a rare character; take a lower --rare"
            raise CalmError(f"class {name!r} is empty once cleaned: {why}")
        tokens.seek(0)
        lines.seek(0)
        dev = facts.lines // 2
        facts.dev = self._write_half(f"{name}.dev", kind, tokens, lines, dev)
        facts.test = self._write_half(f"{name}.test", kind, tokens, lines, facts.lines - dev)

    def _write_half(
        self, name: str, kind: np.dtype[Any], tokens: BinaryIO, lines: BinaryIO, count: int
    ) -> int:
        """Write the next `count` lines; returns how many tokens they have."""
        with self._array(f"{name}.lines.npy", np.dtype("<i8"), count) as write:
            end = 0
            for lengths in _parts(lines, np.int32, count):
                ends = end + np.cumsum(lengths, dtype=np.int64)
                end = int(ends[-1])
                write(ends)
        with self._array(f"{name}.npy", kind, end) as write:
            for part in _parts(tokens, kind, end):
                write(part)
        return end

    @contextmanager
    def _array(
        self, file: str, kind: np.dtype[Any], *shape: int
    ) -> Iterator[Callable[[NDArray[Any]], None]]:
        """Write a NumPy file of a shape, some numbers at a time, and note its hash."""
        digest = hashlib.sha256()
        with (self.work / file).open("w+b") as out:

            def write(part: NDArray[Any]) -> None:
                out.write(part.data)
                digest.update(part.data)

            np.lib.format.write_array_header_1_0(
                out, {"descr": kind.str, "fortran_order": False, "shape": shape}
            )
            out.seek(0)
            digest.update(out.read())
            yield write
        self.hashes[file] = digest.hexdigest()


def _parts(file: BinaryIO, kind: DTypeLike, count: int) -> Iterator[NDArray[Any]]:
    """Read `count` numbers from where a file stands, some at a time."""
    while count:
        part = np.fromfile(file, kind, min(count, BLOCK_BYTES))
        yield part
        count -= len(part)


def _in_order(pool: Executor, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Do work on items in the pool; results come in the items' order, few items wait."""
    waiting: deque[Future[R]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > WORKERS:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@njit(cache=True, nogil=True)
def count_tokens(tokens, counts):  # type: ignore[no-untyped-def]
    """Add how often every token occurs to `counts` (V,)."""
    for token in tokens:
        counts[token] += 1


@contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    """Make an empty hidden folder beside the target, for one build at a time; it is gone after."""
    work = target.with_name(f".{target.name}.building")
    lock = target.with_name(f".{target.name}.lock")
    with locked(lock, f"building {target}"), room_in(target.parent):
        try:
            shutil.rmtree(work, ignore_errors=True)  # what a killed build left behind
            work.mkdir()
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _install(work: Path, target: Path) -> None:
    """Put a finished set in its place: the old one is there, for a moment none, then the new."""
    for path in work.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    work.rename(target)
    shutil.rmtree(old, ignore_errors=True)
