"""Peak memory of a run over a stream of 1M tokens and over one of 20M."""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path


def peak(fragments):
    """Megabytes at the peak of `calm run --learner unigram`, and how many tokens it saw."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "calm", "run", "--learner", "unigram"]
        command += ["--stream.fragments", str(fragments), "--out", str(Path(folder) / "run")]
        subprocess.run(command, check=True, capture_output=True)
        batches = (Path(folder) / "run" / "records.jsonl").read_bytes().count(b"\n")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, batches * 200


def main():
    for fragments in (90, 1800):  # the second is the larger, so the children's peak is its own
        megabytes, tokens = peak(fragments)
        print(f"{tokens:>12,} tokens: peak {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
