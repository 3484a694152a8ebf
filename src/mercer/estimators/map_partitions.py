"""A kernel map over the partitions of a Dask collection: certify and grow where the rows are.

Landmarks are chosen here from a sample; every worker computes the residuals of its rows and keeps
those above tol. Of these at most a sample's worth comes here in each round, the factor grows on
them, and workers drop what is explained by now. Residuals only fall, so each row is read once for
its certificate, and what travels (samples, landmarks, r x r matrices) does not grow with the rows.
"""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from ..engine.arrays import as_numpy, is_array, on_device_of
from ..kernels import as_kernel
from ..kernels import points as pts
from ..rows.dask import Partitions, is_dask
from ..rows.moments import Spread
from ..rows.stream import is_stream, stacked
from ..rows.tasks import rows_at, task
from ..space import factorize
from ..space.grow import SAMPLE, Certified, default_tol, grown, relative_residuals
from ..space.spaces import Closed
from .base import validated_points

# Rows of the sample on which a kernel of unknown validity is tested.
TESTED = 2000


def fit_partitions(kernel_map, X):
    """Fit a KernelMap to a Dask array or DataFrame: landmarks, certificate, mean and rotation."""
    kernel = as_kernel(kernel_map.kernel)
    _refuse(kernel_map, kernel)
    parts = Partitions(X)
    if parts.frame:
        _refuse_categories(kernel, parts.X)
    validated_points(kernel_map, parts.example(), kernel, reset=True)
    check = Check(_bare(kernel_map), kernel)
    sample, positions, n = drawn(parts, check, SAMPLE, kernel_map._sampler())
    names = list(parts.X.columns) if parts.frame else None
    kernel_map.kernel_ = kernel = kernel.bind_points(sample, names)
    kernel.check_range(sample)
    if kernel.is_psd is not True:
        factorize(kernel, pts.take(sample, np.arange(min(TESTED, sample.shape[0]))))
    check = Check(check.estimator, kernel, bound=True)
    kernel_map.mean_, kernel_map._rotation, kernel_map._mean_radii = None, None, None
    vars(kernel_map).pop("eigenvalues_", None)
    if _is_closed(kernel_map, kernel, sample.shape[1] if sample.ndim == 2 else None, n):
        kernel_map._space, kernel_map.max_residual_ = Closed(kernel, sample), 0.0
    else:
        factor = kernel_map._sampled_factor(sample, positions)
        certified = certified_over(parts, check, factor, kernel_map)
        kernel_map._space, kernel_map.max_residual_ = certified.factor, certified.largest
    kernel_map.n_samples_seen_ = n
    kernel_map._describe()


def spread_of(kernel_map, X):
    """Mean and scatter of all rows in the landmarks' basis: every other is a rotation of it."""
    return summed(kernel_map, X, Spread.of, panels=raw)


def finished(kernel_map, X, add):
    """The map's own coordinates."""
    kernel_map.for_panels(X, add)


def raw(kernel_map, X, add):
    """Those of the landmarks' basis, and the residuals as rho2=."""
    kernel_map.for_raw_panels(X, lambda Phi, rho2, a, b, _: add(Phi, a, b, rho2=rho2))


def scores(kernel_map, X, add, coef, intercept):
    """transform(X) @ coef + intercept."""
    kernel_map.for_scores(X, coef, intercept, add)


def summed(kernel_map, X, statistic, *columns, panels=finished):
    """sum of statistic(coordinates, *values of the same rows) over all rows: one pass.

    A column is (values or None, name, function that makes an array of a block of them); a
    statistic returns something that can be added. `panels` says which coordinates.
    """
    if not is_dask(X):
        return _summed_here(kernel_map, X, statistic, columns, panels)
    parts = Partitions(X)
    shared = parts.share(
        (kernel_map, statistic, [(name, make) for _, name, make in columns], panels)
    )
    rows = parts.beside(*[(given, name) for given, name, _ in columns])
    return parts.total(parts.each(_statistic, shared, blocks=rows))


def _summed_here(kernel_map, X, statistic, columns, panels):
    """The same on one machine, from an array or a stream, panel after panel."""
    arrays, total, n = [_whole(given, make) for given, _, make in columns], None, 0

    def add(Phi, a, b, **given):
        nonlocal total, n
        for array, (_, name, _) in zip(arrays, columns):
            if array is not None and len(array) < b:
                raise ValueError(f"X has more rows than {name}, which has {len(array)}.")
        values = [None if v is None else on_device_of(v[a:b], Phi) for v in arrays]
        part = statistic(Phi, *values, **given)
        total, n = part if total is None else total + part, b

    panels(kernel_map, X, add)
    for array, (_, name, _) in zip(arrays, columns):
        if array is not None and len(array) != n:
            raise ValueError(f"X has {n} rows and {name} has {len(array)}.")
    return total


