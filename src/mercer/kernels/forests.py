"""ForestKernel: rows are alike where the trees of a fitted forest put them in the same leaf."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..engine import is_numpy, require
from .geometry import inner_products
from .kernel import ALL, Kernel
from .types import Array, Tile


class ForestKernel(Kernel):
    r"""Compare rows by the share of trees in which they fall into the same leaf.

    The features of the kernel are the leaves: one column for each, 1 / sqrt(trees) where the row
    is in it. So it is valid, and ``basis="closed"`` or `explicit` gives its exact sparse map.

    Parameters
    ----------
    estimator : fitted forest, gradient boosting or decision tree of scikit-learn
        Any that has `apply`: RandomForestRegressor, ExtraTreesClassifier, RandomTreesEmbedding,
        GradientBoostingClassifier and so on (HistGradientBoosting has none). It stays as it is:
        a copy of the kernel holds the same forest.

    Notes
    -----
    .. math::

        k(x, z) = \frac{\#\{\text{trees with } x, z \text{ in one leaf}\}}{\#\{\text{trees}\}}

    - *Valid*: an inner product of the leaves' indicators.
    - *Fails*: between leaves, since it is a step function; and where it judges itself. A forest
      that has seen the targets of some rows puts rows with similar targets into the same leaves: on
      those rows errors, leave-one-out errors included, are too small. Fit the forest on other rows
      than the method that uses the kernel, or judge the whole by folds.
    - *Elsewhere*: `RandomTreesEmbedding` of scikit-learn is its map, for trees without targets.

    The kernel is that of Breiman (2000), "Some infinity theory for predictor ensembles", and Davies
    and Ghahramani (2014), "The random forest kernel and other kernels for big data from
    random partitions".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import ExtraTreesRegressor
    >>> from mercer import ForestKernel
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> forest = ExtraTreesRegressor(10, max_depth=3, random_state=0).fit(X, X[:, 0] > 0.5)
    >>> kernel = ForestKernel(forest)
    >>> kernel([[0.1, 0.5]], [[0.1, 0.5], [0.4, 0.6], [0.9, 0.5]])
    array([[1. , 0.4, 0. ]])
    """

    in_expressions = False
    is_psd = True

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def __sklearn_clone__(self) -> Self:
        """A clone would forget what the forest has learned, which is the kernel."""
        return self.copied()

    def check_parameters(self) -> None:
        name = type(self.estimator).__name__
        require(
            hasattr(self.estimator, "apply") and not isinstance(self.estimator, type),
            f"ForestKernel needs a fitted forest, gradient boosting or tree of scikit-learn, which "
            f"has `apply`; got {name}.",
        )
        try:
            check_is_fitted(self.estimator)
        except NotFittedError:
            raise ValueError(
                f"ForestKernel: this {name} is not fitted; call its fit first."
            ) from None

    def bind_points(self, X: Array, names: list[str] | None, weights: Array | None = None) -> Self:
        learned = list(getattr(self.estimator, "feature_names_in_", names or ()))
        require(
            names is None or list(names) == learned,
            f"X has the columns {names}, and the forest was fitted on {learned}: take these, in "
            "this order.",
        )
        return super().bind_points(X, names, weights)

    def against(self, S: Array) -> Tile:
        forest = _Leaves(self.estimator)
        fixed = forest(S)

        def tile(rows: Any, columns: slice = ALL) -> Any:
            shared = inner_products(forest(rows), fixed[columns].T)
            return (shared / forest.n_trees).astype(S.dtype, copy=False)

        return tile

    def diagonal(self, X: Array) -> Array:
        _require_numpy(X)
        return np.ones(X.shape[0], dtype=X.dtype)

    def features(self, X: Array) -> Array:
        forest = _Leaves(self.estimator)
        features: Any = forest(X) * forest.n_trees**-0.5
        return features

    def explicit_dim(self, n_features: int | None) -> int | None:
        return _Leaves(self.estimator).width

    def rounding(self, S: Array) -> float:
        return 2.0  # counts are exact, and divided once


class _Leaves:
    """Rows of ones: one column for each leaf of a forest, in which each tree puts a row once."""

    def __init__(self, estimator):
        self.estimator, self.columns, self.width = copy(estimator), [], 0
        # Names were compared when the kernel was bound; rows without them would be warned of.
        vars(self.estimator).pop("feature_names_in_", None)
        for tree in np.ravel(getattr(estimator, "estimators_", [estimator])):
            leaves = tree.tree_.children_left == -1
            self.columns.append(self.width + np.cumsum(leaves) - 1)  # of each node that is a leaf
            self.width += int(leaves.sum())
        self.n_trees = len(self.columns)

    def __call__(self, X):
        _require_numpy(X)
        n, trees = X.shape[0], self.n_trees
        if n == 0:
            return scipy.sparse.csr_array((0, self.width))
        nodes = np.asarray(self.estimator.apply(X)).astype(np.int64).reshape(n, trees)
        keys = np.stack([column[nodes[:, t]] for t, column in enumerate(self.columns)], axis=1)
        starts = np.arange(n + 1) * trees
        return scipy.sparse.csr_array((np.ones(n * trees), keys.ravel(), starts), (n, self.width))


def _require_numpy(X):
    if not (is_numpy(X) or scipy.sparse.issparse(X)):
        raise TypeError(
            f"ForestKernel runs on NumPy arrays and sparse rows, got {type(X).__name__}."
        )
