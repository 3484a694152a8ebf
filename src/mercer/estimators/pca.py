"""KernelPCA: principal components of the feature space, by whichever of four equal ways is best."""

from __future__ import annotations

import numbers
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..engine import (
    Domain,
    as_numpy,
    eigh,
    eps_of,
    is_array,
    is_numpy,
    itemsize,
    namespace,
    on_device_of,
    positive_part,
    tiles,
)
from ..expansion import Expansion
from ..fit import Statistic
from ..kernels import KernelLike, NotPSDError, RandomState
from ..rows import Spread
from ..space import Eigenpairs, signs
from .kernel_map import KernelMap, fit_rows
from .map_method import Projection, as_points, copy, inverse_root, pad_columns
from .preimages import PreimageData, on_scores, preimage_data, preimage_data_of_scores

SOLVERS = ("auto", "dense", "factor", "krylov")
# Up to here a full eigendecomposition is a matter of milliseconds.
_SMALL = 500
# Fewer components than a tenth of the points: Krylov; ranks below an eighth of them are low, and
# worth looking for where there are few columns (smooth kernels in few dimensions).
FEW_COMPONENTS, LOW_RANK, FEW_COLUMNS = 10, 8, 16


# Entries closer than this, relative to them, are equal: the sign rule of space/spectra.py.
_TIED = 1e-6


@dataclass(frozen=True)
class _Extremes:
    """The largest of the scores and of their negatives, and the first row close to each; they add.

    From these follow the signs of components, whatever the order of the passes.
    """

    largest: np.ndarray
    at: np.ndarray

    @classmethod
    def of(cls, scores: Any, start: int = 0) -> _Extremes:
        scores = as_numpy(scores).astype(np.float64)
        both = np.stack([scores, -scores])
        largest = both.max(axis=1)
        near = both >= (largest - _TIED * np.abs(largest))[:, None]
        return cls(largest, start + near.argmax(axis=1))

    def __add__(self, other):
        gap = other.largest - self.largest
        tied = np.abs(gap) <= _TIED * np.maximum(np.abs(self.largest), np.abs(other.largest))
        at = np.where(gap > 0, other.at, self.at)
        at = np.where(tied, np.minimum(self.at, other.at), at)
        return _Extremes(np.maximum(self.largest, other.largest), at)

    def signs(self) -> np.ndarray:
        """-1 where the first entry within tolerance of the largest |entry| is negative."""
        gap = self.largest[1] - self.largest[0]
        tied = np.abs(gap) <= _TIED * np.abs(self.largest).max(axis=0)
        return np.where(np.where(tied, self.at[1] < self.at[0], gap > 0), -1.0, 1.0)


def _extremes(linear, points, start=0):
    """The step of a fold that finds the largest and smallest scores."""
    return _Extremes.of(linear(points), start)


