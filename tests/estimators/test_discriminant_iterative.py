"""KernelDiscriminant(form="iterative") against the primal form: the same axes, the same classes."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mercer import (
    RBF,
    KernelDiscriminant,
    KernelMap,
    Linear,
    Matern,
    Precomputed,
    load,
    save,
)
from mercer.solve import optimal_scoring as discriminant


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X[::2], y[::2], X[1::2]


def both(wine, kernel, shrinkage, **more):
    X, y, _ = wine
    options = {"kernel": kernel, "shrinkage": shrinkage} | more
    primal = KernelDiscriminant(**options).fit(X, y)
    return primal, KernelDiscriminant(**options, form="iterative", tol=1e-7).fit(X, y)


@pytest.mark.parametrize("shrinkage", [1e-3, 0.1, 3.0])
@pytest.mark.parametrize("priors", [None, [0.2, 0.5, 0.3]], ids=["shares", "given"])
@pytest.mark.parametrize("kernel", [Matern(0.5, 3.0), RBF(0.05), Linear()], ids=repr)
def test_equals_the_primal_form(wine, kernel, priors, shrinkage):
    primal, iterative = both(wine, kernel, shrinkage, priors=priors)
    Z = wine[2]
    assert iterative.form_ == "iterative"
    assert iterative.converged_
    for method in ("transform", "decision_function"):
        want, got = getattr(primal, method)(Z), getattr(iterative, method)(Z)
        assert_allclose(got, want, atol=1e-5 * np.abs(want).max())
    assert_array_equal(iterative.predict(Z), primal.predict(Z))
    assert_allclose(
        iterative.explained_variance_ratio_, primal.explained_variance_ratio_, atol=1e-6
    )


def test_two_classes_and_one_axis(wine):
    X, y, Z = wine
    two = (X[y < 2], y[y < 2], Z)
    primal, iterative = both(two, Matern(1.5, 3.0), 0.05)
    assert_allclose(
        iterative.decision_function(Z),
        primal.decision_function(Z),
        atol=1e-5 * np.abs(primal.decision_function(Z)).max(),
    )
    assert_allclose(iterative.predict_proba(Z), primal.predict_proba(Z), atol=1e-5)
    assert_allclose(iterative.function_(Z), iterative.decision_function(Z), atol=1e-8)
    one = KernelDiscriminant(1, RBF(0.05), shrinkage=0.1, form="iterative").fit(X, y)
    assert one.transform(Z).shape == (len(Z), 1)
    assert one.get_feature_names_out().shape == (1,)
    assert len(one.function_) == 3


def test_second_order_errors(wine):
    """A rough solution gives nearly the exact scatter between classes: no small R is lost."""
    X, y, _ = wine
    options = {"kernel": RBF(0.05), "shrinkage": 1e-3}
    exact = KernelDiscriminant(**options).fit(X, y)
    rough = KernelDiscriminant(**options, form="iterative", tol=1e-2).fit(X, y)
    assert_allclose(rough.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=5e-3)


def test_shrinkage_is_chosen_on_a_sample(wine, monkeypatch):
    X, y, Z = wine
    primal, iterative = both(wine, RBF(0.05), "auto")
    assert iterative.shrinkage_ == primal.shrinkage_
    assert iterative.temperature_ == primal.temperature_
    assert iterative.n_rows_for_shrinkage_ == len(X)
    monkeypatch.setattr(discriminant, "_ROWS_FOR_SHRINKAGE", 40)
    sampled = KernelDiscriminant(kernel=RBF(0.05), form="iterative").fit(X, y)
    assert sampled.n_rows_for_shrinkage_ == 40
    assert (sampled.predict(Z) == primal.predict(Z)).mean() > 0.95


def test_any_array_namespace_and_precision(wine, there):
    X, y, Z = wine
    want = KernelDiscriminant(kernel=RBF(0.05), shrinkage=0.1).fit(X, y).transform(Z)
    model = KernelDiscriminant(kernel=RBF(0.05), shrinkage=0.1, form="iterative", tol=1e-6)
    assert_allclose(there(model).fit(X, y).transform(Z), want, atol=1e-4 * np.abs(want).max())
    single = model.fit(X.astype(np.float32), y).transform(Z.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, want, atol=1e-3 * np.abs(want).max())


def test_a_gram_matrix(wine):
    X, y, Z = wine
    kernel = RBF(0.05)
    direct = KernelDiscriminant(kernel=kernel, form="iterative").fit(X, y)
    given = KernelDiscriminant(kernel=Precomputed(), form="iterative").fit(kernel(X), y)
    assert given.shrinkage_ == direct.shrinkage_
    assert_allclose(given.transform(kernel(Z, X)), direct.transform(Z), atol=1e-2)


def test_a_model_travels(wine, tmp_path):
    X, y, Z = wine
    model = KernelDiscriminant(kernel=RBF(0.05), form="iterative").fit(X, y)
    save(model, tmp_path / "model.mercer")
    for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.mercer")):
        assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))
        assert again.history_ == model.history_


def test_what_makes_no_sense_is_refused(wine):
    X, y, _ = wine
    with pytest.raises(ValueError, match="form must be"):
        KernelDiscriminant(form="dual").fit(X, y)
    with pytest.raises(ValueError, match="shrinkage > 0"):
        KernelDiscriminant(shrinkage=0, form="iterative").fit(X, y)
    given = KernelMap("rbf", append_residual=True)
    with pytest.raises(ValueError, match="append_residual"):
        KernelDiscriminant(kernel=given, form="iterative").fit(X, y)
