"""Kernels from elsewhere: a Gram matrix, a function, a feature function, scikit-learn's kernels."""

import difflib
import numbers

import numpy as np
import scipy.sparse

from ..engine.arrays import as_numpy, is_array, is_numpy, namespace, on_device_of
from .base import ALL, Kernel, printed, require
from .dot_product import Cosine, Linear, Polynomial, Sigmoid
from .geometry import inner_products
from .histogram import Chi2, Intersection
from .points import as_vectors
from .stationary import RBF, Laplacian, Matern, Periodic, RationalQuadratic
from .wrappers import _checked, _require_callable, _width_of, as_given


class GramColumns:
    """The columns of a Gram matrix that stand for chosen training points."""

    def __init__(self, n, indices):
        self.n = n
        self.indices = indices
        self.shape = (len(indices), n)


class Precomputed(Kernel):
    """Kernel values computed elsewhere: rows of X are k(x, training points).

    Examples
    --------
    >>> from mercer import Precomputed, check_mercer
    >>> similarity = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]]
    >>> check_mercer(Precomputed(), similarity).verdict
    "refuted: a vector a with a'Ka < 0 exists on this data"
    """

    kind = "gram"
    symmetric = False
    is_psd = None

    def landmarks(self, X, indices=None):
        if indices is None:
            require(
                X.shape[0] == X.shape[1],
                f"Precomputed() needs a square Gram matrix here, got shape {tuple(X.shape)}.",
            )
            indices = np.arange(X.shape[0])
        return GramColumns(X.shape[1], np.asarray(indices))

    def against(self, S):
        def tile(rows, columns=ALL):
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

    def diagonal(self, X):
        require(
            X.shape[0] == X.shape[1],
            "a precomputed kernel does not know k(z, z) of new points (the matrix has shape "
            f"{tuple(X.shape)}); pass it as diag=.",
        )
        xp = namespace(X)
        return np.diagonal(X).copy() if xp is np else xp.linalg.diagonal(X) + 0


class FromFunction(Kernel):
    """k(x, z) = f(x, z) for any Python objects: strings, graphs, sets, or rows of an array.

    Parameters
    ----------
    f : callable
        Takes two objects and returns a number.
    vectorized : bool
        Whether f takes two batches instead and returns the matrix of values.

    Examples
    --------
    >>> from mercer import FromFunction
    >>> common = FromFunction(lambda a, b: len(set(a) & set(b)))
    >>> common(["night", "nacht"])
    array([[5., 3.],
           [3., 5.]])
    """

    kind = "objects"
    symmetric = False
    runs_user_code = True
    is_psd = None

    def __init__(self, f, vectorized=False):
        self.f = f
        self.vectorized = vectorized

    def __repr__(self, N_CHAR_MAX=None):
        extra = ", vectorized=True" if self.vectorized else ""
        return f"FromFunction({printed(self.f)}{extra})"

    def check_parameters(self):
        _require_callable("FromFunction", "f", self.f)

    def against(self, S):
        def tile(rows, columns=ALL):
            return self.values(rows, S[columns])

        return tile

    def values(self, X, S):
        """f on every pair, checked."""
        if self.vectorized:
            return _checked_values(
                self.f(as_given(X), as_given(S)), (X.shape[0], S.shape[0]), self, X
            )
        values = [[_number(self.f(x, s), self) for s in S] for x in X]
        return _checked_values(values, (X.shape[0], S.shape[0]), self, X)

    def diagonal(self, X):
        if self.vectorized:
            one_by_one = [
                float(self.values(X[i : i + 1], X[i : i + 1])[0, 0]) for i in range(X.shape[0])
            ]
            return _checked_values(one_by_one, (X.shape[0],), self, X)
        return _checked_values([_number(self.f(x, x), self) for x in X], (X.shape[0],), self, X)