class KernelPCA(ClassNamePrefixFeaturesOutMixin, Projection):
    """Find the directions in which data vary most in the feature space of a kernel.

    Principal component analysis there: [EXACT] section 3, [NPT] IV-A. Given the same kernel,
    eigenvalues and scores are those of scikit-learn's KernelPCA (the sign of each component is
    fixed: its score of largest absolute value on the training points is positive).

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many; a number between 0 and 1 is the share of the variance to keep; None is all with a
        non-zero eigenvalue. Above the rank, columns of zeros.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
        A map gives control of rank, tolerance and landmarks.
    form : {"combined", "dual", "primal", "classical"}, default="combined"
        How scores of new points are written: [EXACT] (25), (23), (16) or Appendix A. All are equal,
        and (25) is computed; "primal" is ordinary PCA on the coordinates of the map (solver
        "factor").
    solver : {"auto", "dense", "factor", "krylov"}, default="auto"
        "dense": all of the centred kernel matrix; "krylov": its leading eigenpairs; "factor": from
        the coordinates of a map, n r^2 operations at rank r (what a KernelMap always uses). "auto"
        goes by the number of points, of components and the rank.
    random_state : int, RandomState or None, default=None
        Start of the Krylov iteration.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred kernel matrix (n times the variance), largest first.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Of unit length; scores of the training points are eigenvectors_ * sqrt(eigenvalues_).
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each component in the whole variance.
    n_components_ : int
        How many components were kept.
    kernel_ : Kernel
        The kernel with data-dependent parameters turned into numbers.
    X_fit_ : the training points (not kept for Gram matrices, nor where a KernelMap was given)
        What new points are compared with.
    kernel_map_ : KernelMap
        Where coordinates were used.
    mean_ : array of shape (rank,)
        Of these coordinates.
    projection_ : Expansion or LinearOnMap
        The function from points to scores.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA, Polynomial
    >>> X = np.array([[1.0, 1.0], [2.0, 4.0], [-1.0, 1.0], [-2.0, 4.0]])
    >>> pca = KernelPCA(kernel=Polynomial(degree=2)).fit(X)
    >>> pca.eigenvalues_.round(4)
    array([277.9275, 252.    ,   2.0725])
    >>> pca.transform([[0.0, 0.0]]).round(4)
    array([[0.    , 9.4491, 0.    ]])
    >>> pca.inverse_transform(pca.transform(X)).round(1)  # pre-images
    array([[ 1.,  1.],
           [ 2.,  4.],
           [-1.,  1.],
           [-2.,  4.]])
    """

    domains = {
        "form": Domain.one_of("combined", "dual", "primal", "classical"),
        "solver": Domain.one_of(*SOLVERS),
        "n_components": Domain(
            lambda k: k is None or Domain.count(1).accepts(k) or Domain.SHARE.accepts(k),
            "a positive integer, a share of the variance between 0 and 1, or None",
        ),
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        kernel: KernelLike | KernelMap = "rbf",
        *,
        form: Literal["combined", "dual", "primal", "classical"] = "combined",
        solver: Literal["auto", "dense", "factor", "krylov"] = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.n_components: Any = n_components
        self.kernel = kernel
        self.form = form
        self.solver = solver
        self.random_state = random_state

    # --- fitting --------------------------------------------------------------------------------

    def _fit(self, X):
        """Scores of the training points, where they are at hand."""
        self._check_together()
        training = self._read(X)
        if not training.is_held:
            if self.solver in ("dense", "krylov"):
                raise ValueError(
                    f"solver={self.solver!r} needs all rows at once; for chunked rows "
                    "use 'factor' or 'auto'."
                )
            return self._fit_factor(training, self._new_map(append_residual=False))
        kernel, points = training.kernel, training.points
        solver = self.solver if self.solver != "auto" else self._auto(kernel, points)
        scores, most = None, points.shape[0] // LOW_RANK
        if solver == "low rank":
            scores = self._fit_factor(training, self._new_map(max_rank=most), most)
            solver = self._of_matrix(points.shape[0])
        if solver == "factor":
            scores = self._fit_factor(training, self._new_map(append_residual=False))
        elif scores is None:
            scores = self._fit_kernel_matrix(kernel, points, solver)
        shown = kernel.layout.shown(points)
        if shown is not None and not isinstance(self.kernel, KernelMap):
            self.X_fit_ = copy(shown)
        return None if scores is None else as_points(scores, points)

    def _fit_factor(self, training, kernel_map, most=None):
        """PCA on the coordinates of a map: the primal form, on landmarks. [EXACT] (11), (12).

        None where the rank is not below `most`, or where the rows were not held.
        """
        fit = fit_rows(kernel_map, training, Statistic(Spread.of))
        if most is not None and kernel_map.rank_ >= most:
            return None
        self.kernel_map_, self.kernel_ = kernel_map, kernel_map.kernel_
        training.keep_names(self)
        sums = fit.sums
        self.mean_, xp = sums.mean, namespace(sums.mean)
        total = float(xp.linalg.trace(sums.scatter))
        values, axes = eigh(sums.scatter)
        k = self._count(values, total)
        values, axes = values[:k], axes[:, :k]
        values = self._cut(values, self._scale(values), sums.largest, sums.n)
        wanted = self._finish(values, total, sums.n)
        Phi, offset = fit.coordinates(), -(sums.mean @ axes)
        if Phi is None:
            # One more look at the rows fixes the signs: the largest score is not known before.
            linear = fit.map.linear(axes, offset)
            extremes = training.rows_of(self.kernel_).fold(partial(_extremes, linear))
            sign = on_device_of(extremes.signs(), axes)
        else:
            panels = tiles.panel_slices(Phi, Phi.shape[1])
            scores = [(Phi[where, :] - sums.mean[None, :]) @ axes for where in panels]
            scores = scores[0] if len(scores) == 1 else namespace(Phi).concat(scores)
            sign = signs(scores)
        present = xp.astype(values > 0, values.dtype)  # 0 for a zero eigenvalue
        axes = pad_columns(axes * (sign * present)[None, :], wanted)
        self.projection_ = fit.map.linear(axes, -(sums.mean @ axes))
        if Phi is None:
            return None
        self.eigenvectors_ = pad_columns(scores * (sign * inverse_root(values))[None, :], wanted)
        return self.eigenvectors_ * xp.sqrt(self.eigenvalues_)[None, :]

    def _auto(self, kernel, points):
        """The cheapest exact solver for these sizes."""
        n, valid = points.shape[0], kernel.is_proven
        if isinstance(self.kernel, KernelMap) or self.form == "primal":
            return "factor"
        if n <= _SMALL:
            return "dense"
        if is_array(points) and not is_numpy(points):
            # A device's eigensolver is slow, its products are not.
            return self._of_matrix(n)
        if not isinstance(self.n_components, numbers.Integral):
            return "factor" if valid else "dense"
        width = points.shape[1] if points.ndim == 2 else None
        dimension = kernel.explicit_dim(width)
        small = dimension is not None and dimension < n / LOW_RANK
        if valid and (small or (width is not None and width <= FEW_COLUMNS)):
            return "low rank"
        return self._of_matrix(n)

    def _of_matrix(self, n):
        whole = isinstance(self.n_components, numbers.Integral)
        return "krylov" if whole and self.n_components * FEW_COMPONENTS <= n else "dense"

    def _fit_kernel_matrix(self, kernel, points, solver):
        """Eigenvectors of H K H, and what the scores of new points need: phi(z) = k_z W + b."""
        self.kernel_, n = kernel, points.shape[0]
        diagonal = kernel.diagonal(points)
        largest = float(namespace(diagonal).max(namespace(diagonal).abs(diagonal)))
        if solver == "krylov":
            pairs = self._leading(kernel, points)
        else:
            k = int(self.n_components) if isinstance(self.n_components, numbers.Integral) else None
            pairs = Eigenpairs.dense(kernel, points, k)
        xp, row_means = namespace(pairs.values), pairs.row_means
        total = float(xp.sum(diagonal) - xp.sum(row_means))  # the trace of H K H
        scale, k = self._scale(pairs.values), self._count(pairs.values, total)
        values, U = pairs.values[:k], pairs.vectors[:, :k]
        values = self._cut(values, scale, largest, n, kernel, U)
        wanted = self._finish(values, total, n)
        U = U - xp.mean(U, axis=0)[None, :]  # rounding has put a little of 1 into them
        present = xp.astype(values > 0, values.dtype)
        U = pad_columns(U * (signs(U) * present)[None, :], wanted)
        values = self.eigenvalues_
        # [EXACT] (25), k_z'(a - mean(a) 1) - n lambda mean(a) with a - mean(a) 1 = W: the mean of a
        # follows from that of K W = n lambda a, and neither a centred kernel row nor the unstable
        # product K W / (n lambda) is needed. (23) and Appendix A are the same numbers.
        W = U * inverse_root(values)[None, :]
        self.projection_ = Expansion(kernel, kernel.landmarks(copy(points)), W, -(row_means @ W))
        self.eigenvectors_ = U
        return U * xp.sqrt(values)[None, :]

    def _leading(self, kernel, points):
        k = min(self.n_components, points.shape[0])
        tol, seed = max(1e-7, 64 * eps_of(tiles.allocate(points, (1, 1)))), 0
        if self.random_state is not None:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
        pairs = Eigenpairs.leading(kernel, points, k, tol=tol, random_state=seed)
        size = max(self._scale(pairs.values), float(np.finfo(float).tiny))
        worst = max(as_numpy(pairs.residuals).tolist(), default=0.0) / size
        if worst > 1.01 * tol:
            warnings.warn(
                f"the Krylov iteration left a relative residual of {worst:.2g}; solver='dense' is "
                "slower and exact.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return pairs

    # --- how many components, and which are zero --------------------------------------------------

    @staticmethod
    def _scale(values):
        return max(float(values[0]), 0.0) if values.shape[0] else 0.0

    def _count(self, values, total):
        """Components to keep among all eigenvalues (zeros are cut afterwards)."""
        if self.n_components is None:
            return values.shape[0]
        if isinstance(self.n_components, numbers.Integral):
            return min(self.n_components, values.shape[0])
        share = np.cumsum(as_numpy(positive_part(values))) / max(total, float(np.finfo(float).tiny))
        below = int(np.sum(share < self.n_components))
        return min(below + 1, values.shape[0])

    def _cut(self, values, scale, largest, n, kernel=None, vectors=None):
        """Eigenvalues that are rounding become zero; clearly negative ones refute the kernel.

        Rounding is relative to the largest eigenvalue, and to the largest k(x, x): centring cannot
        keep more digits than the kernel has.
        """
        xp, single = namespace(values), itemsize(values) == 4
        ratio = 2e-7 if single else 1e-12  # scikit-learn's
        zero = max(ratio * scale, 4 * n**0.5 * eps_of(values) * max(scale, largest))
        if kernel is not None and not kernel.is_proven and values.shape[0]:
            smallest = float(xp.min(values))
            if smallest < -max((1e-5 if single else 1e-10) * scale, zero):
                raise NotPSDError(
                    f"There are significant negative eigenvalues: {kernel!r} has {smallest:.4g} on "
                    f"this data (the largest is {scale:.4g}), so it is not positive semi-definite.",
                    witness=vectors[:, int(xp.argmin(values))],
                    remedy="Ask for fewer components, or pass KernelMap(kernel, "
                    "indefinite='clip').",
                )
        return xp.where(values > zero, values, xp.zeros_like(values))

    def _finish(self, values, total, n):
        """How many components: zeros are left out or, where asked for, kept with a warning."""
        xp = namespace(values)
        rank = int(xp.sum(xp.astype(values > 0, xp.int64)))
        if isinstance(self.n_components, numbers.Integral):
            wanted = min(int(self.n_components), n)
            if rank < int(self.n_components):
                warnings.warn(
                    f"n_components={self.n_components} is more than the rank {rank} of the centred "
                    f"kernel matrix: the last {wanted - rank} of {wanted} columns are zero.",
                    UserWarning,
                    stacklevel=6,
                )
        else:
            wanted = rank
        values = pad_columns(values[None, :], wanted)[0, :]
        self.eigenvalues_ = values
        self.explained_variance_ratio_ = values / total if total > 0 else values
        self._n_features_out = self.n_components_ = wanted
        return wanted

    # --- checks --------------------------------------------------------------------------

    def _check_together(self):
        """Parameters that go together."""
        if self.solver == "krylov" and not isinstance(self.n_components, numbers.Integral):
            raise ValueError(
                "solver='krylov' finds a given number of components, got "
                f"n_components={self.n_components!r}; use 'factor' or 'dense'."
            )
        if self.solver in ("dense", "krylov") and isinstance(self.kernel, KernelMap):
            raise ValueError(
                f"a KernelMap means solver='factor', got {self.solver!r}; for the others pass its "
                "kernel."
            )
        if self.solver in ("dense", "krylov") and self.form == "primal":
            raise ValueError(
                "form='primal' is PCA on the coordinates of a map: solver must be 'factor' or "
                f"'auto', got {self.solver!r}."
            )


@preimage_data.register
def _(model: KernelPCA) -> PreimageData:
    linear = model.projection_
    if hasattr(model, "kernel_map_"):
        back = preimage_data_of_scores(preimage_data(model.kernel_map_), linear, model.mean_)
    else:
        kernel, S, W = model.kernel_, linear.S, linear.W

        def sums(Z: Any):
            return Z @ W.T + 1 / W.shape[0]

        back = PreimageData(kernel, S, None, S, sums, on_scores(kernel), 1.0)
    if hasattr(model, "X_fit_"):
        xp = namespace(model.eigenvectors_)
        scores = model.eigenvectors_ * xp.sqrt(model.eigenvalues_)[None, :]
        back = replace(back, points=model.X_fit_, coordinates=scores)
    return back
