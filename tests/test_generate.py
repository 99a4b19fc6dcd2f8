import numpy as np
import pytest
import torch

from calm.config import Choice, Config, StreamConfig
from calm.errors import CalmError
from calm.generate import generate, sample
from calm.learners.experts import Experts
from calm.learners.simple import Unigram
from calm.run import start
from helpers import calm


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    stream = StreamConfig(fragments=10, mean_length=3000)
    return {
        name: start(
            Config(stream=stream, learner=Choice(name, options)),
            tmp_path_factory.mktemp("runs") / name,
        ).path
        for name, options in (
            ("lstm", {"size": "tiny", "iterations": 5}),
            ("floor-known", {}),
            ("floor", {}),
        )
    }


def test_text_has_its_length_and_follows_the_seed(runs):
    text = generate(runs["lstm"], 120, seed=1)
    assert len(text) == 120
    assert generate(runs["lstm"], 120, seed=1) == text
    assert generate(runs["lstm"], 120, seed=2) != text


@pytest.mark.parametrize("name", ["floor-known", "floor"])
def test_who_knows_a_language_writes_its_words(runs, synthetic, name):
    for index, class_name in enumerate(synthetic.classes):
        text = generate(runs[name], 400, class_name)
        for mark in ",.?!":
            text = text.replace(mark, " ")
        words = text.split()[1:-1]
        lexicon = {word.strip() for word in synthetic.languages[index].spelling}
        assert len(words) > 30
        assert sum(word in lexicon for word in words) >= len(words) - 1


def test_a_class_primes_the_learner(runs, synthetic):
    shares = {}
    for name in ("alma", "coro"):
        text = generate(runs["lstm"], 1500, name)
        shares[name] = text.count("č") / len(text)  # only coro has this letter
    assert shares["coro"] > 2 * shares["alma"]


def test_samples_follow_the_predicted_distribution():
    learner = Unigram(4, seed=0, prior=0.5)
    learner.learn(np.zeros((1, 1), np.int64), np.array([[0] * 10 + [1] * 30 + [3] * 60]))
    tokens = [
        row for _, row in zip(range(3000), sample(learner, np.zeros(2, np.int64), 0), strict=False)
    ]
    frequency = np.bincount(np.concatenate(tokens), minlength=4) / 6000
    expected = np.array([10.5, 30.5, 0.5, 60.5]) / 102
    assert np.abs(frequency - expected).max() < 0.025


class Tensor(Unigram):
    """Predicts with a tensor that gradients flow to."""

    def predict(self, inputs):
        return torch.tensor(super().predict(inputs), requires_grad=True)


def test_predictions_may_be_tensors_that_gradients_flow_to():
    expected = sample(Unigram(4, seed=0), np.zeros(2, np.int64), 0)
    found = sample(Tensor(4, seed=0), np.zeros(2, np.int64), 0)
    for _, x, y in zip(range(20), expected, found, strict=False):
        assert np.array_equal(x, y)


def test_generating_a_token_at_a_time_is_reading_it():
    learner = Experts(9, seed=2, hidden=12, embedding=6)
    tokens = np.array(
        [row for _, row in zip(range(12), sample(learner, np.array([3, 5]), 4), strict=False)]
    )
    fresh = Experts(9, seed=2, hidden=12, embedding=6)
    inputs = np.concatenate([[[3, 5]], tokens[:-1]])
    along = np.exp(fresh.predict(inputs).astype(np.float64)).cumsum(axis=2)
    from calm.randomness import Draw

    draw = Draw("generate", 4)
    for j in range(12):
        for row in range(2):
            point = draw.uniform() * along[j, row, -1]
            assert (
                abs(along[j, row] - point).min() < 1e-4
                or tokens[j, row] == (along[j, row] <= point).sum()
            )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"class_name": "klingon"}, "no class 'klingon': take one of alba"),
        ({"length": 0}, "length is 0"),
    ],
)
def test_wrong_wishes_are_one_sentence(runs, options, words):
    with pytest.raises(CalmError, match=words):
        generate(runs["lstm"], **{"length": 5, **options})


def test_the_command_prints_the_text(runs, monkeypatch, capsys):
    arguments = ("generate", runs["lstm"], "--length", "50", "--class", "coro")
    code, out, _ = calm(monkeypatch, capsys, *arguments)
    assert code == 0
    assert out == generate(runs["lstm"], 50, "coro") + "\n"
