import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.metrics import Records, measure, student_975, summarise


def records_of(fragments):
    """Records of [(class, losses), …]."""
    return Records(
        fragment=np.repeat(np.arange(len(fragments)), [len(losses) for _, losses in fragments]),
        class_name=np.array([name for name, losses in fragments for _ in losses], dtype=np.str_),
        loss=np.array([loss for _, losses in fragments for loss in losses]),
        fragments=len(fragments),
    )


def transcription(fragments, only=None):
    """The definitions read aloud, batch by batch: ppl, ppl@sw, rec, curve."""
    number = len(fragments)
    counted = [i for i in range(number) if i >= number / 2]
    all_losses = []
    for i in counted:
        name, losses = fragments[i]
        if only is None or name == only:
            for loss in losses:
                all_losses.append(loss)
    ppl = math.exp(sum(all_losses) / len(all_losses)) if all_losses else math.nan
    first_batches, waits, curve = [], [], [[] for _ in range(15)]
    for i in counted:
        name, losses = fragments[i]
        if i == counted[-1] or (only is not None and name != only):
            continue
        earlier = [j for j in counted if j < i and fragments[j][0] == name]
        if not earlier:
            continue
        head = losses[:10]
        first_batches.append(sum(head) / len(head))
        previous = fragments[earlier[-1]][1]
        threshold = sum(previous) / len(previous)
        passed = 0
        for loss in losses:
            if loss < threshold:
                break
            passed += 1
        waits.append(passed)
        for k in range(15):
            if k < len(losses):
                curve[k].append(losses[k])

    def mean(values):
        return sum(values) / len(values) if values else math.nan

    return ppl, math.exp(mean(first_batches)), mean(waits), [mean(values) for values in curve]


losses = st.lists(st.floats(0, 6), min_size=1, max_size=25)
runs_of_fragments = st.lists(st.tuples(st.sampled_from("abc"), losses), min_size=1, max_size=24)


@given(runs_of_fragments)
def test_metrics_equal_a_transcription_of_the_definitions(fragments):
    result = measure(records_of(fragments))
    ppl, at_switch, recovery, curve = transcription(fragments)
    assert result.ppl == pytest.approx(ppl, nan_ok=True)
    assert result.ppl_at_switch == pytest.approx(at_switch, nan_ok=True)
    assert result.recovery == pytest.approx(recovery, nan_ok=True)
    assert result.bits == pytest.approx(math.log2(ppl), nan_ok=True)
    assert list(result.curve) == pytest.approx(curve, nan_ok=True)
    counted = fragments[math.ceil(len(fragments) / 2) :]
    assert set(result.per_class) == {name for name, _ in counted}
    for name, scores in result.per_class.items():
        expected = transcription(fragments, only=name)[:3]
        found = (scores.ppl, scores.ppl_at_switch, scores.recovery)
        assert found == pytest.approx(expected, nan_ok=True)


def test_the_first_half_does_not_count():
    tail = [("a", [1.0, 2.0]), ("b", [3.0]), ("a", [1.0, 1.0]), ("b", [2.0])]
    for head in ([("a", [9.0] * 4)] * 4, [("b", [0.1])] * 4):
        other = measure(records_of([("c", [5.0])] * 4 + tail))
        assert measure(records_of(head + tail)).to_dict() == other.to_dict()


def test_losses_that_never_recover_count_the_whole_fragment():
    fragments = [("x", [9.0])] * 4 + [("a", [1.0]), ("a", [2.0] * 7), ("b", [1.0]), ("c", [1.0])]
    assert measure(records_of(fragments)).recovery == 7


def test_a_loss_equal_to_the_mean_is_not_yet_below_it():
    fragments = [("x", [9.0])] * 3 + [("a", [2.0]), ("a", [2.0, 1.9]), ("b", [1.0])]
    assert measure(records_of(fragments)).recovery == 1


def test_what_is_undefined_is_none_in_plain_data():
    data = measure(records_of([("a", [1.0]), ("b", [2.0])])).to_dict()
    assert data["ppl"] == pytest.approx(math.exp(2))
    assert data["ppl_at_switch"] is None
    assert data["recovery"] is None
    assert data["curve"] == [None] * 15


def test_a_hopeless_loss_is_an_infinite_perplexity():
    assert measure(records_of([("a", [1.0]), ("a", [1000.0])])).ppl == math.inf


def test_summary_over_seeds():
    summary = summarise([1.0, 2.0, 3.0])
    assert (summary.mean, summary.deviation, summary.seeds) == (2.0, 1.0, 3)
    assert summary.interval == pytest.approx(4.30265 / math.sqrt(3), rel=1e-5)
    assert math.isnan(summarise([1.0]).interval)
    assert summarise([1.0, math.inf]).mean == math.inf
    assert math.isnan(summarise([1.0, math.inf]).deviation)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.70620), (2, 4.30265), (3, 3.18245), (4, 2.77645), (9, 2.26216), (30, 2.04227)],
)
def test_quantiles_of_student_agree_with_the_tables(degrees, quantile):
    assert student_975(degrees) == pytest.approx(quantile, abs=1e-5)
