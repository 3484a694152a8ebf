"""The space of a kernel while it changes, and how well it predicts rows that are left out.

Components, spectrum and discriminant axes follow from one eigendecomposition of the coordinates;
predictions and leave-one-out errors from ridge on the components.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ... import Kernel, KernelMap
from ...engine import as_numpy, eigh, gram
from ...solve import CoordinateRidge, LeaveOneOut
from ..compare.folds import ACCURACY, R2
from ..compare.measures import longest_share, validity_of
from ..data import CLASSES, Explored

# Landmarks of the picture that follows the hand, and of the one that follows it a moment later.
COARSE, FINE = 100, 500
# Rows on which a kernel of unknown validity is tested.
_TESTED = 400
# Penalties tried around the last one, while a knob moves.
_NEAR = np.array([0.1, 1.0, 10.0])
# Residuals below this share of k(x, x) are rounding.
_EXACT = 1e-9


@dataclass(frozen=True)
class _Judged:
    """The score, and the prediction of each row by the fit to all others."""

    name: str
    score: float
    predicted: np.ndarray  # codes of classes, or numbers
    wrong: np.ndarray  # marks rows of a class that is not found


@dataclass
class LiveSpace:
    """Coordinates of all rows, decomposed."""

    kernel_map: KernelMap  # fitted to the landmarks; maps new points
    components: np.ndarray  # the scores of kernel PCA, largest first
    values: np.ndarray  # the eigenvalues of the centred kernel matrix
    directions: np.ndarray  # unit vectors in the coordinates of the map
    mean: np.ndarray  # of the coordinates
    residuals: np.ndarray  # rho^2(x) / k(x, x): what the landmarks do not see of a row
    diagonal: np.ndarray  # k(x, x) of every row
    data: Explored
    # For the penalty with the smallest leave-one-out error; None without a target, and before
    # `judge` has found it.
    ridge: CoordinateRidge | None = None
    judged: _Judged | None = None

    @cached_property
    def validity(self) -> str:
        """Whether this is a kernel: "by construction", "not refuted" or "refuted"."""
        tested = self.data.take(np.arange(min(_TESTED, len(self.data))))
        return validity_of(self.kernel_map.kernel_, tested, self.kernel_map.correction_)

    @property
    def alpha(self) -> float | None:
        """The penalty of ridge."""
        return None if self.ridge is None else self.ridge.choice.alpha

    @property
    def effective_dimension(self) -> float:
        """The number of directions that share the variance. What the landmarks do not see counts as
        spread evenly over all directions that are left."""
        missed = float(self.residuals @ self.diagonal)
        largest = float(self.values.max(initial=0.0))
        unit = max(largest, missed, float(np.finfo(float).tiny))  # squares would overflow
        values, missed = self.values / unit, missed / unit
        left = max(1, len(self.diagonal) - len(values))
        square = float((values**2).sum()) + missed**2 / left
        return (float(values.sum()) + missed) ** 2 / square if square > 0 else 0.0

    @property
    def relative_variance(self) -> float:
        """Share of the squared lengths that varies between rows."""
        missed = float(self.residuals @ self.diagonal)
        total = max(float(self.diagonal.sum()), np.finfo(float).tiny)
        return (float(self.values.sum()) + missed) / total

    @property
    def longest_share(self) -> float:
        Q = self.components
        return longest_share(Q / (np.abs(Q).max(initial=0.0) or 1.0))

    @property
    def exact(self) -> bool:
        """Whether the landmarks explain every row."""
        return bool(self.residuals.max(initial=0.0) < _EXACT)

    def placed(self, scores: np.ndarray) -> np.ndarray:
        """Coordinates in the map of points given by their scores."""
        return self.mean + scores @ self.directions[:, : scores.shape[1]].T

    def judge(self, near: float | None = None) -> None:
        """Find the penalty with the smallest leave-one-out error, and judge ridge by it.

        `near` is the last penalty relative to the mean variance: only its neighbours are tried.
        Classes are columns of 0 and 1, and the largest prediction decides (scikit-learn's
        RidgeClassifier). Without a target there is nothing to judge.
        """
        data = self.data
        if data.targets is None:
            return
        rule = LeaveOneOut() if near is None else LeaveOneOut(near * _NEAR, relative=True)
        self.ridge = CoordinateRidge.of(self.components, data.targets, rule)
        misses = self.ridge.left_out().residuals
        left_out = data.targets - misses
        if data.task == CLASSES:
            predicted = left_out.argmax(axis=1)
            wrong = predicted != data.codes
            self.judged = _Judged(ACCURACY, float(np.mean(~wrong)), predicted, wrong)
            return
        spread = float(np.var(data.targets[:, 0])) or 1.0
        score = 1.0 - float(np.mean(misses[:, 0] ** 2)) / spread
        self.judged = _Judged(R2, score, left_out[:, 0], np.zeros(len(data), dtype=bool))


def explored_space(kernel: Kernel, data: Explored, landmarks: Any = None) -> LiveSpace:
    """The space on given landmarks (quick), or on FINE landmarks that the kernel itself chooses."""
    kernel_map, F = space_coordinates(kernel, data, landmarks)
    space = decomposed(kernel_map, F, data)
    space.judge()
    return space


def space_coordinates(
    kernel: Kernel, data: Explored, landmarks: Any = None
) -> tuple[KernelMap, np.ndarray]:
    """A fitted map, and the coordinates of all rows."""
    kernel = data.bound(kernel)
    options: dict[str, Any] = {"indefinite": "clip", "random_state": 0}
    few = len(data) <= FINE
    if landmarks is not None and not few:
        # Free memory is not asked for, and no thread is started, for so little.
        kernel_map = KernelMap(kernel, memory_limit="1GB", n_jobs=1, **options).fit(landmarks)
        F = kernel_map.transform(data.X)
    elif few or kernel.is_proven:
        most = None if few else FINE
        kernel_map = KernelMap(kernel, max_rank=most, pivots="random", **options)
        F = kernel_map.fit_transform(data.X)
    else:
        # A similarity that may not be a kernel is corrected on some rows: all would take n^3.
        chosen = np.random.default_rng(0).permutation(len(data))[:FINE]
        kernel_map = KernelMap(kernel, **options).fit(data.take(chosen))
        F = kernel_map.transform(data.X)
    F = np.array(as_numpy(F.toarray() if hasattr(F, "toarray") else F), dtype=float)
    return kernel_map, F


def decomposed(kernel_map: KernelMap, F: np.ndarray, data: Explored) -> LiveSpace:
    """The space of coordinates F, which are overwritten; not judged yet."""
    diagonal = np.asarray(as_numpy(kernel_map.kernel_.diag(data.X)), dtype=float)
    residuals = np.maximum(diagonal - np.einsum("ij,ij->i", F, F), 0.0)
    residuals /= np.maximum(diagonal, np.finfo(float).tiny)
    if kernel_map.correction_:
        residuals = np.zeros(len(data))  # of a corrected similarity nothing is certified
    if not F.shape[1]:  # all points at the origin
        F = np.zeros((len(data), 1))
    mean = F.mean(axis=0)
    F -= mean
    values, V = eigh(gram(F))
    pca = (F @ V, np.maximum(values, 0.0), V, mean)
    return LiveSpace(kernel_map, *pca, residuals, diagonal, data)
