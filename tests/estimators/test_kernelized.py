"""Kernelized: an estimator on the map is its kernel version ([NPT] III-B, IV)."""

import os
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import (
    BaseEstimator,
    clone,
    is_classifier,
    is_clusterer,
    is_outlier_detector,
    is_regressor,
)
from sklearn.cluster import DBSCAN, KMeans
from sklearn.cross_decomposition import CCA, PLSRegression
from sklearn.datasets import load_iris, make_circles
from sklearn.decomposition import PCA, FastICA
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import (
    Lasso,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    SGDClassifier,
    SGDOneClassSVM,
)
from sklearn.manifold import TSNE
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM
from sklearn.utils import get_tags
from sklearn.utils.discovery import all_estimators
from sklearn.utils.validation import has_fit_parameter

from mercer import (
    RBF,
    FromFunction,
    Kernelized,
    KernelMap,
    Laplacian,
    Linear,
    NotPSDError,
    Polynomial,
    Precomputed,
    QuadraticForm,
    RKHSFunction,
)
from mercer.engine.arrays import as_numpy

KERNEL = RBF(0.4)
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "transform",
    "fit_predict",
    "fit_transform",
    "score",
    "kneighbors",
    "inverse_transform",
    "get_feature_names_out",
)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X = StandardScaler().fit_transform(X)[order]
    X += 1e-3 * np.random.default_rng(1).normal(size=X.shape)  # no duplicates
    return X[:100], y[order][:100], X[100:]


# Every estimator of scikit-learn's that the project promises, one or two of each kind.
ESTIMATORS = [
    LinearSVC(),
    SVC(kernel="linear"),
    SVC(kernel="linear", decision_function_shape="ovo"),
    LogisticRegression(),
    Ridge(),
    Lasso(alpha=0.01),
    LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    KMeans(3, n_init=1, random_state=0),  # of two equal starts rounding would choose
    GaussianMixture(2, covariance_type="diag", random_state=0),
    PCA(3),
    FastICA(3, random_state=0, whiten="unit-variance"),
    CCA(n_components=1),
    PLSRegression(n_components=2),
    SGDClassifier(random_state=0),
    KNeighborsClassifier(),
    KNeighborsRegressor(),
    IsolationForest(random_state=0),
    OneClassSVM(kernel="linear"),
    SGDOneClassSVM(random_state=0),
    LocalOutlierFactor(),
    LocalOutlierFactor(novelty=True),
    DBSCAN(eps=0.4),
    RandomForestClassifier(10, random_state=0),
    PoissonRegressor(),
    TSNE(perplexity=10, max_iter=250, random_state=0, init="random"),
    make_pipeline(StandardScaler(), LogisticRegression()),
]


def name_of(estimator):
    return repr(estimator).replace("\n", "")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
