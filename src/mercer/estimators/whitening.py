"""Estimators that divide coordinates by their spread, and the tolerance that is safe for them.

A map of full rank keeps directions down to rounding: of size 1e-8, and known to one digit or none.
Inner products and distances do not notice. An estimator that scales every direction to the same
spread makes noise of them as large as everything else.
"""

from numbers import Real
from typing import Any

import numpy as np

from ..engine import eps_of
from ..rows import first_block

# Scale every column, or every direction, to the same spread; or invert a covariance.
WHITEN = {
    *("MaxAbsScaler", "MinMaxScaler", "PowerTransformer", "QuantileTransformer"),
    *("EllipticEnvelope", "EmpiricalCovariance", "MinCovDet", "QuadraticDiscriminantAnalysis"),
}
# The same, where their argument `scale` asks for it.
SCALE_BY_CHOICE = {"CCA", "PLSCanonical", "PLSRegression", "PLSSVD"}


def whitens(estimator: Any) -> bool:
    """Whether the estimator, or one inside it, scales small directions up.

    Not PCA(n, whiten=True) and FastICA(n): they scale the n largest directions alone.
    """
    return any(map(_whitens_itself, [estimator, *_inside(estimator)]))


def safe_tol(X: Any) -> float:
    """The root of the rounding unit: a direction that small still has half of its digits."""
    block = first_block(X)
    dtypes = getattr(block, "dtypes", None)  # a frame's, also Dask's
    if dtypes is not None and all(str(dtype).lower() == "float32" for dtype in dtypes):
        block = np.float32(0)  # frames become arrays in the precision of their columns
    return eps_of(block) ** 0.5


def _whitens_itself(estimator: Any) -> bool:
    names = {cls.__name__ for cls in type(estimator).__mro__}
    if names & {"StandardScaler", "RobustScaler"}:
        return bool(getattr(estimator, "with_std", getattr(estimator, "with_scaling", True)))
    if names & SCALE_BY_CHOICE:
        return bool(estimator.scale)
    if "LinearDiscriminantAnalysis" in names:
        # A number shrinks towards the mean spread; "auto" standardises columns first.
        return estimator.covariance_estimator is None and not (
            isinstance(estimator.shrinkage, Real) and float(estimator.shrinkage) > 0
        )
    if names & WHITEN:
        return True
    return bool(getattr(estimator, "whiten", False)) and (
        getattr(estimator, "n_components", None) is None
    )


def _inside(estimator: Any) -> list[Any]:
    """Estimators among the parameters: steps of a pipeline, the base of a meta-estimator."""
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        return []
    return [value for value in estimator.get_params().values() if hasattr(value, "fit")]
