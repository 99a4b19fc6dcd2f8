"""Text sampled from a run's checkpoint, one token at a time."""

from collections.abc import Iterator
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


def generate(path: Path, length: int, class_name: str | None = None, seed: int = 0) -> str:
    """Sample `length` tokens from the state at a run's checkpoint.

    With a class, the learner first goes through a few batches of it, from the half of the text
    that the run does not read, learning as it would after a switch.
    """
    if length < 1:
        raise CalmError(f"length is {length}: take 1 or more")
    folder = RunFolder.open(path)
    folder.check_origin()
    config = folder.config()
    stream = build_stream(config)
    folder.check_origin(stream.corpora.fingerprint())
    learner = build_learner(config, stream)
    step = folder.restore(learner)
    if step == 0:
        raise CalmError(f"{path} has no checkpoint yet: go on with `calm resume {path}`")
    with blame("the learner"):
        return _generate(stream, learner, step, length, class_name, seed)


def _generate(
    stream: Stream, learner: Learner, step: int, length: int, class_name: str | None, seed: int
) -> str:
    batch = next(stream.batches(step - 1))
    last, class_index = batch.targets[-1], batch.class_index
    if class_name is not None:
        class_index = _class_index(stream, class_name)
        last = _prime(stream, learner, class_index, last)
    if isinstance(learner, InformedLearner):
        learner.tell(class_index)
    tokens = [row[0] for _, row in zip(range(length), sample(learner, last, seed), strict=False)]
    return stream.corpora.text(np.array(tokens))


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


def _class_index(stream: Stream, name: str) -> int:
    if name not in stream.classes:
        raise CalmError(f"there is no class {name!r}: take one of {', '.join(stream.classes)}")
    return stream.classes.index(name)


def _prime(stream: Stream, learner: Learner, class_index: int, last: Tokens) -> Tokens:
    """Learn a few batches of a class; `last` (b,) and the result are the tokens just before."""
    if isinstance(learner, InformedLearner):
        learner.tell(class_index)
    tokens: Tokens = np.concatenate(
        [last[None], stream.other_text(class_index, PRIMING * stream.window)]
    )
    for start in range(0, len(tokens) - 1, stream.window):
        inputs = tokens[start : start + stream.window]
        targets = tokens[start + 1 : start + stream.window + 1]
        learner.predict(inputs)
        learner.learn(inputs, targets)
        last = targets[-1]
    return last
