"""What the README shows is run as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LEARNER, LOOP = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bigram.py").write_text(LEARNER, encoding="utf-8")
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    return tmp_path


def process(folder, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def python(folder, *arguments):
    return process(folder, *arguments).stdout


def test_the_learner_is_as_short_as_promised():
    assert len([line for line in LEARNER.splitlines() if line.strip()]) <= 30


def test_the_learner_passes_the_audit_and_gets_its_row(folder):
    assert "bigram:Bigram keeps to the protocol" in python(
        folder, "-m", "calm", "check", "bigram:Bigram"
    )
    stream = ("--stream.fragments", "10", "--stream.mean-length", "1500")
    command = ("-m", "calm", "run", "--learner", "bigram:Bigram", "--learner.keep", "0.99", *stream)
    assert re.search(r"bigram:Bigram keep=0.99 +\d+\.\d\d", python(folder, *command))


def test_the_loop_of_your_own_prints_its_numbers(folder):
    ppl, at_switch, recovery = map(float, python(folder, "loop.py").split())
    assert 3 < ppl < 25
    assert 3 < at_switch < 25
    assert recovery >= 0


def test_the_observer_of_the_docs_observes(folder):
    text = (ROOT / "docs" / "observing.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (folder / "alarm.py").write_text(code, encoding="utf-8")
    command = ("-m", "calm", "run", "demo", "--learner", "unigram", "--observe", "alarm:Alarm")
    said = process(folder, *command).stderr
    assert re.search(r"^batch 0, \w+: \d\.\d\d$", said, re.MULTILINE)
    assert re.search(r"^ppl \d\d\.\d\d$", said, re.MULTILINE)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_every_page_can_be_reached_and_leads_somewhere(page):
    assert f"](docs/{page.name})" in README
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists()
