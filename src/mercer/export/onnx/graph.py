"""Formulas as ONNX graphs: tensors with operators, so that a formula reads as one."""

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

    def fresh(self, stem):
        self._count += 1
        return f"{self.prefix}{stem}_{self._count}"

    def op(self, kind, *inputs, **attributes):
        """The output of one node; inputs that are not tensors become constants."""
        onnx = onnx_package()
        names = [self.tensor(value).name for value in inputs]
        out = self.fresh(kind.lower())
        self.nodes.append(onnx.helper.make_node(kind, names, [out], name=out, **attributes))
        return Tensor(self, out)

    def tensor(self, value):
        return value if isinstance(value, Tensor) else self.constant(value)

    def constant(self, value):
        """Numbers as float64 (integers and texts as they are, for indices and labels)."""
        array = np.asarray(value)
        if array.dtype.kind not in "iuUSO":
            array = array.astype(np.float64)
        name = self.fresh("constant")
        if array.dtype.kind in "USO":
            onnx = onnx_package()
            tensor = onnx.helper.make_tensor(
                name, onnx.TensorProto.STRING, array.shape, [str(s).encode() for s in array.flat]
            )
        else:
            array = array.astype(np.int64) if array.dtype.kind in "iu" else array
            tensor = onnx_package().numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.initializers.append(tensor)
        return Tensor(self, name)

    def rowwise(self, X, S, term):
        """sum_c term(x, s)_c for every row x of X and every s of S, one row of X at a time.

        For distances that no matrix product gives: memory for one row against all of S.
        """
        helper, double = onnx_package().helper, onnx_package().TensorProto.DOUBLE
        inner = Graph(self.fresh("row") + "_")
        row = Tensor(inner, f"{inner.prefix}x")
        # S belongs to the graph around the loop, whose constants the loop can see.
        total = term(row, Tensor(inner, self.tensor(S).name)).sum(axis=1)
        body = helper.make_graph(
            inner.nodes,
            inner.prefix + "body",
            [helper.make_tensor_value_info(row.name, double, [None])],
            [helper.make_tensor_value_info(total.name, double, [None])],
            inner.initializers,
        )
        return self.op("Scan", X, body=body, num_scan_inputs=1)


class Tensor:
    """A value in a graph. Arithmetic adds nodes."""

    def __init__(self, graph, name, width=None):
        self.graph = graph
        self.name = name
        self.width = width  # columns, where somebody needs to know; 0 for a vector

    def of_width(self, columns):
        return Tensor(self.graph, self.name, columns)

    def __add__(self, other):
        return self.graph.op("Add", self, other)

    __radd__ = __add__

    def __mul__(self, other):
        return self.graph.op("Mul", self, other)

    __rmul__ = __mul__

    def scaled(self, factor):
        """A matrix times a constant, in double precision also next to a matrix product.

        onnxruntime fuses constant scalars into matrix products, rounded to float32 (seen in 1.31);
        a column made for the rows at hand it leaves alone.
        """
        factor = np.asarray(factor, dtype=float)
        return self * (self.full(1, factor.item()) if factor.size == 1 else factor)

    def __sub__(self, other):
        return self.graph.op("Sub", self, other)

    def __rsub__(self, other):
        return self.graph.op("Sub", other, self)

    def __truediv__(self, other):
        return self.graph.op("Div", self, other)

    def __matmul__(self, other):
        return self.graph.op("MatMul", self, other)

    def __neg__(self):
        return self.graph.op("Neg", self)

    def __pow__(self, exponent):
        """By repeated multiplication for integers, as the kernels do it."""
        if not isinstance(exponent, int):
            return self.graph.op("Pow", self, float(exponent))
        if exponent == 0:
            return self * 0.0 + 1.0
        half = self ** (exponent // 2) if exponent > 1 else None
        if half is None:
            return self
        return half * half * self if exponent % 2 else half * half

    def exp(self):
        return self.graph.op("Exp", self)

    def sqrt(self):
        return self.graph.op("Sqrt", self)

    def abs(self):
        return self.graph.op("Abs", self)

    def maximum(self, other):
        return self.graph.op("Max", self, other)

    def minimum(self, other):
        return self.graph.op("Min", self, other)

    def sum(self, axis, keepdims=False):
        return self.graph.op("ReduceSum", self, np.array([axis]), keepdims=int(keepdims))

    def max(self, axis):
        return self.graph.op("ReduceMax", self, np.array([axis]), keepdims=1)

    def columns(self, positions):
        return self.graph.op("Gather", self, np.asarray(positions, dtype=np.int64), axis=1)

    def concat(self, *others):
        return self.graph.op("Concat", self, *others, axis=1)

    def where_zero(self, value):
        """self, with `value` where it is 0."""
        return self.graph.op("Where", self.graph.op("Equal", self, 0.0), value, self)

    def full(self, columns, value):
        """A matrix of one value with this tensor's rows."""
        rows = self.graph.op(
            "Slice", self.graph.op("Shape", self), *(np.array([i]) for i in (0, 1))
        )
        shape = self.graph.op("Concat", rows, np.array([columns]), axis=0)
        return self.graph.op("Expand", np.array([[float(value)]]), shape)

    def flat(self):
        """The only column, as a vector."""
        return self.graph.op("Reshape", self, np.array([-1])).of_width(0)

    def cast(self, dtype):
        onnx = onnx_package()
        return self.graph.op("Cast", self, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def named(self, name):
        """The same value under a name of one's own: for outputs."""
        helper = onnx_package().helper
        self.graph.nodes.append(helper.make_node("Identity", [self.name], [name], name=name + "_"))
        return Tensor(self.graph, name)
