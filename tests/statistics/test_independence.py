"""independence_test: against the textbook form of HSIC, and what it finds."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, Chunks, KernelMap, independence_test

FEW = {"n_permutations": 99, "random_state": 0}


@pytest.fixture
def pair(rng):
    """The second column of y depends on the first of x, without correlation."""
    x = rng.normal(size=(150, 2))
    y = np.column_stack([rng.normal(size=150), np.cos(2 * x[:, 0]) + 0.3 * rng.normal(size=150)])
    return x, y


def test_the_distance_is_the_textbook_hsic(pair):
    x, y = pair
    result = independence_test(x, y, KernelMap(RBF(0.5)), scales=[1.0], **FEW)
    n = len(x)
    H = np.eye(n) - 1 / n
    hsic = np.trace(RBF(0.5)(x) @ H @ RBF(0.5)(y) @ H) / n**2
    assert_allclose(result.distance, hsic**0.5, rtol=1e-6)


def test_it_finds_dependence_its_columns_and_its_functions(pair):
    x, y = pair
    result = independence_test(x, y, **FEW)
    assert result.differs
    assert result.columns["x0"] > 0.7
    assert result.columns["y1"] > 0.7
    f, g = result.witness
    assert np.corrcoef(f(x), g(y))[0, 1] > 0.6
    of_x, of_y = result.rows(3)
    assert of_x.shape == of_y.shape == (3, 2)
    assert_allclose((f(of_x) * g(of_y))[0], (f(x) * g(y)).max())
    assert "depend" in str(result)
    shuffled = y[np.random.default_rng(1).permutation(len(y))]
    assert not independence_test(x, shuffled, **FEW).differs


def test_frames_of_two_kinds(rng):
    town = rng.choice(["Rome", "Oslo"], 120)
    X = pd.DataFrame({"town": town})
    Y = pd.DataFrame({"rent": rng.normal(size=120) + 2.0 * (town == "Rome")})
    assert independence_test(X, Y, **FEW).differs


def test_level_by_a_small_simulation():
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(20, 1)), rng.normal(size=(20, 2))
        options = {"scales": [0.5, 2.0], "n_permutations": 19, "level": 0.2}
        alarms += independence_test(x, y, random_state=seed, **options).differs
    assert 6 <= alarms <= 36  # 20 are expected; 4 standard deviations


def test_bad_input(pair):
    x, y = pair
    with pytest.raises(ValueError, match="150 rows and Y has 149"):
        independence_test(x, y[1:])
    with pytest.raises(ValueError, match="at least 6"):
        independence_test(x[:5], y[:5])
    with pytest.raises(ValueError, match="all rows of Y are the same: every column is constant"):
        independence_test(x, np.ones((150, 1)))
    with pytest.raises(ValueError, match="all rows of X are the same"):
        independence_test(np.ones((150, 1)), y)


def test_rows_in_pieces(pair, monkeypatch):
    """Few rows are held; many cannot be exchanged."""
    x, y = pair
    here = independence_test(x, y, **FEW)
    there = independence_test(Chunks(lambda: iter([x[:70], x[70:]])), y, **FEW)
    assert there.statistic == here.statistic
    assert there.p_value == here.p_value
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 100)
    with pytest.raises(TypeError, match="held in memory"):
        independence_test(Chunks(lambda: iter([x[:70], x[70:]])), y)


def test_the_picture(pair):
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    plt.switch_backend("Agg")
    axes = independence_test(*pair, **FEW).plot()
    assert axes[2].get_xlabel() == "f(x)"
    plt.close("all")
