"""The two files of a run that grow by a line a batch: how they are written, and read again fast."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from calm.errors import CalmError
from calm.loop import Record

GATE_DIGITS = 6
GATES = re.compile(rb', "gates": \[[^]]*\]')  # most of a line, where there are any
BLOCK = 1 << 20  # bytes of a journal that are read at a time


class Journals:
    """The two files that grow by a line a batch."""

    def __init__(self, records: BinaryIO, timings: BinaryIO) -> None:
        self._files = (records, timings)

    def write(self, record: Record, seconds: float) -> None:
        """Write a record as it happens."""
        line: dict[str, Any] = {
            "step": record.step,
            "fragment": record.fragment,
            "class": record.class_name,
            "loss": record.loss,
        }
        if record.gates is not None:
            line["gates"] = [float(f"{weight:.{GATE_DIGITS}g}") for weight in record.gates]
        records, timings = self._files
        records.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        timings.write(b'{"step": %d, "seconds": %.6f}\n' % (record.step, seconds))
        records.flush()

    def sync(self) -> None:
        """Make sure that all of it is on the disk."""
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())


def read_blocks(
    path: Path, keys: Sequence[str], skip: re.Pattern[bytes] | None = None
) -> Iterator[list[list[Any]]]:
    """Yield the values of many lines at a time, a list for each key; `skip` is not looked at."""
    with path.open("rb") as file:
        first = 0
        while lines := file.readlines(BLOCK):
            kept = [skip.sub(b"", line) for line in lines] if skip else lines
            yield _columns(path, kept, first, keys)
            first += len(lines)


def _columns(path: Path, lines: list[bytes], first: int, keys: Sequence[str]) -> list[list[Any]]:
    """Read lines, the first of them number `first`; all at once, which is several times as fast.

    Only if that does not work, one by one, to say which line is damaged, and how.
    """
    try:
        rows = json.loads(b"[" + b",".join(lines) + b"]")
        if [row["step"] for row in rows] == list(range(first, first + len(lines))):
            return [[row[key] for row in rows] for key in keys]
    except (ValueError, KeyError, TypeError):
        pass
    columns: list[list[Any]] = [[] for _ in keys]
    for number, line in enumerate(lines, first):
        try:
            row = json.loads(line)
            if row["step"] != number:
                raise ValueError(f"step {row['step']} out of place")
            for column, key in zip(columns, keys, strict=True):
                column.append(row[key])
        except (ValueError, KeyError, TypeError) as error:
            raise CalmError(f"{path} is damaged in line {number + 1}: {error}") from None
    return columns
