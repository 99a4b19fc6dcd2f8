"""A Hugging Face dataset as a class: `hf:OWNER/NAME[:CONFIG][:SPLIT]:COLUMN`, streamed."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from calm.corpus.base import Level
from calm.errors import CalmError, RunFailedError

PREFIX = "hf:"
SPLITS = ("train", "validation", "test", "dev")


@dataclass(frozen=True)
class HubText:
    """One column of one split of a dataset."""

    dataset: str
    config: str | None
    split: str
    column: str


def parse_hub(text: str) -> HubText:
    """Read `hf:OWNER/NAME[:CONFIG][:SPLIT]:COLUMN`; the split is train if none is named."""
    parts = text.removeprefix(PREFIX).split(":")
    if not 2 <= len(parts) <= 4 or not all(parts) or "[" in text:
        raise CalmError(f"{text} is not hf:OWNER/NAME[:CONFIG][:SPLIT]:COLUMN")
    dataset, *middle, column = parts
    named = middle and (len(middle) == 2 or middle[-1] in SPLITS)
    split = middle.pop() if named else "train"
    return HubText(dataset, middle[0] if middle else None, split, column)


def hub_lines(source: HubText, level: Level, budget: int) -> Iterator[str]:
    """Yield the lines of a dataset until they have `budget` tokens."""
    try:
        import datasets
    except ImportError:
        raise CalmError("to read hf: datasets: pip install 'calm-bench[hf]'") from None
    for library in ("datasets", "huggingface_hub"):  # what is wrong is said once, below
        logging.getLogger(library).setLevel(logging.CRITICAL)
    try:
        rows = iter(
            datasets.load_dataset(source.dataset, source.config, split=source.split, streaming=True)
        )
        while budget > 0 and (row := next(rows, None)) is not None:
            text = _text(row, source)
            for line in text.split("\n") if text is not None else ():
                yield line
                budget -= len(line) + 1 if level == "char" else len(line.split())
                if budget <= 0:
                    break
    except (CalmError, GeneratorExit):
        raise
    except Exception as error:  # whatever the library and the network come up with
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise RunFailedError(f"{PREFIX}{source.dataset}: {reason}") from None


def _text(row: dict[str, object], source: HubText) -> str | None:
    """Return a row's text, if it has one."""
    where, others = f"{PREFIX}{source.dataset}", ", ".join(row)
    if source.column not in row:
        raise CalmError(f"{where} has no column {source.column!r}: take one of {others}")
    text = row[source.column]
    if not isinstance(text, str | None):
        kind = type(text).__name__
        raise CalmError(
            f"column {source.column!r} of {where} holds no text, but {kind}: take one of {others}"
        )
    return text
