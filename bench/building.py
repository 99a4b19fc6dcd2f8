"""Building a corpora set from 1 GB of text, beside a plain loop over tokens; speed and peak memory.

The text is that of synthetic languages with 50,000 words each, written to a temporary folder.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from calm.config import Cleaning
from calm.corpus.builder import build_set
from calm.corpus.sources import folder_sources, source_documents
from calm.corpus.store import StoredCorpora
from calm.corpus.synthetic import SyntheticCorpora

STEP = 1 << 24  # characters written at once
PLAIN = 20_000_000  # bytes that the plain loop has to do


def write_text(folder, megabytes):
    corpora = SyntheticCorpora(lexicon=50_000)
    symbols = np.array([ord(x) for x in corpora.vocabulary], dtype="<u4")
    for c, name in enumerate(corpora.classes):
        with (folder / f"{name}.txt").open("wb") as file:
            position = 0
            while file.tell() < megabytes * 1e6 / len(corpora.classes):
                tokens = corpora.tokens(c, position, position + STEP)
                text = symbols[tokens].tobytes().decode("utf-32-le")
                file.write(text.replace(". ", ".\n").encode())
                position += STEP


def plain(path, level):
    """What a user would write: count, then keep and look up, token by token; bytes a second."""
    with path.open("rb") as file:
        data = file.read(PLAIN)
        data = data[: data.rfind(b"\n") + 1]
    begin = time.perf_counter()
    counts, tokens = Counter(), 0
    lines = data.decode().splitlines(keepends=True)
    for line in lines:
        for token in line if level == "char" else line.split():
            counts[token] += 1
            tokens += 1
    if level == "char":
        kept = {token for token, n in counts.items() if n >= 100}
    else:
        kept = {token for token, _ in counts.most_common(25_000)}
    index = {token: i for i, token in enumerate(sorted(kept), 1)}
    encoded = []
    for line in lines:
        if level == "char":
            if all(token in kept for token in line):
                encoded += [index[token] for token in line]
        else:
            encoded += [index.get(token, 0) for token in line.split()]
    np.array(encoded)
    seconds = time.perf_counter() - begin
    return len(data) / seconds, tokens / seconds


def measure(folder, level):
    """Build in this process; print what it took."""
    sources, _ = folder_sources(folder)
    size = sum(path.stat().st_size for path in sources.values())
    with tempfile.TemporaryDirectory() as target:
        begin = time.perf_counter()
        documents = source_documents(sources, level, 1)
        path = build_set(
            Path(target) / "set", tuple(sources), documents, level, Cleaning(), lambda *_: None
        )
        seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        corpora = StoredCorpora(path)
        opening = time.perf_counter() - begin
        tokens = sum(corpora.bounds(c)[1] for c in range(len(corpora.classes)))
    loop_bytes, loop_tokens = plain(next(iter(sources.values())), level)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"  {level}: {size / 1e6:,.0f} MB in {seconds:.1f} s: {size / seconds / 1e6:.0f} MB/s, "
        f"{tokens / seconds / 1e6:.1f}M tokens/s; plain loop {loop_bytes / 1e6:.1f} MB/s, "
        f"{loop_tokens / 1e6:.2f}M tokens/s: {size / seconds / loop_bytes:.0f} times as fast; "
        f"opened in {opening * 1e3:.1f} ms; {len(corpora.vocabulary):,} symbols"
    )
    return peak


def peak_of_building(folder, level):
    """Peak memory of a process that only builds."""
    program = (
        "import sys, tempfile; from pathlib import Path; from calm.config import Cleaning\n"
        "from calm.corpus.builder import build_set\n"
        "from calm.corpus.sources import folder_sources, source_documents\n"
        f"sources, _ = folder_sources(Path({str(folder)!r}))\n"
        "with tempfile.TemporaryDirectory() as target:\n"
        f"    build_set(Path(target) / 'set', tuple(sources), source_documents(sources, {level!r}, 1),"
        f" {level!r}, Cleaning(), lambda *_: None)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = folder / "small"
        small.mkdir()
        write_text(small, megabytes / 10)
        for level in ("char", "word"):  # compiles, and shows what a tenth of the text takes
            print(f"  {level}, a tenth of the text: peak {peak_of_building(small, level):.0f} MB")
        large = folder / "large"
        large.mkdir()
        write_text(large, megabytes)
        for level in ("char", "word"):
            print(
                f"  {level}, all of the text: peak so far {peak_of_building(large, level):.0f} MB"
            )
        for level in ("char", "word"):
            measure(large, level)


if __name__ == "__main__":
    main()
