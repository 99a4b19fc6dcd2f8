import base64

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calm.report.page.thin import curve, heat_map, thin

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


def test_a_heat_map_has_an_expert_per_row_in_the_order_of_the_classes_that_use_them():
    names = np.array(["a", "b"] * 20)
    gates = np.where((names == "a")[:, None], [0.1, 0.9, 0.0], [0.8, 0.2, 0.0])
    found = heat_map(gates, names, 1000)
    levels = np.frombuffer(base64.b64decode(found["values"]), "u1").reshape(3, 40)
    weights = found["low"] + levels / 255 * (found["high"] - found["low"])
    np.testing.assert_allclose(weights, gates[:, [1, 2, 0]].T, atol=0.002)


def test_a_heat_map_has_the_means_of_its_steps():
    gates = np.arange(40.0).reshape(20, 2) - 20
    found = heat_map(gates, np.array(["a"] * 20), 8)
    assert (found["step"], found["experts"]) == (5, 2)
    levels = np.frombuffer(base64.b64decode(found["values"]), "u1").reshape(2, 4)
    weights = found["low"] + levels / 255 * (found["high"] - found["low"])
    means = gates.reshape(4, 5, 2).mean(axis=1)
    clipped = means.clip(found["low"], found["high"])
    np.testing.assert_allclose(weights, clipped[:, ::-1].T, atol=found["high"] / 100)
