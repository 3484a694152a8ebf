"""Maps of more rows than memory, and of rows that come later: certify and grow."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..engine import tiles
from ..engine.arrays import itemsize, namespace, row_norms
from ..engine.memory import budget
from ..kernels import as_kernel
from ..kernels import points as pts
from ..rows.stream import Rows, is_stream
from ..space.cholesky import columns_that_fit, matrix_fits
from ..space.grow import (
    SAMPLE,
    certify_and_grow,
    default_tol,
    empty_factor,
    extended,
    sample_factor,
)
from ..space.spectral import rotation_from_scatter
from .base import PartOfMap, all_or_nothing, validated_points


def _can_grow(kernel_map):
    """partial_fit keeps the coordinates it has given: no rotation, no mean, no Gram matrix."""
    if kernel_map.basis != "cholesky" or kernel_map.center:
        raise AttributeError(
            "partial_fit keeps the coordinates it has given: it needs basis='cholesky' and "
            f"center=False, got basis={kernel_map.basis!r}, center={kernel_map.center!r}."
        )
    if kernel_map._leaf_kernel().kind == "gram":
        raise AttributeError("partial_fit needs a kernel on data; a Gram matrix does not grow.")
    return True


class Streamed(PartOfMap):
    """The part of KernelMap that reads rows in passes."""

    kernel_: Any

    @available_if(_can_grow)
    @all_or_nothing
    def partial_fit(self, X, y=None):
        """Add points whose residual exceeds tol as new basis vectors: [NPT] Lemma 5.

        Coordinates of earlier points keep their values and gain columns (zero for them, up to
        tol). Points cannot be put in the order that rounding asks for, so residuals below
        sqrt(eps) (1.5e-8 in double precision) of k(x, x) are left, whatever tol is. Data-dependent
        kernel parameters are fixed at the first call. Basis "cholesky", uncentred.
        """
        self._check_parameters()
        first = not hasattr(self, "_space")
        kernel = as_kernel(self.kernel) if first else self.kernel_
        points = validated_points(self, X, kernel, reset=first)
        if first:
            self.kernel_ = kernel = kernel.bind_points(points, pts.column_names(X))
            kernel.check_range(points)
            self.correction_, self.n_samples_seen_, self.max_residual_ = None, 0, 0.0
            self.mean_, self._rotation, self._mean_radii = None, None, None
            self._space = empty_factor(kernel, points)
        kernel.check_range(points)
        tol = default_tol(self._space.dtype, self.tol)
        positions = self.n_samples_seen_ + np.arange(points.shape[0])
        self._space, (_, largest) = extended(
            self._space, points, positions, tol, self.max_rank, self.n_jobs, self.verbose
        )
        self.n_samples_seen_ += points.shape[0]
        self.max_residual_ = max(self.max_residual_, largest)
        self._describe()
        return self

    def _fit_stream(self, X, kernel):
        """Landmarks of a sample, then a certificate over all chunks."""
        drawn = self._rows(X, kernel).sample(SAMPLE, self._sampler())
        sample, positions, _ = drawn
        self.kernel_ = kernel.bind_points(sample, self._column_names())
        self.kernel_.check_range(sample)
        rows = self._rows(X, self.kernel_, reset=False)
        self._fit_rows(rows, self._sampled_factor(sample, positions))
        return rows

    def _column_names(self):
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    def _rows(self, X, kernel, reset=True):
        """A stream as numbered chunks of checked points; the first chunk decides the columns.

        Before the kernel is bound (`reset`) only the points are checked, not its range on them.
        """
        first = [reset]

        def check(chunk):
            points = validated_points(self, chunk, kernel, reset=first[0], in_range=not reset)
            first[0] = False
            return points

        if kernel.kind == "gram":
            raise TypeError("a Gram matrix is not streamed; pass it whole.")
        return Rows(X, check)

    def _first_factor(self, points):
        """Landmarks of a sample where all coordinates of all points would not fit; else None."""
        n = points.shape[0]
        if n <= 2 * SAMPLE or self.pivots != "greedy" or self.basis in ("closed", "auto"):
            return None
        if self.kernel_.kind == "gram" or self.basis == "symmetric":
            return None
        like, limit = tiles.allocate(points, (1, 1)), budget(self.memory_limit, points)
        most = columns_that_fit(n, limit, itemsize(like), self._copies())
        whole = matrix_fits(self.kernel_, like, n, limit, self._copies())
        if whole or min(n, self.max_rank or n) <= most:
            return None
        positions = np.sort(self._sampler().choice(n, SAMPLE, replace=False))
        factor = self._sampled_factor(pts.take(points, positions), positions)
        # All rows have a somewhat larger rank than the sample.
        return None if 1.5 * factor.rank <= most else factor

    def _sampler(self):
        """Greedy landmarks are no random choice: without a seed their sample is a fixed one."""
        return generator(0 if self.random_state is None else self.random_state)

    def _sampled_factor(self, sample, positions):
        tol = default_tol(sample.dtype, self.tol)
        return sample_factor(
            self.kernel_,
            sample,
            positions,
            tol=tol,
            max_rank=self.max_rank,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _fit_rows(self, rows, factor):
        """Certify every row, growing the factor where one is not yet explained."""
        if self.basis == "symmetric":
            raise ValueError(
                "basis='symmetric' has one coordinate for each training row, too many for a "
                "stream: use 'cholesky' or 'eigen', a rotation of it."
            )
        certified = certify_and_grow(
            factor,
            rows,
            tol=default_tol(factor.dtype, self.tol),
            max_rank=self.max_rank,
            limit=budget(self.memory_limit, factor.C),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self._space, self.max_residual_ = certified.factor, certified.largest
        self.n_samples_seen_ = certified.n
        self.mean_, self._rotation, self._mean_radii = None, None, None
        self._describe()

    @property
    def _needs_sums(self):
        """Whether mean or eigenvectors are needed: known only after a pass over all rows."""
        return self.basis == "eigen" or self.center

    def _basis_from(self, sums):
        """Mean and eigenvectors from the Spread of all rows' coordinates."""
        self.__dict__.pop("eigenvalues_", None)
        second = sums.moments().second
        if self.basis == "eigen":
            scatter = sums.scatter if self.center else second
            self._rotation, self.eigenvalues_ = rotation_from_scatter(scatter)
        if self.center:
            self.mean_ = sums.rotated(self._rotation).mean
            self._mean_radii = self._space.radii_of_mean(second / sums.n, sums.rho2 / sums.n)
        self._describe()

    def for_panels(self, X, consume):
        """consume(coordinates of rows a to b, a, b) over all rows of an array or a stream."""

        def finish(Phi, rho2, a, b, chunk):
            rho2 = rho2 if self._appends_residual else None
            consume(self._finished(self._rotated(Phi), rho2, chunk), a, b)

        self.for_raw_panels(X, finish)

    def for_raw_panels(self, X, consume):
        """consume(coordinates in the landmarks' basis, rho^2, a, b, the points' chunk)."""
        for start, chunk in self._new_rows(X):
            points = self._as_fitted(chunk)
            own = self.kernel_.diagonal(points)

            def with_residuals(Phi, a, b, start=start, chunk=chunk, own=own):
                rho2 = own[a:b] - row_norms(Phi, namespace(Phi))
                consume(Phi, rho2, start + a, start + b, chunk)

            self._space.for_panels(points, with_residuals, n_jobs=self.n_jobs, verbose=self.verbose)

    def for_scores(self, X, coef, intercept, consume):
        """consume(coordinates @ coef + intercept of rows a to b, a, b): no coordinates are made."""
        weights, intercept = self.landmark_weights(coef, intercept)
        for start, chunk in self._new_rows(X):
            points = self._as_fitted(chunk)
            Y = tiles.multiply(self.kernel_, points, self._space.S, weights, n_jobs=self.n_jobs)
            consume(Y + intercept, start, start + points.shape[0])

    def _new_rows(self, X):
        """An array or a stream as numbered chunks of checked points."""
        check_is_fitted(self)
        if is_stream(X):
            return self._rows(X, self.kernel_, reset=False)
        return Rows(self._new_points(X), None)


def generator(random_state):
    """A numpy Generator from scikit-learn's random_state, without touching global state twice."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
