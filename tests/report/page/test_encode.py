import base64

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calm.analysis import alike_together
from calm.report.page.encode import curve, heat_map
from calm.report.thin import thin

LOSSES = arrays(np.float64, st.integers(1, 300), elements=st.floats(0, 50))


@given(LOSSES, st.integers(1, 100))
def test_every_step_keeps_its_extremes_and_its_mean(loss, points):
    step, lows, highs, means = thin(loss, points)
    assert len(means) <= points
    parts = [loss[start : start + step] for start in range(0, len(loss), step)]
    assert lows.tolist() == [part.min() for part in parts]
    assert highs.tolist() == [part.max() for part in parts]
    np.testing.assert_allclose(means, [part.mean() for part in parts], rtol=1e-12)


@given(LOSSES, st.integers(3, 400))
def test_a_curve_has_no_more_numbers_than_it_may_and_the_same_extremes(loss, numbers):
    found = curve(loss, numbers)
    values = np.frombuffer(base64.b64decode(found["values"]), "<f4")
    assert len(values) <= numbers
    assert values.min() == np.float32(loss.min())
    assert values.max() == np.float32(loss.max())
    if len(loss) <= numbers:
        assert values.tolist() == loss.astype(np.float32).tolist()


def weights_of(found):
    levels = np.frombuffer(base64.b64decode(found["values"]), "u1").reshape(found["experts"], -1)
    return found["low"] + levels / 255 * (found["high"] - found["low"])


def test_a_heat_map_has_an_expert_per_row_in_the_order_in_which_they_are_alike():
    gates = np.random.default_rng(0).uniform(0, 1, (40, 5))
    found = heat_map(gates, np.array(["a"] * 40), 1000)
    assert found["low"] == 0
    expected = gates[:, alike_together(gates)].clip(0, found["high"])
    np.testing.assert_allclose(weights_of(found), expected.T, atol=0.002)


def test_a_heat_map_has_the_means_of_its_steps():
    gates = np.arange(40.0).reshape(20, 2) - 20
    found = heat_map(gates, np.array(["a"] * 20), 8)
    assert (found["step"], found["experts"]) == (5, 2)
    means = gates.reshape(4, 5, 2).mean(axis=1)[:, alike_together(gates)]
    clipped = means.clip(found["low"], found["high"])
    np.testing.assert_allclose(weights_of(found), clipped.T, atol=found["high"] / 100)
