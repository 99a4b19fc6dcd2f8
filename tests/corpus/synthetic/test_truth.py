import numpy as np
import pytest

from calm.corpus.synthetic import SyntheticCorpora
from calm.corpus.synthetic.generate import BLOCK


def surprise(corpora, predictor, c, tokens):
    states, losses = predictor.start(1), []
    for start in range(0, tokens, BLOCK):
        text = corpora.tokens(c, start, start + BLOCK).astype(np.int64)[:, None]
        probabilities, states = predictor.trace(states, text)
        assert np.allclose(probabilities.sum(axis=2), 1)
        losses.append(-np.log(probabilities[np.arange(BLOCK), 0, text[:, 0]]))
    return np.concatenate(losses)


def test_loss_of_the_truth_is_the_entropy(synthetic):
    for c, (predictor, entropy) in enumerate(
        zip(synthetic.predictors(), synthetic.entropy_rates(), strict=True)
    ):
        blocks = surprise(synthetic, predictor, c, 24 * BLOCK).reshape(24, BLOCK).mean(axis=1)
        error = blocks.std(ddof=1) / np.sqrt(len(blocks))
        assert blocks.mean() == pytest.approx(entropy, abs=4 * error)
        assert error < 0.005 * entropy


def test_entropy_of_a_chain_small_enough_to_enumerate():
    corpora = SyntheticCorpora(tree="(x:0,y:0);", lexicon=100)
    language = corpora.languages[0]
    next_token = language.next_token()
    values, vectors = np.linalg.eig(language.bigram.T)
    stationary = np.real(vectors[:, np.argmax(np.real(values))])
    stationary /= stationary.sum()
    bits = length = 0.0
    for category, weight in enumerate(stationary):
        for token, p in enumerate(next_token[category]):
            if p > 0:
                bits -= weight * p * np.log(p)
                length += weight * p * len(language.spelling[token])
    assert corpora.entropy_rates()[0] == pytest.approx(bits / length)


def test_prediction_equals_a_sum_over_all_words(synthetic):
    """After ' <mark> <prefix>', P(next letter) is a ratio of sums over the words that fit."""
    language, predictor = synthetic.languages[2], synthetic.predictors()[2]
    symbols = {letter: i for i, letter in enumerate(synthetic.vocabulary)}
    stop, words = language.category[language.spelling.index(".")], language.next_token()
    prefix = max((w for w in language.spelling if len(w) > 3), key=len)[:2]
    states = predictor.start(1)
    probabilities, _ = predictor.trace(states, np.array([[symbols[x]] for x in prefix]))
    fitting = [t for t, w in enumerate(language.spelling) if w.startswith(prefix)]
    whole = [t for t in fitting if language.spelling[t] == prefix]
    total = sum(words[stop, t] for t in fitting)
    for letter, index in symbols.items():
        expected = sum(
            words[stop, t] for t in fitting if language.spelling[t].startswith(prefix + letter)
        )
        for t in whole:
            starts = [u for u, w in enumerate(language.spelling) if w[0] == letter]
            expected += words[stop, t] * words[language.category[t], starts].sum()
        assert probabilities[len(prefix), 0, index] == pytest.approx(expected / total, abs=1e-12)


def test_following_in_two_steps_is_following_in_one(synthetic):
    predictor = synthetic.predictors()[0]
    text = synthetic.tokens(0, 0, 300).astype(np.int64).reshape(100, 3, order="F")
    whole, end = predictor.trace(predictor.start(3), text)
    first, middle = predictor.trace(predictor.start(3), text[:40])
    second, end_of_second = predictor.trace(middle, text[40:])
    assert np.array_equal(end, end_of_second)
    assert np.array_equal(np.concatenate([first[:-1], second]), whole)


def test_impossible_text_still_has_a_distribution_after_it(synthetic):
    predictor = synthetic.predictors()[0]
    text = np.random.default_rng(0).integers(0, len(synthetic.vocabulary), (500, 4))
    probabilities, _ = predictor.trace(predictor.start(4), text)
    assert np.allclose(probabilities.sum(axis=2), 1)
