"""KernelDiscriminant against the classical kernel-matrix form, in every basis and namespace."""

import pickle

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp, softmax
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    RBF,
    Chunks,
    FromFeatures,
    KernelDiscriminant,
    KernelMap,
    Linear,
    OnFeatures,
    Polynomial,
    Precomputed,
)
from mercer.engine.arrays import as_numpy
from mercer.rows.moments import Spread
from mercer.solve.optimal_scoring import (
    _SHRINKAGES,
    _TEMPERATURES,
    Fisher,
    _LeftOutClasses,
    _within_trace,
)


def to_plus_minus(X):
    return 2 * X - 1


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def digits_247(per_class=150):
    """8 x 8 digits 2, 4, 7 in [0, 1]: the experiment of [EXACT] on what scikit-learn bundles."""
    X, y = load_digits(return_X_y=True)
    train, test = [], []
    for digit in (2, 4, 7):
        rows = np.flatnonzero(y == digit)
        train.append(rows[: per_class // 2])
        test.append(rows[per_class // 2 :])
    train, test = np.concatenate(train), np.concatenate(test)
    return X[train] / 16, y[train], X[test] / 16, y[test]


def classical(K, K_z, y, shrinkage):
    """[NPT] (24)-(27) with S_W^K + s K, since |w|^2 = a'Ka. Scores of rows of K_z, eigenvalues."""
    n, labels = len(y), np.unique(y)
    S_W, S_B, trace = np.zeros((n, n)), np.zeros((n, n)), 0.0
    for c in labels:
        rows = np.flatnonzero(y == c)
        apart = K[rows] - K[rows].mean(axis=0)
        S_W += apart.T @ apart
        d = K[rows].mean(axis=0) - K.mean(axis=0)
        S_B += len(rows) * np.outer(d, d)
        within = K[np.ix_(rows, rows)]
        trace += np.trace(within) - within.sum() / len(rows)
    s = shrinkage * trace / (n - len(labels))
    values, A = scipy.linalg.eigh(S_B, S_W + s * K)
    A = A[:, ::-1][:, : len(labels) - 1] * (n - len(labels)) ** 0.5
    return (K_z - K.mean(axis=0)) @ A, values[::-1][: len(labels) - 1]


@pytest.mark.parametrize("shrinkage", [1e-3, 0.1])
def test_equals_the_classical_form(wine, shrinkage, there):
    """[NPT] IV-C: the generalised eigenproblem on kernel matrices, same regularisation."""
    X, y = wine[0][::2], wine[1][::2]
    Z, kernel = wine[0][1::2], RBF(0.05)
    scores, values = classical(kernel(X), kernel(Z, X), y, shrinkage)
    model = there(KernelDiscriminant(kernel=kernel, shrinkage=shrinkage)).fit(X, y)
    mine = model.transform(Z)
    assert_allclose(np.abs(mine), np.abs(scores), atol=1e-7 * np.abs(scores).max())
    assert_allclose(model.explained_variance_ratio_, values / values.sum(), rtol=1e-7)


def test_decision_function_is_the_gaussian_one(wine, there):
    """log N(phi; m_c, A / (n - classes)) + log prior, densely, up to a constant."""
    X, y = wine
    kernel_map = there(KernelMap(RBF(0.05), center=True))
    Phi = kernel_map.fit_transform(X)
    model = there(KernelDiscriminant(kernel=RBF(0.05), shrinkage=0.01)).fit(X, y)
    means = np.array([Phi[y == c].mean(axis=0) for c in range(3)])
    S_W = sum((Phi[y == c] - means[c]).T @ (Phi[y == c] - means[c]) for c in range(3))
    freedom = len(y) - 3
    A = (S_W + 0.01 * np.trace(S_W) / freedom * np.eye(len(S_W))) / freedom
    away = Phi[:, None] - means[None]
    slow = -0.5 * np.einsum("ncr,rs,ncs->nc", away, np.linalg.inv(A), away)
    slow += np.log(np.bincount(y) / len(y))
    mine = model.decision_function(X)
    slow, mine = slow - slow[:, :1], mine - mine[:, :1]
    assert_allclose(mine, slow, atol=1e-7 * np.abs(slow).max())
    posterior = softmax(slow, axis=1)
    assert_allclose(model.predict_proba(X), posterior, atol=1e-6)


def test_axes_whiten_the_shrunk_scatter(wine, there):
    """W'(S_W + s I) W = (n - classes) I, from the scores and the axes alone."""
    X, y = wine
    model = there(KernelDiscriminant(kernel=RBF(0.05), shrinkage=0.01)).fit(X, y)
    Z, Phi, freedom = model.transform(X), model.kernel_map_.transform(X), len(y) - 3
    apart = np.concatenate([Z[y == c] - Z[y == c].mean(axis=0) for c in range(3)])
    spread = sum(np.sum((Phi[y == c] - Phi[y == c].mean(axis=0)) ** 2) for c in range(3))
    s = 0.01 * spread / freedom
    whole = apart.T @ apart + s * model.scalings_.T @ model.scalings_
    assert_allclose(whole, freedom * np.eye(2), atol=1e-8 * freedom)
    assert_allclose(Z.mean(axis=0), 0, atol=1e-8)


@pytest.mark.parametrize("kernel", [RBF(0.05), Polynomial(2, gamma=0.1), Linear()], ids=repr)
def test_every_basis_gives_the_same_predictions(wine, kernel, there):
    X, y = wine[0][::2], wine[1][::2]
    Z = wine[0][1::2]
    reference = there(KernelDiscriminant(kernel=kernel)).fit(X, y)
    for basis in ("eigen", "symmetric", "auto"):
        other = there(KernelDiscriminant(kernel=KernelMap(kernel, basis=basis))).fit(X, y)
        assert_array_equal(other.predict(Z), reference.predict(Z))
        assert_allclose(other.predict_proba(Z), reference.predict_proba(Z), atol=1e-6)
        scale = np.abs(reference.transform(Z)).max()
        assert_allclose(other.transform(Z), reference.transform(Z), atol=1e-6 * scale)


def test_centred_whatever_the_map_says(wine, there):
    X, y = wine
    plain = there(KernelDiscriminant(kernel=KernelMap(RBF(0.05), center=False))).fit(X, y)
    centred = there(KernelDiscriminant(kernel=KernelMap(RBF(0.05), center=True))).fit(X, y)
    assert_array_equal(plain.transform(X), centred.transform(X))
    assert plain.kernel_map_.mean_ is not None


def test_sums_need_not_be_centred(wine):
    """The solution from sums of uncentred rows, as a stream gives them, is the same."""
    X, y = wine
    model = KernelDiscriminant(kernel=RBF(0.05), shrinkage=1e-3).fit(X, y)
    Phi, members, half = KernelMap(RBF(0.05)).fit_transform(X), np.eye(3)[y], len(X) // 2
    spread = Spread.of(Phi[:half], members[:half]) + Spread.of(Phi[half:], members[half:])
    s = model.shrinkage * _within_trace(np.diag(spread.scatter), spread.cross, spread.target)
    s /= len(X) - 3
    coef = np.linalg.solve(spread.scatter + s * np.eye(Phi.shape[1]), spread.cross)
    left = np.diag(spread.target) - np.outer(spread.target, spread.target) / len(X)
    fisher = Fisher.of(left - spread.cross.T @ coef, spread.target)
    decision = fisher.decision(spread.target / len(X))
    f = (Phi - spread.mean) @ coef  # of which the shares of the classes are taken off already
    found = f @ decision.mix + decision.constants
    assert_allclose(found, model.decision_function(X), atol=1e-7 * np.abs(found).max())


def test_k2_separates_digits_better_than_k1():
    """[EXACT] Fig. 3 and 4: the kernel on [-1, 1] against the one on [0, 1]."""
    X, y, Z, t = digits_247()
    d = X.shape[1]
    k1 = Polynomial(9, gamma=1 / d, coef0=0.0)
    k2 = OnFeatures(Polynomial(9, gamma=1 / (2 * d), coef0=0.5), to_plus_minus)
    bad = KernelDiscriminant(kernel=k1).fit(X, y).score(Z, t)
    good = KernelDiscriminant(kernel=k2).fit(X, y).score(Z, t)
    assert good >= 0.975
    assert bad < good


def test_two_classes(wine, there):
    X, y = wine
    X, y = X[y < 2], np.array(["red", "white"])[y[y < 2]]
    model = there(KernelDiscriminant(kernel=RBF(0.05))).fit(X[::2], y[::2])
    scores = model.decision_function(X[1::2])
    assert scores.shape == (65,)
    assert_array_equal(model.predict(X[1::2]), np.where(scores > 0, "white", "red"))
    assert_allclose(model.predict_proba(X[1::2])[:, 1], expit(scores), atol=1e-12)
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert model.transform(X).shape == (130, 1)
    assert_allclose(model.function_(X[1::2]), scores, atol=1e-6 * np.abs(scores).max())


def test_functions_of_many_classes(wine, there):
    X, y = wine
    model = there(KernelDiscriminant(kernel=RBF(0.05))).fit(X, y)
    values = np.column_stack([f(X) for f in model.function_])
    assert_allclose(values, model.decision_function(X), atol=1e-6 * np.abs(values).max())


def test_priors_move_the_boundary(wine, there):
    X, y = wine
    even = there(KernelDiscriminant(kernel=RBF(0.05), shrinkage=1e-3, priors=[1 / 3] * 3)).fit(X, y)
    priors = [0.98, 0.01, 0.01]
    rare = there(KernelDiscriminant(kernel=RBF(0.05), shrinkage=1e-3, priors=priors)).fit(X, y)
    assert_allclose(even.priors_, 1 / 3)
    shift = rare.predict_log_proba(X) - even.predict_log_proba(X)
    # Only the logarithms of the priors differ: log 98 between the first class and the others.
    assert_allclose(shift[:, 0] - shift[:, 1], np.log(98), atol=1e-6)
    default = there(KernelDiscriminant(kernel=RBF(0.05))).fit(X, y)
    assert_allclose(default.priors_, np.bincount(y) / len(y))


def test_n_components_shortens_transform_only(wine, there):
    X, y = wine
    full = there(KernelDiscriminant(kernel=RBF(0.05))).fit(X, y)
    one = there(KernelDiscriminant(1, RBF(0.05))).fit(X, y)
    assert_allclose(one.transform(X), full.transform(X)[:, :1], rtol=1e-9, atol=1e-9)
    assert_array_equal(one.predict_proba(X), full.predict_proba(X))
    assert one.get_feature_names_out().tolist() == ["kerneldiscriminant0"]


def test_fit_transform_is_transform(wine, there):
    X, y = wine
    model = there(KernelDiscriminant(kernel=RBF(0.05)))
    Z = model.fit_transform(X, y)
    assert_allclose(model.transform(X), Z, atol=1e-7 * np.abs(Z).max())


def test_precomputed(wine, there):
    X, y = wine[0][::2], wine[1][::2]
    Z, kernel = wine[0][1::2], RBF(0.05)
    reference = there(KernelDiscriminant(kernel=kernel)).fit(X, y)
    model = there(KernelDiscriminant(kernel=Precomputed())).fit(kernel(X), y)
    assert_allclose(model.transform(kernel(Z, X)), reference.transform(Z), atol=1e-6)
    assert not hasattr(model, "function_")


@pytest.mark.parametrize(
    "kernel",
    [KernelMap(RBF(0.05), append_residual=True), KernelMap(RBF(0.05), max_rank=20)],
    ids=repr,
)
def test_configured_maps(wine, kernel, there):
    X, y = wine
    model = there(KernelDiscriminant(kernel=kernel)).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.93


def test_every_namespace(wine, xp):
    X, y = wine
    reference = KernelDiscriminant(kernel=RBF(0.05)).fit(X, y)
    model = KernelDiscriminant(kernel=RBF(0.05)).fit(xp.asarray(X), xp.asarray(y))
    scores = model.transform(xp.asarray(X))
    assert type(scores) is type(xp.asarray(X))
    scale = np.abs(reference.transform(X)).max()
    assert_allclose(as_numpy(scores), reference.transform(X), atol=1e-6 * scale)
    predicted = model.predict(xp.asarray(X))
    assert type(predicted) is type(xp.asarray(y))
    assert_array_equal(as_numpy(predicted), reference.predict(X))
    assert model.score(xp.asarray(X), xp.asarray(y)) == reference.score(X, y)


def test_word_labels_on_any_arrays(wine, xp):
    X, y = wine
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    model = KernelDiscriminant(kernel=RBF(0.05)).fit(xp.asarray(X), names)
    assert model.predict(xp.asarray(X)).dtype.kind == "U"
    assert model.score(xp.asarray(X), names) > 0.99


def test_float32(wine, there):
    X, y = wine
    single = there(KernelDiscriminant(kernel=RBF(0.05))).fit(X.astype(np.float32), y)
    double = there(KernelDiscriminant(kernel=RBF(0.05))).fit(X, y)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert np.mean(single.predict(X.astype(np.float32)) == double.predict(X)) > 0.99


def test_words_themselves():
    words = ["aab", "aba", "baa", "aaab", "ccd", "dcc", "cdc", "ccdd"] * 2

    def counts(batch):
        return np.array([[w.count(letter) for letter in "abcd"] for w in batch], dtype=float)

    y = [0] * 4 + [1] * 4
    model = KernelDiscriminant(kernel=FromFeatures(counts), shrinkage=0.1).fit(words, y * 2)
    assert model.predict(["abab", "dcdc"]).tolist() == [0, 1]


def test_tuning_clone_pickle(wine):
    X, y = wine
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelDiscriminant()),
        {
            "kerneldiscriminant__kernel__gamma": [0.01, 0.1],
            "kerneldiscriminant__shrinkage": [1e-3, 0.1],
        },
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.95
    model = search.best_estimator_
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_constant_classes_do_not_divide_by_zero(there):
    X, y = np.repeat([[0.0], [1.0], [3.0]], 4, axis=0), np.repeat([0, 1, 2], 4)
    model = there(KernelDiscriminant(kernel=RBF(1.0))).fit(X, y)
    assert_array_equal(model.predict(X), y)
    assert np.all(np.isfinite(model.transform(X)))


def test_without_shrinkage_where_the_scatter_is_regular(there):
    X, y = load_iris(return_X_y=True)
    model = there(KernelDiscriminant(kernel=Linear(), shrinkage=0)).fit(X, y)
    assert model.score(X, y) >= 0.98


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"shrinkage": 0}, "singular .* raise it"),
        ({"shrinkage": -1.0}, "shrinkage must be 'auto' or a number of at least 0, got -1.0"),
        ({"shrinkage": "some"}, "shrinkage must be 'auto' or a number of at least 0, got 'some'"),
        ({"n_components": 3}, "from 1 to classes - 1 = 2, got 3"),
        ({"n_components": 0}, "from 1 to classes - 1 = 2, got 0"),
        ({"priors": [0.5, 0.5]}, "priors must be 3 positive numbers"),
        ({"priors": [0.5, 0.6, -0.1]}, "priors must be 3 positive numbers"),
    ],
    ids=str,
)
def test_bad_parameters(wine, changes, match):
    with pytest.raises(ValueError, match=match):
        KernelDiscriminant(kernel=RBF(0.05)).set_params(**changes).fit(*wine)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([1] * 6, r"at least two classes, y has 1 class\(es\): \[1\]"),
        ([0, 1, 2, 3, 4, 5], "more samples than classes, got 6 samples in 6 classes"),
        ([0, 1], "inconsistent numbers of samples"),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "Unknown label type"),
        (None, "requires y"),
    ],
    ids=str,
)
def test_bad_classes_are_refused_before_any_work(y, match, rng):
    class Expensive(RBF):
        def against(self, S):
            raise AssertionError("the kernel was evaluated")

    with pytest.raises(ValueError, match=match):
        KernelDiscriminant(kernel=Expensive(1.0)).fit(rng.normal(size=(6, 2)), y)


