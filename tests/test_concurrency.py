"""The same seed gives the same bytes; threads, processes and interruptions disturb nothing."""

import multiprocessing
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from mercer import (
    RBF,
    ClassicalMDS,
    FromFunction,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRidge,
    KernelRidgeCV,
    Laplacian,
    Matern,
    Polynomial,
)

MODELS = [
    KernelMap(RBF(0.2)),
    KernelMap(RBF(0.2), basis="eigen", center=True, append_residual=True),
    KernelMap(Laplacian(0.3), max_rank=20, pivots="random", random_state=7),
    KernelMap(Matern(1.5), max_rank=20, pivots="uniform", random_state=7),
    KernelPCA(3, RBF(0.2)),
    KernelPCA(3, RBF(0.2), solver="krylov", random_state=7),
    KernelPCAL1(2, Polynomial(2), random_state=7),
    KernelDiscriminant(kernel=RBF(0.2)),
    KernelRidge(0.1, RBF(0.2), form="dual"),
    KernelRidge(0.1, RBF(0.2), form="primal"),
    KernelRidgeCV(kernel=RBF(0.2)),
    ClassicalMDS(2),
    Kernelized(LogisticRegression(), RBF(0.2)),
]
IDS = [repr(m)[:70] for m in MODELS]


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Two test processes with all threads each wait for one another more than they work."""
    with threadpool_limits(1, "blas"):
        yield


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 4))
    return X, (X[:, 0] > 0).astype(int), rng.normal(size=(600, 4))


def answer(model, Z):
    return model.predict(Z) if hasattr(model, "predict") else model.transform(Z)


def fitted(model, data):
    return clone(model).fit(data[0], data[1])


# --- the same bytes -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_two_fits_give_the_same_bytes(model, data):
    first, second = (answer(fitted(model, data), data[2]) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("model", [m for m in MODELS if "n_jobs" in m.get_params()], ids=repr)
def test_any_number_of_jobs_gives_the_same_bytes(model, data):
    """Tiles are cut by sizes alone, and BLAS runs on one thread inside them."""
    answers = [
        answer(fitted(clone(model).set_params(n_jobs=n), data), data[2]).tobytes()
        for n in (1, 2, 3, 8)
    ]
    assert len(set(answers)) == 1


def test_no_global_state_is_left(data):
    """Random numbers, NumPy's error handling and BLAS threads are the caller's."""
    from threadpoolctl import threadpool_info

    np.random.seed(0)  # noqa: NPY002  the global state itself is looked at
    before = np.random.get_state()[1].copy(), np.geterr(), threadpool_info()  # noqa: NPY002
    for model in MODELS:
        if "random_state" not in model.get_params() or model.get_params()["random_state"]:
            answer(fitted(model, data), data[2])
    after = np.random.get_state()[1], np.geterr(), threadpool_info()  # noqa: NPY002
    assert np.array_equal(before[0], after[0])
    assert before[1:] == after[1:]


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_eight_threads_get_the_same_answers(model, data):
    model = fitted(model, data)
    pieces = [data[2][i : i + 150] for i in range(0, 600, 25)]
    alone = [answer(model, Z) for Z in pieces]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda Z: answer(model, Z), pieces))
    assert [a.tobytes() for a in alone] == [b.tobytes() for b in together]


def test_eight_threads_with_threads_inside(data):
    """BLAS with threads of its own: it may cut products another way, which is rounding."""
    with threadpool_limits(2, "blas"):
        model = KernelMap(RBF(0.2), max_rank=100).fit(data[0])
        pieces = [data[2][i : i + 150] for i in range(0, 450, 25)]
        alone = [answer(model, Z) for Z in pieces]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(model.transform, pieces))
    for a, b in zip(alone, together):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


def test_threads_may_fit_at_once(data):
    with ThreadPoolExecutor(4) as pool:
        maps = list(pool.map(lambda g: KernelMap(RBF(g)).fit(data[0]), [0.1, 0.2, 0.3, 0.1]))
    assert [m.kernel_.gamma for m in maps] == [0.1, 0.2, 0.3, 0.1]
    assert np.array_equal(maps[0].landmark_indices_, maps[3].landmark_indices_)


# --- processes ------------------------------------------------------------------------------------


def fit_and_answer(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    return KernelMap(RBF(0.3)).fit_transform(X)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_both_kinds_work(method):
    """Also after threads and BLAS have been used in the parent."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    here = fit_and_answer(3)
    processes = 2 if method == "fork" else 1  # each that is spawned imports everything
    with multiprocessing.get_context(method).Pool(processes) as pool:
        there = pool.map_async(fit_and_answer, [3, 3]).get(timeout=120)
    for Phi in there:  # a new process has other BLAS threads: coordinates rotate by rounding
        np.testing.assert_allclose(Phi @ Phi.T, here @ here.T, rtol=0, atol=1e-8)


