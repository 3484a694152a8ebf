"""Iterative ridge against Cholesky, and its bound against the true error."""

import warnings

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from mercer import RBF, FromFunction, Linear, Matern, Polynomial, Precomputed
from mercer.engine import memory
from mercer.engine.memory import MemoryLimitError
from mercer.engine.resources import Resources
from mercer.kernels.validity import NotPSDError
from mercer.solve import solve_iteratively
from mercer.solve.system import chosen_rank

N = 300
SMOOTH_AND_ROUGH = [RBF(0.1), Matern(0.5, 2.0), Matern(1.5, 2.0), Matern(2.5, 2.0)]
# Too little for a kernel matrix of 300 points, enough for a preconditioner of rank 100.
TIGHT = 8 * N * (2 * 100 + 140)


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, 4))


@pytest.fixture
def T(rng, X):
    return np.stack([np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=N), X[:, 0] ** 2], axis=1)


def exact(K, T, alphas, weights=None):
    """Cholesky, refined with residuals in extended precision: the slow, obvious solution."""
    K = np.asarray(K, np.longdouble)
    noise = np.ones(len(K)) if weights is None else 1 / weights
    columns = []
    for t, alpha in zip(np.asarray(T, float).T, alphas):
        A = K + alpha * np.diag(noise)
        factor = scipy.linalg.cho_factor(np.asarray(A, float))
        a = scipy.linalg.cho_solve(factor, t).astype(np.longdouble)
        for _ in range(4):
            a = a + scipy.linalg.cho_solve(factor, np.asarray(t - A @ a, float))
        columns.append(a)
    return np.stack(columns, axis=1)


def true_errors(K, a, want):
    """|f - f*| in the norm of the kernel's space, one per target."""
    d = a - want
    return np.sqrt(np.einsum("ij,ij->j", d, np.asarray(K, np.longdouble) @ d)).astype(float)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 0.1, 10.0])
@pytest.mark.parametrize("kernel", SMOOTH_AND_ROUGH, ids=repr)
@pytest.mark.parametrize("limit", [None, TIGHT], ids=["stored", "tiles"])
def test_the_bound_holds_and_is_what_was_asked_for(kernel, alpha, dtype, limit, X, T, rng):
    X = X.astype(dtype)
    double = X.astype(float)
    solution = solve_iteratively(
        kernel, X, T, [alpha] * 2, tol=1e-4, resources=Resources(limit), rank=100
    )
    K = kernel(double)
    want = exact(K, T, [alpha] * 2)
    errors = true_errors(K, solution.coef, want)
    assert np.all(errors <= solution.error_norms)
    assert solution.converged
    assert np.all(solution.error_norms <= 1e-4 * solution.norms)
    assert_allclose(solution.norms, true_errors(K, 0 * want, want), rtol=1e-3)
    # The promise for new points, far ones too.
    Z = np.concatenate([rng.normal(size=(500, 4)), 5 * rng.normal(size=(500, 4)), double])
    difference = np.abs(kernel(Z, double) @ solution.coef - kernel(Z, double) @ want)
    lengths = np.sqrt(kernel.diag(Z))[:, None]
    assert np.all(difference <= lengths * solution.error_norms)
    assert solution.way == ("stored" if limit is None else "tiles")


def test_the_bound_is_not_idle(X, T):
    """It would be easy to hold with a bound that says nothing."""
    kernel = Matern(1.5, 2.0)
    solution = solve_iteratively(kernel, X, T, [0.01] * 2, tol=1e-5, rank=200)
    K = kernel(X)
    errors = true_errors(K, solution.coef, exact(K, T, [0.01] * 2))
    assert np.all(solution.error_norms <= 20 * errors)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("alpha", [1e-12, 1e-9])
def test_what_is_certified_never_gets_worse(alpha, rng):
    """Where rounding ends the progress, a step that does not improve a target is not taken."""
    X = rng.normal(size=(300, 2))
    T = np.column_stack([np.sin(X[:, 0]), rng.normal(size=300), 1e-6 * X[:, 1]])
    solution = solve_iteratively(Matern(1.5), X, T, [alpha] * 3, tol=1e-13, rank=20, max_iter=80)
    certified = np.array([step.bounds for step in solution.history if step.certified])
    assert len(certified) > 1
    assert np.all(np.diff(certified, axis=0) <= 0)


