"""What can be said to `calm corpus …` on the command line."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, UseAppendAction, arg

from calm.config import Cleaning


@dataclass(frozen=True)
class ListCommand:
    """List the corpora sets: those that can be fetched, and those that are here.

    Examples:
      calm corpus list
    """


@dataclass(frozen=True)
class FetchCommand:
    """Download a corpora set and build it.

    Examples:
      calm corpus fetch newstest
      calm corpus fetch multidomain --bnc ~/Downloads/2554.zip
    """

    name: Annotated[Positional[str], arg(metavar="NAME")]
    """Name of the set: see `calm corpus list`."""
    bnc: Annotated[Path | None, arg(metavar="ARCHIVE", help_behavior_hint="")] = None
    """The British National Corpus, XML edition: its zip, or the folder it unpacks to."""
    replace: bool = False
    """Build it again if it is there."""
    cleaning: Annotated[Cleaning, arg(name="")] = field(default_factory=Cleaning)


@dataclass(frozen=True)
class AddCommand:
    """Build a corpora set from text of your own.

    A folder has one file or one folder per class: plain .txt, .gz, .bz2, .xz or .zst, in UTF-8.

    Examples:
      calm corpus add mine texts/ --level char
      calm corpus add mine --level word --class a=a.txt.gz --class b=folder/
      calm corpus add wiki --level char --class fr=hf:wikimedia/wikipedia:20231101.fr:train:text
    """

    name: Annotated[Positional[str], arg(metavar="NAME")]
    """Name of the new set."""
    folder: Annotated[Positional[Path | None], arg(metavar="[FOLDER]", help_behavior_hint="")] = (
        None
    )
    """Folder of text."""
    level: Literal["char", "word"] = "char"
    """Whether a token is a character or a word."""
    classes: Annotated[
        UseAppendAction[tuple[str, ...]], arg(name="class", metavar="NAME=SOURCE")
    ] = ()
    """One more class: a file, a folder, or hf:OWNER/NAME[:CONFIG][:SPLIT]:COLUMN."""
    tokens: int = 20_000_000
    """How many tokens are taken at most of a class from hf:."""
    replace: bool = False
    """Build it again if it is there."""
    cleaning: Annotated[Cleaning, arg(name="")] = field(default_factory=Cleaning)


@dataclass(frozen=True)
class ShowCommand:
    """Show what a corpora set is like: sizes, coverage, similarity, samples.

    Examples:
      calm corpus show newstest
      calm corpus show texts/
    """

    name: Annotated[Positional[str], arg(metavar="NAME")]
    """A set, or a folder with one NAME.txt per class."""


@dataclass(frozen=True)
class VerifyCommand:
    """Compare corpora sets and downloads with the hashes they had when they came.

    Examples:
      calm corpus verify
      calm corpus verify newstest
    """

    name: Annotated[Positional[str | None], arg(metavar="[NAME]", help_behavior_hint="")] = None
    """One set only."""
