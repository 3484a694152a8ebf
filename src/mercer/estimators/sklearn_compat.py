"""The names of scikit-learn that are private there, and where each version keeps them.

No other file imports a private name of scikit-learn. What only serves the look of things (the
diagram in notebooks) may be missing; what a fit needs may not.
"""

from typing import Any

from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled

try:
    from sklearn.utils._repr_html.estimator import _VisualBlock  # from 1.7 on
except ImportError:
    try:
        from sklearn.utils._estimator_html_repr import _VisualBlock  # 1.6
    except ImportError:
        _VisualBlock = None

__all__ = [
    "boosted_nodes",
    "routing_enabled",
    "visual_block",
]


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
