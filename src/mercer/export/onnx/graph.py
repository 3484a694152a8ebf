"""ONNX graphs as an array library: kernels write their formulas into them as they are.

A `Tensor` has the operators and, by `__array_namespace__`, the functions of the array API that
kernels use. What is not there has no ONNX operator, or is of no use to any kernel yet.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

# The oldest standard with axes as inputs for every reduction used here.
OPSET = 18
IR_VERSION = 9


def onnx_package():
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs onnx: pip install 'mercer[onnx]'.") from error
    return onnx


class Graph:
    """Nodes and constants, in order. Names start with a prefix that makes them unique."""

    def __init__(self, prefix=""):
        self.prefix = prefix
        self.nodes = []
        self.initializers = []
        self._count = 0

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{self.prefix}{stem}_{self._count}"

    def op(self, kind: str, *inputs: Any, width: int | None = None, **attributes: Any) -> "Tensor":
        """The output of one node; inputs that are not tensors become constants."""
        onnx = onnx_package()
        names = [v.name if isinstance(v, Tensor) else self.constant(v).name for v in inputs]
        out = self.fresh(kind.lower())
        self.nodes.append(onnx.helper.make_node(kind, names, [out], name=out, **attributes))
        return Tensor(self, out, width)

    def constant(self, value: Any) -> "Tensor":
        """Numbers as float64 (integers, truth and texts as they are, for indices and labels)."""
        array = np.asarray(value)
        if array.dtype.kind in "USO":
            array = np.vectorize(str, otypes=[object])(array)
        elif array.dtype.kind != "b":
            array = array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)
        name = self.fresh("constant")
        tensor = onnx_package().numpy_helper.from_array(np.asarray(array, order="C"), name)
        self.initializers.append(tensor)
        return Tensor(self, name)


def _operator(kind: str) -> Any:
    """A method that adds one node of this kind."""
    return lambda x, *others: x.op(kind, *others)


class Tensor:
    """A value in a graph. Arithmetic adds nodes.

    width : its number of columns, 0 for a vector, None where nobody knows
    factor : (tensor, number) where it is a product of the two
    """

    is_symbolic = True
    __array_ufunc__ = None  # NumPy leaves the operators to this class
    dtype = np.dtype(np.float64)
    device = "graph"

    def __init__(self, graph, name, width=None):
        self.graph = graph
        self.name = name
        self.width = width
        self.of_product, self.factor = False, None

    def __array_namespace__(self, api_version=None):
        return ARRAY_FUNCTIONS

    @property
    def shape(self):
        """The shape of one row: how many there are is not known."""
        return (1, self.width) if self.width else (1,)

    @property
    def ndim(self):
        return 1 if self.width == 0 else 2

    def of_width(self, columns: int | None) -> "Tensor":
        return Tensor(self.graph, self.name, columns)

    def op(self, kind: str, *others: Any, **attributes: Any) -> "Tensor":
        """An operation on numbers of the same place, wherever these are broadcast to."""
        values = [self, *map(_numbers, others)]
        return self.graph.op(kind, *values, width=_broadcast(*values), **attributes)

    __add__ = __radd__ = _operator("Add")
    __sub__, __neg__ = _operator("Sub"), _operator("Neg")
    __eq__, __lt__, __gt__ = _operator("Equal"), _operator("Less"), _operator("Greater")
    __hash__ = object.__hash__
    maximum, minimum = _operator("Max"), _operator("Min")

    def __mul__(self, other):
        if isinstance(other, Tensor) or np.size(other) != 1:
            return self.op("Mul", other)
        number = float(np.reshape(other, ()))
        if self.of_product:
            return self.scaled(number)
        product = self.op("Mul", number)
        product.factor = self, number
        return product

    __rmul__ = __mul__

    def scaled(self, factor: float) -> "Tensor":
        """A matrix times a number, in double precision also next to a matrix product.

        onnxruntime fuses constant scalars into matrix products, rounded to float32 (seen in 1.31);
        a column made for the rows at hand it leaves alone.
        """
        return self.op("Mul", self.full((1,), factor))

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, other):
        if np.size(other) == 1 and not isinstance(other, Tensor) and self.of_product:
            return self.op("Div", self.full((1,), float(np.reshape(other, ()))))
        return self.op("Div", other)

    def __rtruediv__(self, other):
        return self.graph.op("Div", np.asarray(other, dtype=float), self, width=self.width)

    def __matmul__(self, other):
        left = self.factor[0].scaled(self.factor[1]) if self.factor else self
        product = self.graph.op("MatMul", left, other, width=np.shape(other)[1])
        product.of_product = True
        return product

    def __pow__(self, exponent):
        return self.op("Pow", float(exponent))

    def __getitem__(self, key):
        """x[:, None], x[:, :1], x[:, 0], and those with two axes for products of features."""
        rows, *others = key
        if rows != slice(None):
            raise TypeError("a graph computes all rows: some of them cannot be chosen.")
        if None in others:
            axes = np.array([i + 1 for i, at in enumerate(others) if at is None])
            width = 1 if len(others) == 1 else None
            return self.graph.op("Unsqueeze", self, axes, width=width)
        (at,) = others
        if isinstance(at, slice):
            return self if at == slice(None) else self.columns(range(*at.indices(self.width)))
        return self.graph.op("Gather", self, np.array(at), axis=1, width=0)

    def columns(self, positions: Any) -> "Tensor":
        positions = np.asarray(positions, dtype=np.int64)
        return self.graph.op("Gather", self, positions, axis=1, width=len(positions))

    def concat(self, *others: "Tensor") -> "Tensor":
        widths = [_width(value) for value in (self, *others)]
        width = None if None in widths else sum(widths)
        return self.graph.op("Concat", self, *others, axis=1, width=width)

    def over_columns(self, S: np.ndarray, term: Callable[..., "Tensor"]) -> "Tensor":
        """sum_c term(x, s)_c for every row x and every s of S, one row x at a time.

        For distances that no matrix product gives: memory for one row against all of S.
        """
        helper, double = onnx_package().helper, onnx_package().TensorProto.DOUBLE
        inner = Graph(self.graph.fresh("row") + "_")
        row = Tensor(inner, f"{inner.prefix}x", self.width)
        # S belongs to the graph around the loop, whose constants the loop can see.
        fixed = Tensor(inner, self.graph.constant(S).name, self.width)
        total = ARRAY_FUNCTIONS.sum(term(row, fixed), axis=1)
        body = helper.make_graph(
            inner.nodes,
            inner.prefix + "body",
            [helper.make_tensor_value_info(row.name, double, [None])],
            [helper.make_tensor_value_info(total.name, double, [None])],
            inner.initializers,
        )
        return self.graph.op("Scan", self, body=body, num_scan_inputs=1, width=len(S))

    def full(self, columns: tuple[int, ...], value: float) -> "Tensor":
        """One value for every row: a vector for (), a matrix for a number of columns."""
        shape = self.graph.op("Shape", self)
        shape = self.graph.op("Slice", shape, *(np.array([i]) for i in (0, 1)))
        if columns:
            shape = self.graph.op("Concat", shape, np.array(columns), axis=0)
        width = columns[0] if columns else 0
        return self.graph.op(
            "Expand", np.full([1] * (1 + len(columns)), float(value)), shape, width=width
        )

    def flat(self):
        """The only column, as a vector."""
        return self.graph.op("Reshape", self, np.array([-1])).of_width(0)

    def cast(self, dtype: Any) -> "Tensor":
        onnx = onnx_package()
        return self.graph.op("Cast", self, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def named(self, name: str) -> "Tensor":
        """The same value under a name of one's own: for outputs."""
        helper = onnx_package().helper
        self.graph.nodes.append(helper.make_node("Identity", [self.name], [name], name=name + "_"))
        return Tensor(self.graph, name)


