"""Leave-one-out errors where 1 - h, or an eigenvalue, is all rounding."""

import numpy as np
import pytest

from mercer import RBF, KernelRidgeCV, Linear

FORMS = ("primal", "dual")


def leave_one_out(K, y, alpha):
    """Fitted again without each row."""
    n, errors = len(y), []
    for i in range(n):
        others = np.arange(n) != i
        A = K[np.ix_(others, others)] + alpha * np.eye(n - 1)
        errors.append(y[i] - K[i, others] @ np.linalg.lstsq(A, y[others], rcond=1e-12)[0])
    return np.mean(np.square(errors))


@pytest.mark.parametrize("form", FORMS)
def test_a_tiny_alpha_does_not_divide_by_rounding(rng, form):
    """K is nearly the identity: h_i is 1 to rounding, and 1 - h_i may come out as zero or less."""
    X = rng.normal(size=(60, 100))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    alphas = [1e-300, 1e-20, 1e-10, 0.1]
    with np.errstate(all="raise", under="ignore"):
        model = KernelRidgeCV(alphas, RBF(0.5), form=form).fit(X, y)
    assert np.all(np.isfinite(model.cv_errors_))
    expected = [leave_one_out(RBF(0.5)(X), y, alpha) for alpha in alphas]
    np.testing.assert_allclose(model.cv_errors_[2:], expected[2:], rtol=1e-4)
    # Rounding may hide how good a tiny alpha is; it must not make it look better than it is, nor
    # infinitely bad.
    assert np.all(model.cv_errors_[:2] > 0.5 * np.array(expected[:2]))
    assert np.all(model.cv_errors_[:2] < 1e3 * np.array(expected[:2]))


@pytest.mark.parametrize("form", FORMS)
def test_eigenvalues_of_rounding_have_a_floor(rng, form):
    """Rank 2 of 60: dividing by the other 58 eigenvalues, of 1e-15, would fit the noise."""
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    model = KernelRidgeCV([1e-20, 0.1], Linear(), form=form).fit(X, y)
    expected = [leave_one_out(X @ X.T, y, alpha) for alpha in (1e-20, 0.1)]
    assert model.cv_errors_[1] == pytest.approx(expected[1], rel=1e-8)
    assert model.cv_errors_[0] == pytest.approx(expected[0], rel=0.5)
