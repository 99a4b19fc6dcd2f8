import numpy as np
import pytest

import calm
from calm.corpus.synthetic import SyntheticCorpora
from calm.learners.floor import Floor, FloorKnown
from calm.loop import prequential
from calm.stream import Stream


def losses(stream, cls):
    learner = cls(len(stream.vocabulary), 0, stream)
    return np.array([record.loss for record in prequential(stream, learner)])


@pytest.mark.parametrize("boundary", ["seamless", "paper"])
def test_the_informed_floor_is_the_entropy(synthetic, boundary):
    stream = Stream(synthetic, 50, 20_000, seed=1, boundary=boundary)
    found = losses(stream, FloorKnown)
    weights = np.bincount(stream.plan.classes, weights=stream.plan.lengths)
    expected = weights @ synthetic.entropy_rates() / weights.sum()
    error = found.std() / np.sqrt(len(found))
    assert found.mean() == pytest.approx(expected, abs=4 * error)
    assert error < 0.003


@pytest.mark.parametrize("boundary", ["seamless", "paper"])
def test_inferring_the_class_costs_something_only_where_it_switches(synthetic, boundary):
    stream = Stream(synthetic, 40, 4000, seed=1, boundary=boundary)
    inferred, known = losses(stream, Floor), losses(stream, FloorKnown)
    first = np.zeros(len(stream), dtype=bool)
    first[stream.plan.first_batch] = True
    assert np.allclose(inferred[~first], known[~first], atol=0.02)
    excess = (inferred - known)[first][1:]
    if boundary == "seamless":
        assert 0.05 < excess.mean() < 0.3
    else:  # there the first input gives the switch away
        assert excess.mean() < 0.05


def test_the_first_prediction_is_bayes_by_hand():
    corpora = SyntheticCorpora(tree="(x:0.4,y:0.4,z:0.4);", lexicon=120, seed=1)
    stream = Stream(corpora, 6, 500, rows=2, window=3, seed=0)
    floor = Floor(len(stream.vocabulary), 0, stream)
    batch = next(stream.batches())
    predicted = np.exp(floor.predict(batch.inputs))
    weights, along = np.full(3, 1 / 3), []
    for predictor in corpora.predictors():
        probabilities, _ = predictor.trace(predictor.start(2), batch.inputs)
        along.append(probabilities)
    for j in range(3):
        for c in range(3):
            for row in range(2):
                weights[c] *= along[c][j, row, batch.inputs[j, row]]
        posterior = weights / weights.sum()
        expected = sum(posterior[c] * along[c][j + 1] for c in range(3))
        assert np.allclose(predicted[j], expected, atol=1e-7)


def test_a_switch_is_expected_at_the_streams_rate():
    corpora = SyntheticCorpora(tree="(x:2,y:2);", lexicon=120, seed=1)
    stream = Stream(corpora, 6, 900, rows=2, window=5, seed=0)
    floor = Floor(len(stream.vocabulary), 0, stream)
    batches = list(stream.batches())
    for batch in batches[:4]:
        floor.learn(batch.inputs, batch.targets)
    assert batches[4].class_index == batches[3].class_index == floor._reader.current
    now = floor._reader.current
    x, y = corpora.predictors()
    continued, _ = (x, y)[now].trace(floor._reader.states[now], batches[4].inputs[:0])
    fresh, _ = (x, y)[1 - now].trace((x, y)[1 - now].start(2), batches[4].inputs[:0])
    rate = (stream.fragments - 1) / len(stream)
    expected = (1 - rate) * continued[0] + rate * fresh[0]
    assert np.allclose(np.exp(floor.predict(batches[4].inputs))[0], expected, atol=1e-7)


def test_floors_know_synthetic_text_only(numbered):
    stream = Stream(numbered, 9, 500)
    with pytest.raises(calm.CalmError, match="synthetic languages only"):
        calm.learner("floor", vocabulary=10, stream=stream)
    with pytest.raises(calm.CalmError, match="needs the stream"):
        calm.learner("floor-known", vocabulary=10)
