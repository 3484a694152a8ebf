"""Trees as plain arrays: boosting, or a forest for classes and many targets.

A row adds the values of the leaves that it falls into. That is a function in the space of the
kernel of shared leaves (:class:`mercer.ForestKernel`), in its primal form.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from threadpoolctl import threadpool_limits

from ..engine import TravelsAsNumPy, sklearn_compat

# Targets up to which each has boosted trees of its own; more share the leaves of a forest.
MOST_BOOSTED = 3
# Trees of a forest, the share of columns that a split chooses from, and rows of a leaf.
_FOREST_TREES = 60
_FOREST = {
    "n_estimators": _FOREST_TREES,
    "max_features": 0.4,
    "min_samples_leaf": 3,
    "random_state": 0,
}
# Boosted trees: many small ones with a low learning rate. Each split sees half of the columns. On
# tables with noise they are 1 to 2 % better than scikit-learn's defaults.
_BOOSTED = {
    "learning_rate": 0.05,
    "max_iter": 200,
    "max_leaf_nodes": 15,
    "max_features": 0.5,
    "early_stopping": False,
    "random_state": 0,
}
# Rows of a forest, at most, drawn at random.
_FOREST_ROWS = 5000
# Up to so many numbers a second thread waits more than it works.
_ENTRIES_FOR_ONE_THREAD = 200_000
# Values of leaves that are looked up at the same time.
_BLOCK = 1 << 18


@dataclass(frozen=True, eq=False)
class Trees(TravelsAsNumPy):
    """Sums of the values of leaves, plus b; evaluated by NumPy alone.

    roots : the first node of each tree
    feature, threshold, below, above : of each node; a leaf has itself as both children
    values : (nodes, targets)
    importances : of the columns, not scaled
    """

    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    below: np.ndarray
    above: np.ndarray
    values: np.ndarray
    b: np.ndarray
    importances: np.ndarray

    def __setstate__(self, state: dict[str, Any]) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, state[field.name])
        self.check_nodes()

    def check_nodes(self) -> None:
        """Refuse arrays of a file in which a way down does not end, or is one of too many.

        Every node has one parent at most, and comes after it.
        """
        n, width = len(self.feature), len(self.importances)
        own = np.arange(n)
        inner = (self.below != own) | (self.above != own)
        children = np.concatenate([self.below[inner], self.above[inner]])
        known = {len(a) for a in (self.threshold, self.below, self.above, self.values)} == {n}
        ends = np.concatenate([self.roots, children])
        if not known or (ends.size and (ends.min() < 0 or ends.max() >= n)):
            raise ValueError("Trees: a node leads to nodes that are not there.")
        down = (self.below > own) & (self.above > own)
        # A shared child would double the nodes to follow on every level.
        if not down[inner].all() or np.bincount(ends, minlength=n).max(initial=0) > 1:
            raise ValueError("Trees: a node leads back, or to a node of another one.")
        if n and (self.feature.min() < 0 or self.feature.max() >= width):
            raise ValueError(f"Trees: a node asks for a column beyond the {width} that there are.")

    @property
    def depth(self) -> int:
        """Steps from a root to the leaf farthest from it."""
        level, depth = self.roots, 0
        while len(inner := level[self.below[level] != level]):
            level, depth = np.concatenate([self.below[inner], self.above[inner]]), depth + 1
        return depth

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """One column per target."""
        found = np.tile(self.b, (X.shape[0], 1))
        per_row = max(1, len(self.roots) * self.values.shape[1])
        rows, depth = max(1, _BLOCK // per_row), self.depth
        for i in range(0, X.shape[0], rows):
            x = X[i : i + rows]
            which, node = np.arange(len(x))[:, None], np.tile(self.roots, (len(x), 1))
            for _ in range(depth):
                is_below = x[which, self.feature[node]] <= self.threshold[node]
                node = np.where(is_below, self.below[node], self.above[node])
            found[i : i + rows] += self.values[node].sum(axis=1)
        return found

    def __mul__(self, weight: float) -> "Trees":
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return Trees(**parts | {"values": weight * self.values, "b": weight * self.b})


def trees_bytes(n: int, width: int, targets: int, *, forest: bool) -> int:
    """Memory for growing: nodes of a forest, three times; or copies and histograms of columns."""
    if forest:
        return 2 * _FOREST_TREES * min(n, _FOREST_ROWS) * (48 + 8 * targets)
    return width * (32 * n + 64 * 256 * 24)


def grow_trees(X: np.ndarray, T: np.ndarray, weights: np.ndarray | None, *, forest: bool) -> Trees:
    """Boosted trees for each target, or a forest for all of them."""
    threads = 1 if X.size <= _ENTRIES_FOR_ONE_THREAD else None
    with threadpool_limits(threads, user_api="openmp"):
        made, b = (_forest if forest else _boosted)(X, T, weights)
    starts = np.cumsum([0, *(len(tree[0]) for tree in made[:-1])])
    feature, threshold, left, right, values, gains = (np.concatenate(parts) for parts in zip(*made))
    own, shift = np.arange(len(feature)), np.repeat(starts, [len(tree[0]) for tree in made])
    inner = left != right
    left, right = (np.where(inner, child + shift, own) for child in (left, right))
    feature = np.where(inner, feature, 0).astype(np.int32)
    importances = np.bincount(feature[inner], gains[inner], X.shape[1])
    kept = np.float32 if forest else np.float64  # a forest has many values
    return Trees(
        starts, feature, threshold, left, right, values.astype(kept), np.asarray(b), importances
    )


def _boosted(X, T, weights):
    """(nodes of every tree, baselines): each tree adds to one target."""
    made, b = [], []
    X, T, weights = _repeated(X, T, weights)
    for j in range(T.shape[1]):
        model = HistGradientBoostingRegressor(min_samples_leaf=leaf_size(len(X)), **_BOOSTED)
        model.fit(X, T[:, j], weights)
        trees, first = sklearn_compat.boosted_nodes(model)
        b.append(first)
        for nodes in trees:
            inner = nodes["is_leaf"] == 0
            left, right = (np.where(inner, nodes[c], 0).astype(np.int64) for c in ("left", "right"))
            values = np.zeros((len(nodes), T.shape[1]))
            values[:, j] = np.where(inner, 0.0, nodes["value"])
            gains = np.where(inner, nodes["gain"], 0.0)
            made.append((nodes["feature_idx"], nodes["num_threshold"], left, right, values, gains))
    return made, b


def _repeated(X, T, weights):
    """Copies of rows in place of their counts, where few: quantiles with weights are slow."""
    if weights is None:
        return X, T, weights
    counts = weights / weights.min()
    whole = np.round(counts)
    if np.abs(counts - whole).max() > 1e-6 or whole.sum() > 2 * len(X):
        return X, T, weights
    rows = np.repeat(np.arange(len(X)), whole.astype(int))
    return X[rows], T[rows], None


def _forest(X, T, weights):
    """(nodes of every tree, zeros): a leaf holds the mean targets of its rows."""
    # Drawn: tables are often sorted, and the first rows of one may lack whole classes.
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:_FOREST_ROWS])
    weights = None if weights is None else weights[rows]
    forest = RandomForestRegressor(**_FOREST).fit(X[rows], T[rows], weights)
    made = []
    for estimator in forest.estimators_:
        tree = estimator.tree_
        values = tree.value[:, :, 0] / len(forest.estimators_)
        size = tree.weighted_n_node_samples * tree.impurity
        inner = tree.children_left >= 0
        left, right = (np.where(inner, c, 0) for c in (tree.children_left, tree.children_right))
        gains = np.where(inner, size - size[left] - size[right], 0.0)
        values = np.where(inner[:, None], 0.0, values)
        made.append((tree.feature, tree.threshold, left, right, values, gains))
    return made, np.zeros(T.shape[1])


def leaf_size(n: int) -> int:
    """Rows in a leaf of boosted trees: the usual 20, or a tenth of a table with fewer than 200.

    With 20, trees on 32 rows cannot split at all, and predict the mean.
    """
    return int(np.clip(n // 10, 2, 20))
