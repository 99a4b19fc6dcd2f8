"""From a config to the things it names: corpora, stream, learner."""

import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_type_hints

from calm.config import Choice, Config, check_keys, convert
from calm.corpus.base import Corpora
from calm.corpus.home import is_set, open_set
from calm.corpus.memory import folder_corpora
from calm.corpus.recipes import RECIPES
from calm.corpus.store import StoredCorpora, holds_set
from calm.errors import CalmError, blame
from calm.files import sha256
from calm.learners import LEARNERS, Named
from calm.learners.base import Learner
from calm.stream import Stream

DEFAULT_SIZE = "small"
GIVEN = ("vocabulary", "seed", "stream")  # what a learner's constructor gets from the harness


def build_corpora(choice: Choice) -> Corpora:
    """`synthetic`, a set that was fetched or added, or a folder with one NAME.txt per class."""
    name, options = choice.name, choice.options
    if name == "synthetic":
        from calm.corpus.synthetic import SyntheticCorpora

        return SyntheticCorpora(**_options(SyntheticCorpora, (), options, "corpus"))
    folder = Path(name)
    if is_set(name) or holds_set(folder):
        check_keys(options, [], f"corpus {name}")
        return open_set(name) if is_set(name) else StoredCorpora(folder)
    if folder.is_dir():
        return folder_corpora(folder, **_options(folder_corpora, ("folder",), options, "corpus"))
    if name in RECIPES:
        raise CalmError(f"corpus {name!r} is not here yet: calm corpus fetch {name}")
    if folder.is_file() or "/" in name:
        what = "is a file, not a folder" if folder.is_file() else "is not there"
        raise CalmError(f"corpus {name} {what}: take a folder with one NAME.txt per class")
    raise CalmError(
        f"unknown corpus {name!r}: take synthetic, a set of `calm corpus list`, "
        "or a folder with one NAME.txt per class"
    )


def placed(corpus: Choice) -> Choice:
    """Make a folder's name good from anywhere, so that a run can be resumed from anywhere."""
    folder = Path(corpus.name)
    if corpus.name == "synthetic" or is_set(corpus.name) or not folder.is_dir():
        return corpus
    return Choice(str(folder.resolve()), corpus.options)


def build_stream(config: Config, corpora: Corpora | None = None) -> Stream:
    """Build the corpora, if they are not at hand, and the stream over them."""
    if config.seed < 0:
        raise CalmError(f"seed is {config.seed}: take 0 or more")
    corpora = corpora or build_corpora(config.corpus)
    return Stream(corpora, seed=config.seed, **asdict(config.stream))


def build_learner(config: Config, stream: Stream) -> Learner:
    """Build the learner for a stream."""
    name, size, options = _taken_apart(config.learner)
    return learner(
        name, vocabulary=len(stream.vocabulary), seed=config.seed, size=size, stream=stream,
        **options,
    )  # fmt: skip


def check_learner(choice: Choice) -> None:
    """Refuse a name and options that no learner could be built from."""
    name, size, options = _taken_apart(choice)
    _arguments(name, learner_class(name), size, options)


def knows(name: str, option: str) -> bool:
    """Whether a learner has an option of this name."""
    cls = learner_class(name)
    if option == "size":
        return bool(_named(name, cls).sizes)
    return option not in GIVEN and option in inspect.signature(cls).parameters


def load(name: str, **options: Any) -> Corpora:
    """Return a corpora set: `synthetic`, one that was fetched or added, or a folder of text."""
    return build_corpora(Choice(name, options))


def learner(
    name: str,
    *,
    vocabulary: int,
    seed: int = 0,
    size: str | None = None,
    stream: Stream | None = None,
    **options: Any,
) -> Learner:
    """Return a learner by its name, or as `module:Class`; `size` stands for several options.

    An oracle also needs to be handed the stream.
    """
    cls = learner_class(name)
    where = f"learner {name}"
    arguments = _arguments(name, cls, size, options)
    arguments |= {"vocabulary": vocabulary, "seed": seed}
    if cls.oracle:
        if stream is None:
            raise CalmError(f"{where} is an oracle: it needs the stream, as stream=…")
        arguments["stream"] = stream
    with blame(where):
        try:
            return cls(**arguments)
        except ValueError as error:
            raise CalmError(f"{where}: {error}") from None


