import dataclasses
import json
import re
import xml.etree.ElementTree as ElementTree

import matplotlib.image
import numpy as np
import pytest

from calm.config import Choice, Config, StreamConfig
from calm.errors import CalmError
from calm.folder import RunFolder
from calm.report import compare, load_runs, settings, too_good, write_report
from calm.report.figures import POINTS, loss_figure
from calm.run import start
from helpers import calm


def config(learner, seed, fragments=10, **options):
    stream = StreamConfig(fragments=fragments, mean_length=1500)
    return Config(stream=stream, learner=Choice(learner, options), seed=seed)


def finished(paths):
    return load_runs(paths)[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    for seed in (0, 1, 2):
        start(config("unigram", seed), base / f"unigram-{seed}")
    start(config("uniform", 0), base / "uniform-0")
    start(config("floor", 0), base / "floor-0")
    return base


def test_learners_are_ranked_and_oracles_apart(runs):
    (groups,) = settings(finished([runs])).values()
    assert [g.learner for g in groups] == ["unigram", "uniform", "floor-known", "floor"]
    assert [g.oracle for g in groups] == [False, False, True, True]
    assert [len(g.results) for g in groups] == [3, 1, 3, 1]


def test_the_table_in_three_formats(runs, tmp_path):
    loaded = finished([runs])
    write_report(compare(loaded), tmp_path)
    mean = np.mean([r.result.ppl for r in loaded if r.learner == "unigram"])
    markdown = (tmp_path / "table.md").read_text()
    assert re.search(rf"\| unigram \| \*\*{mean:.2f} ± \d", markdown)
    assert "95 % interval over seeds" in markdown
    assert r"floor-known\*" in markdown
    latex = (tmp_path / "table.tex").read_text()
    assert rf"unigram & \textbf{{{mean:.2f} $\pm$" in latex
    assert latex.count(r"\midrule") == 2
    data = json.loads((tmp_path / "table.json").read_text())
    (rows,) = data.values()
    unigram = next(row for row in rows if row["learner"] == "unigram")
    assert unigram["ppl"]["mean"] == pytest.approx(mean)
    assert unigram["ppl"]["seeds"] == len(unigram["results"]) == 3


def test_figures_are_pictures(runs, tmp_path):
    write_report(compare(finished([runs])), tmp_path)
    for name in ("loss", "switch"):
        picture = matplotlib.image.imread(tmp_path / f"{name}.png")
        assert picture.shape[0] > 400
        assert picture.std() > 0.05
        ElementTree.parse(tmp_path / f"{name}.svg")


def test_the_same_runs_give_the_same_files(runs, tmp_path):
    first = write_report(compare(finished([runs])), tmp_path / "a")
    second = write_report(compare(finished([runs])), tmp_path / "b")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_every_fragment_is_shaded_and_every_learner_drawn(runs):
    loaded = finished([runs])
    (setting,) = compare(loaded)
    axes = loss_figure(setting).axes[0]
    assert sum(len(shade.get_paths()) for shade in axes.collections) == 10
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    assert len(lines) == 3  # unigram, uniform, floor: those with a run on the first stream
    first = next(run for run in loaded if run.learner == "unigram")
    assert any(np.array_equal(line.get_ydata(), first.records.loss) for line in lines)


def test_a_long_stream_is_thinned_but_keeps_its_extremes(tmp_path):
    long = Config(
        stream=StreamConfig(fragments=100, mean_length=6000), learner=Choice("unigram"), seed=0
    )
    run = finished([start(long, tmp_path / "run").path])[0]
    (setting,) = compare([run])
    axes = loss_figure(setting).axes[0]
    loss = run.records.loss
    assert len(loss) > POINTS
    drawn = max(len(line.get_xdata()) for line in axes.lines)
    assert drawn <= POINTS
    band = axes.collections[-1].get_paths()[0].vertices[:, 1]
    assert band.max() == loss.max()
    assert band.min() == loss.min()


def test_runs_of_different_streams_are_not_compared(runs, tmp_path):
    start(config("unigram", 0, fragments=15), tmp_path / "other")
    groups = settings(finished([runs, tmp_path / "other"]))
    assert len(groups) == 2
    written = write_report(compare(finished([runs, tmp_path / "other"])), tmp_path / "out")
    assert {"loss-1.png", "loss-2.png"} <= {path.name for path in written}


def test_folders_of_one_name_with_different_text_are_not_compared(tmp_path):
    for place in ("x", "y"):
        (tmp_path / place / "texts").mkdir(parents=True)
        for name in "ab":
            (tmp_path / place / "texts" / f"{name}.txt").write_text(f"{name}{place} \n" * 4000)
        stream = StreamConfig(fragments=4, mean_length=800)
        corpus = Choice(str(tmp_path / place / "texts"))
        start(Config(corpus, stream, Choice("unigram")), tmp_path / place / "run")
    groups = settings(finished([tmp_path / "x" / "run", tmp_path / "y" / "run"]))
    assert len(groups) == 2
    assert all(name.startswith("texts: N = 4") for name in groups)


def test_a_repetition_is_passed_over_unless_it_differs(runs, tmp_path):
    again = start(config("unigram", 0), tmp_path / "again")
    loaded, passed_over = load_runs([runs, again.path])
    assert again.path not in [run.path for run in loaded]
    assert passed_over == [f"{again.path} repeats {runs / 'unigram-0'}"]
    lines = (again.path / "records.jsonl").read_text().replace('"loss": 3', '"loss": 4')
    (again.path / "records.jsonl").write_text(lines)
    (again.path / "metrics.json").unlink()
    again.save_metrics({"oracle": False, "tokens_per_second": 1})
    with pytest.raises(CalmError, match="are the same run with different records"):
        settings(finished([runs, again.path]))


def test_a_contender_below_the_floor_is_remarked_on(runs):
    (groups,) = settings(finished([runs])).values()
    assert too_good(groups) == []
    floor = next(group for group in groups if group.learner == "floor-known")
    cheat = dataclasses.replace(
        groups[0], results=(dataclasses.replace(floor.results[0], ppl=1.5),)
    )
    (remark,) = too_good([cheat, *groups[1:]])
    assert remark.startswith("unigram is below the floor, which nobody can be")


def test_unfinished_runs_among_others_are_passed_over(runs, tmp_path):
    again = start(config("unigram", 7), tmp_path / "fine")
    unfinished = RunFolder(tmp_path / "stopped")
    unfinished.path.mkdir()
    unfinished.create(config("unigram", 8))
    loaded, passed_over = load_runs([tmp_path])
    assert [run.path for run in loaded] == [again.path]
    assert passed_over == [f"{unfinished.path} is not finished"]


@pytest.mark.parametrize("name", ["records.jsonl", "config.toml"])
def test_files_that_changed_after_the_run_are_not_believed(tmp_path, name):
    run = start(config("unigram", 0), tmp_path / "run")
    text = (run.path / name).read_text()
    (run.path / name).write_text(text.replace("1", "2", 1))
    with pytest.raises(CalmError, match=f"{name} is not the one that metrics.json was made from"):
        load_runs([run.path])


def test_an_unfinished_run_is_said(runs, tmp_path):
    (tmp_path / "config.toml").write_text(config("unigram", 0).to_toml())
    with pytest.raises(CalmError, match="is not finished: go on with `calm resume"):
        load_runs([tmp_path])


def test_the_command_prints_the_table_and_says_where_the_files_are(
    runs, tmp_path, monkeypatch, capsys
):
    code, out, _ = calm(monkeypatch, capsys, "report", runs, "--out", tmp_path)
    assert code == 0
    assert "floor-known*" in out
    assert f"9 files in {tmp_path}: table.md" in out


def test_the_command_compares_with_a_learner_and_with_the_paper(
    runs, tmp_path, monkeypatch, capsys
):
    asked = ("--against", "floor", "--published", "synthetic=multilingual-10k")
    code, out, _ = calm(monkeypatch, capsys, "report", runs, "--out", tmp_path, *asked)
    assert code == 0
    assert "paper‡" in out
    assert "| unigram | floor |" in (tmp_path / "differences.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--against", "lstm"), "no learner is called 'lstm': take one of unigram"),
        (("--published", "table-1"), "the paper has no setting 'table-1': take one of multil"),
        (("--published", "ml=multilingual-10k"), "no run is of corpus 'ml': there is synthetic"),
    ],
)
def test_wrong_wishes_are_one_sentence(runs, tmp_path, monkeypatch, capsys, arguments, words):
    out = tmp_path / "out"
    code, _, err = calm(monkeypatch, capsys, "report", runs, "--out", out, *arguments)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
    assert not out.exists()
