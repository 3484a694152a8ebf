"""The small decisions inside one block of pivots."""

import numpy as np
import pytest

from mercer.space.partial import _RULES, _in_order, largest_first


def residual_matrix(rng, n=30, r=8):
    G = rng.normal(size=(n, r))
    return G @ G.T


@pytest.mark.parametrize("name", ["greedy", "random", "uniform"])
def test_what_is_accepted_is_factored(rng, name):
    G = residual_matrix(rng)
    accepted, L = _RULES[name](np.random.default_rng(0)).accept(G, 1e-10, 100)
    assert 1 <= len(accepted) <= 8
    np.testing.assert_allclose(L @ L.T, G[np.ix_(accepted, accepted)], atol=1e-10)
    np.testing.assert_array_equal(L, np.tril(L))
    assert len(_RULES[name](np.random.default_rng(0)).accept(G, 1e-10, 3)[0]) <= 3
    assert len(_RULES[name](np.random.default_rng(0)).accept(G, 1e10, 100)[0]) == 0


@pytest.mark.parametrize("name", ["greedy", "random"])
def test_explained_points_are_not_proposed(rng, name):
    residuals = np.zeros(500)
    residuals[[3, 77, 400]] = [0.5, 1.0, 0.9]
    for _ in range(20):
        proposed = _RULES[name](rng).propose(residuals, np.ones(500), 0, 50)
        assert set(proposed) <= {3, 77, 400}
        assert len(set(proposed)) == len(proposed)


def test_greedy_always_proposes_the_largest(rng):
    for _ in range(20):
        residuals = rng.random(1000)
        proposed = _RULES["greedy"](None).propose(residuals, np.ones(1000), 0, 50)
        assert residuals.argmax() in proposed
        assert residuals[proposed].min() >= 0.3 * residuals.max()


def test_uniform_visits_every_point_once_and_then_those_left(rng):
    uniform, seen, residuals = _RULES["uniform"](rng), [], np.ones(700)
    while len(seen) < 700:
        seen.extend(uniform.propose(residuals, np.ones(700), 0, 1000))
    assert sorted(seen) == list(range(700))
    residuals[5:] = 0
    assert set(uniform.propose(residuals, np.ones(700), 0, 1000)) == set(range(5))
    assert len(uniform.propose(np.zeros(700), np.ones(700), 0, 1000)) == 0


def test_random_acceptance_follows_the_residual(rng):
    """Two equal directions: the second is nearly explained by the first, so nearly never taken."""
    G = np.array([[1.0, 0.99], [0.99, 1.0]])
    taken = [
        len(_RULES["random"](np.random.default_rng(s)).accept(G, 0.0, 9)[0]) for s in range(400)
    ]
    assert np.mean(np.array(taken) == 2) == pytest.approx(1 - 0.99**2, abs=0.03)


@pytest.mark.parametrize("threshold", [1e-9, 0.05, 0.5, 2.0])
@pytest.mark.parametrize("most", [1, 7, 100])
def test_largest_first_takes_the_largest_residuals(threshold, most, rng):
    """Against a plain loop, one pivot at a time."""
    X = rng.normal(size=(40, 3))
    G = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    order, L = largest_first(G.copy(), threshold, most)
    left, expected = G.copy(), []
    while len(expected) < most and left.diagonal().max() > threshold:
        i = int(left.diagonal().argmax())
        expected.append(i)
        left -= np.outer(left[:, i], left[i]) / left[i, i]
        left[i, :] = left[:, i] = 0
    if threshold > 0.01:
        np.testing.assert_array_equal(order, expected)
    np.testing.assert_allclose(L @ L.T, G[np.ix_(order, order)], atol=1e-14)
    np.testing.assert_array_equal(L, np.tril(L))
    assert len(order) <= most


def test_pivots_in_order_are_those_kept():
    G = np.array([[3.0, 3.0, 0.0], [3.0, 3.1, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(_in_order(G, lambda g, i: g[i] > 0.5, 10), [0, 2])
    np.testing.assert_array_equal(_in_order(G, lambda g, i: g[i] > 0.5, 1), [0])
