import json
import math
import shutil
import sqlite3
import struct
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from calm.config import Choice, Config, StreamConfig
from calm.errors import RunFailedError
from calm.folder import RunFolder
from calm.metrics import measure
from calm.observer import make_observers
from calm.run import resume, start
from helpers import calm, spawn
from user_observers import Notes, Raises, Stops, Unreachable

CONFIG = Config(
    stream=StreamConfig(fragments=20, mean_length=800),
    learner=Choice("poe-pw-5", {"hidden": 8, "embedding": 8}),
    seed=1,
)


@pytest.fixture(scope="module")
def unobserved(tmp_path_factory):
    return start(CONFIG, tmp_path_factory.mktemp("runs") / "unobserved")


def lines(folder):
    return [json.loads(x) for x in (folder.path / "records.jsonl").read_text().splitlines()]


def same(folder, other):
    names = ("config.toml", "records.jsonl")
    return all((folder.path / n).read_bytes() == (other.path / n).read_bytes() for n in names)


def stop_at(step, path, go=resume):
    """Run to a batch, then press Ctrl-C."""
    stopper = Stops(step)
    with pytest.raises(RunFailedError, match=f"stopped before batch {step + 1}"):
        go(path, observers=[stopper, *make_observers(["tensorboard"])])
    return stopper


def test_an_observer_is_told_everything_and_changes_nothing(unobserved, tmp_path, capsys):
    notes = Notes()
    folder = start(CONFIG, tmp_path / "run", observers=[notes])
    assert same(folder, unobserved)
    assert notes.starts == [(1, folder.path, 0)]
    assert repr(notes.results) == repr([measure(folder.records())])  # nan is nan
    told = [{"step": r.step, "fragment": r.fragment, "class": r.class_name, "loss": r.loss}
            for r in notes.records]  # fmt: skip
    assert told == [{k: v for k, v in line.items() if k != "gates"} for line in lines(folder)]
    assert [r.gates for r in notes.records] == [
        pytest.approx(x["gates"], rel=1e-5) for x in lines(folder)
    ]
    assert "not a result" not in capsys.readouterr().out


def test_an_observer_that_raises_is_dismissed_and_the_run_goes_on(unobserved, tmp_path, capsys):
    raising, bystander = [Unreachable(), Raises()], Notes()
    folder = start(CONFIG, tmp_path / "run", observers=[*raising, bystander])
    errors = capsys.readouterr().err
    said = [line for line in errors.splitlines() if line.startswith("observer")]
    reasons = (
        "Unreachable failed with ConnectionError: nobody there",
        "Raises failed with ZeroDiv",
    )
    for sentence, reason in zip(said, reasons, strict=True):
        assert sentence.startswith(f"observer {reason}")
        assert sentence.endswith("): the run goes on without it")
    assert same(folder, unobserved)
    assert [len(observer.records) for observer in raising] == [0, 6]
    assert [observer.results for observer in raising] == [[], []]
    assert len(bystander.records) == len(lines(folder))


