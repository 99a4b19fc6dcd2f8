import json
import random
import signal
import time
from pathlib import Path

import pytest

from calm.config import Choice, Config, StreamConfig
from calm.errors import CalmError, RunFailedError
from calm.folder import RunFolder
from calm.generate import generate
from calm.metrics import measure
from calm.run import resume, start
from helpers import SHORT, calm, small_files, spawn

TINY = Config(
    stream=StreamConfig(fragments=10, mean_length=1500),
    learner=Choice("lstm", {"hidden": 16, "embedding": 8}),
    seed=1,
)


def size(path):
    return path.stat().st_size if path.exists() else 0


def with_learner(name, **options):
    return Config(stream=TINY.stream, learner=Choice(name, options), seed=1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return start(TINY, tmp_path_factory.mktemp("runs") / "whole")


def records(path):
    return (path / "records.jsonl").read_bytes()


def test_a_run_folder_can_be_read_without_this_library(finished):
    lines = [json.loads(line) for line in records(finished.path).splitlines()]
    assert [line["step"] for line in lines] == list(range(len(lines)))
    assert set(lines[0]) == {"step", "fragment", "class", "loss"}
    timings = [json.loads(x) for x in (finished.path / "timings.jsonl").read_text().splitlines()]
    assert [t["step"] for t in timings] == list(range(len(lines)))
    metrics = json.loads((finished.path / "metrics.json").read_text())
    assert metrics["ppl"] == measure(finished.records()).ppl
    assert set(metrics["floors"]) == {"floor", "floor-known"}
    assert metrics["floors"]["floor-known"]["ppl"] < metrics["floors"]["floor"]["ppl"]
    assert metrics["floors"]["floor"]["ppl"] < metrics["ppl"]
    environment = json.loads((finished.path / "environment.json").read_text())
    assert environment["starts"][0]["step"] == 0
    assert finished.config() == TINY


def test_the_same_config_gives_the_same_records(finished, tmp_path):
    again = start(TINY, tmp_path / "again")
    assert records(again.path) == records(finished.path)


def test_a_run_stopped_anywhere_goes_on_as_if_it_never_was(finished, tmp_path, monkeypatch):
    """Interrupt within the process, at many batches, with the signal a terminal sends."""
    lines = records(finished.path).count(b"\n")
    folder, stops = tmp_path / "stopped", sorted(random.Random(0).sample(range(lines), 8))
    from calm.folder import Journals

    write = Journals.write

    def interrupting(self, record, seconds):
        write(self, record, seconds)
        if stops and record.step == stops[0]:
            stops.pop(0)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Journals, "write", interrupting)
    with pytest.raises(RunFailedError, match="go on with `calm resume"):
        start(TINY, folder)
    while stops:
        with pytest.raises(RunFailedError, match="stopped before batch"):
            resume(folder)
    resume(folder)
    assert records(folder) == records(finished.path)


def test_ten_kills_leave_no_trace(tmp_path):
    arguments = ("--learner", "lstm", "--size", "tiny", "--stream.fragments", "40")
    arguments += ("--stream.mean-length", "1000", "--seed", "1", "--checkpoint-seconds", "0.05")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = spawn("run", *arguments, "--out", whole)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    chance = random.Random(1)
    kills = 0
    while kills < 10:
        command = ("resume", killed) if (killed / "config.toml").exists() else ("run", *arguments)
        extra = ("--out", killed) if command[0] == "run" else ("--checkpoint-seconds", "0.05")
        before = size(killed / "records.jsonl")
        process = spawn(*command, *extra)
        while process.poll() is None and size(killed / "records.jsonl") == before:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.12))  # it got somewhere: kill it anywhere
        process.kill()
        process.communicate()
        kills += 1
    process = spawn("resume", killed)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert records(killed) == records(whole)
    assert len(json.loads((killed / "environment.json").read_text())["starts"]) > 5


