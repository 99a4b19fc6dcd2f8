"""An LSTM layer of n experts, with its gradient written out.

On a GPU all experts go through one product a time step; on a CPU they go one by one (one_by_one).
Either way the gradients of the weights are one product over all steps, and what is not a product
stays in float32. Gates are kept in the order input, forget, output, candidate, so that three of
them share one sigmoid.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function

from calm.learners.neural.one_by_one import OneByOne

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input


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
    layer = OneByOne if x.device.type == "cpu" else AtOnce
    outputs, h, c = cast(
        tuple[Tensor, Tensor, Tensor],
        layer.apply(x, *state, w_in, w_rec, bias, precision),  # type: ignore[no-untyped-call]
    )
    return outputs, (h, c)


class AtOnce(Function):
    """All experts at once."""

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
        product = torch.empty_like(z[:, 0], memory_format=torch.contiguous_format)
        h, c = h0.to(precision), c0
        for t in range(w):
            torch.baddbmm(z[:, t], h, w_rec, out=product)
            gate = torch.add(product, bias, out=gates[:, t])
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
        back = w_rec.transpose(1, 2)
        d_gates = torch.empty_like(gates, dtype=outputs.dtype)
        d_gate, product = (gates.new_empty(n, b, 4 * hidden) for _ in range(2))
        p_i, p_f, p_o, p_g = torch.split(product, hidden, dim=-1)
        dh, dc = torch.empty_like(h0, dtype=outputs.dtype), torch.zeros_like(c0)
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
                torch.bmm(d_gates[:, t], back, out=dh)
        flat = d_gates.view(n, w * b, 4 * hidden)
        before = torch.cat([h0.to(outputs.dtype)[:, None], outputs[:, :-1]], dim=1)
        d_w_rec = torch.bmm(before.view(n, w * b, hidden).transpose(1, 2), flat).float()
        d_w_in = torch.bmm(x.reshape(n, w * b, -1).transpose(1, 2), flat).float()
        d_x = torch.bmm(flat, w_in.transpose(1, 2)).view(x.shape)
        return d_x, None, None, d_w_in, d_w_rec, d_bias, None
