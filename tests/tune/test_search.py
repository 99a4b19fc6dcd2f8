import json
import time
from pathlib import Path

import pytest

from calm.config import Choice, StreamConfig, read_config
from calm.errors import CalmError, RunFailedError
from calm.folder import RunFolder
from calm.metrics import measure, summarise
from calm.run import start_or_resume
from calm.sweep.state import State
from calm.tune.search import Tuner, search
from calm.tune.space import grid, read_space
from helpers import calm, spawn

SPACE = """
corpus = { name = "texts" }
stream = { fragments = 8, mean_length = 800, rows = 4 }
seed = 7

[space.unigram]
prior = [1000, 0.5, 2.0]

[space."user_learners:Fine"]
rate = { low = 1e-2, high = 1e6, log = true }
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Be in a folder with text and a space."""
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    for name in "ab":
        Path("texts", f"{name}.txt").write_text((name + "xyz \n") * 2000)
    Path("space.toml").write_text(SPACE)
    return tmp_path


def make(learner, out="out", metric="ppl", seeds=2, options=None):
    """A tuner that runs one after the other in this process, and the names of what it ran."""
    ran = []

    def carry_out(runs):
        for run in runs:
            if not RunFolder(Path(out, run.name)).exists():
                ran.append(run.name)
            start_or_resume(run.config, Path(out, run.name), 10)
        return {run.name: State("finished") for run in runs}

    experiment, space = read_space(Path("space.toml"), learner, options or {})
    tuner = Tuner(experiment, learner, options or {}, metric, seeds, Path(out), carry_out)
    return tuner, space, ran


@pytest.mark.parametrize("metric", ["ppl", "ppl_at_switch", "recovery"])
def test_the_best_has_the_lowest_mean_on_the_dev_half(here, metric):
    tuner, space, _ = make("unigram", metric=metric)
    trials = tuner.try_all(grid(space))
    found = {}
    for config in Path("out").glob("*/config.toml"):
        run = RunFolder(config.parent)
        assert run.config().stream == StreamConfig(8, 800.0, rows=4, split="dev")
        found.setdefault(run.config().learner.options["prior"], []).append(measure(run.records()))
    assert found.keys() == {1000, 0.5, 2.0}
    for trial in trials:
        values = [getattr(result, metric) for result in found[trial.point["prior"]]]
        assert trial.scores[metric] == summarise(values)
        assert trial.scores[metric].seeds == 2
    means = {p: sum(getattr(r, metric) for r in results) / 2 for p, results in found.items()}
    first = min((1000, 0.5, 2.0), key=means.__getitem__)
    config = read_config(tuner.write(trials))
    assert config.learner == Choice("unigram", {"prior": first})
    assert (config.seed, config.stream) == (7, StreamConfig(8, 800.0, rows=4, split="test"))


def test_optuna_goes_on_where_it_was_whatever_stopped_it(here):
    learner = "user_learners:Fine"
    tuner, space, ran = make(learner, seeds=1)
    whole = search(tuner, space, 10, seed=3)
    rates = [trial.point["rate"] for trial in whole]
    assert len(ran) == len(set(rates)) == 10
    assert all(1e-2 <= rate <= 1e6 for rate in rates)
    again, _, ran_again = make(learner, seeds=1)
    assert search(again, space, 10, seed=3) == whole
    assert ran_again == []
    for name in ran[5:]:
        for file in sorted(Path("out", name).rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        Path("out", name).rmdir()
    assert search(again, space, 10, seed=3) == whole
    assert sorted(ran_again) == sorted(ran[5:])
    assert search(again, space, 6, seed=3) == whole[:6]
    other, _, _ = make(learner, out="other", seeds=1)
    assert [trial.point["rate"] for trial in search(other, space, 4, seed=4)] != rates[:4]


def test_optuna_learns_from_trials(here):
    """What it proposes in the end is better than what it begins with."""
    tuner, space, _ = make("user_learners:Fine", seeds=1)
    trials = search(tuner, space, 24, seed=0)
    ppls = [trial.scores["ppl"].mean for trial in trials]
    assert sum(ppls[12:]) < sum(ppls[:12])


def test_a_metric_that_is_not_defined_is_said(here):
    Path("space.toml").write_text(SPACE.replace("fragments = 8", "fragments = 2"))
    tuner, space, _ = make("unigram", metric="recovery")
    with pytest.raises(CalmError, match="recovery is not defined on these streams"):
        tuner.try_all(grid(space))


def test_if_all_fail_the_reason_is_said(here):
    tuner, space, _ = make("unigram")
    failing = Tuner(
        tuner.experiment, "unigram", {}, "ppl", 1, Path("out"),
        lambda runs: {run.name: State("failed", "no luck") for run in runs},
    )  # fmt: skip
    with pytest.raises(RunFailedError, match="all 3 trials failed, the first: no luck"):
        failing.write(failing.try_all(grid(space)))
    assert not Path("out", "best.toml").exists()


def starts(out):
    """How often each finished run was started."""
    return {
        path.parent.name: len(json.loads((path.parent / "environment.json").read_text())["starts"])
        for path in Path(out).glob("*/metrics.json")
    }


def test_a_search_that_is_killed_goes_on(here, monkeypatch, capsys):
    Path("space.toml").write_text(
        SPACE + '\n[space."user_learners:Slow"]\nprior = [0.1, 0.5, -1.0, 2.0]\n'
    )
    command = ("tune", "space.toml", "--learner", "user_learners:Slow", "--workers", 1)
    out = Path("tune", "space-user_learners.Slow")
    process = spawn(*command)
    while not (done := starts(out)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.kill()
    process.communicate()
    process = spawn(*command)
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    after = starts(out)
    assert len(after) == 3
    assert all(after[name] == times == 1 for name, times in done.items())
    assert "failed: {'prior': -1.0}: " in printed
    assert printed.count("  best ") == 1
    best = RunFolder(start_or_resume(read_config(out / "best.toml"), Path("test"), 10).path)
    assert best.config().stream.split == "test"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--learner", "unigram", "--trials", 3), "leave --trials away, or add --by optuna"),
        (("--learner", "unigram", "--seeds", 0), "seeds is 0: take 1 or more"),
        (("--learner", "user_learners:Fine"), "rate is a range, of which a grid cannot try all"),
        (("--learner", "lstm"), "no table [space.lstm]"),
        (("--learner", "unigram", "--learner.prior", 3), "leaves nothing to try"),
        ((), "--learner"),
    ],
)
def test_wrong_wishes_are_said(here, monkeypatch, capsys, arguments, words):
    code, _, errors = calm(monkeypatch, capsys, "tune", "space.toml", *arguments)
    assert code == 2
    assert words in errors
    assert errors.count("\n") == 1
    assert not Path("tune").exists()
