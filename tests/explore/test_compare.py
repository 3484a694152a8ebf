"""compare_kernels: its measures against their definitions, honest scores, an honest verdict."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.metrics
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, make_circles

from mercer import (
    RBF,
    Chi2,
    Chunks,
    Constant,
    FromFunction,
    KernelMap,
    Linear,
    Normalized,
    OnFeatures,
    Polynomial,
    Precomputed,
    Sigmoid,
    compare_kernels,
)
from mercer.explore.compare import measures, verdict
from mercer.explore.compare.scores import _predicted_classes, ridge_on, shrinkage
from mercer.explore.compare.tuning import _tunable_widths
from mercer.explore.compare.verdict import Contest, _paired_difference, limit
from mercer.rows import Training
from mercer.solve import Given, RidgeProblem, solve_ridge
from oracles import ridge_without_each_row

PICTURE = {"embeddings": ["kernel PCA"], "repeats": 1, "baselines": False}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def circles():
    """Two rings: hopeless for lines, easy for anything round."""
    return make_circles(200, factor=0.4, noise=0.08, random_state=0)


# --- measures against their definitions -----------------------------------------------------------


def _centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.5), Polynomial(2)], ids=repr)
def test_measures_are_those_of_the_kernel_matrix(kernel, iris):
    X, y = iris
    (space,) = compare_kernels(X, y, [kernel], tune=False, **PICTURE).spaces
    K = kernel(X)
    Kc, same = _centred(K), _centred((y[:, None] == y).astype(float))
    values = np.linalg.eigvalsh(Kc)
    assert_allclose(space.effective_dimension, values.sum() ** 2 / (values**2).sum(), rtol=1e-8)
    aligned = (Kc * same).sum() / np.linalg.norm(Kc) / np.linalg.norm(same)
    assert_allclose(space.alignment, aligned, rtol=1e-8)
    assert_allclose(space.self_similarity, (np.diag(K).min(), np.diag(K).max()), rtol=1e-10)
    assert_allclose(space.relative_variance, np.trace(Kc) / np.trace(K), rtol=1e-8)
    assert space.rank == KernelMap(kernel).fit(X).rank_
    n = len(space.spectrum)
    assert_allclose(space.spectrum, values[::-1][:n], rtol=1e-6, atol=1e-12 * values[-1])


def test_alignment_of_numbers(rng):
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, -2.0, 0.5]
    (space,) = compare_kernels(X, y, [Linear()], **PICTURE).spaces
    Kc, T = _centred(X @ X.T), _centred(np.outer(y, y))
    aligned = (Kc * T).sum() / np.linalg.norm(Kc) / np.linalg.norm(T)
    assert_allclose(space.alignment, aligned, rtol=1e-10)


def test_condition_is_that_of_a_well_conditioned_matrix(rng):
    X = rng.normal(size=(30, 4))
    (space,) = compare_kernels(X, None, [RBF(0.5)], **PICTURE).spaces
    values = np.linalg.eigvalsh(RBF(0.5)(X))
    assert_allclose(space.condition, values[-1] / values[0], rtol=1e-6)


def test_a_perfect_kernel_has_alignment_one(iris):
    _, y = iris
    same = (y[:, None] == y).astype(float)
    (space,) = compare_kernels(same, y, [Precomputed()], **PICTURE).spaces
    assert_allclose(space.alignment, 1.0, rtol=1e-10)
    assert_allclose(space.score, 1.0)


# --- scores ---------------------------------------------------------------------------------------


def test_rings_need_a_round_kernel_or_neighbours(circles):
    X, y = circles
    comparison = compare_kernels(X, y, {"line": Linear(), "ball": RBF(2.0)}, **PICTURE)
    line, ball = (next(s for s in comparison.spaces if s.name == n) for n in ("line", "ball"))
    assert ball.score > 0.95
    assert line.score < 0.7
    # Neighbours in a linear space are neighbours in the plane: they do well on rings. They are
    # shown, and do not decide.
    assert line.scores["nearest neighbours"].mean() > 0.9
    assert next(iter(line.scores)) == comparison.score_name == "accuracy"


def test_errors_along_the_path_are_those_of_refits(rng):
    X = rng.normal(size=(25, 3))
    Y = np.column_stack([np.sin(X[:, 0]) + 5, X[:, 1] * X[:, 2]])
    K, importance = RBF(0.3)(X), rng.uniform(1, 3, 25)
    path = ridge_on(K, Y, importance).choice
    F = np.linalg.cholesky(K + 1e-12 * np.eye(25))
    for alpha, error in zip(path.alphas[12::6], path.errors[12::6]):
        squares = (ridge_without_each_row(F, Y, alpha) ** 2).sum(axis=1)
        assert_allclose(error, importance @ squares / importance.sum(), rtol=1e-6)


def ridge_at(K, Y, alpha):
    """Ridge with an intercept on a kernel matrix, with a penalty that is given."""
    rule = Given(np.full(Y.shape[1], alpha))
    problem = RidgeProblem(Training.of(Precomputed(), K), Y, rule, intercept=True)
    return solve_ridge(problem, "direct")


def test_predictions_are_those_of_ridge(rng):
    from sklearn.linear_model import Ridge

    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(10, 3))
    y = X[:, 0] ** 2 + 7
    solution = ridge_on(X @ X.T, y[:, None])
    expected = Ridge(solution.choice.alpha).fit(X, y).predict(Z)
    assert_allclose(solution.prediction(Z @ X.T)[:, 0], expected, rtol=1e-8)


@pytest.mark.parametrize("priors", [None, [1 / 3] * 3])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
def test_classes_are_told_by_the_discriminant(alpha, priors, iris):
    from mercer import KernelDiscriminant

    X, y = iris
    rows = np.r_[0:50, 50:80, 100:120]  # classes of different sizes
    a, b = rows[::2], np.setdiff1d(np.arange(150), rows[::2])
    codes = np.unique(y, return_inverse=True)[1]
    kernel = RBF(0.2)
    Y = np.eye(3)[codes[a]]
    solution, K_new = ridge_at(kernel(X[a]), Y, alpha), kernel(X[b], X[a])
    found = _predicted_classes(solution, Y, K_new, balanced=priors is not None)
    model = KernelDiscriminant(
        kernel=kernel, shrinkage=shrinkage(kernel(X[a]), codes[a], alpha), priors=priors
    ).fit(X[a], codes[a])
    assert np.array_equal(found, model.predict(X[b]))


def test_full_rank_kernels_do_not_choose_the_smallest_penalty():
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    comparison = compare_kernels(X[:200], y[:200], [RBF()], **PICTURE)
    assert comparison.spaces[0].score > 0.3


def test_the_best_model_predicts_like_the_comparison(rng):
    X = rng.normal(size=(80, 2))
    y = np.sin(X[:, 0]) + 3
    comparison = compare_kernels(X, y, [RBF()], **PICTURE)
    space = comparison.spaces[0]
    K = space.kernel(X)
    expected = ridge_at(K, y[:, None], space.alpha).prediction(K)[:, 0]
    assert_allclose(comparison.best_model().predict(X), expected, rtol=1e-5)
    made = {"X": X, "y": y}
    exec(comparison.code(), made)
    assert_allclose(made["model"].predict(X), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="no model 'other'"):
        comparison.best_model("other")


def test_the_best_model_takes_a_table_as_it_is(rng):
    n = 90
    table = pd.DataFrame(
        {"age": rng.normal(size=n), "town": rng.choice(["Rome", "Oslo"], n), "id": np.arange(n)}
    )
    y = pd.Series(np.where(table["age"] > 0, "yes", "no"), name="bought")
    comparison = compare_kernels(table, y, [Linear(), RBF()], **PICTURE)
    assert comparison.target_name == "bought"
    assert set(comparison.best_model().predict(table.head())) <= {"yes", "no"}
    assert any("identifiers" in note for note in comparison.notes)
    made = {"X": table, "y": y}
    exec(comparison.code(), made)
    assert np.array_equal(made["model"].predict(table), comparison.best_model().predict(table))


def test_only_open_widths_are_tuned():
    assert _tunable_widths(RBF()) == ["gamma"]
    assert _tunable_widths(RBF(0.5)) == []
    assert _tunable_widths(Linear()) == []
    assert len(_tunable_widths(RBF() + Polynomial(2))) == 2


def test_scores_do_not_depend_on_the_scale_of_a_kernel(iris):
    X, y = iris
    kernels = {"k": Polynomial(3), "tiny": 1e-14 * Polynomial(3)}
    options = PICTURE | {"embeddings": ["kernel PCA", "discriminant"]}
    comparison = compare_kernels(X, y, kernels, **options)
    k, tiny = (next(s for s in comparison.spaces if s.name == name) for name in kernels)
    for method in k.scores:
        assert_allclose(tiny.scores[method], k.scores[method])
    for name, Z in k.embeddings.items():
        assert_allclose(tiny.embeddings[name], Z, rtol=1e-4, atol=1e-6 * np.abs(Z).max())


def test_random_labels_score_like_chance(rng):
    """Whatever leaks from new rows into the fit would show here."""
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    (space,) = compare_kernels(X, y, [RBF(0.5)], **PICTURE).spaces
    for folds in space.scores.values():
        assert abs(folds.mean() - 0.5) < 4 * 0.5 / 300**0.5


def test_numbers_are_predicted(rng):
    X = rng.uniform(-3, 3, size=(200, 1))
    y = np.sin(2 * X[:, 0]) + 5
    comparison = compare_kernels(X, y, {"line": Linear(), "ball": RBF(2.0)}, **PICTURE)
    assert comparison.task == "regression"
    assert [space.name for space in comparison.spaces] == ["ball", "line"]
    assert comparison.spaces[0].score > 0.99
    assert comparison.spaces[1].score < 0.5
    assert "discriminant" not in comparison.spaces[0].embeddings


def test_small_lessons_are_disjoint(iris):
    X, y = iris
    comparison = compare_kernels(X, y, [RBF()], cv=6, train_size=15, **PICTURE)
    (space,) = comparison.spaces
    assert len(space.folds) == 6
    assert len(comparison.data.folds[0][0]) == 15
    assert comparison.contest.overlap == 0
    with pytest.raises(ValueError, match="train_size must be an integer from 3 to 25"):
        compare_kernels(X, y, [RBF()], cv=6, train_size=40)


# --- the verdict ----------------------------------------------------------------------------------


def test_the_same_kernel_twice_is_a_tie(iris):
    X, y = iris
    comparison = compare_kernels(X, y, {"one": RBF(0.1), "other": RBF(0.1)}, **PICTURE)
    assert comparison.headline == "one and other cannot be told apart on these 150 rows."
    assert "within the noise" in comparison.recommendation
    assert comparison.table["within_noise_of_best"].tolist() == [True, True]


def test_a_clear_winner_is_named(circles):
    X, y = circles
    kernels = {"ball": RBF(2.0), "nothing": Constant()}
    comparison = compare_kernels(X, y, kernels, **PICTURE)
    assert comparison.headline == "ball predicts best on these 200 rows."
    assert "beyond the noise" in comparison.recommendation


def test_paired_difference_is_a_t_interval():
    from scipy.stats import t

    a, b = np.array([0.9, 0.8, 0.95, 0.85]), np.array([0.7, 0.7, 0.8, 0.9])
    d = a - b
    seen = _paired_difference(a, b, overlap=1 / 3)
    assert_allclose(seen.mean, d.mean())
    expected = t.ppf(0.975, 3) * d.std(ddof=1) * np.sqrt(1 / 4 + 1 / 3)
    assert_allclose(seen.margin, expected)
    assert seen.within_noise
    assert not _paired_difference(a, a - 0.1, overlap=1 / 3).within_noise
    assert _paired_difference([1.0], [0.0], 0.0).within_noise  # one fold tells nothing


class Rows(list):
    """As many rows as numbers, with folds."""

    def __init__(self, n, folds=(), groups=None):
        super().__init__(range(n))
        self.folds, self.groups = list(folds), groups


def contest_of(*scores):
    """Kernels with these scores, on four fifths of 100 rows."""
    spaces = [SimpleNamespace(is_kernel=True, folds=s, score=s.mean()) for s in scores]
    n = np.arange(100)
    return Contest(spaces, [], Rows(100, [(n[:80], n[80:]), (n[20:], n[:20])]))


def test_overlap_is_that_of_training_sets():
    n = np.arange(10)
    assert Contest([], [], Rows(10, [(n[:8], n[8:]), (n[2:], n[:2])])).overlap == 0.25
    assert Contest([], [], Rows(10, [(n[:3], n[3:]), (n[3:6], n[6:])])).overlap == 0.0


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (RBF(1e4), "nearly every point is alone"),
        (RBF(1e-7), "nearly alike"),
        (Sigmoid(0.01, -0.5), "is not a kernel on this data"),
    ],
    ids=repr,
)
def test_what_is_wrong_with_a_kernel_is_said(kernel, words, iris):
    X, y = iris
    comparison = compare_kernels(X, y, {"it": kernel}, **PICTURE)
    assert words in comparison.recommendation


def test_long_points_are_named_only_where_they_dominate(rng):
    X = rng.normal(size=(200, 2))
    assert compare_kernels(X, None, [Linear()], **PICTURE).spaces[0].findings == []
    heavy = X * np.exp(2 * rng.normal(size=(200, 1)))
    (space,) = compare_kernels(heavy, None, [Linear()], **PICTURE).spaces
    assert "dominated by a few long points" in space.findings[0]


def test_advice_names_only_what_a_kernel_has(rng):
    X = np.eye(40)
    (space,) = compare_kernels(X, None, [Linear()], **PICTURE).spaces
    assert "alone" in space.findings[0]
    assert "gamma" not in space.findings[0]


def test_noise_is_not_called_predictable(rng):
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    options = PICTURE | {"baselines": True, "embeddings": []}
    comparison = compare_kernels(X, y, [Linear(), RBF()], **options)
    assert comparison.headline.startswith("No kernel is shown to predict the target")
    names = [baseline.name for baseline in comparison.baselines]
    assert names == ["most frequent class", "logistic regression", "gradient boosting"]


def test_one_kernel_alone_is_not_called_predictive(rng):
    X = rng.normal(size=(80, 2))
    y = X[:, 0] * X[:, 1] > 0
    options = {"cv": 2, "repeats": 1, "embeddings": []}
    alone = compare_kernels(X, y, [Linear()], baselines=False, **options)
    assert alone.headline.endswith("on these 80 rows; nothing was compared with it.")
    assert "predicts" not in alone.headline


def test_a_rare_class_is_judged_like_the_others(rng):
    """Always answering the frequent class is worth one half, not 97 %."""
    y = np.where(np.arange(200) < 6, "fraud", "fine")
    options = PICTURE | {"baselines": True, "scoring": "balanced_accuracy"}
    comparison = compare_kernels(rng.normal(size=(200, 2)), y, [Linear()], **options)
    constant = comparison.baselines[0]
    assert_allclose(constant.score, 0.5, atol=0.02)
    assert constant.scores["accuracy"].mean() > 0.95
    assert "priors=[1 / 2] * 2" in comparison.code("Linear()")


def test_the_ranking_measure_is_that_of_fit(rng):
    """A kernel that finds the rare class at the price of the frequent one is not the best."""
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + 1.2 * rng.normal(size=300) > 1.9, "rare", "usual")
    options = PICTURE | {"baselines": True}
    by_rows = compare_kernels(X, y, [RBF(), Linear()], **options)
    by_classes = compare_kernels(X, y, [RBF(), Linear()], scoring="balanced_accuracy", **options)
    assert (by_rows.score_name, by_classes.score_name) == ("accuracy", "balanced accuracy")
    assert "as in mercer fit" in by_rows.score_meaning
    # What is recommended is right about as often as the frequent class is, and not for half.
    constant = by_rows.baselines[0].score
    assert all(space.score > constant - 0.03 for space in by_rows.spaces)
    assert by_classes.spaces[0].scores["accuracy"].mean() < constant - 0.1
    shares = [np.mean(c.best_model("RBF()").predict(X) == "rare") for c in (by_rows, by_classes)]
    assert shares[0] < np.mean(y == "rare") < shares[1]


def test_folds_are_as_many_as_asked_for_and_rare_classes_are_named(rng):
    y = np.array(["rare"] * 3 + ["common"] * 57)
    comparison = compare_kernels(rng.normal(size=(60, 2)), y, [Linear()], cv=10, **PICTURE)
    assert len(comparison.data.folds) == 10
    assert any("'rare' (3)" in note for note in comparison.notes)
    with pytest.raises(ValueError, match="cv=20 folds need at least 20 rows"):
        compare_kernels(rng.normal(size=(10, 2)), rng.normal(size=10), [Linear()], cv=20)


def test_a_group_has_no_better_score_outside_than_inside():
    rng = np.random.default_rng(0)
    best = rng.normal(0.8, 0.05, 10)
    noisy, steady = best - 0.05 + rng.normal(0, 0.2, 10), best - 0.02 + rng.normal(0, 0.001, 10)
    # steady is clearly worse than best, noisy is not, and noisy has the lower score
    noisy += steady.mean() - 0.01 - noisy.mean()
    contest = contest_of(best, steady, noisy)
    assert contest.beats(*contest.valid[:2])
    assert len(contest.group) == 3
    assert len(contest_of(best, best - 0.2 + rng.normal(0, 0.001, 10)).group) == 1


def test_more_models_need_larger_differences():
    from scipy.stats import t

    assert_allclose(limit(2, 9), t.ppf(0.975, 9))
    assert limit(2, 9) < limit(3, 9) < limit(8, 9)


def test_no_picture_is_needed(iris):
    X, y = iris
    comparison = compare_kernels(X, y, [Linear()], **(PICTURE | {"embeddings": []}))
    assert "<table>" in comparison._repr_html_()
    assert comparison.to_html().startswith("<!DOCTYPE html>")


def test_a_good_kernel_is_left_alone(iris):
    X, y = iris
    assert compare_kernels(X, y, [RBF(0.5)], **PICTURE).spaces[0].findings == []


def test_what_is_no_kernel_comes_last_however_it_scores(iris):
    X, y = iris
    kernels = {"refuted": Sigmoid(0.01, -0.5), "weak": Constant()}
    comparison = compare_kernels(X, y, kernels, **PICTURE)
    assert [space.name for space in comparison.spaces] == ["weak", "refuted"]
    assert comparison.spaces[1].validity == measures.REFUTED
    assert comparison.spaces[1].score > comparison.spaces[0].score


def test_without_a_target_nothing_is_ranked(iris):
    X, _ = iris
    kernels = {"b": RBF(1.0), "a": Linear()}
    comparison = compare_kernels(X, None, kernels, **PICTURE)
    assert [space.name for space in comparison.spaces] == ["b", "a"]
    assert comparison.headline.startswith("Without a target")
    assert "score" not in comparison.table
    assert not comparison.held_out.any()


def test_nan_scores_do_not_win():
    assert verdict._known(float("nan")) == -np.inf


# --- input ----------------------------------------------------------------------------------------


def test_names_of_kernels(iris):
    X, y = iris
    names = [s.name for s in compare_kernels(X, y, ["rbf", Linear()], **PICTURE).spaces]
    assert sorted(names) == ["Linear()", "RBF()"]
    assert len(compare_kernels(X, y, **PICTURE).spaces) == 5
    with pytest.raises(ValueError, match="listed twice"):
        compare_kernels(X, y, [RBF(), "rbf"])
    with pytest.raises(ValueError, match="no kernels"):
        compare_kernels(X, y, [])


def _counts(words):
    return np.array([[word.count(c) for c in "ab"] for word in words], dtype=float)


def _shared(a, b):
    return float(len(set(a) & set(b)))


def test_any_points_that_kernels_take(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    expected = compare_kernels(X, y, [Linear()], **PICTURE).spaces[0].folds
    for same in (frame, scipy.sparse.csr_array(X), scipy.sparse.csr_matrix(X)):
        found = compare_kernels(same, list(y), [Linear()], **PICTURE).spaces[0]
        assert_allclose(found.folds, expected)
    words = ["ab" * (i % 5 + 1) if i % 2 else "bb" * (i % 5 + 1) for i in range(40)]
    kinds = np.array([w[0] for w in words])
    kernels = {"counts": OnFeatures(Linear(), _counts), "shared": FromFunction(_shared)}
    comparison = compare_kernels(words, kinds, kernels, **PICTURE)
    assert comparison.spaces[0].score == 1.0


def test_a_gram_matrix_gives_what_its_kernel_gives(iris):
    X, y = iris
    # Rows of iris are often equally far from each other, and rounding would choose the neighbour.
    X = X + np.random.default_rng(0).normal(scale=0.01, size=X.shape)
    kernel = RBF(0.3)
    direct = compare_kernels(X, y, {"k": kernel}, **PICTURE).spaces[0]
    gram = compare_kernels(kernel(X), y, {"k": Precomputed()}, **PICTURE).spaces[0]
    for method, folds in direct.scores.items():
        assert_allclose(gram.scores[method], folds)
    assert_allclose(gram.alignment, direct.alignment, rtol=1e-8)
    assert gram.validity == measures.NOT_REFUTED


def test_large_data_are_sampled_and_that_is_said(rng):
    X = rng.normal(size=(5000, 3))
    y = np.where(np.arange(5000) < 10, "rare", "common")
    comparison = compare_kernels(X, y, [Linear()], max_points=200, **PICTURE)
    assert len(comparison) == 200
    assert (comparison.target == "rare").sum() >= 2
    assert np.all(y[comparison.rows] == comparison.target)
    assert any("200 of 5000 rows" in note for note in comparison.notes)


def test_rows_that_cannot_be_used_are_left_out_and_that_is_said(iris):
    X, y = iris
    y = y.astype(object)
    y[[0, 1]], y[5] = None, "alone"
    comparison = compare_kernels(X, y, [Linear()], **PICTURE)
    assert len(comparison) == len(X) - 3
    assert not {0, 1, 5} & set(comparison.rows)
    assert any("2 rows without a target" in note for note in comparison.notes)
    assert any("1 rows that are alone" in note for note in comparison.notes)


def test_many_whole_numbers_are_numbers(rng):
    X = rng.normal(size=(200, 2))
    for y, noted in ((np.arange(200) % 30, True), (np.arange(200), False)):
        comparison = compare_kernels(X, y, [Linear()], **PICTURE)
        assert comparison.task == "regression"
        doubt = "30 different whole numbers, read as numbers (task='classification'"
        assert any(doubt in note for note in comparison.notes) == noted


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": np.ones(150)}, "one class only"),
        ({"y": np.ones(3)}, "one value for each of the 150 rows"),
        ({"task": "guess"}, "task must be"),
        ({"scoring": "auc"}, "scoring must be one of auto, accuracy"),
        ({"scoring": "r2"}, "scoring='r2' is for numbers, and the target holds classes"),
        ({"task": "regression"}, "needs a numeric target"),
        ({"cv": 1}, "cv must be"),
        ({"max_points": 3}, "max_points must be"),
        ({"embeddings": ["umap"]}, "embeddings must be"),
        ({"embeddings": "kernel PCA"}, "embeddings must be"),
        ({"kernels": {"mine": Chi2()}, "X": -np.ones((150, 2))}, "mine: "),
        ({"kernels": [Linear(), Precomputed()]}, "cannot share one X"),
        ({"kernels": [Precomputed()]}, "square Gram matrix"),
        ({"image_shape": (3, 3)}, "needs 9 values"),
        ({"samples": ["a"]}, "samples has 1 entries"),
        ({"X": np.ones((3, 2)), "y": None}, "too few"),
        ({"kernels": ["rbff"]}, "Did you mean"),
    ],
)
def test_bad_input_is_refused_with_a_reason(change, words, iris):
    X, y = iris
    arguments = {"X": X, "y": y, "kernels": [Linear()]} | change
    with pytest.raises(ValueError, match=words):
        compare_kernels(**arguments)


def test_nothing_is_fitted_before_all_kernels_are_checked(iris, monkeypatch):
    X, y = iris

    def never(*_):
        raise AssertionError("work was done before the bad kernel was found")

    monkeypatch.setattr("mercer.explore.compare.comparing.measure", never)
    with pytest.raises(ValueError, match="bad"):
        compare_kernels(-X, y, {"good": RBF(), "bad": Chi2()})


# --- embeddings -----------------------------------------------------------------------------------


def test_tsne_keeps_the_classes_of_new_points_together(iris):
    pytest.importorskip("openTSNE")
    X, y = iris
    comparison = compare_kernels(X, y, [RBF(0.5)], embeddings=["t-SNE"], repeats=1, baselines=False)
    Z = comparison.embeddings["RBF(gamma=0.5)"]["t-SNE"]
    near = np.linalg.norm(Z[:, None] - Z[None], axis=2) + 1e9 * np.eye(len(Z))
    same = y[near.argmin(axis=1)] == y
    assert same[comparison.held_out].mean() > 0.85


def test_pictures_are_fitted_to_one_half(iris):
    """Changing new rows must not move the fitted ones."""
    X, y = iris
    embeddings = ["kernel PCA", "discriminant"]
    first = compare_kernels(
        X, y, {"k": RBF(0.5)}, embeddings=embeddings, repeats=1, baselines=False
    )
    changed = X.copy()
    changed[first.held_out] += 3.0
    second = compare_kernels(
        changed, y, {"k": RBF(0.5)}, embeddings=embeddings, repeats=1, baselines=False
    )
    fitted = ~first.held_out
    assert 0.4 < fitted.mean() < 0.6
    for name in embeddings:
        Z, W = first.embeddings["k"][name], second.embeddings["k"][name]
        assert_allclose(W[fitted], Z[fitted], atol=1e-8 * np.abs(Z).max())
        assert np.abs(W - Z)[~fitted].max() > 1e-3


@pytest.mark.parametrize("sizes", [(30, 30), (5, 50), (2, 40), (7, 3, 20)])
def test_both_halves_of_a_picture_hold_every_class(sizes, rng):
    y = np.repeat(np.arange(len(sizes)), sizes)
    for order in (np.arange(len(y)), rng.permutation(len(y)), np.argsort(np.arange(len(y)) % 7)):
        comparison = compare_kernels(rng.normal(size=(len(y), 2)), y[order], [Linear()], **PICTURE)
        fitted = np.bincount(comparison.target[~comparison.held_out], minlength=len(sizes))
        assert np.all(np.abs(fitted - np.array(sizes) / 2) <= 0.5)


def test_a_lesson_may_lack_a_class(rng):
    y = np.array(["rare"] * 3 + ["common"] * 97)
    X = rng.normal(size=(100, 2)) + 5 * (y == "rare")[:, None]
    (space,) = compare_kernels(X, y, [RBF(0.5)], cv=5, train_size=4, **PICTURE).spaces
    assert space.scores["accuracy"].mean() > 0.9


def test_flat_spaces_can_be_looked_at(iris):
    X, y = iris
    comparison = compare_kernels(X, y, {"flat": Constant(), "line": Linear() * 0.0 + 1}, repeats=1)
    for embeddings in comparison.embeddings.values():
        assert all(np.isfinite(Z).all() for Z in embeddings.values())
    compare_kernels(np.ones((40, 2)), np.arange(40) % 2, [RBF(0.5)], cv=3, repeats=1)  # no warning


# --- what comes out -------------------------------------------------------------------------------


def test_table_and_records_agree(iris):
    X, y = iris
    comparison = compare_kernels(X, y, [RBF(0.1), Normalized(Linear())], **PICTURE)
    table = comparison.table
    assert table.index.tolist() == [1, 2]
    assert table["score"].is_monotonic_decreasing
    assert table["kernel"].tolist() == [space.name for space in comparison.spaces]
    expected = {
        "kernel",
        "model",
        "score",
        "interval",
        "balanced_accuracy",
        "accuracy",
        "nearest_neighbours",
        "within_noise_of_best",
        "alignment",
        "tuned",
        "alpha",
        "tuned_kernel",
        "rank",
        "effective_dimension",
        "self_similarity_min",
        "self_similarity_max",
        "condition",
        "valid",
        "fit_seconds",
    }
    assert set(table.columns) == expected


def test_the_same_seed_gives_the_same_answer(iris):
    X, y = iris
    first, second = (compare_kernels(X, y, [RBF()], **PICTURE) for _ in range(2))
    assert first.recommendation == second.recommendation
    assert_allclose(
        first.embeddings["RBF()"]["kernel PCA"], second.embeddings["RBF()"]["kernel PCA"]
    )


def test_progress_is_told(iris):
    X, y = iris
    told = []
    compare_kernels(X, y, [RBF(), Linear()], callback=lambda *step: told.append(step), **PICTURE)
    done, total, _ = told[-1]
    assert done == total == 2 * (1 + 5 + 1)
    assert [step[0] for step in told] == sorted(step[0] for step in told)


def test_one_column_has_every_embedding(rng):
    """A linear kernel has one coordinate there, and t-SNE begins with two."""
    x = rng.normal(size=(20, 1))
    comparison = compare_kernels(x, x[:, 0] ** 2, [Linear()], repeats=1, baselines=False)
    for embedding in comparison.embeddings["Linear()"].values():
        assert embedding.shape == (20, 2)
        assert np.isfinite(embedding).all()


# --- rows that are not independent ----------------------------------------------------------------


def test_one_column_and_three_classes_have_discriminant_axes(iris):
    X, y = iris
    comparison = compare_kernels(
        X[:, :1], y, [Linear(), RBF()], embeddings=["discriminant"], cv=3, repeats=1
    )
    assert comparison.embeddings["Linear()"]["discriminant"].shape == (150, 2)


def test_groups_are_never_divided(rng):
    groups = np.array(list("abcdefghij"))[rng.integers(0, 10, 80)]
    X, y = rng.normal(size=(80, 2)), rng.normal(size=80)
    options = {"groups": groups, "repeats": 3, "embeddings": [], "baselines": False}
    comparison = compare_kernels(X, y, [Linear()], **options)
    sample = comparison.data
    assert len(sample.folds) == 15
    for training, new in sample.folds:
        assert not set(groups[training]) & set(groups[new])
        assert 8 <= len(new) <= 26
    assert comparison.contest.degrees == 9
    for bad, message in (
        (groups[:5], "one label for each of the 80 rows"),
        (np.repeat([0, 1], 40), "2 different labels in the 80 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_kernels(X, y, [Linear()], groups=bad)
    five = np.repeat([0, 1, 2, 3, 4], 16)
    with pytest.raises(ValueError, match="4 different labels in the 64 rows that are compared"):
        compare_kernels(X, np.where(five == 4, np.nan, y), [Linear()], groups=five)
    with pytest.raises(ValueError, match="do not go together"):
        compare_kernels(X, y, [Linear()], groups=groups, train_size=5)


def grouped(rng):
    """Ten rows each of 12 groups: points nearby, and one coin for the target of a group."""
    group = np.repeat(np.arange(12), 10)
    X = 3 * rng.normal(size=(12, 3))[group] + 0.3 * rng.normal(size=(120, 3))
    return X, rng.normal(size=12)[group] + 0.3 * rng.normal(size=120), group


def test_groups_keep_nonsense_from_looking_certain():
    """Nothing predicts the target of another group; with groups the scores say so."""
    claims = {False: 0, True: 0}
    for seed in range(8):
        X, y, group = grouped(np.random.default_rng(seed))
        for told in claims:
            comparison = compare_kernels(
                X,
                y,
                [Linear(), RBF(0.1)],
                groups=group if told else None,
                embeddings=[],
                baselines=False,
                repeats=2,
            )
            claims[told] += comparison.spaces[0].score > 0.3
    assert claims[False] == 8
    assert claims[True] <= 1


@pytest.mark.parametrize("order", ["any", "sorted", "series"])
def test_rows_that_follow_each_other_are_noticed(rng, order):
    X = rng.normal(size=(120, 3))
    if order == "series":
        X = np.cumsum(X, axis=0)
    y = X[:, 0] + rng.normal(size=120)
    if order == "sorted":
        X, y = X[np.argsort(y)], np.sort(y)
    comparison = compare_kernels(X, y, [Linear()], embeddings=[], baselines=False, repeats=1)
    assert any("follow each other" in note for note in comparison.notes) == (order == "series")
    assert ("follow each other" in str(comparison.notes)) == (order == "series")


def test_few_rows_have_few_degrees_of_freedom(rng):
    a, b = rng.normal(size=30), rng.normal(size=30)
    whole, few = _paired_difference(a, b, 0.25), _paired_difference(a, b, 0.25, most=7)
    assert few.mean == whole.mean
    assert few.margin == pytest.approx(whole.margin * 2.3646 / 2.0452, rel=1e-4)
    assert Contest([], [], Rows(30)).degrees == 7
    assert Contest([], [], Rows(30, groups=np.repeat(np.arange(6), 5))).degrees == 5


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_numpy_matrix_is_an_array(rng):
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    given = {"kernels": [Linear()], "embeddings": [], "baselines": False, "repeats": 1}
    of_matrix, of_array = (compare_kernels(A, y, **given) for A in (np.matrix(X), X))
    assert of_matrix.spaces[0].score == of_array.spaces[0].score


@pytest.mark.parametrize("source", ["stream", "pairs", "dask"])
def test_rows_come_from_any_source(source, rng):
    da = pytest.importorskip("dask.array")
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    parts = list(zip(np.array_split(X, 3), np.array_split(y, 3)))
    given = {
        "stream": lambda: (Chunks(lambda: iter(np.array_split(X, 3))), y),
        "pairs": lambda: (Chunks(lambda: iter(parts)), None),
        "dask": lambda: (da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=20)),
    }[source]()
    options = {"kernels": ["linear"], "embeddings": [], "baselines": False, "repeats": 1}
    found, expected = (compare_kernels(*rows, **options) for rows in (given, (X, y)))
    assert_allclose(found.spaces[0].folds, expected.spaces[0].folds)


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "r2"])
def test_scores_with_groups_of_any_size_are_those_of_the_rows(scoring):
    """One group has three quarters of the rows, and a few small ones have all of a rare class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    groups = np.r_[np.zeros(90), 1 + np.arange(30) // 5].astype(int)
    y: Any = X[:, 0] + 2.0 * (groups == 0) + 0.3 * rng.normal(size=120)
    measure = sklearn.metrics.r2_score
    if scoring != "r2":
        y = np.where(groups > 4, "rare", "often")
        X[:, 0] += 2.0 * (y == "rare")
        measure = getattr(sklearn.metrics, f"{scoring}_score")
    options: Any = {"scoring": scoring, "groups": groups, "repeats": 1, "embeddings": []}
    comparison = compare_kernels(X, y, [Linear(), RBF(1.0)], **options)
    truth = y if scoring == "r2" else comparison.codes
    for model in (*comparison.spaces, *comparison.baselines):
        assert model.score == pytest.approx(measure(truth, model.predicted), abs=1e-12)
    assert comparison.contest.overlap == pytest.approx(1 / 4)
    assert "each trained on 30 to 115 rows" in comparison.recommendation
