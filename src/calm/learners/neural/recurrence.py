"""An LSTM layer of n experts at once, with its gradient written out.

The same steps serve a CPU and a GPU: all experts go through one product a time step, the gradients
of the weights are one product over all steps, and what is not a product stays in float32. Gates
are kept in the order input, forget, output, candidate, so that three of them share one sigmoid.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input
pack: Any = getattr(torch.ops.mkldnn, "_reorder_linear_weight", None)  # not in every build of torch
multiply_packed: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
PACKED = 1 << 20  # weights of an expert from which on laying them out in advance pays


class Steps:
    """x @ weights, (n, rows, i) -> (n, rows, o), for the many steps of a window.

    Few rows against large weights spend most of their time on reading and laying out the weights.
    On a CPU in float32 that is done once for the window, if torch has oneDNN; experts that large
    are few, and go one by one. What is returned is overwritten by the next step.
    """

    def __init__(self, weights: Tensor, rows: int) -> None:
        self.weights, self.out = weights, weights.new_empty(len(weights), rows, weights.shape[2])
        plain = weights.device.type == "cpu" and weights.dtype == torch.float32
        worth_it = plain and weights[0].numel() >= PACKED and multiply_packed
        self.packed = [pack(w.t().contiguous(), rows) for w in weights] if pack and worth_it else []

    def times(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """Multiply, and add `plus`."""
        if self.packed:
            for i, weights in enumerate(self.packed):
                self.out[i] = multiply_packed(x[i], weights, None, "none", [], "")
            return self.out if plus is None else self.out.add_(plus)
        if plus is None:
            return torch.bmm(x, self.weights, out=self.out)
        return torch.baddbmm(plus, x, self.weights, out=self.out)


def lstm_layer(
    x: Tensor,
    state: tuple[Tensor, Tensor],
    w_in: Tensor,
    w_rec: Tensor,
    bias: Tensor,
    precision: torch.dtype,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run n experts' layers over a window; products are made in `precision`.

    x: (n, w, b, E); state h, c: (n, b, H); w_in: (n, E, 4H); w_rec: (n, H, 4H); bias: (n, 4H).
    Returns the outputs (n, w, b, H), in `precision`, and the state after the last of them, through
    which no gradient flows.
    """
    outputs, h, c = cast(
        tuple[Tensor, Tensor, Tensor],
        _Layer.apply(x, *state, w_in, w_rec, bias, precision),  # type: ignore[no-untyped-call]
    )
    return outputs, (h, c)


class _Layer(Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        """See lstm_layer; keeps the gates' activations for the gradient."""
        x, h0, c0, w_in, w_rec, bias, precision = arguments
        n, w, b, size = x.shape
        hidden = h0.shape[-1]
        x, w_in, w_rec = x.to(precision), w_in.to(precision), w_rec.to(precision)
        z = torch.bmm(x.reshape(n, w * b, size), w_in).view(n, w, b, 4 * hidden)
        bias = bias[:, None]
        gates = x.new_empty(n, w, b, 4 * hidden, dtype=torch.float32)
        cells, squashed = (x.new_empty(n, w, b, hidden, dtype=torch.float32) for _ in range(2))
        outputs = x.new_empty(n, w, b, hidden)
        steps = Steps(w_rec, b)
        h, c = h0.to(precision), c0
        for t in range(w):
            gate = torch.add(steps.times(h, z[:, t]), bias, out=gates[:, t])
            gate[..., : 3 * hidden].sigmoid_()
            gate[..., 3 * hidden :].tanh_()
            i, f, o, g = torch.split(gate, hidden, dim=-1)
            c = torch.mul(f, c, out=cells[:, t]).addcmul_(i, g)
            torch.tanh(c, out=squashed[:, t])
            h = outputs[:, t].copy_(o * squashed[:, t])
        ctx.save_for_backward(x, h0, c0, w_in, w_rec, gates, cells, squashed, outputs)
        last = h.to(torch.float32, copy=True), c.clone()
        ctx.mark_non_differentiable(*last)
        return outputs, *last

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        """Go back through the window; weight gradients are made of all steps at once."""
        d_outputs = gradients[0]
        x, h0, c0, w_in, w_rec, gates, cells, squashed, outputs = ctx.saved_tensors
        n, w, b, hidden = outputs.shape
        three, fourth = slice(0, 3 * hidden), slice(3 * hidden, None)
        steps = Steps(w_rec.transpose(1, 2), b)
        d_gates = torch.empty_like(gates, dtype=outputs.dtype)
        d_gate, product = (gates.new_empty(n, b, 4 * hidden) for _ in range(2))
        p_i, p_f, p_o, p_g = torch.split(product, hidden, dim=-1)
        dh, dc = torch.empty(0), torch.zeros_like(c0)
        d_bias = gates.new_zeros(n, 4 * hidden)
        for t in range(w - 1, -1, -1):
            gate = gates[:, t]
            i, f, o, g = torch.split(gate, hidden, dim=-1)
            d_output = d_outputs[:, t].float()
            if t < w - 1:
                d_output = d_output + dh
            dc += torch.ops.aten.tanh_backward(d_output * o, squashed[:, t])
            torch.mul(dc, g, out=p_i)
            torch.mul(dc, cells[:, t - 1] if t else c0, out=p_f)
            torch.mul(d_output, squashed[:, t], out=p_o)
            torch.mul(dc, i, out=p_g)
            sigmoid_backward(product[..., three], gate[..., three], grad_input=d_gate[..., three])
            tanh_backward(product[..., fourth], gate[..., fourth], grad_input=d_gate[..., fourth])
            d_gates[:, t].copy_(d_gate)
            d_bias += d_gate.sum(dim=1)
            dc *= f
            if t:
                dh = steps.times(d_gates[:, t])
        flat = d_gates.view(n, w * b, 4 * hidden)
        before = torch.cat([h0.to(outputs.dtype)[:, None], outputs[:, :-1]], dim=1)
        d_w_rec = torch.bmm(before.view(n, w * b, hidden).transpose(1, 2), flat).float()
        d_w_in = torch.bmm(x.reshape(n, w * b, -1).transpose(1, 2), flat).float()
        d_x = torch.bmm(flat, w_in.transpose(1, 2)).view(x.shape)
        return d_x, None, None, d_w_in, d_w_rec, d_bias, None
