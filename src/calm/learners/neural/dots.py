"""Few rows in bfloat16 times a matrix, (rows, k) @ (k, n), by the processor's own instruction.

It multiplies pairs and adds them up in float32, 16 sums at a time. The weights are laid out for it
once, in blocks of columns; a tile of sums stays in registers all the way through k. Numbers in
bfloat16 are the upper halves of float32, in uint16.
"""

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils as untyped
from numba.extending import intrinsic
from numpy.typing import NDArray

THERE: bool = binding.get_host_cpu_features().get("avx512bf16", False)
LANES, VECTORS, ROWS = 16, 4, 5  # a tile: rows by vectors of so many columns
BLOCK = LANES * VECTORS

BYTE_OFFSETS = tuple(4 * LANES * v for v in range(VECTORS))
cgutils: Any = untyped
SUMS = ir.VectorType(ir.FloatType(), LANES)
PAIRS = ir.VectorType(ir.IntType(32), LANES)


class _Brain(ir.Type):  # type: ignore[misc]
    """A type that llvmlite does not know."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Brain)

    def __hash__(self) -> int:
        return hash(_Brain)


HALVES = ir.VectorType(_Brain(), 2 * LANES)


def _tile(rows: int) -> Any:
    """Make what writes a tile's sums, given addresses and the bytes from a row to the next."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, x_row, weights, pairs, out, out_row = arguments
        i32, i64 = ir.IntType(32), ir.IntType(64)
        kind = ir.FunctionType(SUMS, [SUMS, HALVES, HALVES])
        name = "llvm.x86.avx512bf16.dpbf16ps.512"
        dot = cgutils.get_or_insert_function(builder.module, kind, name)

        def at(base: Any, offset: Any, of: Any) -> Any:
            return builder.inttoptr(builder.add(base, offset), of.as_pointer())

        zero, nothing = ir.Constant(SUMS, None), ir.Constant(PAIRS, ir.Undefined)
        sums = [
            [cgutils.alloca_once_value(builder, zero) for _ in BYTE_OFFSETS] for _ in range(rows)
        ]
        with cgutils.for_range(builder, pairs) as loop:
            block = builder.add(weights, builder.mul(loop.index, i64(4 * BLOCK)))
            loaded = [builder.load(at(block, i64(o), PAIRS), align=4) for o in BYTE_OFFSETS]
            for r in range(rows):
                row = builder.add(x, builder.mul(x_row, i64(r)))
                pair = builder.load(at(row, builder.mul(loop.index, i64(4)), i32), align=2)
                first = builder.insert_element(nothing, pair, i32(0))
                every = builder.shuffle_vector(first, nothing, ir.Constant(PAIRS, None))
                for total, w in zip(sums[r], loaded, strict=True):
                    halves = builder.bitcast(every, HALVES), builder.bitcast(w, HALVES)
                    builder.store(builder.call(dot, [builder.load(total), *halves]), total)
        for r in range(rows):
            row = builder.add(out, builder.mul(out_row, i64(r)))
            for total, o in zip(sums[r], BYTE_OFFSETS, strict=True):
                builder.store(builder.load(total), at(row, i64(o), SUMS), align=4)
        return context.get_dummy_value()

    def tile(typing, x, x_row, weights, pairs, out, out_row):  # type: ignore[no-untyped-def]
        return types.void(*[types.intp] * 6), generate

    return intrinsic(tile)


_tall, _flat = _tile(ROWS), _tile(1)


def room(rows: int, columns: int) -> NDArray[np.float32]:
    """Make an array for a product; it has columns to spare, which are 0."""
    return np.zeros((rows, -(-columns // BLOCK) * BLOCK), dtype=np.float32)


def shelf(k: int, columns: int) -> NDArray[np.uint32]:
    """Make an array for weights (k, columns), k even; columns to spare are 0."""
    return np.zeros((-(-columns // BLOCK), k // 2, BLOCK), dtype=np.uint32)


@njit(cache=True, nogil=True)
def lay_out(w: NDArray[np.uint16], laid: NDArray[np.uint32]) -> None:
    """Write weights (k, n) into `laid`, made by `shelf`: pairs of rows side by side."""
    blocks, pairs, _ = laid.shape
    for c in range(blocks):
        part = w[:, c * BLOCK : (c + 1) * BLOCK]
        for p in range(pairs):
            lower, upper, row = part[2 * p], part[2 * p + 1], laid[c, p]
            for j in range(len(lower)):
                row[j] = np.uint32(lower[j]) | np.uint32(upper[j]) << np.uint32(16)


@njit(cache=True, nogil=True)
def multiply(x: NDArray[np.uint16], laid: NDArray[np.uint32], out: NDArray[np.float32]) -> None:
    """Write x @ w into `out`, made by `room`; the rows of x lie at any distance."""
    rows, (blocks, pairs, _) = x.shape[0], laid.shape
    for c in range(blocks):
        weights, columns = laid[c].ctypes.data, out[:, c * BLOCK :]
        r = 0
        while r + ROWS <= rows:
            below, sums = x[r:].ctypes.data, columns[r:].ctypes.data
            _tall(below, x.strides[0], weights, pairs, sums, out.strides[0])
            r += ROWS
        while r < rows:
            below, sums = x[r:].ctypes.data, columns[r:].ctypes.data
            _flat(below, x.strides[0], weights, pairs, sums, out.strides[0])
            r += 1
