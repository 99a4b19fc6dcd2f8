import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.metrics import Result, student_975, student_within, summarise
from calm.report.runs import Group
from calm.report.significance import best, differences, holm, p_value

numbers = st.floats(1, 9)


def result(ppl, recovery=1.0):
    return Result(ppl, ppl + 1, recovery, 0.0, {}, ())


def group(learner, by_seed, oracle=False):
    results = tuple(result(ppl) for ppl in by_seed.values())
    return Group(learner, oracle, results, seeds=tuple(by_seed))


def of_metric(found, metric="ppl"):
    return {(each.learner, each.against): each for each in found if each.metric == metric}


def test_p_values_agree_with_a_table():
    # Student's sleep data: 10 pairs, t = -4.0621 with 9 degrees of freedom, p = 0.002833
    extra = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    assert p_value(summarise(extra)) == pytest.approx(0.002833, abs=1e-6)
    assert p_value(summarise([1.0, 3.0])) == pytest.approx(2 * (0.5 - math.atan(2) / math.pi))


@given(st.integers(1, 40))
def test_the_quantile_is_where_the_distribution_says(degrees):
    assert student_within(student_975(degrees), degrees) == pytest.approx(0.95)
    assert student_within(0, degrees) == 0
    assert student_within(math.inf, degrees) == pytest.approx(1)


def test_p_is_the_share_of_samples_that_are_as_extreme():
    """Under no difference p is uniform: of many samples, a tenth is below 0.1."""
    samples = np.random.default_rng(0).normal(size=(4000, 5))
    found = np.array([p_value(summarise(list(sample))) for sample in samples])
    for level in (0.05, 0.1, 0.5):
        assert (found < level).mean() == pytest.approx(level, abs=0.02)


def test_values_that_are_all_alike():
    assert p_value(summarise([0.0, 0.0, 0.0])) == 1
    assert p_value(summarise([0.5, 0.5])) == 0
    assert math.isnan(p_value(summarise([0.5])))


@given(st.lists(st.floats(0, 1), max_size=8), st.integers(0, 8))
def test_holm_as_its_author_puts_it(values, place):
    """Reject the smallest p if it is below level / m, the next if below level / (m - 1), …"""
    with_gap = [*values[:place], math.nan, *values[place:]]
    corrected = holm(with_gap)
    gap = min(place, len(values))
    assert math.isnan(corrected.pop(gap))
    for level in (0.01, 0.05, 0.3):
        rejected, left = [False] * len(values), len(values)
        for i in sorted(range(len(values)), key=values.__getitem__):
            if values[i] * left >= level:
                break
            rejected[i], left = True, left - 1
        assert [p < level for p in corrected] == rejected


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=6))
def test_pairs_are_taken_seed_by_seed(pairs):
    ours = group("ours", {seed: x for seed, (x, _) in enumerate(pairs)})
    shuffled = {seed: pairs[seed][1] for seed in reversed(range(len(pairs)))}
    theirs = group("theirs", {**shuffled, 99: 1000.0})  # nobody else has seed 99
    found = of_metric(differences([ours, theirs], "theirs"))["ours", "theirs"]
    assert found.seeds == len(pairs)
    assert found.summary == summarise([x - y for x, y in pairs])
    assert found.p_holm == found.p


def test_contenders_are_compared_with_the_best_and_all_with_the_one_named():
    groups = [
        group("good", {0: 2.0, 1: 2.1, 2: 2.3}),
        group("fair", {0: 2.1, 1: 2.0, 2: 2.4}),
        group("bad", {0: 5.0, 1: 5.2, 2: 5.3}),
        group("told", {0: 1.0, 1: 1.1, 2: 1.2}, oracle=True),
    ]
    assert best(groups, "ppl").learner == "good"
    found = of_metric(differences(groups))
    assert set(found) == {("fair", "good"), ("bad", "good")}
    assert found["fair", "good"].tied
    assert not found["bad", "good"].tied
    assert found["bad", "good"].p_holm == pytest.approx(2 * found["bad", "good"].p)
    named = of_metric(differences(groups, "bad"))
    assert {pair for pair in named if pair[1] == "bad"} == {
        (name, "bad") for name in ("good", "fair", "told")
    }
    the_best = of_metric(differences(groups, "good"))
    assert set(the_best) == {(name, "good") for name in ("fair", "bad", "told")}


def test_where_there_is_no_test_nothing_is_claimed():
    few = [group("a", {0: 2.0, 1: 3.0}), group("b", {1: 2.9, 2: 4.5}), group("c", {7: 9.0})]
    for found in differences(few):
        assert found.seeds < 2
        assert not found.tied
        assert math.isnan(found.p_holm)
    lost = [group("a", {0: 2.0, 1: 2.2}), group("b", {0: math.inf, 1: 3.0})]
    assert all(math.isnan(each.p) for each in of_metric(differences(lost)).values())
    undefined = [group("a", {0: math.nan}), group("b", {0: math.nan})]
    assert best(undefined, "ppl") is None
    assert differences(undefined)[0].metric == "recovery"


def test_one_contender_is_not_called_the_best():
    assert best([group("a", {0: 1.0}), group("o", {0: 2.0}, oracle=True)], "ppl") is None
    assert differences([group("a", {0: 1.0})]) == []
