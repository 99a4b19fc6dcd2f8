import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from calm.learners.neural import slope
from calm.learners.neural.combination import Product
from calm.learners.neural.gates import PlasticGate


def batch(n, positions, vocabulary, seed, scale=3.0):
    source = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(n, positions, vocabulary, generator=source)
    targets = torch.randint(vocabulary, (positions,), generator=source)
    return logits, targets, torch.randn(n, generator=source)


def by_autograd(logits, targets, weights):
    w = weights.double().requires_grad_()
    F.cross_entropy(torch.einsum("i,ipv->pv", w, logits.double()), targets).backward()
    return w.grad


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@given(
    n=st.integers(1, 13), positions=st.integers(1, 5), vocabulary=st.integers(2, 2600),
    seed=st.integers(0, 2**31), scale=st.sampled_from([0.1, 3.0, 60.0]),
)  # fmt: skip
def test_it_is_the_gradient_of_the_loss(kind, n, positions, vocabulary, seed, scale):
    logits, targets, weights = batch(n, positions, vocabulary, seed, scale)
    logits = logits.to(kind)
    found = slope.product_slope(logits, targets, weights)
    expected = by_autograd(logits.float(), targets, weights)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), expected, atol=2e-5 * max(scale, 1))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_nothing(threads):
    logits, targets, weights = batch(4, 7, 900, 1)
    expected = slope.product_slope(logits, targets, weights)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert torch.equal(slope.product_slope(logits, targets, weights), expected)
    finally:
        torch.set_num_threads(before)


def test_a_plastic_gate_takes_the_same_steps_with_it(monkeypatch):
    logits, targets, _ = batch(5, 6, 700, 2)
    gates = []
    for large in (1, 1 << 40):
        monkeypatch.setattr(slope, "LARGE", large)
        gate = PlasticGate(5, Product(), steps=20, learning_rate=1e-2)
        gate.initialise(torch.Generator().manual_seed(3))
        gate.adapt(logits, targets)
        gates.append(gate.w.clone())
    assert torch.allclose(*gates, atol=1e-5)


def test_small_logits_other_kinds_and_other_devices_go_another_way():
    large = torch.empty(4, 1 << 11, 1 << 11)
    assert slope.applies(large)
    assert slope.applies(large.bfloat16())
    assert not slope.applies(large[:1])
    assert not slope.applies(large.double())
    assert not slope.applies(large.to("meta"))
