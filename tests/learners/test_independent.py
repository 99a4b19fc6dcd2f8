import numpy as np

from calm.learners.experts import Experts
from calm.learners.independent import IndependentLSTMs
from calm.loop import prequential
from calm.stream import Stream

SIZES = {"hidden": 12, "embedding": 8, "dropout": 0.1}


def test_each_class_has_an_lstm_that_sees_nothing_else(synthetic):
    stream = Stream(synthetic, 10, 1000, seed=1)
    vocabulary = len(stream.vocabulary)
    losses = [r.loss for r in prequential(stream, IndependentLSTMs(vocabulary, 5, stream, **SIZES))]
    alone = [Experts(vocabulary, 5 + c, **SIZES) for c in range(5)]
    for batch in stream:
        learner = alone[batch.class_index]
        picked = np.take_along_axis(learner.predict(batch.inputs), batch.targets[..., None], 2)
        assert np.isclose(-picked.mean(), losses[batch.step], atol=1e-6)
        learner.learn(batch.inputs, batch.targets)
