import json
import os
import subprocess
import sys

import pytest

from calm.config import Choice, StreamConfig, read_config
from helpers import SHORT, calm, small_files

COMMANDS = ("run", "resume", "sweep", "tune", "report", "publish", "verify", "generate", "check")


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text((name + "xyz \n") * 3000)
    return folder


def test_help_lists_every_command(monkeypatch, capsys):
    code, out, _ = calm(monkeypatch, capsys, "--help")
    assert code == 0
    for name in COMMANDS:
        assert f"calm {name}" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(monkeypatch, capsys, name):
    code, out, _ = calm(monkeypatch, capsys, name, "--help")
    assert code == 0
    assert f"Examples:\n  calm {name} " in out


def test_help_and_version_import_nothing_heavy():
    program = (
        "import sys; sys.argv = ['calm', 'run', '--help']\n"
        "from calm import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numba', 'numpy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_run_prints_its_table_beside_the_floor(tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    code, printed, errors = calm(
        monkeypatch, capsys, "run", "--learner", "unigram", *SHORT, "--out", out
    )
    assert code == 0
    metrics = json.loads((out / "metrics.json").read_text())
    for word in ("unigram", "floor*", "floor-known*", "ppl@sw", "rec", *metrics["per_class"]):
        assert word in printed
    assert f"run folder: {out}" in printed
    assert "unigram: batch" in errors
    assert "tokens/s" in errors


