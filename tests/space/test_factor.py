"""Landmarks: coordinates, weights and radii against dense formulas."""

import numpy as np
import pytest

from mercer import RBF, KernelMap
from mercer.space import factorize
from mercer.space.certificate import Radii, bound, landmark_rows
from mercer.space.spectra import eigen_rotation, signs, symmetric_rotation


@pytest.fixture
def factor(rng):
    return factorize(RBF(0.5), rng.normal(size=(40, 10))).factor


def test_coordinates_solve_the_triangular_system(factor, rng):
    Z = rng.normal(size=(15, 10))
    k = RBF(0.5)(Z, factor.S)
    Phi = factor.coordinates(Z)
    np.testing.assert_allclose(Phi, np.linalg.solve(factor.C, k.T).T, atol=1e-12)
    np.testing.assert_allclose(factor.squared_norms(Z), (Phi**2).sum(1), atol=1e-12)
    np.testing.assert_allclose(
        factor.weights(Phi.T).T, np.linalg.solve(factor.C.T, Phi.T).T, atol=1e-11
    )
    coef = rng.normal(size=40)
    np.testing.assert_allclose(k @ factor.weights(coef), Phi @ coef, atol=1e-11)
    np.testing.assert_allclose(factor.lengths(), 1, atol=1e-14)


def test_panels_do_not_change_the_result(factor, rng, monkeypatch):
    Z = rng.normal(size=(700, 10))
    whole = factor.coordinates(Z)
    monkeypatch.setattr("mercer.engine.tiles.PANEL_VALUES", 1)
    np.testing.assert_allclose(factor.coordinates(Z), whole, atol=1e-13)


def test_radii_against_their_definition(factor, rng):
    Z = np.vstack([rng.normal(size=(5, 10)), factor.S[:3]])
    radii = factor.radii(Z, np.ones(8))
    Phi = factor.coordinates(Z)
    weights = np.linalg.solve(factor.C.T, Phi.T).T
    np.testing.assert_allclose(radii.tau, 1 + np.abs(weights).sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(radii.rho2, np.maximum(1 - (Phi**2).sum(1), 0), atol=1e-12)
    np.testing.assert_array_equal(radii.landmark, [False] * 5 + [True] * 3)
    known = factor.radii_of(Phi, np.ones(8), radii.rho2)
    np.testing.assert_allclose(known.tau, radii.tau)


def test_a_landmark_is_one_to_the_bit():
    S = np.array([[0.0, 1.0], [2.0, 3.0]])
    X = np.array([[-0.0, 1.0], [2.0, np.nextafter(3.0, 4)], [2.0, 3.0]])
    np.testing.assert_array_equal(landmark_rows(X, S, S), [True, False, True])
    np.testing.assert_array_equal(landmark_rows(X.astype(np.float32), S, S), [False] * 3)
    np.testing.assert_array_equal(landmark_rows(X, None, S), [False] * 3)


def test_the_bound_is_the_smallest_of_its_arguments():
    def point(rho2, tau, length, landmark=False):
        return Radii(*(np.array([v]) for v in (rho2, tau, length, landmark)))

    eta = 1e-10
    x, z = point(0.0, 2.0, 1.0), point(1.0, 1e7, 1.0)
    R_x, R_z = np.sqrt(2 * eta * 4), np.sqrt(1 + 2 * eta * 1e14)
    assert R_z > 100
    np.testing.assert_allclose(bound(x, z, eta), R_x + 2 * eta * 2, rtol=1e-6)  # not R_x R_z
    near = point(1e-6, 2.0, 1.0)
    np.testing.assert_allclose(bound(near, near, eta), 1e-6 + 2 * eta * 4, rtol=1e-6)  # R_x R_z
    landmark = point(0.0, 2.0, 1.0, True)
    np.testing.assert_allclose(bound(landmark, near, eta), 4 * eta * 2, rtol=1e-6)
    np.testing.assert_allclose(bound(near, landmark, eta), 4 * eta * 2, rtol=1e-6)


def test_the_radii_of_a_mean_are_root_mean_squares():
    radii = Radii(
        np.array([1.0, 3.0]), np.array([1.0, 7.0]), np.array([3.0, 4.0]), np.zeros(2, bool)
    )
    mean = radii.mean()
    np.testing.assert_allclose([mean.rho2, mean.tau, mean.length], [[2], [5], [12.5**0.5]])


def test_signs_are_decided_by_the_first_of_the_largest():
    scores = np.array([[1.0, -2.0, 0.0], [-1.0 - 1e-12, 1.0, 0.0]])
    np.testing.assert_array_equal(signs(scores), [1, -1, 1])
    assert signs(np.empty((3, 0))).shape == (0,)
    assert signs(np.empty((0, 0))).shape == (0,)


def test_rotations_are_orthogonal_however_singular_F_is(rng):
    F = KernelMap(RBF(1.0)).fit_transform(rng.normal(size=(300, 2)))
    V, values = eigen_rotation(F)
    np.testing.assert_allclose(V.T @ V, np.eye(F.shape[1]), atol=1e-12)
    assert np.all(np.diff(values) <= 0)
    Q = symmetric_rotation(F)
    np.testing.assert_allclose(Q @ Q.T, np.eye(F.shape[1]), atol=1e-12)
    root = F @ Q
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    np.testing.assert_allclose(root @ root, F @ F.T, atol=1e-12)
