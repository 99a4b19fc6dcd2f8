"""Each way of breaking the protocol is found, and called by its name."""

import random

import numpy as np
import pytest
import torch

from calm.audit import check
from calm.learners.simple import Unigram
from calm.loop import prequential
from calm.stream import Stream


class Peeks(Unigram):
    """Knows the next input, which is the target, at every position but the last."""

    def predict(self, inputs):
        predicted = super().predict(inputs).copy()
        size = predicted.shape[-1]
        predicted[:-1] = np.log(0.5 * np.eye(size)[inputs[1:]] + 0.5 / size)
        return predicted


class PeeksALittle(Peeks):
    """Mixes a thousandth of the next input into an honest prediction."""

    def predict(self, inputs):
        honest, leaky = np.exp(Unigram.predict(self, inputs)), np.exp(super().predict(inputs))
        return np.log(0.999 * honest + 0.001 * leaky)


class LearnsInPredict(Unigram):
    def predict(self, inputs):
        predicted = super().predict(inputs)
        self._counts += np.bincount(inputs.ravel(), minlength=len(self._counts))
        return predicted


class CountsItsPredictions(Unigram):
    """What predict leaves behind shows only after the next learning."""

    calls = 0

    def predict(self, inputs):
        self.calls += 1
        return super().predict(inputs)

    def learn(self, inputs, targets):
        super().learn(inputs, targets)
        self._counts[0] += self.calls


class Unnormalised(Unigram):
    def predict(self, inputs):
        return super().predict(inputs) + 0.3


class UnnormalisedSometimes(Unigram):
    """Off at one position of the window only."""

    def predict(self, inputs):
        predicted = super().predict(inputs).copy()
        predicted[3, 2] += 0.0005
        return predicted


class NaNAfterFifty(Unigram):
    steps = 0

    def predict(self, inputs):
        predicted = super().predict(inputs).copy()
        return predicted * np.nan if self.steps >= 50 else predicted

    def learn(self, inputs, targets):
        self.steps += 1
        super().learn(inputs, targets)


class UsesGlobalRandom(Unigram):
    def learn(self, inputs, targets):
        self._counts[random.randrange(len(self._counts))] += 1
        super().learn(inputs, targets)


class UsesGlobalNumpy(Unigram):
    def learn(self, inputs, targets):
        self._counts[np.random.randint(len(self._counts))] += 1
        super().learn(inputs, targets)


class UsesGlobalTorch(Unigram):
    def __init__(self, vocabulary, seed):
        super().__init__(vocabulary, seed, prior=float(torch.rand(())) + 0.1)


class SeedsGlobalNumpy(Unigram):
    """Puts the global generator where it stood after the last time."""

    def __init__(self, vocabulary, seed):
        np.random.seed(seed)
        super().__init__(vocabulary, seed, prior=np.random.rand() + 0.1)


class PeeksAtTimes(Peeks):
    """Looks ahead in two of three batches."""

    steps = 0

    def predict(self, inputs):
        return super().predict(inputs) if self.steps % 3 else Unigram.predict(self, inputs)

    def learn(self, inputs, targets):
        self.steps += 1
        super().learn(inputs, targets)


class StateOfNumbers(Unigram):
    def state(self):
        return {1: self._counts}


class NestedState(Unigram):
    def state(self):
        return {"net": super().state()}


class NoStateAtAll(Unigram):
    def state(self):
        return None


class AnswersInItsOwnWay(np.ndarray):
    """An array that shows probability 1 to whoever picks the targets out."""

    def __getitem__(self, key):
        picked = super().__getitem__(key)
        return picked * 0 if isinstance(key, tuple) and len(key) == 3 else picked


class ReturnsATrickArray(Unigram):
    def predict(self, inputs):
        return super().predict(inputs).copy().view(AnswersInItsOwnWay)


class LosesState(Unigram):
    momentum = 0

    def learn(self, inputs, targets):
        self.momentum += 1
        self._counts[self.momentum % len(self._counts)] += self.momentum
        super().learn(inputs, targets)