class FromFeatures(Kernel):
    """k(x, z) = <g(x), g(z)>: a feature function makes a kernel.

    Parameters
    ----------
    g : callable
        Takes a batch of points and returns one row of numbers for each, dense or sparse: the
        transform method of any fitted transformer will do.

    Examples
    --------
    >>> from mercer import FromFeatures
    >>> FromFeatures(lambda words: [[len(w), w.count("a")] for w in words])(["banana", "bread"])
    array([[45., 33.],
           [33., 26.]])
    """

    is_psd = True

    kind = "objects"
    runs_user_code = True

    def __init__(self, g):
        self.g = g

    def __repr__(self, N_CHAR_MAX=None):
        return f"FromFeatures({printed(self.g)})"

    def check_parameters(self):
        _require_callable("FromFeatures", "g", self.g)

    def image(self, X):
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

    def against(self, S):
        G = self.image(S)
        return lambda rows, columns=ALL: _checked(
            inner_products(self.image(rows), G[columns, :].T), self
        )

    def diagonal(self, X):
        G = self.image(X)
        if scipy.sparse.issparse(G):
            return _checked(np.asarray(G.multiply(G).sum(axis=1)).ravel(), self)
        with np.errstate(over="ignore"):  # refused
            return _checked(namespace(G).sum(G * G, axis=1), self)

    def features(self, X):
        G = self.image(X)
        return G.toarray() if scipy.sparse.issparse(G) else G

    def explicit_dim(self, n_features):
        return _width_of(self.g, n_features)


class FromSklearn(Kernel):
    """A scikit-learn Gaussian-process kernel, hyperparameters as they are."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __repr__(self, N_CHAR_MAX=None):
        return f"FromSklearn({self.kernel!r})"

    def _parts(self):
        nested = self.kernel.get_params(deep=True).values()
        return [self.kernel, *(p for p in nested if hasattr(p, "is_stationary"))]

    def check_parameters(self):
        require(
            not any(type(p).__name__ == "WhiteKernel" for p in self._parts()),
            "WhiteKernel is noise, not similarity (it is zero between different arrays): leave it "
            "out and give its level to KernelRidge(alpha=...).",
        )

    @property
    def is_psd(self):
        unsure = ("PairwiseKernel", "CompoundKernel", "Exponentiation")
        return None if any(type(p).__name__ in unsure for p in self._parts()) else True

    def against(self, S):
        def tile(rows, columns=ALL):
            return np.asarray(self.kernel(_numpy_only(rows, self), S[columns])).astype(S.dtype)

        return tile

    def diagonal(self, X):
        return np.asarray(self.kernel.diag(_numpy_only(X, self))).astype(X.dtype)


# Names as in scikit-learn's pairwise kernels, and this library's own in lower case.
NAMED = {
    "linear": Linear,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "rbf": RBF,
    "laplacian": Laplacian,
    "cosine": Cosine,
    "sigmoid": Sigmoid,
    "chi2": Chi2,
    "precomputed": Precomputed,
    "matern": Matern,
    "rational_quadratic": RationalQuadratic,
    "periodic": Periodic,
    "intersection": Intersection,
}


def as_kernel(kernel):
    """A Kernel from a kernel, a name, a function of two points, or a scikit-learn GP kernel."""
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
        return FromFunction(kernel)
    raise TypeError(
        f"kernel must be a kernel, a name such as 'rbf', or a function of two points, got "
        f"{type(kernel).__name__}."
    )


def _numpy_only(X, kernel):
    if not is_numpy(X):
        raise TypeError(f"{kernel!r} runs on dense NumPy arrays only, got {type(X).__name__}.")
    return X


def _number(value, kernel):
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        raise TypeError(f"{kernel!r} returned the complex number {value!r}; kernels are real.")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{kernel!r} must return one number for two points, got {type(value).__name__} "
            f"{printed(value)[:60]}."
        ) from None


def _checked_values(values, shape, kernel, X):
    values = np.asarray(as_numpy(values) if is_array(values) else values)
    if values.dtype.kind == "c":
        raise TypeError(f"{kernel!r} returned complex numbers; kernels are real.")
    require(
        values.shape == shape,
        f"{kernel!r} returned values of shape {values.shape}, expected {shape}.",
    )
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{kernel!r} must return numbers, got dtype {values.dtype}.")
    require(bool(np.isfinite(values).all()), f"{kernel!r} returned NaN or infinity.")
    on_objects = scipy.sparse.issparse(X) or getattr(X.dtype, "kind", "f") == "O"
    return values.astype(np.float64) if on_objects else on_device_of(values, X)