def test_options_reach_corpus_stream_and_learner(tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    arguments = (
        "--corpus.lexicon",
        "200",
        "--corpus.seed",
        "5",
        "--corpus.tree=(x:0.3,y:0.3);",
        "--learner",
        "unigram",
    )
    arguments += ("--learner.prior", "2", "--stream.fragments", "6", "--stream.mean-length", "900")
    code, _, _ = calm(monkeypatch, capsys, "run", *arguments, "--seed", "4", "--out", out)
    assert code == 0
    config = read_config(out / "config.toml")
    assert config.corpus == Choice(
        "synthetic", {"lexicon": 200, "seed": 5, "tree": "(x:0.3,y:0.3);"}
    )
    assert config.learner == Choice("unigram", {"prior": 2})
    assert config.stream == StreamConfig(fragments=6, mean_length=900.0)
    assert config.seed == 4


def test_an_experiment_file_is_overridden_by_what_is_said(tmp_path, monkeypatch, capsys):
    file, out = tmp_path / "experiment.toml", tmp_path / "run"
    file.write_text(
        'seed = 3\n[corpus]\nname = "synthetic"\nlexicon = 200\n'
        '[learner]\nname = "unigram"\nprior = 3.0\n[stream]\nfragments = 10\nmean_length = 800\n'
    )
    code, _, _ = calm(monkeypatch, capsys, "run", file, "--stream.mean-length", "900", "--out", out)
    assert code == 0
    config = read_config(out / "config.toml")
    assert config.stream == StreamConfig(fragments=10, mean_length=900.0)
    assert config.learner == Choice("unigram", {"prior": 3.0})
    assert (config.corpus.options, config.seed) == ({"lexicon": 200}, 3)
    second = tmp_path / "second"
    code, _, _ = calm(monkeypatch, capsys, "run", file, "--learner", "uniform", "--out", second)
    assert code == 0
    assert read_config(second / "config.toml").learner == Choice("uniform")


def test_a_folder_of_text_runs_at_both_levels(texts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(texts.parent)
    for level in ("char", "word"):
        arguments = ("--corpus", texts.name, "--corpus.level", level, "--learner", "lstm", "--size")
        arguments += ("tiny", "--stream.fragments", "4", "--stream.mean-length", "300")
        out = tmp_path / level
        code, printed, _ = calm(
            monkeypatch, capsys, "run", *arguments, "--stream.rows", 2, "--out", out
        )
        assert code == 0
        assert "texts: level " + level in printed
        assert read_config(out / "config.toml").corpus.name == str(texts)
        assert "floor" not in printed


def test_runs_without_a_folder_get_one_each(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for expected in ("synthetic-uniform-s0", "synthetic-uniform-s0-2"):
        code, _, _ = calm(monkeypatch, capsys, "run", "--learner", "uniform", *SHORT)
        assert code == 0
        assert (tmp_path / "runs" / expected / "metrics.json").exists()


def test_check_speaks_for_and_against(monkeypatch, capsys):
    code, out, _ = calm(monkeypatch, capsys, "check", "user_learners:Fine", "--batches", "20")
    assert code == 0
    assert out.strip().endswith("keeps to the protocol, in 20 batches")
    code, out, errors = calm(monkeypatch, capsys, "check", "user_learners:NaNAtTwelve")
    assert code == 1
    assert "the learner predicted NaN" in out
    assert "does not keep to the protocol" in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run --corpus nowhere", "unknown corpus 'nowhere'"),
        ("run --learner lstn", "unknown learner 'lstn': take uniform, unigram, lstm"),
        ("run --learner nowhere:Mine", "there is no module 'nowhere'"),
        ("run --learner user_learners:Mine", "no Mine"),
        ("run --learner user_learners:Half", "Half is not a subclass of calm.Learner"),
        ("run --learner calm.learners.base:Learner", "does not define learn, load_state, predict"),
        ("run --learner unigram --size tiny", "comes in one size"),
        ("check user_learners:Fine --batches 3", "batches is 3: take 8 or more"),
        ("run --stream.mean-length 1e300", "mean length is 1e+300"),
        ("run --stream.fragments 1000000000", "1,000,000,000 fragments are too many"),
        ("run --corpus nowhere/", "corpus nowhere/ is not there"),
        ("run --corpus FILE", "is a file, not a folder"),
        ("run --learner uniform --out TEXTS", "holds other files (a.txt)"),
        ("report", "no run is named"),
        ("run --learner lstm --size huge", "no size 'huge': take one of tiny, small, paper"),
        ("run --learner lstm --learner.hiden 3", "unknown key 'hiden'; there are: experts"),
        ("run --learner lstm --learner.hidden many", "hidden is 'many': expected a whole number"),
        ("run --learner user_learners:Fine --learner.rat 1", "unknown key 'rat'; there are: rate"),
        ("run --learner.hidden", "--learner.hidden needs a value"),
        ("run --corpus.leksikon 3", "unknown key 'leksikon'"),
        ("run --corpus.tree (a,b", "not in Newick notation"),
        ("run --stream.fragments 101", "101 fragments cannot be dealt evenly to 5 classes"),
        ("run --stream.mean-length -5", "mean length is -5"),
        ("run --stream.mean-length abc", "--stream.mean-length is 'abc': expected a number"),
        ("run --stream.fragments abc", "--stream.fragments is 'abc': expected a whole number"),
        ("run EMPTY", "cannot be read: Is a directory"),
        ("run --stream.split train", "invalid choice 'train'"),
        ("run --seed -1", "seed is -1: take 0 or more"),
        ("run --checkpoint-seconds nan", "checkpoint_seconds is nan: take a time above 0"),
        ("run --nonsense 3", "Unrecognized options: --nonsense"),
        ("run missing.toml", "there is no file missing.toml"),
        ("run --corpus TEXTS --stream.fragments 4", "the text of 'a' is too short"),
        ("run --corpus TEXTS --corpus.level letter", "level 'letter' is not one of char, word"),
        ("run --corpus EMPTY", "holds no text"),
        ("run --corpus LATIN", "a.txt is not UTF-8 text: byte 2 is 0xe9"),
        ("run --corpus TEXTS --learner floor --stream.fragments 2 --stream.mean-length 200",
         "synthetic languages only"),
        ("run --learner uniform --out FILE/x --stream.fragments 5", "cannot write to"),
        ("resume nowhere", "nowhere holds no run"),
        ("resume", "Missing from calm resume"),
        ("report nowhere", "nowhere holds no run"),
        ("generate nowhere", "nowhere holds no run"),
        ("check nowhere:X", "there is no module 'nowhere'"),
        ("dance", f"'dance': take one of {', '.join(COMMANDS)}, corpus\n"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence(texts, tmp_path, monkeypatch, capsys, arguments, words):
    (tmp_path / "empty").mkdir()
    latin = tmp_path / "latin"
    latin.mkdir()
    (latin / "a.txt").write_bytes(b"caf"[:2] + "é".encode("latin-1"))
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)
    places = {
        "TEXTS": texts,
        "EMPTY": tmp_path / "empty",
        "LATIN": latin,
        "FILE": tmp_path / "file",
    }
    for name, path in places.items():
        arguments = arguments.replace(name, str(path))
    code, _, errors = calm(monkeypatch, capsys, *arguments.split())
    assert code == 2
    assert errors.startswith("calm: ")
    assert errors.count("\n") == 1
    assert words in errors


def test_a_report_that_cannot_be_written_is_said_before_it_is_shown(tmp_path, monkeypatch, capsys):
    run = tmp_path / "run"
    calm(monkeypatch, capsys, "run", "--learner", "uniform", *SHORT, "--out", run)
    out = run / "metrics.json" / "x"
    code, printed, errors = calm(monkeypatch, capsys, "report", run, "--out", out)
    assert (code, printed) == (2, "")
    assert errors == f"calm: cannot write to {out}: Not a directory\n"


def test_a_report_without_room_names_the_folder(tmp_path, monkeypatch, capsys):
    run, out = tmp_path / "run", tmp_path / "report"
    calm(monkeypatch, capsys, "run", "--learner", "uniform", *SHORT, "--out", run)
    with small_files(100):
        code, _, errors = calm(monkeypatch, capsys, "report", run, "--out", out)
    assert code == 1
    assert errors.startswith(f"calm: there is no room for more in {out} (File too large)")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_what_stops_a_run_that_has_not_begun_gives_no_advice(tmp_path, monkeypatch, capsys, error):
    def stop(*_):
        raise error

    monkeypatch.setattr("calm.folder.replace_file", stop)
    code, _, errors = calm(monkeypatch, capsys, "run", *SHORT, "--out", tmp_path / "run")
    assert code == 1
    full = f"there is no room for more in {tmp_path / 'run'} (No space left on device): free some"
    assert errors in ("calm: stopped\n", f"calm: {full}, then try again\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_what_stops_a_run_names_the_folder_to_go_on_with(tmp_path, monkeypatch, capsys, error):
    def stop(*_):
        raise error

    out = tmp_path / "run"
    arguments = ("--learner", "uniform", *SHORT)
    with monkeypatch.context() as patch:
        patch.setattr("calm.folder.Journals.write", stop)
        for command in (("run", *arguments, "--out", out), ("resume", out)):
            code, _, errors = calm(monkeypatch, capsys, *command)
            assert code == 1
            assert errors.strip().endswith(f"; go on with `calm resume {out}`")
    code, _, _ = calm(monkeypatch, capsys, "resume", out)
    assert code == 0


def test_ctrl_c_while_the_command_line_is_imported_is_one_sentence():
    program = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'calm.cli': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from calm.__main__ import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "calm: stopped\n")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_complaint_reads_alike_on_any_terminal(encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-m", "calm", "run", "--seed", "x"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.stderr == ("calm: --seed is 'x': expected a whole number (see `calm run --help`)\n")
