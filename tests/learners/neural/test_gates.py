import numpy as np
import pytest
import torch
from torch.nn import functional as F

from calm.learners.neural.combination import Mixture, Product
from calm.learners.neural.gates import LSTMGate, NewtonGate, PlasticGate, _loss


def batch(seed, n=4, positions=30, vocabulary=8):
    source = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, positions, vocabulary, generator=source)
    logits[1] *= 3
    best = logits[0].argmax(dim=1)  # the first expert knows
    other = torch.randint(vocabulary, (positions,), generator=source)
    return logits, torch.where(torch.rand(positions, generator=source) < 0.6, best, other)


def made(gate):
    gate.initialise(torch.Generator().manual_seed(3))
    return gate


def by_hand(rule, logits, w, targets):
    if rule is Product:
        return F.cross_entropy(torch.einsum("i,ipv->pv", w, logits), targets)
    mixed = torch.einsum("i,ipv->pv", w.softmax(0), logits.softmax(-1))
    return -mixed[torch.arange(len(targets)), targets].log().mean()


@pytest.mark.parametrize("rule", [Product, Mixture])
def test_plastic_gates_are_a_loop_of_adam_steps(rule):
    gate = made(PlasticGate(4, rule(), steps=5, learning_rate=1e-2))
    w = gate.w.clone().requires_grad_()
    assert w.abs().max() <= 0.1
    adam = torch.optim.Adam([w], lr=1e-2)
    for seed in range(3):
        logits, targets = batch(seed)
        gate.adapt(logits, targets)
        for _ in range(5):
            adam.zero_grad()
            by_hand(rule, logits, w, targets).backward()
            adam.step()
        assert torch.allclose(gate.w, w, atol=1e-5)


def test_newton_gates_are_at_the_minimum():
    gate = made(NewtonGate(4, Product(), proximity=0.1))
    before = gate.w.clone()
    logits, targets = batch(0, positions=200)
    gate.adapt(logits, targets)
    w = before.clone().double().requires_grad_()
    lbfgs = torch.optim.LBFGS([w], max_iter=200, line_search_fn="strong_wolfe", tolerance_grad=1e-9)

    def objective():
        lbfgs.zero_grad()
        loss = by_hand(Product, logits.double(), w, targets) + 0.05 * (w - before).square().sum()
        loss.backward()
        return loss

    lbfgs.step(objective)
    assert torch.allclose(gate.w.double(), w, atol=2e-3)
    assert gate.w[0] > before[0] + 0.1


@pytest.mark.parametrize("seed", range(5))
def test_newton_gates_never_make_the_batch_worse(seed):
    gate = made(NewtonGate(4, Product(), proximity=1e-3))
    logits, targets = batch(seed, positions=3)
    logits *= 20  # far from where a quadratic is a good model
    before = _loss(logits, targets, gate.w)
    gate.adapt(logits, targets)
    assert _loss(logits, targets, gate.w) <= before


def test_newton_gates_want_a_convex_loss():
    with pytest.raises(ValueError, match="needs combination product"):
        NewtonGate(4, Mixture(), 0.1)


def test_a_gating_lstm_runs_on():
    gate = made(LSTMGate(3, 11, hidden=5, embedding=4, softmax=False))
    x = torch.tensor(np.random.default_rng(0).integers(0, 11, (8, 2)))
    whole, _ = gate.weights(x, [])
    first, state = gate.weights(x[:5], [])
    second, _ = gate.weights(x[5:], state)
    assert whole.shape == (16, 3)
    assert torch.allclose(whole[:10], first, atol=1e-6)
    assert torch.allclose(whole[10:], second, atol=1e-6)


def test_a_gating_lstm_is_an_lstm_without_biases():
    gate = made(LSTMGate(3, 11, hidden=5, embedding=4, softmax=True))
    x = torch.tensor(np.random.default_rng(0).integers(0, 11, (6, 2)))
    reference = torch.nn.LSTM(4, 5, bias=False)
    with torch.no_grad():
        for name, own in (("weight_ih_l0", gate.w_in), ("weight_hh_l0", gate.w_rec)):
            order = own[0].T.view(4, 5, -1)[[0, 1, 3, 2]].reshape(20, -1)
            getattr(reference, name).copy_(order)
        expected = (reference(gate.embedding[x])[0] @ gate.decoder).softmax(-1).flatten(0, 1)
    assert torch.allclose(gate.weights(x, [])[0], expected, atol=1e-6)
