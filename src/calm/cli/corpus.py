"""`calm corpus …`: one function per command, which calls the library and prints."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calm.cli.corpus_arguments import (
    AddCommand,
    FetchCommand,
    ListCommand,
    ShowCommand,
    VerifyCommand,
)
from calm.config import Cleaning
from calm.errors import CalmError, RunFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calm.corpus.base import Corpora, Level
    from calm.corpus.documents import Document

Options = dict[str, dict[str, Any]]


def list_sets(command: ListCommand, options: Options) -> None:
    """`calm corpus list`."""
    from rich import box
    from rich.table import Table

    from calm.cli.screen import console
    from calm.corpus.home import data_folder, set_path, stored_names
    from calm.corpus.recipes import RECIPES
    from calm.corpus.store import read_index

    here = list(stored_names())
    table = Table(box=box.SIMPLE)
    for heading in ("name", "level", "here", "size", "about", "licence"):
        table.add_column(heading, overflow="fold")
    table.add_row(
        "synthetic", "char", "built in", "endless", "five artificial languages, truth known", "MIT"
    )
    for name, recipe in RECIPES.items():
        state = "yes" if name in here else "no"
        table.add_row(name, recipe.level, state, recipe.size, recipe.about, recipe.licence)
    for name in sorted(set(here) - set(RECIPES)):
        try:
            index = read_index(set_path(name))
        except CalmError as error:
            table.add_row(name, "", "yes", "", str(error), "")
            continue
        tokens = sum(facts["dev"] + facts["test"] for facts in index["classes"].values())
        size = f"{tokens:,} {'characters' if index['level'] == 'char' else 'words'}"
        about = f"yours: see `calm corpus show {name}`"
        table.add_row(name, index["level"], "yes", size, about, "")
    console().print(table)
    print(f"kept in {data_folder()} (set CALM_DATA to choose another folder)")
    print("to begin: calm corpus fetch newstest")


def fetch(command: FetchCommand, options: Options) -> None:
    """`calm corpus fetch`."""
    from calm.corpus.bnc import bnc_texts
    from calm.corpus.download import obtain, pin
    from calm.corpus.home import downloads_folder
    from calm.corpus.recipes import RECIPES, recipe_classes, recipe_documents
    from calm.progress import byte_progress

    if command.name not in RECIPES:
        raise CalmError(f"there is no recipe {command.name!r}: take one of {', '.join(RECIPES)}")
    recipe = RECIPES[command.name]
    if command.bnc and not recipe.bnc:
        raise CalmError(f"{command.name} has no use for --bnc: only multidomain has")
    if command.bnc:
        bnc_texts(command.bnc)  # what is wrong with it is said before gigabytes are downloaded
    target = _new_set(command.name, command.replace)
    with byte_progress() as progress:
        for remote in recipe.remotes:
            obtain(remote, downloads_folder(), progress.tell)
    documents = recipe_documents(recipe, downloads_folder(), command.bnc)
    classes = recipe_classes(recipe, command.bnc)
    _build(target, classes, documents, recipe.level, command.cleaning, command.name)
    for remote in recipe.remotes:
        pin(remote, downloads_folder())
    if recipe.bnc and not command.bnc:
        print(
            "Without the British National Corpus the set has three domains; its licence makes you "
            "download it yourself: see docs/corpora.md, then add --bnc ARCHIVE --replace."
        )


def add(command: AddCommand, options: Options) -> None:
    """`calm corpus add`."""
    from calm.corpus.recipes import RECIPES
    from calm.corpus.sources import check_sources, folder_sources, parse_class, source_documents

    if command.name in ("synthetic", *RECIPES):
        raise CalmError(f"{command.name} is a set of `calm corpus list`: choose another name")
    sources, aside = folder_sources(command.folder) if command.folder else ({}, [])
    for name, source in map(parse_class, command.classes):
        if name in sources:
            raise CalmError(f"class {name!r} is named twice")
        sources[name] = source
    if not sources:
        raise CalmError("no text is named: give a FOLDER, or --class NAME=SOURCE")
    if command.tokens < 1:
        raise CalmError(f"tokens is {command.tokens}: take 1 or more")
    check_sources(sources)
    if aside:
        print(f"left aside, as no text: {', '.join(aside)}")
    target = _new_set(command.name, command.replace)
    documents = source_documents(sources, command.level, command.tokens)
    _build(target, tuple(sources), documents, command.level, command.cleaning)


def show(command: ShowCommand, options: Options) -> None:
    """`calm corpus show`."""
    from calm.build import load
    from calm.corpus.description import sample

    corpora = load(command.name, **options["corpus"])
    _show_classes(corpora)
    _show_overlap(corpora)
    for c, name in enumerate(corpora.classes):
        text = sample(corpora, c, 160 if corpora.level == "char" else 30)
        print(f"{name}: {text!r}")


def verify(command: VerifyCommand, options: Options) -> None:
    """`calm corpus verify`."""
    from calm.corpus.download import verify_downloads
    from calm.corpus.home import downloads_folder, find_set, stored_names
    from calm.corpus.store import verify as verify_set

    names = [command.name] if command.name else list(stored_names())
    faults = [fault for name in names for fault in verify_set(find_set(name))]
    if not command.name:
        faults += verify_downloads(downloads_folder())
    for fault in faults:
        print(fault)
    if faults:
        raise RunFailedError("something is not as it was: build or fetch it again with --replace")
    print(f"as they were built: {', '.join(names) or 'no sets'}")


def _new_set(name: str, replace: bool) -> Path:
    """Return where a set of this name is to be built."""
    from calm.corpus.home import set_path
    from calm.corpus.store import holds_set

    target = set_path(name)
    if holds_set(target) and not replace:
        raise CalmError(f"{name} is here already: see `calm corpus show {name}`, or add --replace")
    return target


def _build(
    target: Path,
    classes: tuple[str, ...],
    documents: "Iterable[Document]",
    level: "Level",
    cleaning: Cleaning,
    recipe: str | None = None,
) -> None:
    """Build a set and show what became of the text."""
    from calm.corpus.builder import build_set
    from calm.corpus.store import StoredCorpora
    from calm.progress import byte_progress

    with byte_progress() as progress:
        build_set(target, classes, documents, level, cleaning, progress.tell, recipe)
    _show_classes(StoredCorpora(target))
    print(f"written to {target}; use it: calm run --corpus {target.name}")


def _show_classes(corpora: "Corpora") -> None:
    """Print sizes and coverage, and what was dropped if that is known."""
    from rich import box
    from rich.table import Table

    from calm.cli.screen import console
    from calm.corpus.description import describe
    from calm.corpus.store import StoredCorpora

    facts = corpora.index["classes"] if isinstance(corpora, StoredCorpora) else {}
    table = Table(box=box.SIMPLE)
    table.add_column("class")
    headings = ["dev tokens", "test tokens", "symbols", "for 99 %"]
    headings += ["unknown"] if corpora.level == "word" else []
    headings += ["lines", "lines dropped", "not UTF-8"] if facts else []
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in describe(corpora):
        numbers = [row.dev, row.test, row.symbols, row.symbols_of_99_percent]
        cells = [f"{number:,}" for number in numbers]
        cells += [f"{row.unknown:.2%}"] if corpora.level == "word" else []
        if facts:
            fact = facts[row.name]
            share = fact["dropped_lines"] / (fact["lines"] + fact["dropped_lines"])
            cells += [f"{fact['lines']:,}", f"{fact['dropped_lines']:,} ({share:.1%})"]
            cells.append(f"{fact['undecodable_lines']:,}")
        table.add_row(row.name, *cells)
    print(f"{corpora.name}: level {corpora.level}, {len(corpora.vocabulary):,} symbols")
    console().print(table)


def _show_overlap(corpora: "Corpora") -> None:
    """Print how alike every two classes are."""
    from rich import box
    from rich.table import Table

    from calm.cli.screen import console
    from calm.corpus.description import symbol_overlap

    what = "characters" if corpora.level == "char" else "words"
    table = Table(title=f"share of {what} in common", title_justify="left", box=box.SIMPLE)
    for heading in ("", *corpora.classes):
        table.add_column(heading, justify="right" if heading else "left")
    for name, row in zip(corpora.classes, symbol_overlap(corpora), strict=True):
        table.add_row(name, *(f"{share:.2f}" for share in row))
    console().print(table)


Command = tuple[type[Any], Callable[[Any, Options], None]]
CORPUS_COMMANDS: dict[str, Command] = {
    "list": (ListCommand, list_sets),
    "fetch": (FetchCommand, fetch),
    "add": (AddCommand, add),
    "show": (ShowCommand, show),
    "verify": (VerifyCommand, verify),
}
