"""Peers that are tuned or learn a kernel themselves, as estimators of scikit-learn.

LightGBM over 15 settings with early stopping, xRFM with validation rows, and an exact Gaussian
process of GPyTorch with one length per column. Inputs are numbers (see `real_tables`).
"""

import warnings

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split

SETTINGS, TREES, PATIENCE = 15, 2000, 50
VALIDATION = 0.2


def _device():
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _parts(X, y, classes):
    """Rows to learn from and rows to validate; all classes are in both where that is possible."""
    stratify = y if classes and np.unique(y, return_counts=True)[1].min() > 1 else None
    try:
        return train_test_split(X, y, test_size=VALIDATION, random_state=0, stratify=stratify)
    except ValueError:  # fewer rows than classes
        return train_test_split(X, y, test_size=VALIDATION, random_state=0)


class TunedLightGBM(BaseEstimator):
    """The best of 15 random settings on a fifth of the rows; then all rows, as many trees."""

    def __init__(self, classes=False):
        self.classes = classes

    def _model(self, trees, setting):
        from lightgbm import LGBMClassifier, LGBMRegressor

        model = LGBMClassifier if self.classes else LGBMRegressor
        return model(
            n_estimators=trees, random_state=0, verbose=-1, n_jobs=1, subsample_freq=1, **setting
        )

    def fit(self, X, y):
        from lightgbm import early_stopping

        rng = np.random.default_rng(0)
        settings = [
            {
                "learning_rate": float(10 ** rng.uniform(-2.3, -0.7)),
                "num_leaves": int(2 ** rng.uniform(2, 7)),
                "min_child_samples": int(2 ** rng.uniform(1, 6)),
                "subsample": float(rng.uniform(0.5, 1)),
                "colsample_bytree": float(rng.uniform(0.4, 1)),
                "reg_lambda": float(10 ** rng.uniform(-3, 1)),
            }
            for _ in range(SETTINGS - 1)
        ]
        known, new, t, u = _parts(X, y, self.classes)
        found = []
        for setting in ({}, *settings):
            model, stop = self._model(TREES, setting), early_stopping(PATIENCE, verbose=False)
            model.fit(known, t, eval_set=[(new, u)], callbacks=[stop])
            loss = next(iter(model.best_score_["valid_0"].values()))
            found.append((loss, model.best_iteration_ or 1, setting))
        _, trees, setting = min(found, key=lambda one: one[0])
        self.model_ = self._model(trees, setting).fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


class XRFM(BaseEstimator):
    """xRFM as its documentation uses it: it asks for validation rows, a fifth of all."""

    def __init__(self, classes=False):
        self.classes = classes

    def fit(self, X, y):
        import torch
        from xrfm import xRFM

        if self.classes:
            self.labels_, codes = np.unique(y, return_inverse=True)
            target = codes.astype(np.int64)
        else:
            self.offset_, self.scale_ = y.mean(), y.std() or 1.0
            target = ((y - self.offset_) / self.scale_).astype(np.float32)[:, None]
        known, new, t, u = _parts(np.asarray(X, dtype=np.float32), target, self.classes)
        metric = "brier" if self.classes else "mse"
        self.model_ = xRFM(device=_device(), tuning_metric=metric, verbose=False)
        self.model_.fit(*(torch.as_tensor(a, device=_device()) for a in (known, t, new, u)))
        return self

    def predict(self, X):
        import torch

        rows = torch.as_tensor(np.asarray(X, dtype=np.float32), device=_device())
        found = np.asarray(self.model_.predict(rows)).ravel()
        if self.classes:
            return self.labels_[found.astype(int)]
        return found * self.scale_ + self.offset_


class ExactGP(BaseEstimator):
    """GPyTorch: Matern-3/2 with one length per column, by marginal likelihood (Adam)."""

    STEPS, RATE = 150, 0.1

    def fit(self, X, y):
        import gpytorch
        import torch

        class Model(gpytorch.models.ExactGP):
            def __init__(self, X, y, likelihood):
                super().__init__(X, y, likelihood)
                self.mean = gpytorch.means.ConstantMean()
                own = gpytorch.kernels.MaternKernel(1.5, ard_num_dims=X.shape[1])
                self.kernel = gpytorch.kernels.ScaleKernel(own)
                own.lengthscale = X.shape[1] ** 0.5

            def forward(self, X):
                return gpytorch.distributions.MultivariateNormal(self.mean(X), self.kernel(X))

        torch.manual_seed(0)
        self.offset_, self.scale_ = y.mean(), y.std() or 1.0
        A, t = (
            torch.as_tensor(np.asarray(a, dtype=np.float64), device=_device())
            for a in (X, (y - self.offset_) / self.scale_)
        )
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(A)
        self.model_ = Model(A, t, likelihood).to(A)
        self.model_.train()
        evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, self.model_)
        steps = torch.optim.Adam(self.model_.parameters(), lr=self.RATE)
        with warnings.catch_warnings(), gpytorch.settings.max_cholesky_size(10**5):
            warnings.simplefilter("ignore")
            for _ in range(self.STEPS):
                steps.zero_grad()
                loss = -evidence(self.model_(A), t)
                loss.backward()
                steps.step()
        self.model_.eval()
        return self

    def predict(self, X):
        import gpytorch
        import torch

        A = torch.as_tensor(np.asarray(X, dtype=np.float64), device=_device())
        with torch.no_grad(), gpytorch.settings.max_cholesky_size(10**5):
            found = self.model_(A).mean.cpu().numpy()
        return found * self.scale_ + self.offset_
