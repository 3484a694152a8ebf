"""KernelRegressor and KernelClassifier: tables in, calibrated answers out."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_friedman1
from sklearn.model_selection import cross_val_score

from mercer import RBF, KernelClassifier, KernelRegressor, load, save
from mercer.estimators.classifier import _calibrated, _expected_calibration_error
from mercer.tables import TableEncoder


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(900, 10, noise=1.0, random_state=0)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.fixture(scope="module")
def regressor(friedman):
    return KernelRegressor(n_rounds=4).fit(*friedman[:2])


def table(n=120, seed=0):
    """Numbers, categories, gaps and text; the price depends on size and town."""
    rng = np.random.default_rng(seed)
    town = rng.choice(["Rome", "Oslo", "Lima"], size=n)
    size = rng.uniform(20, 200, size=n)
    price = 3 * size + np.select([town == "Rome", town == "Oslo"], [100, 200], 0)
    frame = pd.DataFrame({"size": size, "town": town, "noise": rng.normal(size=n), "none": np.nan})
    frame.loc[::7, "noise"] = np.nan
    return frame, price + rng.normal(size=n)


def test_it_predicts_and_knows_how_well(friedman, regressor):
    _, _, X_new, y_new = friedman
    rmse = np.sqrt(np.mean((regressor.predict(X_new) - y_new) ** 2))
    assert regressor.score(X_new, y_new) > 0.88
    assert_allclose(regressor.leave_one_out_rmse_, rmse, rtol=0.15)
    assert regressor.exact_
    assert set(np.argsort(-regressor.feature_importances_)[:5]) == set(range(5))


def test_intervals_hold_what_they_promise(friedman, regressor):
    _, _, X_new, y_new = friedman
    value, std = regressor.predict(X_new, return_std=True)
    covered = np.mean(np.abs(value - y_new) <= 1.645 * std)
    # 600 rows to test on and 300 to learn from: two standard errors are 0.04.
    assert abs(covered - 0.9) < 0.06
    far = regressor.predict(X_new[:1] + 100, return_std=True)[1]
    assert far[0] > std.max()


def test_a_table_goes_in_as_it_is():
    X, y = table()
    model = KernelRegressor(n_rounds=3).fit(X, y)
    X_new, y_new = table(seed=1)
    assert model.score(X_new, y_new) > 0.98
    assert model.feature_importances_.shape == (4,)
    assert_allclose(model.feature_importances_.sum(), 1)
    assert model.feature_importances_[3] == 0
    X_new.loc[0, "town"] = "Paris"  # a category that was not there
    assert np.isfinite(model.predict(X_new)).all()


def test_ranks_are_taken_where_they_help_and_nowhere_else(rng, tmp_path):
    X = rng.lognormal(sigma=1.5, size=(250, 2))
    noise = 0.1 * rng.normal(size=250)
    by_order = KernelRegressor(n_rounds=2).fit(X[:200], np.sin(2 * np.log(X[:200, 0])))
    assert by_order.encoder_.ranks
    assert by_order.feature_importances_.shape == (2,)
    assert by_order.feature_importances_[0] > 0.7
    assert by_order.score(X[200:], np.sin(2 * np.log(X[200:, 0]))) > 0.8
    save(by_order, tmp_path / "model.mercer")
    assert_array_equal(load(tmp_path / "model.mercer").predict(X), by_order.predict(X))
    Z = rng.normal(size=(200, 2))
    by_value = KernelRegressor(n_rounds=2).fit(Z, Z.sum(axis=1) + noise[:200])
    assert not by_value.encoder_.ranks
    given = KernelRegressor(RBF([0.1, 0.1]), metric=None).fit(X[:50], noise[:50])
    assert given.encoder_.transform(X).shape == (250, 2)


def test_single_values_are_taken_where_they_help_and_nowhere_else(rng, tmp_path):
    X = np.column_stack([rng.integers(0, 8, size=400), rng.normal(size=400)])
    jumps = rng.permutation(np.arange(8.0))[X[:, 0].astype(int)] + X[:, 1]
    by_value = KernelRegressor(n_rounds=2).fit(X[:200], jumps[:200])
    assert len(by_value.encoder_.level_outputs_) == 8
    assert by_value.feature_importances_.shape == (2,)
    assert by_value.score(X[200:], jumps[200:]) > 0.99
    save(by_value, tmp_path / "model.mercer")
    assert_array_equal(load(tmp_path / "model.mercer").predict(X), by_value.predict(X))
    noise = 0.3 * rng.normal(size=200)
    smooth = KernelRegressor(n_rounds=2).fit(X[:200], X[:200].sum(axis=1) + noise)
    assert not len(smooth.encoder_.level_outputs_)


def test_several_targets_are_scaled_each(friedman):
    X, y = friedman[0][:100], friedman[1][:100]
    both = np.column_stack([y, 1000 * y])
    model = KernelRegressor(n_rounds=1).fit(X, both)
    value, std = model.predict(X, return_std=True)
    assert_allclose(value[:, 1], 1000 * value[:, 0], rtol=1e-6)
    assert std.shape == both.shape
    assert_allclose(model.predict(X), KernelRegressor(n_rounds=1).fit(X, both).predict(X))


@pytest.mark.parametrize("unit", [1e-310, 1e-200, 1e200])
def test_targets_of_any_size(rng, unit):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    groups = np.arange(60) // 5
    usual, scaled = (KernelRegressor(n_rounds=1).fit(X, t, groups=groups) for t in (y, unit * y))
    assert scaled.informative_
    given, expected = scaled.predict(X, return_std=True), usual.predict(X, return_std=True)
    tolerance = 1e-6 if unit > 1e-300 else 1e-4  # the smallest numbers have few digits
    for a, b in zip(given, expected):
        assert_allclose(a / unit, b, rtol=tolerance)
    assert_allclose(scaled.error_interval_ / unit, usual.error_interval_, rtol=tolerance)
    ratio = scaled.leave_one_out_rmse_ / unit
    assert_allclose(ratio, usual.leave_one_out_rmse_, rtol=tolerance)


@pytest.mark.parametrize("as_table", [np.asarray, pd.DataFrame], ids=["array", "frame"])
def test_rows_of_weight_zero_are_not_there(friedman, as_table):
    X, y, X_new, _ = friedman
    X, y, weights = as_table(X[:90]), y[:90].copy(), np.ones(90)
    y[:30], weights[:30] = 1e6, 0.0
    weighted = KernelRegressor(n_rounds=1).fit(X, y, sample_weight=weights)
    rest = KernelRegressor(n_rounds=1).fit(X[30:], y[30:])
    X_new = as_table(X_new)
    assert_array_equal(weighted.predict(X_new), rest.predict(X_new))
    assert_array_equal(np.sort(weighted.left_out_), np.arange(30, 90))


def test_weights_say_which_of_two_targets_counts(rng):
    x = np.repeat(rng.normal(size=(60, 1)), 2, axis=0)
    y, weights = np.tile([0.0, 4.0], 60), np.tile([3.5, 0.7], 60)
    model = KernelRegressor(RBF(), metric=None).fit(x, y, sample_weight=weights)
    assert_allclose(model.predict(x), 4 * 0.7 / 4.2, atol=0.3)
    classes = np.where(y > 0, "high", "low")
    P = KernelClassifier(RBF(), metric=None).fit(x, classes, sample_weight=weights)
    assert_allclose(P.predict_proba(x)[:, 0], 1 / 6, atol=0.1)
    with pytest.raises(ValueError, match="sample_weight must hold"):
        KernelRegressor().fit(x, y, sample_weight=[1.0])


def test_through_landmarks_where_they_are_asked_for(friedman):
    X, y, X_new, y_new = friedman
    model = KernelRegressor(n_rounds=1, solver="landmarks").fit(X, y)
    assert not model.exact_
    exact = KernelRegressor(n_rounds=1).fit(X, y)
    assert model.score(X_new, y_new) > exact.score(X_new, y_new) - 0.02


def test_classes_with_probabilities():
    X, y = load_wine(return_X_y=True)
    names = np.array(["red", "rose", "white"])[y]
    model = KernelClassifier(n_rounds=3).fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.94
    P = model.predict_proba(X[1::2])
    assert_allclose(P.sum(axis=1), 1)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X[1::2]))
    assert model.calibration_error_ < 0.1


def test_rows_that_are_left_out_of_the_shares_of_classes_are_calibrated():
    # Without a row of its own class, the share of the first is 106 / 199, below 8 / 15, an edge of
    # the bins; without one of the other it is 107 / 199, above.
    truth = (np.arange(200) >= 107).astype(int)
    first = (107 - (truth == 0)) / 199
    P = np.stack([first, 1 - first], axis=1)
    assert _expected_calibration_error(P, truth) < 0.01


def test_never_far_below_a_tuned_peer():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:300], y[:300]
    assert cross_val_score(KernelClassifier(n_rounds=2), X, y, cv=3).mean() > 0.93


def test_calibration_finds_the_temperature(rng):
    logits = 3 * rng.normal(size=(4000, 3))
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(3, p=p) for p in P])
    temperature, bias = _calibrated(logits / 5, truth)
    assert_allclose(temperature, 0.2, rtol=0.1)
    assert np.abs(bias).max() < 0.2
    assert _expected_calibration_error(P, truth) < 0.03
    assert _expected_calibration_error(P**0.2 / (P**0.2).sum(axis=1, keepdims=True), truth) > 0.1


@pytest.mark.parametrize("Model", [KernelRegressor, KernelClassifier])
def test_a_file_gives_the_model_back(Model, tmp_path):
    X, y = table()
    y = y if Model is KernelRegressor else np.where(y > 400, "dear", "cheap")
    model = Model(n_rounds=1).fit(X, y)
    save(model, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    assert_array_equal(again.predict(X), model.predict(X))
    assert str(again.learn_report_) == str(model.learn_report_)
    if Model is KernelRegressor:
        assert_array_equal(
            again.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1]
        )


def test_tensors_stay_where_they_are(xp, friedman):
    X, y = friedman[0][:80], friedman[1][:80]
    model = KernelRegressor(RBF(), n_rounds=1).fit(xp.asarray(X), xp.asarray(y))
    value, std = model.predict(xp.asarray(X), return_std=True)
    assert type(value) is type(std) is type(xp.asarray(X))
    high = y > np.median(y)
    for given, there in ((high, xp), (np.where(high, "up", "down"), np)):
        fitted = KernelClassifier(RBF(), n_rounds=0).fit(xp.asarray(X), given)
        labels = fitted.predict(xp.asarray(X))
        assert type(labels) is type(there.asarray(y))
    if xp is not np:
        with pytest.raises(ValueError, match="same namespace"):
            model.predict(X)


# --- bad input ------------------------------------------------------------------------------------


def test_a_constant_target_is_predicted_as_such(rng):
    X = rng.normal(size=(30, 2))
    value, std = KernelRegressor().fit(X, np.full(30, 7.0)).predict(X, return_std=True)
    assert_allclose(value, 7.0)
    assert np.isfinite(std).all()


def test_one_class_is_refused(rng):
    with pytest.raises(ValueError, match="1 class only, 'red'"):
        KernelClassifier().fit(rng.normal(size=(10, 2)), ["red"] * 10)


@pytest.mark.parametrize(
    ("labels", "message"),
    [(["a", "b", None], "no class in 10 of 30 rows"), (["a", 1, "b"], r"several types \(int, str")],
    ids=["missing", "mixed"],
)
def test_classes_that_cannot_be_told_apart_are_refused(rng, labels, message):
    y = np.array(labels * 10, dtype=object)
    with pytest.raises(ValueError, match=message):
        KernelClassifier().fit(rng.normal(size=(30, 2)), y)


def test_a_column_that_is_the_target(rng):
    y = rng.normal(size=100)
    X = np.column_stack([y, rng.normal(size=(100, 3))])
    model = KernelRegressor().fit(X, y)
    assert model.feature_importances_.argmax() == 0
    assert model.leave_one_out_rmse_ < 0.05


def test_many_categories_and_all_missing_columns(rng):
    n = 300
    X = pd.DataFrame(
        {
            "code": [f"c{i}" for i in rng.integers(100_000, size=n)],
            "none": [None] * n,
            "x": rng.normal(size=n),
        }
    )
    model = KernelRegressor(n_rounds=1).fit(X, X["x"].to_numpy() ** 2)
    assert np.isfinite(model.predict(X)).all()


def test_tens_of_thousands_of_categories_become_a_few_columns(rng):
    codes = np.concatenate([np.arange(20_000), rng.integers(20_000, size=4_000)])
    X = pd.DataFrame({"code": [f"item {i:05d}" for i in codes], "x": rng.normal(size=24_000)})
    Z = TableEncoder().fit_transform(X)
    assert Z.shape[1] < 30
    assert np.isfinite(Z).all()


HARD_TABLES = {
    "more columns than rows": lambda rng, y: pd.DataFrame(rng.normal(size=(40, 60))),
    "duplicated columns": lambda rng, y: pd.DataFrame(np.repeat(rng.normal(size=(40, 2)), 3, 1)),
    "a column that is the target": lambda rng, y: pd.DataFrame({"a": y, "b": rng.normal(size=40)}),
    "an empty column": lambda rng, y: pd.DataFrame({"a": np.nan, "b": rng.normal(size=40)}),
}


@pytest.mark.parametrize("hard", HARD_TABLES)
def test_hard_tables_get_probabilities(hard, rng):
    y = np.tile(["up", "down"], 20)
    X = HARD_TABLES[hard](rng, y)
    model = KernelClassifier(RBF(), n_rounds=1).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    if hard == "a column that is the target":
        assert model.leave_one_out_accuracy_ == 1


def test_more_columns_than_rows_and_duplicates(rng):
    X = rng.normal(size=(40, 60))
    X[:, 1] = X[:, 0]
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    assert np.isfinite(KernelRegressor(n_rounds=2).fit(X, y).predict(X)).all()


def test_random_states_of_numpy_say_what_is_drawn(rng):
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    first, same = (
        KernelRegressor(n_rounds=1, random_state=np.random.RandomState(3)).fit(X, y)
        for _ in range(2)
    )
    assert_array_equal(first.predict(X), same.predict(X))
    with pytest.raises(ValueError, match="stack must be True or False, got 'no'"):
        KernelRegressor(stack="no").fit(X, y)


def test_parameters_are_copied_and_nested():
    model = clone(KernelRegressor(RBF(0.3), metric="diagonal"))
    assert model.set_params(kernel__gamma=0.5).kernel == RBF(0.5)
    with pytest.raises(ValueError, match="metric must be"):
        KernelRegressor(metric="x").fit(*load_diabetes(return_X_y=True))


def test_free_text_that_says_nothing_is_left_out(rng):
    """Its many directions hid the columns that matter: accuracy 0.6 instead of 0.9."""
    words = ["lake", "hill", "north", "port", "field", "old", "saint", "river"]
    n = 200
    x = rng.uniform(size=(n, 2))
    names = [" ".join(rng.choice(words, size=4)) for _ in range(n)]
    table = pd.DataFrame({"name": names, "a": x[:, 0], "b": x[:, 1]})
    y = np.floor(3 * x[:, 0]) + 3 * np.floor(3 * x[:, 1])
    few = {"n_rounds": 2}
    model = KernelClassifier(**few).fit(table, y)
    assert "free text" in " ".join(model.encoder_.notes())
    assert "predicted better without" in " ".join(model.encoder_.notes())
    plain = KernelClassifier(**few).fit(table[["a", "b"]], y)
    assert_allclose(model.leave_one_out_accuracy_, plain.leave_one_out_accuracy_, atol=0.1)
    assert model.feature_importances_[0] == 0
    tells = np.array(["lake" in name for name in names])
    told = KernelClassifier(**few).fit(table, tells)  # and kept where it says something
    assert told.feature_importances_[0] > 0.5
