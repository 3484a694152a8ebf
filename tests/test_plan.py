"""A plan is what happens: "auto" takes the first way of its table."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import (
    RBF,
    Chunks,
    FromFunction,
    KernelDiscriminant,
    KernelLogistic,
    KernelMap,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
    KernelSVC,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    plan,
)
from mercer.engine.memory import MemoryLimitError
from mercer.rows import Training
from mercer.solve import CannotSolve, Given, LeaveOneOut, RidgeProblem, auto, solve_ridge
from mercer.solve.dual import Direct

KERNELS = [RBF(0.1), RBF(20.0), Matern(0.5), Linear(), Polynomial(2), RBF(1.0) + Linear()]


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n", [60, 700])
@pytest.mark.parametrize("d", [1, 6])
@pytest.mark.parametrize("alpha", [1e-9, 0.1])
def test_the_fit_does_what_the_plan_said(kernel, n, d, alpha):
    X, y = data(n, d)
    model = KernelRidge(alpha, kernel)
    assert model.fit(X, y).form_ == plan(model, X, y).choice == plan(model, X).choice


@pytest.mark.parametrize("alpha", [Given(np.array([1e-9])), Given(np.array([10.0])), LeaveOneOut()])
@pytest.mark.parametrize("exact", [True, False])
def test_a_factorisation_that_is_over_first_is_the_cheapest(alpha, exact, monkeypatch):
    asked = []
    monkeypatch.setattr(
        auto, "offered", lambda problem, given=auto.offered: asked.append(1) or given(problem)
    )
    for n in (1, 5, 60, 400, 780, 840):
        X, y = data(n, 3)
        for kernel in (RBF(20.0), Linear(), FromFunction(np.dot)):
            training = Training.of(kernel, X)
            problem = RidgeProblem(training, y[:, None], alpha, intercept=True, exact=exact)
            asked.clear()
            found = next(auto._in_turn(problem), None)
            alone = not asked
            best, way = auto.offered(problem)[0]
            assert (found is None) == (way.refusal is not None)
            assert found is None or found.name == best.name
            if n <= 60 and isinstance(kernel, RBF):
                assert alone


def test_the_others_are_asked_where_the_factorisation_fails(monkeypatch):
    X, y = data(60, 3)
    problem = RidgeProblem(Training.of(RBF(1.0), X), y[:, None], Given(np.array([0.1])))
    turns = [solver.name for solver in auto._in_turn(problem)]
    assert turns[0] == "direct"
    assert sorted(turns) == ["direct", "iterative", "primal"]

    def fails(self, problem):
        raise CannotSolve("not today")

    monkeypatch.setattr(Direct, "solve", fails)
    assert solve_ridge(problem).solver == turns[1]


@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(1.5), Linear()], ids=repr)
@pytest.mark.parametrize("limit", ["100kB", "1MB", "3MB", "20MB"])
def test_memory_limits_count(kernel, limit):
    X, y = data(500, 3)
    model = KernelRidge(0.1, kernel, memory_limit=limit)
    planned = plan(model, X, y)
    if planned.ways[0].refusal is not None:
        with pytest.raises(MemoryLimitError, match=r"no solver.* pass kernel=KernelMap\(kernel"):
            model.fit(X, y)
        return
    assert model.fit(X, y).form_ == planned.choice
    assert planned.ways[0].bytes <= planned.limit


@pytest.mark.parametrize(("n", "limit"), [(300, None), (1500, "40MB")])
def test_the_last_fit_of_a_learned_model_is_planned(n, limit):
    X, y = data(n, 4)
    model = KernelRegressor(n_rounds=1, stack=False, memory_limit=limit)
    planned, again = plan(model, X), plan(model, (n, 4))
    # Free memory, which is the limit where none is given, changes from one call to the next.
    assert str(planned).partition("memory:")[2] == str(again).partition("memory:")[2]
    assert {"dual": "direct"}.get(planned.choice, planned.choice) == model.fit(X, y).solver_
    model.set_params(solver="landmarks")
    assert [way.name for way in plan(model, X).ways] == ["landmarks"]


@pytest.mark.parametrize("intercept", [False, True])
def test_weights_several_targets_and_leave_one_out(intercept):
    X, y = data(300, 3)
    Y, w = np.column_stack([y, y**2]), np.random.default_rng(0).uniform(size=300)
    for model in (
        KernelRidge([0.1, 1.0], RBF(1.0), fit_intercept=intercept),
        KernelRidgeCV([0.1, 1.0], Matern(1.5), fit_intercept=intercept),
    ):
        assert model.fit(X, Y, w).form_ == plan(model, X, Y, w).choice


@pytest.mark.parametrize("limit", ["25MB", "60MB", "110MB", "150MB"])
def test_a_penalty_is_chosen_on_a_sample_where_the_errors_of_all_rows_do_not_fit(limit):
    # Nearly of full rank: neither the kernel matrix nor coordinates of all rows fit 110 MB.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1600, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=1600)
    model = KernelRidgeCV(np.logspace(-2, 1, 4), RBF(1.0), memory_limit=limit)
    planned = plan(model, X, y)
    assert planned.choice == ("dual" if limit == "150MB" else "iterative")
    assert model.fit(X, y).form_ == planned.choice


def test_sources(monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 50)
    X, y = data(300, 2)
    rows = Chunks(lambda: (X[a : a + 70] for a in range(0, 300, 70)))
    model = KernelRidge(0.1, RBF(1.0))
    assert model.fit(rows, y).form_ == plan(model, rows, y).choice == "primal"
    da = pytest.importorskip("dask.array", reason="pip install mercer[dask]")
    model.fit(da.from_array(X, chunks=(100, 2)), y)
    assert model.form_ == plan(model, da.from_array(X, chunks=(100, 2)), y).choice == "primal"


def test_a_map_of_rows_in_pieces_passes_over_them(monkeypatch):
    """The rows were gathered, and planned for as an array is."""
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 150)
    X, y = data(300, 2)
    rows = Chunks(lambda: (X[a : a + 70] for a in range(0, 300, 70)))
    planned = plan(KernelMap(RBF(1.0)), rows)
    assert planned.choice == "streamed"
    assert planned.rows == 300
    assert str(planned).count("are passed over") == 2
    few = Chunks(lambda: (X[a : a + 70] for a in range(0, 140, 70)))
    assert plan(KernelMap(RBF(1.0)), few).choice == "stored"
    for basis in ("closed", "auto"):
        with pytest.raises(ValueError, match="what landmarks cost"):
            plan(KernelMap(Linear(), basis=basis), rows)
    text = str(plan(KernelRidge(0.1, RBF(1.0)), rows, y))
    assert "0 rows" not in text
    assert "the only one that passes over rows" in text


def test_devices(there):
    X, y = data(200, 3)
    model = KernelRidge(0.1, Matern(1.5))
    assert there(KernelRidge(0.1, Matern(1.5))).fit(X, y).form_ == plan(model, X, y).choice


def test_every_way_says_its_cost_or_its_reason():
    X, y = data(300, 3)
    for kernel in (RBF(1.0), Linear(), FromFunction(lambda a, b: float(a @ b))):
        planned = plan(KernelRidge(0.1, kernel), X, y)
        assert sorted(way.name for way in planned.ways) == [
            "dual",
            "fourier",
            "iterative",
            "landmarks",
            "mixed",
            "primal",
        ]
        for way in planned.ways:
            assert (way.refusal is None) == (way.seconds is not None and way.seconds > 0)
        text = str(planned)
        assert text.count("->") == 1
        assert all(way.name in text for way in planned.ways)
    planned = plan(KernelRidge(0.1, Precomputed()), RBF(1.0)(X), y)
    assert KernelRidge(0.1, Precomputed()).fit(RBF(1.0)(X), y).form_ == planned.choice
    for intercept in (False, True):  # the same reason: landmarks stand for all rows
        exact = plan(KernelRidge(0.1, RBF(1.0), fit_intercept=intercept), X, y)
        assert [way.refusal for way in exact.ways if way.name == "landmarks"] == ["it is not exact"]


def test_a_form_that_is_asked_for_and_a_given_map():
    X, y = data(200, 3)
    asked = plan(KernelRidge(0.1, RBF(1.0), form="iterative"), X, y)
    assert [way.name for way in asked.ways] == ["iterative"]
    refused = plan(KernelRidge(0.0, RBF(1.0), form="iterative"), X, y)
    with pytest.raises(ValueError, match=r"every way to fit refuses(.|\n)*alpha > 0"):
        _ = refused.choice
    model = KernelRidge(0.1, KernelMap(RBF(1.0), max_rank=20))
    assert model.fit(X, y).form_ == plan(model, X, y).choice == "primal"


def test_the_map_has_a_plan_too():
    assert plan(KernelMap(RBF(1.0)), (500, 2)).choice == "stored"
    assert plan(KernelMap(RBF(1.0), memory_limit="2MB"), (500, 2)).choice == "partial"
    for basis, kernel in (("fourier", RBF(1.0)), ("closed", Linear()), ("auto", Linear())):
        with pytest.raises(ValueError, match="what landmarks cost"):
            plan(KernelMap(kernel, basis=basis), (500, 2))
    with pytest.raises(ValueError, match="what landmarks cost"):
        plan(KernelRidge(1.0, KernelMap(RBF(1.0), basis="fourier")), (500, 2))
    assert plan(KernelMap(RBF(1.0), basis="auto"), (500, 2)).choice == "stored"
    with pytest.raises(TypeError, match="plan takes KernelRidge"):
        plan(KernelDiscriminant(), (500, 2))
    with pytest.raises(ValueError, match="shape of X"):
        plan(KernelMap(), (500, 0))
    with pytest.raises(ValueError, match="too many to draw"):
        plan(KernelMap(), (10**9, 2))


def test_a_model_keeps_what_prediction_needs():
    """Primal factors, r x r, made it 4.5 MB; what variances need is computed again."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(1500, 3)), rng.normal(size=(20, 3))
    y = rng.normal(size=1500)
    model = KernelRidge(0.1, RBF(0.1)).fit(X, y)
    small = pickle.dumps(model)
    assert len(small) < 250_000
    value, std = model.predict(Z, return_std=True)
    assert len(pickle.dumps(model)) == len(small)
    again = pickle.loads(small).predict(Z, return_std=True)
    assert_allclose(again[0], value, rtol=1e-12)
    assert_allclose(again[1], std, rtol=1e-6)
    primal = KernelRidge(0.1, KernelMap(RBF(0.1))).fit(X, y)
    assert_allclose(primal.predict(Z, return_std=True)[1], std, atol=1e-6)
    r = primal.kernel_map_.rank_
    assert len(pickle.dumps(primal)) < 8 * (r * r + 10 * len(X))  # the map's own factor alone


