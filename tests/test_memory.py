"""Memory is predicted: the limit holds, the partial algorithm takes over, errors say what fits."""

import re
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import (
    RBF,
    Chunks,
    KernelLogistic,
    KernelMap,
    KernelRidge,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    plan,
)
from mercer.engine.memory import MemoryLimitError, budget
from mercer.space import cholesky

# Tiles, panels and index arrays: what a fit takes whatever the number of points.
TILES = 30_000_000


def peak(work):
    """Bytes allocated at most while `work` runs, over what was there."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def stored_calls(monkeypatch):
    """How often the whole matrix was stored."""
    calls = []
    original = cholesky._stored

    def counted(*args, **kwargs):
        calls.append(1)
        return original(*args, **kwargs)

    monkeypatch.setattr(cholesky, "_stored", counted)
    return calls


def test_over_the_limit_the_partial_algorithm_takes_over(rng, stored_calls):
    X, Z = rng.normal(size=(600, 2)), rng.normal(size=(50, 2))
    whole = KernelMap(RBF(1.0)).fit(X)
    assert len(stored_calls) == 1
    part = KernelMap(RBF(1.0), memory_limit=int(1.9 * 8 * 600**2)).fit(X)
    assert len(stored_calls) == 1
    assert part.rank_ == pytest.approx(whole.rank_, rel=0.1)
    P, Q = part.transform(Z), whole.transform(Z)
    bound = part.error_bound(X, Z) + whole.error_bound(X, Z)
    assert np.all(np.abs(part.transform(X) @ P.T - whole.transform(X) @ Q.T) <= bound)


@pytest.mark.parametrize("basis", ["cholesky", "eigen", "symmetric"])
@pytest.mark.parametrize("kernel", [RBF(1.0), RBF(50.0), Linear()], ids=repr)
@pytest.mark.parametrize("share", [1.02, 0.5], ids=["fits", "partial"])
def test_the_limit_holds(rng, kernel, basis, share, monkeypatch):
    monkeypatch.setattr("mercer.engine.tiles.PANEL_VALUES", 1 << 18)  # or n had to be larger
    n = 1200
    X = rng.normal(size=(n, 2))
    copies = {"cholesky": 3, "eigen": 8, "symmetric": 12}[basis]
    limit = int(share * copies * 8 * n * n)
    kernel_map = KernelMap(kernel, basis=basis, memory_limit=limit, tol=1e-8)
    try:
        used = peak(lambda: kernel_map.fit_transform(X))
    except MemoryLimitError:
        assert kernel == RBF(50.0)  # nearly full rank: half of it does not fit
        assert share < 1
        return
    assert used <= limit + n * n * 8 // 2  # tiles and panels, and not a matrix more


@pytest.mark.parametrize("share", [1.2, 2.1])
def test_the_limit_holds_for_several_penalties_and_for_steps_of_newton(share, rng):
    """A factor was kept for each penalty, and one step's matrices beside those of all steps."""
    n = 1200
    X, Y = rng.normal(size=(n, 10)), rng.normal(size=(n, 3))
    limit = int(share * 8 * n * n)
    ridge = KernelRidge([0.1, 0.2, 0.3], RBF(0.1), memory_limit=limit)
    planned = plan(ridge, X, Y)
    assert planned.choice == ("dual" if share > 2 else "iterative")
    assert peak(lambda: ridge.fit(X, Y)) <= min(limit, planned.ways[0].bytes) + n * n * 2
    logistic = KernelLogistic(1.0, RBF(0.1), memory_limit=limit)
    assert peak(lambda: logistic.fit(X, Y[:, 0] > 0)) <= limit + n * n * 2
    K, alphas = RBF(0.1)(X), np.array([0.1, 0.2, 0.3])
    expected = [K @ np.linalg.solve(K + a * np.eye(n), t) for a, t in zip(alphas, Y.T)]
    assert_allclose(ridge.predict(X), np.stack(expected, axis=1), atol=1e-3)


def test_several_factors_of_a_gram_matrix_are_in_the_prediction(rng):
    """They are kept, since the matrix cannot be made again."""
    K = RBF(0.1)(rng.normal(size=(300, 3)))
    model = KernelRidge([0.1, 0.2, 0.3], "precomputed", form="dual")
    with pytest.raises(MemoryLimitError, match=r"take 2\.88 MB"):
        model.set_params(memory_limit=int(3.9 * K.nbytes)).fit(K, K[:, :3])


def test_the_limit_holds_for_a_gram_matrix(rng):
    n = 2000
    X = rng.normal(size=(n, 2))
    K = RBF(1.0)(X)
    limit = int(1.02 * 4 * 8 * n * n)
    assert peak(lambda: KernelMap(Precomputed(), memory_limit=limit).fit(K)) <= limit + TILES
    limit //= 4
    assert peak(lambda: KernelMap(Precomputed(), memory_limit=limit).fit(K)) <= limit + TILES


