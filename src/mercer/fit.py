"""fit_map: the one fit of a feature map, wherever the rows are.

Rows that fit the memory are factored as a whole. Of more rows a sample is factored, every row is
certified where it is, and landmarks are added from those that are not yet explained.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import starmap
from operator import add
from typing import Any

import numpy as np
import scipy.sparse

from .engine import current, namespace, on_device_of, row_norms, tiles, using
from .feature_map import FeatureMap
from .kernels import Precomputed, rules_in
from .rows import Column, HeldRows, Rows, Spread, Training, gather
from .space import (
    Extent,
    Fourier,
    MapOptions,
    certify_and_grow,
    check_symmetric,
    eigen_rotation,
    empty_factor,
    extended,
    fourier_space,
    refute_by_a_look,
    refute_by_sample,
    rotation_from_scatter,
    sampled_space,
    space_of,
    space_of_sample,
    symmetric_rotation,
)

# Fourier coordinates that are held although sums over them would need none.
_FEW_VALUES = 1 << 24
# Matrices that sums over coordinates take: those of two panels, their sum, and what is solved.
_SQUARES = 4


@dataclass(frozen=True)
class Statistic:
    """A sum over the rows: of(coordinates, *values of the columns).

    `movable` sums (Spread, ByClass) can be taken in the landmarks' basis and moved to the map's own
    afterwards; so one pass serves the map's mean and eigenvectors and the method's sums.
    """

    of: Callable[..., Any]
    columns: Sequence[Column] = ()
    movable: bool = True


@dataclass(frozen=True)
class SpaceStatistic:
    """Sums that a Fourier space takes by transforms, accurate enough for ridge with this alpha."""

    alpha: float
    columns: Sequence[Column] = ()


@dataclass(frozen=True)
class MapFit:
    """A fitted map and what the training rows said."""

    map: FeatureMap
    n: int
    max_residual: float
    eigenvalues: Any = None
    correction: dict | None = None
    points: Any = None  # the training rows, where they were held
    F: Any = field(default=None, repr=False)  # their coordinates in the space, where held
    residuals: Any = field(default=None, repr=False)
    sums: Any = None

    def coordinates(self, *, sparse: bool = False) -> Any:
        """Coordinates of the training rows; None where there are more rows than memory.

        Those of a sparse map are filled, unless the caller takes them `sparse`.
        """
        if self.F is None:
            return None
        if scipy.sparse.issparse(self.F):
            Phi = self.map.finished(self.F, self.residuals, self.points)
            return Phi.toarray() if scipy.sparse.issparse(Phi) and not sparse else Phi
        rho2 = on_device_of(self.residuals, self.F) if self.map.append_residual else None
        # A square F is the factor itself; a kernel's own features may be its input.
        shared = self.F.shape[0] == self.F.shape[1] or self.map.space.may_share
        return self.map.finished(self.F, rho2, self.points, shared)


def fit_map(
    training: Training, options: MapOptions, sums: Statistic | SpaceStatistic | None = None
) -> MapFit:
    """Fit a map of the kernel to the rows: held, streamed or partitioned.

    `sums` are added up over the coordinates of all rows, in as few passes as possible.
    """
    if sums is not None:
        options = replace(options, squares=max(2, _SQUARES - options.held))
    with using(training.resources):
        fit = _fit_fourier if options.basis == "fourier" else _fit_landmarks
        found = fit(training, options, sums)
    if sums is not None and training.weights is not None and not found.sums.n > 0:
        raise ValueError("sample_weight must not be all zero.")  # of rows that pass by: see read
    return found


def _fit_landmarks(training, options, sums):
    """Landmarks of all rows, or of a sample where they are too many; or own features."""
    rows, kernel = training.rows, training.kernel
    if isinstance(rows, HeldRows):
        points, n = rows.points, rows.points.shape[0]
        for K in kernel.layout.given_matrices(points):  # landmarks see a few of its columns only
            check_symmetric(Precomputed(), K)
        space = sampled_space(kernel, points, options)
        if space is None:
            return _fit_held(kernel, rows, options, sums)
    else:
        sample = rows.sample(gather.SAMPLE, current().rng())
        kernel = kernel.bind_points(sample.points, rows.names)
        kernel.check_range(sample.points)
        space, n = space_of_sample(kernel, sample, options), sample.n
        rows = training.rows_of(kernel)
    return _fit_passes(rows, n, space, options, sums)


def _fit_fourier(training, options, sums):
    """Frequencies from the box of the rows; then sums, with or without coordinates."""
    rows, kernel = training.rows, training.kernel
    extent = rows.fold(Extent.of)
    if not training.is_held:
        some = extent.first
        if list(rules_in(kernel)):
            some = rows.sample(gather.SAMPLE, current().rng()).points
        kernel = kernel.bind_points(some, rows.names)
        kernel.check_range(some)
        rows = training.rows_of(kernel)
    space = fourier_space(kernel, extent, options.box, options.tol, options.max_rank)
    if isinstance(sums, SpaceStatistic):
        step = partial(space.sums, eps=space.accuracy_for(sums.alpha, extent.n))
        total = _transformed(rows, step, sums.columns)
        return MapFit(FeatureMap(space), extent.n, space.error, sums=total)
    values = extent.n * space.rank
    limit = current().limit() // (8 * options.copies)
    # Sums come from transforms, unless there are so few coordinates that all may as well be held.
    if isinstance(rows, HeldRows) and values <= (
        limit if sums is None else min(limit, _FEW_VALUES)
    ):
        return _fit_held(kernel, rows, options, sums, space)
    return _fit_passes(rows, extent.n, space, options, sums)


def _transformed(rows, step, columns):
    """A fold; rows that are held go in as a whole, since every transform has a cost of its own."""
    if not isinstance(rows, HeldRows):
        return rows.fold(step, columns)
    return step(rows.points, *rows.held_columns(columns))


# --- rows that are held ---------------------------------------------------------------------------


def _fit_held(kernel, rows, options, sums, known=None):
    """`known`: a space that needs no points."""
    points = rows.points
    if known is None:
        space, F, residuals, correction = space_of(kernel, points, options)
        if options.max_rank is not None and correction is None:
            refute_by_a_look(kernel, points)
    else:
        space, F, correction = known, known.coordinates(points), None
        residuals = np.full(points.shape[0], known.error)
    rotation = eigenvalues = mean = mean_radii = None
    if options.basis == "eigen":
        # [NPT] centres first and then takes the basis.
        rotation, eigenvalues = eigen_rotation(F - _mean(F) if options.center else F)
    elif options.basis == "symmetric":
        rotation = symmetric_rotation(F)
    if options.center:
        mean = _mean(F if rotation is None else F @ rotation)
        if correction is None:
            own = kernel.diagonal(points)
            if space.is_closed:
                mean_radii = space.radii(points, own).mean()
            else:
                sizes = kernel.layout.lengths(kernel, points, own) ** 2
                mean_radii = space.radii_of(F, sizes, on_device_of(residuals, F)).mean()
    fit = MapFit(
        FeatureMap(space, rotation, mean, mean_radii, options.append_residual),
        points.shape[0],
        float(residuals.max()),
        eigenvalues,
        correction,
        points,
        F,
        residuals,
    )
    if sums is None:
        return fit
    Phi = fit.coordinates()
    values = rows.held_columns(sums.columns)
    return replace(fit, sums=added_up(sums.of, Phi, values))


def added_up(of: Callable[..., Any], Phi: Any, values: Sequence[Any]):
    """A statistic of held coordinates, panel after panel: it may take several arrays of a panel."""
    panels = tiles.panel_slices(Phi, Phi.shape[1])
    return reduce(add, (of(Phi[where, :], *_of_panel(values, where, Phi)) for where in panels))


# --- rows that are passed over --------------------------------------------------------------------


def _fit_passes(rows, n, space, options, sums):
    """Certify every row, growing the landmarks; then mean, eigenvectors and sums over all rows."""
    largest = space.error
    if not space.is_closed:
        space, worst = certify_and_grow(space, rows, options.tol, options.max_rank)
        largest = worst.absolute
    plain = FeatureMap(space)
    fused = sums is not None and sums.movable and not options.append_residual
    total, eigenvalues = None, None
    fitted = replace(plain, append_residual=options.append_residual)
    if options.needs_sums:
        statistic = sums if fused else Statistic(Spread.of)
        total = fold(rows, plain, statistic, residuals=True)
        rotation, mean, mean_radii, spread = None, None, None, total.spread
        second = spread.about_zero().scatter
        if options.basis == "eigen":
            scatter = spread.scatter if options.center else second
            rotation, eigenvalues = rotation_from_scatter(scatter)
        if options.center:
            mean = spread.rotated(rotation).mean
            mean_radii = space.radii_of_mean(second / spread.n, spread.rho2 / spread.n)
        fitted = replace(fitted, rotation=rotation, mean=mean, mean_radii=mean_radii)
        total = total.rotated(rotation).moved(mean)
    if sums is not None and not (fused and options.needs_sums):
        total = fold(rows, fitted, sums)
    return MapFit(fitted, n, largest, eigenvalues, sums=total if sums is not None else None)


def fold(rows: Rows, feature_map: FeatureMap, statistic: Statistic, *, residuals: bool = False):
    """The statistic of the map's coordinates, added up over all rows."""
    space = feature_map.space
    plain = feature_map.rotation is None and feature_map.mean is None
    if isinstance(space, Fourier) and plain and statistic.of in (Spread.of, Spread.uncentred):
        space.check_matrix()
        total = _transformed(rows, space.sums, statistic.columns).spread(space)
        return total if statistic.of == Spread.of else total.about_zero()
    step = OnPanels(feature_map, statistic.of, residuals)
    return rows.fold(step, statistic.columns)


