"""KernelRidge(form="iterative") against the direct forms, and what it says of its own error."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import RBF, FromFunction, KernelMap, KernelRidge, KernelRidgeCV, Matern, Precomputed
from mercer.engine.memory import MemoryLimitError
from mercer.solve import auto, iterative
from mercer.solve.dual import Direct

KERNEL = Matern(1.5, 2.0)


@pytest.fixture
def data(rng):
    X, Z = rng.normal(size=(250, 4)), rng.normal(size=(40, 4))
    return X, np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=250), Z


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.01, [0.005, 0.5]], ids=str)
def test_equals_the_dual_form_within_its_bound(data, alpha, weighted, rng, there):
    X, y, Z = data
    Y = np.column_stack([y, y**2])
    weights = rng.uniform(size=250) * (rng.uniform(size=250) > 0.2) if weighted else None
    iterative = there(KernelRidge(alpha, KERNEL, form="iterative")).fit(X, Y, weights)
    dual = KernelRidge(alpha, KERNEL, form="dual").fit(X, Y, weights)
    difference = np.abs(iterative.predict(Z) - dual.predict(Z))
    bound = iterative.error_bound(Z)
    assert bound.shape == (40, 2)
    assert np.all(difference <= bound)
    assert np.all(bound <= 0.01)
    scale = np.abs(dual.dual_coef_).max()
    assert_allclose(iterative.dual_coef_, dual.dual_coef_, atol=1e-2 * scale)


def test_single_precision_is_certified_too(data):
    X, y, Z = data
    X32, Z32 = X.astype(np.float32), Z.astype(np.float32)
    iterative = KernelRidge(1e-3, KERNEL, form="iterative").fit(X32, y)
    dual = KernelRidge(1e-3, KERNEL, form="dual").fit(X32.astype(float), y)
    difference = np.abs(iterative.predict(Z32) - dual.predict(Z32.astype(float)))
    assert np.all(difference <= iterative.error_bound(Z32))


def test_attributes_tell_how_it_went(data):
    X, y, _ = data
    given = KernelMap(KERNEL, max_rank=30, pivots="random", random_state=0)
    model = KernelRidge(0.01, given, form="iterative", tol=1e-6).fit(X, y)
    assert model.form_ == "iterative"
    assert model.preconditioner_rank_ == 30
    assert model.converged_
    assert model.n_iter_ == model.history_[-1].products
    assert model.history_[-1].bounds == tuple(model.error_norms_)
    coarse = clone(model).set_params(tol=1e-2).fit(X, y)
    assert coarse.n_iter_ < model.n_iter_
    assert coarse.error_norms_ > model.error_norms_


def test_standard_deviations(data, rng):
    X, y, Z = data
    weights = rng.uniform(0.5, 2.0, size=250)
    iterative = KernelRidge(0.1, KERNEL, form="iterative", tol=1e-5).fit(X, y, weights)
    dual = KernelRidge(0.1, KERNEL, form="dual").fit(X, y, weights)
    exact = dual.predict(Z, return_std=True)[1]
    assert_allclose(iterative.predict(Z, return_std=True)[1], exact, atol=1e-4)


def test_standard_deviations_of_many_points_are_upper_values(data, monkeypatch):
    X, y, Z = data
    monkeypatch.setattr("mercer.solve.dual.WITNESSES", 100)
    many = np.concatenate([Z, Z + 0.1])
    iterative = KernelRidge(0.1, KERNEL, form="iterative").fit(X, y)
    with pytest.warns(UserWarning, match="upper values"):
        _, upper = iterative.predict(many, return_std=True)
    exact = KernelRidge(0.1, KERNEL, form="dual").fit(X, y).predict(many, return_std=True)[1]
    assert np.all(upper >= exact - 1e-9)
    assert upper.mean() <= 3 * exact.mean()


def test_auto_takes_it_where_the_matrix_does_not_fit(data):
    X, y, _ = data
    assert KernelRidge(0.01, KERNEL).fit(X, y).form_ == "dual"
    tight = {"memory_limit": 8 * 250 * 250}
    model = KernelRidge(0.01, KERNEL, **tight).fit(X, y)
    assert model.form_ == "iterative"
    with pytest.raises(MemoryLimitError):
        KernelRidge(0.0, KERNEL, **tight).fit(X, y)
    assert KernelRidge(0.01, RBF(1e-3), **tight).fit(X[:, :1], y).form_ == "primal"  # low rank
    assert KernelRidge(0.01, KernelMap(KERNEL)).fit(X, y).form_ == "primal"


def test_alpha_is_chosen_on_a_sample(data, monkeypatch):
    X, y, _ = data
    alphas = [1e-5, 1e-2, 10.0]
    model = KernelRidgeCV(alphas, KERNEL, form="iterative").fit(X, y)
    dual = KernelRidgeCV(alphas, KERNEL, form="dual").fit(X, y)
    assert model.alpha_ == dual.alpha_
    assert model.n_rows_for_alpha_ == 250
    assert_allclose(model.cv_errors_, dual.cv_errors_, rtol=1e-6)
    scaled = KernelRidgeCV(alphas, 2 * Precomputed(), form="iterative").fit(KERNEL(X), y)
    twice = KernelRidgeCV(alphas, 2 * KERNEL, form="dual").fit(X, y)
    assert_allclose(scaled.cv_errors_, twice.cv_errors_, rtol=1e-6)
    monkeypatch.setattr("mercer.solve.ridge_path.ROWS_FOR_ALPHA", 120)
    sampled = KernelRidgeCV(alphas, KERNEL, form="iterative").fit(X, y, np.ones(250))
    assert sampled.n_rows_for_alpha_ == 120
    assert sampled.error_bound(X).shape == (250,)
    assert_allclose(sampled.alphas_, sampled.alpha_)


def test_precomputed_and_functions(data):
    X, y, Z = data
    K = KERNEL(X)
    model = KernelRidge(0.1, Precomputed(), form="iterative").fit(K, y)
    want = KernelRidge(0.1, KERNEL, form="dual").fit(X, y).predict(Z)
    bound = model.error_bound(KERNEL(Z, X), diag=np.ones(40))
    assert np.all(np.abs(model.predict(KERNEL(Z, X)) - want) <= bound)
    with pytest.raises(ValueError, match="diag="):
        model.error_bound(KERNEL(Z, X))
    function = FromFunction(lambda x, z: float(np.exp(-np.abs(x - z).sum())))
    small = KernelRidge(0.1, function, form="iterative").fit(X[:60], y[:60])
    direct = KernelRidge(0.1, function, form="dual").fit(X[:60], y[:60])
    assert np.all(np.abs(small.predict(Z) - direct.predict(Z)) <= small.error_bound(Z))


def test_a_model_travels(data):
    X, y, Z = data
    model = KernelRidge(0.1, KERNEL, form="iterative").fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(Z), model.predict(Z))
    assert np.array_equal(again.error_bound(Z), model.error_bound(Z))
    assert_allclose(model.function_(Z), model.predict(Z), rtol=1e-10)


def test_an_interruption_leaves_the_model_as_it_was(data, monkeypatch):
    X, y, Z = data
    model = KernelRidge(0.1, KERNEL, form="iterative").fit(X, y)
    before = model.predict(Z)
    from mercer.solve import system

    products = system.System.times

    def interrupted(self, product, V):
        self.count = getattr(self, "count", 0) + 1
        if self.count == 4:
            raise KeyboardInterrupt
        return products(self, product, V)

    monkeypatch.setattr(system.System, "times", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, 2 * y)
    assert np.array_equal(model.predict(Z), before)
    partial = clone(model).set_params(keep_partial=True, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        partial.fit(X, y)
    assert not partial.converged_
    want = KernelRidge(0.1, KERNEL, form="dual").fit(X, y).predict(Z)
    assert np.all(np.abs(partial.predict(Z) - want) <= partial.error_bound(Z))


def test_a_given_map_chooses_the_landmarks(data):
    X, y, _ = data

    def rank(**options):
        given = KernelMap(KERNEL, random_state=0, **options)
        return KernelRidge(0.1, given, form="iterative").fit(X, y).preconditioner_rank_

    assert rank(max_rank=7) == 7
    assert 7 < rank(tol=0.5) < rank(tol=0.2) < rank()
    assert rank(tol=0.2, max_rank=7) == 7
    assert rank(memory_limit="100kB") < rank()
    assert rank(basis="auto") == rank()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": "eigen"}, r"KernelMap\(basis='eigen'\) would have no effect.*form='primal'"),
        ({"basis": "closed"}, "basis='closed'"),
        ({"basis": "fourier", "box": [(-9, 9)] * 4}, "basis='fourier'"),
        ({"center": True, "append_residual": True}, "center=True, append_residual=True"),
        ({"indefinite": "clip"}, "indefinite='clip'"),
        ({"pivots": "best"}, "pivots must be one of"),
        ({"max_rank": 0}, "max_rank must be a positive integer"),
        ({"tol": 2.0}, "tol must be a number from 0 to below 1"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_options_of_a_map_that_would_have_no_effect_are_refused(options, message, data):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        KernelRidge(1.0, KernelMap(KERNEL, **options), form="iterative").fit(X, y)


def test_what_makes_no_sense_is_refused(data, monkeypatch):
    X, y, _ = data
    with pytest.raises(ValueError, match="alpha > 0"):
        KernelRidge(0.0, KERNEL, form="iterative").fit(X, y)
    dask_array = pytest.importorskip("dask.array", reason="rows that are not held in memory")
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 50)
    rows = dask_array.from_array(X, chunks=(100, 4))
    with pytest.raises(ValueError, match=r"needs all rows at once.*form='iterative'"):
        KernelRidge(1.0, KERNEL, form="dual").fit(rows, y)


@pytest.fixture
def quick(monkeypatch):
    """Iterations that compete with a factorisation, whatever they would cost."""
    monkeypatch.setattr(auto, "_COMPETING", (iterative.Iterative(quick=True), Direct()))
    monkeypatch.setattr(auto, "QUICKEST_START", 0.0)
    monkeypatch.setattr(iterative.Iterative, "cost", lambda self, problem: iterative.Cost(0.0, 0))


def test_auto_iterates_where_that_is_faster_than_a_factorisation(quick, rng):
    X, Z = rng.normal(size=(300, 4)), rng.normal(size=(50, 4))
    y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
    weights = rng.uniform(0.0, 2.0, size=300) * (rng.random(300) < 0.9)
    for w in (None, weights):
        dual = KernelRidge(0.1, RBF(0.5), form="dual").fit(X, y, w)
        auto = KernelRidge(0.1, RBF(0.5)).fit(X, y, w)
        assert auto.form_ == "iterative"
        assert 1 < auto.n_iter_ <= iterative.QUICK_PRODUCTS
        bound = auto.error_bound(Z)
        assert np.all(np.abs(auto.predict(Z) - dual.predict(Z)) <= bound + 1e-12)
        assert bound.max() <= 1e-7 * np.abs(y).max() * 300
        for mine, theirs in zip(auto.predict(Z, return_std=True), dual.predict(Z, return_std=True)):
            assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)


def test_auto_factors_where_iterations_would_be_slow(quick, monkeypatch, rng):
    monkeypatch.setattr(iterative, "JUDGED_AFTER", 3)
    monkeypatch.setattr(iterative, "QUICK_PRODUCTS", 3)
    X = rng.normal(size=(300, 4))
    model = KernelRidge(1e-4, Matern(0.5, 1.0)).fit(X, X[:, 0])
    assert (model.form_, model.n_iter_) == ("dual", 1)
    exact = KernelRidge(1e-4, Matern(0.5, 1.0), form="dual").fit(X, X[:, 0])
    assert_array_equal(model.dual_coef_, exact.dual_coef_)


def test_upper_values_know_the_weights(data, rng):
    """With all rows as witnesses they are the exact ones."""
    X, y, Z = data
    weights = rng.uniform(0.05, 0.5, size=len(X))
    many = np.concatenate([Z, Z + 0.1])
    iterative = KernelRidge(0.1, KERNEL, form="iterative").fit(X, y, weights)
    with pytest.warns(UserWarning, match="upper values"):
        _, upper = iterative.predict(many, return_std=True)
    exact = KernelRidge(0.1, KERNEL, form="dual").fit(X, y, weights)
    assert_allclose(upper, exact.predict(many, return_std=True)[1], rtol=1e-8)
