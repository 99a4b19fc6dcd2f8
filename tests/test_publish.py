import json
import math
import sys
from pathlib import Path

import pytest

from calm.config import Choice, Config, StreamConfig
from calm.files import sha256
from calm.folder import RunFolder
from calm.metrics import measure
from calm.run import start
from helpers import calm

OTHER = "0" * 64  # the hash of other records
LEARNER = """
from user_learners import Fine

class Mine(Fine):
    pass
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with text and a learner in it, and seeds 0 and 1 of that; run from there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("mine.py").write_text(LEARNER)
    Path("texts").mkdir()
    for name in "ab":
        Path("texts", f"{name}.txt").write_text((name + "xyz \n") * 4000)
    for seed in (0, 1):
        run(seed)
    return tmp_path


def run(seed, rate=0.5, learner="mine:Mine"):
    """Run a learner over the text."""
    config = Config(
        corpus=Choice(str(Path("texts").resolve())),
        stream=StreamConfig(fragments=8, mean_length=800),
        learner=Choice(learner, {"rate": rate} if rate != 0.5 else {}),
        seed=seed,
    )
    return start(config, Path("runs", f"{learner.split(':')[-1]}-{rate}-{seed}"))


@pytest.fixture
def command(monkeypatch, capsys):
    return lambda *arguments: calm(monkeypatch, capsys, *arguments)


@pytest.fixture
def result(here, command):
    """The file, and what is in it."""
    code, _, errors = command("publish", "runs", "--code", "https://example.org", "--out", "r.json")
    assert code == 0, errors
    return json.loads(Path("r.json").read_text())


def test_a_result_says_what_the_runs_say(result, here):
    assert (result["learner"], result["oracle"]) == ("mine:Mine", False)
    assert result["code"] == {"sha256": sha256(Path("mine.py")), "where": "https://example.org"}
    assert str(here) not in json.dumps(result)
    assert list(result["seeds"]) == ["0", "1"]
    ppls = []
    for seed, claim in result["seeds"].items():
        folder = RunFolder(Path(f"runs/Mine-0.5-{seed}"))
        rows = [json.loads(x) for x in (folder.path / "records.jsonl").read_text().splitlines()]
        assert claim["records"] == sha256(folder.path / "records.jsonl")
        assert claim["result"] == measure(folder.records()).to_dict()
        for i, mean in enumerate(claim["fragments"]):
            losses = [row["loss"] for row in rows if row["fragment"] == i]
            assert mean == pytest.approx(sum(losses) / len(losses))
        environment = json.loads((folder.path / "environment.json").read_text())
        assert (claim["starts"], result["text"]) == (environment["starts"], environment["corpora"])
        ppls.append(claim["result"]["ppl"])
    assert result["summary"]["ppl"]["mean"] == pytest.approx(sum(ppls) / 2)


def test_a_true_result_agrees_bit_for_bit(result, command):
    for arguments in ((), ("--seed", 1), ("--seed", 1, "--out", "elsewhere")):
        code, out, _ = command("verify", "r.json", "--corpus", "texts", *arguments)
        assert code == 0
        assert f"seed {1 if arguments else 0} agrees: the " in out
        assert "records are the same, bit for bit" in out
    assert RunFolder(Path("elsewhere")).finished


def changed(result, seed="0", **changes):
    """Write the result with another claim about a seed, and a summary to go with it."""
    claim = result["seeds"][seed]
    claim |= {key: value for key, value in changes.items() if key in claim}
    claim["result"] |= {key: value for key, value in changes.items() if key in claim["result"]}
    for key, summary in result["summary"].items():
        values = [claim["result"][key] for claim in result["seeds"].values()]
        summary["mean"] = None if None in values else sum(values) / len(values)
    Path("r.json").write_text(json.dumps(result))


@pytest.mark.parametrize(
    ("factor", "records", "agrees"),
    [(1.0001, None, False), (1.04, OTHER, True), (1.06, OTHER, False), (0.94, OTHER, False)],
)
def test_a_better_perplexity_than_there_is_is_found(result, command, factor, records, agrees):
    claim = result["seeds"]["0"]
    ppl = claim["result"]["ppl"] * factor
    changed(result, ppl=ppl, records=records or claim["records"])
    code, out, errors = command("verify", "r.json", "--corpus", "texts")
    assert code == (0 if agrees else 1)
    if agrees:
        assert "seed 0 agrees: the records are not the same bit for bit, but the mean loss" in out
    else:
        assert "seed 0 does not agree: ppl is " in errors
        assert errors.strip().endswith(f", not {ppl:.4f}")


def test_other_losses_are_found(result, command):
    losses = result["seeds"]["0"]["fragments"]
    changed(result, fragments=[*losses[:3], losses[3] + 0.2, *losses[4:]], records=OTHER)
    code, _, errors = command("verify", "r.json", "--corpus", "texts")
    assert code == 1
    assert "seed 0 does not agree: mean loss of fragment 3 is" in errors
    changed(result, fragments=losses[:-1])
    code, _, errors = command("verify", "r.json", "--corpus", "texts")
    assert (code, errors.count("8 fragments here, 7 published")) == (1, 1)


def test_other_versions_are_named(result, command):
    start = {**result["seeds"]["0"]["starts"][0], "numpy": "1.0"}
    changed(result, records=OTHER, starts=[start])
    _, out, _ = command("verify", "r.json", "--corpus", "texts")
    assert "numpy " in out
    assert out.strip().endswith(", not 1.0")


def test_a_summary_of_something_else_is_found(result, command):
    result["summary"]["recovery"]["mean"] = 0.5
    Path("r.json").write_text(json.dumps(result))
    code, _, errors = command("verify", "r.json")
    assert code == 2
    assert "r.json: the mean recovery is not that of its seeds" in errors


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"learner": "better"}, "its learner is 'mine:Mine', and no"),
        ({"oracle": True}, "no oracle"),
    ],
)
def test_a_false_label_is_found(result, command, claim, words):
    Path("r.json").write_text(json.dumps(result | claim))
    code, _, errors = command("verify", "r.json")
    assert code == 1
    assert words in errors


def test_a_run_without_its_environment_is_not_published(here, command):
    Path("runs/Mine-0.5-1/environment.json").unlink()
    code, _, errors = command("publish", "runs/Mine-0.5-1")
    assert code == 2
    assert "runs/Mine-0.5-1 has lost its environment.json" in errors


@pytest.mark.parametrize(
    ("file", "line", "words"),
    [
        ("texts/a.txt", "and more\n", "the text of "),
        ("mine.py", "# and more\n", "the code of mine:Mine here is not that of the result"),
    ],
)
def test_other_text_and_other_code_are_refused(result, command, file, line, words):
    with Path(file).open("a") as appended:
        appended.write(line)
    code, _, errors = command("verify", "r.json", "--corpus", "texts")
    assert code == 2
    assert words in errors


def test_code_that_changed_between_runs_is_refused(here, command):
    with Path("mine.py").open("a") as file:
        file.write("# and more\n")
    run(2)
    code, _, errors = command("publish", "runs")
    assert code == 2
    assert "the code of the learner changed between or during these runs: runs/Mine-0.5-0" in errors


def test_a_row_is_chosen_by_its_name_in_the_table(here, command):
    run(0, rate=0.25)
    code, _, errors = command("publish", "runs")
    assert code == 2
    assert "several ('mine:Mine' in texts: " in errors
    assert "choose it by --learner" in errors
    code, _, errors = command("publish", "runs", "--learner", "nobody")
    assert (code, errors) == (
        2, "calm: no run is of 'nobody': take one of 'mine:Mine', 'mine:Mine rate=0.25'\n"
    )  # fmt: skip
    code, out, _ = command("publish", "runs", "--learner", "mine:Mine rate=0.25")
    assert code == 0
    assert "seeds 0\n" in out
    assert "say where it is by --code URL" in out
    result = json.loads(Path("result.json").read_text())
    assert result["config"]["learner"] == {"name": "mine:Mine", "rate": 0.25}
    assert result["summary"]["ppl"]["interval"] is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "r.json cannot be read: No such file or directory"),
        (b"nonsense", "r.json is no result that `calm publish` wrote"),
        (b"\xff", "r.json is no result"),
        (b"[]", "r.json is no result"),
        (b'{"format": 1}', "r.json is no result"),
        (b'{"format": 1, "seeds": {}, "summary": {}, "config": {}}', "r.json is no result"),
        (b'{"format": 2}', "r.json has format 2; this version reads 1"),
    ],
)
def test_what_is_no_result_is_said(tmp_path, monkeypatch, command, content, words):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("r.json").write_bytes(content)
    code, _, errors = command("verify", "r.json")
    assert code == 2
    assert errors.startswith(f"calm: {words}")
    assert errors.count("\n") == 1


def test_wrong_wishes_are_said(result, command):
    assert math.isfinite(result["summary"]["ppl"]["mean"])
    for arguments, words in (
        (("verify", "r.json", "--seed", 7), "r.json has no seed 7: take one of 0, 1"),
        (("verify", "r.json", "--corpus", "nowhere"), "unknown corpus 'nowhere'"),
        (("verify", "r.json", "--corpus", "texts", "--out", "runs/Mine-0.5-1"), "holds another"),
        (("publish", "texts"), "texts holds no run"),
        (("publish", "runs", "--out", "no/where.json"), "No such file or directory"),
    ):
        code, _, errors = command(*arguments)
        assert code in (1, 2)
        assert words in errors
        assert errors.count("\n") == 1