def test_ctrl_c_and_sigterm_stop_cleanly(tmp_path):
    for number in (signal.SIGINT, signal.SIGTERM):
        folder = tmp_path / number.name
        process = spawn("run", *SHORT, "--learner", "user_learners:Slow", "--out", folder)
        while not (folder / "records.jsonl").exists() or not records(folder):
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate()
        assert process.returncode == 1
        last = errors.strip().splitlines()[-1]
        assert last.startswith("calm: stopped before batch ")
        assert last.endswith(f"go on with `calm resume {folder}`")
        assert (folder / "checkpoint" / "learner.safetensors").exists()


def test_a_second_process_is_refused(finished, monkeypatch, capsys):
    with finished.lock():
        process = spawn("resume", finished.path)
        _, errors = process.communicate()
        assert process.returncode == 2
        assert errors == f"calm: another process is working on {finished.path}\n"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (TINY, "this very run, finished"),
        (Config(stream=TINY.stream, learner=TINY.learner, seed=2), "a run with another seed"),
        (with_learner("unigram"), "a run with another learner"),
    ],
)
def test_a_folder_holds_one_run(finished, config, words):
    before = records(finished.path)
    with pytest.raises(CalmError, match=words):
        start(config, finished.path)
    assert records(finished.path) == before
    assert finished.config() == TINY


def test_resuming_a_finished_run_changes_nothing(finished):
    before = {p: p.read_bytes() for p in finished.path.rglob("*") if p.is_file()}
    resume(finished.path)
    assert {p: p.read_bytes() for p in finished.path.rglob("*") if p.is_file()} == before


def test_a_full_disk_loses_nothing(finished, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "full"
    options = ("--learner.hidden", 16, "--learner.embedding", 8, "--seed", 1, "--out", folder)
    with small_files(3000):
        code, _, errors = calm(monkeypatch, capsys, "run", *SHORT, *options)
    assert code == 1
    assert errors.strip().splitlines()[-1].startswith("calm: File too large")
    assert records(folder).count(b"\n") > 10
    code, _, _ = calm(monkeypatch, capsys, "resume", folder)
    assert code == 0
    assert records(folder) == records(finished.path)


def test_a_learner_that_raises_is_one_sentence_and_a_traceback_on_disk(tmp_path):
    with pytest.raises(RunFailedError) as error:
        start(with_learner("user_learners:FailsAtTwelve"), tmp_path / "run")
    message = str(error.value)
    assert "the learner failed with ZeroDivisionError: twelve" in message
    assert "user_learners.py" in message
    assert "\n" not in message
    assert "Traceback" in (tmp_path / "run" / "traceback.txt").read_text()
    assert records(tmp_path / "run").count(b"\n") == 12


@pytest.mark.parametrize(
    "config", [Choice("user_learners:OddState"), Choice("user_learners:NoState")]
)
def test_a_state_that_cannot_be_saved_is_said(tmp_path, config):
    with pytest.raises(RunFailedError) as error:
        start(Config(stream=TINY.stream, learner=config), tmp_path / "run")
    assert "state" in str(error.value) or "TypeError: no" in str(error.value)


def test_a_learner_that_predicts_nan_names_the_batch(tmp_path):
    with pytest.raises(RunFailedError, match="batch 12: the learner predicted NaN"):
        start(with_learner("user_learners:NaNAtTwelve"), tmp_path / "run")


def stopped_run(path, monkeypatch):
    """A run that stopped half-way."""
    from calm.folder import Journals

    write = Journals.write

    def stop(self, record, seconds):
        write(self, record, seconds)
        if record.step == 20:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Journals, "write", stop)
        with pytest.raises(RunFailedError):
            start(TINY, path)
    return path


@pytest.mark.parametrize("keep", [0, 5, 200, -10])
def test_a_checkpoint_cut_short_is_said(tmp_path, monkeypatch, keep):
    path = stopped_run(tmp_path / "run", monkeypatch)
    checkpoint = path / "checkpoint" / "learner.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:keep])
    with pytest.raises(CalmError, match="is damaged .* delete it to let the run begin again"):
        resume(path)
    checkpoint.unlink()
    resume(path)


