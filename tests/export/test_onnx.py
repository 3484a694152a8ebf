"""ONNX graphs: what onnxruntime computes is what the model computes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from every_kernel import (
    GRAM_KERNELS,
    HISTOGRAM_KERNELS,
    VECTOR_KERNELS,
    doubled,
    points_for,
)
from mercer import (
    RBF,
    ClassicalMDS,
    Cosine,
    DriftDetector,
    FromFeatures,
    FromFunction,
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
    Linear,
    Matern,
    Normalized,
    OnFeatures,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Rescaled,
    RKHSFunction,
    to_onnx,
)

pytest.importorskip("onnx", reason="onnx is not installed: mercer[onnx]")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def run(proto, X):
    """{output: value} by onnxruntime, with its optimizations as they are."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": X})))


def _by_user(kernel):
    parts = [kernel, *kernel.get_params(deep=True).values()]
    return any(isinstance(p, (FromFunction, FromFeatures, OnFeatures, Rescaled)) for p in parts)


def _zero(kernel):
    return float(np.max(np.abs(kernel(points_for(kernel))))) == 0.0


EXPRESSIBLE = [
    k
    for k in VECTOR_KERNELS + HISTOGRAM_KERNELS + GRAM_KERNELS
    if not _by_user(k) and k != Matern(nu=0.8) and not _zero(k)
]
NOT_EXPRESSIBLE = [
    k for k in VECTOR_KERNELS + HISTOGRAM_KERNELS if (_by_user(k) or k == Matern(nu=0.8))
]


def assert_inner_products_agree(kernel_map, Phi, expected, bound):
    """Within 1e-8 of the scale, or of the map's own certificate: raw coordinates may rotate."""
    scale = np.abs(expected).max()
    assert np.all(np.abs(Phi @ Phi.T - expected) <= np.maximum(1e-8 * scale, bound))


@pytest.mark.parametrize("kernel", EXPRESSIBLE, ids=repr)
def test_maps_reproduce_the_kernel(kernel):
    X = points_for(kernel, n=40)
    kernel_map = KernelMap(kernel, indefinite="clip").fit(X)
    Phi = run(to_onnx(kernel_map), X)["coordinates"]
    P = kernel_map.transform(X)
    assert Phi.dtype == np.float64
    assert_inner_products_agree(kernel_map, Phi, P @ P.T, 0.0)


@pytest.mark.parametrize(
    "kernel",
    [k for k in EXPRESSIBLE if k not in GRAM_KERNELS and k.explicit_dim(4) and k.is_psd],
    ids=repr,
)
def test_closed_maps_are_the_same_features(kernel):
    X = points_for(kernel, n=40)
    kernel_map = KernelMap(kernel, basis="closed", center=True).fit(X)
    P = kernel_map.transform(X)
    Phi = run(to_onnx(kernel_map), X)["coordinates"]
    assert_allclose(Phi, P, rtol=1e-10, atol=1e-12 * max(1.0, np.abs(P).max()))


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1.0),
        RBF(0.1),
        (0.3 * Linear()).exp(),
        RationalQuadratic(),
        Periodic(period=7.0),
        Matern(2.5),
        Laplacian(0.5),
        Polynomial(9),
    ],
    ids=repr,
)
@pytest.mark.parametrize("basis", ["cholesky", "eigen", "symmetric"])
def test_numerically_singular_maps_keep_their_certificate(kernel, basis, rng):
    """Without the step of refinement, RationalQuadratic leaves its bound here."""
    X, Z = rng.normal(size=(300, 2)), 1.3 * rng.normal(size=(100, 2))
    kernel_map = KernelMap(kernel, basis=basis).fit(X)
    rows = np.vstack([X, Z])
    Phi = run(to_onnx(kernel_map), rows)["coordinates"]
    assert np.all(np.abs(Phi @ Phi.T - kernel(rows)) <= kernel_map.error_bound(rows))


