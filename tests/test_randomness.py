import math
import random

import numpy as np
import pytest

from calm.randomness import Draw


def test_draws_are_those_of_the_generator_python_guarantees():
    draw, twin = Draw("stream", 3), random.Random("stream 3")
    assert [draw.uniform() for _ in range(5)] == [twin.random() for _ in range(5)]


def test_draws_do_not_depend_on_the_global_generator():
    random.seed(1)
    first = Draw("x").uniform()
    random.seed(2)
    random.random()
    assert Draw("x").uniform() == first


def test_names_make_different_sources():
    assert Draw("a", 0).uniform() != Draw("b", 0).uniform() != Draw("b", 1).uniform()


def test_exponential_is_truncated_and_has_the_truncated_mean():
    draw = Draw("exponential")
    values = np.array([draw.exponential(limit=2.0) for _ in range(20_000)])
    assert values.min() >= 0 and values.max() <= 2
    mean = 1 - 2 * math.exp(-2) / (1 - math.exp(-2))
    assert values.mean() == pytest.approx(mean, abs=4 * values.std() / math.sqrt(len(values)))


def test_normal_and_weighted_have_the_right_moments():
    draw = Draw("moments")
    normal = np.array([draw.normal() for _ in range(20_000)])
    assert abs(normal.mean()) < 0.03
    assert normal.std() == pytest.approx(1, abs=0.03)
    counts = np.bincount([draw.weighted([1, 0, 3]) for _ in range(20_000)], minlength=3)
    assert counts[1] == 0
    assert counts[2] / 20_000 == pytest.approx(0.75, abs=0.015)
