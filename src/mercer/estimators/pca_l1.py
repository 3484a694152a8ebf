"""KernelPCAL1: directions of largest L1 dispersion in the feature space ([NPT] IV-D)."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..engine import (
    Domain,
    MemoryLimitError,
    Resources,
    coordinates_bytes,
    eigh,
    eps_of,
    namespace,
    on_device_of,
    readable,
    row_norms,
)
from ..kernels import KernelLike, RandomState
from ..rows import Spread
from ..space import signs
from .kernel_map import KernelMap
from .map_method import Projection, as_points
from .preimages import PreimageData, preimage_data, preimage_data_of_scores

# Each start is a column of signs.
_MOST_STARTS = 10**6


class KernelPCAL1(ClassNamePrefixFeaturesOutMixin, Projection):
    """Find principal components that a few outliers cannot turn.

    Maximises sum_i |<w, y_i>| instead of the sum of squares ([NPT] IV-D): a far-away point counts
    with its distance, not with the square of it. The iteration of PCA-L1 on the centred coordinates
    y_i of a kernel map: signs p_i = sign(w . y_i), then w along sum_i p_i y_i, until no sign flips;
    the dispersion never decreases. It ends in a local maximum, so several starts are tried:
    principal components, the largest point, and random signs. More components follow by deflation,
    y_i - w (w . y_i).

    Parameters
    ----------
    n_components : int, default=2
        Directions to find.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
        A kernel, its name as in scikit-learn ("rbf", "poly", "linear", ...), a function of two
        points, or a :class:`KernelMap` for options of the map.
    n_init : int, default=8
        Random starts, besides the others.
    max_iter : int, default=1000
        Largest number of steps from one start.
    random_state : int, RandomState or None, default=None
        Of the random starts.

    Attributes
    ----------
    dispersions_ : array of shape (n_components,)
        sum_i |w . y_i| over the points as deflated so far.
    dispersion_paths_ : list of ndarrays
        Dispersion after each step from the start that won, for every component.
    components_ : ndarray of shape (n_components, rank)
        Orthonormal directions in the coordinates of `kernel_map_`.
    n_iter_ : int
        Largest number of steps that a component took.
    mean_ : array of shape (rank,)
        Of the coordinates.
    projection_ : LinearOnMap
        The function from points to scores.
    kernel_map_ : KernelMap
        The fitted map.
    kernel_ : Kernel
        The kernel with data-dependent parameters turned into numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA, KernelPCAL1, Linear
    >>> X = np.zeros((41, 2))
    >>> X[:, 0] = np.linspace(-1, 1, 41)
    >>> X[20] = [0.0, 5.0]  # an outlier
    >>> scores = KernelPCA(1, kernel=Linear()).fit_transform(X)
    >>> round(abs(float(np.corrcoef(scores[:, 0], X[:, 0])[0, 1])), 2)  # PCA follows the outlier
    0.0
    >>> robust = KernelPCAL1(1, kernel=Linear(), random_state=0).fit(X)
    >>> scores = robust.transform(X)
    >>> round(abs(float(np.corrcoef(scores[:, 0], X[:, 0])[0, 1])), 2)
    0.96
    >>> robust.inverse_transform(scores).shape
    (41, 2)
    """

    domains = {
        "n_components": Domain.count(1),
        "n_init": Domain.count(0, _MOST_STARTS),
        "max_iter": Domain.count(1),
    }

    def __init__(
        self,
        n_components: int = 2,
        kernel: KernelLike | KernelMap = "rbf",
        *,
        n_init: int = 8,
        max_iter: int = 1000,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, X):
        fit = self._fit_map(self._read(X), append_residual=False)
        Y = fit.coordinates()
        if Y is None:
            raise MemoryLimitError(
                f"KernelPCAL1 needs the coordinates of all {fit.n} rows at once, and they are not "
                "held: limit the rank with kernel=KernelMap(kernel, max_rank=...) on an array, or "
                "fit on a sample."
            )
        # Coordinates as they are, centred, deflated, and what deflating takes; and the starts.
        (n, r), starts = Y.shape, self.n_init + self.n_components + 1
        needed = coordinates_bytes(n, r, copies=6) + coordinates_bytes(n, starts, copies=4)
        limit = Resources.of(self.kernel).limit(Y)
        if needed > limit:
            raise MemoryLimitError(
                f"KernelPCAL1 on {n} rows of {r} coordinates needs {readable(needed)}; "
                f"memory_limit allows {readable(limit)}. Limit the rank with "
                "kernel=KernelMap(kernel, max_rank=...), or fit on a sample."
            )
        self.mean_ = Spread.sum_of_rows(Y) / n
        Y = Y - self.mean_[None, :]
        directions, self.dispersion_paths_ = self._directions(Y)
        axes = directions * signs(Y @ directions)[None, :]
        self.components_ = axes.T
        self.projection_ = fit.map.linear(axes, -(self.mean_ @ axes))
        self.dispersions_ = on_device_of([path[-1] for path in self.dispersion_paths_], Y)
        self.n_iter_ = max(len(path) for path in self.dispersion_paths_)
        self._n_features_out = axes.shape[1]
        return as_points(Y @ axes, fit.points)

    def _directions(self, Y):
        """Columns w, one after the other on what the earlier ones have left."""
        xp, rest = namespace(Y), Y
        random = check_random_state(self.random_state)
        principal = eigh(Spread.of(Y).scatter)[1]
        total, found, paths = float(xp.sum(row_norms(Y, xp))), [], []
        floor = (4 * Y.shape[0] * eps_of(Y)) ** 2 * total
        wanted = min(self.n_components, Y.shape[0])
        for j in range(wanted):
            if float(xp.sum(row_norms(rest, xp))) <= floor:
                warnings.warn(
                    f"n_components={self.n_components} is more than the rank {j} of the centred "
                    f"kernel matrix: the last {wanted - j} columns are zero.",
                    UserWarning,
                    stacklevel=6,
                )
                found += [xp.zeros_like(Y[0, :])] * (wanted - j)
                paths += [np.zeros(1)] * (wanted - j)
                break
            starts = self._starts(rest, principal[:, : j + 1], random)
            w, path, settled = _most_dispersed(rest, starts, self.max_iter)
            if not settled:
                warnings.warn(
                    f"component {j} still changed signs after max_iter={self.max_iter} steps.",
                    ConvergenceWarning,
                    stacklevel=6,
                )
            for v in found:  # deflation makes w orthogonal up to rounding
                w = w - v * (v @ w)
            w = w / xp.sqrt(w @ w)
            rest = rest - (rest @ w)[:, None] * w[None, :]
            found.append(w)
            paths.append(path)
        return xp.stack(found, axis=1), paths

    def _starts(self, Y, principal, random):
        """Signs, one column per start: they mean the same in every basis of the map."""
        xp = namespace(Y)
        largest = int(xp.argmax(row_norms(Y, xp)))
        fixed = xp.concat([principal, Y[largest, :][:, None]], axis=1)
        flips = 2.0 * random.randint(2, size=(Y.shape[0], self.n_init)) - 1
        return xp.concat([_polarity(Y @ fixed), on_device_of(flips, Y)], axis=1)


@preimage_data.register
def _(model: KernelPCAL1) -> PreimageData:
    return preimage_data_of_scores(preimage_data(model.kernel_map_), model.projection_, model.mean_)


def _polarity(projections: np.ndarray):
    """sign, with sign(0) = +1."""
    xp = namespace(projections)
    one = xp.ones_like(projections)
    return xp.where(projections < 0, -one, one)


def _most_dispersed(Y: np.ndarray, P: np.ndarray, max_iter: int):
    """The best direction over all starts P (columns of signs), its dispersions, whether it settled.

    All starts step together: w = Y'p / |Y'p|, p = sign(Y w). A start has settled when no sign
    flips and no point has w . y = 0; such a point's sign is flipped (the nudge of [NPT]'s PCA-L1,
    in the direction that helps: with S = Y'p, |S - 2y|^2 = |S|^2 + 4|y|^2). Points that are zero
    themselves have no sign that matters.
    """
    xp = namespace(Y)
    lengths = xp.sqrt(row_norms(Y, xp))
    tiny = 8 * eps_of(Y)
    nonzero = lengths > tiny * float(xp.sum(lengths))  # |S| at most: smaller ones change nothing
    history = []
    for _ in range(max_iter):
        S = Y.T @ P
        norms = xp.sqrt(xp.sum(S * S, axis=0))
        W = S / xp.where(norms > 0, norms, xp.ones_like(norms))[None, :]
        projections = Y @ W
        history.append(xp.sum(xp.abs(projections), axis=0))
        flipped = _polarity(projections)
        moving = xp.any(flipped != P, axis=0)
        orthogonal = (xp.abs(projections) <= tiny * lengths[:, None]) & nonzero[:, None]
        stuck = xp.any(orthogonal, axis=0) & ~moving
        if bool(xp.any(stuck)):
            first = xp.argmax(xp.astype(orthogonal, xp.int64), axis=0)
            rows = on_device_of(np.arange(Y.shape[0]), Y, dtype=first.dtype)
            nudge = (rows[:, None] == first[None, :]) & stuck[None, :]
            flipped = xp.where(nudge, -flipped, flipped)
        P = flipped
        if not bool(xp.any(moving | stuck)):
            break
    settled = ~(moving | stuck)
    best = int(xp.argmax(history[-1]))
    return W[:, best], np.array([float(step[best]) for step in history]), bool(settled[best])