def _whole(given, make):
    """One column of numbers for all rows: small beside the rows, so that it is held."""
    if is_stream(given):
        given = np.concatenate([np.asarray(chunk) for chunk in given])
    return None if given is None else make(as_numpy(given) if is_array(given) else given)


@task
def _statistic(shared, row):
    (kernel_map, statistic, made, panels), (block, *values) = shared, row
    n, total = block.shape[0], None
    arrays = []
    for column, (name, make) in zip(values, made):
        array = None if column is None else make(column)
        if array is not None and len(array) != n:
            raise ValueError(
                f"a partition of X has {n} rows and that of {name} {len(array)}: both must be cut "
                "at the same rows."
            )
        arrays.append(array)
    if n == 0:
        return None

    def add(Phi, a, b, **given):
        nonlocal total
        part = statistic(Phi, *[None if v is None else v[a:b] for v in arrays], **given)
        total = part if total is None else total + part

    panels(kernel_map, block, add)
    return total


# --- points ---------------------------------------------------------------------------------------


@dataclass
class Check:
    """A block of a collection as checked points of the kernel."""

    estimator: Any
    kernel: Any
    bound: bool = False

    def __call__(self, block):
        if self.bound:
            return validated_points(self.estimator, block, self.kernel, reset=False)
        # No values of the kernel are known before the sample has bound it; types are.
        return validated_points(clone(self.estimator), block, self.kernel, reset=True)


def _bare(kernel_map):
    """What checking needs of the map, without what a former fit has left in it."""
    bare = clone(kernel_map)
    for name in ("n_features_in_", "feature_names_in_", "_array_kind"):
        if hasattr(kernel_map, name):
            setattr(bare, name, getattr(kernel_map, name))
    return bare


def _refuse(kernel_map, kernel):
    if kernel.kind == "gram":
        raise TypeError("a Gram matrix is not cut into partitions; pass it whole, as an array.")
    if kernel_map.basis == "symmetric":
        raise ValueError(
            "basis='symmetric' has one coordinate for each training row, too many for a Dask "
            "collection: use 'cholesky' or 'eigen', a rotation of it."
        )
    if kernel_map.pivots != "greedy":
        raise ValueError(
            f"pivots={kernel_map.pivots!r} draws from all residuals at once; over partitions "
            "landmarks are chosen with pivots='greedy'."
        )


def _refuse_categories(kernel, X):
    if kernel.kind not in ("vectors", "any"):
        return
    other = [str(c) for c, t in X.dtypes.items() if getattr(t, "kind", "O") not in "fiub"]
    if other:
        raise ValueError(
            f"could not convert X to numbers: column(s) {', '.join(other[:5])} hold other values "
            f"({', '.join(sorted({str(X.dtypes[c]) for c in X.columns if str(c) in other})[:3])}). "
            "Encode them (dask.dataframe.get_dummies), drop them, or name the numeric columns: "
            "OnColumns(kernel, columns)."
        )


def _is_closed(kernel_map, kernel, width, n):
    if kernel_map.basis != "auto":
        return kernel_map.basis == "closed"
    dimension = kernel.explicit_dim(width)
    return dimension is not None and dimension < min(n, kernel_map.max_rank or n)


# --- the sample -----------------------------------------------------------------------------------


def drawn(parts, check, size, rng):
    """`size` rows drawn evenly, their positions, and the number of all rows.

    Row i has the i-th number of the generator, and the smallest numbers are the sample: the same
    rows however they are cut, and the same as from a stream (engine/stream.py).
    """
    starts = np.concatenate([[0], parts.lengths.cumsum()])
    n = int(starts[-1])
    if n == 0:
        raise ValueError("Found array with 0 sample(s): all partitions of X are empty.")
    # Almost surely enough of them: ten standard deviations.
    below = 1.0 if n <= size else min(1.0, (size + 10 * size**0.5) / n)
    shared = parts.share((check, rng, below))
    found = [f for f in parts.collect(parts.each(_smallest, shared, starts[:-1].tolist())) if f]
    points = _stack([f[0] for f in found])
    positions, numbers = (np.concatenate([f[i] for f in found]) for i in (1, 2))
    if len(numbers) > size:
        best = np.sort(np.argpartition(numbers, size)[:size])
        points, positions = pts.take(points, best), positions[best]
    return points, positions, n


