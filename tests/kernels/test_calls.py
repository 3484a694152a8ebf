"""Calls of a user's function are what a user pays for: they are counted here."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import (
    RBF,
    FromFunction,
    KernelMap,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Normalized,
    OnFeatures,
    check_mercer,
)
from mercer.engine import tiles
from mercer.kernels import calls

N, RANK = 100, 20


class Counting:
    """A function of two objects that knows how often it was called, and for how many pairs."""

    def __init__(self, f):
        self.f, self.calls, self.pairs = f, 0, set()

    def __call__(self, x, z):
        self.calls += 1
        self.pairs.add(frozenset((self._name(x), self._name(z))))
        return self.f(x, z)

    @staticmethod
    def _name(x):
        return x.tobytes() if isinstance(x, np.ndarray) else x


def shared_letters(a, b):
    return len(set(a) & set(b)) + float(a == b)


@pytest.fixture(scope="module")
def words():
    letters = np.random.default_rng(0).choice(list("abcdefghij"), size=(N, 6))
    assert len({"".join(w) for w in letters}) == N
    return ["".join(w) for w in letters]


@pytest.mark.parametrize("pivots", ["greedy", "random", "uniform"])
def test_a_truncated_map_asks_for_its_columns(words, pivots):
    f = Counting(shared_letters)
    fitted = KernelMap(f, max_rank=RANK, pivots=pivots, random_state=0).fit(words)
    assert fitted.rank_ == RANK
    # k(x, x) of all, RANK columns, and what tells the precision and the symmetry.
    assert f.calls <= 1.1 * N * (RANK + 1)
    # Only the 16 pairs of the symmetry check are asked for twice.
    assert f.calls <= len(f.pairs) + 2 * 16


def test_a_whole_map_asks_once_for_each_pair(words):
    f = Counting(shared_letters)
    KernelMap(f).fit(words)
    assert f.calls <= N * (N + 1) / 2 + 2 * 16


@pytest.mark.parametrize("rows", [1000, 30], ids=["one tile", "several tiles"])
def test_a_matrix_asks_once_for_each_pair(monkeypatch, rows):
    monkeypatch.setattr(tiles, "_LEAST_ROWS", rows)
    monkeypatch.setattr(tiles, "_MOST_ROWS", rows)
    n = 100
    X, f = np.random.default_rng(0).normal(size=(n, 2)), Counting(lambda x, z: float(x @ z))
    K = FromFunction(f)(X)
    assert f.calls <= n * (n + 1) / 2 + 2 * 16
    assert_allclose(K, X @ X.T)
    assert_array_equal(K, K.T)


def test_a_full_memory_costs_calls_and_nothing_else(words, monkeypatch):
    expected = KernelMap(shared_letters, max_rank=RANK).fit_transform(words)
    monkeypatch.setattr(calls, "_MOST_VALUES", 50)
    f = Counting(shared_letters)
    assert_array_equal(KernelMap(f, max_rank=RANK).fit_transform(words), expected)
    assert f.calls <= 1.5 * N * (RANK + 1)


def test_rows_of_an_array_count_as_objects_do():
    X, f = np.random.default_rng(0).normal(size=(N, 30)), Counting(lambda x, z: float(x @ z))
    Phi = KernelMap(f, max_rank=RANK).fit_transform(X)
    assert f.calls <= 1.1 * N * (RANK + 1)
    exact = KernelMap(f).fit(X)  # rank 30: residuals of the truncated map are real
    assert np.all(np.diag(X @ X.T) - (Phi**2).sum(axis=1) >= -1e-10)
    assert exact.rank_ == 30


@pytest.mark.parametrize(
    "around",
    [lambda k: 2 * k, lambda k: k + 1, Normalized, lambda k: k**2],
    ids=["scaled", "sum", "normalized", "power"],
)
def test_inside_other_kernels_too(words, around):
    f = Counting(shared_letters)
    KernelMap(around(FromFunction(f)), max_rank=RANK).fit(words)
    assert f.calls <= 1.5 * N * (RANK + 1)


def test_methods_ask_as_little(words):
    methods = (KernelPCA(2, solver="dense"), KernelPCA(2), KernelRidge())
    for method in (*methods, KernelRidge(form="iterative"), KernelRidgeCV([0.1, 1.0])):
        f = Counting(shared_letters)
        method.set_params(kernel=FromFunction(f)).fit(words, np.arange(N, dtype=float))
        assert f.calls <= N * (N + 1) / 2 + N + 2 * 16, method


def test_nothing_is_remembered_after_a_fit(words):
    f = Counting(shared_letters)
    fitted = KernelMap(f, max_rank=RANK).fit(words)
    assert fitted.kernel_.known is calls.NOTHING
    f.calls = 0
    fitted.transform(words[:7])
    assert f.calls == 7 * RANK


def test_an_inner_memory_is_the_outer_one(words):
    f = Counting(shared_letters)
    kernel = FromFunction(f, symmetric=True)
    points = kernel.points(words)
    with calls.remembering(kernel):
        tiles.evaluate(kernel, points)
        known = kernel.known
        with calls.remembering(kernel):
            assert kernel.known is known
        assert kernel.known is known
        tiles.evaluate(kernel, points)
    assert kernel.known is calls.NOTHING
    assert f.calls == N * (N + 1) / 2


def test_objects_that_come_and_go_are_not_confused():
    """OnFeatures makes its objects anew; Python gives a new object the address of an old one."""
    X = np.random.default_rng(0).normal(size=(40, 3))

    class Row:
        def __init__(self, x):
            self.x = x

    rows = OnFeatures(FromFunction(lambda a, b: float(a.x @ b.x)), lambda X: [Row(x) for x in X])
    Phi = KernelMap(rows, max_rank=3).fit_transform(X)
    assert_allclose(Phi @ Phi.T, X @ X.T, atol=1e-10)


# --- symmetry -------------------------------------------------------------------------------------


def test_symmetry_is_found_on_the_data(words):
    assert FromFunction(shared_letters).bind(words).symmetric is True
    assert FromFunction(shared_letters).bind(words[:16]).symmetric is None
    assert FromFunction(lambda a, b: float(a < b)).bind(words).symmetric is False
    assert FromFunction(shared_letters, symmetric=False).bind(words).symmetric is False


def test_vectorized_functions_are_tried_too():
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert FromFunction(lambda X, Z: X @ Z.T, vectorized=True).bind(X).symmetric is True
    lopsided = FromFunction(lambda X, Z: X @ np.triu(np.ones((3, 3))) @ Z.T, vectorized=True)
    assert lopsided.bind(X).symmetric is False


def test_an_asymmetric_function_is_refused(words):
    with pytest.raises(ValueError, match="symmetric"):
        KernelMap(lambda a, b: shared_letters(a, b) + 0.1 * (a < b)).fit(words)


def test_the_user_decides(words):
    """symmetric=True trusts (no pair is tried twice), symmetric=False asks for both orders."""
    f = Counting(shared_letters)
    FromFunction(f, symmetric=True)(words)
    assert f.calls == N * (N + 1) / 2
    f = Counting(shared_letters)
    FromFunction(f, symmetric=False)(words)
    assert f.calls == N * N
    with pytest.raises(ValueError, match=r"symmetric.*'yes'"):
        FromFunction(f, symmetric="yes")(words)


def test_check_mercer_asks_for_both_orders(words):
    """An asymmetry of one pair, which a few spot checks do not see."""
    a, b = words[1], words[2]
    odd = FromFunction(lambda x, z: shared_letters(x, z) + 0.5 * (x == a and z == b))
    assert odd.bind(words).symmetric is True
    assert not check_mercer(odd, words).symmetric


def test_repr_gives_it_back():
    assert repr(FromFunction(shared_letters, symmetric=True)) == (
        "FromFunction(shared_letters, symmetric=True)"
    )
    assert FromFunction(shared_letters) != FromFunction(shared_letters, symmetric=True)


def test_other_kernels_are_not_one_call_per_value():
    assert not RBF().one_call_per_value
    assert not FromFunction(shared_letters, vectorized=True).one_call_per_value
    assert (FromFunction(shared_letters) * RBF()).one_call_per_value
