from pathlib import Path

import numpy as np
import pytest

from calm import report
from calm.analysis import gate_similarity
from calm.config import Choice, Config, StreamConfig
from calm.metrics import CURVE, Records, Result
from calm.report.compare import Setting
from calm.report.figures import LINES, MOST, foremost, loss_figure, switch_figure
from calm.report.gate_figure import gate_figure
from calm.report.runs import Group, Run

BATCHES = 40
CLASSES = ("a", "b")


class Made(Run):
    """A run whose records are made up."""

    @property
    def records(self):
        names = np.array(CLASSES)[np.arange(BATCHES) // 10 % 2]
        loss = np.full(BATCHES, float(self.config.seed))
        return Records(np.arange(BATCHES) // 10, names, loss, 4)

    @property
    def gates(self):
        if not self.config.learner.name.startswith("poe"):
            return None
        return np.random.default_rng(self.config.seed).normal(size=(BATCHES, 3))


def made(learner, seeds=(0,), corpus="texts", oracle=False, **options):
    config = [Config(Choice(corpus), StreamConfig(), Choice(learner, options), s) for s in seeds]
    runs = tuple(Made(Path("nowhere"), each, {}) for each in config)
    curves = [tuple(np.linspace(9, 1, CURVE) + seed) for seed in seeds]
    results = tuple(Result(1.0, 1.0, 1.0, 1.0, {}, curve) for curve in curves)
    return Group(runs[0].learner, oracle, results, runs=runs, seeds=tuple(seeds))


def setting(*groups):
    return Setting(groups[0].runs[0].setting, list(groups), None, [])


def test_settings_stand_side_by_side_and_a_learner_looks_the_same_in_all():
    one = setting(made("lstm", size="paper"), made("mos"), made("floor", oracle=True))
    other = setting(made("mos", corpus="other"), made("lstm", corpus="other", size="paper-word"))
    figure = switch_figure([one, other])
    left, right = figure.axes
    assert [left.get_title(), right.get_title()] == [one.name, other.name]
    assert [line.get_color() for line in left.lines[:2]] == [
        line.get_color() for line in right.lines[:2]
    ]
    assert len(left.lines) == 3
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == ["lstm", "mos", "floor"]


def test_a_curve_is_the_mean_and_its_band_the_range_over_seeds():
    figure = switch_figure([setting(made("lstm", seeds=(0, 1, 5)))])
    (axes,) = figure.axes
    assert axes.lines[0].get_ydata() == pytest.approx(np.linspace(9, 1, CURVE) + 2)
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.max(), heights.min()) == (9 + 5, 1)
    assert figure.legends[0].texts[-1].get_text() == "range over seeds"


def test_three_settings_leave_no_empty_panel():
    figure = switch_figure([setting(made("lstm", corpus=name)) for name in "xyz"])
    assert len(figure.axes) == 3


def test_of_many_learners_the_best_are_drawn_and_it_is_said():
    many = [made("lstm", n=i) for i in range(30)] + [made("floor", oracle=True)]
    assert foremost(many, 5) == [*many[:5], many[-1]]
    axes = switch_figure([setting(*many)]).axes[0]
    assert len(axes.lines) == MOST + 1
    assert f"({MOST + 1} of 31 learners)" in axes.get_title()
    axes = loss_figure(setting(*many)).axes[0]
    assert len([line for line in axes.lines if len(line.get_xdata()) > 2]) == len(LINES) + 1


def test_losses_are_those_of_one_stream():
    axes = loss_figure(setting(made("lstm", seeds=(3, 4)), made("mos", seeds=(4, 3)))).axes[0]
    drawn = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) > 2]
    assert [set(losses) for losses in drawn] == [{3.0}, {3.0}]
    alone = loss_figure(setting(made("lstm", seeds=(3,)), made("mos", seeds=(4,)))).axes[0]
    assert len([line for line in alone.lines if len(line.get_xdata()) > 2]) == 1


def test_of_many_settings_a_bounded_number_of_figures_is_drawn(monkeypatch):
    monkeypatch.setattr(report, "SETTINGS", 5)
    many = [
        setting(made("poe-5", corpus=f"c{i}"), made("poe-30", corpus=f"c{i}")) for i in range(7)
    ]
    names = [name for name, _ in report._figures(many)]
    assert len(names) == len(set(names)) == 2 + 5 + 5
    few = [name for name, _ in report._figures(many[:1])]
    assert few == ["switch", "loss", "gates-poe-5", "gates-poe-30"]


def test_correlations_are_means_over_seeds_with_their_deviation():
    group = made("poe-5", seeds=(0, 1, 2))
    figure = gate_figure(group)
    found = [gate_similarity(run.gates, run.records.class_name) for run in group.runs]
    by_class, matrix, bars = figure.axes[-3:]
    for texts, values in (
        (matrix.texts, np.array([each.between.ravel() for each in found])),
        (bars.texts, np.array([each.over_time for each in found])),
    ):
        expected = [
            f"{mean:.2f}\n±{deviation:.2f}" if not np.isnan(mean) else "–"
            for mean, deviation in zip(values.mean(axis=0), values.std(axis=0, ddof=1), strict=True)
        ]
        assert [text.get_text() for text in texts] == expected
    assert [label.get_text() for label in by_class.get_yticklabels()] == list(CLASSES)
    assert by_class.images[0].get_array().shape == (BATCHES, 3)
