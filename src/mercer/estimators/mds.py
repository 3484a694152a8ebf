"""ClassicalMDS: coordinates from distances, and of new points one at a time ([MDS] section 1)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from ..engine import (
    Domain,
    as_numpy,
    eps_of,
    largest_power,
    namespace,
    on_device_of,
    positive_part,
)
from ..kernels import Data, Input, Linear
from ..kernels import points as pts
from ..rows import lazily, read, refuse_stream, validated_points
from ..space import signs, spectrum
from .base import all_or_nothing
from .map_method import as_points, copy, inverse_root, pad_columns

_MOST_COMPONENTS = 10**6


class ClassicalMDS(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Draw a map of points from the distances between them.

    Classical multidimensional scaling, also called Torgerson's, or principal coordinates.

    From squared distances, B = -1/2 H D2 H is the centred Gram matrix of the points, and its
    leading eigenvectors times the roots of their eigenvalues are the embedding. On Euclidean
    distances that is PCA, and computed as such. Other dissimilarities make some eigenvalues
    negative: these are reported and left out, or corrected away.

    Parameters
    ----------
    n_components : int, default=2
        Columns of the embedding.
    metric : str or callable, default="euclidean"
        Any metric of ``sklearn.metrics.pairwise_distances``; "precomputed" takes distances (fit:
        square; transform: one row of distances to the training points for each new one). Metrics
        other than "euclidean" are computed on the host, wherever the arrays live.
    correction : {None, "lingoes", "cailliez"}, default=None
        Makes the distances Euclidean by the smallest constant added between different points: to
        the squared distances ("lingoes": 2 c) or to the distances ("cailliez": c). New points'
        distances are corrected the same way; a distance of exactly 0 means the training point
        itself and stays 0.
    metric_params : dict or None, default=None
        Further arguments of the metric.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The places of the training points, centred.
    eigenvalues_ : ndarray of shape (n_components,)
        Of B (after correction): squared lengths of the embedding's columns.
    negative_eigenvalues_ : ndarray
        Negative eigenvalues of B before correction, the most negative last; rounding is left out.
    negative_share_ : float
        Their share of the sum of all absolute eigenvalues: 0 for Euclidean distances.
    correction_constant_ : float
        c of the correction; 0 without one.

    Examples
    --------
    Road distances (km) between six cities give their map: first column east (negative) to west,
    second north (negative) to south.

    >>> import numpy as np
    >>> from mercer import ClassicalMDS
    >>> cities = ["Copenhagen", "Lisbon", "Madrid", "Paris", "Rome", "Vienna"]
    >>> D = np.zeros((6, 6))
    >>> D[np.triu_indices(6, 1)] = [
    ...     *[2971, 2498, 1176, 2050, 1455],
    ...     *[668, 1799, 2700, 2937],
    ...     *[1273, 2097, 2409],
    ...     *[1476, 1249],
    ...     1209,
    ... ]
    >>> D += D.T
    >>> mds = ClassicalMDS(metric="precomputed").fit(D)
    >>> mds.embedding_.round(-1)
    array([[-1060.,  -980.],
           [ 1750.,  -100.],
           [ 1190.,    80.],
           [  -70.,  -300.],
           [ -670.,  1030.],
           [-1140.,   270.]])
    >>> len(mds.negative_eigenvalues_), round(mds.negative_share_, 3)  # roads are not straight
    (1, 0.011)
    >>> mds.transform(D[:1] + 10).round(-1)  # a village near Copenhagen, from its distances
    array([[-1070.,  -990.]])
    """

    domains = {
        "n_components": Domain.count(1, _MOST_COMPONENTS),
        "metric_params": Domain(
            lambda given: given is None or isinstance(given, dict),
            "a dict of arguments of the metric, or None",
            error=TypeError,
        ),
        "correction": Domain.one_of(None, "lingoes", "cailliez"),
        "metric": Domain(lambda m: isinstance(m, str) or callable(m), "a name or a function"),
    }

    def __init__(
        self,
        n_components: int = 2,
        metric: str | Callable[..., float] = "euclidean",
        *,
        correction: str | None = None,
        metric_params: dict[str, Any] | None = None,
    ) -> None:
        self.n_components = n_components
        self.metric = metric
        self.correction = correction
        self.metric_params = metric_params

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.positive_only = self.metric == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # --- fitting --------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Input, y: object = None) -> Self:
        """Place the training points; rows of a stream or a Dask collection are gathered."""
        self._fit(X)
        return self

    @all_or_nothing
    def fit_transform(self, X: Data, y: object = None) -> np.ndarray:
        """Place the training points, and return the embedding."""
        refuse_stream(X)
        self._fit(X)
        return self.embedding_

    def _fit(self, X):
        points = read(self, self._dense(X), Linear(), needs="all").points
        self.correction_constant_, self._n_features_out = 0.0, self.n_components
        # Distances are divided by _size_ first: their squares must neither vanish nor overflow.
        # _constant_ is the correction in this unit.
        self._size_, self._constant_ = 1.0, 0.0
        fit = self._fit_vectors if self._is_euclidean() else self._fit_distances
        self.embedding_ = as_points(fit(points), points)

    def _fit_vectors(self, X):
        """Euclidean distances between vectors: B = Xc Xc', so this is PCA ([MDS] 1.2)."""
        X = _in_double(X)
        xp = namespace(X)
        self._mean_ = xp.mean(X, axis=0)
        X = X - self._mean_[None, :]
        self._size_ = largest_power(X)
        X = X / self._size_
        n, d = X.shape
        # The smaller of Xc'Xc and Xc Xc'.
        k = min(self.n_components, n, d)
        values, V = spectrum(X.T @ X if d <= n else X @ X.T, k)
        values = self._without_zeros(values[:k], float(xp.sum(X * X)), n)
        if d > n:
            V = X.T @ (V * inverse_root(values)[None, :])
        V = V * xp.astype(values > 0, V.dtype)[None, :]
        V = V * signs(X @ V)[None, :]
        self._axes_ = pad_columns(V, self.n_components)
        self.eigenvalues_ = self._squares(pad_columns(values[None, :], self.n_components)[0, :])
        self.negative_eigenvalues_, self.negative_share_ = values[:0], 0.0
        return (X @ self._axes_) * self._size_

    def _fit_distances(self, points):
        if self.metric == "precomputed" and points.shape[0] != points.shape[1]:
            raise ValueError(
                f"metric='precomputed' needs a square matrix of distances at fit, got shape "
                f"{tuple(points.shape)}."
            )
        self._training_ = None if self.metric == "precomputed" else copy(points)
        D = self._distances(points)
        _check_square(D)
        xp = namespace(D)
        self._size_ = largest_power(D)
        D = D / self._size_
        B, self._row_means_ = _gram(D * D)
        k = min(self.n_components, D.shape[0])
        values, U = spectrum(B, k)
        noise = 8 * values.shape[0] * eps_of(values) * float(xp.max(xp.abs(values)))
        negative = int(xp.sum(xp.astype(values < -noise, xp.int64)))
        self.negative_eigenvalues_ = values[values.shape[0] - negative :]
        size = float(xp.sum(xp.abs(values)))
        lost = float(-xp.sum(self.negative_eigenvalues_)) if negative else 0.0
        self.negative_share_ = lost / size if size else 0.0
        if self.correction is not None and self.negative_eigenvalues_.shape[0]:
            values, U = spectrum(self._corrected(D, float(values[-1])), k)
        total = float(xp.sum(positive_part(values)))
        values = self._without_zeros(values[:k], total, D.shape[0])
        U = U - xp.mean(U, axis=0)[None, :]
        U = pad_columns(U * signs(U)[None, :], self.n_components)
        values = pad_columns(values[None, :], self.n_components)[0, :]
        self._axes_ = U * inverse_root(values)[None, :]
        self.eigenvalues_ = self._squares(values)
        self.negative_eigenvalues_ = self._squares(self.negative_eigenvalues_)
        return U * xp.sqrt(values)[None, :] * self._size_

    def _squares(self, values):
        """Squared lengths in the unit of the distances; beyond the range of numbers 0 or inf."""
        with np.errstate(over="ignore", under="ignore"):
            return values * self._size_ * self._size_

    def _corrected(self, D, smallest):
        """The corrected B; its row means are kept for new points."""
        if self.correction == "lingoes":
            # D2 + 2c off the diagonal adds c to every eigenvalue but that of 1.
            self._constant_ = -smallest
            self.correction_constant_ = float(self._squares(np.float64(-smallest)))
        else:
            self._constant_ = _cailliez(D)
            self.correction_constant_ = self._constant_ * self._size_
        between = 1 - on_device_of(np.eye(D.shape[0]), D)
        B, self._row_means_ = _gram(self._squared(D, between))
        return B

    def _squared(self, D, different):
        """Squared distances, corrected where points differ."""
        if self.correction == "cailliez":
            D = D + self._constant_ * different
            return D * D
        return D * D + 2 * self._constant_ * different

    def _without_zeros(self, values, total, n):
        """Rounding and negative eigenvalues as zeros, with a warning where they were asked for."""
        xp = namespace(values)
        floor = 8 * n * eps_of(values) * total
        values = xp.where(values > floor, values, xp.zeros_like(values))
        positive = int(xp.sum(xp.astype(values > 0, xp.int64)))
        if positive < self.n_components:
            warnings.warn(
                f"only {positive} eigenvalues are positive, fewer than n_components="
                f"{self.n_components}: the last {self.n_components - positive} columns are zero.",
                UserWarning,
                stacklevel=6,
            )
        return values

    # --- new points -----------------------------------------------------------------------------

    @lazily
    def transform(self, X: Data) -> np.ndarray:
        """Coordinates of new points, each on its own: Gower's formula.

        y = L^-1/2 U' b with b_i = -1/2 (d_i^2 - mean_j D_ij^2), d the distances to the training
        points: the projection of the new point onto the axes of the embedding.
        """
        check_is_fitted(self)
        points = validated_points(self, self._dense(X), Linear(), reset=False)
        if self._is_euclidean():
            Y = (_in_double(points) - self._mean_[None, :]) @ self._axes_
        else:
            D = self._distances(points, self._training_) / self._size_
            D2 = D * D
            if self._constant_:
                D2 = self._squared(D, namespace(D).astype(D > 0, D.dtype))
            Y = -0.5 * (D2 - self._row_means_[None, :]) @ self._axes_ * self._size_
        return as_points(Y, points)

    def _is_euclidean(self):
        return self.metric == "euclidean" and not self.metric_params

    def _dense(self, X):
        if scipy.sparse.issparse(X):
            raise TypeError(
                "Sparse data was passed for X, but ClassicalMDS needs dense data: pass X.toarray()."
            )
        return X

    def _distances(self, X, known=None):
        """Distances between the rows of X, or from them to known ones."""
        if self.metric == "precomputed":
            D = _in_double(X)
        else:
            # Metrics are NumPy's and Python's: computed on the host, back to where X is.
            A, B = as_numpy(X), None if known is None else as_numpy(known)
            with pts.naming("metric"):
                D = pairwise_distances(A, B, metric=self.metric, **(self.metric_params or {}))
            D = on_device_of(np.asarray(D, dtype=np.float64), X, dtype=namespace(X).float64)
        xp = namespace(D)
        if bool(xp.any(D < 0)):
            raise ValueError(
                f"Negative values in data passed to ClassicalMDS: distances are at least 0, the "
                f"smallest is {float(xp.min(D)):.4g}. (For similarities there is "
                "KernelPCA(kernel='precomputed').)"
            )
        if not bool(xp.all(xp.isfinite(D))):
            raise ValueError("distances contain NaN or infinity.")
        return D


