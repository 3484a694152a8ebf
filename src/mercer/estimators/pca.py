"""KernelPCA: principal components of the feature space, by whichever of four equal ways is best."""

import numbers
import warnings
from functools import partial

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..engine import tiles
from ..engine.arrays import as_numpy, eigh, namespace, row_norms
from ..kernels import NotPSDError
from ..kernels import points as pts
from ..kernels.base import is_number
from ..rows.dask import lazily
from ..rows.moments import Moments
from ..rows.stream import is_stream
from ..space.centred import WRITTEN, all_eigenpairs
from ..space.krylov import leading_eigenpairs
from ..space.spectral import signs
from .arguments import shows_new_spelling
from .base import all_or_nothing, validated_points
from .columns import as_points, copy, in_precision, inverse_root, on_host, support, wide
from .kernel_map import KernelMap
from .map_method import MapMethod
from .partitions import in_passes, largest_scores, spread
from .preimage import Combination, has_points, on_scores, preimage

FORMS = ("combined", "dual", "primal", "classical")
SOLVERS = ("auto", "dense", "factor", "krylov")
# Up to here a full eigendecomposition is a matter of milliseconds.
SMALL = 500
# Fewer components than a tenth of the points: Krylov; ranks below an eighth of them are low, and
# worth looking for where there are few columns (smooth kernels in few dimensions).
FEW_COMPONENTS, LOW_RANK, FEW_COLUMNS = 10, 8, 16


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MapMethod):
    """Principal component analysis in the feature space of a kernel: [EXACT] section 3, [NPT] IV-A.

    Given the same kernel, eigenvalues and scores are those of scikit-learn's KernelPCA (the sign of
    each component is fixed: its largest score on the training points is positive).

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many; a number between 0 and 1 is the share of the variance to keep; None is all with a
        non-zero eigenvalue. Above the rank, columns of zeros.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
        A map gives control of rank, tolerance and landmarks.
    form : {"combined", "dual", "primal", "classical"}, default="combined"
        How scores of new points are written: [EXACT] (25), (23), (16) or Appendix A. All are equal;
        "primal" is ordinary PCA on the coordinates of the map (solver "factor").
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
    n_components_ : int
    kernel_ : Kernel
        The kernel with data-dependent parameters turned into numbers.
    X_fit_ : the training points (not kept for Gram matrices, nor where a KernelMap was given)
    kernel_map_ : KernelMap
        Where coordinates were used.

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
    """

    @shows_new_spelling(
        eigen_solver="use solver='dense', 'krylov', 'factor' or 'auto'",
        fit_inverse_transform="inverse_transform always works, and learns at its first use",
        alpha="the ridge of pre-images is an argument of mercer.preimage(model, Z, alpha=...)",
        remove_zero_eig="n_components=None leaves zero eigenvalues out",
        copy_X="X is never changed",
        tol="'krylov' stops at residuals of 1e-7",
        max_iter="'krylov' runs until it has converged",
        iterated_power="there is no randomized solver; 'krylov' is faster and exact",
        n_jobs="give the threads to the map: kernel=KernelMap(kernel, n_jobs=...)",
    )
    def __init__(
        self,
        n_components=None,
        kernel="rbf",
        *,
        form="combined",
        solver="auto",
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.form = form
        self.solver = solver
        self.random_state = random_state

    # --- fitting --------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X, y=None):
        """Find the principal components of the training points."""
        self._fit(X)
        return self

    @all_or_nothing
    def fit_transform(self, X, y=None):
        """Fit, and return the scores of the training points."""
        return self._fit(X)

    def _fit(self, X):
        self._check_parameters()
        if in_passes(X):
            return self._fit_partitions(X)
        kernel = self._leaf_kernel()
        points = validated_points(self, X, kernel, reset=True)
        self._forget()
        solver = self.solver if self.solver != "auto" else self._auto(kernel, points)
        if solver == "low rank":
            kernel_map = self._new_map().set_params(max_rank=points.shape[0] // LOW_RANK)
            Phi = kernel_map.fit_coordinates(X)
            if kernel_map.rank_ < kernel_map.max_rank:
                self._from_rows(kernel_map, X, Phi)
            else:
                solver = "krylov" if self._few(points.shape[0]) else "dense"
        if solver == "factor":
            kernel_map = self._new_map().set_params(residual=False)
            self._from_rows(kernel_map, X, kernel_map.fit_coordinates(X))
        elif solver in ("dense", "krylov"):
            self._from_kernel_matrix(
                kernel.bind_points(points, pts.column_names(X)), points, solver
            )
        if kernel.kind != "gram" and not isinstance(self.kernel, KernelMap):
            self.X_fit_ = copy(points)
        self._n_features_out = self.n_components_ = self.eigenvalues_.shape[0]
        if not hasattr(self, "eigenvectors_"):
            return self.transform(X)
        xp = namespace(self.eigenvectors_)
        return as_points(self.eigenvectors_ * xp.sqrt(self.eigenvalues_)[None, :], points)

    def _forget(self):
        """An earlier fit may have used another solver, with attributes of its own."""
        for name in ("kernel_map_", "X_fit_", "_axes", "_mean", "_weights", "_intercept"):
            if name in vars(self):
                delattr(self, name)

    def _fit_partitions(self, X):
        """The primal form from sums over partitions; scores of the training points are lazy."""
        if self.solver in ("dense", "krylov"):
            raise ValueError(
                f"solver={self.solver!r} needs all rows at once; on a Dask collection it is "
                "'factor' or 'auto'."
            )
        self._forget()
        _, sums = self._fit_sums(X, partial(spread, X=X), residual=False)
        self._from_sums(self.kernel_map_, X, sums)
        self._n_features_out = self.n_components_ = self.eigenvalues_.shape[0]
        return None if is_stream(X) else self.transform(X)

    def _from_rows(self, kernel_map, X, Phi):
        """From coordinates in memory, or from sums where there are more rows than that."""
        if Phi is None:
            self._from_sums(kernel_map, X, spread(kernel_map, X))
        else:
            self._from_coordinates(kernel_map, Phi)

    def _from_sums(self, kernel_map, X, sums):
        """PCA from mean and scatter of the coordinates.

        One more look at the rows' kernel values fixes the signs: which score is the largest is not
        known before the axes are.
        """
        self.kernel_map_, self.kernel_ = kernel_map, kernel_map.kernel_
        self._mean = sums.mean
        total = float(namespace(sums.mean).linalg.trace(sums.scatter))
        values, axes = eigh(sums.scatter)
        k = self._count(values, total)
        values, axes = values[:k], axes[:, :k]
        values = self._cut(values, self._scale(values), sums.largest, sums.n)
        sign = largest_scores(kernel_map, X, axes, -(sums.mean @ axes)).signs()
        self._axes = axes * (sign * support(values))[None, :]
        self._finish(values, axes[:0, :], total, sums.n)
        del self.eigenvectors_  # one row for each training point

    def _auto(self, kernel, points):
        """The cheapest exact solver for these sizes."""
        n, valid = points.shape[0], kernel.is_proven
        if isinstance(self.kernel, KernelMap) or self.form == "primal":
            return "factor"
        if n <= SMALL:
            return "dense"
        if not on_host(points):  # a device's eigensolver is slow, its products are not
            few = isinstance(self.n_components, numbers.Integral) and self._few(n)
            return "krylov" if few else "dense"
        if not isinstance(self.n_components, numbers.Integral):
            return "factor" if valid else "dense"
        width = points.shape[1] if points.ndim == 2 else None
        dimension = kernel.explicit_dim(width)
        small = dimension is not None and dimension < n / LOW_RANK
        if valid and (small or (width is not None and width <= FEW_COLUMNS)):
            return "low rank"
        return "krylov" if self._few(n) else "dense"

    def _few(self, n):
        return self.n_components * FEW_COMPONENTS <= n

    def _from_coordinates(self, kernel_map, Phi):
        """PCA on phi(X): the primal form, on landmarks. [EXACT] (11), (12)."""
        self.kernel_map_, self.kernel_ = kernel_map, kernel_map.kernel_
        xp = namespace(Phi)
        largest = float(xp.max(row_norms(Phi, xp)))
        # In memory the mean goes first: sums of squares about zero would lose digits.
        self._mean = xp.mean(Phi, axis=0)
        Phi = Phi - self._mean[None, :]
        scatter = Moments.of(Phi).scatter()
        values, axes = eigh(scatter)
        total = float(xp.sum(xp.linalg.diagonal(scatter)))
        k = self._count(values, total)
        values, axes = values[:k], axes[:, :k]
        values = self._cut(values, self._scale(values), largest, Phi.shape[0])
        scores = Phi @ axes
        sign = signs(scores)
        self._axes = axes * (sign * support(values))[None, :]
        U = scores * (sign * inverse_root(values))[None, :]
        self._finish(values, U, total, Phi.shape[0])

    def _from_kernel_matrix(self, kernel, points, solver):
        """Eigenvectors of H K H, and what the scores of new points need: phi(z) = k_z W + b."""
        if kernel.kind == "gram" and points.shape[0] != points.shape[1]:
            raise ValueError(
                f"Precomputed() needs a square Gram matrix at fit, got shape {tuple(points.shape)}."
            )
        kernel.check_range(points)
        self.kernel_, n = kernel, points.shape[0]
        diagonal = kernel.diagonal(points)
        largest = float(namespace(diagonal).max(namespace(diagonal).abs(diagonal)))
        if solver == "krylov":
            pairs = self._leading(kernel, points)
        else:
            k = self.n_components if isinstance(self.n_components, numbers.Integral) else None
            pairs = all_eigenpairs(kernel, points, k)
        xp, row_means = namespace(pairs.values), pairs.row_means
        total = float(xp.sum(diagonal) - xp.sum(row_means))  # the trace of H K H
        scale, k = self._scale(pairs.values), self._count(pairs.values, total)
        values, U = pairs.values[:k], pairs.vectors[:, :k]
        values = self._cut(values, scale, largest, n, kernel, U)
        U = U - xp.mean(U, axis=0)[None, :]  # rounding has put a little of 1 into them
        U = U * (signs(U) * support(values))[None, :]
        self._landmarks = kernel.landmarks(copy(points))
        self._weights, self._intercept = WRITTEN[self.form](
            U * inverse_root(values)[None, :], values, row_means
        )
        self._finish(values, U, total, n)

    def _leading(self, kernel, points):
        k = min(self.n_components, points.shape[0])
        like = tiles.allocate(points, (1, 1))
        eps = float(namespace(like).finfo(like.dtype).eps)
        pairs = leading_eigenpairs(
            kernel,
            points,
            k,
            tol=max(1e-7, 64 * eps),
            random_state=check_random_state(self.random_state).randint(2**31 - 1)
            if self.random_state is not None
            else 0,
        )
        size = max(self._scale(pairs.values), float(np.finfo(float).tiny))
        worst = max(as_numpy(pairs.residuals).tolist(), default=0.0) / size
        if worst > 1.01 * max(1e-7, 64 * eps):
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
        xp = namespace(values)
        positive = xp.where(values > 0, values, xp.zeros_like(values))
        share = np.cumsum(as_numpy(positive)) / max(total, float(np.finfo(float).tiny))
        below = int(np.sum(share < self.n_components))
        return min(below + 1, values.shape[0])

    def _cut(self, values, scale, largest, n, kernel=None, vectors=None):
        """Eigenvalues that are rounding become zero; clearly negative ones refute the kernel.

        Rounding is relative to the largest eigenvalue, and to the largest k(x, x): centring cannot
        keep more digits than the kernel has.
        """
        xp = namespace(values)
        single = "32" in str(values.dtype)
        eps = float(xp.finfo(values.dtype).eps)
        ratio = 2e-7 if single else 1e-12  # scikit-learn's
        zero = max(ratio * scale, 4 * n**0.5 * eps * max(scale, largest))
        if kernel is not None and not kernel.is_proven and values.shape[0]:
            smallest = float(xp.min(values))
            if smallest < -max((1e-5 if single else 1e-10) * scale, zero):
                raise NotPSDError(
                    f"There are significant negative eigenvalues: {kernel!r} has {smallest:.4g} on "
                    f"this data (the largest is {scale:.4g}), so it is not positive semi-definite. "
                    "Ask for fewer components, or pass KernelMap(kernel, indefinite='clip').",
                    witness=vectors[:, int(xp.argmin(values))],
                )
        return xp.where(values > zero, values, xp.zeros_like(values))

    def _finish(self, values, U, total, n):
        """Attributes; zeros left out or, where their number was asked for, kept with a warning."""
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
        self.eigenvalues_, self.eigenvectors_ = (
            wide(values[None, :], wanted)[0, :],
            wide(U, wanted),
        )
        for name in ("_axes", "_weights"):
            if name in vars(self):
                setattr(self, name, wide(getattr(self, name), wanted))
        if "_intercept" in vars(self):
            self._intercept = wide(self._intercept[None, :], wanted)[0, :]
        self.explained_variance_ratio_ = (
            self.eigenvalues_ / total if total > 0 else self.eigenvalues_
        )

    # --- scores and back -----------------------------------------------------------------

    @lazily
    def transform(self, X):
        """Scores of every row; each row on its own."""
        check_is_fitted(self)
        points = validated_points(self, X, self.kernel_, reset=False)
        if hasattr(self, "kernel_map_"):
            scores = self.kernel_map_.project(X, self._axes, -(self._mean @ self._axes))
        else:
            rows = in_precision(points, self._weights)
            scores = tiles.multiply(self.kernel_, rows, self._landmarks, self._weights)
            scores = scores + self._intercept[None, :]
        return as_points(scores, points)

    @available_if(has_points)
    def inverse_transform(self, X):
        """Points with these scores, about: a ridge regression learned at its first use.

        As in scikit-learn, kernel ridge from scores to points with the same kernel and alpha = 1;
        the exact inverse where the kernel is linear. ``mercer.preimage`` has other methods.
        """
        return preimage(self, X)

    def _combination(self, Z):
        """The points of feature space with scores Z, as sums over landmarks: for pre-images."""
        if hasattr(self, "kernel_map_"):
            return self.kernel_map_._combination(Z @ self._axes.T + self._mean[None, :])
        return Combination(
            self.kernel_, self._landmarks, Z @ self._weights.T + 1 / self._weights.shape[0]
        )

    def _examples(self):
        """Points and their scores, to learn the way back from."""
        if hasattr(self, "X_fit_"):
            xp = namespace(self.eigenvectors_)
            return self.X_fit_, self.eigenvectors_ * xp.sqrt(self.eigenvalues_)[None, :]
        points, Phi = self.kernel_map_._examples()
        return points, (Phi - self._mean[None, :]) @ self._axes

    def _ridge_defaults(self):
        return on_scores(self.kernel_), 1.0

    def _last_fit(self):
        return self.eigenvectors_

    # --- checks --------------------------------------------------------------------------

    def _check_parameters(self):
        for name, options in (("form", FORMS), ("solver", SOLVERS)):
            if getattr(self, name) not in options:
                raise ValueError(
                    f"{name} must be one of {', '.join(options)}, got {getattr(self, name)!r}."
                )
        k = self.n_components
        whole = is_number(k) and isinstance(k, numbers.Integral) and int(k) >= 1
        share = is_number(k) and not isinstance(k, numbers.Integral) and 0 < k < 1
        if k is not None and not whole and not share:
            raise ValueError(
                "n_components must be a positive integer, a share of the variance between 0 and 1, "
                f"or None, got {k!r}."
            )
        if self.solver == "krylov" and not whole:
            raise ValueError(
                f"solver='krylov' finds a given number of components, got n_components={k!r}; use "
                "'factor' or 'dense'."
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
