import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from calm.config import Choice, Config, StreamConfig
from calm.folder import RunFolder
from calm.loop import Record
from calm.metrics import measure
from calm.report import compare, load_runs
from calm.report.page import write_page

EVIL = "</script><b>evil</b>&amp;%{y}"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip


def make_run(path, learner, loss, *, seed=0, corpus="news", length=2000, experts=0, **metrics):
    """A finished run that never ran: eight fragments of two classes, `loss` on average."""
    rng = np.random.default_rng(seed)
    path.mkdir(parents=True)
    folder = RunFolder(path)
    config = Config(Choice(corpus), StreamConfig(8, length), Choice(learner), seed)
    folder.create(config)
    folder.note_start("some text", 0, None)
    names = ("de", EVIL)
    with folder.journals(0) as journals:
        for step in range(length * 8 // 200):
            fragment = step * 200 // length
            gates = tuple(rng.normal(size=experts)) if experts else None
            value = loss + rng.uniform(-0.1, 0.1)
            journals.write(Record(step, fragment, names[fragment % 2], value, gates), 0.1)
    result = measure(folder.records()).to_dict()
    folder.save_metrics({**result, "oracle": False, "tokens_per_second": 1000, **metrics})
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Runs in three settings, and their page."""
    base = tmp_path_factory.mktemp("page")
    runs = base / "runs"
    floor = measure(make_run(base / "floor", "floor", 1.0).records()).to_dict()
    for seed in (0, 1):
        make_run(runs / f"good-{seed}", "good", 2, seed=seed, experts=3, floors={"floor": floor})
        make_run(runs / f"bad-{seed}", "bad", 3, seed=seed)
    for i, learner in enumerate(("c", "d", "e")):
        make_run(runs / learner, learner, 2.5 + i / 10)
    make_run(runs / "told", "told", 1.5, oracle=True)
    make_run(runs / "long", "good", 2, length=4000)
    make_run(runs / "javascript:alert(1) ?#%41", EVIL, 2, corpus="other")
    found = compare(load_runs([runs])[0])
    (base / "reports").mkdir()
    page = write_page(found, base / "reports" / "page.html")
    return SimpleNamespace(evil=EVIL, runs=runs, settings=found, page=page)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Start a browser that asks nobody for anything."""
    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in paths:
        pytest.skip("Chromium and its driver are not installed (Debian: chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(paths[1]))
    yield driver
    driver.quit()