class TestEveryEstimator:
    """M(Y) is KM(X): algorithm KM, against the map and the estimator by hand."""

    def test_delegates_what_there_is(self, estimator):
        model = Kernelized(estimator, KERNEL)
        for method in METHODS:
            if method == "fit_transform":
                expected = hasattr(estimator, "fit_transform") or hasattr(estimator, "transform")
            else:
                expected = hasattr(estimator, method)
            assert hasattr(model, method) == expected, method

    def test_equals_the_estimator_on_the_coordinates(self, estimator, iris):
        X, y, Z = iris
        model = Kernelized(estimator, KERNEL).fit(X, y)
        # The exact map, or one with the tolerance that a whitening estimator gets.
        kernel_map = KernelMap(KERNEL, tol=model.kernel_map_.tol)
        Phi = kernel_map.fit_transform(X)
        by_hand = clone(estimator).fit(Phi, y)
        Phi_z = kernel_map.transform(Z)
        for method in METHODS[:6]:
            if hasattr(by_hand, method):
                with np.errstate(divide="ignore"):  # a forest's log of zero
                    expected = getattr(by_hand, method)(Phi_z)
                    found = getattr(model, method)(Z)
                # An SVM has kernel values instead: another path to the same solution, which ends
                # where its tol says.
                atol = 2 * estimator.tol if "machine_" in vars(model) else 0.0
                assert_allclose(found, expected, rtol=0, atol=atol, err_msg=method)
        for method in ("fit_predict", "fit_transform"):
            if hasattr(model, method):
                inner = clone(estimator)
                expected = (
                    getattr(inner, method)(Phi, y)
                    if hasattr(inner, method)
                    else inner.fit(Phi, y).transform(Phi)
                )
                assert_array_equal(getattr(clone(model), method)(X, y), expected, err_msg=method)
        if hasattr(model, "score"):
            t = y[:50]
            assert model.score(Z, t) == by_hand.score(Phi_z, t)

    def test_attributes_shine_through(self, estimator, iris):
        X, y, _ = iris
        model = Kernelized(estimator, KERNEL)
        assert not hasattr(model, "classes_")
        model.fit(X, y)
        own = {"n_features_in_", "dual_coef_", "estimator_"}  # forests have an estimator_ too
        fitted = [name for name in vars(model.estimator_) if name.endswith("_")]
        for name in {n for n in fitted if not n.startswith("_")} - own:
            assert getattr(model, name) is getattr(model.estimator_, name), name
        assert model.n_features_in_ == 4

    def test_says_what_it_is(self, estimator, iris):
        model = Kernelized(estimator, KERNEL)
        for question in (is_classifier, is_regressor, is_clusterer, is_outlier_detector):
            assert question(model) == question(estimator)
        for part in ("target_tags", "classifier_tags", "regressor_tags", "transformer_tags"):
            assert getattr(get_tags(model), part) == getattr(get_tags(estimator), part)

    def test_clone_and_pickle(self, estimator, iris):
        X, y, Z = iris
        model = Kernelized(estimator, KERNEL).fit(X, y)
        copy = pickle.loads(pickle.dumps(model))
        for method in ("predict", "transform"):
            if hasattr(model, method):
                assert_array_equal(getattr(copy, method)(Z), getattr(model, method)(Z))
        fresh = clone(model)
        assert not hasattr(fresh, "estimator_")
        assert fresh.get_params()["kernel"] == KERNEL


# --- KSVM: the same dual variables and the same intercept, [NPT] IV-B -----------------------------

KERNELS = [RBF(0.4), Polynomial(2, gamma=0.5), Laplacian(0.3), Linear()]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_svc_is_the_kernel_svm(iris, kernel, classes, shape):
    X, y, Z = iris
    X, y = X[y < classes], y[y < classes]
    options = {"C": 2.0, "tol": 1e-8, "decision_function_shape": shape}
    classical = SVC(kernel=kernel, **options).fit(X, y)
    model = Kernelized(SVC(kernel="linear", **options), kernel).fit(X, y)
    assert_array_equal(model.support_, classical.support_)
    assert_array_equal(model.n_support_, classical.n_support_)
    assert_allclose(model.dual_coef_, classical.dual_coef_, atol=1e-6)
    assert_allclose(model.intercept_, classical.intercept_, atol=1e-6)
    assert_allclose(model.decision_function(Z), classical.decision_function(Z), atol=1e-6)
    assert_array_equal(model.predict(Z), classical.predict(Z))
    # Its support vectors are the coordinates of theirs.
    coordinates = model.kernel_map_.transform(X[classical.support_])
    assert_allclose(model.support_vectors_, coordinates, atol=1e-6)


