"""What Ray costs: the same sweep by both engines, taking turns, with equal workers.

python bench/sweep.py [SECONDS A RUN, 60] [WORKERS, 2] [TURNS, 2]

Runs are of an LSTM that keeps one core busy, two for each worker; the cluster is there before.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import tomli_w

from calm.config import Choice, Config, StreamConfig
from calm.sweep.estimate import try_out

os.environ["OMP_NUM_THREADS"] = "1"
LEARNER = {"name": "lstm", "hidden": 200, "embedding": 100}
RUNS = 2  # of each worker


def timed(sweep: Path, out: Path, *arguments: str) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-m", "calm", "sweep", str(sweep), "--out", str(out), *arguments]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


def main(seconds: int = 60, workers: int = 2, turns: int = 2) -> None:
    from ray.cluster_utils import Cluster

    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("ab", "cd"):
            (folder / f"{name}.txt").write_text(f"{name} and {name[::-1]} \n" * 30_000)
        options = {key: value for key, value in LEARNER.items() if key != "name"}
        config = Config(
            Choice(scratch), StreamConfig(10, 1000), Choice("lstm", {"size": "small", **options})
        )
        trial = try_out(config)
        assert not isinstance(trial, str), trial
        length = seconds / trial.pace / 10 / 1.1 * 200  # of 10 fragments, in tokens
        sweep = folder / "sweep.toml"
        streams = [{"fragments": 10, "mean_length": length}]
        sweep.write_text(
            tomli_w.dumps({
                "corpora": [scratch], "learners": [LEARNER], "streams": streams,
                "seeds": RUNS * workers,
            })
        )  # fmt: skip
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": workers, "include_dashboard": False}
        )
        print(f"{RUNS * workers} runs of some {seconds:g} s each, {workers} workers")
        totals = {"local": 0.0, "ray": 0.0}
        for turn in range(turns):
            for engine in ("local", "ray"):
                address = ("--address", cluster.address) if engine == "ray" else ()
                took = timed(
                    sweep,
                    folder / f"{engine}{turn}",
                    "--workers",
                    str(workers),
                    "--engine",
                    engine,
                    *address,
                )
                totals[engine] += took
                print(f"turn {turn}: {engine:5} {took:7.1f} s")
        cluster.shutdown()
        print(f"ray / local: {totals['ray'] / totals['local']:.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
