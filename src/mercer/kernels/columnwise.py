"""Kernels that sum over columns: nearness by absolute differences, and between histograms."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import in_place, is_symbolic, namespace, require
from .capabilities import OfOneNumber
from .geometry import dense_rows, full, inner_products, over_columns
from .kernel import ALL, Kernel
from .parameters import RULES, as_numbers, column_scale, per_column
from .spectral import ByColumn, FourierForm, MaternForm
from .types import Array, Gamma, PerColumn, Tile

# Sparse counts up to this one are compared by sparse products, one column per level.
_MOST_LEVELS = 64


class Columnwise(OfOneNumber, Kernel):
    """A formula of sum_c gamma_c term(x_c, z_c). Subclasses give the term; k is exp(-sum)."""

    takes_sparse = False
    is_psd = True
    gamma: PerColumn | str = 1.0

    def term(self, x: Array, s: Array, xp: ModuleType) -> Array:
        """The term of one column, for all pairs of its values."""
        raise NotImplementedError(f"{type(self).__name__} must define term(x, s, xp).")

    def formula(self, t: Array, xp: ModuleType) -> Array:
        t *= -1.0
        return in_place(xp.exp, t)

    def _checked(self, X: Array) -> Array:
        """Dense rows, refused where the term is not defined."""
        return dense_rows(X, self)

    def against(self, S: Array) -> Tile:
        S = self._checked(S)
        gamma = column_scale(S, self.gamma)

        def tile(rows: Any, columns: slice = ALL):
            rows, xp = self._checked(rows), namespace(rows)
            t = over_columns(lambda x, s: self.term(x, s, xp), rows, S[columns, :], gamma)
            return self.formula(t, namespace(t))

        return tile

    def diagonal(self, X: Array) -> Array:
        return full(self._checked(X), (X.shape[0],), 1.0)

    def _largest_terms(self, X: Array) -> Array:
        X = self._checked(X)
        return 2 * namespace(X).sum(namespace(X).abs(X), axis=1)  # at least the distance, about

    def rounding(self, S: Array) -> float:
        return 4.0 + S.shape[1]


class Laplacian(Columnwise):
    r"""Compare points by nearness, with rough functions: exp(-gamma |x - z|_1), the L1 distance.

    Parameters
    ----------
    gamma : float, list of one per column, "scale" or "median"
        The rules are those of RBF, with absolute deviations and distances.

    Notes
    -----
    .. math::

        k(x, z) = \exp \Bigl( -\gamma \sum_c |x_c - z_c| \Bigr)

    - *Valid*: a product over columns of kernels whose spectral density, a Cauchy density, is
      positive (Bochner).
    - *Fails*: for smooth answers: predictions have a kink at every training point. Rotating the
      columns changes it.
    - *Elsewhere*: scikit-learn's `laplacian_kernel`. kernlab's `laplacedot` has the Euclidean
      distance: Matern(nu=0.5).

    Examples
    --------
    >>> from mercer import Laplacian
    >>> Laplacian(gamma=1.0)([[0.0, 0.0]], [[1.0, 0.0], [1.0, 1.0]]).round(3)
    array([[0.368, 0.135]])
    """

    sklearn_names = ("laplacian",)
    length_powers = {"gamma": -1}
    domains = {"gamma": per_column(*RULES)}

    def __init__(self, gamma: Gamma = "scale") -> None:
        self.gamma = gamma

    def term(self, x: Array, s: Array, xp: ModuleType) -> Array:
        return in_place(xp.abs, x - s)

    def moved(self, by: np.ndarray) -> float | None:
        return float(np.sum(as_numbers(self.gamma) * by))

    def fourier_form(self) -> FourierForm | None:
        """Matern's kernel with nu = 1/2 in each column."""
        gamma = as_numbers(self.gamma)
        return ByColumn(lambda scale: MaternForm(scale, 0.5, lambda r: np.exp(-r)), gamma)


def _not_negative(X: Any, compares: str, remedy: str = "") -> Any:
    """X, refused where a value is below 0."""
    if not is_symbolic(X):
        sparse = scipy.sparse.issparse(X)
        smallest = float(X.data.min(initial=0) if sparse else namespace(X).min(X))
        require(
            smallest >= 0,
            f"Negative values in data: {compares} and needs values >= 0; the data contain "
            f"{smallest:.4g}.{remedy}",
        )
    return X