@pytest.mark.parametrize("kernel", [RBF(0.4), Polynomial(2, gamma=0.5), Linear()], ids=repr)
@pytest.mark.parametrize(
    "machine", [SVC(), NuSVC(nu=0.2), SVR(), NuSVR(), OneClassSVM()], ids=name_of
)
def test_machines_are_scikit_learns_own(iris, kernel, machine):
    """To the bit, and without the price of a map."""
    X, y, Z = iris
    own = {p: getattr(kernel, p) for p in ("gamma", "degree", "coef0") if hasattr(kernel, p)}
    reference = clone(machine).set_params(kernel=kernel.sklearn_names[0], **own).fit(X, y)
    model = Kernelized(clone(machine).set_params(kernel="linear"), kernel).fit(X, y)
    assert_array_equal(model.predict(Z), reference.predict(Z))
    assert_array_equal(model.dual_coef_, reference.dual_coef_)
    assert_array_equal(model.support_, reference.support_)
    found = model.function_
    found = [found] if isinstance(found, RKHSFunction) else found
    assert "kernel_map_" not in vars(model)
    # The machine of coordinates is made of it when asked for.
    Phi = model.kernel_map_.transform(Z)
    assert_allclose(model.estimator_.predict(Phi), model.predict(Z), atol=1e-9)
    values = Phi @ model.coef_.T + model.intercept_
    assert_allclose(np.column_stack([f(Z) for f in found]), values, atol=1e-7)


@pytest.mark.parametrize("machine", [SVC(), NuSVC(nu=0.2), SVR(), OneClassSVM()], ids=name_of)
@pytest.mark.parametrize("kernel", [RBF(0.4), Linear(), Precomputed()], ids=repr)
def test_machines_of_sparse_rows_and_gram_matrices_are_scikit_learns_own(iris, kernel, machine):
    X, y, Z = iris
    if isinstance(kernel, Precomputed):
        X, Z, own = KERNEL(X), KERNEL(Z, X), {}
    else:
        X, Z, own = scipy.sparse.csr_array(X), scipy.sparse.csr_array(Z), kernel.get_params()
        Z.indices, Z.indptr = Z.indices.astype(np.int64), Z.indptr.astype(np.int64)
    model = Kernelized(clone(machine).set_params(kernel="linear"), kernel).fit(X, y)
    name = kernel.sklearn_names[0] if own or kernel.layout.on_data else "precomputed"
    reference = clone(machine).set_params(kernel=name, **own).fit(X, y)
    new = scipy.sparse.csr_array(Z.toarray()) if kernel.layout.on_data else Z
    assert_array_equal(model.predict(Z), reference.predict(new))
    assert "kernel_map_" not in vars(model)
    Phi = model.kernel_map_.transform(Z)
    assert_allclose(model.estimator_.predict(Phi), model.predict(Z), atol=1e-9)
    assert model.coef_.shape[1] == Phi.shape[1]
    if kernel.layout.on_data:
        assert_array_equal(model.predict(Z.toarray()), model.predict(Z))


def test_machines_of_similarities_that_are_no_kernel(iris):
    X, y, _ = iris
    with pytest.raises(NotPSDError):
        Kernelized(SVC(kernel="linear"), Polynomial(2, coef0=-9.0)).fit(
            scipy.sparse.csr_array(X), y
        )
    with pytest.raises(NotPSDError):
        Kernelized(SVC(kernel="linear"), "precomputed").fit(-KERNEL(X), y)


def test_machines_of_dense_rows_take_sparse_ones(iris):
    X, y, Z = iris
    model = Kernelized(SVC(kernel="linear"), RBF(0.4)).fit(X, y)
    assert_array_equal(model.predict(scipy.sparse.csr_array(Z)), model.predict(Z))


def test_machines_refitted_forget_the_one_before(iris):
    X, y, _ = iris
    model = Kernelized(SVC(kernel="linear"), RBF(0.4)).fit(X, y)
    assert model.coef_.shape[1] == model.kernel_map_.rank_
    model.set_params(kernel=Laplacian(0.3)).fit(X[:60], y[:60] % 2)
    assert "estimator_" not in vars(model)
    assert model.machine_.kernel == "precomputed"
    assert_allclose(model.function_(X), model.decision_function(X), atol=1e-9)
    model.set_params(estimator=LogisticRegression()).fit(X, y)
    assert "machine_" not in vars(model)


