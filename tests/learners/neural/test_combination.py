import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from calm.learners.neural import combination
from calm.learners.neural.combination import Mixture, Product

CASES = st.tuples(
    st.integers(1, 5), st.integers(1, 6), st.integers(2, 9), st.booleans(), st.integers(0, 2**31)
)


def draw(case):
    """Logits (n, positions, V), weights (n,) or (positions, n), targets; in float64."""
    n, positions, vocabulary, each, seed = case
    draws = np.random.default_rng(seed)
    logits = draws.normal(0, 3, (n, positions, vocabulary))
    weights = draws.normal(0, 1, (positions, n) if each else n)
    targets = draws.integers(0, vocabulary, positions)
    return logits, weights, targets


def softmax(values):
    values = [np.exp(v - max(values)) for v in values]
    return [v / sum(values) for v in values]


def transcribed(rule, logits, weights):
    """The formulas of the paper, one position and one symbol at a time."""
    n, positions, vocabulary = logits.shape
    result = np.empty((positions, vocabulary))
    for p in range(positions):
        w = weights if weights.ndim == 1 else weights[p]
        if rule is Product:
            result[p] = softmax(
                [sum(w[i] * logits[i, p, v] for i in range(n)) for v in range(vocabulary)]
            )
        else:
            experts = [softmax(logits[i, p]) for i in range(n)]
            result[p] = [
                sum(softmax(w)[i] * experts[i][v] for i in range(n)) for v in range(vocabulary)
            ]
    return result


@pytest.fixture(autouse=True)
def in_double_precision(monkeypatch):
    """What is cast to float32 stays in float64, so that the formulas can be held to 1e-10."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)


@pytest.mark.parametrize("rule", [Product, Mixture])
@given(case=CASES)
def test_a_combination_is_its_formula(rule, case):
    logits, weights, targets = draw(case)
    expected = transcribed(rule, logits, weights)
    tensors = [torch.tensor(a) for a in (logits, weights)]
    found = rule().log_probabilities(*tensors).exp().numpy()
    assert np.allclose(found, expected, rtol=0, atol=1e-10)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-10)
    loss = rule().loss(*tensors, torch.tensor(targets)).item()
    assert loss == pytest.approx(-np.log(expected[range(len(targets)), targets]).mean(), abs=1e-9)


@pytest.mark.parametrize("rule", [Product, Mixture])
@given(case=CASES, chunk=st.sampled_from([1, 40, 1 << 22]))
def test_the_slope_is_the_gradient_of_the_loss(rule, case, chunk):
    logits, weights, targets = draw((*case[:3], False, case[4]))
    logits, targets = torch.tensor(logits), torch.tensor(targets)
    w = torch.tensor(weights, requires_grad=True)
    rule().loss(logits, w, targets).backward()
    before, combination.CHUNK = combination.CHUNK, chunk
    try:
        slope = rule().slope(logits, targets)(w.detach())
    finally:
        combination.CHUNK = before
    assert torch.allclose(slope, w.grad, atol=1e-10)


@pytest.mark.parametrize(("rule", "weight"), [(Product, 1.0), (Mixture, 7.0)])
def test_a_combination_of_one_expert_is_that_expert(rule, weight):
    logits = torch.randn(1, 4, 6, generator=torch.Generator().manual_seed(0)).double()
    found = rule().log_probabilities(logits, torch.tensor([weight]).double())
    assert torch.allclose(found, logits[0].log_softmax(-1), atol=1e-12)


@pytest.mark.parametrize("rule", [Product, Mixture])
def test_even_weights_count_alike(rule):
    even = rule().even(4).double()
    logits = torch.randn(4, 3, 6, generator=torch.Generator().manual_seed(0)).double()
    found = rule().log_probabilities(logits, even)
    if rule is Product:
        assert torch.allclose(found, logits.mean(0).log_softmax(-1))
    else:
        assert torch.allclose(found.exp(), logits.softmax(-1).mean(0))
    assert torch.allclose(rule().shares(even), torch.full((4,), 0.25).double())
