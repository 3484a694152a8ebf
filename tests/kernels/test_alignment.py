"""GlobalAlignment: its sum against one alignment at a time, and what is refused."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracles
from mercer import GlobalAlignment, KernelRidge, Normalized


@pytest.fixture
def tslearn():
    return pytest.importorskip("tslearn", reason="GlobalAlignment needs the extra 'alignment'")


@pytest.mark.usefixtures("tslearn")
def test_sum_over_all_alignments(rng):
    X = [rng.normal(size=(rng.integers(1, 6), 2)) for _ in range(7)]
    for kernel in (GlobalAlignment(0.4), GlobalAlignment([0.1, 3.0])):
        expected = oracles.matrix(kernel, X, X)
        assert_allclose(kernel(X), expected, rtol=1e-12)
        assert_allclose(kernel(X[:2], X), expected[:2], rtol=1e-12)


@pytest.mark.usefixtures("tslearn")
def test_long_series_neither_overflow_nor_vanish(rng):
    x = rng.normal(size=900).cumsum()  # 10^685 alignments
    K = GlobalAlignment(1e-3)([x, x + 0.01, x[::2], -x])
    assert np.isfinite(K).all()
    assert K[0, 1] > 0.9
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    assert_allclose(np.diag(K), 1.0, rtol=1e-15)


@pytest.mark.usefixtures("tslearn")
def test_a_shifted_wave_is_near_where_points_are_not():
    t = np.linspace(0, 1, 60)
    waves = [np.exp(-((t - shift) ** 2) / 0.005) for shift in (0.3, 0.5)]
    K = GlobalAlignment(1.0)([*waves, -waves[0]])
    assert K[0, 1] > 100 * K[0, 2]
    model = KernelRidge(1e-3, Normalized(GlobalAlignment(1.0))).fit([*waves, -waves[0]], [1, 1, 0])
    assert_allclose(model.predict(waves), 1.0, atol=0.1)


@pytest.mark.usefixtures("tslearn")
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, 2.0], [3.0, np.nan]], r"X\[1\] has NaN or infinity at point \[1\]"),
        ([[1.0, 2.0], [[3.0, 1.0]]], r"X\[1\] has 2 channels, X\[0\] has 1"),
        ([[1.0, 2.0], []], r"X\[1\] has shape \(0,\)"),
    ],
)
def test_a_bad_path_is_named_by_its_position(X, message):
    for call in (GlobalAlignment(), GlobalAlignment().diag):
        with pytest.raises(ValueError, match=message):
            call(X)


@pytest.mark.usefixtures("tslearn")
def test_other_refusals():
    with pytest.raises(ValueError, match="2 channels cannot be compared with paths of 1"):
        GlobalAlignment()([[[1.0, 2.0]]], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="has 3 values for paths of 2 channels"):
        GlobalAlignment([1.0, 2.0, 3.0])([[[1.0, 2.0]]])
    with pytest.raises(ValueError, match=r"GlobalAlignment\(gamma\)"):
        GlobalAlignment(-1.0)([[1.0]])
    with pytest.raises(ValueError, match="no finite feature map"):
        GlobalAlignment().explicit([[1.0]])


def test_without_tslearn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tslearn.metrics", None)
    with pytest.raises(ImportError, match=r"mercer\[alignment\]"):
        GlobalAlignment()([[1.0, 2.0]])
