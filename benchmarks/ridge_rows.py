"""Rows of ridge beyond memory on the CPU: time, memory, the error and its certified bound.

The direct form is the peer where it fits the memory.
"""

import numpy as np

from . import datasets
from .harness import row

KIN_LIMIT = "1.5GB"


def _iterative(limit, tol):
    def mercer(data):
        from mercer import KernelMap, KernelRidge

        kernel, alpha, X, t, Z, _ = data
        options = KernelMap(kernel, pivots="random", memory_limit=limit, random_state=0)

        def call():
            model = KernelRidge(alpha, options, form="iterative", tol=tol).fit(X, t)
            return model.predict(Z), model.error_bound(Z), model.n_iter_

        return call

    return mercer


def _direct(data):
    from mercer import KernelRidge

    kernel, alpha, X, t, Z, _ = data
    return lambda: (KernelRidge(alpha, kernel, form="dual").fit(X, t).predict(Z), None, 0)


def _accuracy(data, result):
    predicted, bound, products = result
    *_, truth = data
    shown = {"rmse": float(np.sqrt(np.mean((predicted - truth) ** 2)))}
    if bound is not None:
        shown |= {"bound": float(bound.max()), "products": float(products)}
    return shown


@row(
    title="exact ridge, kin40k 36000 x 8, Matern-3/2, alpha 1e-3, under 2 GB",
    contenders={"mercer": _iterative(KIN_LIMIT, 1e-4), "mercer, dual (10 GB)": _direct},
    accuracy=_accuracy,
    repeats=1,
    rounds=1,
    quick=False,
    note="two cores; the bound is to be below 0.1",
)
def ridge_kin40k(quick):
    from mercer import Matern

    X, t = datasets.kin40k()
    X, t = (X[:6000], t[:6000]) if quick else (X, t)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    test, train = order[: len(X) // 10], order[len(X) // 10 :]
    pairs = rng.integers(len(train), size=(1000, 2))
    differences = X[train][pairs[:, 0]] - X[train][pairs[:, 1]]
    median = float(np.median(np.sqrt((differences**2).sum(axis=1))))
    return Matern(1.5, 4 * median), 1e-3, X[train], t[train], X[test], t[test]


def _form(form, tol=1e-8):
    """To eight digits, as "auto" is: the iterative form alone would stop at four."""

    def mercer(data):
        from mercer import KernelRidge

        kernel, alpha, X, t, Z, _ = data
        model = KernelRidge(alpha, kernel, form=form, tol=tol)
        return lambda: (model.fit(X, t).predict(Z), None, 0)

    return mercer


@row(
    title="ridge, kin40k 8000 x 8, Matern-3/2, alpha 1e-3: auto takes the faster form",
    contenders={
        "mercer": _form("auto"),
        "mercer, dual": _form("dual"),
        "mercer, iterative to 1e-8": _form("iterative"),
    },
    accuracy=_accuracy,
    target={"mercer, dual": 0.9, "mercer, iterative to 1e-8": 0.9},
    repeats=3,
    rounds=2,
)
def ridge_8000(quick):
    from mercer import Matern

    X, t = datasets.kin40k()
    n = 1000 if quick else 8000
    return Matern(1.5, 15.0), 1e-3, X[:n], t[:n], X[n : n + 1000], t[n : n + 1000]


def _scipy(data):
    """The kernel matrix of scikit-learn's Gaussian processes, and SciPy's Cholesky.

    With some 16 000 rows and more, and several threads, the latter ends the process.
    """
    from scipy.linalg import cho_factor, cho_solve
    from sklearn.gaussian_process.kernels import Matern

    kernel, alpha, X, t, Z, _ = data
    same = Matern(kernel.length_scale, nu=kernel.nu)

    def call():
        K = same(X)
        K[np.diag_indices(len(X))] += alpha
        factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        return same(Z, X) @ cho_solve(factor, t, check_finite=False), None, 0

    return call


@row(
    title="ridge, 14000 x 8, Matern-3/2, alpha 1e-3: a factor mostly in single precision, refined",
    contenders={"mercer": _form("auto"), "mercer, dual": _form("dual"), "SciPy's Cholesky": _scipy},
    accuracy=_accuracy,
    repeats=2,
    rounds=1,
)
def ridge_14000(quick):
    from mercer import Matern

    n = 2000 if quick else 14_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 1000, 8))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    return Matern(1.5, 4.0), 1e-3, X[:n], f[:n] + 0.05 * rng.normal(size=n), X[n:], f[n:]


@row(
    title="exact ridge, 100000 x 5, RBF, under 3 GB (scikit-learn: 80 GB)",
    contenders={"mercer": _iterative("2GB", 1e-3)},
    accuracy=_accuracy,
    repeats=1,
    rounds=1,
    quick=False,
)
def ridge_100000(quick):
    from mercer import RBF

    n = 10_000 if quick else 100_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 2000, 5))
    f = np.sin(X[:, 0] * X[:, 1]) + np.cos(X[:, 2] + X[:, 3])
    t = f + 0.1 * rng.normal(size=len(f))
    return RBF(0.2), 0.1, X[:n], t[:n], X[n:], f[n:]
