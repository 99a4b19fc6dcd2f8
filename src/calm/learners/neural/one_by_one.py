"""An LSTM layer of n experts on a CPU: one after the other, and several threads side by side.

The weights of one expert stay in a core's cache over the steps of a window; those of all do not.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import Function

from calm.learners.neural import cell, dots

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
        x, w_in, w_rec = (part.to(precision).contiguous() for part in (x, w_in, w_rec))
        h0, c0, bias = h0.contiguous(), c0.contiguous(), bias.contiguous()
        gates = torch.empty(n, w, b, 4 * hidden)
        cells, squashed = torch.empty(n, w, b, hidden), torch.empty(n, w, b, hidden)
        outputs = x.new_empty(n, w, b, hidden)
        kept = [_array(part) for part in (bias, c0, gates, cells, squashed, outputs)]
        start = h0.to(precision)

        def work(first: int, last: int) -> None:
            z, product = x.new_empty(w * b, 4 * hidden), x.new_empty(b, 4 * hidden)
            laid, room = dots.shelf(hidden, 4 * hidden), dots.room(b, 4 * hidden)
            by_dots = _by_dots(precision, hidden)
            arrays = [_array(z.view(w, b, -1)), room if by_dots else _array(product), *kept]
            for e in range(first, last):
                torch.mm(x[e].view(w * b, -1), w_in[e], out=z)
                if by_dots:
                    dots.lay_out(_array(w_rec[e]), laid)
                    cell.forward_window(e, _array(start), laid, *arrays)
                    continue
                multiply = _multiplier(w_rec[e], b)
                for t, h in enumerate([start[e], *outputs[e, :-1]]):
                    multiply(h, product)
                    cell.forward(e, t, *arrays)

        _share(work, n)
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
        kept = [_array(part) for part in (gradients[0].contiguous(), c0, gates, cells, squashed)]
        total = _array(d_bias)

        def work(first: int, last: int) -> None:
            dh, dc = start.new_empty(b, hidden), torch.empty(b, hidden)
            d_gates = outputs.new_empty(w, b, 4 * hidden)
            flat = d_gates.view(w * b, -1)
            laid, room = dots.shelf(4 * hidden, hidden), dots.room(b, hidden)
            by_dots = _by_dots(outputs.dtype, hidden)
            below = room if by_dots else _array(dh)
            arrays = [*kept, below, _array(dc), _array(d_gates), total]
            for e in range(first, last):
                dc.zero_()
                if by_dots:
                    dots.lay_out(_array(w_rec[e].t()), laid)
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

        _share(work, n)
        return d_x, None, None, d_w_in, d_w_rec, d_bias, None


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


def _array(tensor: Tensor) -> NDArray[Any]:
    """Numbers in place; those in bfloat16 as the upper halves of float32."""
    tensor = tensor.detach()
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _share(work: Callable[[int, int], None], experts: int) -> None:
    """Spread experts first … last-1 over threads, as many as torch has; a lone expert has all."""
    threads = torch.get_num_threads()
    if min(threads, experts) == 1:
        with torch.no_grad():
            work(0, experts)
        return
    bounds = [experts * i // threads for i in range(threads + 1)]

    def alone(i: int) -> None:
        torch.set_num_threads(1)
        with torch.no_grad():
            work(bounds[i], bounds[i + 1])

    try:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(alone, range(threads)))
    finally:
        torch.set_num_threads(threads)