class _Histogram(Columnwise):
    """A sum over columns of a term in two non-negative numbers."""

    non_negative_only = True

    def _checked(self, X: Array) -> Array:
        compares = f"{type(self).__name__} compares histograms"
        remedy = " Shift or clip them, or use RBF or Laplacian."
        return _not_negative(dense_rows(X, self), compares, remedy)


class Chi2(_Histogram):
    r"""Compare histograms by their chi-squared distance.

    exp(-gamma sum_c (x_c - z_c)^2 / (x_c + z_c)), with 0/0 = 0.

    Parameters
    ----------
    gamma : float or list of one per column
        How fast the similarity falls with the distance; with one per column, the weights of the
        columns.

    Notes
    -----
    .. math::

        k(x, z) = \exp \Bigl( -\gamma \sum_c \frac{(x_c - z_c)^2}{x_c + z_c} \Bigr)

    - *Valid*: (x - z)^2 / (x + z) = x + z - 4 x z / (x + z), and 1 / (x + z), the integral of
      exp(-t x) exp(-t z), is a kernel; then rules 2, 4 and 6 of [KERNELS].
    - *Fails*: for values below 0, which are refused. No matrix product computes it: many columns
      take long.
    - *Elsewhere*: scikit-learn's `chi2_kernel`; its `additive_chi2_kernel` is the negative
      distance.

    Examples
    --------
    >>> from mercer import Chi2
    >>> Chi2()([[1.0, 3.0]], [[1.0, 3.0], [3.0, 1.0]]).round(3)
    array([[1.   , 0.135]])
    """

    sklearn_names = ("chi2",)
    domains = {"gamma": per_column()}
    scale_powers = {"gamma": -1}

    def __init__(self, gamma: PerColumn = 1.0) -> None:
        self.gamma = gamma

    def term(self, x: Array, s: Array, xp: ModuleType) -> Array:
        total = x + s
        if is_symbolic(total):  # onnxruntime's division multiplies by 1 / tiny = inf
            total = xp.where(total == 0, 1.0, total)
        else:
            total += float(xp.finfo(total.dtype).smallest_normal)
        difference = x - s
        # Divided before it is squared: squares of large counts would overflow.
        quotient = difference / total
        quotient *= difference
        return quotient

    def magnitude_of_sums(self, X: Array, terms: Array) -> Array:
        """Shares of all counts x + z that are wrong change sqrt(gamma (x + z)) times as many."""
        return 1 + 2 * float(np.max(as_numbers(self.gamma))) * namespace(X).sum(terms, axis=1)

    def rounding(self, S: Array) -> float:
        return 6.0 + S.shape[1]


class Intersection(_Histogram):
    r"""Compare histograms by what they have in common: sum_c min(x_c, z_c).

    Notes
    -----
    .. math::

        k(x, z) = \sum_c \min(x_c, z_c)

    - *Valid*: min(x, z) is the inner product of the indicator functions of [0, x] and [0, z].
    - *Fails*: where totals differ: large histograms dominate (take Normalized). No matrix product
      computes it.
    - *Elsewhere*: OpenCV's SVM (INTER).

    Examples
    --------
    >>> from mercer import Intersection
    >>> Intersection()([[1, 5, 0]], [[3, 2, 7]])
    array([[3.]])
    """

    sklearn_names = ("intersection",)

    def term(self, x: Array, s: Array, xp: ModuleType) -> Array:
        return xp.minimum(x, s)

    def formula(self, t: Array, xp: ModuleType) -> Array:
        return t

    def diagonal(self, X: Array) -> Array:
        return namespace(X).sum(self._checked(X), axis=1)


