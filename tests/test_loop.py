import math

import numpy as np
import pytest
import torch

import calm
from calm.learners.simple import Unigram
from calm.loop import prequential, score
from calm.stream import Stream


@pytest.fixture
def stream(synthetic):
    return Stream(synthetic, 10, 1000, rows=3, window=8, seed=2)


def test_losses_equal_a_loop_by_hand(stream):
    size = len(stream.vocabulary)
    counts = [0.5] * size
    expected = []
    for batch in stream.batches():
        loss = 0.0
        for token in batch.targets.ravel():
            loss -= math.log(counts[token] / sum(counts))
        expected.append(loss / batch.targets.size)
        for token in batch.targets.ravel():
            counts[token] += 1
    records = list(prequential(stream, Unigram(size, seed=0)))
    assert [r.loss for r in records] == pytest.approx(expected)
    assert [r.step for r in records] == list(range(len(stream)))
    assert [r.fragment for r in records] == [b.fragment for b in stream.batches()]
    assert [r.class_name for r in records] == [
        stream.classes[b.class_index] for b in stream.batches()
    ]


class Diary(Unigram):
    """Notes the order of what happens to it."""

    def __init__(self, vocabulary):
        super().__init__(vocabulary, 0)
        self.notes = []

    def predict(self, inputs):
        self.notes.append("predict")
        return super().predict(inputs)

    def learn(self, inputs, targets):
        self.notes.append("learn")
        super().learn(inputs, targets)


def test_a_record_is_out_before_its_batch_is_learned(stream):
    learner = Diary(len(stream.vocabulary))
    for record in prequential(stream, learner):
        assert learner.notes == ["predict", "learn"] * record.step + ["predict"]
    assert learner.notes == ["predict", "learn"] * len(stream)


def test_a_loop_of_your_own_gets_the_same_numbers(stream):
    size = len(stream.vocabulary)
    learner, scorer = Unigram(size, seed=0), calm.Scorer(stream)
    for batch in stream:
        scorer.score(learner.predict(batch.inputs))
        learner.learn(batch.inputs, batch.targets)
    expected = calm.evaluate(stream, Unigram(size, seed=0))
    assert scorer.result().to_dict() == expected.to_dict()


def test_reading_targets_before_scoring_is_an_error(stream):
    calm.Scorer(stream)
    batch = next(iter(stream))
    with pytest.raises(calm.CalmError, match="batch 0: its targets were read before"):
        _ = batch.targets


def test_every_batch_is_scored_once(stream):
    uniform = np.full((8, 3, len(stream.vocabulary)), -np.log(len(stream.vocabulary)))
    scorer = calm.Scorer(stream)
    with pytest.raises(calm.CalmError, match="no batch to score"):
        scorer.score(uniform)
    batches = iter(stream)
    next(batches)
    scorer.score(uniform)
    with pytest.raises(calm.CalmError, match="no batch to score"):
        scorer.score(uniform)
    next(batches)
    with pytest.raises(calm.CalmError, match="batch 1 was never scored"):
        next(batches)


def test_arrays_and_tensors_score_alike(stream):
    batch = next(stream.batches())
    logits = torch.randn(8, 3, len(stream.vocabulary), generator=torch.Generator().manual_seed(0))
    logits.requires_grad_()
    tensor = torch.log_softmax(logits, dim=-1)
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), torch.tensor(batch.targets).flatten()
    )
    size = len(stream.vocabulary)
    assert score(tensor, batch, size) == pytest.approx(expected.item(), rel=1e-6)
    assert score(tensor.detach().numpy(), batch, size) == score(tensor, batch, size)
    with pytest.raises(calm.CalmError, match="in float32"):
        score(tensor.bfloat16(), batch, size)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda p: p[:-1], "batch 0: the learner predicted an array of shape"),
        (lambda p: None, "predicted no array"),
        (lambda p: p * np.nan, "predicted NaN"),
        (lambda p: p + 0.1, "probabilities sum to 1.10517, not 1"),
        (lambda p: np.where(np.isfinite(p), -np.inf, p), "probability 0 to what came"),
    ],
)
def test_what_is_no_prediction_is_refused(stream, spoil, words):
    batch, size = next(stream.batches()), len(stream.vocabulary)
    with pytest.raises(calm.CalmError, match=words):
        score(spoil(np.full((8, 3, size), -np.log(size))), batch, size)


def test_all_that_the_package_promises_is_there():
    for name in calm.__all__:
        assert getattr(calm, name)
    with pytest.raises(AttributeError):
        _ = calm.nothing


def test_a_result_is_that_of_a_whole_stream(stream):
    uniform = np.full((8, 3, len(stream.vocabulary)), -np.log(len(stream.vocabulary)))
    scorer = calm.Scorer(stream)
    for batch in stream:
        scorer.score(uniform)
        if batch.step == 5:
            break
    with pytest.raises(calm.CalmError, match=f"6 of {len(stream)} batches are scored"):
        scorer.result()
    for _ in stream:  # from the beginning, after an abandoned loop
        scorer.score(uniform)
    assert scorer.result().ppl == pytest.approx(len(stream.vocabulary))
    assert len([batch.targets for batch in stream]) == len(stream)  # the stream is free again


def test_what_is_no_learner_or_no_corpora_is_said(stream):
    for wrong in ("unigram", Unigram):
        with pytest.raises(calm.CalmError, match="a learner is needed"):
            calm.evaluate(stream, wrong)
    with pytest.raises(calm.CalmError, match="a stream needs corpora"):
        Stream("synthetic")
    with pytest.raises(calm.CalmError, match="a learner is named by a text"):
        calm.learner(Unigram, vocabulary=3)
