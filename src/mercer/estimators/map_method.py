"""Methods on a map made from `kernel=`, fitted with the sums over rows that they need.

With coordinates in hand, PCA, discriminants and ridge are functions of a few sums: the number of
rows, Phi'1, Phi'Phi and Phi'T for some targets T. So they fit in one pass over the rows, in memory,
from a stream, or on a cluster.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..expansion import Expansion
from ..fit import MapFit, SpaceStatistic, Statistic
from ..kernels import Data, Input
from ..rows import Training, in_pieces, lazily, refuse_stream
from .base import KernelEstimator, all_or_nothing
from .kernel_map import KernelMap, fit_rows, read_rows
from .preimages import has_points, preimage
from .score_columns import as_points


class MapMethod(KernelEstimator):
    """A method on the coordinates of a kernel map. `kernel` is a kernel, a name, or a KernelMap."""

    def _new_map(self, **changes) -> KernelMap:
        """An unfitted map of this method's own."""
        own = clone(self.kernel) if isinstance(self.kernel, KernelMap) else KernelMap(self.kernel)
        # Methods compute with plain arrays, also where set_config asks transformers for frames.
        return own.set_output(transform="default").set_params(**changes)

    def _read(self, X, y=None, sample_weight=None, **options) -> Training:
        """The arguments of fit, read once."""
        own = self.kernel if isinstance(self.kernel, KernelMap) else KernelMap(self.kernel)
        return read_rows(own, X, y, sample_weight, owner=self, **options)

    def _fit_map(
        self, training: Training, sums: Statistic | SpaceStatistic | None = None, **changes
    ) -> MapFit:
        """Fit a map of this method's own, kept as kernel_map_; `sums` are added up on the way."""
        kernel_map = self._new_map(**changes)
        fit = fit_rows(kernel_map, training, sums)
        self.kernel_map_, self.kernel_ = kernel_map, kernel_map.kernel_
        training.keep_names(self)
        return fit


class Projection(TransformerMixin, MapMethod):
    """A method that gives every row its scores, and learns from rows alone."""

    projection_: Any  # an Expansion or a LinearOnMap: from points to scores

    @all_or_nothing
    def fit(self, X: Input, y: object = None) -> Self:
        """Find the directions on the training points."""
        self._fit(X)
        return self

    @all_or_nothing
    def fit_transform(self, X: Data, y: object = None) -> np.ndarray:
        """Fit, and return the scores of the training points (lazy, for a Dask collection)."""
        refuse_stream(X)
        scores = self._fit(X)
        return self.transform(X) if scores is None or in_pieces(X) else scores

    def _fit(self, X: Input) -> Any:
        """Scores of the training points, or None where they are not at hand."""
        raise NotImplementedError

    @lazily
    def transform(self, X: Data) -> np.ndarray:
        """Scores of every row; each row on its own."""
        check_is_fitted(self)
        points = self._points(X)
        return as_points(self.projection_(points), points)

    @available_if(has_points)
    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Points with these scores, about: a ridge regression learned at its first use.

        For KernelPCA as in scikit-learn: kernel ridge from scores to points with the same kernel
        and alpha = 1; the exact inverse where the kernel is linear. ``mercer.preimage`` has other
        methods.
        """
        return preimage(self, X)


def functions(linear: Any):
    """Functions on a map, or an Expansion, as RKHSFunctions: one, or a list of several."""
    try:
        expansion = linear
        if not isinstance(linear, Expansion):
            expansion = linear.map.expand(linear.coef, linear.b)
        listed = [expansion.column(j) for j in range(expansion.W.shape[1])]
    except ValueError as reason:  # a closed map, a Gram matrix, the residual coordinate
        raise AttributeError(f"function_ is not available: {reason}") from reason
    return listed[0] if len(listed) == 1 else listed
