"""Kernels between histograms: rows of non-negative counts or shares."""

import numpy as np

from ..engine.arrays import in_place, is_symbolic, namespace
from ..engine.checks import require
from .base import ALL, Kernel
from .geometry import dense_rows, ones_for, over_columns
from .parameters import as_numbers, check_per_column, per_column_or_number
from .types import Array, PerColumn, Tile


class Histogram(Kernel):
    """A sum over columns of a term in two non-negative numbers."""

    takes_sparse = False
    non_negative_only = True

    def checked(self, X: Array) -> Array:
        X = dense_rows(X, self)
        if is_symbolic(X):
            return X
        smallest = float(namespace(X).min(X))
        require(
            smallest >= 0,
            f"Negative values in data: {type(self).__name__} compares histograms and needs values "
            f">= 0; the data contain {smallest:.4g}. Shift or clip them, or use RBF or Laplacian.",
        )
        return X


class Chi2(Histogram):
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
    is_psd = True

    def __init__(self, gamma: PerColumn = 1.0) -> None:
        self.gamma = gamma

    def check_parameters(self) -> None:
        check_per_column("Chi2", "gamma", self.gamma)

    def against(self, S: Array) -> Tile:
        S = self.checked(S)
        gamma = per_column_or_number(S, self.gamma)
        tiny = float(namespace(S).finfo(S.dtype).smallest_normal)

        def term(x, s):
            total = x + s
            if is_symbolic(total):  # onnxruntime's division multiplies by 1 / tiny = inf
                total = namespace(total).where(total == 0, 1.0, total)
            else:
                total += tiny
            difference = x - s
            # Divided before it is squared: squares of large counts would overflow.
            quotient = difference / total
            quotient *= difference
            return quotient

        def tile(rows, columns=ALL):
            d = over_columns(term, self.checked(rows), S[columns, :], gamma)
            d *= -1.0
            return in_place(namespace(d).exp, d)

        return tile

    def diagonal(self, X: Array) -> Array:
        return ones_for(self.checked(X))

    def largest_terms(self, X: Array) -> Array:
        return 2 * namespace(X).sum(self.checked(X), axis=1)

    def magnitude_of_sums(self, X: Array, terms: Array) -> Array:
        """Shares of all counts x + z that are wrong change sqrt(gamma (x + z)) times as many."""
        return 1 + 2 * float(np.max(as_numbers(self.gamma))) * namespace(X).sum(terms, axis=1)

    def rounding(self, S: Array) -> float:
        return 6.0 + S.shape[1]


class Intersection(Histogram):
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
    is_psd = True

    def against(self, S: Array) -> Tile:
        S = self.checked(S)

        def tile(rows, columns=ALL):
            return over_columns(namespace(rows).minimum, self.checked(rows), S[columns, :])

        return tile

    def diagonal(self, X: Array) -> Array:
        return namespace(X).sum(self.checked(X), axis=1)

    def rounding(self, S: Array) -> float:
        return 4.0 + S.shape[1]