def test_few_coordinates_are_cheaper_than_kernel_values(iris):
    """A kernel with a small map of its own that libsvm does not know."""
    X, y, _ = iris
    kernel = QuadraticForm(np.eye(X.shape[1]))
    assert "machine_" not in vars(Kernelized(SVC(kernel="linear"), kernel).fit(X, y))


def test_svc_on_a_precomputed_kernel(iris):
    X, y, Z = iris
    K, k_z = KERNEL(X), KERNEL(Z, X)
    classical = SVC(kernel="precomputed", tol=1e-8).fit(K, y)
    model = Kernelized(SVC(kernel="linear", tol=1e-8), Precomputed()).fit(K, y)
    assert_array_equal(model.support_, classical.support_)
    assert_allclose(model.dual_coef_, classical.dual_coef_, atol=1e-6)
    assert_allclose(model.intercept_, classical.intercept_, atol=1e-6)
    assert_allclose(model.decision_function(k_z), classical.decision_function(k_z), atol=1e-6)
    assert cross_val_score(model, K, y, cv=3).min() > 0.8  # folds slice rows and columns


@pytest.mark.parametrize("basis", ["eigen", "symmetric"])
def test_svc_in_other_bases(iris, basis):
    X, y, Z = iris
    reference = Kernelized(SVC(kernel="linear", tol=1e-8), KERNEL).fit(X, y)
    model = Kernelized(SVC(kernel="linear", tol=1e-8), KernelMap(KERNEL, basis=basis)).fit(X, y)
    assert_allclose(model.dual_coef_, reference.dual_coef_, atol=1e-6)
    assert_allclose(model.decision_function(Z), reference.decision_function(Z), atol=1e-6)


@pytest.mark.parametrize(
    ("linear", "classical"),
    [
        (SVR(kernel="linear", tol=1e-8), SVR(kernel=KERNEL, tol=1e-8)),
        (NuSVC(kernel="linear", nu=0.2, tol=1e-8), NuSVC(kernel=KERNEL, nu=0.2, tol=1e-8)),
        (OneClassSVM(kernel="linear", tol=1e-8), OneClassSVM(kernel=KERNEL, tol=1e-8)),
        (Ridge(0.5, fit_intercept=False), SklearnKernelRidge(alpha=0.5, kernel="rbf", gamma=0.4)),
    ],
    ids=["SVR", "NuSVC", "OneClassSVM", "Ridge"],
)
def test_other_kernel_machines(iris, linear, classical):
    X, y, Z = iris
    model, reference = Kernelized(linear, KERNEL).fit(X, y), classical.fit(X, y)
    method = "decision_function" if hasattr(reference, "decision_function") else "predict"
    assert_allclose(getattr(model, method)(Z), getattr(reference, method)(Z), atol=1e-6)


def test_pca_is_kernel_pca(iris):
    X, _, Z = iris
    model = Kernelized(PCA(4), KERNEL).fit(X)
    reference = SklearnKernelPCA(4, kernel="rbf", gamma=0.4).fit(X)
    assert_allclose(np.abs(model.transform(Z)), np.abs(reference.transform(Z)), atol=1e-7)


def test_neighbours_are_nearest_in_feature_space(iris):
    X, y, Z = iris
    model = Kernelized(KNeighborsClassifier(3), Polynomial(2)).fit(X, y)
    _, found = model.kneighbors(Z)
    K = Polynomial(2)
    squared = K.diag(Z)[:, None] + K.diag(X)[None] - 2 * K(Z, X)
    assert_array_equal(found, np.argsort(squared, axis=1, kind="stable")[:, :3])


def test_nothing_is_centred_unless_the_map_is(iris):
    X, y, _ = iris
    y = y == 1
    plain = Kernelized(SVC(kernel="linear", tol=1e-8), KERNEL).fit(X, y)
    centred = Kernelized(SVC(kernel="linear", tol=1e-8), KernelMap(KERNEL, center=True)).fit(X, y)
    assert plain.kernel_map_.mean_ is None
    assert_allclose(centred.dual_coef_, plain.dual_coef_, atol=1e-5)
    shift = plain.coef_[0] @ plain.kernel_map_.transform(X).mean(axis=0)
    assert abs(shift) > 5e-3
    assert_allclose(centred.intercept_ - plain.intercept_, shift, atol=1e-6)
    assert_allclose(centred.decision_function(X), plain.decision_function(X), atol=1e-5)


