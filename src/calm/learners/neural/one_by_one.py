"""An LSTM layer of n experts on a CPU: one after the other, and several threads side by side.

The weights of one expert stay in a core's cache over the steps of a window; those of all do not.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from calm.learners.neural import cell, dots
from calm.learners.neural.threads import as_array, share

pack: Any = getattr(torch.ops.mkldnn, "_reorder_linear_weight", None)  # not in every build of torch
multiply_packed: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
PACKED = 1 << 16  # weights of an expert from which on laying them out in advance pays


class OneByOne(Function):
    """See recurrence.lstm_layer; what is computed does not depend on how experts are shared out."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Keeps the gates' activations for the gradient."""
        x, h0, c0, w_in, w_rec, bias, precision = arguments
        n, w, b, _ = x.shape
        hidden = h0.shape[-1]
        x, h0, c0, bias = (part.contiguous() for part in (x.to(precision), h0, c0, bias))
        gates = torch.empty(n, w, b, 4 * hidden)
        cells, squashed = torch.empty(n, w, b, hidden), torch.empty(n, w, b, hidden)
        outputs = x.new_empty(n, w, b, hidden)
        kept = [as_array(part) for part in (bias, c0, gates, cells, squashed, outputs)]
        start = h0.to(precision)
        weights = [(part, _room(part, precision)) for part in (w_in, w_rec)]
        w_in, w_rec = (short for _, short in weights)

        def work(first: int, last: int) -> None:
            z, product = x.new_empty(w * b, 4 * hidden), x.new_empty(b, 4 * hidden)
            laid, room = dots.shelf(hidden, 4 * hidden), dots.room(b, 4 * hidden)
            by_dots = _by_dots(precision, hidden)
            arrays = [as_array(z.view(w, b, -1)), room if by_dots else as_array(product), *kept]
            for e in range(first, last):
                for whole, short in weights:
                    if short is not whole:
                        short[e].copy_(whole[e])
                torch.mm(x[e].view(w * b, -1), w_in[e], out=z)
                if by_dots:
                    dots.lay_out(as_array(w_rec[e]), laid)
                    cell.forward_window(e, as_array(start), laid, *arrays)
                    continue
                multiply = _multiplier(w_rec[e], b)
                for t, h in enumerate([start[e], *outputs[e, :-1]]):
                    multiply(h, product)
                    cell.forward(e, t, *arrays)

        share(work, n)
        ctx.save_for_backward(x, start, c0, w_in, w_rec, gates, cells, squashed, outputs)
        last = outputs[:, -1].to(torch.float32, copy=True), cells[:, -1].clone()
        ctx.mark_non_differentiable(*last)
        return outputs, *last

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        """Go back through the window; weight gradients are made of all steps at once."""
        x, start, c0, w_in, w_rec, gates, cells, squashed, outputs = ctx.saved_tensors
        n, w, b, hidden = outputs.shape
        d_x = torch.empty_like(x)
        d_w_in, d_w_rec = (torch.empty_like(part, dtype=torch.float32) for part in (w_in, w_rec))
        d_bias = torch.zeros(n, 4 * hidden)
        kept = [as_array(part) for part in (gradients[0].contiguous(), c0, gates, cells, squashed)]
        total = as_array(d_bias)

        def work(first: int, last: int) -> None:
            dh, dc = start.new_empty(b, hidden), torch.empty(b, hidden)
            d_gates = outputs.new_empty(w, b, 4 * hidden)
            flat = d_gates.view(w * b, -1)
            laid, room = dots.shelf(4 * hidden, hidden), dots.room(b, hidden)
            by_dots = _by_dots(outputs.dtype, hidden)
            below = room if by_dots else as_array(dh)
            arrays = [*kept, below, as_array(dc), as_array(d_gates), total]
            for e in range(first, last):
                dc.zero_()
                if by_dots:
                    dots.lay_out(as_array(w_rec[e].t()), laid)
                    cell.backward_window(e, laid, *arrays)
                else:
                    multiply = _multiplier(w_rec[e].t(), b)
                    for t in range(w - 1, -1, -1):
                        cell.backward(e, t, *arrays)
                        if t:
                            multiply(d_gates[t], dh)
                before = torch.cat([start[e, None], outputs[e, :-1]]).view(w * b, hidden)
                d_w_rec[e] = before.t() @ flat
                d_w_in[e] = x[e].view(w * b, -1).t() @ flat
                torch.mm(flat, w_in[e].t(), out=d_x[e].view(w * b, -1))

        share(work, n)
        return d_x, None, None, d_w_in, d_w_rec, d_bias, None


def _room(weights: Tensor, precision: torch.dtype) -> Tensor:
    """Where weights stand in that precision: their own place, if they are."""
    weights = weights.contiguous()
    same = weights.dtype == precision
    return weights if same else torch.empty_like(weights, dtype=precision)


def _by_dots(precision: torch.dtype, hidden: int) -> bool:
    return dots.THERE and precision == torch.bfloat16 and hidden % 2 == 0


def _multiplier(weights: Tensor, rows: int) -> Callable[[Tensor, Tensor], object]:
    """Return what writes x @ weights, (rows, i) -> (rows, o), at each of a window's many steps.

    Few rows against large weights in float32 spend most of their time on laying out the weights:
    that is done once, if torch has oneDNN.
    """
    if weights.dtype == torch.float32 and weights.numel() >= PACKED and pack and multiply_packed:
        packed = pack(weights.t().contiguous(), rows)

        def multiply(x: Tensor, out: Tensor) -> Tensor:
            return out.copy_(multiply_packed(x, packed, None, "none", [], ""))

        return multiply
    return lambda x, out: torch.mm(x, weights, out=out)
