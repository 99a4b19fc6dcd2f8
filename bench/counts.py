"""Count-based experts beside compressors, over the same stream; each ingredient by itself.

    python bench/counts.py yardstick CORPUS [SEEDS]   # PPMd, xz, bz2; on the test half
    python bench/counts.py ablation CORPUS [SEEDS]    # a row an ingredient; on the dev half
    python bench/counts.py tables CORPUS [SEEDS]      # do the tables match the classes?

CORPUS is a name or a folder, as for `calm run --corpus`. N = 100, λ = 10,000; at word level N = 80,
λ = 5,000. Compressors get a byte a symbol, or two where there are more than 256; a row after the
other, first those of the first half of the fragments. What the second half costs them is the size
of the whole less that of the first half.
"""

import bz2
import lzma
import sys
import time
from collections import Counter

import numpy as np
import pyppmd

import calm
from calm.loop import prequential, to_records
from calm.metrics import measure

COMPRESSORS = {
    "PPMd, order 8": lambda data: pyppmd.compress(data, max_order=8, mem_size=1 << 30),
    "xz -9e": lambda data: lzma.compress(data, preset=9 | lzma.PRESET_EXTREME),
    "bz2 -9": lambda data: bz2.compress(data, 9),
}
WITHOUT = {
    "everything": {},
    "no word contexts": {"words": False},
    "no class tables": {"tables": 0},
    "neither": {"words": False, "tables": 0},
    "no evidence within a window": {"trust": 0.0},
    "weights alike in all circumstances": {"fine_rate": 0.0},
    "weights as they begin": {"rate": 0.0, "fine_rate": 0.0},
    "weights alike, no words, no tables": {"words": False, "tables": 0, "fine_rate": 0.0},
    "orders up to 6": {"order": 6},
    "orders up to 4": {"order": 4},
}


def make_stream(corpus, seed, split):
    corpora = calm.load(corpus)
    sizes = (80, 5_000) if len(corpora.vocabulary) > 4096 else (100, 10_000)
    return calm.Stream(corpora, *sizes, seed=seed, split=split)


def encoded(stream):
    """The bytes of the first half of the fragments, those of the second, and its tokens."""
    kind = np.uint8 if len(stream.vocabulary) <= 256 else np.uint16
    half = int(stream.plan.first_batch[stream.fragments // 2])
    targets = [batch.targets.T for batch in stream]
    first, second = (np.concatenate(part, axis=1) for part in (targets[:half], targets[half:]))
    return first.astype(kind).tobytes(), second.astype(kind).tobytes(), second.size


def run(name, stream, options):
    """Result, tokens a second of processor time, and the tables that were believed in."""
    learner = calm.learner(name, vocabulary=len(stream.vocabulary), stream=stream, **options)
    records, tables = [], []
    begin = time.process_time()
    for record in prequential(stream, learner):
        if records:
            tables.append(getattr(learner, "table", 0))
        records.append(record)
    seconds = time.process_time() - begin
    tables.append(getattr(learner, "table", 0))
    speed = len(records) * stream.rows * stream.window / seconds
    return measure(to_records(records, stream.fragments)), speed, records, tables


def line(name, result, speed, beside=None):
    ratio = f"  {result.ppl / beside:6.3f} of PPMd" if beside else ""
    print(
        f"  {name:<36} ppl {result.ppl:8.3f}  ppl@sw {result.ppl_at_switch:8.3f}  "
        f"rec {result.recovery:5.2f}  {speed:9,.0f} tokens/s{ratio}",
        flush=True,
    )


def yardstick(corpus, seeds):
    for seed in range(seeds):
        stream = make_stream(corpus, seed, "test")
        first, second, tokens = encoded(stream)
        print(f"{stream}, seed {seed}")
        found = {}
        for name, compress in COMPRESSORS.items():
            begin = time.process_time()
            nats = 8 * np.log(2) * (len(compress(first + second)) - len(compress(first)))
            speed = tokens * 3 / (time.process_time() - begin)  # the first half goes in twice
            found[name] = float(np.exp(nats / tokens))
            print(f"  {name:<36} ppl {found[name]:8.3f} {speed:46,.0f} tokens/s")
        for name in ("counts", "counts-lstm"):
            result, speed, _, _ = run(name, stream, {})
            line(name, result, speed, found["PPMd, order 8"])


def ablation(corpus, seeds):
    for seed in range(seeds):
        stream = make_stream(corpus, seed, "dev")
        print(f"{stream}, seed {seed}")
        for name, options in WITHOUT.items():
            line(name, *run("counts", stream, options)[:2])


def tables(corpus, seeds):
    """Of the second half: batches in their class's main table, and batches until it is found."""
    for seed in range(seeds):
        stream = make_stream(corpus, seed, "test")
        _, _, records, found = run("counts", stream, {})
        counted = [i for i, r in enumerate(records) if 2 * r.fragment >= stream.fragments]
        both = Counter((records[i].class_name, found[i]) for i in counted)
        home = {c: max((n, t) for (d, t), n in both.items() if d == c)[1] for c in stream.classes}
        right = [found[i] == home[records[i].class_name] for i in range(len(records))]
        delays, waiting = [], None
        for i in counted:
            if records[i].fragment != records[i - 1].fragment:
                waiting = 0
                delays.append(0)
            if waiting is not None and not right[i]:
                delays[-1] += 1
            elif right[i]:
                waiting = None
        print(
            f"{stream}, seed {seed}: {np.mean([right[i] for i in counted]):.2%} of the batches in "
            f"their class's table, {len(set(home.values()))} tables for {len(home)} classes, "
            f"{np.mean(delays):.2f} batches until it is found again",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    mode, corpus, *rest = sys.argv[1:]
    {"yardstick": yardstick, "ablation": ablation, "tables": tables}[mode](
        corpus, int(rest[0]) if rest else 1
    )
