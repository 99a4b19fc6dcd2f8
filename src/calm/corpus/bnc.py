"""The British National Corpus, XML edition: sentences `<s>` of words `<w>` and marks `<c>`."""

import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar
from xml.etree import ElementTree

from calm.corpus.documents import readable
from calm.errors import CalmError

P = TypeVar("P", Path, PurePosixPath)


def bnc_sentences(source: Path) -> Iterator[str]:
    """Yield every sentence as tokens between spaces, from the published zip or its folder."""
    if source.is_dir():
        paths = sorted(source.rglob("*.xml"))
        files: Iterator[tuple[str, IO[bytes]]] = ((str(p), p.open("rb")) for p in _texts(paths))
        yield from _sentences(source, files)
    elif source.is_file():
        with readable(str(source)), zipfile.ZipFile(source) as archive:
            names = _texts(sorted(PurePosixPath(name) for name in archive.namelist()))
            yield from _sentences(source, ((str(n), archive.open(str(n))) for n in names))
    else:
        raise CalmError(f"there is no {source}: give the BNC's zip, or the folder it unpacks to")


def _texts(paths: list[P]) -> list[P]:
    """Pick the texts out: Texts/A/A0/A00.xml, not the documentation beside them."""
    return [path for path in paths if path.suffix == ".xml" and "Texts" in path.parts]


def _sentences(source: Path, files: Iterator[tuple[str, IO[bytes]]]) -> Iterator[str]:
    found = False
    for name, file in files:
        found = True
        with file:
            try:
                for _, element in ElementTree.iterparse(file):
                    if element.tag == "s":
                        tokens = [x for x in element.iter() if x.tag in ("w", "c")]
                        if tokens:
                            yield " ".join("".join(x.itertext()).strip() for x in tokens)
                        element.clear()
            except ElementTree.ParseError as error:
                raise CalmError(f"{source}: {name} is not XML: {error}") from None
    if not found:
        raise CalmError(f"{source} holds no Texts/*/*/*.xml: is it the BNC's XML edition?")