def _taken_apart(choice: Choice) -> tuple[str, str | None, dict[str, Any]]:
    """Return name, size and options, none of which may be the run's to set."""
    options = dict(choice.options)
    for key in (*GIVEN, "name"):
        if key in options:
            raise CalmError(
                f"learner {choice.name}: {key!r} is not for you to give: the run sets it"
            )
    return choice.name, options.pop("size", None), options


def _arguments(
    name: str, cls: type[Learner], size: str | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Check options and complete them by those that name and size stand for."""
    where = f"learner {name}"
    named = _named(name, cls)
    if size and not named.sizes:
        raise CalmError(f"{where} comes in one size: leave the size {size!r} away")
    if named.sizes:
        size = size or DEFAULT_SIZE
        if size not in named.sizes:
            raise CalmError(f"{where} has no size {size!r}: take one of {', '.join(named.sizes)}")
        options = {**named.sizes[size], **options}
    return _options(cls, GIVEN, {**named.options, **options}, where)


def with_size(choice: Choice) -> Choice:
    """Write the default size down where a learner comes in sizes and none is chosen."""
    if "size" in choice.options or not _named(choice.name, learner_class(choice.name)).sizes:
        return choice
    return Choice(choice.name, {"size": DEFAULT_SIZE, **choice.options})


def _named(name: str, cls: type[Learner]) -> Named:
    return LEARNERS.get(name, Named(name, sizes=cls.sizes))


def learner_class(name: str) -> type[Learner]:
    """Find the class that a learner's name stands for."""
    if not isinstance(name, str):
        raise CalmError(
            f"a learner is named by a text, such as 'lstm' or 'module:Class', not {name!r}"
        )
    return find_class("learner", name, {n: named.target for n, named in LEARNERS.items()}, Learner)


def code_hash(learner: str) -> str | None:
    """Hash the file of a learner that is not ours."""
    file = None if learner in LEARNERS else inspect.getsourcefile(learner_class(learner))
    return sha256(Path(file)) if file else None


def find_class(kind: str, name: str, known: Mapping[str, str], base: type[Any]) -> type[Any]:
    """Find the class that a known name stands for, or that `module:Class` names."""
    where = f"{kind} {name}"
    module_name, colon, class_name = known.get(name, name).partition(":")
    if not colon:
        names = ", ".join(known)
        raise CalmError(f"unknown {kind} {name!r}: take {names}, or your own as module:Class")
    here = str(Path.cwd())
    if here not in sys.path:  # so that one in the current folder is found
        sys.path.append(here)
    with blame(f"importing {module_name}"):
        try:
            found = getattr(importlib.import_module(module_name), class_name, None)
        except ModuleNotFoundError as error:
            raise CalmError(
                f"{where}: there is no module {error.name!r} here or installed; "
                "run this where its file is"
            ) from None
    if not (inspect.isclass(found) and issubclass(found, base)):
        wanted = f"{class_name} is not a subclass of calm.{base.__name__}"
        what = wanted if found else f"no {class_name}"
        raise CalmError(f"{where}: in module {module_name}, {what}")
    if missing := ", ".join(sorted(getattr(found, "__abstractmethods__", ()))):
        raise CalmError(f"{where}: {class_name} does not define {missing}")
    return found


def _options(
    target: Any, given: Sequence[str], options: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Check options against the signature they are meant for, but for what it is given anyway."""
    hints = get_type_hints(getattr(target, "__init__") if isinstance(target, type) else target)  # noqa: B009
    parameters = inspect.signature(target).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return dict(options)
    known = [p.name for p in parameters if p.name not in given]
    check_keys(options, known, where)
    return {
        key: convert(hints.get(key, Any), value, f"{where}: {key}")
        for key, value in options.items()
    }
