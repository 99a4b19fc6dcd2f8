import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from calm.sweep.plan import read_sweep
from helpers import calm, small_files, spawn
from sweep.folders import ENDLESS, done, finished, records, starts, wait_for, workers, write_sweep


@pytest.fixture
def write(tmp_path):
    """Write a sweep file; return it and the folder of its runs."""
    return lambda **keys: (write_sweep(tmp_path, **keys), tmp_path / "out")


def test_kills_of_drivers_and_workers_leave_no_trace(write, tmp_path):
    sweep, out = write(learners=["unigram", "user_learners:Slow"], seeds=12)
    options = ("--workers", 4, "--checkpoint-seconds", 0.05)
    code, _, errors = done(sweep, *options, "--out", tmp_path / "whole")
    assert code == 0, errors
    chance = random.Random(2)
    over = {}
    for target in (13, 16, 19):
        driver = spawn("sweep", sweep, *options)
        wait_for(lambda target=target: len(finished(out)) >= target)
        with suppress(ProcessLookupError):  # it may just have ended
            os.kill(int(chance.choice(workers(driver.pid) or [driver.pid])), signal.SIGKILL)
        time.sleep(chance.uniform(0, 0.3))
        driver.kill()
        driver.communicate()
        for folder in finished(out):
            over.setdefault(folder, starts(folder))
    code, printed, errors = done(sweep, *options)
    assert code == 0, errors
    assert records(out) == records(tmp_path / "whole")
    assert len(records(out)) == 24
    assert {folder: starts(folder) for folder in over} == over
    assert f"compare them: calm report {out}" in printed


def test_only_what_is_new_is_run(write):
    sweep, out = write(learners=["unigram"], seeds=2)
    assert done(sweep)[0] == 0
    before = {folder: starts(folder) for folder in finished(out)}
    write(learners=["unigram", "uniform"], seeds=3)
    code, _, errors = done(sweep)
    assert (code, len(finished(out))) == (0, 6)
    assert {folder: starts(folder) for folder in before} == before
    assert errors.count(": running") == 4
    code, printed, errors = done(sweep)
    assert (code, errors) == (0, "")
    assert "compare them" in printed


def test_ctrl_c_stops_every_run_with_its_checkpoint(write):
    sweep, out = write(learners=["user_learners:Slow"], seeds=3, streams=[ENDLESS])
    for number in (signal.SIGINT, signal.SIGTERM):
        known = records(out)
        driver = spawn("sweep", sweep, "--workers", 2, start_new_session=True)
        wait_for(lambda known=known: sum(known.get(k) != v for k, v in records(out).items()) == 2)
        own = workers(driver.pid)
        (os.killpg if number == signal.SIGINT else os.kill)(driver.pid, number)
        _, errors = driver.communicate()
        assert driver.returncode == 1
        last = errors.strip().splitlines()[-1]
        assert last == "calm: stopped: the same command goes on with what is left"
        assert len(own) == 2
        assert not any(Path(f"/proc/{pid}").exists() for pid in own)
        assert len(list(out.glob("*/checkpoint/learner.safetensors"))) == 2
        assert not list(out.glob("*/failed.json"))


def test_runs_end_when_their_driver_is_killed(write):
    sweep, out = write(learners=["user_learners:Slow"], seeds=2, streams=[ENDLESS])
    driver = spawn("sweep", sweep, "--workers", 2)
    wait_for(lambda: len(records(out)) == 2 and all(records(out).values()))
    own = workers(driver.pid)
    assert len(own) == 2
    driver.kill()
    driver.communicate()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in own))
    assert len(list(out.glob("*/checkpoint/learner.safetensors"))) == 2
    assert not finished(out)


def test_one_that_fails_is_said_left_alone_and_tried_again_on_demand(write, tmp_path):
    luck = tmp_path / "luck"
    fails = {"name": "user_learners:FailsWithout", "file": str(luck)}
    sweep, out = write(learners=["unigram", fails])
    (bad,) = (run.name for run in read_sweep(sweep).runs if "Fails" in run.name)
    for _ in range(2):  # the second time it is not run, but told all the same
        code, printed, errors = done(sweep)
        assert code == 1
        assert f"failed: {bad}: the learner failed with FileNotFoundError: no such luck" in printed
        assert "calm: 1 of 2 runs failed, as said above; --retry tries them again" in errors
        assert len(finished(out)) == 1
        assert len(starts(out / bad)) == 1
    assert done(sweep, "--retry")[0] == 1
    assert len(starts(out / bad)) == 2
    luck.touch()
    assert done(sweep, "--retry")[0] == 0
    assert len(finished(out)) == 2
    assert not (out / bad / "failed.json").exists()


