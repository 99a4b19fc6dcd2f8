import signal
from zipfile import ZipFile

import pytest

from calm.config import Choice, Config, StreamConfig
from calm.errors import CalmError
from calm.folder import Journals
from calm.run import start
from calm.sweep import exchange
from calm.sweep.exchange import Exchange, perform_via
from calm.sweep.plan import Planned
from calm.sweep.state import inspect
from calm.sweep.work import Job
from sweep.folders import records, starts, wait_for, write_sweep


@pytest.fixture
def job(tmp_path, monkeypatch):
    write_sweep(tmp_path)
    monkeypatch.chdir(tmp_path)  # to be back where we were in the end
    stream = StreamConfig(fragments=4, mean_length=2000)
    config = Config(Choice(str(tmp_path / "texts")), stream, Choice("user_learners:Slow"))
    return Job(Planned(config), tmp_path / "out", tmp_path, checkpoint_seconds=10)


@pytest.fixture
def at(monkeypatch):
    """Have something done at certain batches."""
    write = Journals.write

    def at(action, *steps):
        left = list(steps)

        def watched(self, record, seconds):
            write(self, record, seconds)
            if left and record.step == left[0]:
                left.pop(0)
                action()

        monkeypatch.setattr(Journals, "write", watched)

    return at


def test_a_run_that_travels_ends_with_the_same_records(job, tmp_path, at):
    whole = start(job.planned.config, tmp_path / "whole").path
    address, name = f"file://{tmp_path}/there", job.planned.name
    there, stale = Exchange(address), tmp_path / "stale"
    at(lambda: signal.raise_signal(signal.SIGINT), 9, 21)
    assert perform_via(address, job).kind == "stopped"
    stale.mkdir()
    there.pull(stale, name)
    assert perform_via(address, job).kind == "stopped"
    assert perform_via(address, job).kind == "finished"
    job.out.mkdir()
    there.pull(job.out, name)
    assert inspect(job.planned, job.out).kind == "finished"
    assert starts(job.path) == [0, 10, 22]
    assert records(job.out)[name] == (whole / "records.jsonl").read_bytes()
    there.push(stale, name)  # a machine that was only thought to be lost
    assert perform_via(address, job).kind == "finished"
    there.pull(job.out, name)
    assert starts(job.path) == [0, 10]
    assert records(job.out)[name] == (whole / "records.jsonl").read_bytes()


def test_checkpoints_travel_while_the_run_goes_on(job, tmp_path, at, monkeypatch):
    monkeypatch.setattr(exchange, "LOOK_SECONDS", 0.01)
    seen = []

    archive = tmp_path / "there" / f"{job.planned.name}.zip"

    def look():
        wait_for(archive.exists)
        with ZipFile(archive) as zipped:
            seen.append([name.partition("/")[2] for name in zipped.namelist()])

    at(look, 20)
    perform_via(f"file://{tmp_path}/there", Job(job.planned, job.out, job.here, 0.01))
    assert seen[0][0] == "checkpoint/learner.safetensors"
    assert {"config.toml", "records.jsonl", "environment.json"} < set(seen[0])
    assert "metrics.json" not in seen[0]


def test_an_address_that_leads_nowhere_is_said(job):
    with pytest.raises(CalmError, match="--via nonsense://x cannot be used: .*nonsense"):
        Exchange("nonsense://x")
    outcome = perform_via("file:///proc/nowhere", job)
    assert outcome.kind == "failed"
    assert outcome.reason.startswith("copying to file:///proc/nowhere failed with ")
