"""Laplacian: nearness by the sum of absolute differences."""

from typing import Self

import numpy as np

from ..engine.arrays import in_place, namespace
from .base import ALL, Kernel
from .densities import images_of, matern_density
from .geometry import dense_rows, ones_for, over_columns
from .parameters import RULES, as_numbers, check_per_column, gamma_from_data, per_column_or_number
from .spectral import ByColumn, FourierForm, RadialForm
from .types import Array, Gamma, Tile


class Laplacian(Kernel):
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
    takes_sparse = False
    is_psd = True
    length_powers = {"gamma": -1}

    def __init__(self, gamma: Gamma = "scale") -> None:
        self.gamma = gamma

    def check_parameters(self) -> None:
        check_per_column("Laplacian", "gamma", self.gamma, rules=RULES)

    def bind_points(self, X: Array, names: list[str] | None, weights: Array | None = None) -> Self:
        self.check_parameters()
        rule = isinstance(self.gamma, str)
        gamma = gamma_from_data(self.gamma, X, weights, absolute=True) if rule else self.gamma
        return self.with_parameters(gamma=gamma)

    def against(self, S: Array) -> Tile:
        S = dense_rows(S, self)
        gamma = per_column_or_number(S, self.gamma)

        def tile(rows, columns=ALL):
            rows, xp = dense_rows(rows, self), namespace(rows)
            d = over_columns(lambda x, s: in_place(xp.abs, x - s), rows, S[columns, :], gamma)
            d *= -1.0
            return in_place(xp.exp, d)

        return tile

    def diagonal(self, X: Array) -> Array:
        return ones_for(X)

    def largest_terms(self, X: Array) -> Array:
        X = dense_rows(X, self)
        return 2 * namespace(X).sum(namespace(X).abs(X), axis=1)  # at least |x - z|_1, about

    def rounding(self, S: Array) -> float:
        return 4.0 + S.shape[1]

    def moved(self, by: np.ndarray) -> float | None:
        return float(np.sum(as_numbers(self.gamma) * by))

    def fourier_form(self) -> FourierForm | None:
        """Matern's kernel with nu = 1/2 in each column."""
        gamma = as_numbers(self.gamma)

        def of_column(a: int, d: int) -> FourierForm:
            own = float(np.broadcast_to(gamma, (d,))[a])
            return RadialForm(own, matern_density(0.5), images_of(lambda r: np.exp(-r)))

        return ByColumn(of_column)
