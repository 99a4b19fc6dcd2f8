"""Tokens a second on one core: batches of a stream, and the text of a synthetic language."""

import time

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
    for mean_length in (4_000, 10_000, 100_000):
        stream = Stream(corpora, 2_000_000 // mean_length // 5 * 5, mean_length)
        tokens = len(stream) * 200
        print(
            f"  stream from memory, λ = {mean_length:>7,}: {best(lambda s=stream: streamed(s), tokens):8.1f}"
        )
    print(f"  the same, token by token           {best(lambda: slow_stream(stream), tokens):8.1f}")
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