def test_more_axes_than_dimensions(rng):
    X, y = rng.normal(size=(12, 1)), np.arange(12) % 3
    with pytest.raises(ValueError, match="n_components=2 exceeds the 1 dimensions"):
        KernelDiscriminant(2, kernel=Linear()).fit(X, y)


def test_a_failed_fit_leaves_the_old_one(wine):
    X, y = wine
    model = KernelDiscriminant(kernel=RBF(0.05)).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X, y[:-1])
    assert_array_equal(model.predict(X), before)


# --- shrinkage and probabilities by left-out rows -------------------------------------------------


@pytest.mark.parametrize("priors", [None, [0.5, 0.3, 0.2]])
def test_likelihoods_of_left_out_rows_are_those_of_refits(priors, rng):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    Phi = KernelMap(RBF(0.3), tol=1e-6).fit_transform(X)

    def sums(Phi, y):
        means = np.stack([Phi[y == c].mean(axis=0) for c in range(3)])
        within = sum((Phi[y == c] - means[c]).T @ (Phi[y == c] - means[c]) for c in range(3))
        return within, means, np.bincount(y).astype(float)

    left_out = _LeftOutClasses.from_sums(Spread.of(Phi, np.eye(3)[y]), priors=priors)
    found = left_out(Phi, y)
    for i, j in ((6, 3), (10, 9), (13, 12)):
        ridge, temperature, total = _SHRINKAGES[i] * left_out.unit, _TEMPERATURES[j], 0.0
        for k in range(len(X)):
            within, means, counts = sums(np.delete(Phi, k, 0), np.delete(y, k))
            apart = Phi[k] - means
            solved = np.linalg.solve(within + ridge * np.eye(len(within)), apart.T).T
            scores = -0.5 * temperature * (len(X) - 4) * (apart * solved).sum(axis=1)
            scores += np.log(counts / counts.sum() if priors is None else priors)
            total += scores[y[k]] - logsumexp(scores)
        assert found[i, j] == pytest.approx(total, rel=1e-6)