def _width(value):
    if isinstance(value, Tensor):
        return value.width
    return 0 if np.ndim(value) == 0 else np.shape(value)[-1]


def _numbers(value):
    return value if isinstance(value, Tensor) else np.asarray(value, dtype=float)


def _broadcast(*values):
    widths = [_width(value) for value in values]
    return None if None in widths else max(widths)


class _Functions:
    """The functions of the array API that formulas of kernels use."""

    __name__ = "onnx"
    float64, int64 = np.float64, np.int64
    inf = np.inf
    finfo = staticmethod(np.finfo)

    def __getattr__(self, name):
        raise AttributeError(f"there is no ONNX form of the function {name}.")

    exp, sqrt, tanh, sin, abs, minimum, maximum = (
        staticmethod(_operator(kind))
        for kind in ("Exp", "Sqrt", "Tanh", "Sin", "Abs", "Min", "Max")
    )

    log1p = staticmethod(lambda x: (x + 1.0).op("Log"))
    clip = staticmethod(lambda x, low, high: x.maximum(low).minimum(high))
    # For x >= 0 and y > 0.
    remainder = staticmethod(lambda x, y: x.op("Mod", y, fmod=1))
    ones_like = staticmethod(lambda x: x * 0.0 + 1.0)
    zeros_like = staticmethod(lambda x: x * 0.0)
    astype = staticmethod(lambda x, dtype, copy=True: x)
    concat = staticmethod(lambda parts, axis: parts[0].concat(*parts[1:]))
    take = staticmethod(lambda x, positions, axis: x.columns(positions))

    def where(self, condition: Any, x: Any, y: Any) -> Tensor:
        graph = next(value.graph for value in (condition, x, y) if isinstance(value, Tensor))
        x, y = _numbers(x), _numbers(y)
        return graph.op("Where", condition, x, y, width=_broadcast(condition, x, y))

    def sum(self, x: Tensor, axis: int, keepdims: bool = False, kind: str = "Sum") -> Tensor:
        width = int(keepdims)
        return x.graph.op(f"Reduce{kind}", x, np.array([axis]), keepdims=width, width=width)

    def max(self, x: Tensor, axis: int, keepdims: bool = False) -> Tensor:
        return self.sum(x, axis, keepdims, "Max")

    def asarray(self, x: Any, dtype: Any = None, device: Any = None) -> Any:
        return x if isinstance(x, Tensor) else np.asarray(x, dtype=dtype)

    def reshape(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        return x.graph.op("Reshape", x, np.array([-1, *shape[1:]]), width=shape[-1])


ARRAY_FUNCTIONS = _Functions()
