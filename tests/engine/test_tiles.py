import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oracles
from mercer import RBF, FromFunction, Linear, Matern
from mercer.engine import tiles
from mercer.engine.arrays import as_numpy
from mercer.engine.resources import using
from mercer.engine.threads import _blas_threads

rng = np.random.default_rng(0)
X = rng.normal(size=(37, 3))
Y = rng.normal(size=(23, 3))
KERNEL = RBF(0.3) + Linear() * Matern()


@pytest.fixture(params=[(8, 2), (16, 4), (64, 8)], ids=str)
def small_tiles(request, monkeypatch):
    """Tiles so small that several blocks of rows and of columns occur."""
    values, rows = request.param
    monkeypatch.setattr(tiles, "_TILE_VALUES", values)
    monkeypatch.setattr(tiles, "_LEAST_ROWS", rows)
    monkeypatch.setattr(tiles, "_MOST_ROWS", rows)
    assert len(tiles.row_blocks(X, len(Y))) > 1
    assert len(tiles._column_blocks(X, len(Y), rows)) > 1


def _on(n_jobs, function, *arguments):
    with using(n_jobs=n_jobs):
        return function(*arguments)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_evaluate_is_the_oracle(small_tiles, n_jobs):
    with using(n_jobs=n_jobs):
        full, half = tiles.evaluate(KERNEL, X, Y), tiles.evaluate(KERNEL, X)
    assert_allclose(full, oracles.matrix(KERNEL, X, Y), atol=1e-13)
    assert_allclose(half, oracles.matrix(KERNEL, X, X), atol=1e-13)


def test_half_is_the_whole(small_tiles):
    half = tiles.evaluate(KERNEL, X)
    assert_array_equal(half, half.T)
    assert_allclose(half, tiles.evaluate(KERNEL, X, X), atol=1e-14)


def test_threads_change_nothing(small_tiles):
    W = rng.normal(size=(len(Y), 4))
    for function, arguments in [
        (tiles.evaluate, (KERNEL, X)),
        (tiles.evaluate, (KERNEL, X, Y)),
        (tiles.multiply, (KERNEL, X, Y, W)),
    ]:
        one, two = (_on(n, function, *arguments) for n in (1, 2))
        assert_array_equal(one, two)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_multiply_is_a_product(small_tiles, n_jobs):
    W = rng.normal(size=(len(Y), 4))
    product = _on(n_jobs, tiles.multiply, KERNEL, X, Y, W)
    assert_allclose(product, oracles.matrix(KERNEL, X, Y) @ W, atol=1e-12)


def test_multiply_computes_in_the_precision_of_the_weights(small_tiles):
    W = rng.normal(size=(len(Y), 2))
    product = tiles.multiply(RBF(0.3), X.astype(np.float32), Y.astype(np.float32), W)
    assert product.dtype == np.float64


def test_every_namespace(small_tiles, xp):
    W = rng.normal(size=(len(Y), 4))
    Xp, Yp, Wp = (xp.asarray(a.copy()) for a in (X, Y, W))
    assert_allclose(as_numpy(tiles.evaluate(KERNEL, Xp)), KERNEL(X), atol=1e-13)
    assert_allclose(as_numpy(tiles.multiply(KERNEL, Xp, Yp, Wp)), KERNEL(X, Y) @ W, atol=1e-12)


def test_a_function_that_is_not_symmetric_is_not_mirrored(small_tiles):
    kernel = FromFunction(lambda x, z: float(x[0] - z[0]))
    assert_allclose(tiles.evaluate(kernel, X), X[:, :1] - X[:, 0], atol=1e-15)


def test_user_code_runs_in_the_thread_of_the_caller(small_tiles):
    import threading

    seen = set()

    def f(x, z):
        seen.add(threading.current_thread())
        return 1.0

    FromFunction(f)(X)
    assert seen == {threading.current_thread()}


@pytest.mark.parametrize("n", [1, 255, 256, 257, 5000])
@pytest.mark.parametrize("n_columns", [0, 1, 1000, 100_000])
def test_blocks_cover_everything_once(n, n_columns):
    rows = tiles.row_blocks(np.empty((n, 1)), n_columns)
    assert [i for a, b in rows for i in range(a, b)] == list(range(n))
    columns = tiles._column_blocks(X, n_columns, rows[0][1])
    assert [j for c, d in columns for j in range(c, d)] == list(range(n_columns))
    if n_columns:
        widest = max(d - c for c, d in columns)
        assert widest * rows[0][1] <= 2 * tiles._TILE_VALUES


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failing_tile_ends_the_work(small_tiles, error, n_jobs):
    done = []

    def work(a, b):
        if a > 0:
            raise error("stop")
        done.append(a)

    before = _blas_threads()
    with pytest.raises(error, match="stop"):
        _on(n_jobs, tiles.run_tasks, work, tiles.row_blocks(X, len(Y)), KERNEL, X)
    assert done == [0]
    assert _blas_threads() == before


def test_a_failure_in_another_thread_ends_the_work_of_this_one():
    here, done = threading.current_thread(), []

    def work(a, b):
        if threading.current_thread() is not here:
            raise RuntimeError("stop")
        time.sleep(0.01)  # long enough for the other thread to take its turn
        done.append(a)

    with pytest.raises(RuntimeError, match="stop"):
        _on(2, tiles.run_tasks, work, [(i, i + 1) for i in range(200)], KERNEL, X)
    assert len(done) < 199


def test_progress_is_shown_when_asked(small_tiles, capsys):
    with using(verbose=True):
        tiles.evaluate(KERNEL, X)
    assert "kernel tiles" in capsys.readouterr().err
    tiles.evaluate(KERNEL, X)
    assert capsys.readouterr().err == ""


def test_no_progress_starts_no_thread():
    """tqdm starts a monitor for every bar, shown or not."""
    code = (
        "import sys, threading, numpy as np, mercer\n"
        "mercer.KernelMap(max_rank=20).fit(np.random.rand(300, 2))\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
        "assert 'tqdm' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
