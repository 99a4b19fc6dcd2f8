"""The British National Corpus, XML edition: sentences `<s>` of words `<w>` and marks `<c>`."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import IO
from xml.etree import ElementTree

from calm.corpus.documents import readable
from calm.errors import CalmError
from calm.files import files_below


def bnc_texts(source: Path) -> list[str]:
    """Name the texts in the published zip or its folder: Texts/A/A0/A00.xml, no documentation."""
    paths: Sequence[PurePath]
    if source.is_dir():
        paths = files_below(source)
    elif source.is_file():
        with readable(str(source)), zipfile.ZipFile(source) as archive:
            paths = sorted(PurePosixPath(name) for name in archive.namelist())
    else:
        raise CalmError(f"there is no {source}: give the BNC's zip, or the folder it unpacks to")
    texts = [str(path) for path in paths if path.suffix == ".xml" and "Texts" in path.parts]
    if not texts:
        raise CalmError(f"{source} holds no Texts/*/*/*.xml: is it the BNC's XML edition?")
    return texts


def bnc_sentences(source: Path) -> Iterator[str]:
    """Yield every sentence as tokens between spaces, from the published zip or its folder."""
    texts = bnc_texts(source)
    if source.is_dir():
        yield from _sentences(source, ((str(p), p.open("rb")) for p in map(Path, texts)))
    else:
        with readable(str(source)), zipfile.ZipFile(source) as archive:
            yield from _sentences(source, ((text, archive.open(text)) for text in texts))


def _sentences(source: Path, files: Iterator[tuple[str, IO[bytes]]]) -> Iterator[str]:
    for name, file in files:
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
