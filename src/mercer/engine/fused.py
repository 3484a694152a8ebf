"""k(X, Z) V on a GPU in one pass: kernel values live in registers and are never written.

Two Triton kernels evaluate one term of a form (engine/forms.py). The quick one works in single
precision: distances by tensor cores with three tf32 products for one in float32, sums carried to
double precision every few thousand columns. The exact one works in double precision throughout,
with distances from differences: it computes the residuals that certify a solution. Where X meets
itself, each value serves both halves of the symmetric matrix.

Triton comes with torch for CUDA. It is imported here, and this file is imported only where a GPU
is used.
"""

# Triton has no types for mypy, and reads the annotations of its kernels itself.
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-incomplete-defs

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from .forms import Form, Leaf

EXP, MATERN12, MATERN32, MATERN52, RATIONAL, POWER = (tl.constexpr(i) for i in range(6))
# Each function's number, and what squared distances are multiplied by beforehand.
_FUNCTIONS: dict[str | None, tuple[int, Callable[..., float]]] = {
    "exp": (0, lambda: 1.0),
    "matern12": (1, lambda: 1.0),
    "matern32": (2, lambda: 3.0),
    "matern52": (3, lambda: 5.0),
    "rational": (4, lambda a: 0.5 / a),
    "power": (5, lambda c, p: 1.0),
}
# Columns whose products are summed in single precision before they join the double sum.
_CHUNK = 4096
# The longest inner dimension that stays in registers; beyond, it is cut into blocks.
_WIDEST = 64
# Rows and columns of a tile, warps and pipeline stages: the fastest of benchmarks.fused_check.
_QUICK = {"rows": 128, "columns": 32, "warps": 4, "stages": 2}
_EXACT = {"rows": 32, "columns": 32, "warps": 4, "stages": 2}
# Right-hand sides in one launch, and programs that fill the device.
_TARGETS = {False: 16, True: 8}
_PROGRAMS = 1024


@triton.jit
def _value(t, FUNCTION: tl.constexpr, a, DEGREE: tl.constexpr):
    """The kernel value from minus the scaled squared distance, or from the inner product."""
    if FUNCTION == POWER:
        base = t + a
        result = base
        for _ in tl.static_range(1, DEGREE):
            result = result * base
    else:
        s = tl.maximum(-t, 0.0)
        if FUNCTION == EXP:
            result = tl.exp(-s)
        elif FUNCTION == RATIONAL:
            result = tl.exp(-a * tl.log(1.0 + s))
        else:
            d = tl.sqrt(s)
            if FUNCTION == MATERN12:
                result = tl.exp(-d)
            elif FUNCTION == MATERN32:
                result = (1.0 + d) * tl.exp(-d)
            else:
                result = (1.0 + d + s * (1.0 / 3.0)) * tl.exp(-d)
    return result


@triton.jit
def _products(L, R, x, rows, cols, stride, D: tl.constexpr, WIDE: tl.constexpr):
    """Inner products of a tile; `x` holds its rows where they fit into registers."""
    if D <= WIDE:
        k = tl.arange(0, D)
        z = tl.load(R + k[:, None].to(tl.int64) * stride + cols[None, :])
        t = tl.dot(x, z, input_precision="tf32x3")
    else:
        k = tl.arange(0, WIDE)
        t = tl.dot(
            tl.load(L + rows[:, None].to(tl.int64) * D + k[None, :]),
            tl.load(R + k[:, None].to(tl.int64) * stride + cols[None, :]),
            input_precision="tf32x3",
        )
        for first in range(WIDE, D, WIDE):
            k = first + tl.arange(0, WIDE)
            xk = tl.load(L + rows[:, None].to(tl.int64) * D + k[None, :])
            zk = tl.load(R + k[:, None].to(tl.int64) * stride + cols[None, :])
            t = tl.dot(xk, zk, t, input_precision="tf32x3")
    return t


@triton.jit
def _at_zero(t, rows, cols, DIAGONAL: tl.constexpr):
    """Distances of points to themselves, exactly zero where rounding would matter."""
    if DIAGONAL:
        t = tl.where(rows[:, None] == cols[None, :], 0.0, t)
    return t


@triton.jit
def _add_transposed(OUT, block, out_rows, cols, value, weights):
    """The tile's part of the other half: K' v for the rows of this program."""
    place = OUT + (block * out_rows).to(tl.int64) + cols
    part = tl.sum(value * weights[:, None], axis=0)
    tl.store(place, tl.load(place) + part.to(tl.float64))