def test_algorithm_km_step_by_step(iris):
    """[NPT] III-B as printed: centre, eigendecompose, coordinates, M; then the test phase."""
    X, y, Z = iris
    n = len(X)
    H = np.eye(n) - 1 / n
    K = KERNEL(X)
    values, U = np.linalg.eigh(H @ K @ H)
    kept = values > 1e-12 * values[-1]
    values, U = values[kept], U[:, kept]
    Y = U * np.sqrt(values)
    k_z = (KERNEL(Z, X) - K.mean(axis=0)) @ H
    y_z = k_z @ U / np.sqrt(values)
    by_hand = LogisticRegression(C=10.0, tol=1e-10, max_iter=10000).fit(Y, y)
    inner = LogisticRegression(C=10.0, tol=1e-10, max_iter=10000)
    model = Kernelized(inner, KernelMap(KERNEL, basis="eigen", center=True)).fit(X, y)
    assert_allclose(model.predict_proba(Z), by_hand.predict_proba(y_z), atol=1e-5)


# --- functions: [NPT] Lemma 6 ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (LogisticRegression(), "decision_function"),
        (LinearSVC(), "decision_function"),
        (SVC(kernel="linear", decision_function_shape="ovo"), "decision_function"),
        (SGDClassifier(random_state=0), "decision_function"),
        (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), "decision_function"),
        (Ridge(), "predict"),
        (Ridge(fit_intercept=False), "predict"),
        (Lasso(alpha=0.01), "predict"),
        (PLSRegression(2), "predict"),
        (CCA(1), "predict"),
        (OneClassSVM(kernel="linear"), "decision_function"),
        (SGDOneClassSVM(random_state=0), "decision_function"),
    ],
    ids=name_of,
)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("center", [False, True])
def test_linear_estimators_are_functions(iris, estimator, method, classes, center):
    X, y, Z = iris
    X, y = X[y < classes], y[y < classes]
    model = Kernelized(estimator, KernelMap(KERNEL, center=center)).fit(X, y)
    expected = getattr(model, method)(Z)
    found = model.function_
    if isinstance(found, RKHSFunction):
        values = found(Z)
    else:
        values = np.column_stack([f(Z) for f in found])
    assert_allclose(values, expected, atol=1e-7 * (1 + np.abs(expected).max()))
    if not hasattr(model.estimator_, "dual_coef_"):
        landmarks = model.kernel_map_.landmarks_
        assert model.dual_coef_.shape == (*model.coef_.shape[:-1], len(landmarks))
        moved = KERNEL(Z, landmarks) @ np.atleast_2d(model.dual_coef_).T
        moved = moved - moved[:1]
        centred = values.reshape(len(Z), -1) - values.reshape(len(Z), -1)[:1]
        assert_allclose(moved, centred, atol=1e-7 * (1 + np.abs(centred).max()))


def test_sparse_coefficients_are_functions_too(iris):
    X, y, Z = iris
    model = Kernelized(LogisticRegression(), KERNEL).fit(X, y > 0)
    expected = model.decision_function(Z)
    model.estimator_.sparsify()
    assert_allclose(model.function_(Z), expected, atol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [KNeighborsClassifier(), RandomForestClassifier(3), KMeans(2, n_init=1)],
    ids=name_of,
)
def test_other_estimators_are_not(iris, estimator):
    X, y, _ = iris
    model = Kernelized(estimator, KERNEL).fit(X, y)
    for name in ("function_", "dual_coef_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"linear estimators.*{type(estimator).__name__}"):
            getattr(model, name)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (KernelMap(Linear(), basis="closed"), "no landmarks"),
        (KernelMap(RBF(0.4), append_residual=True), "residual coordinate"),
    ],
    ids=repr,
)
def test_maps_without_functions_say_why(iris, kernel, reason):
    X, y, _ = iris
    model = Kernelized(Ridge(), kernel).fit(X, y)
    with pytest.raises(AttributeError, match=reason):
        _ = model.function_


