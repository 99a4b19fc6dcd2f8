"""Tokens a second on one core: batches of a stream, and the text of a synthetic language."""

import tempfile
import time
from io import BytesIO
from pathlib import Path

from calm.config import Cleaning
from calm.corpus.builder import build_set
from calm.corpus.documents import Document
from calm.corpus.store import StoredCorpora
from calm.corpus.synthetic import SyntheticCorpora
from calm.corpus.synthetic.generate import BLOCK
from calm.stream import Stream
from corpora import random_corpora


def best(work, tokens):
    """Fastest of five, in millions of tokens a second."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return tokens / min(times) / 1e6


def streamed(stream):
    for _ in stream.batches():
        pass


def stored(corpora, path):
    """The same tokens as a set on disk, memory-mapped."""
    letters = [chr(0x100 + i) for i in range(len(corpora.vocabulary))]
    texts = (
        "".join(letters[t] for t in corpora.tokens(c, *corpora.bounds(c)).tolist())
        for c in range(len(corpora.classes))
    )
    documents = (
        Document(name, name, BytesIO(text.encode()))
        for name, text in zip(corpora.classes, texts, strict=True)
    )
    build_set(path, corpora.classes, documents, "char", Cleaning(), lambda *_: None)
    return StoredCorpora(path)


def slow_stream(stream):
    """Read batch by batch and token by token: what the chunks are measured against."""
    for fragment in range(stream.fragments):
        c = int(stream.plan.classes[fragment])
        for batch in range(int(stream.plan.lengths[fragment])):
            first = int(stream.plan.position[fragment]) + batch * stream.window
            for origin in stream._rows_of[c].origins:
                [
                    int(t)
                    for t in stream.corpora.tokens(
                        c, origin + first, origin + first + stream.window
                    )
                ]


def main():
    corpora = random_corpora(211, 2_500_000)
    print("millions of tokens a second on one core, best of 5")
    with tempfile.TemporaryDirectory() as folder:
        for name, source in (("memory", corpora), ("disk", stored(corpora, Path(folder) / "set"))):
            for mean_length in (4_000, 10_000, 100_000):
                stream = Stream(source, 2_000_000 // mean_length // 5 * 5, mean_length)
                speed = best(lambda s=stream: streamed(s), len(stream) * 200)
                print(f"  stream from {name:>6}, λ = {mean_length:>7,}: {speed:8.1f}")
    stream = Stream(corpora, 20, 100_000)
    print(
        f"  the same from memory, token by token {best(lambda: slow_stream(stream), len(stream) * 200):8.1f}"
    )
    synthetic = SyntheticCorpora()
    synthetic.tokens(0, 0, 10)
    state = {"block": 1}

    def generate():
        for _ in range(40):
            synthetic.tokens(0, state["block"] * BLOCK, (state["block"] + 1) * BLOCK)
            state["block"] += 1

    print(f"  text of a synthetic language       {best(generate, 40 * BLOCK):8.1f}")


if __name__ == "__main__":
    main()
