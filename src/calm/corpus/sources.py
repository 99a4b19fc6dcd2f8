"""One's own text: a folder with one file or one folder per class, or a source named per class."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from calm.corpus.archives import OPENERS, open_text, text_name
from calm.corpus.base import Level
from calm.corpus.documents import Document, Lines
from calm.corpus.hub import PREFIX, hub_lines, parse_hub
from calm.errors import CalmError
from calm.files import files_below

Sources = Mapping[str, str | Path]  # per class a file, a folder, or hf:…


def folder_sources(folder: Path) -> tuple[dict[str, str | Path], list[str]]:
    """Find the classes in a folder: each a text file, or a folder of such.

    Also returns what is neither and left aside. Text files are .txt, or compressed.
    """
    if not folder.is_dir():
        raise CalmError(f"there is no folder {folder}")
    sources: dict[str, str | Path] = {}
    aside = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if not (path.is_dir() or _is_text(path)):
            aside.append(path.name)
            continue
        name = path.name if path.is_dir() else text_name(path)
        if name in sources:
            raise CalmError(f"{path} and {sources[name]} are both class {name!r}: keep one of them")
        sources[name] = path
    if not sources:
        raise CalmError(
            f"{folder} holds no text: put one file per class into it, such as en.txt or en.txt.gz, "
            "or one folder of files per class"
        )
    return sources, aside


def parse_class(text: str) -> tuple[str, str | Path]:
    """Read `NAME=SOURCE`, where the source is a file, a folder or `hf:…`."""
    name, equals, source = text.partition("=")
    if not (name and equals and source) or "/" in name or name.startswith("."):
        raise CalmError(f"{text!r} is not NAME=SOURCE, such as en=en.txt or fr=hf:OWNER/NAME:text")
    return name, source if source.startswith(PREFIX) else Path(source)


def check_sources(sources: Sources) -> None:
    """Refuse what cannot be read, or named, before anything is built."""
    for name, source in sources.items():
        if not name.isprintable():
            raise CalmError(f"{name!r} is no name for a class: take characters that can be seen")
        if isinstance(source, str):
            parse_hub(source)
        else:
            _files(source)


def source_documents(sources: Sources, level: Level, budget: int) -> Iterator[Document]:
    """Yield the text of every class; `budget` tokens at most of a dataset that is streamed."""
    for name, source in sources.items():
        if isinstance(source, str):
            lines = hub_lines(parse_hub(source), level, budget)
            yield Document(name, source, Lines(lines), strict=False)
            continue
        for path in _files(source):
            with open_text(path) as stream:
                yield Document(name, str(path), stream)


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise CalmError(f"there is no {source}")
    files = [path for path in files_below(source) if _is_text(path)]
    if not files:
        raise CalmError(f"{source} holds no text: no .txt file, nor a compressed one")
    return files


def _is_text(path: Path) -> bool:
    return not path.name.startswith(".") and (path.suffix == ".txt" or path.suffix in OPENERS)
