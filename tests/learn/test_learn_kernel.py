"""Learning: what it finds, what it leaves alone, what it refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, KernelMap, KernelRidge, Laplacian, Linear, Matern, learn_kernel
from mercer.engine.line_search import line_search
from mercer.learn.families import _with_weights, tunable
from mercer.learn.metric import column_scales, damped


@pytest.fixture(scope="module")
def few_columns():
    """Two of ten columns matter, at an angle."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10)) * 10.0 ** rng.integers(-3, 4, size=10)
    Z = X / X.std(axis=0)
    return X, np.sin(2 * (Z[:, 0] + Z[:, 1])) + 0.05 * rng.normal(size=300)


@pytest.fixture(scope="module")
def learned(few_columns):
    return learn_kernel(*few_columns, random_state=0)


def test_it_finds_the_columns_and_the_direction(learned):
    assert set(np.argsort(-learned.importances)[:2]) == {0, 1}
    assert learned.importances[:2].sum() > 0.9
    assert_allclose(learned.importances.sum(), 1)
    assert_allclose(np.abs(learned.directions[:2, 0]), 0.5**0.5, atol=0.1)
    assert learned.error < 0.3 * learned.history[0].error


def test_the_kernel_predicts_rows_that_learning_has_not_seen(few_columns, learned):
    X, y = few_columns
    model = KernelRidge(learned.alpha, learned.kernel).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.9
    assert KernelMap(learned.kernel, max_rank=20).fit_transform(X).shape[0] == 300


def test_the_same_seed_gives_the_same_kernel(few_columns, learned):
    X, y = few_columns
    again = learn_kernel(X, y, random_state=0)
    assert again.kernel == learned.kernel
    assert again.alpha == learned.alpha


def test_learning_never_makes_the_error_larger(rng):
    X, y = rng.normal(size=(120, 4)), rng.normal(size=120)
    found = learn_kernel(X, y, random_state=0)
    assert found.error <= found.history[0].error


def test_a_diagonal_metric_and_none(few_columns):
    X, y = few_columns
    diagonal = learn_kernel(X, y, metric="diagonal", n_rounds=4, random_state=0)
    A = np.asarray(diagonal.kernel.get_params()["A"])
    assert np.count_nonzero(A) <= 10
    plain = learn_kernel(X, y, RBF(), metric=None, random_state=0)
    A = np.asarray(plain.kernel.get_params()["A"])
    assert_allclose(A * np.eye(10), A)
    assert np.ptp(A.diagonal() * X.std(axis=0)) < 1e-6 * A.max()  # the same for every column


def test_without_a_metric_slopes_tell_which_columns_matter(rng):
    X = rng.normal(size=(300, 5))
    learned = learn_kernel(X, np.sin(X[:, 3]), RBF(0.1), metric=None)
    assert learned.importances.argmax() == 3
    assert learned.importances[3] > 0.9
    assert_allclose(learned.importances.sum(), 1)


def test_an_expression_keeps_its_form_and_has_its_weights_tuned(rng):
    X = rng.normal(size=(150, 3))
    y = 5 * X[:, 0] + np.sin(3 * X[:, 1])
    found = learn_kernel(X, y, RBF() + Linear(), n_rounds=2, random_state=0)
    inner = found.kernel.kernel
    assert isinstance(inner.left, RBF)
    assert inner.right.scale > 0
    assert found.error < 0.2
    only_lengths = learn_kernel(X, y, Laplacian(), random_state=0)
    assert isinstance(only_lengths.kernel.kernel, Laplacian)


def test_a_linear_target_gets_a_linear_part_or_better(rng):
    X = rng.normal(size=(200, 5))
    assert learn_kernel(X, X @ np.arange(5.0), random_state=0).error < 1e-3


