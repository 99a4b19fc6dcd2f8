"""What an LSTM does between two products, on a CPU: one time step of one expert, in one call.

Or all steps of a window in one call, where the products of a step are those of `dots`.

Numbers in bfloat16 come as the upper halves of float32, in uint16; all else is float32.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

from calm.learners.neural import dots

ONE, TWO, HALF = np.float32(1), np.float32(2), np.float32(0.5)
LOG2_E, EDGE = np.float32(1.442695), np.float32(120)
POWER = tuple(  # of 2 between -1/2 and 1/2: 1 + x (c₀ + x (c₁ + …))
    np.float32(c) for c in (0.69314718, 0.24022651, 0.05550411, 0.00961813, 0.00133336, 0.00015469)
)


def wide(x: Any) -> Any:
    """As float32."""


@overload(wide, inline="always")
def _wide_of(x):  # type: ignore[no-untyped-def]
    if isinstance(x, types.Integer):
        return lambda x: np.uint32(np.uint32(x) << np.uint32(16)).view(np.float32)
    return lambda x: x


def narrow(x: Any, like: Any) -> Any:
    """As a number of `like`, to the nearest."""


@overload(narrow, inline="always")
def _narrow_of(x, like):  # type: ignore[no-untyped-def]
    if isinstance(like.dtype, types.Integer):

        def rounded(x, like):  # type: ignore[no-untyped-def]
            bits = np.float32(x).view(np.uint32)
            even = (bits >> np.uint32(16)) & np.uint32(1)
            return np.uint16((bits + np.uint32(0x7FFF) + even) >> np.uint32(16))

        return rounded
    return lambda x, like: x


@njit(inline="always")
def _sigmoid(given: Any) -> Any:
    """1 / (1 + 2^whole 2^x), whole being written as an exponent; of what is not finite, NaN."""
    c0, c1, c2, c3, c4, c5 = POWER
    x = min(max(-given * LOG2_E, -EDGE), EDGE)
    nearest = np.floor(x + HALF)
    power = np.int32((np.int32(nearest) + np.int32(127)) << np.int32(23)).view(np.float32)
    x -= nearest
    power *= ONE + x * (c0 + x * (c1 + x * (c2 + x * (c3 + x * (c4 + x * c5)))))
    return ONE / (ONE + power) + (given - given)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def forward(
    e: int,
    t: int,
    z: NDArray[Any],
    product: NDArray[Any],
    bias: NDArray[np.float32],
    c0: NDArray[np.float32],
    gates: NDArray[np.float32],
    cells: NDArray[np.float32],
    squashed: NDArray[np.float32],
    outputs: NDArray[Any],
) -> None:
    """From z = x W_in and product = h W_rec to the step's gates, cells and outputs."""
    _, _, b, hidden = cells.shape
    for r in range(b):
        above, beside, shift, gate = z[t, r], product[r], bias[e], gates[e, t, r]
        for j in range(3 * hidden):
            gate[j] = _sigmoid(wide(above[j]) + wide(beside[j]) + shift[j])
        for j in range(3 * hidden, 4 * hidden):
            x = wide(above[j]) + wide(beside[j]) + shift[j]
            gate[j] = TWO * _sigmoid(x + x) - ONE
        before = cells[e, t - 1, r] if t else c0[e, r]
        c, flat, h = cells[e, t, r], squashed[e, t, r], outputs[e, t, r]
        for j in range(hidden):
            c[j] = gate[hidden + j] * before[j] + gate[j] * gate[3 * hidden + j]
        for j in range(hidden):
            flat[j] = TWO * _sigmoid(c[j] + c[j]) - ONE
        for j in range(hidden):
            h[j] = narrow(gate[2 * hidden + j] * flat[j], outputs)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def backward(
    e: int,
    t: int,
    d_outputs: NDArray[Any],
    c0: NDArray[np.float32],
    gates: NDArray[np.float32],
    cells: NDArray[np.float32],
    squashed: NDArray[np.float32],
    dh: NDArray[Any],
    dc: NDArray[np.float32],
    d_gates: NDArray[Any],
    d_bias: NDArray[np.float32],
) -> None:
    """From the gradients of the outputs, from above and from the next step, to the gates'.

    That of the cells, `dc`, (b, H), goes through; that of the bias, `d_bias`, (n, 4H), grows.
    """
    _, w, b, hidden = cells.shape
    last = t == w - 1
    dy = np.empty(hidden, dtype=np.float32)
    d = np.empty(4 * hidden, dtype=np.float32)
    for r in range(b):
        above, beside, flat, gate = d_outputs[e, t, r], dh[r], squashed[e, t, r], gates[e, t, r]
        before = cells[e, t - 1, r] if t else c0[e, r]
        through = dc[r]
        for j in range(hidden):
            dy[j] = wide(above[j])
        if not last:
            for j in range(hidden):
                dy[j] += wide(beside[j])
        for j in range(hidden):
            o = gate[2 * hidden + j]
            through[j] += dy[j] * o * (ONE - flat[j] * flat[j])
            d[2 * hidden + j] = dy[j] * flat[j] * o * (ONE - o)
        for j in range(hidden):
            i, g = gate[j], gate[3 * hidden + j]
            d[j] = through[j] * g * i * (ONE - i)
            d[3 * hidden + j] = through[j] * i * (ONE - g * g)
        for j in range(hidden):
            f = gate[hidden + j]
            d[hidden + j] = through[j] * before[j] * f * (ONE - f)
            through[j] *= f
        row, total = d_gates[t, r], d_bias[e]
        for j in range(4 * hidden):
            total[j] += d[j]
            row[j] = narrow(d[j], d_gates)


@njit(cache=True, nogil=True)
def forward_window(
    e: int, start: NDArray[Any], laid: NDArray[Any], z: Any, product: Any, bias: Any, c0: Any,
    gates: Any, cells: Any, squashed: Any, outputs: NDArray[Any],
) -> None:  # fmt: skip
    """Every step of `forward`, with its product, from h = `start` (n, b, H) on."""
    for t in range(outputs.shape[1]):
        dots.multiply(outputs[e, t - 1] if t else start[e], laid, product)
        forward(e, t, z, product, bias, c0, gates, cells, squashed, outputs)


@njit(cache=True, nogil=True)
def backward_window(
    e: int, laid: NDArray[Any], d_outputs: Any, c0: Any, gates: Any, cells: Any, squashed: Any,
    dh: Any, dc: Any, d_gates: NDArray[Any], d_bias: Any,
) -> None:  # fmt: skip
    """Every step of `backward`, with its product."""
    for t in range(len(d_gates) - 1, -1, -1):
        backward(e, t, d_outputs, c0, gates, cells, squashed, dh, dc, d_gates, d_bias)
        if t:
            dots.multiply(d_gates[t], laid, dh)