def test_fitted_models_travel_to_workers(data):
    model = fitted(MODELS[0], data)
    pieces = [data[2][:50], data[2][50:100]]
    there = joblib.Parallel(n_jobs=2)(joblib.delayed(model.transform)(Z) for Z in pieces)
    for Z, Phi in zip(pieces, there):
        P = model.transform(Z)
        np.testing.assert_allclose(Phi @ Phi.T, P @ P.T, rtol=0, atol=1e-8)


# --- interruptions --------------------------------------------------------------------------------


class Interrupted(BaseException):
    """What the alarm raises in the middle of a fit; as Ctrl-C, no error that code may handle."""


def interrupted_fit(model, X, y, seconds):
    """Fit until the alarm rings; whether it did."""

    def ring(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            model.fit(X, y)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        return True
    finally:
        signal.signal(signal.SIGALRM, before)
    return False


def is_fitted(model):
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


@pytest.mark.usefixtures("untraced")
# An alarm between open() and its `with` leaves a file to the garbage collector, which says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_an_interrupted_fit_leaves_the_model_as_it_was(model, data):
    X, y, Z = data
    started = time.perf_counter()
    whole = fitted(model, data)
    duration = time.perf_counter() - started
    rng, stopped = np.random.default_rng(0), 0
    for _ in range(4):
        moment = float(rng.uniform(0.02, 0.98)) * duration
        fresh, old = clone(model), clone(model).fit(X[:100], y[:100])
        before, after = answer(old, Z[:20]), answer(whole, Z[:20])
        if interrupted_fit(fresh, X, y, moment):
            stopped += 1
            # unfitted, or done when the alarm rang
            assert not is_fitted(fresh) or np.allclose(answer(fresh, Z[:20]), after)
        if interrupted_fit(old, X, y, moment):
            stopped += 1
            now = answer(old, Z[:20])
            same = np.shape(now) == np.shape(before) and np.array_equal(now, before)
            assert same or np.allclose(now, after)
        # and either can be fitted again
        np.testing.assert_allclose(
            answer(fresh.fit(X, y), Z[:20]), answer(whole, Z[:20]), rtol=1e-6, atol=1e-6
        )
    assert stopped > 0 or duration < 0.01


@pytest.mark.parametrize("step", range(1, 40, 3))
def test_a_fit_that_fails_at_any_kernel_value_changes_nothing(step):
    """The kernel itself raises, at its n-th call."""
    words = [f"word {i % 7}{'x' * i}" for i in range(12)]

    def common(a, b):
        return float(len(set(a) & set(b)))

    model = KernelMap(FromFunction(common)).fit(words)
    before = model.transform(words)
    calls = iter(range(step))

    def failing(a, b):
        if next(calls, None) is None:
            raise RuntimeError("the data source went away")
        return common(a, b)

    kept = dict(vars(model))
    model.kernel = FromFunction(failing)
    with pytest.raises(RuntimeError, match="went away"):
        model.fit(words)
    assert {**vars(model), "kernel": None} == {**kept, "kernel": None}
    assert np.array_equal(model.transform(words), before)


def test_importing_starts_no_thread_and_changes_nothing():
    """Nor does a fit on an array import what only other sources and pictures need."""
    code = """
import sys, threading, numpy as np, sklearn, scipy.linalg, warnings
before = threading.active_count(), np.geterr(), list(warnings.filters)
import mercer
assert before == (threading.active_count(), np.geterr(), list(warnings.filters))
heavy = {'torch', 'matplotlib', 'bokeh', 'dask', 'distributed', 'onnx'}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
X = np.random.default_rng(0).normal(size=(50, 2))
mercer.KernelRidge().fit(X, X[:, 0]).predict(X)
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