class Tanimoto(Kernel):
    r"""Compare molecules' fingerprints, or any counts, by the share that they have in common.

    sum_c min(x_c, z_c) / sum_c max(x_c, z_c): for 0 and 1 the size of the intersection over that of
    the union (Jaccard), for counts the min-max kernel. Two rows of zeros are alike (1).

    Values must be >= 0. Rows may be dense or sparse; sparse counts stay sparse.

    Notes
    -----
    .. math::

        k(x, z) = \frac{\sum_c \min(x_c, z_c)}{\sum_c \max(x_c, z_c)}

    - *Valid*: on non-negative vectors (Ralaivola, Swamidass, Saigo and Baldi 2005; for 0 and 1
      already Gower 1971).
    - *Fails*: for values below 0, which are refused; for dense data a matrix product does not
      compute it.
    - *Elsewhere*: RDKit's Tanimoto similarity, GAUCHE's `TanimotoKernel` (which has x.z and |x|^2 +
      |z|^2 - x.z in place of min and max: the same for 0 and 1).

    Examples
    --------
    >>> from mercer import Tanimoto
    >>> Tanimoto()([[1, 1, 0, 1]], [[1, 0, 1, 1], [1, 1, 0, 1], [0, 0, 1, 0]])
    array([[0.5, 1. , 0. ]])
    """

    non_negative_only = True
    is_psd = True

    def against(self, S: Array) -> Tile:
        S = _checked(S)
        common, sizes = _common(S), _sizes(S)

        def tile(rows: Any, columns: slice = ALL) -> Any:
            rows = _checked(rows)
            shared = common(rows, columns)
            union = _sizes(rows)[:, None] + sizes[columns][None, :]
            union -= shared
            xp = namespace(shared)
            empty = union == 0
            if is_symbolic(empty) or bool(xp.any(empty)):
                shared, union = (xp.where(empty, xp.ones_like(a), a) for a in (shared, union))
            shared /= union
            return shared

        return tile

    def diagonal(self, X: Array) -> Array:
        return _sizes(_checked(X)) * 0 + 1

    def _largest_terms(self, X: Array) -> Array:
        return 2 * _sizes(_checked(X))  # the sum of two rows is finite too

    def rounding(self, S: Array) -> float:
        # The numerator and the denominator are sums of one sign.
        return 6.0 + S.shape[1]


def _checked(X):
    return _not_negative(X, "Tanimoto compares fingerprints or counts")


def _sizes(X):
    if scipy.sparse.issparse(X):
        return np.asarray(X.sum(axis=1)).ravel()
    with np.errstate(over="ignore"):  # refused by check_range
        return namespace(X).sum(X, axis=1)


def _common(S):
    """The function of rows and columns that adds up min(x, z) over the columns of the data."""
    if not scipy.sparse.issparse(S):
        binary = _is_binary(S)

        def of_dense(rows: Any, columns: slice):
            if binary and not is_symbolic(rows) and _is_binary(rows):  # then min(x, z) = x z
                return rows @ S[columns, :].T
            return over_columns(namespace(rows).minimum, rows, S[columns, :])

        return of_dense
    levels, dense = _levels(S), cache(S.toarray)
    right = None if levels is None else _unary(S, levels)

    def of_sparse(rows: Any, columns: slice):
        if right is None or _levels(rows) is None:
            return over_columns(np.minimum, rows.toarray(), dense()[columns])
        # The number of levels 1, 2, ... that both counts reach; S has none beyond its own.
        return inner_products(_unary(rows, levels), right[columns].T)

    return of_sparse


def _levels(X):
    """The largest count, or None where values are not whole numbers or too large."""
    largest = X.data.max(initial=1)
    whole = largest <= _MOST_LEVELS and bool((X.data == np.floor(X.data)).all())
    return int(largest) if whole else None


def _unary(X, levels):
    """Counts as 0 and 1: column c becomes `levels` columns, the first x_c of them 1."""
    if levels == 1:
        return scipy.sparse.csr_array((np.minimum(X.data, 1), X.indices, X.indptr), shape=X.shape)
    reached = np.minimum(X.data, levels).astype(np.int64)
    first = np.cumsum(reached) - reached
    level = np.arange(reached.sum()) - np.repeat(first, reached)
    columns = np.repeat(X.indices.astype(np.int64) * levels, reached) + level
    starts = np.concatenate([first, [reached.sum()]])[X.indptr]
    shape = (X.shape[0], X.shape[1] * levels)
    return scipy.sparse.csr_array((np.ones(len(columns), dtype=X.dtype), columns, starts), shape)


def _is_binary(X):
    return bool(namespace(X).all((X == 0) | (X == 1)))
