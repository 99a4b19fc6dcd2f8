import pytest
import torch
from torch import nn

from calm.learners.neural import dots, one_by_one
from calm.learners.neural.recurrence import AtOnce, OneByOne, lstm_layer


def weights_of(layer, hidden):
    """Weights of nn.LSTM in the order input, forget, output, candidate; (1, …) each."""

    def order(weight):
        return weight.view(4, hidden, -1)[[0, 1, 3, 2]].reshape(4 * hidden, -1)

    bias = order((layer.bias_ih_l0 + layer.bias_hh_l0)[:, None])[:, 0]
    return [
        w.detach().clone().requires_grad_()
        for w in (order(layer.weight_ih_l0).T[None], order(layer.weight_hh_l0).T[None], bias[None])
    ]


def gradients_of(layer, hidden):
    grad = {name: p.grad for name, p in layer.named_parameters()}

    def order(weight):
        return weight.view(4, hidden, -1)[[0, 1, 3, 2]].reshape(4 * hidden, -1)

    bias = order(grad["bias_ih_l0"][:, None])[:, 0]
    return order(grad["weight_ih_l0"]).T, order(grad["weight_hh_l0"]).T, bias


@pytest.mark.parametrize("experts", [1, 3])
@pytest.mark.parametrize("window", [1, 6])
@pytest.mark.parametrize("packed", [1, one_by_one.PACKED])
def test_each_expert_is_an_lstm_layer_and_so_is_its_gradient(monkeypatch, experts, window, packed):
    """Whether weights are laid out in advance, as large ones are, or not."""
    monkeypatch.setattr(one_by_one, "PACKED", packed)
    source = torch.Generator().manual_seed(0)
    layers = [nn.LSTM(7, 5) for _ in range(experts)]
    x = torch.randn(experts, window, 3, 7, generator=source, requires_grad=True)
    state = tuple(torch.randn(experts, 3, 5, generator=source) for _ in range(2))
    above = torch.randn(experts, window, 3, 5, generator=source)
    stacked = [weights_of(layer, 5) for layer in layers]
    weights = [torch.cat(w).detach().requires_grad_() for w in zip(*stacked, strict=True)]
    y, (h, c) = lstm_layer(x, state, *weights, torch.float32)
    y.backward(above)
    for i, layer in enumerate(layers):
        inputs = x.detach()[i].clone().requires_grad_()
        expected, after = layer(inputs, (state[0][i : i + 1], state[1][i : i + 1]))
        expected.backward(above[i])
        assert torch.allclose(y[i], expected, atol=1e-6)
        assert torch.allclose(
            torch.cat([h[i], c[i]]), torch.cat([*after])[:, :].flatten(0, 1), atol=1e-6
        )
        assert torch.allclose(x.grad[i], inputs.grad, atol=1e-6)
        for found, wanted in zip(weights, gradients_of(layer, 5), strict=True):
            assert torch.allclose(found.grad[i], wanted, atol=1e-5)


def test_bfloat16_is_close_to_float32():
    source = torch.Generator().manual_seed(0)
    x = torch.randn(2, 8, 4, 16, generator=source)
    state = torch.zeros(2, 4, 16), torch.zeros(2, 4, 16)
    weights = [0.25 * torch.randn(2, *s, generator=source) for s in ((16, 64), (16, 64), (64,))]
    found = {}
    for precision in (torch.float32, torch.bfloat16):
        leaves = [w.clone().requires_grad_() for w in weights]
        y, (_, c) = lstm_layer(x.to(precision), state, *leaves, precision)
        y.float().square().sum().backward()
        assert y.dtype == precision
        assert c.dtype == leaves[0].grad.dtype == torch.float32
        found[precision] = [y.detach().float(), c, *(w.grad for w in leaves)]
    for exact, rough in zip(*found.values(), strict=True):
        assert (exact - rough).norm() < 0.02 * exact.norm()


def through(layer, precision, experts=3, hidden=10):
    """Outputs, the state after them and all gradients."""
    source = torch.Generator().manual_seed(0)
    shapes = (6, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,)
    weights = [0.3 * torch.randn(experts, *shape, generator=source) for shape in shapes]
    x = torch.randn(experts, 5, 7, 6, generator=source)
    h, c = torch.randn(2, experts, 7, hidden, generator=source)
    leaves = [x.to(precision), h, c, *weights]
    for leaf in leaves:
        leaf.requires_grad_()
    outputs, *after = layer.apply(*leaves, precision)
    outputs.backward(torch.randn(outputs.shape, generator=source).to(precision))
    return [
        t.detach().float()
        for t in (outputs, *after, *(w.grad for w in leaves if w.is_leaf and w.grad is not None))
    ]


@pytest.mark.parametrize("there", [dots.THERE, False])
@pytest.mark.parametrize(("precision", "near"), [(torch.float32, 1e-6), (torch.bfloat16, 0.02)])
def test_experts_one_by_one_are_experts_at_once(monkeypatch, there, precision, near):
    """Their gradients too, with the processor's instruction for bfloat16 or without."""
    monkeypatch.setattr(dots, "THERE", there)
    found, wanted = through(OneByOne, precision), through(AtOnce, precision)
    assert len(found) == len(wanted) == 7
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours - theirs).norm() < near * theirs.norm()


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_threads_change_nothing(precision):
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4, 4):
            torch.set_num_threads(threads)
            found.append(through(OneByOne, precision))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


def test_what_is_not_a_number_stays_so():
    x = torch.full((1, 2, 1, 3), torch.nan)
    state = torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)
    y, _ = lstm_layer(
        x, state, torch.ones(1, 3, 16), torch.ones(1, 4, 16), torch.zeros(1, 16), x.dtype
    )
    assert y.isnan().all()
