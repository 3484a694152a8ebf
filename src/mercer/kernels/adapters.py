"""Kernels from elsewhere: a Gram matrix, a function, a feature function; `as_kernel` for all."""

from __future__ import annotations

import difflib
import functools
import numbers
from collections.abc import Callable
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse

from ..engine import (
    Domain,
    TravelsAsNumPy,
    as_host,
    as_numpy,
    evenly,
    is_array,
    is_numpy,
    namespace,
    on_device_of,
    require,
)
from .calls import NOTHING
from .capabilities import NAMED
from .dot_product import Linear
from .gram_rows import require_square
from .kernel import ALL, Kernel
from .parametrized import printed
from .points import as_vectors, take
from .types import Array, Tile
from .wrappers import OnFeatures, as_given

# Pairs that are tried in both orders before a function is taken to be symmetric.
_SPOT_CHECKS = 16
_WHOLE_ARRAYS = (
    "If f takes two whole arrays and returns the matrix of values, as scikit-learn's rbf_kernel "
    "does, write FromFunction(f, vectorized=True)."
)


class GramColumns(TravelsAsNumPy):
    """The columns of a Gram matrix that stand for chosen training points."""

    def __init__(self, n, indices):
        self.n = n
        self.indices = indices
        self.shape = (len(indices), n)


class Precomputed(Kernel):
    r"""Use kernel values computed elsewhere: rows of X are k(x, training points).

    Notes
    -----
    .. math::

        K_{ij} \text{ as given}

    - *Valid*: unknown: the matrix is tested.
    - *Fails*: for residuals and distances of new points, which need k(z, z): give `diag=`.
    - *Elsewhere*: scikit-learn's `kernel="precomputed"`.

    Examples
    --------
    >>> from mercer import Precomputed, check_mercer
    >>> similarity = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]]
    >>> check_mercer(Precomputed(), similarity).verdict
    "refuted: a vector a with a'Ka < 0 exists on this data"
    """

    sklearn_names = ("precomputed",)
    kind = "gram"
    symmetric = False
    is_psd = None

    def landmarks(self, X: Array, indices: Array | None = None) -> Any:
        if indices is None:
            require_square(X, "here")
            indices = np.arange(X.shape[0])
        return GramColumns(X.shape[1], np.asarray(indices))

    def against(self, S: Any) -> Tile:
        def tile(rows: Any, columns: slice = ALL):
            require(
                rows.shape[1] == S.n,
                f"Precomputed() expects kernel values against the {S.n} training points, got "
                f"{rows.shape[1]} columns.",
            )
            if is_numpy(rows):
                return rows[:, S.indices[columns]]
            xp = namespace(rows)
            return xp.take(rows, on_device_of(S.indices[columns], rows, dtype=xp.int64), axis=1)

        return tile

    def diagonal(self, X: Array) -> Array:
        require(
            X.shape[0] == X.shape[1],
            "a precomputed kernel does not know k(z, z) of new points (the matrix has shape "
            f"{tuple(X.shape)}); pass it as diag=.",
        )
        xp = namespace(X)
        return np.diagonal(X).copy() if xp is np else xp.linalg.diagonal(X) + 0