def test_tensorboard_shows_a_run_that_was_stopped_and_killed_as_one(unobserved, tmp_path):
    path = tmp_path / "run"
    stop_at(20, path, go=lambda path, observers: start(CONFIG, path, observers=observers))
    checkpoint = path / "checkpoint" / "learner.safetensors"
    shutil.copy(checkpoint, tmp_path)
    stopper = stop_at(40, path)
    assert (stopper.starts[0][2], stopper.records[0].step, stopper.results) == (21, 21, [None])
    shutil.copy(tmp_path / checkpoint.name, checkpoint)  # as a kill leaves it: 20 batches are lost
    folder = resume(path, observers=make_observers(["tensorboard"]))
    assert same(folder, unobserved)
    events = EventAccumulator(str(path / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    rows = lines(folder)
    curves = {"loss": lambda row: row["loss"], "fragment": lambda row: row["fragment"]}
    curves |= {f"gate/{i}": lambda row, i=i: row["gates"][i] for i in range(5)}
    for name, value in curves.items():
        points = [(event.step, event.value) for event in events.Scalars(name)]
        assert [step for step, _ in points] == [row["step"] for row in rows]
        assert [v for _, v in points] == pytest.approx([value(row) for row in rows], rel=1e-5)
    for name in {row["class"] for row in rows}:
        steps = [event.step for event in events.Scalars(f"loss/{name}")]
        assert steps == [row["step"] for row in rows if row["class"] == name]
    result = measure(folder.records())
    for key in ("ppl", "ppl_at_switch", "recovery", "bits"):
        (event,) = events.Scalars(f"result/{key}")
        assert event.step == rows[-1]["step"]
        assert event.value == pytest.approx(getattr(result, key), rel=1e-5)


def test_the_command_line_takes_several(tmp_path, monkeypatch, capsys):
    arguments = ("run", "demo", "--learner", "uniform", "--out", tmp_path / "run")
    code, out, errors = calm(
        monkeypatch, capsys, *arguments,
        "--observe", "tensorboard", "--observe", "user_observers:Raises",
    )  # fmt: skip
    assert code == 0
    assert "not a result" not in out
    assert "the run goes on without it" in errors
    assert len(list((tmp_path / "run" / "tensorboard").iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tensorbord", "unknown observer 'tensorbord': take tensorboard, wandb, trackio, or your"),
        ("user_observers:Half", "Half does not define batch, finish"),
        ("user_learners:Half", "Half is not a subclass of calm.Observer"),
        ("user_observers:Stops", "missing 1 required positional argument: 'at'"),
        ("wandb", "to observe with wandb: pip install 'calm-bench[wandb]'"),
    ],
)
def test_a_wrong_observer_is_said_before_anything_runs(tmp_path, monkeypatch, capsys, name, words):
    monkeypatch.setitem(sys.modules, "wandb", None)
    out = tmp_path / "run"
    code, _, errors = calm(monkeypatch, capsys, "run", "--observe", name, "--out", out)
    assert code in (1, 2)
    assert words in errors
    assert errors.count("\n") == 1
    assert not out.exists()


def observed(library, path):
    """Run with a tracker in a process of its own, since it reads its settings when imported."""
    pytest.importorskip(library)
    arguments = ("demo", "--learner", "unigram", "--stream.fragments", 10, "--out", path)
    process = spawn("run", *arguments, "--observe", library)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert out.startswith("synthetic")
    assert "without it" not in errors
    return lines(RunFolder(path))


def test_trackio_holds_the_records(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    rows = observed("trackio", tmp_path / "run")
    (database,) = (tmp_path / "trackio").glob("*.db")
    with sqlite3.connect(database) as connection:
        logged = connection.execute("select step, metrics from metrics order by step").fetchall()
    losses = [json.loads(metrics)["loss"] for _, metrics in logged[:-1]]
    assert losses == [row["loss"] for row in rows]
    assert [step for step, _ in logged[:-1]] == [row["step"] for row in rows]
    assert math.isfinite(json.loads(logged[-1][1])["result/ppl"])


def test_weights_and_biases_holds_the_records_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    rows = observed("wandb", tmp_path / "run")
    from wandb.proto.wandb_internal_pb2 import Record

    (file,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    histories = [Record.FromString(entry).history.item for entry in leveldb_log(file.read_bytes())]
    values = [{"/".join(i.nested_key): json.loads(i.value_json) for i in history}
              for history in histories if history]  # fmt: skip
    assert [v["loss"] for v in values] == [row["loss"] for row in rows]
    assert [v["_step"] for v in values] == [row["step"] for row in rows]
    assert math.isfinite(values[-1]["result/ppl"])


def leveldb_log(data, block=32768, header=7):
    """Yield the entries of such a file: parts with a header each, none across two blocks."""
    place, entry = header, b""  # the file has a header of the same length
    while place + header <= len(data):
        if block - place % block < header:
            place += block - place % block
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)
        entry += data[place + header : place + header + length]
        place += header + length
        if kind in (1, 4):  # a whole entry, or the last part of one
            yield entry
            entry = b""
