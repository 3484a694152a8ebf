"""Form "fourier" against the dual form: the same coefficients and function, for every point."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import (
    RBF,
    Chunks,
    KernelMap,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    Matern,
    OnColumns,
    Periodic,
    load,
    save,
    to_onnx,
)
from mercer.solve import fourier_solver as fourier

N = 400


def uniform(rng, d):
    return rng.uniform(size=(N, d))


def clustered(rng, d):
    """Half of the rows crowd at one place, some of them twice."""
    X = rng.uniform(size=(N, d))
    X[: N // 2] = 0.3 + 1e-3 * rng.normal(size=(N // 2, d))
    X[:20] = X[20:40]
    return X


def far_away(rng, d):
    return 1e4 + rng.uniform(size=(N, d))


def targets(X):
    X = X - X.min(axis=0)
    rng = np.random.default_rng(1)
    return np.sin(5 * X[:, 0]) + X[:, -1] + 0.3 * rng.normal(size=len(X))


def places(X):
    """Inside, at the corners of the rows, in the margin, far outside."""
    low, high, rng = X.min(axis=0), X.max(axis=0), np.random.default_rng(2)
    inside = rng.uniform(low, high, size=(40, X.shape[1]))
    outside = rng.uniform(high + 0.1, high + 2, size=(5, X.shape[1]))
    return np.concatenate([inside, [low, high], [low - 0.01, high + 0.049], outside, [high + 1e3]])


CASES = [
    (RBF(20.0), 1, uniform, 1e-4),
    (RBF(20.0), 2, clustered, 1e-2),
    (RBF(1.0), 2, far_away, 1.0),
    (RBF(0.5), 3, clustered, 10.0),
    (Matern(1.5, 0.5), 1, clustered, 0.1),
    (Matern(2.5, 0.5), 1, far_away, 1e-2),
    (Matern(3.5, 2.0), 2, uniform, 10.0),
    (2.0 * RBF(0.5) + OnColumns(Periodic(1.0, 0.5), [0]), 2, uniform, 0.1),
]


@pytest.mark.parametrize(
    ("kernel", "d", "rows", "alpha"), CASES, ids=lambda v: getattr(v, "__name__", str(v))
)
def test_it_is_the_dual_solution(kernel, d, rows, alpha, recwarn):
    X = rows(np.random.default_rng(0), d)
    y, Z = targets(X), places(X)
    ours = KernelRidge(alpha, kernel, form="fourier").fit(X, y)
    exact = KernelRidge(alpha, kernel, form="dual").fit(X, y)
    scale = np.sqrt(np.mean(y**2))
    assert ours.form_ == "fourier"
    assert ours.converged_
    assert np.all(ours.residuals_ <= 1e-8)
    got, expected = ours.predict(Z), exact.predict(Z)
    assert_allclose(got, expected, atol=3e-8 * scale)
    # An error of the function is divided by alpha in the coefficients.
    assert_allclose(ours.dual_coef_, exact.dual_coef_, atol=1e-7 * scale / min(alpha, 1.0))
    # The function as a sum of kernels; its difference from the transforms is bounded for certain.
    apart = np.abs(ours.function_(Z) - got)
    assert np.all(apart <= ours.prediction_.difference() + 1e-12 * scale)
    assert np.all(np.abs(got - expected) <= ours.error_bound(Z) + 1e-9 * scale)
    assert not [w for w in recwarn if "residual" in str(w.message)]


@pytest.fixture(scope="module")
def X():
    return uniform(np.random.default_rng(0), 2)


@pytest.fixture(scope="module")
def y(X):
    return targets(X)


def test_weights_targets_and_uncertainty(X, y):
    T, alpha = np.column_stack([y, y**2, y]), [0.1, 1.0, 0.1]
    weights = np.random.default_rng(3).uniform(size=N)
    weights[:9] = 0.0
    Z, kernel = places(X), RBF(5.0)
    ours, exact = (
        KernelRidge(alpha, kernel, form=form).fit(X, T, weights) for form in ("fourier", "dual")
    )
    for got, expected in zip(ours.predict(Z, return_std=True), exact.predict(Z, return_std=True)):
        assert_allclose(got, expected, atol=1e-7)
    assert_allclose(ours.dual_coef_, exact.dual_coef_, atol=1e-6)
    assert ours.error_bound(Z).shape == (len(Z), 3)
    assert len(ours.function_) == 3
    many = np.concatenate([Z] * 12)  # more outside of the box than are worth a solve
    with pytest.warns(UserWarning, match="upper values"):
        std = ours.predict(many, return_std=True)[1][: len(Z)]
    assert np.all(std >= exact.predict(Z, return_std=True)[1] - 1e-7)


def test_uncertainty_by_iterations(X, y, monkeypatch):
    """As if there were too many coordinates for a direct solve."""
    monkeypatch.setattr("mercer.solve.fourier_map.DIRECT", 10)
    monkeypatch.setattr("mercer.solve.fourier_map.WRITTEN_OUT", 100)
    Z = places(X)
    ours = KernelRidge(0.1, RBF(5.0), form="fourier", tol=1e-8).fit(X, y)
    exact = KernelRidge(0.1, RBF(5.0), form="dual").fit(X, y)
    assert ours.n_iter_ > 3
    for got, expected in zip(ours.predict(Z, return_std=True), exact.predict(Z, return_std=True)):
        assert_allclose(got, expected, atol=1e-6)


def test_single_precision_saving_and_graphs(X, y, tmp_path):
    Z = places(X)
    single = KernelRidge(0.1, RBF(5.0), form="fourier").fit(X.astype(np.float32), y)
    model = KernelRidge(0.1, RBF(5.0), form="fourier").fit(X, y)
    assert_allclose(single.predict(Z), model.predict(Z), atol=1e-5)
    save(model, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    for a, b in zip(model.predict(Z, return_std=True), again.predict(Z, return_std=True)):
        assert_allclose(a, b, rtol=1e-12)
    pytest.importorskip("onnx", reason="pip install mercer[onnx]")
    runtime = pytest.importorskip("onnxruntime", reason="pip install mercer[onnx]")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    name = session.get_inputs()[0].name
    got = session.run(None, {name: Z.astype(session_dtype(session))})[0]
    assert_allclose(np.ravel(got), model.predict(Z), atol=1e-4)


def session_dtype(session):
    return np.float64 if "double" in session.get_inputs()[0].type else np.float32


def test_the_penalty_is_chosen_by_leave_one_out(X, y):
    alphas = [0.01, 0.1, 1.0, 10.0]
    ours, exact = (
        KernelRidgeCV(alphas, RBF(5.0), form=form).fit(X, y) for form in ("fourier", "dual")
    )
    assert ours.alpha_ == exact.alpha_
    assert_allclose(ours.cv_errors_, exact.cv_errors_, rtol=1e-6)
    assert_allclose(ours.predict(X), exact.predict(X), atol=1e-7)


# --- which form -----------------------------------------------------------------------------------


def form_of(model, X, y, monkeypatch, least=100):
    """What "auto" takes where transforms are thought to cost nothing."""
    monkeypatch.setattr(fourier, "_LEAST_ROWS", least)
    monkeypatch.setattr("mercer.solve.auto.QUICKEST_START", 0.0)
    monkeypatch.setattr(fourier.FourierSolver, "cost", lambda self, problem: fourier.Cost(0.0, 0))
    return model.fit(X, y).form_


def test_auto_takes_it_where_it_is_cheapest(X, y, monkeypatch):
    pytest.importorskip("finufft", reason="pip install mercer[fourier]")
    assert KernelRidge(1.0, RBF(5.0)).fit(X, y).form_ != "fourier"  # few rows
    for kernel, rows in ((RBF(5.0), X), (Matern(2.5, 0.5), X[:, :1])):
        assert form_of(KernelRidge(1.0, kernel), rows, y, monkeypatch) == "fourier"
    assert form_of(KernelRidge(1.0, Linear()), X, y, monkeypatch) == "primal"
    assert form_of(KernelRidge(0.0, RBF(5.0)), X, y, monkeypatch) != "fourier"
    # Leave-one-out errors of all rows are at hand here.
    assert form_of(KernelRidgeCV([1.0], RBF(5.0)), X, y, monkeypatch) != "fourier"
    five = np.random.default_rng(0).normal(size=(N, 5))
    assert form_of(KernelRidge(1.0, RBF(0.1)), five, y, monkeypatch) != "fourier"


def test_auto_on_many_rows():
    """As a user would: nothing is asked for, and each residual has eight digits."""
    pytest.importorskip("finufft", reason="pip install mercer[fourier]")
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(6000, 2))
    y, kernel, alpha = targets(X), RBF(100.0), 0.1
    model = KernelRidge(alpha, kernel).fit(X.tolist(), y)
    assert model.form_ == "fourier"
    some = rng.choice(len(X), 200, replace=False)
    f = kernel(X[some], X) @ model.dual_coef_
    scale = np.sqrt(np.mean(y**2))
    assert_allclose(y[some] - f, alpha * model.dual_coef_[some], atol=3e-8 * scale)
    assert_allclose(model.predict(X[some]), f, atol=3e-8 * scale)


def test_auto_falls_back_where_the_residual_is_too_large(X, y, monkeypatch):
    pytest.importorskip("finufft", reason="pip install mercer[fourier]")
    monkeypatch.setattr("mercer.solve.fourier_solver.REFINEMENTS", 0)
    monkeypatch.setattr("mercer.space.fourier_grid._TOLERANCES", (1e-3,))
    monkeypatch.setattr("mercer.space.fourier_grid._HOPE", 1e30)
    model = KernelRidge(1.0, RBF(5.0))
    assert form_of(model, X, y, monkeypatch) != "fourier"
    assert not hasattr(model, "residuals_")
    with pytest.warns(UserWarning, match="times the targets, more than"):
        asked = KernelRidge(1.0, RBF(5.0), form="fourier").fit(X, y)
    assert not asked.converged_


def test_auto_without_finufft(X, y, monkeypatch):
    monkeypatch.setattr(fourier.importlib.util, "find_spec", lambda name: None)
    assert form_of(KernelRidge(1.0, RBF(5.0)), X, y, monkeypatch) != "fourier"


def test_a_finer_map_is_tried(X, y, monkeypatch):
    """A plan that hopes for too much is corrected by what the rows show."""
    monkeypatch.setattr("mercer.space.fourier_grid._SAFETY", 1e4)
    model = KernelRidge(1.0, RBF(5.0), form="fourier").fit(X, y)
    assert model.converged_


def test_refusals(X, y):
    with pytest.raises(ValueError, match=r"has no Fourier series: .* are Constant, .*, RBF"):
        KernelRidge(1.0, Linear(), form="fourier").fit(X, y)
    with pytest.raises(ValueError, match="alpha > 0, got 0"):
        KernelRidge(0.0, RBF(5.0), form="fourier").fit(X, y)
    with pytest.raises(ValueError, match="has no use for a KernelMap"):
        KernelRidge(1.0, KernelMap(RBF(5.0)), form="fourier").fit(X, y)
    with pytest.raises(ValueError, match="too many frequencies"):
        KernelRidge(1e-9, Matern(1.5, 0.01), form="fourier").fit(X, y)


def test_rows_in_pieces_are_gathered(X, y):
    rows = Chunks(lambda: (X[a : a + 150] for a in range(0, N, 150)))
    here, there = (KernelRidge(0.1, RBF(5.0), form="fourier").fit(x, y) for x in (X, rows))
    assert there.form_ == "fourier"
    assert_allclose(here.predict(X), there.predict(X), atol=1e-9)


def test_the_intercept_of_large_targets_is_within_its_bound(rng):
    # Exact: constant targets are the intercept alone, whatever the kernel.
    X, weights = rng.normal(size=(26, 3)), 10 ** rng.uniform(-3, 3, size=26)
    model = KernelRidge(2.4e4, RBF(0.01), form="fourier", fit_intercept=True)
    model.fit(X, np.full(26, 5.5e10), sample_weight=weights)
    assert np.all(np.abs(model.predict(X) - 5.5e10) <= model.error_bound(X))
    assert model.converged_
