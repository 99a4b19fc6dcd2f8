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
        z = torch.baddbmm(bias.to(precision)[:, None], x.reshape(n, w * b, size), w_in)
        z = z.view(n, w, b, 4 * hidden)
        gates = x.new_empty(w, n, b, 4 * hidden, dtype=torch.float32)
        cells, squashed = (x.new_empty(w, n, b, hidden, dtype=torch.float32) for _ in range(2))
        outputs = x.new_empty(w, n, b, hidden)
        rounded = gates[0].to(precision)  # float32: the same memory as gates[0], and not used
        h, c = h0.to(precision), c0
        for t in range(w):
            gate = gates[t]
            if precision == torch.float32:
                torch.baddbmm(z[:, t], h, w_rec, out=gate)
            else:
                gate.copy_(torch.baddbmm(z[:, t], h, w_rec, out=rounded))
            gate[..., : 3 * hidden].sigmoid_()
            gate[..., 3 * hidden :].tanh_()
            i, f, o, g = torch.split(gate, hidden, dim=-1)
            c = torch.mul(f, c, out=cells[t]).addcmul_(i, g)
            torch.tanh(c, out=squashed[t])
            h = outputs[t].copy_(o * squashed[t])
        ctx.save_for_backward(x, h0, c0, w_in, w_rec, gates, cells, squashed, outputs)
        last = outputs[-1].float().clone()
        ctx.mark_non_differentiable(last, c)
        return outputs.transpose(0, 1), last, c.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        """Go back through the window; weight gradients are made of all steps at once."""
        d_outputs = gradients[0].transpose(0, 1)
        x, h0, c0, w_in, w_rec, gates, cells, squashed, outputs = ctx.saved_tensors
        w, n, b, hidden = outputs.shape
        precision = outputs.dtype
        w_rec_t = w_rec.transpose(1, 2)
        d_gates = torch.empty_like(gates, dtype=precision)
        d_gate, product = torch.empty_like(gates[0]), torch.empty_like(gates[0])
        dh = torch.empty_like(outputs[0])
        dc = torch.zeros_like(cells[0])
        d_bias = torch.zeros_like(gates[0, :, 0])
        for t in range(w - 1, -1, -1):
            i, f, o, g = torch.split(gates[t], hidden, dim=-1)
            d_output = d_outputs[t].float() if t == w - 1 else d_outputs[t] + dh.float()
            dc += torch.ops.aten.tanh_backward(d_output * o, squashed[t])
            p_i, p_f, p_o, p_g = torch.split(product, hidden, dim=-1)
            torch.mul(dc, g, out=p_i)
            torch.mul(dc, cells[t - 1] if t else c0, out=p_f)
            torch.mul(d_output, squashed[t], out=p_o)
            torch.mul(dc, i, out=p_g)
            sig, cand = slice(0, 3 * hidden), slice(3 * hidden, None)
            sigmoid_backward(product[..., sig], gates[t][..., sig], grad_input=d_gate[..., sig])
            tanh_backward(product[..., cand], gates[t][..., cand], grad_input=d_gate[..., cand])
            d_gates[t].copy_(d_gate)
            d_bias += d_gate.sum(dim=1)
            dc *= f
            if t:
                torch.bmm(d_gates[t], w_rec_t, out=dh)
        flat = d_gates.transpose(0, 1).reshape(n, w * b, 4 * hidden)
        before = torch.cat([h0.to(precision)[None], outputs[:-1]]).transpose(0, 1)
        d_w_rec = torch.bmm(before.reshape(n, w * b, hidden).transpose(1, 2), flat).float()
        d_w_in = torch.bmm(x.reshape(n, w * b, -1).transpose(1, 2), flat).float()
        d_x = torch.bmm(flat, w_in.transpose(1, 2)).view(x.shape)
        return d_x, None, None, d_w_in, d_w_rec, d_bias, None