def test_one_whose_process_keeps_dying_is_given_up(write):
    sweep, out = write(learners=["user_learners:DiesAtTwelve", "unigram"])
    code, printed, _ = done(sweep)
    assert code == 1
    assert "its process was killed by SIGKILL" in printed
    assert "3 times without getting further" in printed
    assert len(finished(out)) == 1
    assert len(starts(next(out.glob("*Dies*")))) == 3


def test_folders_edited_by_hand_harm_nobody_else(write):
    sweep, out = write(learners=["unigram"], seeds=4)
    assert done(sweep)[0] == 0
    config, damaged, blocked, _ = folders = sorted(finished(out))
    (config / "config.toml").write_text("seed = 3")
    (damaged / "records.jsonl").write_text("nonsense")
    for path in sorted(blocked.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    blocked.rmdir()
    blocked.write_text("a file")
    write(learners=["unigram"], seeds=5)
    code, printed, errors = done(sweep)
    assert code == 1
    told = [line for line in printed.splitlines() if line.startswith("failed: ")]
    assert len(told) == 3
    assert f"{config / 'config.toml'} is not what the sweep wrote: put it back" in told[0] + told[1]
    assert f"{damaged / 'records.jsonl'} is not the one that metrics.json was made" in printed
    assert f"{blocked.name}: cannot write to {blocked}: File exists" in printed
    assert "3 of 5 runs failed" in errors
    assert len(finished(out) - set(folders)) == 1


def test_two_sweeps_in_one_folder_share_the_work(write):
    sweep, out = write(learners=["user_learners:Slow"], seeds=6)
    drivers = [spawn("sweep", sweep, "--workers", 1) for _ in range(2)]
    for driver in drivers:
        printed, errors = driver.communicate()
        assert driver.returncode == 0, errors
        assert "failed: " not in printed
    assert len(finished(out)) == 6
    assert [starts(folder) for folder in finished(out)] == [[0]] * 6


def test_a_full_disk_is_said_and_loses_nothing(write, tmp_path):
    sweep, out = write(learners=["unigram"], seeds=2)
    assert done(sweep, "--out", tmp_path / "whole")[0] == 0
    with small_files(600):
        code, printed, _ = done(sweep)
    assert code == 1
    assert printed.count(": File too large") == 2, printed
    assert not finished(out)
    assert done(sweep, "--retry")[0] == 0
    assert records(out) == records(tmp_path / "whole")


def test_a_dry_run_counts_and_estimates_but_writes_nothing(write, tmp_path):
    bad = {"name": "user_learners:DiesAtTwelve"}
    sweep, out = write(learners=["unigram", "uniform"])
    assert done(sweep)[0] == 0
    write(learners=["unigram", bad, {"name": "counts", "order": 3}], seeds=3)
    before = sorted(out.rglob("*"))
    code, printed, errors = done(sweep, "--dry-run", "--workers", 2)
    assert code == 0, errors
    assert f"9 runs in {out}, 8 to do" in printed
    assert "with 2 workers: about " in printed
    assert "could not be tried: its process was killed by SIGKILL" in printed
    assert sorted(out.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.toml",), "there is no file nowhere.toml, nor such a preset: take demo, paper/"),
        (("paper/table1-small", "--workers", 0), "workers is 0: take 1 or more"),
        (("paper/table1-small", "--checkpoint-seconds", 0), "take a time above 0"),
        (("paper/table1-small", "--corpora", "nosuch"), "unknown corpus 'nosuch'"),
        (("demo",), "demo: unknown key 'seed'; there are: out, experiments"),
        (("paper/table1-small", "--out", "/proc/nowhere"), "cannot write to /proc/nowhere"),
    ],
)
def test_misuse_is_one_sentence(monkeypatch, capsys, arguments, words):
    code, _, errors = calm(monkeypatch, capsys, "sweep", *arguments)
    assert code == 2
    assert words in errors
    assert errors.count("\n") == 1
