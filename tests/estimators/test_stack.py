"""The stack: a linear model and trees join the learned kernel where they predict better."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge

from mercer import RBF, KernelClassifier, KernelRegressor, TableEncoder, load, save
from mercer.engine import using
from mercer.estimators import learned_model
from mercer.estimators.stack import ClassShares, _logistic, _on_simplex, linear_part, weighed
from mercer.estimators.trees import _BOOSTED, _FOREST, Trees, grow_trees, leaf_size
from mercer.learn import Observations
from mercer.learn.metric import column_scales
from mercer.learn.targets import Targets

QUICK = {"n_rounds": 1, "metric": "diagonal"}


def steps(rng, n):
    """Jumps along the axes: what trees are made for."""
    X = rng.uniform(-1, 1, size=(n, 6))
    y = (X[:, 0] > 0.2) + 2.0 * (X[:, 1] > -0.3) * (X[:, 2] > 0.1) - (X[:, 3] > 0)
    return X, y + 0.1 * rng.normal(size=n)


def rmse(model, X, y):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


@pytest.fixture(scope="module")
def stepped():
    X, y = steps(np.random.default_rng(0), 900)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.fixture(scope="module")
def stacked(stepped):
    return KernelRegressor(**QUICK).fit(*stepped[:2])


def test_steps_are_within_five_per_cent_of_boosting(stepped, stacked):
    X, y, X_new, y_new = stepped
    alone = KernelRegressor(stack=False, **QUICK).fit(X, y)
    boosting = HistGradientBoostingRegressor(random_state=0, min_samples_leaf=20).fit(X, y)
    assert "trees" in stacked.stack_
    assert alone.stack_ == {"learned kernel": 1.0}
    assert rmse(stacked, X_new, y_new) < 1.05 * rmse(boosting, X_new, y_new)
    assert rmse(stacked, X_new, y_new) < 0.7 * rmse(alone, X_new, y_new)  # 2.3 times boosting's
    # Folds know the jumps less well than all rows do: the printed error is 4 to 31 % above.
    low, high = stacked.error_interval_
    assert low < rmse(stacked, X_new, y_new) < high < 2 * rmse(stacked, X_new, y_new)
    value, std = stacked.predict(X_new, return_std=True)
    assert abs(np.mean(np.abs(value - y_new) <= 1.645 * std) - 0.9) < 0.05
    assert set(np.argsort(-stacked.feature_importances_)[:4]) == {0, 1, 2, 3}
    assert_allclose(stacked.feature_importances_.sum(), 1)


@pytest.mark.parametrize("unit", [1.0, 1e-90, 1e90])
def test_weights_are_the_best_there_are(rng, unit):
    """Karush, Kuhn, Tucker: no weight, and not their sum, can change and make the error smaller."""
    for _ in range(300):
        n, k, near = rng.integers(5, 200), rng.integers(1, 5), 10.0 ** rng.uniform(-4, 0.5)
        truth = rng.normal(size=(n, 1))
        A = truth * rng.uniform(0.3, 1.5, size=k) + near * rng.normal(size=(n, k))
        t = (truth * rng.uniform(0.1, 2))[:, 0] + near * rng.normal(size=n)
        w = _on_simplex(unit * A, unit * t)
        slope = A.T @ (A @ w - t)
        price = max(0.0, float(-slope.min())) if w.sum() > 1 - 1e-9 else 0.0
        small = 1e-7 * np.linalg.norm(A, 2) * np.linalg.norm(t)
        assert (w >= 0).all()
        assert w.sum() <= 1 + 1e-12
        assert (slope + price >= -small).all()
        assert np.abs((slope + price)[w > 0]).max(initial=0) < small


def test_a_file_and_a_graph_hold_the_stack(stepped, stacked, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from mercer.onnx import to_onnx

    X_new = stepped[2]
    save(stacked, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    assert_array_equal(again.predict(X_new), stacked.predict(X_new))
    assert again.stack_ == stacked.stack_
    session = ort.InferenceSession(to_onnx(stacked).SerializeToString())
    (found,) = session.run(None, {session.get_inputs()[0].name: X_new})
    assert_allclose(found, stacked.predict(X_new), atol=1e-12)


def test_few_rows_of_a_linear_table(rng):
    """A metric of 30 columns from 60 rows is noise; least squares with a penalty is not."""
    X = rng.normal(size=(660, 30))
    y = X @ np.linspace(1, 2, 30) + 0.3 * rng.normal(size=660)
    model = KernelRegressor(**QUICK).fit(X[:60], y[:60])
    alone = KernelRegressor(stack=False, **QUICK).fit(X[:60], y[:60])
    assert rmse(model, X[60:], y[60:]) <= rmse(alone, X[60:], y[60:])


def test_many_classes_get_a_forest(rng):
    X = rng.uniform(-1, 1, size=(700, 6))
    y = (X[:, :3] > [0.2, -0.3, 0.1]) @ [1, 2, 4]
    model = KernelClassifier(**QUICK).fit(X[:150], y[:150])
    alone = KernelClassifier(stack=False, **QUICK).fit(X[:150], y[:150])
    assert "trees" in model.stack_
    assert model.score(X[150:], y[150:]) > alone.score(X[150:], y[150:]) + 0.05
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_few_classes_of_many_rows_get_boosted_trees_too(rng, tmp_path):
    X, thresholds = rng.uniform(-1, 1, size=(1600, 10)), rng.uniform(-0.5, 0.5, size=10)
    votes = np.where(thresholds < X, 1, -1) @ np.linspace(1, 2, 10)
    y = np.where(votes > 0, "a", "b")
    model = KernelClassifier(**QUICK).fit(X[:600], y[:600])
    few = KernelClassifier(**QUICK).fit(X[:300], y[:300])
    assert model.stack_["boosted trees"] > 0.2
    assert "boosted trees" not in few.stack_  # with few rows, forests are safer
    forest = RandomForestRegressor(**_FOREST).fit(X[:600], y[:600] == "b")
    wrong = np.mean((forest.predict(X[600:]) > 0.5) != (y[600:] == "b"))
    assert 1 - model.score(X[600:], y[600:]) < 0.95 * wrong
    save(model, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    assert_array_equal(again.predict_proba(X[600:]), model.predict_proba(X[600:]))
    assert_allclose(model.feature_importances_.sum(), 1)


@pytest.fixture(scope="module")
def tilted():
    """Log odds that are linear, and large where few rows are: least squares bends there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 8)) * np.where(rng.random((900, 1)) < 0.2, 4.0, 1.0)
    return X, (X @ np.linspace(0.2, 1.2, 8) + rng.logistic(size=900) > 0).astype(int)


