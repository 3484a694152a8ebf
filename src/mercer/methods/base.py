"""What the methods share: a map made from `kernel=`, and the sums over rows that they need.

With coordinates in hand, PCA, discriminants and ridge are functions of a few sums: the number of
rows, Phi'1, Phi'Phi and Phi'T for some targets T. So they fit in one pass over the rows, in memory,
from a stream, or on a cluster.
"""

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from ..base import KernelEstimator
from ..engine.arrays import namespace
from ..kernel_map import KernelMap


class MapMethod(KernelEstimator):
    """A method on the coordinates of a kernel map. `kernel` is a kernel, a name, or a KernelMap."""

    def _new_map(self):
        """An unfitted map of this method's own."""
        own = clone(self.kernel) if isinstance(self.kernel, KernelMap) else KernelMap(self.kernel)
        # Methods compute with plain arrays, also where set_config asks transformers for frames.
        return own.set_output(transform="default")

    def _fit_map(self, X, **changes):
        """Coordinates of the training points on a fresh map, kept as kernel_map_.

        None where there are more rows than memory: then the method needs sums over passes.
        """
        self.kernel_map_ = self._new_map().set_params(**changes)
        Phi = self.kernel_map_.fit_coordinates(X)
        self._take_input_names(self.kernel_map_)
        return Phi

    def _fit_map_only(self, X, **changes):
        """A fresh map fitted on X, and no coordinates: for collections that are not held here."""
        self.kernel_map_ = self._new_map().set_params(**changes).fit(X)
        self._take_input_names(self.kernel_map_)
        return self.kernel_map_

    def _take_input_names(self, fitted):
        """What the map found out about X."""
        for name in ("n_features_in_", "feature_names_in_", "_array_kind"):
            self.__dict__.pop(name, None)
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))


def functions(kernel_map, coef, intercept):
    """The rows of coef as RKHSFunctions: one, or a list of several. [NPT] Lemma 6, backwards."""
    try:
        listed = [kernel_map.function(coef[i, ...], float(b)) for i, b in enumerate(intercept)]
    except ValueError as reason:  # a closed map, a Gram matrix, the residual coordinate
        raise AttributeError(f"function_ is not available: {reason}") from reason
    return listed[0] if len(listed) == 1 else listed


@dataclass
class Moments:
    """Weighted sums over rows: n = 1'w, first = Phi'w, second = Phi'WPhi, cross = Phi'WT."""

    n: float
    first: Any
    second: Any
    cross: Any = None
    target: Any = None  # T'w

    @classmethod
    def of(cls, Phi, T=None, weights=None):
        xp = namespace(Phi)
        if weights is None:
            target = None if T is None else xp.sum(T, axis=0)
            return cls(
                Phi.shape[0],
                xp.sum(Phi, axis=0),
                Phi.T @ Phi,
                None if T is None else Phi.T @ T,
                target,
            )
        weighted = Phi * weights[:, None]
        return cls(
            float(xp.sum(weights)),
            xp.sum(weighted, axis=0),
            weighted.T @ Phi,
            None if T is None else weighted.T @ T,
            None if T is None else weights @ T,
        )

    def __add__(self, other):
        return Moments(
            self.n + other.n,
            self.first + other.first,
            self.second + other.second,
            None if self.cross is None else self.cross + other.cross,
            None if self.target is None else self.target + other.target,
        )

    @property
    def mean(self):
        return self.first / self.n

    def scatter(self):
        """sum_i (phi_i - mean)(phi_i - mean)'."""
        return self.second - self.first[:, None] * self.mean[None, :]