@task
def _smallest(shared, block, start):
    check, rng, below = shared
    if block.shape[0] == 0:
        return None
    own = deepcopy(rng)
    own.bit_generator.advance(start)
    numbers = own.random(block.shape[0])
    chosen = np.flatnonzero(numbers <= below)
    if len(chosen) == 0:
        return None
    return check(rows_at(block, chosen)), start + chosen, numbers[chosen]


def _stack(points):
    total = points[0]
    if isinstance(total, np.ndarray):
        return np.concatenate(points)
    for more in points[1:]:
        total = stacked(total, more)
    return total


# --- the certificate ------------------------------------------------------------------------------


@dataclass
class Left:
    """Rows of a partition that are not yet explained, and the largest residuals of the others."""

    seen: int
    rows: Any
    positions: np.ndarray
    relative: float
    largest: float

    @property
    def count(self):
        return len(self.positions)


def certified_over(parts, check, factor, kernel_map):
    """Extend the factor until every row of every partition has a residual of at most tol."""
    tol, max_rank = default_tol(factor.dtype, kernel_map.tol), kernel_map.max_rank
    grow = partial(
        grown,
        tol=tol,
        max_rank=max_rank,
        n_jobs=kernel_map.n_jobs,
        verbose=kernel_map.verbose,
    )
    rng = np.random.default_rng(kernel_map._sampler().integers(2**31))
    starts = np.concatenate([[0], parts.lengths.cumsum()[:-1]]).tolist()

    def allowed(factor):
        """At the largest rank allowed nothing more is explained: report what is left."""
        return np.inf if max_rank is not None and factor.rank >= max_rank else tol

    shared = parts.share((factor, check, allowed(factor)))
    left = parts.keep(parts.each(_unexplained, shared, starts))
    relative = largest = 0.0
    expected = int(parts.lengths.sum())
    while True:
        told = parts.collect([_delayed(_summary, part) for part in left])
        seen = sum(t[3] for t in told)
        if seen != expected:
            raise RuntimeError(
                f"{seen} rows were read where {expected} had been counted: X changes each time it "
                "is computed. Write it to files, or X.persist() it."
            )
        relative = max([relative, *(t[1] for t in told)])
        largest = max([largest, *(t[2] for t in told)])
        counts = np.array([t[0] for t in told])
        total = int(counts.sum())
        if total == 0:
            break
        chosen = np.arange(total)
        if total > SAMPLE:
            chosen = np.sort(rng.choice(total, SAMPLE, replace=False))
        which = np.split(chosen, np.searchsorted(chosen, counts.cumsum()[:-1]))
        first = counts.cumsum() - counts
        found = parts.collect(
            [_delayed(_pick, part, w - f) for part, w, f in zip(left, which, first) if len(w)]
        )
        factor, worst = grow(
            factor, _stack([f[0] for f in found]), np.concatenate([f[1] for f in found])
        )
        if total <= SAMPLE:
            relative, largest = max(relative, worst[0]), max(largest, worst[1])
            break
        shared = parts.share((factor, allowed(factor)))
        left, expected = [_delayed(_still_unexplained, shared, part) for part in left], total
        left = parts.keep(left)
    return Certified(factor, int(parts.lengths.sum()), float(relative), float(largest))


def _delayed(function, *args):
    from dask import delayed

    return delayed(function, pure=False, traverse=False)(*args)


@task
def _unexplained(shared, block, start):
    factor, check, tol = shared
    if block.shape[0] == 0:
        return Left(0, None, np.empty(0, dtype=int), 0.0, 0.0)
    rows = check(block)
    factor.kernel.check_range(rows)
    return _sorted_out(factor, rows, start + np.arange(rows.shape[0]), tol)


@task
def _still_unexplained(shared, left):
    factor, tol = shared
    if left.count == 0:
        return Left(0, None, left.positions, 0.0, 0.0)
    return _sorted_out(factor, left.rows, left.positions, tol)


def _sorted_out(factor, rows, positions, tol):
    rho2, share = relative_residuals(factor, rows)
    above = share > tol
    kept = np.flatnonzero(above)
    relative, largest = (float(v[~above].max(initial=0.0)) for v in (share, rho2))
    kept_rows = pts.take(rows, kept) if len(kept) else None
    return Left(rows.shape[0], kept_rows, positions[kept], relative, largest)


@task
def _summary(left):
    return left.count, left.relative, left.largest, left.seen


@task
def _pick(left, which):
    return pts.take(left.rows, which), left.positions[which]
