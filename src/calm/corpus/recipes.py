"""The corpora sets that can be fetched: where their text is, and what is taken from it."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from calm.corpus.archives import members, open_text
from calm.corpus.base import Level
from calm.corpus.bnc import bnc_sentences
from calm.corpus.documents import Document, Lines, blocks
from calm.corpus.download import Remote
from calm.randomness import Draw

LANGUAGES = ("cs", "de", "en", "es", "fr")
SHUFFLE_SEED = 0


@dataclass(frozen=True)
class Part:
    """Text of one class: files of an archive, or a whole compressed file if none are named."""

    class_name: str
    remote: Remote
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """A set: its parts, and whether the lines of a class are shuffled (by a fixed seed)."""

    level: Level
    about: str
    size: str
    licence: str
    parts: tuple[Part, ...]
    shuffled: bool = False
    bnc: bool = False
    """Whether the British National Corpus is one more class, from the user's own copy."""

    @property
    def remotes(self) -> tuple[Remote, ...]:
        """Every file to download, once."""
        return tuple(dict.fromkeys(part.remote for part in self.parts))


NEWS_2009 = Remote(
    "training-monolingual-news-2009.tgz",
    ("http://www.statmt.org/wmt13/training-monolingual-news-2009.tgz",),
)
DEV = Remote("dev.tgz", ("http://www.statmt.org/wmt13/dev.tgz",))
EUROPARL = Remote(
    "europarl-v7.en.gz",
    ("http://www.statmt.org/wmt14/training-monolingual-europarl-v7/europarl-v7.en.gz",),
)
WIKITEXT = Remote(
    "wikitext-103-raw-v1.zip",
    (
        "https://wikitext.smerity.com/wikitext-103-raw-v1.zip",
        "https://huggingface.co/datasets/mattdangerw/wikitext-103-raw/resolve/main/wikitext-103-raw-v1.zip",
    ),
    size=191_984_949,
    sha256="91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794",
)


def _news(language: str) -> str:
    return f"training-monolingual/news.2009.{language}.shuffled"


def _newstest(language: str) -> tuple[str, ...]:
    years = ("news-test2008", "newstest2009", "newstest2010", "newstest2011", "newstest2012")
    return tuple(f"dev/{year}.{language}" for year in years)


RECIPES = {
    "newstest": Recipe(
        level="char",
        about="news in Czech, German, English, Spanish and French; start with this one",
        size="9M characters; enough for λ = 10k",
        licence="free for research; see statmt.org/wmt13",
        parts=tuple(Part(language, DEV, _newstest(language)) for language in LANGUAGES),
        shuffled=True,
    ),
    "wmt-news": Recipe(
        level="char",
        about="the paper's MultiLingual: news of 2009 in the same five languages",
        size="3.7 billion characters",
        licence="free for research; see statmt.org/wmt13",
        parts=tuple(Part(language, NEWS_2009, (_news(language),)) for language in LANGUAGES),
    ),
    "multidomain": Recipe(
        level="word",
        about="the paper's MultiDomain: English news, parliament, encyclopedia and, yours, the BNC",
        size="some 555M words with the BNC",
        licence="news, Europarl: free for research; WikiText: CC BY-SA; BNC: its own, by --bnc",
        parts=(
            Part("news", NEWS_2009, (_news("en"),)),
            Part("europarl", EUROPARL),
            Part("wiki", WIKITEXT, ("wikitext-103-raw/wiki.train.raw",)),
        ),
        bnc=True,
    ),
}


def recipe_classes(recipe: Recipe, bnc: Path | None) -> tuple[str, ...]:
    """Return the names of the classes."""
    return (*(part.class_name for part in recipe.parts), *(("bnc",) if bnc else ()))


def recipe_documents(recipe: Recipe, downloads: Path, bnc: Path | None) -> Iterator[Document]:
    """Yield the text of a recipe, once downloaded; lines that are not UTF-8 are left out."""
    documents = _documents(recipe, downloads)
    yield from _shuffled(documents) if recipe.shuffled else documents
    if bnc:
        yield Document("bnc", str(bnc), Lines(bnc_sentences(bnc)))


def _documents(recipe: Recipe, downloads: Path) -> Iterator[Document]:
    for remote in recipe.remotes:
        path = downloads / remote.name
        parts = [part for part in recipe.parts if part.remote == remote]
        owners = {file: part.class_name for part in parts for file in part.files}
        if owners:
            for name, stream in members(path, owners):
                yield Document(owners[name], f"{path}: {name}", stream, strict=False)
        else:
            with open_text(path) as stream:
                yield Document(parts[0].class_name, str(path), stream, strict=False)


def _shuffled(documents: Iterator[Document]) -> Iterator[Document]:
    """Shuffle the lines of every class; holds all of the text in memory."""
    texts: dict[str, dict[str, bytes]] = {}
    left_out: dict[str, int] = {}
    for document in documents:
        texts.setdefault(document.class_name, {})[document.origin] = b"".join(blocks(document))
        left_out[document.class_name] = left_out.get(document.class_name, 0) + document.left_out
    for name, by_origin in texts.items():
        lines = [line for _, text in sorted(by_origin.items()) for line in text.split(b"\n")[:-1]]
        draw = Draw("shuffle", name, SHUFFLE_SEED)
        order = sorted(range(len(lines)), key=[draw.uniform() for _ in lines].__getitem__)
        text = b"".join(lines[i] + b"\n" for i in order)
        yield Document(name, name, BytesIO(text), strict=False, left_out=left_out[name])