def test_probabilities_mean_something_where_classes_overlap():
    """Accuracy 0.6 must not come with probabilities of 0 and 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 20))
    y = (X[:, 0] + 2 * rng.normal(size=900) > 0).astype(int)
    model = KernelDiscriminant(kernel=RBF()).fit(X[:300], y[:300])
    P = model.predict_proba(X[300:])
    assert log_loss(y[300:], P) < 0.69  # log 2: a coin
    sure = P.max(axis=1)
    assert abs(sure.mean() - model.score(X[300:], y[300:])) < 0.06


def test_a_class_of_one_row(wine):
    X, y = wine
    y = y.copy()
    y[0] = 7
    model = KernelDiscriminant(kernel=RBF(0.05)).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(("n", "d", "classes"), [(50, 2, 2), (100, 5, 2), (100, 5, 3)])
def test_coin_flips_have_the_probabilities_of_coins(n, d, classes):
    """Where left-out rows show no signal, probabilities are the shares of the classes.

    They were 2 to 3 points surer than these, since the best of many models is better by chance.
    """
    beyond = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(n + 500, d)), rng.integers(classes, size=n + 500)
        model = KernelDiscriminant().fit(X[:n], y[:n])
        P, shares = model.predict_proba(X[n:]), np.bincount(y[:n]) / n
        sure = P.max(axis=1).mean() - np.mean(P.argmax(axis=1) == y[n:])
        beyond.append(sure - (shares.max() - np.mean(y[n:] == shares.argmax())))
    assert np.mean(beyond) < 0.017


def test_class_weight_says_how_probable_classes_are(wine):
    X, y = wine
    X, y = X[20:], np.array(["a", "b", "c"])[y[20:]]
    options = {"kernel": RBF(0.05)}
    shares = np.unique(y, return_counts=True)[1] / len(y)
    for form in ("primal", "iterative"):
        weighted = KernelDiscriminant(class_weight={"a": 3.0}, form=form, **options).fit(X, y)
        priors = shares * [3, 1, 1] / (shares @ [3, 1, 1])
        given = KernelDiscriminant(priors=priors, form=form, **options).fit(X, y)
        assert_allclose(weighted.priors_, priors)
        assert_allclose(weighted.predict_proba(X), given.predict_proba(X))
    balanced = KernelDiscriminant(class_weight="balanced", **options).fit(X, y)
    assert_allclose(balanced.priors_, 1 / 3)


def test_class_weights_of_a_stream_are_those_of_its_rows(wine):
    X, y = wine
    chunks = [(X[a : a + 50], y[a : a + 50]) for a in range(0, len(X), 50)]
    options = {"class_weight": {0: 5.0}, "kernel": RBF(0.05)}
    streamed = KernelDiscriminant(**options).fit(Chunks(lambda: iter(chunks)))
    assert_allclose(streamed.priors_, KernelDiscriminant(**options).fit(X, y).priors_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_weight": {0: 1.0}, "priors": [0.2, 0.3, 0.5]}, "give one"),
        ({"class_weight": "even"}, "'balanced' or a dict"),
        ({"class_weight": {0: -1.0}}, "positive numbers"),
        ({"class_weight": {7: 1.0}}, "names 7"),
    ],
)
def test_class_weights_are_checked(wine, options, message):
    with pytest.raises(ValueError, match=message):
        KernelDiscriminant(**options).fit(*wine)


def test_rows_that_do_not_differ_are_named():
    with pytest.raises(ValueError, match=r"10 samples in 2 classes at .*, and rows of a class do"):
        KernelDiscriminant().fit(np.ones((10, 2)), [0, 1] * 5)


@pytest.mark.parametrize("size", [2.0**-500, 2.0**-260, 2.0**330, 2.0**500])
def test_the_scale_of_the_kernel_does_not_matter(size, rng):
    """Squares of ridge's coefficients, one over the kernel's scale, would vanish or overflow."""
    y = np.repeat([0, 1, 2], 10)
    X = rng.normal(size=(30, 3)) + y[:, None]
    expected = KernelDiscriminant(2, "linear", shrinkage=0.1).fit(X, y)
    scaled = KernelDiscriminant(2, "linear", shrinkage=0.1).fit(size * X, y)
    assert_allclose(scaled.transform(size * X), expected.transform(X), rtol=1e-9)