@triton.jit
def _quick(
    L0, R0, L1, R1, L2, R2, V, OUT, PLACES, stride, out_rows, height, span, a0, a1, a2,
    F0: tl.constexpr, F1: tl.constexpr, F2: tl.constexpr,
    P0: tl.constexpr, P1: tl.constexpr, P2: tl.constexpr,
    D0: tl.constexpr, D1: tl.constexpr, D2: tl.constexpr,
    T0: tl.constexpr, T1: tl.constexpr, T2: tl.constexpr,
    Z0: tl.constexpr, Z1: tl.constexpr, Z2: tl.constexpr,
    FACTORS: tl.constexpr, HALVES: tl.constexpr, M: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, WIDE: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    block = tl.load(PLACES + 2 * tl.program_id(0))
    part = tl.load(PLACES + 2 * tl.program_id(0) + 1)
    begin = part * span
    end = tl.minimum(begin + span, stride)
    targets = tl.arange(0, M)
    for top in range(block * height, tl.minimum((block + 1) * height, out_rows), BM):
        rows = top + tl.arange(0, BM)
        x0 = tl.load(L0 + rows[:, None].to(tl.int64) * D0 + tl.arange(0, T0)[None, :])
        x1 = x0
        x2 = x0
        if FACTORS > 1:
            x1 = tl.load(L1 + rows[:, None].to(tl.int64) * D1 + tl.arange(0, T1)[None, :])
        if FACTORS > 2:
            x2 = tl.load(L2 + rows[:, None].to(tl.int64) * D2 + tl.arange(0, T2)[None, :])
        if HALVES:
            # The square on the diagonal is whole: nothing of it is missing elsewhere.
            weights = tl.load(V + rows) * (block != part)
        total = tl.zeros((BM, M), dtype=tl.float64)
        for chunk in range(begin, end, STEP):
            if M == 1:
                sums = tl.zeros((BM, BN), dtype=tl.float32)
            else:
                sums = tl.zeros((BM, M), dtype=tl.float32)
            for first in range(chunk, tl.minimum(chunk + STEP, end), BN):
                cols = first + tl.arange(0, BN)
                t = _at_zero(_products(L0, R0, x0, rows, cols, stride, D0, WIDE), rows, cols, Z0)
                value = _value(t, F0, a0, P0)
                if FACTORS > 1:
                    t = _products(L1, R1, x1, rows, cols, stride, D1, WIDE)
                    value = value * _value(_at_zero(t, rows, cols, Z1), F1, a1, P1)
                if FACTORS > 2:
                    t = _products(L2, R2, x2, rows, cols, stride, D2, WIDE)
                    value = value * _value(_at_zero(t, rows, cols, Z2), F2, a2, P2)
                if M == 1:
                    sums += value * tl.load(V + cols)[None, :]
                else:
                    v = tl.load(V + cols[:, None] * M + targets[None, :])
                    sums = tl.dot(value, v, sums, input_precision="tf32x3")
                if HALVES:
                    _add_transposed(OUT, block, out_rows, cols, value, weights)
            if M == 1:
                total += tl.sum(sums, axis=1)[:, None].to(tl.float64)
            else:
                total += sums.to(tl.float64)
        place = (part * out_rows + rows).to(tl.int64)
        tl.store(OUT + place[:, None] * M + targets[None, :], total)


@triton.jit
def _differences(
    L, R, rows, cols, row_stride, stride, D, DISTANCE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Minus squared distances from differences, or inner products, in double precision."""
    t = tl.zeros((BM, BN), dtype=tl.float64)
    for k in range(D):
        x = tl.load(L + k * row_stride + rows)
        z = tl.load(R + k * stride + cols)
        if DISTANCE:
            difference = x[:, None] - z[None, :]
            t -= difference * difference
        else:
            t += x[:, None] * z[None, :]
    return t


@triton.jit
def _exact(
    L0, R0, L1, R1, L2, R2, V, OUT, PLACES, NUMBERS,
    row_stride, stride, out_rows, height, span, D0, D1, D2,
    F0: tl.constexpr, F1: tl.constexpr, F2: tl.constexpr,
    P0: tl.constexpr, P1: tl.constexpr, P2: tl.constexpr,
    FACTORS: tl.constexpr, HALVES: tl.constexpr, M: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    block = tl.load(PLACES + 2 * tl.program_id(0))
    part = tl.load(PLACES + 2 * tl.program_id(0) + 1)
    begin = part * span
    end = tl.minimum(begin + span, stride)
    targets = tl.arange(0, M)
    for top in range(block * height, tl.minimum((block + 1) * height, out_rows), BM):
        rows = top + tl.arange(0, BM)
        if HALVES:
            weights = tl.load(V + rows) * (block != part)
        total = tl.zeros((BM, M), dtype=tl.float64)
        sums = tl.zeros((BM, BN), dtype=tl.float64)
        for first in range(begin, end, BN):
            cols = first + tl.arange(0, BN)
            t = _differences(L0, R0, rows, cols, row_stride, stride, D0, F0 != POWER, BM, BN)
            value = _value(t, F0, tl.load(NUMBERS + 0), P0)
            if FACTORS > 1:
                t = _differences(L1, R1, rows, cols, row_stride, stride, D1, F1 != POWER, BM, BN)
                value = value * _value(t, F1, tl.load(NUMBERS + 1), P1)
            if FACTORS > 2:
                t = _differences(L2, R2, rows, cols, row_stride, stride, D2, F2 != POWER, BM, BN)
                value = value * _value(t, F2, tl.load(NUMBERS + 2), P2)
            if M == 1:
                sums += value * tl.load(V + cols)[None, :]
            else:
                for m in tl.static_range(M):
                    share = tl.sum(value * tl.load(V + cols * M + m)[None, :], axis=1)
                    total += tl.where(targets[None, :] == m, share[:, None], 0.0)
            if HALVES:
                _add_transposed(OUT, block, out_rows, cols, value, weights)
        if M == 1:
            total += tl.sum(sums, axis=1)[:, None]
        place = (part * out_rows + rows).to(tl.int64)
        tl.store(OUT + place[:, None] * M + targets[None, :], total)


class FusedProduct:
    """V -> k(X, Z) V for a form whose every function is in FUNCTIONS.

    Parameters
    ----------
    form : Form
    X, Z : torch tensors of shape (n, d) and (m, d) on a GPU; Z is X where it is None
    exact : bool
        In double precision throughout; else in single precision, summed in double.
    settings : dict or None
        "rows" and "columns" of a tile, "warps" and "stages".
    squares : int
        Along one side of a symmetric matrix: as many sums for every row, in double precision.
    """

    def __init__(
        self,
        form: Form,
        X: torch.Tensor,
        Z: torch.Tensor | None = None,
        *,
        exact: bool = False,
        settings: dict[str, int] | None = None,
        squares: int = 128,
    ) -> None:
        self.exact, self.squares = exact, squares
        self.settings = {**(_EXACT if exact else _QUICK), **(settings or {})}
        self.n_rows, self.n_columns = X.shape[0], (X if Z is None else Z).shape[0]
        self.square = Z is None
        tile_rows, tile_columns = self.settings["rows"], self.settings["columns"]
        if self.square:
            tile_rows = tile_columns = max(tile_rows, tile_columns)
        self.rows = _multiple(self.n_rows, tile_rows)
        self.columns = _multiple(self.n_columns, tile_columns)
        centre = (X if Z is None else Z).mean(dim=0, dtype=torch.float64)
        self.constant = sum(term.coefficient for term in form.terms if not term.leaves)
        self.terms = [
            (term.coefficient, [self._operand(leaf, X, Z, centre) for leaf in term.leaves])
            for term in form.terms
            if term.leaves and term.coefficient
        ]

    def __call__(self, V: torch.Tensor) -> torch.Tensor:
        """The product in double precision, one column for each of V's."""
        flat = V.ndim == 1
        V = V[:, None] if flat else V
        width = _TARGETS[self.exact]
        parts = [self._times(V[:, j : j + width]) for j in range(0, V.shape[1], width)]
        product = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return product[:, 0] if flat else product

    def _times(self, V: torch.Tensor) -> torch.Tensor:
        m = V.shape[1]
        # Tensor cores take 16 columns at a time; the exact kernel any power of two.
        width = 1 if m == 1 else (1 << (m - 1).bit_length() if self.exact else _TARGETS[False])
        dtype = torch.float64 if self.exact else torch.float32
        padded = torch.zeros((self.columns, width), dtype=dtype, device=V.device)
        padded[: self.n_columns, :m] = V
        total = torch.zeros((self.n_rows, m), dtype=torch.float64, device=V.device)
        if self.constant:
            total += self.constant * V.to(torch.float64).sum(dim=0)[None, :]
        for coefficient, leaves in self.terms:
            total += coefficient * self._launch(leaves, padded, width)[: self.n_rows, :m]
        return total

    def _launch(self, leaves: list[dict[str, Any]], V: torch.Tensor, width: int) -> torch.Tensor:
        tile_rows, tile_columns = self.settings["rows"], self.settings["columns"]
        halves = self.square and width == 1
        if halves:
            # Squares of `span` rows and columns on and above the diagonal, each used for both
            # halves. Its sums have places of their own: the result does not depend on an order.
            height = span = _multiple(-(-self.rows // self.squares), max(tile_rows, tile_columns))
            parts = -(-self.rows // span)
            places = torch.triu_indices(parts, parts, dtype=torch.int32, device=V.device)
        else:
            blocks, height = self.rows // tile_rows, tile_rows
            # Few rows, as in prediction: columns are shared out too, and partial sums added.
            parts = max(1, min(_PROGRAMS // blocks, self.columns // max(tile_columns, _CHUNK)))
            span = _multiple(-(-self.columns // parts), tile_columns)
            parts = -(-self.columns // span)
            pairs = [torch.arange(count, dtype=torch.int32) for count in (blocks, parts)]
            places = torch.cartesian_prod(*pairs).T.to(V.device)
        out = torch.zeros((parts, self.rows, width), dtype=torch.float64, device=V.device)
        three = [*leaves, *[leaves[0]] * (3 - len(leaves))]
        arrays = [array for leaf in three for array in (leaf["left"], leaf["right"])]
        numbers = [leaf["number"] for leaf in three]
        options = {f"F{i}": leaf["function"] for i, leaf in enumerate(three)}
        options |= {f"P{i}": leaf["degree"] for i, leaf in enumerate(three)}
        options |= {"FACTORS": len(leaves), "HALVES": halves, "M": width}
        options |= {"BM": tile_rows, "BN": tile_columns}
        options |= {"num_warps": self.settings["warps"], "num_stages": self.settings["stages"]}
        widths = [leaf["width"] for leaf in three]
        grid, arrays = (places.shape[1],), [*arrays, V, out, places.T.contiguous()]
        if self.exact:
            sizes = [self.rows, self.columns, self.rows, height, span]
            # A number passed as such would arrive in single precision.
            held = torch.tensor(numbers, dtype=torch.float64, device=V.device)
            _exact[grid](*arrays, held, *sizes, *widths, **options)
        else:
            options |= {f"D{i}": width for i, width in enumerate(widths)}
            options |= {f"T{i}": min(width, _WIDEST) for i, width in enumerate(widths)}
            options |= {f"Z{i}": leaf["diagonal"] for i, leaf in enumerate(three)}
            step = max(_CHUNK, tile_columns)
            sizes = [self.columns, self.rows, height, span]
            _quick[grid](*arrays, *sizes, *numbers, WIDE=_WIDEST, STEP=step, **options)
        return out[0] if parts == 1 else out.sum(dim=0)

    def _operand(
        self, leaf: Leaf, X: torch.Tensor, Z: torch.Tensor | None, centre: torch.Tensor
    ) -> dict[str, Any]:
        function, factor = _FUNCTIONS[leaf.function]
        numbers = np.asarray(leaf.scale, dtype=np.float64) * math.sqrt(factor(*leaf.numbers))
        scale = torch.as_tensor(numbers, device=X.device)
        shift = centre if leaf.of_distance else torch.zeros_like(centre)
        x = (X.to(torch.float64) - shift) * scale
        z = x if Z is None else (Z.to(torch.float64) - shift) * scale
        power = leaf.function == "power"
        operand = {
            "function": function,
            "degree": leaf.numbers[1] if power else 1,
            "number": float(leaf.numbers[0]) if leaf.numbers else 0.0,
            # An error e in d^2 is one of sqrt(e) in d, which matters where exp(-d) has its kink.
            "diagonal": Z is None and leaf.function == "matern12",
            "width": x.shape[1],
        }
        if self.exact:
            left, right = _padded(x, self.rows, x.shape[1]).T, _padded(z, self.columns, x.shape[1])
            return operand | {"left": left.contiguous(), "right": right.T.contiguous()}
        if leaf.of_distance:
            x, z = _augmented(x, z)
        width = max(16, 1 << (x.shape[1] - 1).bit_length())
        width = width if width <= _WIDEST else _multiple(x.shape[1], _WIDEST)
        left = _padded(x.to(torch.float32), self.rows, width)
        right = _padded(z.to(torch.float32), self.columns, width).T.contiguous()
        return operand | {"left": left, "right": right, "width": width}


def _augmented(x: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[2 x, -1, -|x|^2] and [z, |z|^2, 1]: minus squared distances as one product."""
    squares = [(points * points).sum(dim=1, keepdim=True) for points in (x, z)]
    ones = [torch.ones_like(square) for square in squares]
    left = torch.cat([2.0 * x, -ones[0], -squares[0]], dim=1)
    return left, torch.cat([z, squares[1], ones[1]], dim=1)


def _padded(x: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    padded = torch.zeros((rows, columns), dtype=x.dtype, device=x.device)
    padded[: x.shape[0], : x.shape[1]] = x
    return padded


def _multiple(n: int, block: int) -> int:
    return -(-n // block) * block