def test_no_function_of_a_gram_matrix(iris):
    X, y, _ = iris
    model = Kernelized(Ridge(), Precomputed()).fit(KERNEL(X), y)
    with pytest.raises(AttributeError, match="precomputed kernel cannot be evaluated"):
        _ = model.function_
    assert_allclose(
        KERNEL(X)[:, model.kernel_map_.landmark_indices_] @ model.dual_coef_ + model.intercept_,
        model.predict(KERNEL(X)),
        atol=1e-8,
    )


# --- parameters, weights, metadata ----------------------------------------------------------------


def test_nested_parameters():
    X, y = make_circles(120, factor=0.3, noise=0.1, random_state=0)
    search = GridSearchCV(
        Kernelized(LogisticRegression()),
        {"estimator__C": [0.1, 10.0], "kernel__gamma": [0.01, 1.0]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.98
    assert search.best_params_["kernel__gamma"] == 1.0
    through_map = Kernelized(Ridge(), KernelMap("rbf"))
    through_map.set_params(kernel__kernel__gamma=0.7, kernel__max_rank=9).fit(X, y)
    assert through_map.kernel_map_.kernel_ == RBF(0.7)
    assert through_map.kernel_map_.rank_ == 9
    assert through_map.kernel.kernel != "rbf"
    assert not hasattr(through_map.kernel, "rank_")  # the given map is never fitted


def test_sample_weight_reaches_the_estimator(iris, rng):
    X, y, Z = iris
    w = rng.uniform(size=100)
    by_hand = Ridge().fit(KernelMap(KERNEL).fit_transform(X), y, sample_weight=w)
    model = Kernelized(Ridge(), KERNEL).fit(X, y, sample_weight=w)
    assert_array_equal(model.coef_, by_hand.coef_)
    unweighted = Kernelized(Ridge(), KERNEL).fit(X, y)
    assert np.abs(model.predict(Z) - unweighted.predict(Z)).max() > 1e-3
    assert model.score(X, y, sample_weight=w) != model.score(X, y)
    with pytest.raises(TypeError, match="sample_weight"):
        Kernelized(KNeighborsClassifier(), KERNEL).fit(X, y, sample_weight=w)


def test_weights_are_advertised_where_they_are_taken():
    assert has_fit_parameter(Kernelized(Ridge()), "sample_weight")
    assert has_fit_parameter(Kernelized(Kernelized(Ridge())), "sample_weight")
    for estimator in (KNeighborsClassifier(), PCA(2), make_pipeline(Ridge()), None, "svm"):
        assert not has_fit_parameter(Kernelized(estimator), "sample_weight")
    changed = Kernelized(Ridge()).set_params(estimator=PCA(2))
    assert not has_fit_parameter(changed, "sample_weight")


def test_fit_travels_as_methods_do(iris):
    X, y, Z = iris
    model = Kernelized(Ridge(), KERNEL)
    fit = pickle.loads(pickle.dumps(model.fit))
    assert_allclose(fit(X, y).predict(Z), model.fit(X, y).predict(Z))
    assert "map" in Kernelized.fit.__doc__
    assert model.fit.__doc__ == Kernelized.fit.__doc__


def test_boosting_weights_the_rows(iris):
    """AdaBoost gives weights to each round; the first is the plain fit, the second is not."""
    X, y, _ = iris
    boosted = AdaBoostClassifier(
        Kernelized(LogisticRegression(C=10.0), RBF(0.1)), n_estimators=3, random_state=0
    ).fit(X, y)
    first, second, *_ = boosted.estimators_
    by_hand = clone(boosted.estimator).fit(X, y, sample_weight=np.full(100, 0.01))
    assert_allclose(first.coef_, by_hand.coef_, rtol=1e-6)
    assert np.abs(second.coef_ - first.coef_).max() > 1e-2 * np.abs(first.coef_).max()
    assert boosted.score(X, y) > 0.8


def test_boosting_of_regressors(iris):
    X, y, _ = iris
    model = AdaBoostRegressor(Kernelized(Ridge(), KERNEL), n_estimators=3, random_state=0)
    assert model.fit(X, y.astype(float)).score(X, y) > 0.8


def test_several_outputs_with_weights(iris, rng):
    X, y, Z = iris
    Y, w = np.column_stack([y, -2.0 * y]), rng.uniform(size=100)
    model = MultiOutputRegressor(Kernelized(Ridge(), KERNEL)).fit(X, Y, sample_weight=w)
    single = Kernelized(Ridge(), KERNEL).fit(X, y, sample_weight=w)
    assert_allclose(model.predict(Z)[:, 0], single.predict(Z), rtol=1e-10)
    with pytest.raises(ValueError, match="does not support sample weights"):
        MultiOutputRegressor(Kernelized(KNeighborsRegressor(), KERNEL)).fit(X, Y, sample_weight=w)


class Everything(BaseEstimator):
    """An estimator with every method that scikit-learn's estimators have."""

    METHODS = {
        name
        for _, cls in all_estimators()
        for name in dir(cls)
        if callable(getattr(cls, name, None)) and not name.startswith("_")
    } - {"set_output"}  # not a method of the estimator's work

    def fit(self, X, y=None):
        return self

    def __getattr__(self, name):
        if name in Everything.METHODS:
            return lambda *args, **kwargs: None
        raise AttributeError(name)


def test_the_documented_methods_are_those_that_are_passed_on():
    """Kernelized says which methods it passes on: these it has with an estimator that has all,
    and none of them with one that has none."""
    listed = re.search(r"has the method: (.*?); no other", Kernelized.__doc__, re.DOTALL)[1]
    listed = {name.strip() for name in listed.split(",")}
    everything, nothing = Kernelized(Everything()), Kernelized(BaseEstimator())
    assert {
        m for m in Everything.METHODS if hasattr(everything, m) and not hasattr(nothing, m)
    } == (listed)


def test_metadata_routing(iris, rng):
    X, y, _ = iris
    w = rng.uniform(size=100)
    plain = Kernelized(Ridge(), KERNEL).fit(X, y, sample_weight=w)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = Kernelized(asked, KERNEL).fit(X, y, sample_weight=w)
        assert_array_equal(routed.coef_, plain.coef_)
        assert routed.score(X, y, sample_weight=w) == plain.estimator_.score(
            plain.kernel_map_.transform(X), y, sample_weight=w
        )
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            Kernelized(Ridge(), KERNEL).fit(X, y, sample_weight=w)
        refused = Ridge().set_fit_request(sample_weight=False)
        ignoring = GridSearchCV(Kernelized(refused, KERNEL), {"estimator__alpha": [1.0]}, cv=3)
        assert ignoring.fit(X, y).best_score_ > 0
        search = GridSearchCV(Kernelized(asked, KERNEL), {"estimator__alpha": [1.0]}, cv=3)
        search.fit(X, y, sample_weight=w)
        assert_array_equal(search.best_estimator_.coef_, plain.coef_)


def test_prediction_parameters_are_passed_on(iris):
    from sklearn.linear_model import BayesianRidge

    X, y, Z = iris
    model = Kernelized(BayesianRidge(), KERNEL).fit(X, y)
    mean, std = model.predict(Z, return_std=True)
    assert mean.shape == std.shape == (50,)


def test_frames_keep_names_and_index(iris):
    pandas = pytest.importorskip("pandas")
    X, y, _ = iris
    frame = pandas.DataFrame(X, columns=list("abcd"), index=np.arange(100) + 1000)
    model = Kernelized(PCA(2), KERNEL).set_output(transform="pandas")
    out = model.fit(frame, y).transform(frame)
    assert list(out.columns) == ["pca0", "pca1"]
    assert_array_equal(out.index, frame.index)
    assert_array_equal(model.feature_names_in_, list("abcd"))
    assert_array_equal(clone(model).fit_transform(frame).index, frame.index)
    with sklearn.config_context(transform_output="pandas"):
        inside = Kernelized(PCA(2), KERNEL).fit(frame)
        assert_array_equal(inside.transform(frame).index, frame.index)
        Kernelized(Ridge(), KERNEL).fit(frame, y).predict(frame)
    assert not hasattr(Kernelized(Ridge(), KERNEL), "set_output")


def test_words(iris):
    common = FromFunction(lambda a, b: float(sum(a.count(c) * b.count(c) for c in "abcd")))
    words, y = ["aab", "aba", "ccd", "dcc", "abb", "cdd"], [0, 0, 1, 1, 0, 1]
    model = Kernelized(LogisticRegression(), common).fit(words, y)
    assert model.predict(["bab", "dcd"]).tolist() == [0, 1]
    assert_allclose(model.function_(["bab"]), model.decision_function(["bab"]), atol=1e-9)


def test_in_a_pipeline(iris):
    X, y, _ = iris
    model = make_pipeline(StandardScaler(), Kernelized(PCA(5), KERNEL), LogisticRegression())
    assert cross_val_score(model, X, y, cv=3).mean() > 0.85


def test_torch_goes_to_estimators_that_take_it(iris):
    torch = pytest.importorskip("torch")
    if os.environ.get("MERCER_TEST_DEVICE", "cpu") != "cpu":
        pytest.skip("scikit-learn's own estimators take device arrays with array_api_dispatch only")
    X, y, Z = iris
    model = Kernelized(Ridge(solver="svd"), KERNEL).fit(torch.asarray(X), y)
    assert_allclose(
        as_numpy(model.predict(torch.asarray(Z))),
        Kernelized(Ridge(solver="svd"), KERNEL).fit(X, y).predict(Z),
        atol=1e-8,
    )


# --- bad input ------------------------------------------------------------------------------------


def test_not_fitted(iris):
    model = Kernelized(Ridge(), KERNEL)
    with pytest.raises(NotFittedError):
        model.predict(iris[2])
    with pytest.raises(NotFittedError):
        _ = model.function_
    with pytest.raises(AttributeError, match="no attribute 'coef_'"):
        _ = model.coef_
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = model.nonsense


@pytest.mark.parametrize("estimator", [None, "svm", Ridge, 3])
def test_not_an_estimator(iris, estimator):
    X, y, _ = iris
    with pytest.raises(TypeError, match="estimator"):
        Kernelized(estimator, KERNEL).fit(X, y)


def test_lengths_are_compared_first(iris):
    class Expensive(RBF):
        def against(self, S):
            raise AssertionError("the kernel was evaluated")

    X, y, _ = iris
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Kernelized(Ridge(), Expensive(1.0)).fit(X, y[:-1])


def test_a_failed_fit_leaves_the_old_one(iris):
    X, y, Z = iris
    model = Kernelized(LogisticRegression(), KERNEL).fit(X, y)
    before = model.predict(Z)
    with pytest.raises(ValueError, match="class"):
        model.fit(X, np.zeros(100))
    assert_array_equal(model.predict(Z), before)


def test_columns_are_checked(iris):
    X, y, Z = iris
    model = Kernelized(Ridge(), KERNEL).fit(X, y)
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict(Z[:, :2])


def test_inverse_transform_goes_all_the_way_back(iris):
    """Scores to coordinates by PCA, coordinates to inputs by the map: exact for a linear kernel."""
    X, _, _ = iris
    model = Kernelized(PCA(2), Linear()).fit(X)
    flat = PCA(2).fit(X)
    expected = flat.inverse_transform(flat.transform(X))
    assert_allclose(model.inverse_transform(model.transform(X)), expected, atol=1e-8)