@pytest.mark.parametrize("center", [False, True])
def test_the_residual_coordinate_is_written(center, rng):
    X, Z = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    kernel_map = KernelMap(
        Normalized(Polynomial(2)) + RBF(0.5), append_residual=True, center=center
    ).fit(X)
    Phi = run(to_onnx(kernel_map), Z)["coordinates"]
    expected = kernel_map.transform(Z)
    assert Phi.shape == expected.shape
    assert_allclose(Phi[:, -1], expected[:, -1], atol=1e-7)
    assert_allclose(Phi @ Phi.T, expected @ expected.T, atol=1e-8)


@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(2.5), Polynomial(2)], ids=repr)
def test_the_residual_of_a_training_row_is_zero_and_a_number(kernel, rng):
    """k(x, x) - |phi(x)|^2 is rounding there, of either sign; its root must not become NaN."""
    X = rng.normal(size=(60, 3))
    Phi = run(to_onnx(KernelMap(kernel, append_residual=True).fit(X)), X)["coordinates"]
    assert np.all(np.isfinite(Phi))
    assert np.all(Phi[:, -1] >= 0)
    assert np.all(Phi[:, -1] <= 1e-5 * np.sqrt(kernel.diag(X)))
    assert np.any(Phi[:, -1] == 0)  # some came out negative, and were cut off


@pytest.mark.parametrize("columns", [1, 5])
@pytest.mark.parametrize(
    "kernel", [0.3 * Linear() + 1, RBF(0.7), 0.1 * Cosine(), 3 * RBF([0.7])], ids=repr
)
def test_factors_next_to_matrix_products_stay_double(kernel, columns, rng):
    """onnxruntime fuses constant scalars into matrix products as float32: 7e-8 off."""
    X = rng.normal(size=(30, columns))
    f = RKHSFunction(kernel, X, rng.normal(size=30))
    assert_allclose(run(to_onnx(f), X)["value"], f(X), rtol=0, atol=1e-13 * np.abs(f(X)).max() * 30)


# --- methods --------------------------------------------------------------------------------------


@pytest.fixture
def X(rng):
    return rng.normal(size=(80, 3))


@pytest.fixture
def Z(rng):
    return rng.normal(size=(25, 3))


