"""scikit-learn's own checks over every estimator, and what its users do with them."""

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    RBF,
    ClassicalMDS,
    KernelClassifier,
    KernelDiscriminant,
    Kernelized,
    KernelLogistic,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
    KernelSVC,
    Laplacian,
    Matern,
    Polynomial,
    Precomputed,
    TableEncoder,
)
from mercer.engine.arrays import as_numpy

# No expected failures. Precomputed comes with a correction, because two of scikit-learn's checks
# hand over matrices that are no Gram matrices (rounded to integers; a mean subtracted) and expect
# a fit: refusing them is what indefinite="raise" is for (see the test below).
ESTIMATORS = [
    KernelMap(),
    KernelMap(basis="eigen", center=True),
    KernelMap(basis="symmetric"),
    KernelMap("linear", basis="closed"),
    KernelMap(Polynomial(2), basis="auto", center=True),
    KernelMap(Laplacian(), append_residual=True),
    KernelMap(Matern(), max_rank=5),
    KernelMap(RBF(0.1), pivots="random", tol=1e-3, random_state=0),
    KernelMap(RBF(0.1), pivots="uniform", max_rank=4, random_state=0),
    KernelMap("chi2"),
    KernelMap(Precomputed(), indefinite="clip"),
    KernelMap("precomputed", indefinite="flip", basis="eigen", center=True),
    # Solvers run to the end: with their default tolerance scikit-learn's own LogisticRegression and
    # LinearSVC fail its checks of weights.
    Kernelized(LogisticRegression(solver="newton-cholesky", tol=1e-10), RBF(0.1)),
    Kernelized(Ridge()),
    Kernelized(PCA(1)),
    Kernelized(LinearSVC(dual=False, tol=1e-10), RBF(0.1)),
    Kernelized(KNeighborsClassifier()),
    Kernelized(Ridge(), KernelMap(RBF(0.1), basis="eigen", center=True)),
    KernelDiscriminant(),
    KernelDiscriminant(class_weight="balanced"),
    KernelDiscriminant(kernel=RBF(0.1), form="iterative"),
    KernelRidge(),
    KernelRidge(kernel=RBF(0.1), form="primal"),
    KernelRidge(kernel=RBF(0.1), form="dual"),
    KernelRidge(kernel=RBF(0.1), form="iterative"),
    # One alpha: leaving out a row of weight 2 is not leaving out one of its two copies.
    KernelRidgeCV([1.0]),
    KernelSVC(kernel=RBF(0.1)),
    KernelSVC(kernel=KernelMap(RBF(0.1))),
    KernelLogistic(kernel=RBF(0.1)),
    KernelLogistic(kernel=KernelMap(RBF(0.1), basis="eigen", center=True)),
    KernelRegressor("rbf", metric="diagonal", n_rounds=1),
    KernelClassifier("rbf", metric="diagonal", n_rounds=1),
    KernelPCA(),
    KernelPCA(2, solver="krylov"),
    KernelPCA(solver="factor"),
    KernelPCA(2, KernelMap(basis="eigen")),
    KernelPCAL1(),
    ClassicalMDS(),
    ClassicalMDS(metric="manhattan", correction="cailliez"),
    ClassicalMDS(metric="precomputed"),
    TableEncoder(),
    TableEncoder(scale="unit", text="drop"),
]


