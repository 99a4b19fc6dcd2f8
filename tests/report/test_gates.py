import json
import shutil
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from calm.analysis import gate_similarity, tree_agreement
from calm.config import Choice, Config, StreamConfig
from calm.metrics import Records
from calm.report import compare, gate_facts, gate_sentence, load_runs, settings, write_report
from calm.report.gate_figure import gate_figure
from calm.report.runs import Group, Run
from calm.run import start
from helpers import calm

STREAM = StreamConfig(fragments=10, mean_length=3000)
TINY = {"experts": 4, "hidden": 8, "embedding": 8}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        choice = Choice("experts", {**TINY, "gate": "plastic"})
        start(Config(stream=STREAM, learner=choice, seed=seed), base / f"plastic-{seed}")
    fixed = Choice("ensemble-5", {"size": "tiny", "hidden": 8})
    start(Config(stream=STREAM, learner=fixed), base / "fixed")
    return base


def loaded(*paths):
    return load_runs(paths)[0]


def facts_of(runs):
    ((_, groups),) = settings(runs).items()
    return gate_facts(groups)


def test_facts_are_means_over_seeds(runs, synthetic):
    both = loaded(runs / "plastic-0", runs / "plastic-1")
    (fact,) = facts_of(both)
    found = [gate_similarity(run.gates, run.records.class_name) for run in both]
    within = [np.diag(s.between).mean() for s in found]
    assert fact["learner"].startswith("experts")
    assert fact["within"].mean == pytest.approx(np.mean(within))
    assert fact["within"].seeds == 2
    between = [s.between[~np.eye(5, dtype=bool)].mean() for s in found]
    assert fact["between"].mean == pytest.approx(np.mean(between))
    names = list(synthetic.classes)
    order = np.ix_(*[[names.index(name) for name in sorted(names)]] * 2)
    distances = synthetic.tree_distances()[order]
    agreements = [tree_agreement(s.between, distances) for s in found]
    assert fact["tree"].mean == pytest.approx(np.mean(agreements))


def test_the_true_distances_reach_the_report_by_name(runs, synthetic):
    (run,) = loaded(runs / "plastic-0")
    names = list(synthetic.classes)
    for i, one in enumerate(sorted(names)):
        for j, other in enumerate(sorted(names)):
            expected = synthetic.tree_distances()[names.index(one), names.index(other)]
            assert run.distances[i, j] == expected


def test_learners_without_a_gate_have_no_facts(runs):
    assert [fact["learner"] for fact in facts_of(loaded(runs))] == [
        "experts experts=4 hidden=8 embedding=8 gate=plastic"
    ]


def test_files_and_sentences_are_written(runs, tmp_path):
    written = write_report(compare(loaded(runs)), tmp_path)
    names = [path.name for path in written]
    assert sum(name.startswith("gates-") for name in names) == 2
    (picture,) = (
        path for path in written if path.name.startswith("gates-") and path.suffix == ".png"
    )
    assert matplotlib.image.imread(picture).std() > 0.05
    (fact,) = facts_of(loaded(runs))
    assert gate_sentence(fact) in (tmp_path / "table.md").read_text()
    (rows,) = json.loads((tmp_path / "table.json").read_text()).values()
    gates = {row["learner"]: row["gate"] for row in rows}
    assert gates[fact["learner"]]["tree"]["mean"] == pytest.approx(fact["tree"].mean)
    assert gates["ensemble-5 tiny hidden=8"] == {}


def test_the_command_prints_the_sentence(runs, tmp_path, monkeypatch, capsys):
    code, out, _ = calm(monkeypatch, capsys, "report", runs, "--out", tmp_path)
    assert code == 0
    assert "gate of experts" in out
    assert "rank correlation with the true tree" in out


def test_a_run_from_before_distances_were_kept_is_reported(runs, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(runs / "plastic-0", old)
    metrics = json.loads((old / "metrics.json").read_text())
    del metrics["distances"]
    (old / "metrics.json").write_text(json.dumps(metrics))
    (run,) = loaded(old)
    assert run.distances is None
    (fact,) = facts_of([run])
    assert fact["tree"] is None
    assert "tree" not in gate_sentence(fact)
    assert gate_sentence(fact).startswith("gate of experts")


class Made(Run):
    """A run whose weights are made up."""

    def __init__(self, gates, names):
        super().__init__(Path("nowhere"), Config(), {"oracle": False})
        fragment = np.zeros(len(gates), dtype=np.int64)
        records = Records(fragment, np.array(names), np.ones(len(gates)), 1)
        self.__dict__["made"] = (gates, records)

    @property
    def gates(self):
        return self.made[0]

    @property
    def records(self):
        return self.made[1]


@pytest.mark.parametrize(
    ("gates", "names"),
    [
        (np.full((300, 3), 0.25), ["a", "b"] * 150),
        (np.random.default_rng(0).normal(size=(20, 3)), ["a"] * 20),
        (np.array([[1.0]]), ["a"]),
        (np.random.default_rng(0).normal(size=(9, 2)), ["a", "b", "c"] * 3),
    ],
)
def test_what_is_not_defined_is_drawn_and_said_with_a_dash(gates, names):
    run = Made(gates, names)
    group = Group("made", False, (), runs=(run,))
    figure = gate_figure(group)
    figure.canvas.draw()
    matrix, bars = figure.axes[-2:]
    shown = [text.get_text() for text in (*matrix.texts, *bars.texts)]
    assert "–" in shown
    assert "nan" not in shown
    (fact,) = gate_facts([group])
    assert "nan" not in gate_sentence(fact)
    assert "–" in gate_sentence(fact)
