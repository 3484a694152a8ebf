"""Categories with hundreds of values: their effects on the target."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import HistGradientBoostingRegressor

from mercer import KernelClassifier, KernelRegressor, TableEncoder, load, save
from mercer.learn.within_groups import unexplained_within
from mercer.tables import encoder_tools
from mercer.tables.target_encoding import LEAST_ROWS, TargetEncoding


def towns(n, n_levels, effects, seed):
    """A table with many towns, each with an effect of its own, and a smooth function beside it."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    level = rng.integers(n_levels, size=n)
    frame = pd.DataFrame({"a": a, "b": b, "town": [f"T{7919 * i % 9973}" for i in level]})
    return frame, np.sin(2 * a) + b + effects[level] + 0.3 * rng.normal(size=n), level


def test_many_frequent_levels_are_used_as_well_as_boosting_uses_them():
    effects = 1.5 * np.random.default_rng(0).normal(size=120)
    X, y, level = towns(1500, 90, effects, 1)
    X_new, y_new, new_level = towns(1000, 90, effects, 2)
    model = KernelRegressor(n_rounds=1).fit(X, y)
    boosting = HistGradientBoostingRegressor(categorical_features=["town"], random_state=0)
    boosting.fit(X.assign(town=level), y)
    of_boosting = np.mean((boosting.predict(X_new.assign(town=new_level)) - y_new) ** 2)
    assert np.mean((model.predict(X_new) - y_new) ** 2) < of_boosting
    assert model.feature_importances_[2] > 0.2
    assert "effect of each frequent value on the target: town" in " ".join(model.encoder_.notes())


def test_effects_of_levels_in_a_classifier_survive_a_file(tmp_path):
    effects = 3 * np.random.default_rng(0).normal(size=40)
    X, y, _ = towns(500, 40, effects, 1)
    X_new, y_new, _ = towns(400, 40, effects, 2)
    model = KernelClassifier(n_rounds=1).fit(X, y > 0)
    assert model.score(X_new, y_new > 0) > 0.8
    save(model, tmp_path / "towns.mercer")
    X_new.loc[0, "town"] = "not seen"
    assert_allclose(
        load(tmp_path / "towns.mercer").predict_proba(X_new), model.predict_proba(X_new)
    )


def test_codes_without_an_effect_and_rare_codes_add_nothing(rng):
    n = 2000
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "noise": [f"N{i}" for i in rng.integers(60, size=n)],
            "rare": [f"R{i}" for i in rng.integers(700, size=n)],
        }
    )
    encoder = TableEncoder().fit(X)
    made, without = encoder_tools.add_target_encoding(encoder, X, X[["x"]].to_numpy() ** 2)
    assert not without
    assert list(made.feature_names_out_) == list(encoder.feature_names_out_)


def test_means_are_shrunk_as_a_loop_over_levels_does(rng):
    n, effects = 600, rng.normal(size=12)
    level = rng.choice(12, size=n, p=np.r_[np.full(11, 0.09), 0.01])
    T = effects[level, None] + rng.normal(size=(n, 1))
    means = TargetEncoding().fit(np.array([f"c{i}" for i in level], dtype=object), "c", T)
    frequent = [i for i in range(12) if (level == i).sum() >= LEAST_ROWS]
    group = [i if i in frequent else -1 for i in level]
    t, groups = T[:, 0] - T.mean(), sorted(set(group))
    rows = {g: t[[h == g for h in group]] for g in groups}
    within = sum(((r - r.mean()) ** 2).sum() for r in rows.values()) / (n - len(groups))
    outer = sum(len(r) * r.mean() ** 2 for r in rows.values()) / (len(groups) - 1)
    size = (n - sum(len(r) ** 2 for r in rows.values()) / n) / (len(groups) - 1)
    k = within / ((outer - within) / size)
    shrunk = {g: r.mean() * len(r) / (len(r) + k) for g, r in rows.items()}
    expected = np.array([shrunk[g] for g in group])
    expected /= np.sqrt(np.mean(expected**2))
    found = means.transform(np.array([f"c{i}" for i in level], dtype=object))
    assert_allclose(found[:, 0], expected, rtol=1e-10)
    assert means.is_significant_
    # Without a row: its value's mean of the other rows, shrunk by as many rows as are left.
    spread = np.sqrt(np.mean(np.array([shrunk[g] for g in group]) ** 2))
    for i, without in enumerate(means.without_[:, 0]):
        others = rows[group[i]].sum() - t[i]
        assert without == pytest.approx(others / (len(rows[group[i]]) - 1 + k) / spread)


def test_whole_weights_count_rows_in_the_means(rng):
    level = rng.integers(4, size=60)
    codes = np.array([f"c{i}" for i in level], dtype=object)
    T = rng.normal(size=(60, 1)) + level[:, None]
    w = rng.integers(1, 4, size=60)
    weighted = TargetEncoding().fit(codes, "c", T, weights=w.astype(float))
    repeated = TargetEncoding().fit(np.repeat(codes, w), "c", np.repeat(T, w, axis=0))
    assert_allclose(weighted.transform(codes), repeated.transform(codes), rtol=1e-10)
    first = np.cumsum(w) - w
    assert_allclose(weighted.without_, repeated.without_[first], rtol=1e-10)


def test_errors_of_rows_left_out_do_not_know_their_own_effects():
    """Errors were 6 % too small with twenty rows per value, and intervals too narrow."""
    told, true, inside = [], [], []
    for seed in range(4):
        effects = 0.5 * np.random.default_rng(seed).normal(size=60)
        X, y, _ = towns(1200, 60, effects, 10 + seed)
        X_new, y_new, _ = towns(2000, 60, effects, 20 + seed)
        model = KernelRegressor(n_rounds=1).fit(X, y)
        predicted, std = model.predict(X_new, return_std=True)
        told.append(model.leave_one_out_rmse_)
        true.append(np.sqrt(np.mean((predicted - y_new) ** 2)))
        inside.append(np.mean(np.abs(predicted - y_new) <= 1.645 * std))
    assert np.mean(told) == pytest.approx(np.mean(true), rel=0.03)
    assert 0.88 <= np.mean(inside) <= 0.93
    assert "_means_without_" not in vars(model)


@pytest.mark.parametrize("confounded", [False, True])
def test_what_other_columns_explain_is_taken_out_within_groups_only(rng, confounded):
    """A column that is constant within groups must not take their effect away."""
    group = rng.integers(20, size=1000)
    effects = rng.normal(size=20)
    x = effects[group] if confounded else rng.normal(size=1000)
    T = (effects[group] if confounded else np.sin(2 * x) + effects[group])[:, None]
    left = unexplained_within(x[:, None], T, group, 0)
    left = left - left.mean()
    expected = (effects[group] - effects[group].mean())[:, None]
    assert np.abs(left - expected).max() < (1e-6 if confounded else 0.3)


def test_effects_where_the_other_columns_say_nothing(rng):
    T = rng.normal(size=(50, 1))
    assert_allclose(unexplained_within(np.ones((50, 2)), T, np.arange(50) % 5, 0), T)
