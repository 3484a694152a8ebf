"""What the methods share: a map made from `kernel=`, and the sums over rows that they need.

With coordinates in hand, PCA, discriminants and ridge are functions of a few sums: the number of
rows, Phi'1, Phi'Phi and Phi'T for some targets T. So they fit in one pass over the rows, in memory,
from a stream, or on a cluster.
"""

from sklearn.base import clone

from .base import KernelEstimator
from .kernel_map import KernelMap
from .map_partitions import finished, raw


class MapMethod(KernelEstimator):
    """A method on the coordinates of a kernel map. `kernel` is a kernel, a name, or a KernelMap."""

    def _new_map(self):
        """An unfitted map of this method's own."""
        own = clone(self.kernel) if isinstance(self.kernel, KernelMap) else KernelMap(self.kernel)
        # Methods compute with plain arrays, also where set_config asks transformers for frames.
        return own.set_output(transform="default")

    def _fit_map(self, X, gather=None, *, sparse=False, **changes):
        """Coordinates of the training points on a fresh map, kept as kernel_map_.

        None where there are more rows than memory: then the method needs sums over passes.
        """
        self.kernel_map_ = self._new_map().set_params(**changes)
        Phi = self.kernel_map_.fit_coordinates(X, gather, sparse=sparse)
        self._take_input_names(self.kernel_map_)
        return Phi

    def _fit_sums(self, X, sums, **changes):
        """(coordinates, None) where they are held, else (None, sums over all rows).

        sums(kernel_map, panels) is a pass over the rows, and returns a Spread. Where the map needs
        a pass itself, for its mean or its eigenvectors, the same one serves both: sums in the
        landmarks' basis are moved to the map's own afterwards.
        """
        seen = []

        def gather(kernel_map):
            seen.append(sums(kernel_map, panels=raw))
            return seen[0]

        # Residuals as a coordinate are no linear function of the others: two passes.
        fused = gather if not self._new_map().get_params()["residual"] else None
        Phi = self._fit_map(X, fused, **changes)
        if Phi is not None:
            return Phi, None
        kernel_map = self.kernel_map_
        if not seen:
            return None, sums(kernel_map, panels=finished)
        return None, seen[0].rotated(kernel_map._rotation).moved(kernel_map.mean_)

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
