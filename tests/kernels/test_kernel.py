"""The contract with scikit-learn: parameters, cloning, tuning."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from mercer import RBF, FromFunction, Kernel, Linear, Matern, OnColumns, Polynomial, QuadraticForm

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = np.sin(3 * X[:, 0]) + X[:, 1]


class Ridge(RegressorMixin, BaseEstimator):
    """Kernel ridge in five lines, so that kernels are tuned as part of an estimator."""

    def __init__(self, kernel=None):
        self.kernel = kernel

    def fit(self, X, y):
        self.kernel_ = self.kernel.bind(X)
        self.X_ = X
        self.coef_ = np.linalg.solve(self.kernel_(X) + 1e-3 * np.eye(len(X)), y)
        return self

    def predict(self, X):
        return self.kernel_(X, self.X_) @ self.coef_


def test_grid_search_over_leaves():
    kernel = RBF(0.01) * OnColumns(Linear(), [0]) + Linear()
    grid = {
        "kernel__left__left__gamma": [0.01, 0.1, 1.0],
        "kernel__left__right__columns": [[0], [1]],
    }
    search = GridSearchCV(Ridge(kernel), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["kernel__left__left__gamma"] != 0.01
    assert (
        search.best_estimator_.kernel_.left.left.gamma
        == search.best_params_["kernel__left__left__gamma"]
    )
    assert kernel == RBF(0.01) * OnColumns(Linear(), [0]) + Linear()


def test_grid_search_over_whole_kernels():
    grid = {"kernel": [Linear(), RBF(1.0) + Linear()]}
    search = GridSearchCV(Ridge(Linear()), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_ == {"kernel": RBF(1.0) + Linear()}


def test_a_kernel_is_a_callable_for_svc():
    kernel = RBF(0.7) + 1
    labels = X[:, 0] > 0
    ours = SVC(kernel=kernel).fit(X, labels)
    theirs = SVC(kernel="precomputed").fit(kernel(X), labels)
    assert_array_equal(ours.dual_coef_, theirs.dual_coef_)


def test_nested_names():
    kernel = RBF(1.0) + 2 * Matern()
    assert set(kernel.get_params()) == {
        "left", "left__gamma", "right", "right__scale", "right__kernel", "right__kernel__nu",
        "right__kernel__length_scale",
    }  # fmt: skip
    kernel.set_params(right__kernel__nu=0.5, left__gamma=3.0)
    assert kernel == RBF(3.0) + 2 * Matern(nu=0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'gama'"):
        kernel.set_params(left__gama=1.0)


def test_clone_of_array_parameters():
    kernel = QuadraticForm(np.eye(2)) + RBF(np.array([1.0, 2.0]))
    copy = clone(kernel)
    assert copy == kernel
    assert copy.left.A is not kernel.left.A


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (RBF(1), RBF(1.0)),
        (RBF([1, 2]), RBF((1.0, 2.0))),
        (RBF(np.array([1.0, 2.0])), RBF([1.0, 2.0])),
        (RBF(np.float64(0.5)), RBF(0.5)),
        (QuadraticForm([[1, 0], [0, 1]]), QuadraticForm(np.eye(2))),
        (OnColumns(RBF(), slice(0, 2)), OnColumns(RBF(), slice(0, 2))),
        (Linear().polynomial([1, 2]), Linear().polynomial(np.array([1.0, 2.0]))),
    ],
)
def test_equal_parameters_make_equal_kernels(a, b):
    assert a == b
    assert hash(a) == hash(b)


def test_unequal_kernels():
    assert RBF([1, 2]) != RBF([1, 2, 3])
    assert QuadraticForm([[1.0, 2.0]]) != QuadraticForm([[1.0], [2.0]])
    assert RBF() != Linear()
    assert len({RBF(), RBF("scale"), RBF(1.0), Linear()}) == 3


def test_large_arrays_and_functions_are_abbreviated():
    assert repr(QuadraticForm(np.eye(20))) == "QuadraticForm(A=<array of shape (20, 20)>)"
    assert repr(QuadraticForm(np.eye(2))) == "QuadraticForm(A=[[1.0, 0.0], [0.0, 1.0]])"
    assert repr(FromFunction(max)) == "FromFunction(max)"
    assert repr(RBF(np.float64(0.1))) == "RBF(gamma=0.1)"


def test_str_is_repr_even_when_long():
    kernel = sum((RBF(g) for g in range(1, 60)), Linear())
    assert str(kernel) == repr(kernel)
    assert repr(kernel).count("RBF") == 59


def test_sum_of_a_list():
    with pytest.raises(TypeError):
        _ = sum(["a"], RBF())
    assert sum([RBF(), Linear()], Linear()) == Linear() + RBF() + Linear()


@pytest.mark.parametrize("name", ["points", "kind", "widths", "diag"])
def test_a_parameter_cannot_hide_what_kernels_have(name):
    """Else its value would stand where the library calls a method, and some of them would fail."""

    def init(self, value):
        setattr(self, name, value)

    init.__signature__ = inspect.Signature(
        [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in ("self", name)]
    )
    with pytest.raises(TypeError, match=f"Mine: no parameter can be called '{name}'"):
        type("Mine", (Kernel,), {"__init__": init})


def test_a_subclass_says_what_it_lacks():
    class Empty(Kernel):
        pass

    with pytest.raises(NotImplementedError, match="Empty must define"):
        Empty()(X)


def test_a_kernel_of_ones_own_joins_the_algebra():
    class Product(Kernel):
        """x1 z1: what CONTRIBUTING.md asks of a new kernel."""

        def against(self, S):
            return lambda rows, columns=slice(None): rows[:, :1] * S[columns, 0]

        def diagonal(self, X):
            return X[:, 0] ** 2

    kernel = 2 * Product() + Polynomial(2)
    assert_array_equal(kernel(X).diagonal().round(9), kernel.diag(X).round(9))


def test_html_in_notebooks_shows_the_expression():
    assert "RBF" in (RBF() + 1)._repr_html_()