def test_an_outgrown_limit_says_where_it_stopped_and_what_fits(rng):
    X = rng.normal(size=(2000, 2))
    limit = "2MB"
    with pytest.raises(MemoryLimitError, match="memory_limit") as caught:
        KernelMap(RBF(1.0), memory_limit=limit).fit(X)
    message = str(caught.value)
    rank = int(re.search(r"rank (\d+) reached", message)[1])
    residual = float(re.search(r"residual of (\S+)", message)[1])
    max_rank = int(re.search(r"max_rank=(\d+)", message)[1])
    tol = float(re.search(r"or tol=([^ ,]+),", message)[1])
    assert rank == max_rank
    assert 0 < residual < tol < 1
    # What it says would fit does.
    fitted = KernelMap(RBF(1.0), memory_limit=limit, max_rank=max_rank).fit(X)
    assert fitted.rank_ == rank
    assert fitted.max_residual_ == pytest.approx(residual, rel=0.01)
    assert KernelMap(RBF(1.0), memory_limit=limit, tol=tol).fit(X).max_residual_ <= tol
    single = KernelMap(RBF(1.0), memory_limit=limit, max_rank=int(1.9 * rank))
    assert single.fit(X.astype(np.float32)).rank_ == int(1.9 * rank)


def test_a_rank_that_cannot_fit_is_refused_before_it_is_computed(rng, monkeypatch):
    """A rough kernel on many rows: two small parts tell the rank of a sample."""
    from mercer.space import grow

    def started(*_, **__):
        raise AssertionError("landmarks of the sample were computed")

    X = rng.normal(size=(50_000, 5))
    with monkeypatch.context() as patched:
        patched.setattr(grow, "partial_cholesky", started)
        for rows in (X, Chunks(lambda: iter([X[:25_000], X[25_000:]]))):
            with pytest.raises(MemoryLimitError, match="tol=1e-06 needs about 20000") as e:
                KernelMap(Matern(0.5), tol=1e-6, memory_limit="1GB").fit(rows)
    most = int(re.search(r"max_rank=(\d+)", str(e.value))[1])
    assert most > 4000
    # Where the rank stays small, nothing is refused; nor with a max_rank that fits.
    few = KernelMap(RBF(0.01), tol=1e-4, memory_limit="200MB").fit(X)
    assert few.rank_ < 500
    assert KernelMap(Matern(0.5), tol=1e-6, max_rank=50, memory_limit="200MB").fit(X).rank_ == 50


def test_it_is_both_a_memory_error_and_a_value_error():
    assert issubclass(MemoryLimitError, MemoryError)
    assert issubclass(MemoryLimitError, ValueError)


def test_a_limit_of_a_few_bytes_stops_at_once(rng):
    with pytest.raises(MemoryLimitError, match="rank 1 reached"):
        KernelMap(RBF(1.0), memory_limit=10).fit(rng.normal(size=(500, 2)))


def test_a_closed_map_too_large_is_refused_before_it_is_made(rng):
    X = rng.normal(size=(3000, 20))
    with pytest.raises(MemoryLimitError, match="10626 dimensions"):
        KernelMap(Polynomial(4), basis="closed", memory_limit="100MB").fit(X)


def test_a_correction_too_large_is_refused(rng):
    K = rng.normal(size=(300, 300))
    with pytest.raises(MemoryLimitError, match="all eigenvalues"):
        KernelMap(Precomputed(), indefinite="clip", memory_limit="1MB").fit(K + K.T)


@pytest.mark.parametrize(
    ("limit", "message"),
    [("much", "number of bytes"), (True, "number of bytes"), (0, "positive"), (-5, "positive")],
)
def test_a_limit_that_makes_no_sense(rng, limit, message):
    with pytest.raises((TypeError, ValueError), match=message):
        KernelMap(RBF(1.0), memory_limit=limit).fit(rng.normal(size=(10, 2)))


def test_units():
    assert budget("2GB") == 2_000_000_000
    assert budget("1.5 MiB") == 1_572_864
    assert budget(1000.0) == 1000
    assert budget(None) > 0


def test_many_points_in_a_process_of_their_own():
    """n = 20000: K would take 3.2 GB; the process stays far below."""
    code = """
        import resource
        import numpy as np
        from mercer import RBF, KernelMap
        X = np.random.default_rng(0).normal(size=(20_000, 2))
        KernelMap(RBF(1.0), tol=1e-10, memory_limit="200MB").fit(X[:100])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kernel_map = KernelMap(RBF(1.0), tol=1e-10, memory_limit="200MB").fit(X)
        assert kernel_map.max_residual_ <= 1e-10
        print(kernel_map.rank_, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    rank, kilobytes = map(int, done.stdout.split())
    assert 250 < rank < 700
    assert kilobytes * 1024 < 200e6 + TILES


def test_a_truncated_map_of_a_stream_keeps_no_rows(rng):
    """Every row is above tol and none can be grown on: memory must not follow their number."""
    X = rng.normal(size=(25_000, 32))

    def fit(times):
        return KernelMap(RBF(0.01), max_rank=20).fit(Chunks(lambda: (X for _ in range(times))))

    fit(1)
    assert peak(lambda: fit(12)) < peak(lambda: fit(2)) + X.nbytes


@pytest.mark.parametrize("source", ["array", "stream", "closed"])
def test_single_precision_is_advised_to_double_precision_alone(rng, source):
    for dtype in (np.float64, np.float32):
        X = rng.normal(size=(3000, 3)).astype(dtype)
        rows = Chunks(lambda X=X: iter((X[:1000], X[1000:]))) if source == "stream" else X
        kernel, basis = (
            (Polynomial(9), "closed") if source == "closed" else (Matern(0.5), "cholesky")
        )
        with pytest.raises(MemoryLimitError, match="memory_limit") as error:
            KernelMap(kernel, basis=basis, memory_limit="1MB").fit(rows)
        assert ("float32" in str(error.value)) == (dtype is np.float64)