class FromFunction(Kernel):
    """Make a kernel from a function of two objects: strings, graphs, sets, rows of an array.

    Parameters
    ----------
    f : callable
        Accepts two objects and returns a number.
    vectorized : bool, default=False
        Whether f accepts two batches instead and returns the matrix of values.
    symmetric : bool or None, default=None
        Whether f(x, z) = f(z, x): then each pair is asked for once. None: 16 pairs of the data are
        tried in both orders, and where these agree, f is taken to be symmetric. False: every pair
        is asked for in both orders, as :func:`check_mercer` always does.

    Notes
    -----
    .. math::

        k(x, z) = f(x, z)

    - *Valid*: unknown: it is tested on the data, and refused with a witness.
    - *Fails*: in speed, unless `vectorized=True`: one call of Python per pair.
    - *Elsewhere*: scikit-learn's callable kernels, kernlab's functions of class "kernel".

    Examples
    --------
    >>> from mercer import FromFunction
    >>> common = FromFunction(lambda a, b: len(set(a) & set(b)))
    >>> common(["night", "nacht"])
    array([[5., 3.],
           [3., 5.]])
    """

    in_expressions = False
    takes_sparse = False
    kind = "objects"
    symmetric = None
    runs_user_code = True
    is_psd = None
    domains = {
        "f": Domain.FUNCTION,
        "symmetric": Domain(lambda s: s in (None, True, False), "True, False or None"),
    }
    # Values found earlier in the same fit, where one is under way: see calls.py.
    known = NOTHING

    def __init__(
        self, f: Callable[[Any, Any], Any], vectorized: bool = False, symmetric: bool | None = None
    ) -> None:
        self.f = f
        self.vectorized = vectorized
        self.symmetric = symmetric

    def __repr__(self) -> str:
        extra = ", vectorized=True" if self.vectorized else ""
        extra += "" if self.symmetric is None else f", symmetric={self.symmetric}"
        return f"FromFunction({printed(self.f)}{extra})"

    @property
    def one_call_per_value(self) -> bool:
        return not self.vectorized

    def bind_points(self, X: Array, names: list[str] | None, weights: Array | None = None) -> Self:
        self.check_parameters()
        n = X.shape[0]
        if self.symmetric is not None or n <= _SPOT_CHECKS:
            return self.copied()
        # Whether f(x, z) = f(z, x) on pairs spread over the points.
        i = evenly(n, _SPOT_CHECKS)
        j = (i + 1 + np.arange(_SPOT_CHECKS) * (n - 2) // _SPOT_CHECKS) % n  # never i itself
        A, B = take(X, i), take(X, j)
        if self.vectorized:
            there, back = (as_numpy(v) for v in (self._values(A, B), self._values(B, A).T))
        else:
            there, back = (
                np.array([self._of_pair(x, z) for x, z in zip(*order)])
                for order in ((A, B), (B, A))
            )
        with np.errstate(invalid="ignore"):  # infinite values are refused when they are used
            alike = bool(np.abs(there - back).max() <= 1e-12 * np.abs(there).max())
        return self.with_parameters(symmetric=alike)

    def against(self, S: Array) -> Tile:
        return lambda rows, columns=ALL: self._values(rows, S[columns])

    def _values(self, X: Array, S: Array) -> Array:
        """f on every pair, checked."""
        shape = (X.shape[0], S.shape[0])
        if self.vectorized:
            return _checked_values(self.f(as_given(X), as_given(S)), shape, self, X)
        both: tuple[Any, Any] = (X, S)
        where = [x.__array_interface__ if is_numpy(x) else id(x) for x in both]
        half = self.symmetric and where[0] == where[1]  # the same slice of the points
        values = np.empty(shape)
        known = self.known  # read once: a fit in another thread may end meanwhile
        x_keys, s_keys = [known.key(x) for x in X], [known.key(s) for s in S]
        for i, x in enumerate(X):
            for j, s in enumerate(S[: i + 1] if half else S):
                values[i, j] = known.ask(self._of_pair, x, s, x_keys[i], s_keys[j])
        if half:
            values = np.tril(values) + np.tril(values, -1).T
        return _checked_values(values, shape, self, X)

    def _of_pair(self, x: Any, z: Any) -> float:
        """f on one pair, checked."""
        try:
            value = self.f(x, z)
        except Exception as error:
            if is_array(x) and x.ndim == 1:
                error.add_note(f"{self!r} calls f with two vectors. {_WHOLE_ARRAYS}")
            raise
        return _number(value, self)

    def diagonal(self, X: Array) -> Array:
        known, n = self.known, X.shape[0]
        if self.vectorized:
            own = [float(self._values(X[i : i + 1], X[i : i + 1])[0, 0]) for i in range(n)]
        else:
            own = [known.ask(self._of_pair, x, x, *[known.key(x)] * 2) for x in X]
        return _checked_values(own, (n,), self, X)


# Gaussian-process kernels of scikit-learn that are valid for every number of columns: not
# ExpSineSquared, which takes the sine of the distance over all columns. Others depend on their
# parameters, and a class defined elsewhere is tested on the data.
_GP_KERNELS = "sklearn.gaussian_process.kernels"
_VALID_THERE = {"ConstantKernel", "DotProduct", "Matern", "Product", "RBF", "Sum"}
_VALID_THERE |= {"RationalQuadratic"}
_REFUSED_THERE = {
    "WhiteKernel": "WhiteKernel is noise, not similarity (it is zero between different arrays): "
    "leave it out and give its level to KernelRidge(alpha=...).",
    "CompoundKernel": "CompoundKernel holds several kernels side by side and has no single value: "
    "add or multiply them instead.",
}


class FromSklearn(Kernel):
    """A scikit-learn Gaussian-process kernel, hyperparameters as they are."""

    in_expressions = False
    takes_sparse = False

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __repr__(self) -> str:
        return f"FromSklearn({self.kernel!r})"

    def check_parameters(self) -> None:
        for name in {type(part).__name__ for part in self._parts()} & set(_REFUSED_THERE):
            raise ValueError(_REFUSED_THERE[name])

    def _parts(self):
        nested = self.kernel.get_params(deep=True).values()
        return [self.kernel, *(p for p in nested if hasattr(p, "is_stationary"))]

    @property
    def is_psd(self) -> bool | None:
        """ConstantKernel(-1) and RationalQuadratic(alpha=-1) can be made, and are not valid."""
        kinds = [type(part) for part in self._parts()]
        if any(c.__module__ != _GP_KERNELS or c.__name__ not in _VALID_THERE for c in kinds):
            return None
        named = self.kernel.get_params(deep=True).items()
        values = [v for name, v in named if not (name.endswith("bounds") or hasattr(v, "diag"))]
        return True if all(np.all(np.asarray(v) >= 0) for v in values) else None

    def against(self, S: Array) -> Tile:
        return lambda rows, columns=ALL: self._numbers(self.kernel, rows, S[columns])

    def diagonal(self, X: Array) -> Array:
        return self._numbers(self.kernel.diag, X)

    def _numbers(self, evaluate, X, *others):
        if not is_numpy(X):
            raise TypeError(f"{self!r} runs on dense NumPy arrays only, got {type(X).__name__}.")
        with np.errstate(over="ignore", invalid="ignore"):  # the error says more
            values = np.asarray(evaluate(X, *others)).astype(X.dtype)
        finite = bool(np.isfinite(values).all())
        require(finite, f"{self!r} returned NaN or infinity: is it defined on these data?")
        return values


class FromFeatures(OnFeatures):
    r"""Make a kernel from features: k(x, z) = <g(x), g(z)> for any function g.

    Parameters
    ----------
    g : callable
        Accepts a batch of points and returns one row of numbers for each, dense or sparse: the
        transform method of any fitted transformer will do.

    Notes
    -----
    .. math::

        k(x, z) = g(x) \cdot g(z)

    - *Valid*: an inner product, for any function g.
    - *Fails*: where g has very many columns: then a formula for k is cheaper.
    - *Elsewhere*: `FunctionTransformer` of scikit-learn before any linear method.

    Examples
    --------
    >>> from mercer import FromFeatures
    >>> FromFeatures(lambda words: [[len(w), w.count("a")] for w in words])(["banana", "bread"])
    array([[45., 33.],
           [33., 26.]])
    """

    takes_sparse = False
    kernel = Linear()

    def __init__(self, g: Callable[[Any], Any]) -> None:
        self.g = g

    def bind_points(self, X: Array, names: list[str] | None, weights: Array | None = None) -> Self:
        self.check_parameters()
        return self.copied()

    def image(self, X: Array) -> Array:
        """g(X), checked: one row for each point."""
        G = self.g(as_given(X))
        if not scipy.sparse.issparse(G) and not is_array(G):
            G = np.asarray(G)
        require(
            G.ndim == 2 and G.shape[0] == X.shape[0],
            f"FromFeatures: g must return one row of features for each of the {X.shape[0]} points, "
            f"got shape {tuple(G.shape)}.",
        )
        return as_vectors(G, name="g(X)")

    has_magnitude = False  # only a scale brings back what underflows: g is not asked twice

    def rounding(self, S: Array) -> float:
        return super().rounding(S[:1])

    def features(self, X: Array) -> Array:
        G: Any = self.image(X)
        return G.toarray() if scipy.sparse.issparse(G) else G


# A kernel, its name, or a function of two points.
KernelLike: TypeAlias = Kernel | str | Callable[..., Any]


def as_kernel(kernel: KernelLike) -> Kernel:
    """Make a Kernel from a name, a function of two points, or a scikit-learn GP kernel.

    Parameters
    ----------
    kernel : Kernel, str, callable or kernel of sklearn.gaussian_process
        A kernel is returned as it is.

    Examples
    --------
    >>> from mercer import as_kernel
    >>> as_kernel("poly")
    Polynomial()
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel.lower() in NAMED:
            return NAMED[kernel.lower()]()
        near = difflib.get_close_matches(kernel.lower(), NAMED, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown kernel {kernel!r}.{hint} Known names: {', '.join(NAMED)}.")
    if isinstance(kernel, type):
        raise TypeError(f"kernel is the class {kernel.__name__}; make one: {kernel.__name__}().")
    if hasattr(kernel, "is_stationary") and hasattr(kernel, "diag"):
        return FromSklearn(kernel)
    if callable(kernel):
        f = kernel
        while isinstance(f, functools.partial):
            f = f.func
        # scikit-learn's pairwise functions, perhaps with parameters fixed.
        whole = getattr(f, "__module__", None) == "sklearn.metrics.pairwise"
        return FromFunction(kernel, vectorized=whole)
    raise TypeError(
        f"kernel must be a kernel, a name such as 'rbf', or a function of two points, got "
        f"{type(kernel).__name__}."
    )


def _number(value, kernel):
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        raise TypeError(f"{kernel!r} returned the complex number {value!r}; kernels are real.")
    try:
        # A matrix with one value is the answer to two batches; NumPy 1 x 1 matrices turn into
        # numbers with a warning.
        if is_array(value) and value.ndim > 0:
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        whole = f" {_WHOLE_ARRAYS}" if is_array(value) else ""
        raise TypeError(
            f"{kernel!r} must return one number for two points, got {type(value).__name__} "
            f"{printed(value)[:60]}.{whole}"
        ) from None


def _checked_values(values, shape, kernel, X):
    values = np.asarray(as_host(values))
    if values.dtype.kind == "c":
        raise TypeError(f"{kernel!r} returned complex numbers; kernels are real.")
    if values.shape != shape:
        raise ValueError(f"{kernel!r} returned values of shape {values.shape}, expected {shape}.")
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{kernel!r} must return numbers, got dtype {values.dtype}.")
    if not np.isfinite(values).all():
        raise ValueError(f"{kernel!r} returned NaN or infinity.")
    on_objects = scipy.sparse.issparse(X) or getattr(X.dtype, "kind", "f") == "O"
    return values.astype(np.float64) if on_objects else on_device_of(values, X)