def _gram(D2):
    """B = -1/2 H D2 H ([MDS] 2.2.2), and the row means of D2."""
    xp = namespace(D2)
    row_means = xp.mean(D2, axis=1)
    B = D2 - xp.mean(D2, axis=0)[None, :]
    B -= xp.mean(B, axis=1)[:, None]
    B *= -0.5
    return B, row_means


def _cailliez(D):
    """The smallest c for which D + c (off the diagonal) is Euclidean: Cailliez 1983.

    It is the largest eigenvalue of [[0, 2 B2], [-I, -4 B1]], B2 and B1 the Gram matrices made from
    squared distances and from distances.
    """
    D = as_numpy(D)
    n = len(D)
    B2, B1 = _gram(D * D)[0], _gram(D)[0]
    if n <= 200:
        M = np.block([[np.zeros((n, n)), 2 * B2], [-np.eye(n), -4 * B1]])
        return float(scipy.linalg.eigvals(M).real.max())

    def product(x):
        a, b = x[:n].ravel(), x[n:].ravel()
        return np.concatenate([2 * (B2 @ b), -a - 4 * (B1 @ b)])

    M = scipy.sparse.linalg.LinearOperator((2 * n, 2 * n), matvec=product, dtype=float)
    start = np.random.default_rng(0).standard_normal(2 * n)
    values = scipy.sparse.linalg.eigs(M, k=1, which="LR", v0=start, return_eigenvectors=False)
    return float(values.real.max())


def _check_square(D):
    """Symmetric, with zeros on the diagonal, up to rounding."""
    xp = namespace(D)
    size = float(xp.max(D))
    worst = float(xp.max(xp.abs(D - D.T)))
    if worst > 1e-6 * size:
        raise ValueError(
            f"distances must be symmetric: D[i, j] and D[j, i] differ by up to {worst:.4g}. Use "
            "(D + D.T) / 2 if that is what you mean."
        )
    diagonal = float(xp.max(xp.linalg.diagonal(D)))
    if diagonal > 1e-6 * size:
        raise ValueError(
            f"the distance of a point to itself must be 0, got {diagonal:.4g} on the diagonal. (A "
            "matrix of similarities belongs to KernelPCA(kernel='precomputed').)"
        )


def _in_double(X):
    xp = namespace(X)
    return xp.astype(X, xp.float64, copy=False)
