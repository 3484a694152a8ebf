"""Random pivots are drawn in proportion to the residual itself, k(x, x) included."""

import numpy as np

from mercer import KernelMap, Linear, Polynomial
from mercer.space.partial import _RULES


def first_landmarks(X, kernel, rounds=200):
    return [
        int(
            KernelMap(kernel, pivots="random", max_rank=1, random_state=i)
            .fit(X)
            .landmark_indices_[0]
        )
        for i in range(rounds)
    ]


def test_the_first_landmark_is_drawn_by_its_length():
    """k(x, x) is 1 for eight points and 56 for one, which is drawn in 7 of 8 rounds, not 1 of 9."""
    X = np.eye(9)
    X[4, 4] = np.sqrt(56.0)
    share = np.mean(np.array(first_landmarks(X, Linear())) == 4)
    assert abs(share - 56 / 64) < 5 * np.sqrt(56 / 64 * 8 / 64 / 200)


def test_all_shares_follow_the_diagonal():
    X = np.arange(1.0, 7.0)[:, None]
    kernel = Polynomial(2, coef0=0.0)  # k(x, x) = x^4
    counts = np.bincount(first_landmarks(X, kernel), minlength=6)
    expected = kernel.diag(X) / kernel.diag(X).sum()
    assert np.all(
        np.abs(counts / 200 - expected) < 5 * np.sqrt(expected * (1 - expected) / 200) + 0.005
    )


def test_proposals_weigh_residuals_and_lengths():
    """A relative residual of 1/4 on a point that is 16 times as large counts 4 times as much."""
    residuals, weights = np.array([1.0, 0.25]), np.array([1.0, 16.0])
    first = [
        int(_RULES["random"](np.random.default_rng(i)).propose(residuals, weights, 0, 50)[0])
        for i in range(1000)
    ]
    assert abs(np.mean(first) - 4 / 5) < 5 * np.sqrt(0.8 * 0.2 / 1000)