# Ridge(solver="auto") says that it takes another solver for arrays that are not NumPy's.
@pytest.mark.filterwarnings("ignore:Using Array API dispatch to namespace:UserWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_what_two_checks_hand_over_as_gram_matrices_are_none():
    """check_estimators_dtypes rounds a Gram matrix to integers; check_positive_only_tag_during_fit
    subtracts its mean entry: both have eigenvalues far below zero."""
    X = 3 * np.random.RandomState(0).uniform(size=(20, 5)).astype(np.float32)
    assert np.linalg.eigvalsh((X @ X.T).astype(int))[0] < -0.1
    X = load_iris(return_X_y=True)[0]
    K = X @ X.T
    assert np.linalg.eigvalsh(K - K.mean())[0] < -0.1


def test_array_api_checks_are_not_skipped():
    """scikit-learn's checks of torch and array-api-strict need dispatch, and skip without it."""
    with sklearn.config_context(array_api_dispatch=True):  # raises where SciPy was not told
        assert sklearn.get_config()["array_api_dispatch"]


def test_a_table_of_another_library_under_dispatch(xp, rng):
    X = rng.normal(size=(40, 3))
    with sklearn.config_context(array_api_dispatch=True):
        encoded = TableEncoder().fit_transform(xp.asarray(X))
    np.testing.assert_array_equal(encoded, TableEncoder().fit_transform(X))


def test_dispatch_in_a_pipeline(xp, rng):
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    model = make_pipeline(KernelMap(RBF(0.1), basis="eigen"), Ridge(solver="svd"))
    expected = model.fit(X, y).predict(X)
    with sklearn.config_context(array_api_dispatch=True):
        predicted = model.fit(xp.asarray(X), xp.asarray(y)).predict(xp.asarray(X))
    assert type(predicted) is type(xp.asarray(X))
    np.testing.assert_allclose(as_numpy(predicted), expected, atol=1e-9)


# --- what people do -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.15, random_state=0)


def test_a_linear_classifier_on_the_map_is_the_kernel_classifier(moons):
    X, y = moons
    on_the_map = make_pipeline(KernelMap(RBF(1.0)), SVC(kernel="linear", tol=1e-6)).fit(X, y)
    kernel_machine = SVC(kernel="rbf", gamma=1.0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(
        on_the_map.decision_function(X), kernel_machine.decision_function(X), atol=1e-4
    )
    assert make_pipeline(StandardScaler(), KernelMap(), LinearSVC()).fit(X, y).score(X, y) > 0.9


def test_grid_search_over_kernel_and_map(moons):
    X, y = moons
    pipeline = make_pipeline(KernelMap(RBF()), RidgeClassifier())
    grid = {
        "kernelmap__kernel__gamma": [0.01, 1.0, "scale"],
        "kernelmap__tol": [1e-2, 1e-8],
        "kernelmap__max_rank": [2, None],
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["kernelmap__max_rank"] is None
    assert search.best_score_ > 0.9


def test_a_name_becomes_a_kernel_when_its_parameters_are_set():
    kernel_map = KernelMap("rbf").set_params(kernel__gamma=0.3)
    assert kernel_map.kernel == RBF(0.3)
    assert KernelMap().set_params(kernel="poly", kernel__degree=2).kernel == Polynomial(2)
    with pytest.raises(ValueError, match="Invalid parameter"):
        KernelMap().set_params(nonsense=1)
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        KernelMap().set_params(kernel__nonsense=1)
    assert KernelRegressor("poly").set_params(kernel__degree=2).kernel == Polynomial(2)
    with pytest.raises(ValueError, match="Invalid parameter 'gamma' for estimator FromFunction"):
        KernelMap(np.dot).set_params(kernel__gamma=1)


def test_cross_validation_slices_both_axes_of_a_gram_matrix(moons):
    X, y = moons
    folds = KFold(4, shuffle=True, random_state=0)
    direct = cross_val_score(
        make_pipeline(KernelMap(RBF(1.0)), LogisticRegression()), X, y, cv=folds
    )
    gram = cross_val_score(
        make_pipeline(KernelMap(Precomputed()), LogisticRegression()), RBF(1.0)(X), y, cv=folds
    )
    np.testing.assert_allclose(gram, direct)
    search = GridSearchCV(
        make_pipeline(KernelMap("precomputed"), LogisticRegression()),
        {"kernelmap__max_rank": [3, 30]},
        cv=folds,
        error_score="raise",
    ).fit(RBF(1.0)(X), y)
    assert search.best_params_["kernelmap__max_rank"] == 30


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(moons, library):
    frames = pytest.importorskip(library)
    kernel_map = KernelMap(RBF(1.0), max_rank=4, append_residual=True).set_output(transform=library)
    for frame in (kernel_map.fit_transform(moons[0]), kernel_map.transform(moons[0])):
        assert isinstance(frame, frames.DataFrame)
        assert list(frame.columns) == [f"kernelmap{i}" for i in range(5)]
    names = kernel_map.get_feature_names_out()
    assert list(names) == [f"kernelmap{i}" for i in range(5)]


@pytest.mark.parametrize("model", [KernelRegressor(n_rounds=0), KernelClassifier(n_rounds=0)])
def test_lost_names_are_noticed_once(moons, model):
    frames = pytest.importorskip("pandas")
    model = clone(model).fit(frames.DataFrame(moons[0], columns=["a", "b"]), moons[1])
    name = type(model).__name__
    with pytest.warns(UserWarning, match=f"feature names, but {name} was fitted") as found:
        model.predict(moons[0])
    assert len(found) == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_their_values(moons, library):
    frames = pytest.importorskip(library)
    X = moons[0]
    frame = frames.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    kernel_map = KernelMap(RBF(1.0))
    Phi = kernel_map.fit_transform(frame)
    np.testing.assert_allclose(Phi @ Phi.T, RBF(1.0)(X), atol=1e-12)
    assert list(kernel_map.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        kernel_map.transform(frame[["b", "a"]])


def test_sparse_rows_are_their_values(rng):
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.5)
    for kernel in (RBF(0.5), Polynomial(2), "cosine"):
        for basis in ("cholesky", "eigen", "symmetric"):
            dense = KernelMap(kernel, basis=basis).fit(X)
            for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
                sparse = KernelMap(kernel, basis=basis).fit(kind(X))
                P, Q = dense.transform(X), sparse.transform(kind(X))
                np.testing.assert_allclose(P @ P.T, Q @ Q.T, atol=1e-9)
    closed = KernelMap(Polynomial(2), basis="closed").fit(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(
        closed.transform(scipy.sparse.csr_array(X)), Polynomial(2).explicit(X), atol=1e-12
    )
    with pytest.raises(TypeError, match="dense"):
        KernelMap(Laplacian(1.0)).fit(scipy.sparse.csr_array(X))


def test_clone_forgets_the_fit(moons):
    fitted = KernelMap(RBF(1.0), append_residual=True, tol=1e-3).fit(moons[0])
    copy = clone(fitted)
    assert not hasattr(copy, "rank_")
    assert repr(copy) == repr(fitted)
    assert copy.get_params()["append_residual"] is True
