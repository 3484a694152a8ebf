"""KernelMap: the exact, explicit, finite-dimensional feature map of a kernel on the data."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..engine import Resources, namespace, on_device_of
from ..expansion import RKHSFunction
from ..feature_map import FeatureMap
from ..fit import MapFit, SpaceStatistic, Statistic, extend_map, first_map, fit_map
from ..kernels import Data, Input, KernelLike, RandomState, as_kernel
from ..kernels import points as pts
from ..rows import Training, in_pieces, lazily, read, read_whole, refuse_stream
from ..space import MapOptions
from .base import KernelEstimator, all_or_nothing, all_or_nothing_more, with_resources
from .preimages import PreimageData, has_points, preimage, preimage_data, preimage_data_of_map


def _can_grow(kernel_map):
    """partial_fit keeps the coordinates it has given: no rotation, no mean, no Gram matrix."""
    if kernel_map.basis != "cholesky" or kernel_map.center:
        raise AttributeError(
            "partial_fit keeps the coordinates it has given: it needs basis='cholesky' and "
            f"center=False, got basis={kernel_map.basis!r}, center={kernel_map.center!r}."
        )
    kernel = as_kernel(kernel_map.kernel)
    if kernel_map.indefinite != "raise" and kernel.is_psd is not True:
        raise AttributeError(
            f"partial_fit cannot correct {kernel!r}: negative eigenvalues are known when all rows "
            "are. Call fit, or leave indefinite='raise'."
        )
    kernel.layout.require_data(
        "partial_fit needs a kernel on data; a Gram matrix does not grow.", AttributeError
    )
    return True


class KernelMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Turn points into coordinates whose inner products are the kernel.

    Any algorithm that you run on these coordinates is its own kernel version: ``phi(x) . phi(z) =
    k(x, z)`` whenever x or z is a training point ([EXACT] Theorem 1, [NPT] Theorem 2). The map
    finds its dimension by itself, the numerical rank of the kernel matrix, and it knows a bound for
    its own error (:meth:`error_bound`).

    Parameters
    ----------
    kernel : Kernel, str or callable, default="rbf"
        What compares two points: a kernel, its name as in scikit-learn ("rbf", "poly", "linear",
        "precomputed", ...), a function of two points, or a kernel of scikit-learn's Gaussian
        processes.
    basis : {"cholesky", "eigen", "symmetric", "closed", "fourier", "auto"}, default="cholesky"
        Which axes. "cholesky" needs r landmarks and is fastest; "eigen" orders columns by
        eigenvalue; "symmetric" is K^(-1/2) k_z: these are rotations of each other. "closed" is the
        kernel's own finite map; "auto" is "closed" where that has fewer dimensions than there
        are samples, else "cholesky". "fourier" is for very many rows in one to three columns and a
        stationary kernel (RBF, Matern, RationalQuadratic, Periodic; their sums, products, scales
        and OnColumns): cosines and sines that are known before any data, with one error bound for
        every pair in a box. It has no landmarks, and is chosen only by name.
    max_rank : int or None, default=None
        Largest number of landmarks. None: as many as `tol` needs.
    tol : float or None, default=None
        Largest residual rho^2(x) / k(x, x) left at training points. None: rounding (64 eps while
        the kernel matrix fits the memory, 256 eps beyond). Directions that small are exact for
        inner products and distances, and noise once they are scaled up: before a StandardScaler,
        PCA(whiten=True) or EllipticEnvelope choose 1e-8 or more. Scale the columns of X before the
        map, not its coordinates after it. With basis "fourier": the largest error of phi(x) .
        phi(z) / k(x, x) for any two points of the box, 1e-8 when None.
    pivots : {"greedy", "random", "uniform"}, default="greedy"
        Which points become landmarks: "greedy" has the smallest worst residual, "random"
        (probability proportional to the residual) the smallest sum at a given rank.
    center : bool, default=False
        Subtract the mean of the training coordinates, whatever the `sample_weight` of a method on
        the map: as after scikit-learn's transformers, only the method itself is weighted.
    append_residual : bool, default=False
        Append rho(z) as one more coordinate, so that |phi(z)|^2 = k(z, z): [NPT] Lemma 5.
    indefinite : {"raise", "clip", "flip", "shift"}, default="raise"
        What to do with a similarity that is not a kernel: drop its negative eigenvalues ("clip"),
        take their absolute values ("flip"), or add a constant to k(x, x) ("shift"). New points:
        "clip" and "flip" change their similarities to the training points as they change the
        training ones, so that transform(X) is fit_transform(X); "shift" leaves the similarities of
        all rows given to transform as they are, also those of training rows. A corrected similarity
        has no certificate.
    n_jobs : int or None, default=None
        Threads for kernel tiles. None: as many as BLAS uses.
    random_state : int, RandomState or None, default=None
        For pivots "random" and "uniform".
    memory_limit : int, str or None, default=None
        Bytes ("2GB") that a fit may take; None: 60 % of what is free. Coordinates that are returned
        (rows x rank numbers) come on top.
    verbose : bool, default=False
        Show progress.
    box : list of (low, high) per column, or None, default=None
        Basis "fourier": where the map is to hold. None: where the rows are, and 5 % of their extent
        more on each side. New rows outside of it are refused.

    Attributes
    ----------
    map_ : FeatureMap
        The fitted map itself: its space, its rotation and its mean.
    kernel_ : Kernel
        The kernel with data-dependent parameters turned into numbers.
    rank_ : int
        Dimension of the map.
    landmarks_ : the points that the map compares new ones with (None for "closed")
        The pivots; all training points where the rank is full.
    landmark_indices_ : ndarray of their positions in the training data
        One per landmark.
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

    A map of five landmarks does not see everything, and says how much of a row it misses. A linear
    function of its coordinates is a sum of five kernels:

    >>> small = KernelMap(RBF(0.5), max_rank=5).fit(X)
    >>> small.residual(Z).round(2)
    array([0.42, 0.97])
    >>> small.distances(X, Z).shape
    (100, 2)
    >>> f = small.function(np.ones(5))
    >>> bool(np.allclose(f(Z), small.project(Z, np.ones((5, 1)))[:, 0]))
    True
    >>> weights, constant = small.landmark_weights(np.ones(5))
    >>> bool(np.allclose(f(Z), RBF(0.5)(Z, small.landmarks_) @ weights + constant))
    True
    >>> small.coordinates(f).round(6)
    array([1., 1., 1., 1., 1.])
    >>> KernelMap(RBF(0.5)).partial_fit(X[:50]).partial_fit(X[50:]).n_samples_seen_
    100
    >>> bool(
    ...     np.allclose(kernel_map.inverse_transform(kernel_map.transform(Z[:1])), Z[:1], atol=1e-3)
    ... )
    True
    """

    map_: FeatureMap
    rank_: int
    landmarks_: Any
    landmark_indices_: np.ndarray
    max_residual_: float
    mean_: Any
    eigenvalues_: np.ndarray
    n_samples_seen_: int
    correction_: dict[str, Any] | None

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        basis: Literal["cholesky", "eigen", "symmetric", "closed", "fourier", "auto"] = "cholesky",
        max_rank: int | None = None,
        tol: float | None = None,
        pivots: Literal["greedy", "random", "uniform"] = "greedy",
        center: bool = False,
        append_residual: bool = False,
        indefinite: Literal["raise", "clip", "flip", "shift"] = "raise",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        memory_limit: int | str | None = None,
        verbose: bool = False,
        box: ArrayLike | None = None,
    ) -> None:
        self.kernel = kernel
        self.basis = basis
        self.max_rank = max_rank
        self.tol = tol
        self.pivots = pivots
        self.center = center
        self.append_residual = append_residual
        self.indefinite = indefinite
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.verbose = verbose
        self.box = box

    # --- fitting --------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Input, y: object = None) -> Self:
        """Find landmarks and basis on the training points."""
        fit_rows(self, read_rows(self, X))
        return self

    @all_or_nothing
    def fit_transform(self, X: Data, y: object = None) -> np.ndarray:
        """Fit, and return the coordinates of the training points."""
        refuse_stream(X)
        Phi = fit_rows(self, read_rows(self, X)).coordinates(sparse=True)
        return self.transform(X) if Phi is None or in_pieces(X) else Phi

    @available_if(_can_grow)
    @all_or_nothing_more
    def partial_fit(self, X: Data, y: object = None) -> Self:
        """Extend the map by the points that it does not explain to `tol` ([NPT] Lemma 5).

        Coordinates of earlier points keep their values and gain columns (zero for them, up to
        tol). Points cannot be put in the order that rounding asks for, so residuals below
        sqrt(eps) (1.5e-8 in double precision) of k(x, x) are left, whatever tol is. Data-dependent
        kernel parameters are fixed at the first call. Basis "cholesky", uncentred. Rows of a stream
        or a Dask collection are gathered.
        """
        options = map_options(self)
        if hasattr(self, "map_"):
            X, _, _ = read_whole("partial_fit", X, None, None, needs_y=False)
            points = self._points(X)
            before = MapFit(self.map_, self.n_samples_seen_, self.max_residual_)
        else:
            training = read_rows(self, X, why="partial_fit")
            points, before = training.points, first_map(training)
        keep_fit(self, extend_map(before, points, options))
        self.__dict__.pop("preimage_ridge_", None)  # it knows the old landmarks only
        return self

    @property
    def _n_features_out(self):
        return self.map_.width

    # --- coordinates ----------------------------------------------------------------------------

    @lazily
    @with_resources
    def transform(self, X: Data) -> np.ndarray:
        """Return the coordinates phi(x) of every row; each row is mapped on its own."""
        return self._checked_map()(self._points(X))

    @available_if(has_points)
    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Find points with these coordinates; exact for a linear kernel, else :func:`preimage`."""
        return preimage(self, X)

    # --- what the map knows of its own error ----------------------------------------------------

    @lazily
    @with_resources
    def residual(self, X: Data, diag: ArrayLike | None = None) -> np.ndarray:
        """Measure what the map does not see of every row: rho^2(x) = k(x, x) - |phi(x)|^2.

        Zero at training points of an untruncated map; a novelty score and the Gaussian-process
        variance at zero noise elsewhere. A precomputed kernel needs `diag`, the k(x, x).
        """
        return self._checked_map().residual(self._points(X), diag)

    @with_resources
    def error_bound(
        self,
        X: Data,
        Y: Data | None = None,
        diag: ArrayLike | None = None,
        diag_Y: ArrayLike | None = None,
    ) -> np.ndarray:
        """Bound the error |k(x, y) - phi(x) . phi(y)| of every pair, rounding included.

        The pairs are those of X and Y (None: X again). The bound holds for any points, training or
        not (space/certificate.py has the argument), where the kernel is valid. With
        ``kernel_.is_proven`` that follows from its construction; else it was tested on the training
        rows, and is on these: a residual below zero raises NotPSDError. For a centred map the bound
        is that of the centred kernel. A precomputed kernel needs `diag` (and `diag_Y`), the
        k(x, x).

        Between two new points the bound is rho(x) rho(y), which says little where the kernel is
        rough and the points are far from all landmarks. Where k(x, y) can be evaluated, the error
        itself is known: see :meth:`pair_residual`.
        """
        return self._checked_map().bound(*self._pair(X, Y), diag=diag, diag_Y=diag_Y)

    @with_resources
    def pair_residual(self, X: Data, Y: Data | None = None) -> np.ndarray:
        """Compute the error k(x, y) - phi(x) . phi(y) of every pair.

        The exact error where :meth:`error_bound` can only be cautious, at the price of the kernel
        matrix of X and Y. Of the uncentred kernel, without an appended residual.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelMap, Matern
        >>> X = np.random.default_rng(0).normal(size=(40, 3))
        >>> kernel_map = KernelMap(Matern(0.5), max_rank=10).fit(X[:20])
        >>> missed = kernel_map.pair_residual(X[20:])
        >>> bool(np.all(np.abs(missed) <= kernel_map.error_bound(X[20:])))
        True
        """
        feature_map = self._checked_map()
        self.kernel_.layout.require_data(
            "a precomputed kernel cannot be evaluated between two new points.", TypeError
        )
        return feature_map.pair_residual(*self._pair(X, Y))

    @with_resources
    def distances(
        self,
        X: Data,
        Y: Data | None = None,
        *,
        residual: bool = True,
        diag: ArrayLike | None = None,
    ) -> np.ndarray:
        """Measure distances in feature space, sqrt(k(x,x) + k(y,y) - 2 k(x,y)): [EXACT] (26).

        Between the rows of X and those of Y (None: those of X again). With ``residual=False``:
        distances between the coordinates alone. A precomputed kernel does not know k(x, y) of two
        new points: the coordinates stand in for it, and `diag` has the k(x, x).
        """
        return self._checked_map().distances(*self._pair(X, Y), residual=residual, diag=diag)

    # --- functions ------------------------------------------------------------------------------

    def function(self, coef: ArrayLike, intercept: float = 0.0) -> RKHSFunction:
        """Write z -> coef . phi(z) + intercept as a sum of kernels on the landmarks."""
        column = self._checked_coefficients(coef)
        return self.map_.expand(column[:, None], intercept).column(0)

    def landmark_weights(
        self, coef: ArrayLike, intercept: ArrayLike = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """(w, b) with coef . phi(z) + intercept = sum_j w_j k(s_j, z) + b; coef may be a matrix."""
        columns = self._checked_coefficients(coef, (1, 2))
        expansion = self.map_.expand(columns if columns.ndim == 2 else columns[:, None], intercept)
        if columns.ndim == 2:
            return expansion.W, expansion.b
        return expansion.W[:, 0], expansion.b[0]

    @with_resources
    def coordinates(self, function: RKHSFunction) -> np.ndarray:
        """Return b with function(z) = b . phi(z) for every z in the span: [NPT] Lemma 6."""
        feature_map = self._checked_map()
        if not isinstance(function, RKHSFunction) or function.kernel != self.kernel_:
            raise ValueError(f"expected an RKHSFunction of {self.kernel_!r}, got {function!r}.")
        bare = FeatureMap(feature_map.space, feature_map.rotation)
        return function.coef @ bare(bare.fitted(function.points))

    @lazily
    @with_resources
    def project(self, X: Data, coef: ArrayLike, intercept: ArrayLike = 0.0) -> np.ndarray:
        """Compute transform(X) @ coef + intercept for a matrix coef, from kernel values alone.

        The coefficients move to the landmarks once, and kernel tiles are multiplied as they are
        made. With many columns the coordinates themselves are cheaper, and more accurate.
        """
        return self._checked_map().linear(coef, intercept)(self._points(X))

    def _checked_coefficients(self, coef, dimensions=(1,)):
        check_is_fitted(self)
        with pts.naming("coef"):
            coef = on_device_of(coef, self.map_.space.example)
        if coef.ndim not in dimensions or coef.shape[0] != self.map_.width:
            raise ValueError(
                f"coef must hold one number for each of the {self.map_.width} coordinates, got "
                f"shape {tuple(coef.shape)}."
            )
        return coef

    # --- points ---------------------------------------------------------------------------------

    def _pair(self, X, Y):
        return self._points(X), None if Y is None else self._points(Y)

    def _checked_map(self) -> FeatureMap:
        check_is_fitted(self)
        return self.map_


# --- what methods and plans need of a map -------------------------------------------------------


def read_rows(
    kernel_map: KernelMap,
    X: Input,
    y: Any = None,
    sample_weight: Any = None,
    *,
    owner: KernelEstimator | None = None,
    why: str | None = None,
    resources: Resources | None = None,
    **options: Any,
) -> Training:
    """The arguments of a fit on a map, read once. Messages about the rows name the `owner`, and a
    memory limit of its own comes first.

    why : the reason for which all rows are needed; None: where an option of the map needs them
    """
    options_of_map, kernel = map_options(kernel_map), as_kernel(kernel_map.kernel)
    if why is None and options_of_map.needs_all_rows(kernel):
        used = ("basis", "pivots", "indefinite")
        why = "KernelMap with " + ", ".join(f"{n}={getattr(kernel_map, n)!r}" for n in used)
    owner = kernel_map if owner is None else owner
    resources = _resources(kernel_map, owner) if resources is None else resources
    return read(owner, X, kernel, y, sample_weight, why=why, resources=resources, **options)


def fit_rows(
    kernel_map: KernelMap, training: Training, sums: Statistic | SpaceStatistic | None = None
) -> MapFit:
    """Fit a map to rows that were read, and return all that the fit found.

    Methods use it to get the coordinates of the training rows, or sums over them.
    """
    fit = fit_map(training, map_options(kernel_map), sums)
    training.keep_names(kernel_map)
    keep_fit(kernel_map, fit)
    return fit


def _resources(kernel_map: KernelMap, owner: KernelEstimator) -> Resources:
    """Those of the map and its owner, with random numbers where the map makes random choices."""
    found = Resources.of(owner, kernel_map)
    if kernel_map.random_state is None and kernel_map.pivots == "greedy":
        return found
    seed = int(check_random_state(kernel_map.random_state).randint(2**31 - 1))
    return replace(found, seed=seed)


def keep_fit(kernel_map: KernelMap, fit: MapFit) -> None:
    """Public attributes that follow from a fit."""
    kernel_map.map_, space = fit.map, fit.map.space
    kernel_map.kernel_, kernel_map.rank_ = space.kernel, space.rank
    kernel_map.n_samples_seen_, kernel_map.max_residual_ = fit.n, fit.max_residual
    kernel_map.correction_, kernel_map.mean_ = fit.correction, fit.map.mean
    if fit.eigenvalues is not None:
        kernel_map.eigenvalues_ = fit.eigenvalues
    kernel_map.landmarks_ = space.kernel.layout.shown(space.S)
    indices, xp = space.indices, namespace(space.example)
    if indices is not None:
        indices = on_device_of(indices, space.example, dtype=xp.int64)
    kernel_map.landmark_indices_ = indices


@preimage_data.register
def _(kernel_map: KernelMap) -> PreimageData:
    check_is_fitted(kernel_map)
    return preimage_data_of_map(kernel_map.map_, getattr(kernel_map, "n_features_in_", None))


def map_options(kernel_map: KernelMap) -> MapOptions:
    """Options for a fit of the map; those that make no sense are refused, before any work."""
    names = [f.name for f in fields(MapOptions) if f.name not in ("held", "squares")]
    options = MapOptions(**{name: getattr(kernel_map, name) for name in names})
    options.check()
    if kernel_map.append_residual:
        as_kernel(kernel_map.kernel).layout.require_data(
            "append_residual=True needs k(z, z) of every new point, which a precomputed kernel "
            "does not know. Fit with append_residual=False and call residual(K, diag=...)."
        )
    return options