@dataclass(frozen=True)
class OnPanels:
    """The step of a fold: of(coordinates of a panel, *values of its rows), added up."""

    map: FeatureMap
    of: Callable[..., Any]
    residuals: bool = False  # whether the statistic also takes rho^2

    def __call__(self, points, *values, start=0):
        own = self.map.kernel.diagonal(self.map.fitted(points)) if self.residuals else None

        def part(Phi, where):
            given = {} if own is None else {"rho2": own[where] - row_norms(Phi, namespace(Phi))}
            return self.of(Phi, *_of_panel(values, where, Phi), **given)

        return reduce(add, starmap(part, self.map.panels(points)))


def _of_panel(values, where, Phi):
    """Values of some rows: numbers where the coordinates are, labels as they are."""
    mine = [None if v is None else v[where, ...] for v in values]
    numeric = [v is not None and getattr(v.dtype, "kind", "f") == "f" for v in mine]
    return [on_device_of(v, Phi) if number else v for v, number in zip(mine, numeric)]


def _mean(F):
    if scipy.sparse.issparse(F):
        return F.mean(axis=0)
    return Spread.sum_of_rows(F) / F.shape[0]


# --- rows that come later -------------------------------------------------------------------------


def first_map(training: Training) -> MapFit:
    """A map without landmarks, to be extended: every residual is k(x, x)."""
    refute_by_sample(training.kernel, training.points)
    return MapFit(FeatureMap(empty_factor(training.kernel, training.points)), 0, 0.0)


def extend_map(before: MapFit, points: Any, options: MapOptions) -> MapFit:
    """A map whose landmarks also explain these points; old coordinates keep their values."""
    space = before.map.space
    space.kernel.check_range(points)
    points = before.map.fitted(points)
    positions = before.n + np.arange(points.shape[0])
    space, worst = extended(space, points, positions, options.tol, options.max_rank)
    wider = FeatureMap(space, append_residual=options.append_residual)
    return MapFit(wider, before.n + points.shape[0], max(before.max_residual, worst[1]))
