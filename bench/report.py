"""Seconds and peak memory of `calm report` over 500 runs, and how soon its page is there.

    python bench/report.py                            # 500 runs of 5,000 batches
    python bench/report.py --batches 50000 --html     # and the page, opened in headless Chromium

Ten learners, four of them gated, on five streams, with ten seeds. The losses are made up.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from calm.config import Choice, Config, StreamConfig
from calm.files import replace_json
from calm.folder import RunFolder
from calm.journals import GATE_DIGITS
from calm.metrics import measure

LEARNERS = {  # with the number of experts under a gate
    "lstm": 0, "transformer": 0, "mos": 0, "ensemble-5": 0, "ensemble-30": 0, "counts": 0,
    "moe-5": 5, "poe-5": 5, "poe-30": 30, "poe-pw-30": 30,
}  # fmt: skip
CLASSES = ("de", "en", "fr", "es", "cs")
FRAGMENTS = 100


def make_run(path, learner, experts, batches, fragments, seed):
    """A finished run whose losses jump at every switch and fall from there."""
    rng = np.random.default_rng(seed)
    path.mkdir(parents=True)
    folder = RunFolder(path)
    stream = StreamConfig(fragments, batches * 200 / fragments)
    folder.create(Config(Choice("made-up"), stream, Choice(learner), seed))
    edges = np.sort(rng.choice(np.arange(1, batches), fragments - 1, replace=False))
    fragment = np.searchsorted(edges, np.arange(batches), side="right")
    since = np.arange(batches) - np.array([0, *edges])[fragment]
    loss = 1.5 + np.exp(-since / 8) + rng.gamma(20, 0.01, batches)
    weights = rng.normal(size=(5, experts))
    with (path / "records.jsonl").open("w") as file:
        for step, (number, value) in enumerate(zip(fragment.tolist(), loss.tolist(), strict=True)):
            line = {"step": step, "fragment": number, "class": CLASSES[number % 5], "loss": value}
            if experts:
                gates = weights[number % 5] + rng.normal(scale=0.1, size=experts)
                line["gates"] = [float(f"{weight:.{GATE_DIGITS}g}") for weight in gates]
            file.write(json.dumps(line) + "\n")
    (path / "timings.jsonl").touch()
    start = {"step": 0, "python": "3", "platform": "made up", "cores": 2}
    replace_json(path / "environment.json", {"corpora": "made up", "config": "", "starts": [start]})
    speed = {"seconds": 1.0, "tokens_per_second": 1000}
    folder.save_metrics({**measure(folder.records()).to_dict(), "oracle": False, **speed})


def make_runs(base, batches, runs):
    for i in range(runs):
        setting, learner, seed = i // 100, list(LEARNERS)[i // 10 % 10], i % 10
        fragments = FRAGMENTS - 10 * setting
        path = base / f"{learner}-{fragments}-{seed}"
        make_run(path, learner, LEARNERS[learner], batches, fragments, seed)


def open_page(path):
    """From navigation to the leaderboard and the first curve, in a browser just started."""
    options = webdriver.ChromeOptions()
    for flag in ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-sync"):
        options.add_argument(f"--{flag}")
    options.binary_location = shutil.which("chromium")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    print(f"page: {path.stat().st_size / 1e6:.1f} MB")
    script = "return performance.getEntriesByName('drawn').map((mark) => mark.startTime)[0]"
    for what in ("at first", "again"):
        driver.get(path.as_uri())
        seconds = WebDriverWait(driver, 120).until(lambda d: d.execute_script(script)) / 1000
        print(f"page {what}: leaderboard and curves after {seconds:.2f} s")
    driver.quit()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--html", action="store_true")
    parser.add_argument("--folder", type=Path, help="keep the runs here, or take those there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        base = arguments.folder or Path(temporary) / "runs"
        if not base.exists():
            make_runs(base, arguments.batches, arguments.runs)
        out = Path(temporary) / "out"
        command = [sys.executable, "-m", "calm", "report", str(base), "--out", str(out)]
        begin = time.perf_counter()
        subprocess.run(command + ["--html"] * arguments.html, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"calm report: {seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of a core, "
            f"peak {used.ru_maxrss / 1024:.0f} MB"
        )
        if arguments.html:
            open_page(out / "page.html")


if __name__ == "__main__":
    main()
