"""The names of scikit-learn that are private there, and where each version keeps them.

No other file imports a private name of scikit-learn. What only serves the look of things (the
diagram in notebooks) may be missing; what a fit needs may not.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled

try:
    from sklearn.utils._repr_html.estimator import _VisualBlock  # from 1.7 on
except ImportError:
    try:
        from sklearn.utils._estimator_html_repr import _VisualBlock  # 1.6
    except ImportError:
        _VisualBlock = None

__all__ = ["boosted_nodes", "libsvm", "routing_enabled", "visual_block"]


def visual_block(estimators: list[Any], names: list[str]) -> Any:
    """Boxes one below the other in the diagram of an estimator; a string is a box with that text.

    Raises AttributeError where this scikit-learn draws diagrams differently: it then falls back to
    its own.
    """
    if _VisualBlock is None:
        raise AttributeError("this version of scikit-learn has no visual blocks")
    details = [str(estimator) for estimator in estimators]
    return _VisualBlock("serial", estimators, names=names, name_details=details)


def boosted_nodes(model: Any) -> tuple[list[Any], float]:
    """(nodes of each tree, baseline) of a HistGradientBoostingRegressor that is fitted."""
    trees = [tree.nodes for (tree,) in model._predictors]
    return trees, float(model._baseline_prediction.ravel()[0])


def libsvm(
    K: np.ndarray, y: np.ndarray, C: np.ndarray, tol: float, most_steps: int
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """(support vectors, their signed coefficients, intercept, steps) of the machine of two classes,
    y = -1 and 1, on a kernel matrix: without the checks of SVC, which cost more than few rows do.
    """
    largest = float(C.max())
    options = {"C": largest, "kernel": "precomputed", "tol": tol, "max_iter": most_steps}
    # All of the matrix is held, and most of these rows are support vectors: nothing to shrink.
    options |= {"cache_size": 1 + 5e-6 * len(K) ** 2, "shrinking": False}
    try:
        from sklearn.svm._libsvm import fit, set_verbosity_wrap

        set_verbosity_wrap(0)
        support, _, _, dual, b, *_, steps = fit(K, y, sample_weight=C / largest, **options)
        return support, -dual[0], -float(b[0]), int(np.sum(steps))  # its first class is positive
    except (ImportError, TypeError, ValueError):  # moved, or called otherwise
        from sklearn.svm import SVC

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it has not ended is solved after it
            machine = SVC(**options).fit(K, y, sample_weight=C / largest)
        steps = int(np.sum(machine.n_iter_))
        return machine.support_, machine.dual_coef_[0], float(machine.intercept_[0]), steps