def test_every_step_of_the_history_is_a_bound(X, T):
    kernel, seen = Matern(1.5, 2.0), []
    K = kernel(X)
    want = exact(K, T, [0.01] * 2)
    for most in (2, 3, 5, 8, 12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = solve_iteratively(kernel, X, T, [0.01] * 2, rank=50, max_iter=most)
        assert np.all(true_errors(K, solution.coef, want) <= solution.error_norms)
        assert solution.history[-1].certified
        assert solution.n_iter <= most
        seen.append(solution.error_norms.max())
    assert seen == sorted(seen, reverse=True)
    assert solution.history[0].products == 0
    assert solution.history[0].bounds > solution.history[-1].bounds


def test_refinement_reaches_what_single_precision_cannot(X, T):
    kernel = Matern(1.5, 2.0)
    solution = solve_iteratively(
        kernel, X, T, [1e-4] * 2, tol=1e-8, rank=100, resources=Resources(TIGHT)
    )
    K = kernel(X)
    want = exact(K, T, [1e-4] * 2)
    assert solution.converged
    assert np.all(true_errors(K, solution.coef, want) <= 1e-8 * solution.norms)
    assert sum(step.certified for step in solution.history) >= 3


def test_targets_have_penalties_of_their_own(X, T):
    kernel, alphas = Matern(2.5, 2.0), [1e-3, 1.0]
    solution = solve_iteratively(kernel, X, T, alphas, tol=1e-7)
    K = kernel(X)
    want = exact(K, T, alphas)
    assert np.all(true_errors(K, solution.coef, want) <= solution.error_norms)
    assert_allclose(K @ solution.coef, np.asarray(K @ want, float), atol=1e-5)


@pytest.mark.parametrize("limit", [None, TIGHT], ids=["stored", "tiles"])
def test_weights_are_repetitions(limit, X, T):
    kernel = Matern(1.5, 2.0)
    times = np.arange(N) % 3
    weighted = solve_iteratively(
        kernel, X, T, [0.1] * 2, times.astype(float), tol=1e-7, resources=Resources(limit), rank=90
    )
    repeated = np.repeat(np.arange(N), times)
    want = exact(kernel(X[repeated]), T[repeated], [0.1] * 2)
    difference = kernel(X) @ weighted.coef - kernel(X, X[repeated]) @ np.asarray(want, float)
    assert np.abs(difference).max() <= weighted.error_norms.max() + 1e-9
    assert np.all(weighted.coef[times == 0] == 0)


def test_any_array_namespace(X, T, there):
    kernel = Matern(1.5, 2.0)
    solution = there(solve_iteratively)(kernel, X, T, [0.1, 0.2], tol=1e-6, rank=80)
    want = exact(kernel(X), T, [0.1, 0.2])
    assert np.all(true_errors(kernel(X), solution.coef, want) <= solution.error_norms)


def test_a_function_of_objects(T):
    words = [f"{i:b}"[::-1] + "ab"[i % 2] for i in range(120)]
    kernel = FromFunction(lambda a, b: sum(x == y for x, y in zip(a, b)) / 8 + float(a == b))
    points = kernel.points(words)
    solution = solve_iteratively(
        kernel, points, T[:120], [0.5] * 2, resources=Resources("400kB"), rank=20
    )
    K = kernel(words)
    want = exact(K, T[:120], [0.5] * 2)
    assert solution.converged
    assert np.all(true_errors(K, solution.coef, want) <= solution.error_norms)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gram_matrix_mapped_from_a_file(dtype, tmp_path, X, T):
    K = RBF(0.1)(X).astype(dtype)
    K = (K + K.T) / 2
    np.save(tmp_path / "K.npy", K)
    mapped = np.load(tmp_path / "K.npy", mmap_mode="r")
    solution = solve_iteratively(Precomputed(), mapped, T, [0.1] * 2, rank=100)
    want = exact(K.astype(float), T, [0.1] * 2)
    assert solution.converged
    assert np.all(true_errors(K.astype(float), solution.coef, want) <= solution.error_norms)


def test_sparse_rows(X, T):
    sparse = scipy.sparse.csr_array(X * (np.abs(X) > 1))
    solution = solve_iteratively(
        RBF(0.1), sparse, T, [0.1] * 2, resources=Resources(TIGHT), rank=80
    )
    K = RBF(0.1)(sparse.toarray())
    want = exact(K, T, [0.1] * 2)
    assert np.all(true_errors(K, solution.coef, want) <= solution.error_norms)


@pytest.mark.parametrize(
    "kernel",
    [
        2.0 * RBF(0.1) * Matern(1.5, 3.0) + 0.5 * Polynomial(2, 0.1),
        Linear() + 1.0,
        Matern(1.7, 2.0),
        RBF([0.1, 0.2, 0.3, 0.4]),
    ],
    ids=repr,
)
def test_kernels_of_the_algebra(kernel, X, T):
    solution = solve_iteratively(kernel, X, T, [0.1] * 2, resources=Resources(TIGHT), rank=80)
    want = exact(kernel(X), T, [0.1] * 2)
    assert np.all(true_errors(kernel(X), solution.coef, want) <= solution.error_norms)
    assert solution.converged


def test_a_target_of_zeros_and_one_point(X):
    solution = solve_iteratively(RBF(0.1), X, np.zeros((N, 1)), [1.0])
    assert solution.converged
    assert not solution.coef.any()
    assert solution.error_norms[0] == 0
    one = solve_iteratively(RBF(0.1), X[:1], np.ones((1, 1)), [1.0])
    assert_allclose(one.coef, 0.5)


def test_repeated_points_and_a_constant_column(X, T):
    X = np.repeat(X[: N // 4], 4, axis=0)
    X[:, 2] = 7.0
    solution = solve_iteratively(RBF(0.1), X, T, [1e-3] * 2)
    want = exact(RBF(0.1)(X), T, [1e-3] * 2)
    assert np.all(true_errors(RBF(0.1)(X), solution.coef, want) <= solution.error_norms)


def test_a_solution_that_is_not_reached_says_how_far_it_is_and_what_helps(X, T):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=4 .* times what tol=1e-06 .*rank"):
        solution = solve_iteratively(
            Matern(0.5, 2.0), X, T, [1e-3] * 2, tol=1e-6, rank=10, max_iter=4
        )
    assert not solution.converged
    assert solution.n_iter == 4


def test_a_tolerance_below_rounding_ends_with_a_reason(X, T):
    with pytest.warns(ConvergenceWarning, match="rounding ended the progress"):
        solution = solve_iteratively(RBF(0.1), X, T, [1e-7] * 2, tol=1e-13)
    want = exact(RBF(0.1)(X), T, [1e-7] * 2)
    assert np.all(true_errors(RBF(0.1)(X), solution.coef, want) <= solution.error_norms)


def interrupts_after(products):
    def callback(step):
        if step.products >= products:
            raise KeyboardInterrupt

    return callback


def test_an_interruption_leaves_nothing_behind_unless_asked_to(X, T):
    options = {"rank": 20, "callback": interrupts_after(5), "tol": 1e-8}
    with pytest.raises(KeyboardInterrupt):
        solve_iteratively(Matern(0.5), X, T, [0.01] * 2, **options)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        kept = solve_iteratively(Matern(0.5), X, T, [0.01] * 2, keep_partial=True, **options)
    K = Matern(0.5)(X)
    assert np.all(true_errors(K, kept.coef, exact(K, T, [0.01] * 2)) <= kept.error_norms)
    assert kept.n_iter == 6
    assert kept.error_norms.max() < 0.5 * max(kept.history[0].bounds)


def test_a_callback_can_end_the_iterations(X, T):
    with pytest.warns(ConvergenceWarning, match="callback"):
        ended = solve_iteratively(
            Matern(0.5), X, T, [0.01] * 2, rank=20, tol=1e-8, callback=lambda step: True
        )
    assert ended.n_iter == 2


def test_the_progress_bar_shows_the_present_bound(X, T, capsys):
    solve_iteratively(Matern(0.5), X, T, [0.1] * 2, rank=20, resources=Resources(verbose=True))
    assert "bound=" in capsys.readouterr().err


def test_threads_do_not_change_a_bit(X, T):
    options = {"rank": 50, "tol": 1e-6}
    one, two = (
        solve_iteratively(Matern(1.5), X, T, [0.1] * 2, resources=Resources(TIGHT, jobs), **options)
        for jobs in (1, 2)
    )
    assert np.array_equal(one.coef, two.coef)


def test_what_is_not_a_kernel_is_refused(rng, T):
    A = rng.normal(size=(N, N))
    with pytest.raises(NotPSDError):
        solve_iteratively(Precomputed(), A + A.T, T, [1e-3] * 2)
    with pytest.raises(ValueError, match="not symmetric"):
        solve_iteratively(Precomputed(), A @ A.T + np.triu(A), T, [1e-3] * 2)
    kernel = FromFunction(lambda x, z: float(x[0]))
    with pytest.raises(ValueError, match="not symmetric"):
        solve_iteratively(kernel, rng.normal(size=(N, 2)), T, [1.0] * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphas": [0.0, 1.0]}, "alpha > 0"),
        ({"tol": 0.0}, "tol must be"),
        ({"tol": "small"}, "tol must be"),
        ({"max_iter": 1}, "max_iter must be"),
        ({"rank": 0}, "rank must be"),
    ],
)
def test_options_that_make_no_sense(options, message, X, T):
    with pytest.raises(ValueError, match=message):
        solve_iteratively(RBF(0.1), X, T, **({"alphas": [1.0, 1.0]} | options))


def test_memory_is_refused_before_any_work(X, T):
    with pytest.raises(MemoryLimitError, match="fewer targets"):
        solve_iteratively(RBF(0.1), X, T, [1.0] * 2, resources=Resources("20kB"))


def test_landmarks_leave_room_for_a_matrix_that_fits(X):
    n, stored = 1000, memory.matrix_bytes(1000, size=4)

    def needed(limit):
        return memory.MapBytes.partial(
            n, chosen_rank(n, int(limit / memory.MapBytes.LANDMARK_SHARE), X)
        )

    assert chosen_rank(n, 10 * stored, X) == int(10 * n**0.5)  # more would not pay
    assert 0.9 * stored / 2 < needed(1.5 * stored) <= stored / 2  # K takes the rest
    assert 0.9 * stored < needed(stored) <= stored  # K would leave nothing
    assert chosen_rank(n, stored, X, rank=20) == 20


@pytest.mark.parametrize("size", [1e-320, 1e-250, 1e-170, 1e160, 1e300])
def test_targets_of_any_size(size, X):
    """Squares of the targets vanished: "converged" with a bound of 0, and nothing learned."""
    X, t = X[:80], np.sin(X[:80, :1])
    steps = []
    solution = solve_iteratively(RBF(0.1), X, size * t, [1e-2], callback=steps.append)
    d = (solution.coef / size - exact(RBF(0.1)(X), t, [1e-2])).astype(np.longdouble)
    error = float(np.sqrt(d.T @ RBF(0.1)(X) @ d)[0, 0])
    assert solution.converged
    assert 0 < error <= solution.error_norms[0] / size
    assert solution.norms[0] / size == pytest.approx(4.1, rel=0.05)
    if size > 1e-300:
        assert solution.error_norms[0] <= 1e-4 * solution.norms[0]
        assert 0 < steps[-1].bounds[0] / size < 1


@pytest.mark.parametrize("seed", range(8))
def test_a_penalty_below_the_rounding_of_a_valid_kernel(seed):
    """p'(K + alpha I)p is below zero by rounding: no reason to call Polynomial(3) invalid."""
    rng = np.random.default_rng(seed)
    X, t = 100 * rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    kernel, alpha = Polynomial(3), 1e-4
    for given, points in ((kernel, X), (Precomputed(), kernel(X))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = solve_iteratively(given, points, t, [alpha])
        with mpmath.workdps(60):
            K = mpmath.matrix([[(mpmath.fdot(x, z) + 1) ** 3 for z in X] for x in X])
            want = mpmath.lu_solve(K + alpha * mpmath.eye(40), mpmath.matrix(t))
            d = mpmath.matrix(solution.coef) - want
            error = float(mpmath.sqrt((d.T * K * d)[0]))
        assert error <= solution.error_norms[0]