def test_classes_several_targets_and_weights(rng):
    X = rng.normal(size=(150, 3))
    classes = np.where(X[:, 1] > 0, "yes", "no")
    assert int(learn_kernel(X, classes, random_state=0).importances.argmax()) == 1
    both = np.column_stack([np.sin(2 * X[:, 0]), np.cos(2 * X[:, 2])])
    assert int(learn_kernel(X, both, n_rounds=3, random_state=0).importances.argmin()) == 1
    # Rows of weight zero do not count, whatever their targets.
    y, w = np.sin(2 * X[:, 0]), np.ones(150)
    spoiled = y.copy()
    spoiled[:30], w[:30] = 1e3, 0.0
    kept = learn_kernel(X, spoiled, sample_weight=w, n_rounds=3, random_state=0)
    assert int(kept.importances.argmax()) == 0


def test_arrays_of_other_libraries_give_the_same_kernel(xp, rng):
    X = rng.normal(size=(60, 3))
    y = np.sin(2 * X[:, 0])
    here = learn_kernel(X, y, n_rounds=1, random_state=0)
    there = learn_kernel(xp.asarray(X), xp.asarray(y), n_rounds=1, random_state=0)
    assert_allclose(there.importances, here.importances, rtol=1e-3, atol=1e-6)
    assert_allclose(there.error, here.error, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "round"}, "metric must be"),
        ({"y": None}, "None"),
        ({"y": np.full(20, "a")}, "1 class only"),
        ({"y": np.r_[np.nan, np.ones(19)]}, "NaN"),
        ({"y": np.ones(19)}, "inconsistent"),
        ({"sample_weight": np.zeros(20)}, "not all"),
        ({"task": "ranking"}, "task must be"),
        ({"alphas": [0.0, 1.0]}, "alphas"),
        ({"n_rounds": -1}, "n_rounds"),
        ({"max_landmarks": 0}, "max_landmarks"),
        (
            {"kernel": sum(RBF(1 + i) for i in range(200))},
            "expression of 401 kernels.*at most 200",
        ),
    ],
)
def test_bad_input_is_named(rng, change, message):
    arguments = {"X": rng.normal(size=(20, 2)), "y": rng.normal(size=20)} | change
    with pytest.raises((ValueError, TypeError), match=message):
        learn_kernel(**arguments)


def test_hard_tables_get_an_answer(rng):
    y = rng.normal(size=30)
    for X in (
        rng.normal(size=(30, 50)),  # more columns than rows
        np.repeat(rng.normal(size=(30, 1)), 3, axis=1),  # duplicated columns
        np.column_stack([y, rng.normal(size=30)]),  # a column that is the target
        np.column_stack([np.ones(30), rng.normal(size=30)]),  # a constant column
        np.zeros((30, 2)),
    ):
        found = learn_kernel(X, y, n_rounds=2, random_state=0)
        assert np.isfinite(found.error)
        assert np.isfinite(found.importances).all()
    constant = learn_kernel(rng.normal(size=(30, 2)), np.ones(30))
    assert constant.error == 0


def test_text_html_and_picture(learned):
    assert "leave-one-out error" in str(learned)
    assert "<table>" in learned._repr_html_()
    pytest.importorskip("matplotlib", reason="pictures are an extra").use("Agg")
    axes = learned.plot()
    assert len(axes[0].lines[0].get_xdata()) == len(learned.history)


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimum", [-3.0, 0.0, 0.2, 2.5])
def test_the_bracketed_search_finds_the_minimum(optimum):
    found = line_search(lambda x: 1 + (x - optimum) ** 2, 0.7)
    assert abs(found - optimum) < 0.36


def test_tunable_parameters_of_an_expression():
    kernel = _with_weights(RBF(1.0) + Matern() + Linear())
    assert tunable(kernel) == [
        "left__left__gamma",
        "left__right__kernel__length_scale",
        "left__right__scale",
        "right__scale",
    ]


def test_columns_of_two_values_are_scaled_by_their_range():
    X = np.column_stack([np.r_[1.0, np.zeros(99)], np.arange(100.0), np.full(100, 7.0)])
    assert_allclose(column_scales(X), [1.0, 1 / np.arange(100.0).std(), 0.0])


def test_the_damped_metric_is_the_root(rng):
    G = np.cov(rng.normal(size=(4, 20)))
    B = damped(G)
    assert_allclose(B @ B.T @ (B @ B.T), G, rtol=1e-8)
    assert_allclose(damped(np.diagonal(G)) ** 4, np.diagonal(G))
