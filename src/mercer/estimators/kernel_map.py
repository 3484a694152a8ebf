"""KernelMap: the exact, explicit, finite-dimensional feature map of a kernel on the data."""

import numbers

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..engine import tiles
from ..engine.arrays import as_numpy, namespace, on_device_of
from ..engine.memory import MemoryLimitError, budget, readable
from ..kernels import NotPSDError, Precomputed, as_kernel
from ..kernels import points as pts
from ..kernels.base import is_number
from ..rows.dask import is_dask, lazily
from ..rows.stream import Rows, is_stream
from ..space import factorize
from ..space.indefinite import OPTIONS, check_symmetric, corrected, symmetrised, value_eps
from ..space.spaces import Closed, Weighted
from ..space.spectral import eigen_rotation, symmetric_rotation
from .base import KernelEstimator, all_or_nothing, validated_points
from .certified import Certified
from .functionals import Functionals
from .map_partitions import fit_partitions, spread_of
from .preimage import MapPreimages
from .streamed import Streamed, generator

BASES = ("cholesky", "eigen", "symmetric", "closed", "auto")
PIVOTS = ("greedy", "random", "uniform")


class KernelMap(
    Certified,
    Functionals,
    Streamed,
    MapPreimages,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    KernelEstimator,
):
    """Coordinates whose inner products are the kernel: [EXACT] Theorem 1, [NPT] Theorem 2.

    ``phi(x) . phi(z) = k(x, z)`` whenever one of the two is a training point, so that any algorithm
    run on the coordinates is its kernel version. The dimension is the numerical rank of the kernel
    matrix, found on the way; the map knows a bound for its own error.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="rbf"
    basis : {"cholesky", "eigen", "symmetric", "closed", "auto"}, default="cholesky"
        Which orthonormal basis: all are rotations of each other. "cholesky" needs r landmarks and
        is fastest; "eigen" orders columns by eigenvalue; "symmetric" is K^(-1/2) k_z; "closed" is
        the kernel's own finite map; "auto" is "closed" where that has fewer dimensions than there
        are samples, else "cholesky".
    max_rank : int or None, default=None
        Most landmarks. None: as many as `tol` asks for.
    tol : float or None, default=None
        Largest residual rho^2(x) / k(x, x) left at training points. None: rounding (64 eps while
        the kernel matrix fits the memory, 256 eps beyond).
    pivots : {"greedy", "random", "uniform"}, default="greedy"
        Which points become landmarks: "greedy" has the smallest worst residual, "random"
        (probability proportional to the residual) the smallest sum at a given rank.
    center : bool, default=False
        Subtract the mean of the training coordinates.
    residual : bool, default=False
        Append rho(z), so that |phi(z)|^2 = k(z, z): [NPT] Lemma 5.
    indefinite : {"raise", "clip", "flip", "shift"}, default="raise"
        What to do with a similarity that is no kernel: drop its negative eigenvalues ("clip"),
        take their absolute values ("flip"), or add a constant to k(x, x) ("shift"). New points:
        "clip" and "flip" change their similarities to the training points as they change the
        training ones, so that transform(X) is fit_transform(X); "shift" leaves them as they are,
        and takes a training row that comes again for a new point. A corrected similarity has no
        certificate.
    n_jobs : int or None, default=None
        Threads for kernel tiles. None: as many as BLAS uses.
    random_state : int, RandomState or None, default=None
        For pivots "random" and "uniform".
    memory_limit : int, str or None, default=None
        Bytes ("2GB") that a fit may take; None: 60 % of what is free.
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with data-dependent parameters turned into numbers.
    rank_ : int
        Dimension of the map.
    landmarks_ : the points that the map compares new ones with (None for "closed")
    landmark_indices_ : ndarray of their positions in the training data
    max_residual_ : float
        Largest rho^2(x) over the training points.
    mean_ : ndarray or None
        Mean of the training coordinates, when centred.
    eigenvalues_ : ndarray
        Of the (centred) kernel matrix; basis "eigen" only.
    n_samples_seen_ : int
        Rows of all fits so far.
    correction_ : dict or None
        What an indefinite similarity was changed by.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelMap
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> kernel_map = KernelMap(RBF(0.5)).fit(X)
    >>> Z = np.array([[0.5, -1.0], [3.0, 3.0]])
    >>> inner = kernel_map.transform(X) @ kernel_map.transform(Z).T
    >>> error = np.abs(inner - RBF(0.5)(X, Z))
    >>> bool(np.all(error <= kernel_map.error_bound(X, Z))), bool(error.max() < 1e-7)
    (True, True)
    """

    def __init__(
        self,
        kernel="rbf",
        *,
        basis="cholesky",
        max_rank=None,
        tol=None,
        pivots="greedy",
        center=False,
        residual=False,
        indefinite="raise",
        n_jobs=None,
        random_state=None,
        memory_limit=None,
        verbose=False,
    ):
        self.kernel = kernel
        self.basis = basis
        self.max_rank = max_rank
        self.tol = tol
        self.pivots = pivots
        self.center = center
        self.residual = residual
        self.indefinite = indefinite
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.verbose = verbose

    def get_params(self, deep=True):
        """Parameters by name; `residual` is read past the method of the same name."""
        return super().get_params(deep) | {"residual": self._appends_residual}

    @property
    def _appends_residual(self):
        return vars(self)["residual"]

    # --- fitting --------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X, y=None):
        """Find landmarks and basis on the training points."""
        self._fit(X)
        return self

    @all_or_nothing
    def fit_transform(self, X, y=None):
        """Fit, and return the coordinates of the training points."""
        if is_stream(X):
            raise TypeError(
                "a stream is fitted, not held in memory: call fit(X), then transform each chunk."
            )
        Phi = self.fit_coordinates(X)
        return self.transform(X) if Phi is None else Phi

    def fit_coordinates(self, X, gather=None):
        """Fit; the training coordinates where the fit holds them, None where it streamed.

        A streamed fit with a mean or eigenvectors takes them from sums over all rows:
        `gather(self)`, a Spread of the coordinates so far, where a caller needs these sums as well.
        """
        points, F, residuals = self._fit(X, gather)
        if F is None:
            return None
        rho2 = None
        if self._appends_residual:
            rho2 = on_device_of(residuals, F)
        # A square F is the factor itself; a closed map may return its input.
        shared = F.shape[0] == F.shape[1] or isinstance(self._space, Closed)
        return self._finished(self._rotated(F), rho2, points, shared)

    def _fit(self, X, gather=None):
        """Fit; returns (points, F, residuals), F and residuals None where rows were streamed."""
        self._check_parameters()
        kernel = as_kernel(self.kernel)
        self.correction_ = None
        if is_dask(X):
            fit_partitions(self, X)
            return self._with_basis(X, gather)
        if is_stream(X):
            self._fit_stream(X, kernel)
            return self._with_basis(X, gather)
        points = validated_points(self, X, kernel, reset=True)
        self.kernel_ = kernel = kernel.bind_points(points, pts.column_names(X))
        _check_gram(kernel, points)
        kernel.check_range(points)
        factor = self._first_factor(points)
        if factor is not None:
            self._fit_rows(Rows(points, None), factor)
            return self._with_basis(X, gather)
        self._space, F, residuals = self._space_of(kernel, points)
        self.max_residual_ = float(residuals.max())
        self.n_samples_seen_ = points.shape[0]
        self.mean_, self._rotation, self._mean_radii = None, None, None
        self._choose_basis(F)
        self._describe()
        if self.center:
            self.mean_ = _mean(self._rotated(F))
            self._mean_radii = self._radii_of_mean(F, residuals, points)
        return points, F, residuals

    def _with_basis(self, X, gather):
        if self._needs_sums:
            self._basis_from(spread_of(self, X) if gather is None else gather(self))
        return X, None, None

    def _describe(self):
        """Public attributes that follow from the space."""
        self.rank_ = self._space.rank
        self.landmarks_ = None if self.kernel_.kind == "gram" else self._space.S
        indices = self._space.indices
        if indices is not None:
            like = self._space.example
            indices = on_device_of(indices, like, dtype=namespace(like).int64)
        self.landmark_indices_ = indices
        width = self.rank_ if self._rotation is None else self._rotation.shape[1]
        self._n_features_out = width + bool(self._appends_residual)

    # --- the space ------------------------------------------------------------------------------

    def _space_of(self, kernel, points):
        """The space of the training points, their coordinates and residuals rho^2."""
        if self._basis_for(kernel, points) == "closed":
            space = Closed(kernel, points)
            space.check_memory(points.shape[0], self.memory_limit)
            return space, space.coordinates(points), np.zeros(points.shape[0])
        try:
            fit = factorize(
                kernel,
                points,
                tol=self.tol,
                max_rank=self.max_rank,
                pivots=self.pivots,
                # Greedy pivots only probe validity: no need to touch NumPy's global state.
                rng=self._sampler() if self.pivots == "greedy" else generator(self.random_state),
                memory_limit=self.memory_limit,
                copies=self._copies(),
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
        except NotPSDError:
            if self.indefinite == "raise":
                raise
            return self._corrected_space(kernel, points)
        return fit.factor, fit.F, fit.residuals

    def _corrected_space(self, kernel, points):
        n, limit = points.shape[0], budget(self.memory_limit, points)
        if 6 * 8 * n * n > limit:
            raise MemoryLimitError(
                f"indefinite={self.indefinite!r} needs all eigenvalues of the {n} x {n} matrix, "
                f"{readable(6 * 8 * n * n)}; memory_limit allows {readable(limit)}. Fit on fewer "
                "points, or raise memory_limit."
            )
        K = tiles.evaluate(kernel, points, n_jobs=self.n_jobs)
        values = as_numpy(K).astype(np.float64)
        eps = value_eps(values, float(namespace(K).finfo(K.dtype).eps))
        F, W, self.correction_ = corrected(symmetrised(kernel, values, eps), self.indefinite)
        r = F.shape[1] if self.max_rank is None else self.max_rank
        left = (F[:, r:] ** 2).sum(axis=1)
        # In double precision whatever the data: weights of small eigenvalues cancel.
        F, W = (on_device_of(A[:, :r], K, dtype=namespace(K).float64) for A in (F, W))
        return Weighted(kernel, kernel.landmarks(points, np.arange(n)), W, np.arange(n)), F, left

    def _copies(self):
        """Arrays of coordinates that a fit holds at once: the factor's and the result's; to rotate
        them takes centred and rotated ones, and the work space of LAPACK (measured, n = 2200: 7.5
        in the eigen basis; 11.5 in the symmetric one, whose SVD alone works on 4)."""
        return {"eigen": 8, "symmetric": 12}.get(self.basis, 2)

    def _basis_for(self, kernel, points):
        if self.basis != "auto":
            return self.basis
        width = points.shape[1] if getattr(points, "ndim", 1) == 2 else None
        dimension = kernel.explicit_dim(width)
        most = points.shape[0] if self.max_rank is None else min(points.shape[0], self.max_rank)
        return "closed" if dimension is not None and dimension < most else "cholesky"

    def _choose_basis(self, F):
        self.__dict__.pop("eigenvalues_", None)
        if self.basis == "eigen":
            # [NPT] centres first and then takes the basis.
            self._rotation, self.eigenvalues_ = eigen_rotation(F - _mean(F) if self.center else F)
        elif self.basis == "symmetric":
            self._rotation = symmetric_rotation(F)

    # --- coordinates ----------------------------------------------------------------------------

    @lazily
    def transform(self, X):
        """phi(x) for every row; each row is mapped on its own."""
        check_is_fitted(self)
        given = validated_points(self, X, self.kernel_, reset=False)
        points = self._as_fitted(given)
        Phi = self._space.coordinates(points, n_jobs=self.n_jobs, verbose=self.verbose)
        rho2 = None
        if self._appends_residual:
            diagonal = self._diagonal(points, None)
            rho2 = diagonal - namespace(Phi).sum(Phi * Phi, axis=1)
        return self._finished(self._rotated(Phi), rho2, given, isinstance(self._space, Closed))

    def _rotated(self, Phi):
        return Phi if self._rotation is None else Phi @ self._rotation

    def _finished(self, Phi, rho2, points, shared=False):
        """Centred, with the residual coordinate, in the dtype of the points."""
        xp = namespace(Phi)
        if self.mean_ is not None:
            Phi = Phi - self.mean_
        elif shared and self._rotation is None:
            Phi = Phi + 0  # the factor's own array: a caller may write into what it gets
        if rho2 is not None:
            rho = xp.sqrt(xp.where(rho2 > 0, rho2, xp.zeros_like(rho2)))
            Phi = xp.concat([Phi, rho[:, None]], axis=1)
        dtype = getattr(points, "dtype", Phi.dtype)
        if dtype in (xp.float32, xp.float64) and dtype != Phi.dtype:
            Phi = xp.astype(Phi, dtype)
        return Phi

    def _new_points(self, X):
        return self._as_fitted(validated_points(self, X, self.kernel_, reset=False))

    def _as_fitted(self, points):
        """A map computes in the precision it was fitted in, or in a higher one of the rows."""
        return pts.as_fitted(points, self._space.S, self._space.dtype, keep_wider=True)

    # --- checks ---------------------------------------------------------------------------------

    def _check_parameters(self):
        for name, options in (("basis", BASES), ("pivots", PIVOTS), ("indefinite", OPTIONS)):
            value = getattr(self, name)
            if value not in options:
                raise ValueError(f"{name} must be one of {', '.join(options)}, got {value!r}.")
        if self.max_rank is not None and (
            not isinstance(self.max_rank, numbers.Integral)
            or isinstance(self.max_rank, bool)
            or self.max_rank < 1
        ):
            raise ValueError(f"max_rank must be a positive integer or None, got {self.max_rank!r}.")
        if self.n_jobs is not None and (
            not isinstance(self.n_jobs, numbers.Integral) or self.n_jobs == 0
        ):
            raise ValueError(
                f"n_jobs must be a number of threads (-1: all) or None, got {self.n_jobs!r}."
            )
        if self.tol is not None and not (is_number(self.tol) and 0 <= self.tol < 1):
            raise ValueError(f"tol must be a number from 0 to below 1 or None, got {self.tol!r}.")
        if self._appends_residual and self._leaf_kernel().kind == "gram":
            raise ValueError(
                "residual=True needs k(z, z) of every new point, which a precomputed kernel does "
                "not know. Fit with residual=False and call residual(K, diag=...)."
            )


def _check_gram(kernel, points):
    if kernel.kind != "gram":
        return
    if points.shape[0] != points.shape[1]:
        raise ValueError(
            f"Precomputed() needs a square Gram matrix at fit, got shape {tuple(points.shape)}."
        )
    # Here, since the partial algorithm sees a few columns only.
    eps = float(namespace(points).finfo(points.dtype).eps)
    check_symmetric(Precomputed(), points, value_eps(points, eps))


def _mean(F):
    """Summed in double precision: the error of a sum grows with the number of rows."""
    xp = namespace(F)
    return xp.astype(xp.mean(xp.astype(F, xp.float64, copy=False), axis=0), F.dtype, copy=False)
