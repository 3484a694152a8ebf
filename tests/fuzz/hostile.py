"""Data, targets and parameters that a careless or hostile caller might hand in."""

import os
import tempfile
import warnings

import numpy as np
import scipy.sparse

MAX_ROWS, MAX_COLUMNS = 14, 4


def _rows(rng):
    return rng.normal(size=(int(rng.integers(2, MAX_ROWS)), int(rng.integers(1, MAX_COLUMNS + 1))))


def _scaled(rng):
    return _rows(rng) * 10.0 ** float(rng.uniform(-300, 300))


def _unequal_columns(rng):
    X = _rows(rng)
    return X * 10.0 ** rng.uniform(-150, 150, size=X.shape[1])


def _unequal_rows(rng):
    X = _rows(rng)
    return X * 10.0 ** rng.uniform(-60, 60, size=(X.shape[0], 1))


def _far_away(rng):
    return _rows(rng) + 10.0 ** float(rng.uniform(0, 15))


def _with(value):
    def make(rng):
        X = _rows(rng)
        X[rng.integers(X.shape[0]), rng.integers(X.shape[1])] = value
        return X

    return make


def _duplicates(rng):
    X = _rows(rng)
    return X[rng.integers(0, max(1, X.shape[0] // 2), size=X.shape[0])]


def _memory_map(rng):
    X = _rows(rng)
    path = os.path.join(tempfile.mkdtemp(), "X.npy")
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def _read_only(rng):
    X = _rows(rng)
    X.setflags(write=False)
    return X


def _sparse(rng):
    return scipy.sparse.csr_array(rng.normal(size=(8, 3)) * (rng.random(size=(8, 3)) < 0.4))


def _explicit_zeros(rng):
    X = _sparse(rng)
    X.data[: len(X.data) // 2] = 0.0
    return X


def _repeated_entries(rng):
    """A COO matrix whose entries add up, out of order."""
    i, j = rng.integers(6, size=20), rng.integers(3, size=20)
    return scipy.sparse.coo_array((rng.normal(size=20), (i, j)), shape=(6, 3))


def _frame(rng):
    import pandas as pd

    X = _rows(rng)
    return pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])


def _mixed_frame(rng):
    import pandas as pd

    return pd.DataFrame({"a": rng.normal(size=5), "b": list("abcde"), "c": [1, 2, None, 4, 5]})


def _tensor(rng):
    try:
        import torch
    except ImportError:
        return _rows(rng)
    return torch.tensor(_rows(rng))


def _gradient_tensor(rng):
    try:
        import torch
    except ImportError:
        return _rows(rng)
    return torch.tensor(_rows(rng), requires_grad=True)


def _matrix(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix(_rows(rng))


DATA = {
    "normal": _rows,
    "scaled": _scaled,
    "unequal columns": _unequal_columns,
    "unequal rows": _unequal_rows,
    "far away": _far_away,
    "tiny": lambda rng: _rows(rng) * 1e-300,
    "huge": lambda rng: _rows(rng) * 1e300,
    "denormal": lambda rng: _rows(rng) * 5e-324,
    "nan": _with(np.nan),
    "infinity": _with(np.inf),
    "minus infinity": _with(-np.inf),
    "one outlier": _with(1e200),
    "float32": lambda rng: _rows(rng).astype(np.float32),
    "float32 huge": lambda rng: (_rows(rng) * 1e30).astype(np.float32),
    "float32 tiny": lambda rng: (_rows(rng) * 1e-40).astype(np.float32),
    "float16": lambda rng: _rows(rng).astype(np.float16),
    "long double": lambda rng: _rows(rng).astype(np.longdouble),
    "integers": lambda rng: rng.integers(-9, 9, size=(8, 3)),
    "large integers": lambda rng: rng.integers(2**60, 2**62, size=(8, 3)),
    "unsigned": lambda rng: rng.integers(0, 255, size=(8, 3)).astype(np.uint8),
    "booleans": lambda rng: rng.random(size=(8, 3)) > 0.5,
    "non-negative": lambda rng: np.abs(_rows(rng)),
    "counts": lambda rng: rng.poisson(2, size=(8, 3)).astype(float),
    "zeros": lambda rng: np.zeros((6, 2)),
    "constant": lambda rng: np.full((6, 2), 3.7),
    "constant column": lambda rng: np.column_stack([rng.normal(size=7), np.full(7, 1e5)]),
    "duplicates": _duplicates,
    "one row": lambda rng: rng.normal(size=(1, 3)),
    "two rows": lambda rng: rng.normal(size=(2, 3)),
    "one column": lambda rng: rng.normal(size=(7, 1)),
    "one number": lambda rng: rng.normal(size=(1, 1)),
    "wide": lambda rng: rng.normal(size=(3, 40)),
    "no rows": lambda rng: np.empty((0, 3)),
    "no columns": lambda rng: np.empty((3, 0)),
    "nothing": lambda rng: np.empty((0, 0)),
    "vector": lambda rng: rng.normal(size=5),
    "cube": lambda rng: rng.normal(size=(3, 3, 3)),
    "scalar": lambda rng: np.float64(3.0),
    "list of lists": lambda rng: _rows(rng).tolist(),
    "ragged": lambda rng: [[1.0, 2.0], [3.0]],
    "empty list": lambda rng: [],
    "None": lambda rng: None,
    "text": lambda rng: "hello",
    "number": lambda rng: 5,
    "dict": lambda rng: {"a": [1.0]},
    "object": lambda rng: object(),
    "strings": lambda rng: np.array([["a", "b"], ["c", "d"]]),
    "numbers as text": lambda rng: np.array([["1", "2"], ["3", "4.5"]]),
    "objects": lambda rng: np.array([[1.0, "a"], [None, {}]], dtype=object),
    "objects that are numbers": lambda rng: _rows(rng).astype(object),
    "complex": lambda rng: _rows(rng) + 1j,
    "dates": lambda rng: np.array([["2020-01-01"], ["2021-01-01"]], dtype="datetime64[D]"),
    "records": lambda rng: np.zeros(3, dtype=[("a", float), ("b", int)]),
    "masked": lambda rng: np.ma.masked_greater(_rows(rng), 0.5),
    "matrix": _matrix,
    "memory map": _memory_map,
    "read-only": _read_only,
    "Fortran order": lambda rng: np.asfortranarray(_rows(rng)),
    "zero strides": lambda rng: np.broadcast_to(rng.normal(size=3), (6, 3)),
    "zero-stride columns": lambda rng: np.broadcast_to(rng.normal(size=(6, 1)), (6, 3)),
    "reversed": lambda rng: _rows(rng)[::-1, ::-1],
    "every other": lambda rng: np.repeat(_rows(rng), 2, axis=0)[::2],
    "big-endian": lambda rng: _rows(rng).astype(">f8"),
    "sparse": _sparse,
    "sparse with explicit zeros": _explicit_zeros,
    "sparse, columns": lambda rng: _sparse(rng).tocsc(),
    "sparse, entries that add up": _repeated_entries,
    "sparse, all zero": lambda rng: scipy.sparse.csr_array((5, 3)),
    "sparse nan": lambda rng: scipy.sparse.csr_array(np.array([[np.nan, 0.0], [1.0, 2.0]])),
    "sparse huge": lambda rng: scipy.sparse.csr_array(np.array([[1e300, 0.0], [0.0, 1e-300]])),
    "sparse matrix": lambda rng: scipy.sparse.csr_matrix(_rows(rng)),
    "frame": _frame,
    "mixed frame": _mixed_frame,
    "tensor": _tensor,
    "tensor with gradient": _gradient_tensor,
    "gram": lambda rng: (lambda X: X @ X.T)(rng.normal(size=(6, 3))),
}

TARGETS = {
    "classes": lambda n, rng: np.arange(n) % 2,
    "three classes": lambda n, rng: np.arange(n) % 3,
    "texts": lambda n, rng: np.array(["a", "b"])[np.arange(n) % 2],
    "numbers": lambda n, rng: rng.normal(size=n),
    "two columns": lambda n, rng: rng.normal(size=(n, 2)),
    "column": lambda n, rng: rng.normal(size=(n, 1)),
    "huge": lambda n, rng: rng.normal(size=n) * 1e300,
    "tiny": lambda n, rng: rng.normal(size=n) * 1e-300,
    "one class": lambda n, rng: np.zeros(n),
    "all different": lambda n, rng: np.arange(n),
    "nan": lambda n, rng: np.where(np.arange(n) == 0, np.nan, 1.0),
    "infinity": lambda n, rng: np.where(np.arange(n) == 0, np.inf, 1.0),
    "too long": lambda n, rng: rng.normal(size=n + 1),
    "too short": lambda n, rng: rng.normal(size=max(0, n - 1)),
    "empty": lambda n, rng: [],
    "None": lambda n, rng: None,
    "text": lambda n, rng: "target",
    "objects": lambda n, rng: np.array([object() for _ in range(n)], dtype=object),
    "mixed": lambda n, rng: np.array([1, "a"] * n, dtype=object)[:n],
    "cube": lambda n, rng: np.zeros((n, 2, 2)),
    "complex": lambda n, rng: np.ones(n) * 1j,
    "booleans": lambda n, rng: np.arange(n) % 2 == 0,
    "list": lambda n, rng: (np.arange(n) % 2).tolist(),
}


class Odd:
    """An object of no use."""

    def __repr__(self):
        return "<Odd>"


PARAMETERS = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    10**30,
    0.5,
    -0.5,
    1e300,
    1e-300,
    float("nan"),
    float("inf"),
    1j,
    "",
    "nonsense",
    "rbf",
    b"bytes",
    [],
    [1.0, 2.0],
    [[1.0]],
    (),
    {},
    {"a": 1},
    np.array(2.0),
    np.array([1.0, 2.0]),
    np.array([]),
    np.array(["a"]),
    np.eye(2),
    np.float32(0.5),
    np.int64(2),
    Odd(),
    Odd,
    len,
    slice(None),
    range(3),
]