class ForgetsToRead(Unigram):
    """Predicts from the number of inputs it has met in this row, which reading does not raise."""

    met = 0

    def predict(self, inputs):
        predicted = super().predict(inputs).copy()
        for j in range(len(inputs)):
            weights = np.exp(predicted[j]) * (
                1 + np.arange(predicted.shape[-1]) % (self.met + j + 2)
            )
            predicted[j] = np.log(weights / weights.sum(axis=-1, keepdims=True))
        return predicted


class WrongShape(Unigram):
    def predict(self, inputs):
        return super().predict(inputs).reshape(-1, len(self._counts))


class WritesOnInputs(Unigram):
    def learn(self, inputs, targets):
        inputs += 1


FAULTS = [
    (Peeks, "no looking ahead", "it looks ahead: changing inputs after position"),
    (PeeksALittle, "no looking ahead", "it looks ahead"),
    (LearnsInPredict, "predicting leaves no trace", "does it learn"),
    (CountsItsPredictions, "predicting leaves no trace", "does it learn in predict?"),
    (Unnormalised, "probabilities sum to 1", "probabilities sum to 1.34986, not 1"),
    (UnnormalisedSometimes, "probabilities sum to 1", "probabilities sum to 1.0005, not 1"),
    (NaNAfterFifty, "probabilities sum to 1", "batch 50: the learner predicted NaN"),
    (UsesGlobalRandom, "no global random numbers", "the global generator of random"),
    (UsesGlobalNumpy, "no global random numbers", "the global generator of numpy"),
    (
        UsesGlobalTorch,
        "no global random numbers",
        "when it is made: it draws from or seeds the global generator of torch",
    ),
    (LosesState, "a checkpoint holds everything", "state() misses something"),
    (ForgetsToRead, "reading carries on", "after read(first half)"),
    (
        SeedsGlobalNumpy,
        "no global random numbers",
        "draws from or seeds the global generator of nu",
    ),
    (PeeksAtTimes, "no looking ahead", "it looks ahead"),
    (StateOfNumbers, "a checkpoint holds everything", "must name its arrays by texts"),
    (NestedState, "a checkpoint holds everything", "'net' is a dict"),
    (NoStateAtAll, "a checkpoint holds everything", "a dict of arrays, not NoneType"),
    (WrongShape, "probabilities sum to 1", "an array of shape (40, 38)"),
    (WritesOnInputs, "probabilities sum to 1", "it failed with ValueError"),
]


@pytest.mark.parametrize(("cls", "rule", "words"), FAULTS, ids=[cls.__name__ for cls, *_ in FAULTS])
def test_the_audit_names_the_fault(synthetic, cls, rule, words):
    stream = Stream(synthetic, 10, 1600, rows=4, window=10, seed=1)
    size = len(stream.vocabulary)
    words = words.replace("(40, 38)", f"(40, {size})")
    faults = {o.rule: o.fault for o in check(lambda: cls(size, 0), stream, 70) if o.fault}
    assert rule in faults
    assert words in faults[rule]


def test_one_that_learns_in_predict_is_not_said_to_look_ahead(synthetic):
    stream = Stream(synthetic, 10, 1600, rows=4, window=10)
    outcomes = check(lambda: LearnsInPredict(len(stream.vocabulary), 0), stream, 40)
    faults = {o.rule: o.fault for o in outcomes}
    assert "does it learn or draw in predict?" in faults["no looking ahead"]
    assert "it looks ahead:" not in faults["no looking ahead"]


def test_an_array_that_answers_in_its_own_way_is_scored_like_any_other(synthetic):
    stream = Stream(synthetic, 10, 800, rows=4, window=10, seed=1)
    size = len(stream.vocabulary)
    tricked = [r.loss for r in prequential(stream, ReturnsATrickArray(size, 0))]
    assert tricked == [r.loss for r in prequential(stream, Unigram(size, 0))]


def test_random_draws_also_show_as_losses_that_differ(synthetic):
    stream = Stream(synthetic, 10, 1600, rows=4, window=10, seed=1)
    outcomes = check(lambda: UsesGlobalNumpy(len(stream.vocabulary), 0), stream, 70)
    faults = {o.rule: o.fault for o in outcomes}
    assert "with the same seed" in faults["same seed, same losses"]
    assert faults["no looking ahead"] is None
