"""The feature spaces of a test: one map per length scale, fitted on rows of both samples."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .. import Kernel, KernelMap
from ..engine import as_numpy
from ..estimators import kernel_of
from ..kernels import points as pts
from ..rows import Training
from .bulk import bound_to_bulk
from .permutations import beyond_rounding
from .samples import CHUNK_VALUES, Samples

# Multiples of the kernel's own length scale that a test looks at unless it is told otherwise.
USUAL = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
# Rows that landmarks are chosen from.
POOL = 4096
# Largest residual left at these rows, relative to k(x, x): far below what permutations move.
_TOL = 1e-3
LEAST_RANK, MOST_RANK = 100, 1000
# Multiplications that the coordinates of all rows at all scales may take.
_WORK = 2e11


def as_map(kernel: Any) -> KernelMap | None:
    """The map where one was given in place of a kernel."""
    return kernel if isinstance(kernel, KernelMap) else None


def generator(random_state: Any) -> np.random.Generator:
    """A generator from an int, a RandomState, a Generator or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))


def usual_map(rank: int, n: int) -> KernelMap:
    """A map of at most this rank for n rows. Random pivots leave the least sum of residuals, and
    outliers alone; greedy ones are faster where all rows may become landmarks."""
    return KernelMap(max_rank=rank, tol=_TOL, pivots="greedy" if n <= rank else "random")


def _checked_scales(scales: Any, kernel: Kernel) -> tuple[float, ...]:
    """The scales to look at; one for a kernel that has no length scale."""
    scaled = kernel.rescaled(2.0) != kernel
    if scales is None:
        return USUAL if scaled else (1.0,)
    try:
        values = np.atleast_1d(np.asarray(scales, dtype=float))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not values.size or not ((values > 1e-100) & (values < 1e100)).all():
        raise ValueError(
            f"scales must be positive numbers, multiples of the kernel's length scale, got "
            f"{scales!r}."
        )
    if not scaled and not (values == 1).all():
        raise ValueError(
            f"{kernel!r} has no length scale to change: leave scales out, or use a kernel such as "
            "RBF() or Matern()."
        )
    return tuple(dict.fromkeys(float(s) for s in values))


class Spaces:
    """Fitted maps at several scales, and the coordinates of rows in all of them side by side."""

    def __init__(self, maps: list[KernelMap], scales: tuple[float, ...]):
        self.maps, self.scales = maps, scales
        self.own = int(np.abs(np.log(scales)).argmin())  # the scale nearest to the kernel's own

    @classmethod
    def fit(
        cls, pool: Any, n_rows: int, kernel: Any, scales: Any, rng: np.random.Generator
    ) -> tuple["Spaces", np.ndarray]:
        """Maps on the pooled rows, small enough that all `n_rows` are mapped in reasonable time;
        and the coordinates of the pooled rows."""
        bound = bound_to_bulk(kernel_of(kernel), pool)
        chosen = _checked_scales(scales, bound)
        rank = int(np.clip((_WORK / (n_rows * len(chosen))) ** 0.5, LEAST_RANK, MOST_RANK))
        template = as_map(kernel) or usual_map(rank, pts.n_points(pool))
        maps, coordinates = [], []
        for s in chosen:
            own = clone(template).set_output(transform="default")
            own.set_params(kernel=bound.rescaled(s))
            if own.random_state is None:
                own.set_params(random_state=int(rng.integers(2**31 - 1)))
            coordinates.append(as_numpy(own.fit_transform(pool)))
            maps.append(own)
        Phi = np.hstack(coordinates)
        if not beyond_rounding(Phi - Phi[:1], Phi).any():
            raise ValueError(
                f"{bound!r} sees no difference between any rows: k(x, z) is the same for all of "
                "them, up to rounding. Scale the data, or take another kernel or length scale."
            )
        return cls(maps, chosen), Phi

    def coordinates(self, points: Any) -> np.ndarray:
        """phi of every point at every scale, (n, sum of ranks)."""
        return np.hstack([as_numpy(kernel_map.transform(points)) for kernel_map in self.maps])

    def of_sample(
        self, sample: Training, samples: Samples, bar: Any = None
    ) -> Iterator[np.ndarray]:
        """The coordinates of all rows of a sample, block by block; `bar` shows progress."""
        for points in samples.blocks(sample, max(64, CHUNK_VALUES // self.width)):
            Phi = self.coordinates(points)
            yield Phi
            if bar is not None:
                bar.update(len(Phi))

    @property
    def width(self) -> int:
        """The number of coordinates at all scales together."""
        return self.parts[-1].stop

    @property
    def parts(self) -> list[slice]:
        """The columns that belong to each scale."""
        ends = np.cumsum([0] + [int(m.get_feature_names_out().shape[0]) for m in self.maps])
        return [slice(a, b) for a, b in pairwise(ends.tolist())]


def pool_size(kernel: Any) -> int:
    """Rows to choose landmarks from: more where a map of more landmarks is asked for."""
    given = as_map(kernel)
    rank = MOST_RANK if given is None or given.max_rank is None else given.max_rank
    return max(POOL, 4 * rank)
