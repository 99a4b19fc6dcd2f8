import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.errors import CalmError
from calm.randomness import Draw
from calm.stream.plan import deal_classes, draw_length, make_plan


@given(classes=st.integers(2, 7), each=st.integers(1, 30), seed=st.integers(0, 10**6))
def test_classes_are_dealt_evenly_and_neighbours_differ(classes, each, seed):
    dealt = np.array(deal_classes(classes, classes * each, Draw(seed)))
    assert np.bincount(dealt).tolist() == [each] * classes
    assert (dealt[1:] != dealt[:-1]).all()


def test_every_order_without_equal_neighbours_comes_up():
    orders = {tuple(deal_classes(3, 6, Draw(seed))) for seed in range(3000)}
    assert len(orders) == 30  # of the 90 orders of aabbcc, 30 have no equal neighbours


@pytest.mark.parametrize("fragments", [0, 1, 7, -3])
def test_an_uneven_deal_is_refused(fragments):
    with pytest.raises(CalmError, match="take a multiple of 3, such as 3 or 6|such as 6 or 9"):
        deal_classes(3, fragments, Draw(0))


def test_one_class_is_one_fragment():
    assert deal_classes(1, 1, Draw(0)) == [0]
    with pytest.raises(CalmError, match="single class"):
        deal_classes(1, 2, Draw(0))


def test_lengths_follow_the_definition():
    draw, twin = Draw("lengths", 5), Draw("lengths", 5)
    for _ in range(200):
        exponential = -math.log(1 - twin.uniform() * (1 - math.exp(-10)))
        assert draw_length(50, draw) == max(1, round(50 * (0.1 + exponential)))


def test_mean_length_is_about_a_tenth_more():
    draw = Draw("mean")
    lengths = [draw_length(50, draw) for _ in range(20_000)]
    assert np.mean(lengths) == pytest.approx(55, rel=0.02)
    assert min(lengths) >= 5
    assert max(lengths) <= 505


def test_a_tiny_mean_still_gives_a_batch():
    draw = Draw("tiny")
    assert {draw_length(0.01, draw) for _ in range(100)} == {1}


@given(
    classes=st.integers(2, 5),
    each=st.integers(1, 6),
    mean=st.floats(0.1, 30),
    window=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_fragments_lie_end_to_end(classes, each, mean, window, seed):
    plans = {
        boundary: make_plan(classes, classes * each, mean, window, boundary, seed)
        for boundary in ("seamless", "paper")
    }
    for boundary, plan in plans.items():
        assert plan.first_batch.tolist() == [
            sum(plan.lengths[:i]) for i in range(len(plan.lengths))
        ]
        for c in range(classes):
            taken = 0
            for i in np.flatnonzero(plan.classes == c):
                taken += 1 if boundary == "paper" or i == 0 else 0
                assert plan.position[i] == taken
                taken += plan.lengths[i] * window
            assert plan.used[c] == taken
    assert np.array_equal(plans["seamless"].lengths, plans["paper"].lengths)
    assert np.array_equal(plans["seamless"].classes, plans["paper"].classes)