def close(found, expected):
    assert found.shape == expected.shape
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize(
    "model",
    [
        KernelPCA(3, RBF(0.2)),
        KernelPCA(3, RBF(0.2), solver="factor"),
        KernelPCA(2, KernelMap(RBF(0.2), max_rank=15)),
        KernelPCA(3, Polynomial(2), form="classical"),
        KernelPCAL1(2, RBF(0.2), random_state=0),
    ],
    ids=repr,
)
def test_scores_agree(model, X, Z):
    model.fit(X)
    close(run(to_onnx(model), Z)["scores"], model.transform(Z))


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(0.1, RBF(0.2)),
        KernelRidge(0.1, RBF(0.2), form="dual"),
        KernelRidge(0.1, RBF(0.2), form="iterative"),
        KernelRidge(0.1, RBF(0.2), form="primal"),
        KernelRidge(1e-6, KernelMap(RBF(0.05), center=True)),
        KernelRidge(0.1, KernelMap(Polynomial(2), basis="closed")),
        KernelRidge(0.1, KernelMap(RBF(0.2), append_residual=True, max_rank=10)),
        KernelRidgeCV([0.1, 1.0], Matern(1.5)),
        Kernelized(Ridge(0.1), RBF(0.2)),
        Kernelized(LinearRegression(), KernelMap(RBF(0.2), max_rank=10)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("targets", [1, 3])
def test_predictions_agree(model, targets, X, Z, rng):
    Y = np.sin(X @ rng.normal(size=(3, targets)))
    model.fit(X, Y[:, 0] if targets == 1 else Y)
    close(run(to_onnx(model), Z)["prediction"], model.predict(Z))


@pytest.mark.parametrize(
    "model",
    [
        KernelDiscriminant(kernel=RBF(0.2)),
        KernelDiscriminant(kernel=RBF(0.2), form="iterative"),
        KernelDiscriminant(1, kernel=KernelMap(RBF(0.2), max_rank=20), shrinkage=0.1),
        KernelLogistic(kernel=RBF(0.2)),
        KernelLogistic(kernel=KernelMap(RBF(0.2), max_rank=20)),
        Kernelized(LogisticRegression(), RBF(0.2)),
        Kernelized(LinearSVC(), RBF(0.2)),
        Kernelized(SVC(kernel="linear"), RBF(0.2)),
        Kernelized(RidgeClassifier(), RBF(0.2)),
        KernelClassifier(n_rounds=1, max_landmarks=40),
    ],
    ids=repr,
)
@pytest.mark.parametrize("classes", [[0, 1], ["a", "b", "c"], [False, True], [1.0, 2.0, 4.0]])
def test_classes_and_probabilities_agree(model, classes, X, Z):
    y = np.array(classes)[np.digitize(X[:, 0], [-0.3, 0.4][: len(classes) - 1])]
    model.fit(X, y)
    found = run(to_onnx(model), Z)
    assert np.array_equal(found["label"].astype(y.dtype), model.predict(Z))
    if hasattr(model, "predict_proba"):
        close(found["probabilities"], model.predict_proba(Z))
    if "decision" in found:
        close(found["decision"], model.decision_function(Z))
    if isinstance(model, KernelDiscriminant):
        close(found["scores"], model.transform(Z))


def test_a_support_vector_machine_of_two_classes(X, Z):
    model = KernelSVC(1.0, RBF(0.2)).fit(X, X[:, 0] > 0)
    found = run(to_onnx(model), Z)
    close(found["decision"], model.decision_function(Z))
    assert np.array_equal(found["label"].astype(bool), model.predict(Z))
    with pytest.raises(TypeError, match="in pairs"):
        to_onnx(KernelSVC(1.0, RBF(0.2)).fit(X, np.digitize(X[:, 0], [-0.3, 0.4])))


@pytest.mark.parametrize("targets", [1, 2])
def test_a_learned_model_of_numbers_with_gaps(targets, rng):
    """The graph fills gaps, ranks skewed columns and knows single values, as the encoder does."""
    X = np.column_stack(
        [
            rng.normal(size=150),
            np.exp(2 * rng.normal(size=150)),
            rng.integers(0, 4, 150),
            np.ones(150),
        ]
    )
    X[::6, 0] = np.nan
    Y = np.column_stack([np.log(X[:, 1]) + (X[:, 2] == 2), np.nan_to_num(X[:, 0])])
    model = KernelRegressor(n_rounds=2, max_landmarks=60).fit(X, Y[:, 0] if targets == 1 else Y)
    assert len(model.encoder_.feature_names_out_) > 3
    Z = np.vstack([X[:40], [[0.3, 1e4, 7, 1], [np.nan, np.nan, np.nan, 2]]])
    close(run(to_onnx(model), Z)["prediction"], model.predict(Z))
    words = pd.DataFrame({"x": X[:, 1], "town": np.resize(["Rome", "Oslo"], 150)})
    with pytest.raises(TypeError, match="the column 'town' is a category"):
        to_onnx(KernelRegressor(n_rounds=1, max_landmarks=60).fit(words, Y[:, 0]))


def test_pairs_of_many_classes_vote(X, Z):
    y = np.digitize(X[:, 0], [-1, 0, 1])
    model = Kernelized(SVC(kernel="linear"), RBF(0.2)).fit(X, y)
    found = run(to_onnx(model), Z)
    assert np.array_equal(found["label"], model.predict(Z))
    assert found["pairs"].shape == (len(Z), 6)


def test_a_drift_detector(X, Z):
    model = DriftDetector(RBF(0.1), random_state=0).fit(X)
    want = model.decision_function(Z)
    got = run(to_onnx(model), Z)["decision"]
    assert_allclose(got, want, atol=1e-8 * max(1.0, np.abs(want).max()))
    frame = pd.DataFrame(X).add_prefix("c")
    with pytest.raises(ValueError, match="data frame"):
        to_onnx(DriftDetector(random_state=0).fit(frame))


def test_functions_of_the_space(X, Z, rng):
    f = KernelMap(RBF(0.2)).fit(X).function(rng.normal(size=80), 0.5)
    # The weights of a singular map are huge and cancel: relative to what is summed.
    size = np.abs(f.coef).sum()
    assert_allclose(run(to_onnx(f), Z)["value"], f(Z), rtol=0, atol=1e-15 * size * 80)


def test_sparse_landmarks_and_single_precision_models(X, Z):
    sparse = KernelRidge(0.1, RBF(0.2)).fit(scipy.sparse.csr_array(X), X[:, 0])
    close(run(to_onnx(sparse), Z)["prediction"], sparse.predict(scipy.sparse.csr_array(Z)))
    single = KernelRidge(0.1, RBF(0.2)).fit(X.astype(np.float32), X[:, 0])
    found = run(to_onnx(single), Z.astype(np.float32).astype(float))["prediction"]
    assert_allclose(found, single.predict(Z.astype(np.float32)), rtol=1e-4, atol=1e-4)


def test_single_precision_goes_in_and_out(X, Z):
    model = KernelRidge(0.01, RBF(0.2)).fit(X, X[:, 0])
    found = run(to_onnx(model, dtype="float32"), Z.astype(np.float32))["prediction"]
    assert found.dtype == np.float32
    # Computed in double: what is left is the rounding of the result.
    expected = model.predict(Z.astype(np.float32).astype(float))
    assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_columns_of_a_frame(X, Z):
    pd = pytest.importorskip("pandas")
    from mercer import OnColumns

    kernel = OnColumns(RBF(), ["c", "a"]) + OnColumns(Linear(), "b")
    model = KernelRidge(0.1, kernel).fit(pd.DataFrame(X, columns=list("abc")), X[:, 0])
    expected = model.predict(pd.DataFrame(Z, columns=list("abc")))
    close(run(to_onnx(model), Z)["prediction"], expected)


def test_torch_models_are_written(X, Z):
    torch = pytest.importorskip("torch")
    model = KernelPCA(2, RBF(0.2)).fit(torch.tensor(X))
    close(run(to_onnx(model), Z)["scores"], model.transform(torch.tensor(Z)).cpu().numpy())


# --- pipelines ------------------------------------------------------------------------------------


class TestPipelines:
    @pytest.fixture(autouse=True)
    def skl2onnx(self):
        return pytest.importorskip("skl2onnx")

    def test_a_regressor_at_the_end(self, X, Z):
        model = make_pipeline(StandardScaler(), KernelRidge(0.1, RBF(0.2))).fit(X, X[:, 0])
        close(run(to_onnx(model), Z)["variable"][:, 0], model.predict(Z))

    @pytest.mark.parametrize("labels", [[0, 1], ["a", "b"]])
    @pytest.mark.parametrize(
        "last", [KernelDiscriminant(), Kernelized(LogisticRegression(), RBF(0.2))], ids=repr
    )
    def test_a_classifier_at_the_end(self, last, labels, X, Z):
        y = np.array(labels)[(X[:, 0] > 0).astype(int)]
        model = make_pipeline(StandardScaler(), last).fit(X, y)
        found = run(to_onnx(model), Z)
        assert np.array_equal(found["label"], model.predict(Z))
        close(found["probabilities"], model.predict_proba(Z))

    def test_a_map_in_the_middle(self, X, Z):
        model = make_pipeline(StandardScaler(), KernelMap(RBF(0.2), max_rank=20), PCA(3)).fit(X)
        close(run(to_onnx(model), Z)["variable"], model.transform(Z))

    def test_maps_that_use_loops_twice(self, X, Z):
        model = make_pipeline(KernelPCA(3, Laplacian(0.2)), KernelPCA(2, Matern(0.5))).fit(X)
        close(run(to_onnx(model), Z)["variable"], model.transform(Z))

    def test_a_classifier_of_scikit_learn_at_the_end(self, X, Z):
        y = (X[:, 0] > 0).astype(int)
        model = make_pipeline(KernelMap(RBF(0.2), max_rank=20), LogisticRegression()).fit(X, y)
        found = run(to_onnx(model), Z)
        assert np.array_equal(found["label"], model.predict(Z))
        # skl2onnx holds the coefficients of linear classifiers in float32.
        assert_allclose(found["probabilities"], model.predict_proba(Z), atol=1e-5)

    def test_a_discriminant_in_the_middle_is_refused(self, X):
        y = (X[:, 0] > 0).astype(int)
        model = make_pipeline(KernelDiscriminant(), LogisticRegression()).fit(X, y)
        with pytest.raises(TypeError, match="KernelDiscriminant amid a pipeline"):
            to_onnx(model)

    def test_skl2onnx_itself_after_registering(self, skl2onnx, X, Z):
        import mercer.export.onnx

        mercer.export.onnx.register()
        model = make_pipeline(StandardScaler(), KernelPCA(2, RBF(0.2))).fit(X)
        single = skl2onnx.to_onnx(model, X.astype(np.float32))
        found = run(single, Z.astype(np.float32))["variable"]
        assert found.dtype == np.float32
        assert_allclose(found, model.transform(Z), atol=1e-5)


# --- what cannot be written says so ---------------------------------------------------------------


@pytest.mark.parametrize("kernel", NOT_EXPRESSIBLE, ids=repr)
def test_kernels_that_cannot_be_written_are_named(kernel):
    kernel_map = KernelMap(kernel).fit(points_for(kernel))
    with pytest.raises(
        ValueError, match=r"(Matern|From|On|Rescaled)\w* cannot be written as a graph"
    ):
        to_onnx(kernel_map)


def test_a_kernel_deep_inside_is_named(X):
    model = KernelRidge(0.1, RBF(0.2) + 2 * OnFeatures(Linear(), doubled)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="OnFeatures cannot be written"):
        to_onnx(model)


def test_models_that_cannot_be_written_are_named(X):
    y = (X[:, 0] > 0).astype(int)
    forest = Kernelized(RandomForestClassifier(3), RBF(0.2)).fit(X, y)
    with pytest.raises(TypeError, match="RandomForestClassifier is not one"):
        to_onnx(forest)
    own = Kernelized(SVC(), RBF(0.2)).fit(X, y)
    with pytest.raises(TypeError, match=r"has a kernel of its own: use SVC\(kernel='linear'\)"):
        to_onnx(own)
    poisson = Kernelized(PoissonRegressor(), RBF(0.2)).fit(X, 3 * y)
    with pytest.raises(
        TypeError, match="predict of PoissonRegressor is not that of a linear model"
    ):
        to_onnx(poisson)
    ties = Kernelized(SVC(kernel="linear", break_ties=True), RBF(0.01))
    with pytest.raises(TypeError, match="predict of SVC is not that"):
        to_onnx(ties.fit(X, np.arange(len(X)) % 4))
    with pytest.raises(TypeError, match="cannot write ClassicalMDS"):
        to_onnx(ClassicalMDS(2).fit(X))
    with pytest.raises(TypeError, match="takes a fitted model, got str"):
        to_onnx("rbf")
    with pytest.raises(ValueError, match="fitted on objects"):
        to_onnx(KernelMap(FromFunction(lambda a, b: float(a == b))).fit(["a", "b"]))


def test_unfitted_models_and_odd_types_are_refused(X):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="not fitted yet"):
        to_onnx(KernelMap())
    with pytest.raises(ValueError, match="dtype must be one of float64, float32, got 'int8'"):
        to_onnx(KernelMap().fit(X), dtype="int8")
