"""Text sampled from a run's checkpoint, one token at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from calm.build import build_learner, build_stream
from calm.errors import CalmError, blame
from calm.folder import RunFolder
from calm.learners.base import InformedLearner, Learner, Tokens
from calm.loop import to_numpy
from calm.randomness import Draw
from calm.stream import Stream

PRIMING = 10  # batches of a class that are learned before generating it, as after a switch
MOST = 100_000  # batches; what they hold has to fit into memory


def generate(path: Path, length: int, class_name: str | None = None, seed: int = 0) -> str:
    """Sample `length` tokens from the state at a run's checkpoint.

    With a class, the learner first goes through a few batches of it, from the half of the text
    that the run does not read, learning as it would after a switch.
    """
    after = [0 if class_name is None else PRIMING]
    ((_, text),) = generate_after(path, length, class_name, after, seed)
    return text


def generate_after(
    path: Path, length: int, class_name: str | None, after: Sequence[int], seed: int = 0
) -> list[tuple[str, str]]:
    """Sample a text after each of so many batches of a class; with each comes what it is.

    After 0 batches is where the run's checkpoint stands, in whatever class that is.
    """
    if length < 1:
        raise CalmError(f"length is {length}: take 1 or more")
    for count in after:
        if not 0 <= count <= MOST:
            raise CalmError(f"after is {count}: take 0 to {MOST:,} batches")
    if class_name is None and any(after):
        raise CalmError("there is no class to learn before the text: name one, as --class NAME")
    stream, learner, step = _restore(path)
    with blame("the learner"):
        return list(texts(stream, learner, step, length, class_name, after, seed))


def texts(
    stream: Stream,
    learner: Learner,
    step: int,
    length: int,
    class_name: str | None,
    after: Sequence[int],
    seed: int,
) -> Iterator[tuple[str, str]]:
    """Yield what the learner of a run's first `step` batches writes as it learns more of a class.

    Sampling leaves no trace: the state is put back before the learner goes on.
    """
    here = next(stream.batches(step - 1))
    current, last = here.class_index, here.targets[-1]
    wanted = current if class_name is None else _class_index(stream, class_name)
    batches = _batches(stream, wanted, last, max(after))
    for learned in range(max(after) + 1):
        if learned in after:
            state = {name: np.array(array) for name, array in learner.state().items()}
            _tell(learner, current)
            drawn = zip(range(length), sample(learner, last, seed), strict=False)
            text = stream.corpora.text(np.array([row[0] for _, row in drawn]))
            where = f"after {learned} batches" if learned else "where the run stands"
            yield f"{stream.classes[current]}, {where}", text
            learner.load_state(state)
        if learned < max(after):
            inputs, targets = next(batches)
            current, last = wanted, targets[-1]
            _tell(learner, current)
            learner.predict(inputs)
            learner.learn(inputs, targets)


def sample(learner: Learner, last: Tokens, seed: int) -> Iterator[Tokens]:
    """Yield a token for every row (b,), each drawn given all before; `last` (b,) came before."""
    draw = Draw("generate", seed)
    while True:
        inputs = np.ascontiguousarray(last)[None]
        probabilities = np.exp(to_numpy(learner.predict(inputs))[0])  # (b, V)
        learner.read(inputs)
        cumulative = np.cumsum(probabilities, axis=1)
        points = np.array([draw.uniform() for _ in last]) * cumulative[:, -1]
        last = (cumulative <= points[:, None]).sum(axis=1)
        yield last


def _restore(path: Path) -> tuple[Stream, Learner, int]:
    """Return a run's stream and learner, and how many batches it has learned."""
    folder = RunFolder.open(path)
    folder.check_origin()
    config = folder.config()
    stream = build_stream(config)
    folder.check_origin(stream.corpora.fingerprint())
    learner = build_learner(config, stream)
    step = folder.restore(learner)
    if step == 0:
        how = "run it again in a new folder" if folder.finished else f"`calm resume {path}`"
        raise CalmError(f"{path} has no checkpoint to sample from: {how}")
    return stream, learner, step


def _class_index(stream: Stream, name: str) -> int:
    if name not in stream.classes:
        raise CalmError(f"there is no class {name!r}: take one of {', '.join(stream.classes)}")
    return stream.classes.index(name)


def _tell(learner: Learner, class_index: int) -> None:
    if isinstance(learner, InformedLearner):
        learner.tell(class_index)


def _batches(
    stream: Stream, class_index: int, last: Tokens, count: int
) -> Iterator[tuple[Tokens, Tokens]]:
    """Yield inputs and targets of `count` batches of a class; `last` (b,) came before them."""
    text = stream.other_text(class_index, count * stream.window)
    tokens: Tokens = np.concatenate([last[None], text])
    for start in range(0, len(text), stream.window):
        stop = start + stream.window
        yield tokens[start:stop], tokens[start + 1 : stop + 1]
