"""What KernelRegressor and KernelClassifier share: a table in, a learned kernel, one exact fit."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    is_array,
    is_numpy,
    namespace,
    on_device_of,
    same_kind,
)
from ..kernels import Kernel
from ..kernels.points import as_vectors, take
from ..learn import learn_kernel
from ..learn.last_fit import LandmarkModel, last_fit
from ..learn.targets import Targets, as_generator
from .table import TableEncoder, array_of_lists


class LearnedModel(BaseEstimator):
    """A table encoder, a learned kernel, and ridge with an intercept on all rows."""

    _task = "regression"

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        metric: str | None = "full",
        max_landmarks: int = 1500,
        n_rounds: int = 10,
        memory_limit: int | str | None = None,
        random_state: int | None = 0,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.max_landmarks = max_landmarks
        self.n_rounds = n_rounds
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    def _fit_targets(self, X, targets: Targets):
        """Everything but the reading of y."""
        Z = self._encoded(X, reset=True)
        if Z.shape[0] != targets.columns.shape[0]:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {Z.shape[0]} "
                f"rows and y has {targets.columns.shape[0]}."
            )
        rng = as_generator(self.random_state)
        self.learn_report_ = learn_kernel(
            Z,
            targets.columns
            if targets.classes is None
            else targets.classes[targets.columns.argmax(axis=1)],
            self.kernel,
            metric=self.metric,
            task=self._task,
            max_landmarks=self.max_landmarks,
            n_rounds=self.n_rounds,
            random_state=int(rng.integers(2**31)),
            verbose=self.verbose,
        )
        self.kernel_ = self.learn_report_.kernel.bind(Z)
        T = on_device_of(targets.columns, Z)
        fit = last_fit(
            self.kernel_,
            Z,
            T,
            self.learn_report_.alpha,
            rng=rng,
            memory_limit=self.memory_limit,
            choose_alpha=not targets.constant,
        )
        self.points_, self.dual_coef_, self.intercept_ = fit.S, fit.coef, fit.intercept
        self.alpha_, self.exact_ = fit.alpha, fit.exact
        self.left_out_ = fit.judged
        landmarks = min(Z.shape[0], self.max_landmarks)
        self.uncertainty_ = LandmarkModel.fit(self.kernel_, Z, T, fit.alpha, None, rng, landmarks)
        self._offset, self._scale = targets.offset, targets.scale
        return fit, take(Z, fit.judged), targets.columns[fit.judged]

    def _encoded(self, X, reset):
        """The rows as a matrix of floats: through the encoder, or as they are on a device."""
        if not hasattr(X, "shape"):
            X = array_of_lists(X)
        if not reset:
            self._check_same_kind(X)
        if is_array(X) and not is_numpy(X):
            X = as_vectors(X)
            if reset:
                self.encoder_, self.n_features_in_ = None, X.shape[1]
            elif X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
            return namespace(X).astype(X, namespace(X).float64)
        if not reset and self.encoder_ is None:  # fitted on tensors, loaded from a file
            return as_vectors(X).astype(np.float64)
        if is_array(X) and X.ndim != 2:
            X = as_vectors(X)  # says how to reshape
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self.encoder_ = TableEncoder().fit(X)
        assert self.encoder_ is not None
        return self.encoder_.transform(X)

    def _check_same_kind(self, X):
        rows = X if is_array(X) else np.empty(0)
        if not same_kind(rows, self.points_):
            raise ValueError(
                f"Inputs passed to {type(self).__name__}.predict() must use the same namespace and "
                "the same device as those passed to fit(). Convert X, or fit again."
            )

    def _values(self, X) -> tuple[Any, Any]:
        """(f, encoded rows): f on the scale of the columns that were fitted."""
        check_is_fitted(self)
        Z = self._encoded(X, reset=False)
        return tiles.multiply(self.kernel_, Z, self.points_, self.dual_coef_) + self.intercept_, Z

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column of the table in the learned metric; sums to one."""
        check_is_fitted(self)
        shares = self.learn_report_.importances
        if self.encoder_ is None:
            return shares
        widths = [len(record["outputs"]) for record in self.encoder_.columns_]
        ends = np.cumsum(widths)
        return np.array([shares[b - w : b].sum() for b, w in zip(ends, widths)])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def host(y):
    return as_numpy(y) if is_array(y) else y
