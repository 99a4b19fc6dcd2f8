"""The stream: batches of text that switches class and never says so."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calm.corpus.base import SPLITS, Corpora, Split
from calm.errors import CalmError
from calm.stream.plan import Boundary, make_plan, mean_in_batches

CHUNK = 256  # batches read at once
SHORTER = "take fewer fragments or a smaller mean length"


class Batch:
    """One mini-batch: `inputs` and `targets` of shape (w, b), and where the stream stands.

    `class_index` is for the harness; a learner is handed the arrays alone. While `locked`, reading
    the targets is an error: see `calm.Scorer`.
    """

    __slots__ = ("_targets", "class_index", "fragment", "inputs", "locked", "step")

    def __init__(
        self,
        step: int,
        fragment: int,
        class_index: int,
        inputs: NDArray[np.int64],
        targets: NDArray[np.int64],
    ) -> None:
        self.step = step
        self.fragment = fragment
        self.class_index = class_index
        self.inputs = inputs
        self._targets = targets
        self.locked = False

    @property
    def targets(self) -> NDArray[np.int64]:
        """The tokens to predict, shape (w, b)."""
        if self.locked:
            raise CalmError(
                f"batch {self.step}: its targets were read before its prediction was scored; "
                "call scorer.score(log_probabilities) first"
            )
        return self._targets


class Stream:
    """N fragments of text from several classes, in batches of b rows and w tokens.

    Iterating yields every `Batch`; `batches(start)` begins anywhere, at no cost. Nothing is drawn
    or read before it is asked for, and equal parameters always give the equal stream.
    """

    def __init__(
        self,
        corpora: Corpora,
        fragments: int = 100,
        mean_length: float = 10_000,
        rows: int = 10,
        window: int = 20,
        seed: int = 0,
        split: Split = "test",
        boundary: Boundary = "seamless",
    ) -> None:
        if not isinstance(corpora, Corpora):
            raise CalmError(
                f"a stream needs corpora, such as calm.load('synthetic'), not {corpora!r}"
            )
        if split not in SPLITS:
            raise CalmError(f"split {split!r} is not one of {', '.join(SPLITS)}")
        if boundary not in ("seamless", "paper"):
            raise CalmError(f"boundary {boundary!r} is not seamless or paper")
        self.corpora = corpora
        self.fragments = fragments
        self.rows = rows
        self.window = window
        self.split: Split = split
        self.boundary: Boundary = boundary
        self.guard: Callable[[Batch], None] | None = None
        mean_batches = mean_in_batches(mean_length, rows, window)
        count = len(corpora.classes)
        self.plan = make_plan(count, fragments, mean_batches, window, boundary, seed)
        self._rows_of = [self._find_rows(c, split, int(self.plan.used[c])) for c in range(count)]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.corpora.classes

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The symbols, by token."""
        return self.corpora.vocabulary

    @property
    def switch_rate(self) -> float:
        """The probability that a batch is the first of a new fragment."""
        return (self.fragments - 1) / len(self)

    def __repr__(self) -> str:
        return f"<Stream of {self.corpora!r}: {self.fragments} fragments, {len(self)} batches>"

    def __len__(self) -> int:
        """How many batches there are."""
        return int(self.plan.lengths.sum())

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.batches():
            if self.guard:
                self.guard(batch)
            yield batch

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield the batches from number `start` on."""
        if not 0 <= start <= len(self):
            raise CalmError(f"batch {start} is not in a stream of {len(self)} batches")
        plan, window = self.plan, self.window
        first_fragment = int(np.searchsorted(plan.first_batch, start, side="right")) - 1
        for fragment in range(first_fragment, self.fragments):
            class_index, length = int(plan.classes[fragment]), int(plan.lengths[fragment])
            begin = int(plan.first_batch[fragment])
            for offset in range(max(start - begin, 0), length, CHUNK):
                stop = min(offset + CHUNK, length)
                chunk = self._read(fragment, offset, stop)
                for i in range(stop - offset):
                    low = i * window
                    high = low + window
                    yield Batch(
                        begin + offset + i,
                        fragment,
                        class_index,
                        chunk[low:high],
                        chunk[low + 1 : high + 1],
                    )

    def other_text(self, class_index: int, count: int) -> NDArray[np.int64]:
        """Text of a class from the half that this stream does not read, (count, rows).

        A stream that reads all has no such half; its rows are given from the dev half then.
        """
        split: Split = "test" if self.split == "dev" else "dev"
        rows = self._find_rows(class_index, split, count, "ask for less of it")
        return self._columns(rows, 0, count)

    def _read(self, fragment: int, offset: int, stop: int) -> NDArray[np.int64]:
        """Read batches offset … stop-1 of a fragment: the token before them, then their targets."""
        plan = self.plan
        class_index = int(plan.classes[fragment])
        first = int(plan.position[fragment]) + offset * self.window
        last = int(plan.position[fragment]) + stop * self.window
        if offset == 0 and fragment > 0 and self.boundary == "seamless":
            before = int(plan.classes[fragment - 1])
            end = int(plan.position[fragment - 1] + plan.lengths[fragment - 1] * self.window)
            parts = (
                self._columns(self._rows_of[before], end - 1, end),
                self._columns(self._rows_of[class_index], first, last),
            )
            chunk = np.concatenate(parts)
        else:
            chunk = self._columns(self._rows_of[class_index], first - 1, last)
        chunk.flags.writeable = False
        return chunk

    def _columns(self, rows: "Rows", start: int, stop: int) -> NDArray[np.int64]:
        """Tokens start … stop-1 of every row, shape (stop - start, rows)."""
        columns = np.empty((stop - start, self.rows), dtype=np.int64)
        for row, origin in enumerate(rows.origins):
            columns[:, row] = self.corpora.tokens(rows.class_index, origin + start, origin + stop)
        return columns

    def _find_rows(
        self, class_index: int, split: Split, needed: int, advice: str = SHORTER
    ) -> "Rows":
        """Give every row its own region of a class; an error if one is shorter than needed."""
        begin, end = self.corpora.extent(class_index, split)
        entry = self.corpora.entry
        first = -(-begin // entry) * entry
        region = max(end - first, 0) // self.rows // entry * entry
        if region < needed:
            raise CalmError(
                f"the text of {self.classes[class_index]!r} is too short: {needed * self.rows:,} "
                f"tokens of it are needed and its {split} split has {end - begin:,} for "
                f"{self.rows} rows; {advice}"
            )
        return Rows(class_index, [first + row * region for row in range(self.rows)])


@dataclass(frozen=True)
class Rows:
    """Where each row's own region of a class begins."""

    class_index: int
    origins: list[int]
