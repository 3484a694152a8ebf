"""Normal equations in Fourier coordinates against the matrix written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, Matern
from mercer.solve.fourier_map import FourierEquations
from mercer.space.fourier_grid import Extent, fourier_space

# A kernel, dimensions, and an accuracy that needs at most 915 frequencies.
PROBLEMS = [(RBF(20.0), 1, 1e-3), (RBF([9.0, 4.0]), 2, 1e-3), (Matern(3.5), 3, 1e-2)]


@pytest.fixture(scope="module", params=PROBLEMS, ids=lambda p: repr(p[0]))
def problem(request):
    kernel, d, tol = request.param
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, d))
    T = np.column_stack([np.sin(4 * X[:, 0]), rng.normal(size=80)])
    space = fourier_space(kernel, Extent.of(X), tol=tol)
    sums = space.sums(X, T)
    A, B = space.pairs(sums.generator), sums.cross_of(space)
    return FourierEquations(space, sums.generator), A, B


def iterated(equations, B, alphas, tol, max_iter):
    equations.max_iter = max_iter
    return equations.iterate(B, alphas, tol)


def test_products(problem):
    equations, A, _ = problem
    W = np.random.default_rng(1).normal(size=(len(A), 3))
    assert_allclose(equations @ W, A @ W, atol=1e-10 * np.abs(A).sum())
    # Cosines and sines of one frequency share what their squares add up to.
    assert_allclose(np.sum(equations.diagonal), np.trace(A), rtol=1e-8)


@pytest.fixture(params=[1, 9], ids=["diagonal", "nine written out"])
def written_out(request, monkeypatch, problem):
    """How many coordinates the preconditioner holds in full."""
    monkeypatch.setattr("mercer.solve.fourier_map.WRITTEN_OUT", request.param)
    vars(problem[0]).pop("heaviest", None)
    yield request.param
    vars(problem[0]).pop("heaviest", None)


@pytest.mark.parametrize("alphas", [(0.1, 0.1), (1e-3, 10.0)], ids=str)
def test_solutions_are_within_their_bound(problem, alphas, written_out):
    equations, A, B = problem
    exact = np.column_stack(
        [np.linalg.solve(A + a * np.eye(len(A)), b) for a, b in zip(alphas, B.T)]
    )
    for tol in (1e-1, 1e-6):
        found = iterated(equations, B, alphas, tol, 3000)
        assert found.converged
        error = np.linalg.norm(found.coef - exact, axis=0)
        size = np.linalg.norm(exact, axis=0)
        assert np.all(error <= found.error_norms * (1 + 1e-6) + 1e-9 * size)
        assert np.all(found.error_norms <= 1.2 * tol * size)
    short = iterated(equations, B, alphas, 1e-12, 2)
    assert not short.converged
    assert short.n_iter == 2
    assert np.all(np.linalg.norm(short.coef - exact, axis=0) <= short.error_norms)


def test_nothing_to_solve(problem):
    equations, _, B = problem
    found = iterated(equations, 0 * B, (1.0, 1.0), 1e-6, 10)
    assert found.converged
    assert_allclose(found.coef, 0.0)


def test_the_heaviest_coordinates_are_solved_exactly(problem):
    """Where all are written out, one step is enough."""
    equations, A, B = problem
    positions, block = equations.heaviest
    assert_allclose(block, A[np.ix_(positions, positions)], atol=1e-12 * np.abs(A).max())
    if len(block) == len(A):
        found = iterated(equations, B, (1e-3, 10.0), 1e-8, 5)
        assert found.converged
        assert found.n_iter <= 2


def test_fewer_products_with_more_written_out(monkeypatch):
    X = np.random.default_rng(0).uniform(size=(2000, 1))
    space = fourier_space(Matern(1.5, 0.1), Extent.of(X), tol=1e-4)
    sums = space.sums(X, np.sin(9 * X))
    steps = []
    for size in (1, 101):
        monkeypatch.setattr("mercer.solve.fourier_map.WRITTEN_OUT", size)
        equations = FourierEquations(space, sums.generator)
        B = sums.cross_of(space)
        steps.append(iterated(equations, B, (0.1,), 1e-8, 2000).n_iter)
    assert steps[1] < steps[0] / 5