def test_a_penalty_that_needs_no_landmark_has_a_cost():
    """Beside a huge alpha every eigenvalue is small: a division by no landmarks failed."""
    found = plan(KernelRidge(1e12, RBF(0.3)), (1500, 2))
    costs = {way.name: way.seconds for way in found.ways if way.refusal is None}
    assert 0 < costs["iterative"] < 1


# --- machines -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [RBF(0.1), RBF(20.0), Linear()], ids=repr)
@pytest.mark.parametrize("n", [60, 1100])
def test_logistic_regression_does_what_the_plan_said(kernel, n):
    X, y = data(n, 3)
    model = KernelLogistic(1.0, kernel, tol=0.1)
    y = y > 0.5
    planned = plan(model, X, y)
    assert not hasattr(model, "classes_")
    assert model.fit(X, y).solver_ == planned.choice


@pytest.mark.parametrize("limit", [None, "6MB"])
def test_a_machine_does_what_the_plan_said(limit):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 2)), rng.integers(2, size=1500)
    model = KernelSVC(1.0, RBF(1.0), memory_limit=limit)
    planned = plan(model, X, y)
    assert planned.choice == ("dual" if limit is None else "landmarks")
    assert model.fit(X, y).solver_ == planned.choice
    if limit:
        assert "kernel values of the rows near the margin" in str(planned)


def test_coordinates_of_a_map_have_two_ways():
    """Noise makes many support vectors: then coordinates are cheaper."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 2)), rng.integers(2, size=1500)
    planned = plan(KernelSVC(1.0, KernelMap(Linear())), X, y)
    assert planned.choice == "coordinates"


def test_a_plan_of_a_machine_needs_classes():
    with pytest.raises(ValueError, match="y must be passed"):
        plan(KernelSVC(), (100, 2))
