import dataclasses
import math
from pathlib import Path

import pytest

from calm.config import Choice, Config, StreamConfig, read_experiment
from calm.errors import CalmError
from calm.learners import LEARNERS
from calm.metrics import Records, measure
from calm.report.published import (
    METRICS,
    names_in_the_paper,
    parameters_in_the_paper,
    published_beside,
    settings_of_the_paper,
    wanted,
)
from calm.report.runs import Group, Run


def group(config):
    """A learner's only run, of which nothing but the config matters here."""
    nothing = measure(Records(*[[]] * 3, 0))
    return Group(config.learner.name, False, (nothing,), runs=(Run(None, config, {}),), seeds=(0,))


def preset(setting, learner="lstm", **options):
    experiment = read_experiment(Path("paper") / setting)
    return dataclasses.replace(experiment.config, learner=experiment.choice(learner, options))


def test_every_row_is_a_learner_of_ours_with_three_metrics_in_four_settings():
    names = set(names_in_the_paper())
    assert names <= set(LEARNERS)
    assert set(parameters_in_the_paper()) <= names
    assert len(settings_of_the_paper()) == 4
    for setting in settings_of_the_paper():
        published = published_beside([group(preset(setting))], {})
        assert set(published.results) == names - {"transformer"}
        for of_metrics in published.results.values():
            assert list(of_metrics) == list(METRICS)
            assert all(summary.mean > 0 and summary.seeds == 10 for summary in of_metrics.values())


def test_some_numbers_by_hand():
    published = published_beside([group(preset("multilingual-100k"))], {})
    recovery = published.results["poe-pw-30"]["recovery"]
    assert (recovery.mean, recovery.deviation) == (9.03, 0.66)
    lstm = published_beside([group(preset("multidomain-20k"))], {}).results["lstm"]
    assert lstm["ppl"].mean == 457
    assert math.isnan(lstm["ppl"].deviation)


def test_a_setting_of_the_papers_has_its_numbers_without_asking():
    published = published_beside([group(preset("multilingual-10k"))], {})
    assert published.setting == "multilingual-10k"
    assert published.departures == ""
    assert published.note.startswith("the paper's, multilingual-10k; mean ± standard deviation")


def test_a_jump_at_switches_is_the_same_data_but_another_length_is_not():
    config = preset("multilingual-10k")
    jumping = dataclasses.replace(config.stream, boundary="paper")
    assert published_beside([group(dataclasses.replace(config, stream=jumping))], {})
    longer = dataclasses.replace(config.stream, mean_length=20_000)
    assert published_beside([group(dataclasses.replace(config, stream=longer))], {}) is None


def test_the_half_for_choosing_hyperparameters_has_numbers_of_its_own():
    config = preset("multidomain-10k", "transformer")
    dev = dataclasses.replace(config, stream=dataclasses.replace(config.stream, split="dev"))
    published = published_beside([group(dev)], {})
    assert published.departures == ""
    assert published.results["transformer"]["ppl"].mean == 686
    assert "recovery" not in published.results["transformer"]
    whole = dataclasses.replace(config, stream=dataclasses.replace(config.stream, split="all"))
    assert published_beside([group(whole)], {}) is None


def test_other_data_and_other_sizes_are_said():
    config = Config(Choice("/some/where/ml"), StreamConfig(), Choice("lstm", {"size": "small"}))
    assert published_beside([group(config)], {}) is None
    assert published_beside([group(config)], wanted(["other=multilingual-10k"])) is None
    for words in (["ml=multilingual-10k"], ["multilingual-10k", "other=multidomain-10k"]):
        published = published_beside([group(config)], wanted(words))
        assert published.setting == "multilingual-10k"
        assert published.departures.startswith("other data: wmt-news: N = 100, λ = 10,000")
    small = group(preset("multilingual-10k", size="small"))
    assert published_beside([small], {}).departures == "other models: size paper"
    unsized = group(preset("multilingual-10k", "unigram"))
    assert published_beside([unsized], {}).departures == ""


def test_its_own_setting_goes_before_what_is_asked_for():
    published = published_beside([group(preset("multilingual-10k"))], {"": "multidomain-20k"})
    assert published.setting == "multilingual-10k"


def test_an_unknown_setting_is_one_sentence():
    with pytest.raises(CalmError, match="no setting 'multilingual': take one of multilingual-10k"):
        wanted(["ml=multilingual"])
