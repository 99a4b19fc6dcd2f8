"""The two files of a run that grow by a line a batch: how they are written, and read again fast."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson

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
        while block := file.read(BLOCK):
            lines = block + file.readline()
            count = lines.count(b"\n") + (not lines.endswith(b"\n"))
            yield _columns(path, skip.sub(b"", lines) if skip else lines, first, count, keys)
            first += count


def _columns(
    path: Path, lines: bytes, first: int, count: int, keys: Sequence[str]
) -> list[list[Any]]:
    """Read `count` lines from number `first` on: all at once, which is several times as fast.

    Only if that does not work, one by one, to say which line is damaged, and how.
    """
    try:
        rows = orjson.loads(b"[" + lines.removesuffix(b"\n").replace(b"\n", b",") + b"]")
        if [row["step"] for row in rows] == list(range(first, first + count)):
            return [[row[key] for row in rows] for key in keys]
    except (ValueError, KeyError, TypeError):
        pass
    rows = []
    for number, line in enumerate(lines.removesuffix(b"\n").split(b"\n"), first):
        try:
            rows.append(json.loads(line))
            if rows[-1]["step"] != number:
                raise ValueError(f"step {rows[-1]['step']} out of place")
            [rows[-1][key] for key in keys]
        except (ValueError, KeyError, TypeError) as error:
            raise CalmError(f"{path} is damaged in line {number + 1}: {error}") from None
    return [[row[key] for row in rows] for key in keys]