def test_records_cut_short_are_said(tmp_path, monkeypatch):
    path = stopped_run(tmp_path / "run", monkeypatch)
    (path / "records.jsonl").write_bytes(records(path)[:100])
    with pytest.raises(
        CalmError, match="records.jsonl is damaged in line 2 of the 21 before the checkpoint"
    ):
        resume(path)


def test_text_that_changed_is_said(tmp_path, monkeypatch):
    texts = tmp_path / "texts"
    texts.mkdir()
    for name in "ab":
        (texts / f"{name}.txt").write_text((name + "xyz \n") * 4000)
    config = Config(
        corpus=Choice(str(texts)),
        stream=StreamConfig(fragments=4, mean_length=800),
        learner=Choice("unigram"),
    )
    start(config, tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    (texts / "a.txt").write_text("b" + (texts / "a.txt").read_text()[1:])
    with pytest.raises(CalmError, match="the text that .* began with has changed"):
        resume(tmp_path / "run")


def test_damaged_records_name_the_line(finished, tmp_path):
    (tmp_path / "config.toml").write_text(TINY.to_toml())
    lines = records(finished.path).splitlines(keepends=True)
    for damage in (b"nonsense\n", lines[4], b'{"step": 3}\n'):
        (tmp_path / "records.jsonl").write_bytes(b"".join(lines[:3]) + damage)
        with pytest.raises(CalmError, match=r"records.jsonl is damaged in line 4"):
            RunFolder(tmp_path).records()


@pytest.mark.parametrize("change", [("seed = 1", "seed = 2"), ("1500", "1600"), ("", "")])
def test_a_config_that_changed_since_the_start_is_said(tmp_path, monkeypatch, change):
    path = stopped_run(tmp_path / "run", monkeypatch)
    text = (path / "config.toml").read_text()
    (path / "config.toml").write_text(text.replace(*change) if change[0] else "")
    for go_on in (resume, lambda run: generate(run, 5)):
        with pytest.raises(CalmError, match=r"config.toml has changed since the run began"):
            go_on(path)
    (path / "config.toml").write_text(text)
    resume(path)


def test_without_a_checkpoint_it_begins_again_and_says_so(finished, tmp_path, monkeypatch, capsys):
    path = stopped_run(tmp_path / "run", monkeypatch)
    (path / "checkpoint" / "learner.safetensors").unlink()
    with pytest.raises(CalmError, match="has no checkpoint to sample from"):
        generate(path, 5)
    resume(path)
    assert "there is no checkpoint yet: the run begins again" in capsys.readouterr().err
    assert records(path) == records(finished.path)


def test_a_flipped_bit_in_a_checkpoint_is_found(tmp_path, monkeypatch):
    path = stopped_run(tmp_path / "run", monkeypatch)
    checkpoint = path / "checkpoint" / "learner.safetensors"
    data = bytearray(checkpoint.read_bytes())
    data[-100] ^= 4
    checkpoint.write_bytes(data)
    with pytest.raises(CalmError, match="its checksum is wrong"):
        resume(path)


@pytest.mark.parametrize("content", ["{}", "[]", "{", "\xff"])
@pytest.mark.parametrize("name", ["metrics.json", "environment.json"])
def test_damaged_notes_are_said(tmp_path, name, content):
    path = start(with_learner("uniform"), tmp_path / "run").path
    folder = RunFolder(path)
    good = folder.metrics()
    (path / name).write_text(content, encoding="latin-1")
    with pytest.raises(CalmError, match=f"{name} is damaged: delete it, then `calm resume {path}`"):
        folder.metrics(), folder.corpora()
    (path / name).unlink()
    resume(path)
    assert {**folder.metrics(), "seconds": 0} == {**good, "seconds": 0}


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    path = stopped_run(tmp_path / "run", monkeypatch)

    def refuse(file, *_, **__):
        raise PermissionError(13, "Permission denied", str(file))

    opened = Path.open
    for name in ("learner.safetensors", "environment.json"):

        def fail(file, *arguments, name=name, **options):
            return (refuse if file.name == name else opened)(file, *arguments, **options)

        monkeypatch.setattr(Path, "open", fail)
        with pytest.raises(CalmError, match=f"{name} cannot be read: Permission denied$"):
            resume(path)