@pytest.fixture(scope="module")
def of_classes(tilted):
    X, y = tilted
    return KernelClassifier(**QUICK).fit(X[:200], y[:200])


def test_classes_get_logistic_regression(tilted, of_classes):
    X, y = tilted
    assert of_classes.stack_["linear"] > 0.5
    assert isinstance(of_classes.others_[0], ClassShares)
    plain = LogisticRegression().fit(X[:200], y[:200]).score(X[200:], y[200:])
    assert of_classes.score(X[200:], y[200:]) > plain - 0.015
    shares = of_classes.feature_importances_
    assert shares[4:].sum() > 0.6
    assert_allclose(shares.sum(), 1)


def test_a_file_and_a_graph_hold_logistic_regression(tilted, of_classes, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from mercer.onnx import to_onnx

    X = tilted[0]
    save(of_classes, tmp_path / "model.mercer")
    assert_array_equal(
        load(tmp_path / "model.mercer").predict_proba(X), of_classes.predict_proba(X)
    )
    session = ort.InferenceSession(to_onnx(of_classes).SerializeToString())
    label, found = session.run(None, {session.get_inputs()[0].name: X})
    assert_array_equal(label, of_classes.predict(X))
    assert_allclose(found, of_classes.predict_proba(X), atol=1e-6)  # leaves are in single precision


@pytest.mark.parametrize("n_classes", [2, 4])
def test_logistic_regression_is_that_of_scikit_learn(n_classes, rng):
    X = rng.normal(size=(300, 3)) @ np.diag([1.0, 10.0, 0.1]) + [0.0, 5.0, 0.0]
    code = (X[:, 0] + rng.normal(size=300) > 0) + (n_classes > 2) * rng.integers(3, size=300)
    weights = rng.uniform(0.5, 2, size=300)
    found = _logistic(X, np.eye(n_classes)[code], weights, 1.0)
    Z = (X - X.mean(axis=0)) * column_scales(X)
    theirs = LogisticRegression(C=1.0).fit(Z, code, weights).predict_proba(Z)
    assert_allclose(found(X), theirs, atol=0.02)
    assert_allclose((found * 0.5)(X), 0.5 * found(X))
    # A row that stands for three has the shares of their classes.
    merged = _logistic(X, np.full((300, 3), [0.5, 0.0, 0.5]), None, 1.0)(X)
    assert_allclose(merged, np.full((300, 3), [0.5, 0.0, 0.5]), atol=1e-3)
    alone = _logistic(X, np.full((300, 2), [0.0, 1.0]), None, 1.0)
    assert_allclose(alone(X), np.full((300, 2), [0.0, 1.0]), atol=1e-12)


def test_effects_of_categories_do_not_tell_trees_the_target(rng):
    """A mean without the row itself, among rows of one category, is a function of its target."""
    pd = pytest.importorskip("pandas")
    effects = rng.normal(size=30)
    codes = rng.integers(30, size=1200)
    X = pd.DataFrame({"place": [f"v{c}" for c in codes], "noise": rng.normal(size=1200)})
    y = effects[codes] + rng.normal(size=1200)
    model = KernelRegressor(**QUICK).fit(X[:600], y[:600])
    assert model.encoder_.columns_[0].get("has_means")
    # With such means as their columns trees had a tenth of this error, and printed it.
    assert_allclose(model.leave_one_out_rmse_, rmse(model, X[600:], y[600:]), rtol=0.1)
    assert rmse(model, X[600:], y[600:]) < 1.1


def test_a_given_kernel_is_not_stacked(stepped):
    X, y = stepped[:2]
    assert KernelRegressor(RBF(), metric=None).fit(X, y).stack_ == {"learned kernel": 1.0}


def test_counts_of_rows_are_copies_to_boosted_trees(rng):
    """Copies are quicker than weights, and give the trees of the table as it was."""
    X, y = steps(rng, 300)
    counts = rng.integers(1, 3, size=300)
    rows = np.repeat(np.arange(300), counts)
    merged = grow_trees(X, y[:, None], counts / 1.5, forest=False)
    theirs = HistGradientBoostingRegressor(min_samples_leaf=leaf_size(300), **_BOOSTED)
    theirs.fit(X[rows], y[rows])
    assert_allclose(merged(X)[:, 0], theirs.predict(X), atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [3, 90])
def test_the_linear_part_is_ridge_on_scaled_columns(rng, columns, weighted):
    units = np.geomspace(1e-3, 1e3, columns)
    X = units * (rng.normal(size=(60, columns)) + 5)
    X[:, 1] = 7.0  # tells nothing
    T = np.column_stack([X @ (1 / units), rng.normal(size=60)]) + 0.3 * rng.normal(size=(60, 2))
    weights = rng.uniform(0.5, 2.0, size=60) if weighted else None
    rows = Observations.of(X, T, weights)
    residuals, _, function, shares = linear_part(rows)
    X, T, w = rows.X, rows.T, rows.weights
    F, slopes = X * column_scales(X), function.S.T
    centre, centred = np.average(X, axis=0, weights=w), (np.ones(60) if w is None else w)[:, None]
    # The penalty follows from the equations that a solution fulfils.
    rest = centred * (T - function(X))
    own = (X - centre).T @ rest * column_scales(X)[:, None]
    kept = column_scales(X) > 0
    coef = slopes[kept] / column_scales(X)[kept, None]
    alpha = float((own[kept] * coef).sum() / (coef**2).sum())
    oracle = Ridge(alpha).fit(F, T, sample_weight=w)
    assert_allclose(function(X), oracle.predict(F), atol=1e-6)
    assert_allclose(slopes[1], 0.0)
    assert_allclose(shares, (oracle.coef_**2).sum(axis=0), atol=1e-6)
    for i in (0, 7, 59):
        others = np.delete(np.arange(60), i)
        known = Ridge(alpha).fit(F[others], T[others], None if w is None else w[others])
        assert_allclose(T[i] - residuals[i], known.predict(F[i : i + 1])[0], atol=1e-6)


def test_columns_that_are_not_scaled_have_a_linear_part_too(rng):
    X = rng.normal(size=(200, 4)) * [0.01, 1.0, 100.0, 1e4]
    y = X @ [100.0, 1.0, 0.01, 1e-4] + 0.5 * rng.normal(size=200)
    given = TableEncoder(scale="none")
    model = KernelRegressor(encoder=given, **QUICK).fit(X, y)
    assert model.stack_.get("linear", 0.0) > 0.2


def test_a_linear_part_of_few_rows_where_memory_is_short(rng):
    X = rng.normal(size=(5000, 4))
    rows = Observations.of(X, (X.sum(axis=1) + 0.1 * rng.normal(size=5000))[:, None])
    with using(memory_limit=6 * 8 * 14 * 800):
        residuals, left, function, _ = linear_part(rows)
    assert_allclose(function.S, np.ones((1, 4)), atol=0.02)
    assert (left < 1).sum() == 800
    assert_allclose(np.std(residuals), 0.1, rtol=0.05)


def test_a_stack_with_clearly_more_wrong_classes_is_not_taken(rng, monkeypatch):
    """Weights that squares choose: here they are made bad, and wrong classes veto them."""
    X = rng.normal(size=(300, 2))
    y = (np.hypot(*X.T) < 1.1).astype(int)
    taken = KernelClassifier(**QUICK).fit(X, y)
    monkeypatch.setattr(
        learned_model, "weighed", lambda T, parts, w: _all_linear(len(T), len(parts))
    )
    vetoed = KernelClassifier(**QUICK).fit(X, y)
    assert "learned kernel" in taken.stack_
    assert vetoed.stack_ == {"learned kernel": 1.0}


def _all_linear(n, parts):
    weights = np.zeros(parts)
    weights[1] = 1.0
    return weights, np.tile(weights, (n, 1))


def test_trees_are_those_of_scikit_learn(rng):
    X, y = steps(rng, 200)
    T = np.column_stack([y, -2 * y])
    weights = rng.uniform(0.5, 2, size=200)
    trees = grow_trees(X, T, weights, forest=False)
    for j in range(2):
        theirs = HistGradientBoostingRegressor(min_samples_leaf=leaf_size(200), **_BOOSTED)
        assert_allclose(trees(X)[:, j], theirs.fit(X, T[:, j], weights).predict(X), atol=1e-9)
    many = np.eye(5)[rng.integers(5, size=200)]
    forest = RandomForestRegressor(**_FOREST).fit(X, many, weights)
    assert_allclose(grow_trees(X, many, weights, forest=True)(X), forest.predict(X), atol=1e-5)
    assert_allclose((trees * 0.5)(X), 0.5 * trees(X))


def test_a_forest_of_many_sorted_rows_knows_all_classes():
    which = np.arange(5500) // 500
    T, X = np.eye(11)[which], which[:, None].astype(float)
    assert (grow_trees(X, T, None, forest=True)(X).argmax(axis=1) == which).all()


@pytest.mark.parametrize(
    ("name", "value"), [("below", 0), ("above", -1), ("below", 10**9), ("feature", 6)]
)
def test_nodes_that_lead_nowhere_are_refused(rng, name, value):
    trees = grow_trees(*(lambda X, y: (X, y[:, None]))(*steps(rng, 50)), None, forest=False)
    state = {field: getattr(trees, field).copy() for field in Trees.__dataclass_fields__}
    inner = int(np.argmax(trees.below != np.arange(len(trees.below))))
    state[name][inner] = value
    with pytest.raises(ValueError, match="Trees: "):
        Trees.__new__(Trees).__setstate__(state)


def test_weights_of_models(rng):
    T, ones = rng.normal(size=(400, 1)), np.ones(400)
    good, fair, noise = (T + s * rng.normal(size=T.shape) for s in (0.3, 0.4, 20.0))
    w, own = weighed(T, [good, fair, noise], ones)
    assert w[0] > w[1] > 0 == w[2]
    assert_allclose(own, np.tile(w, (400, 1)), atol=0.1)
    assert (
        np.mean((T - np.einsum("nc,cnt->nt", own, [good, fair, noise])) ** 2) < 0.08
    )  # 0.09 alone
    alone = weighed(T, [good, noise], ones)[0]
    assert alone[1] == 0
    assert_allclose(alone[0], (T * good).sum() / (good**2).sum(), rtol=0.02)  # least squares
    # Weights that were chosen on the rows that judge them would say that noise explains something.
    many = [rng.normal(size=T.shape) for _ in range(10)]
    w, own = weighed(T, many, ones)
    assert np.mean((T - np.einsum("nc,cnt->nt", own, many)) ** 2) > 0.98 * T.var()


def test_weights_never_make_predictions_bolder(rng):
    T, ones = rng.normal(size=(200, 1)), np.ones(200)
    timid = T / 2 + 0.05 * rng.normal(size=T.shape)  # twice of it would be better on these rows
    other = T / 2 + 0.2 * rng.normal(size=T.shape)
    assert_allclose(weighed(T, [timid], ones)[0], 1)
    w = weighed(T, [timid, other], ones)[0]
    assert_allclose(w.sum(), 1)
    # The best of all weights that sum to one, by trying them.
    shares = np.linspace(0, 1, 1001)
    mean = T.mean()
    losses = [
        ((T - mean - s * (timid - mean) - (1 - s) * (other - mean)) ** 2).sum() for s in shares
    ]
    best = shares[int(np.argmin(losses))]
    assert_allclose(w[0], best if best < 0.95 else 1.0, atol=2e-3)


def test_whole_weights_count_rows_of_the_stack(rng):
    X, y = steps(rng, 60)
    weights = rng.integers(1, 4, size=60)
    weighted = KernelRegressor(**QUICK).fit(X, y, sample_weight=weights)
    repeated = KernelRegressor(**QUICK).fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    assert weighted.stack_ == pytest.approx(repeated.stack_)
    assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)


@pytest.mark.parametrize("seed", [1, 4])
def test_whole_weights_count_rows_of_classes(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4))
    value = X[:, 0] + X[:, 1] ** 2 - 0.5 + 0.7 * rng.normal(size=120)
    y, weights = np.digitize(value, [-0.5, 0.7]), rng.integers(1, 4, 120)
    weighted = KernelClassifier().fit(X, y, sample_weight=weights)
    repeated = KernelClassifier().fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    # Rows as they are written chose between errors of folds and leave-one-out: 0.02, 0.05 apart.
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    assert weighted.validation_ == repeated.validation_


def test_a_kernel_without_weight_has_no_error(rng):
    """Its bound may be infinite, where rounding leaves no penalty that has one."""
    X = rng.normal(size=(60, 2))
    model = KernelRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    rows = Observations(X, np.ones((60, 1)))
    targets = Targets.of(X[:, 0], "regression", None)
    model.error_norms_ = np.array([np.inf])
    model._join(
        rows,
        targets,
        {learned_model.LINEAR: 1.0},
        {learned_model.LINEAR: lambda rows: linear_part(rows)[2:]},
    )
    assert model.error_norms_.tolist() == [0.0]
    assert not model.dual_coef_.any()
