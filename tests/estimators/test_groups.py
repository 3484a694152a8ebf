"""Rows in groups: values of a category that the fit has not seen, and errors out of group."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from mercer import KernelClassifier, KernelRegressor, load, save
from mercer.tables import TableEncoder, encoder_tools

QUICK = {"n_rounds": 1, "max_landmarks": 100}


@pytest.fixture(scope="module")
def countries():
    """60 countries with 15 rows each; the effect of a country is ten times the noise."""
    rng = np.random.default_rng(0)
    country = np.repeat([f"land {j:02}" for j in range(60)], 15)
    effect = np.repeat(rng.normal(scale=10, size=60), 15)
    x = rng.normal(size=900)
    table = pd.DataFrame({"country": country, "x": x})
    return table, effect + 2 * x + rng.normal(size=900)


@pytest.fixture(scope="module")
def model(countries):
    table, y = countries
    known = table["country"] < "land 40"
    return KernelRegressor(**QUICK).fit(table[known], y[known])


def test_unseen_values_are_noted_and_widen_the_interval(model, countries):
    table, y = countries
    new = (table["country"] >= "land 40").to_numpy()
    notes = model.encoder_.unknown_values(table[new])
    unseen = "values that the training table does not have"
    assert notes == [f"{unseen}: 'land 40' in country (300 rows)"]
    value, std = model.predict(table[new], return_std=True)
    inside = np.abs(y[new] - value) <= 1.645 * std
    assert 0.75 < inside.mean() <= 1.0
    # Known countries keep their narrow intervals.
    value, known_std = model.predict(table[~new], return_std=True)
    assert known_std.max() < std.min() / 3
    assert 0.85 < np.mean(np.abs(y[~new] - value) <= 1.645 * known_std) < 0.97
    assert model.encoder_.unknown_values(table[~new]) == []


def test_rare_values_are_not_called_unseen(countries):
    table, y = countries
    some = table.copy()
    some.loc[some.index[:3], "country"] = "islet"
    encoder, _ = encoder_tools.add_target_encoding(TableEncoder().fit(some), some, y[:, None])
    assert encoder.unknown_values(some) == []
    assert list(encoder_tools.unseen_values(encoder, some)) == []


def test_unseen_values_of_few_categories_widen_the_interval():
    rng = np.random.default_rng(0)
    effect, n = {"a=b": -2, "c": 0, "d": 1, "e": 3}, 160
    table = pd.DataFrame({"kind": rng.choice([*effect], n), "kind=a": rng.choice(["b", "c"], n)})
    table["x"] = rng.normal(size=n)
    y = table["kind"].map(effect).to_numpy() + table["x"].to_numpy() + 0.2 * rng.normal(size=n)
    y = y + (table["kind=a"] == "b")
    model = KernelRegressor(**QUICK).fit(table, y)
    new = table[:30].assign(kind="new")
    known = np.array([model.predict(new.assign(kind=kind)) for kind in effect])
    value, std = model.predict(new, return_std=True)
    spread = np.sqrt((4 + 1) / (4 - 1) * ((known - value) ** 2).mean(axis=0))
    assert (std > 0.99 * spread).all()
    assert (model.predict(table, return_std=True)[1] < 0.2 * std.min()).all()
    # Every row by itself, and with two unseen values.
    both = new.assign(**{"kind=a": "?"})
    mixed = pd.concat([new[:1], table[:1], both[:1]])
    alone = [model.predict(mixed[i : i + 1], return_std=True)[1][0] for i in range(3)]
    assert_allclose(model.predict(mixed, return_std=True)[1], alone)
    assert alone[2] > alone[0]
    classifier = KernelClassifier(**QUICK).fit(table, y > 1)
    known = [classifier.predict_proba(new.assign(kind=kind)) for kind in effect]
    assert_allclose(classifier.predict_proba(new), np.mean(known, axis=0))


def test_saved_models_widen_alike(model, countries, tmp_path):
    table, _ = countries
    save(model, tmp_path / "m.mercer")
    there = load(tmp_path / "m.mercer").predict(table[-30:], return_std=True)
    for a, b in zip(there, model.predict(table[-30:], return_std=True)):
        assert_allclose(a, b)


def test_probabilities_of_unseen_values_are_less_sure(countries):
    table, _ = countries
    rng = np.random.default_rng(1)
    inclined = np.repeat(rng.random(60) < 0.5, 15)
    y = np.where(inclined, "yes", "no")
    known = (table["country"] < "land 40").to_numpy()
    model = KernelClassifier(**QUICK).fit(table[known], y[known])
    sure = model.predict_proba(table[known]).max(axis=1).mean()
    unsure = model.predict_proba(table[~known]).max(axis=1).mean()
    assert sure > 0.95
    assert unsure < 0.75


def test_errors_out_of_group_are_those_of_new_groups(countries, model):
    table, y = countries
    known = (table["country"] < "land 40").to_numpy()
    groups = table["country"][known]
    X = table[["x"]]
    honest = KernelRegressor(**QUICK).fit(X[known], y[known], groups=groups)
    assert honest.validation_ == "5 folds of 40 groups"
    realised = np.sqrt(np.mean((honest.predict(X[~known]) - y[~known]) ** 2))
    assert_allclose(honest.leave_one_out_rmse_, realised, rtol=0.4)  # of 20 other countries
    assert model.leave_one_out_rmse_ < 0.3 * realised  # of rows of known countries
    value, std = honest.predict(X[~known], return_std=True)
    # Rows of a country are inside together: of 20 countries 14 or fewer have a chance of 1 %.
    assert 0.7 < np.mean(np.abs(y[~known] - value) <= 1.645 * std) <= 1.0


def test_accuracy_out_of_group():
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(20), 12)
    X = np.column_stack([rng.normal(size=20)[group] + 0.01 * rng.normal(size=240), group * 1.0])
    y = rng.integers(0, 2, 20)[group]  # a property of the group, which its columns betray
    plain = KernelClassifier(**QUICK).fit(X, y)
    honest = KernelClassifier(**QUICK).fit(X, y, groups=group)
    assert plain.leave_one_out_accuracy_ > 0.95
    assert honest.leave_one_out_accuracy_ < 0.8
    assert honest.validation_ == "5 folds of 20 groups"
    assert len(honest.left_out_) == 240


@pytest.mark.parametrize("groups", [[1, 2], np.ones(900)])
def test_bad_groups_are_refused(groups, countries):
    table, y = countries
    with pytest.raises(ValueError, match="groups must have"):
        KernelRegressor(**QUICK).fit(table, y, groups=groups)


def test_the_decision_function_agrees_with_the_probabilities():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    three = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
    model = KernelClassifier(**QUICK).fit(X, three)
    logs = model.decision_function(X)
    P = np.exp(logs - logs.max(axis=1, keepdims=True))
    assert_allclose(P / P.sum(axis=1, keepdims=True), model.predict_proba(X))
    model.fit(X, three == "a")
    assert_allclose(1 / (1 + np.exp(-model.decision_function(X))), model.predict_proba(X)[:, 1])
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


def test_class_weights_are_weights_of_rows():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=150) > 1.1, "rare", "usual")
    plain = KernelClassifier("rbf", **QUICK).fit(X, y)
    balanced = KernelClassifier("rbf", class_weight="balanced", **QUICK).fit(X, y)
    share = np.mean(y == "rare")
    by_hand = np.where(y == "rare", 0.5 / share, 0.5 / (1 - share))
    same = KernelClassifier("rbf", **QUICK).fit(X, y, by_hand)
    assert_allclose(balanced.predict_proba(X), same.predict_proba(X), atol=1e-8)
    found = [np.mean(model.predict(X)[y == "rare"] == "rare") for model in (plain, balanced)]
    assert found[1] > found[0] + 0.1
    doubled = KernelClassifier("rbf", class_weight={"rare": 2}, **QUICK).fit(X, y)
    twice = KernelClassifier("rbf", **QUICK).fit(X, y, np.where(y == "rare", 0.6, 0.3))
    assert_allclose(doubled.predict_proba(X), twice.predict_proba(X), atol=1e-8)


def test_class_weights_do_not_count_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1120, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=1120) > 0).astype(int)
    model = KernelClassifier(class_weight={0: 3, 1: 1}).fit(X[:120], y[:120])
    low, high = model.error_interval_
    # Where one of three copies was left out: an accuracy of 0.98, and 0.70 on new rows.
    assert low <= 1 - model.score(X[120:], y[120:], np.where(y[120:] == 0, 3, 1)) <= high
    assert_allclose(
        model.predict_proba(X),
        KernelClassifier(class_weight={0: 1.5, 1: 0.5}).fit(X[:120], y[:120]).predict_proba(X),
        atol=1e-6,
    )
