import numpy as np
import pytest
import torch

import calm
from calm.learners.transformer import Transformer, positions

SMALL = {"width": 16, "heads": 2, "layers": 2, "context": 12, "warmup": 4}


def tokens(seed, *shape):
    return np.random.default_rng(seed).integers(0, 9, shape)


def test_it_sees_the_last_tokens_of_the_buffer_and_no_more():
    text = tokens(0, 40, 3)
    one, other = (Transformer(9, seed=1, **SMALL) for _ in range(2))
    changed = text.copy()
    changed[:8] = (changed[:8] + 1) % 9  # 12 tokens of context hold 8 … 19 when 15 … 19 are asked
    for learner, read in ((one, text), (other, changed)):
        for start in range(0, 15, 5):
            learner.read(read[start : start + 5])
    assert np.allclose(one.predict(text[15:20]), other.predict(text[15:20]), atol=1e-6)
    changed[8] = (text[8] + 1) % 9
    other.load_state(other.state() | {"carried.0": changed[3:15]})
    assert not np.allclose(one.predict(text[15:20]), other.predict(text[15:20]), atol=1e-6)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [("none", [1, 1, 1]), ("flat", [0.25, 1, 1]), ("decay", [0.25, 1, 0.5])],
)
def test_rates_rise_and_then_stay_or_fall(schedule, rates):
    network = Transformer(9, seed=1, schedule=schedule, **SMALL).network
    assert [network.learning_rate(step) for step in (0, 3, 15)] == pytest.approx(rates)


def test_positions_are_told_apart():
    table = positions(50, 16)
    assert table.shape == (50, 16)
    assert torch.cdist(table, table).fill_diagonal_(1).min() > 0.1


def test_it_learns():
    learner = Transformer(9, seed=2, dropout=0.1, learning_rate=5e-3, **SMALL)
    x = np.tile(np.arange(8), 5).reshape(20, 2)
    y = (x + 1) % 9
    losses = []
    for _ in range(80):
        losses.append(-np.take_along_axis(learner.predict(x), y[..., None], 2).mean())
        learner.learn(x, y)
    assert losses[-1] < losses[0] / 3


def test_impossible_options_are_refused():
    with pytest.raises(calm.CalmError, match="width is a multiple"):
        calm.learner("transformer", vocabulary=9, width=10, heads=4)
