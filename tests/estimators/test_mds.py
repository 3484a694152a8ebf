"""ClassicalMDS: PCA on Euclidean distances, negative eigenvalues told, new points one at a time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances

from mercer import RBF, ClassicalMDS, KernelMap, KernelPCA
from mercer.engine.arrays import as_numpy

# Road distances between seven places on the rim of a lake: no map in any dimension has them.
ROADS = np.zeros((7, 7))
ROADS[np.triu_indices(7, 1)] = [
    *[3.0, 7.0, 9.0, 12.0, 8.0, 5.0],
    *[4.0, 6.0, 9.0, 11.0, 8.0],
    *[2.0, 5.0, 9.0, 12.0],
    *[3.0, 7.0, 10.0],
    *[4.0, 7.0],
    3.0,
]
ROADS += ROADS.T


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 5)) * [5, 4, 3, 2, 1]


def printed(D, k):
    """[MDS]: B = -1/2 H D2 H, its leading eigenvectors times the roots of eigenvalues."""
    n = len(D)
    H = np.eye(n) - 1 / n
    values, U = np.linalg.eigh(-0.5 * H @ D**2 @ H)
    return values[::-1][:k], U[:, ::-1][:, :k] * np.sqrt(np.maximum(values[::-1][:k], 0))


def test_euclidean_distances_give_pca(X, there):
    scores = PCA(3).fit_transform(X)
    for model, data in (
        (there(ClassicalMDS(3)), X),
        (there(ClassicalMDS(3, "precomputed")), squareform(pdist(X))),
        (there(ClassicalMDS(3, "minkowski", metric_params={"p": 2})), X),
    ):
        embedding = model.fit_transform(data)
        assert_allclose(np.abs(embedding), np.abs(scores), atol=1e-10)
        assert_allclose(model.eigenvalues_, (scores**2).sum(axis=0), rtol=1e-10)
        assert model.negative_eigenvalues_.shape == (0,)
        assert model.negative_share_ == 0
        assert_array_equal(model.embedding_, embedding)


def test_all_components_keep_all_distances(X, there):
    embedding = there(ClassicalMDS(5)).fit_transform(X)
    assert_allclose(pdist(embedding), pdist(X))


def test_more_columns_than_rows(there):
    X = np.random.default_rng(0).normal(size=(8, 30))
    model = there(ClassicalMDS(3)).fit(X)
    assert_allclose(np.abs(model.embedding_), np.abs(PCA(3).fit_transform(X)), atol=1e-10)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-10)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "chebyshev"])
def test_it_is_the_printed_algorithm(metric, X, there):
    values, embedding = printed(pairwise_distances(X, metric=metric), 3)
    model = there(ClassicalMDS(3, metric)).fit(X)
    assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    assert_allclose(np.abs(model.embedding_), np.abs(embedding), atol=1e-8)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "precomputed"])
def test_it_agrees_with_scikit_learn(metric):
    manifold = pytest.importorskip("sklearn.manifold")
    if not hasattr(manifold, "ClassicalMDS"):
        pytest.skip("scikit-learn before 1.8 has no ClassicalMDS")
    X = load_wine().data
    X = squareform(pdist(X)) if metric == "precomputed" else X
    reference = manifold.ClassicalMDS(2, metric=metric).fit(X)
    model = ClassicalMDS(2, metric).fit(X)
    assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-9)
    size = np.abs(reference.embedding_).max()
    assert_allclose(np.abs(model.embedding_), np.abs(reference.embedding_), atol=1e-8 * size)


def test_kernel_pca_is_mds_of_feature_space_distances(X, there):
    # [MDS] 2.3.
    D = there(KernelMap(RBF(0.05))).fit(X).distances(X)
    embedding = there(ClassicalMDS(3, "precomputed")).fit_transform(D)
    scores = there(KernelPCA(3, RBF(0.05))).fit_transform(X)
    assert_allclose(np.abs(embedding), np.abs(scores), atol=1e-7)


# --- dissimilarities that are not Euclidean -----------------------------------------------------


def test_negative_eigenvalues_are_told_and_never_nan(there):
    values = np.linalg.eigvalsh(-0.5 * (H := np.eye(7) - 1 / 7) @ ROADS**2 @ H)
    negative = values[values < -1e-10]
    with pytest.warns(UserWarning, match=f"only {sum(values > 1e-10)} eigenvalues are positive"):
        model = there(ClassicalMDS(7, "precomputed")).fit(ROADS)
    assert len(negative) >= 1
    assert_allclose(np.sort(model.negative_eigenvalues_), negative, rtol=1e-9)
    assert_allclose(model.negative_share_, -negative.sum() / np.abs(values).sum())
    assert np.isfinite(model.embedding_).all()
    assert_array_equal(model.embedding_[:, -1], 0)
    assert np.isfinite(model.transform(ROADS)).all()


@pytest.mark.parametrize("correction", ["lingoes", "cailliez"])
def test_corrected_distances_are_euclidean(correction, there):
    model = there(ClassicalMDS(5, "precomputed", correction=correction)).fit(ROADS)
    c = model.correction_constant_
    off = 1 - np.eye(7)
    D = np.sqrt(ROADS**2 + 2 * c * off) if correction == "lingoes" else ROADS + c * off
    values = printed(D, 7)[0]
    assert values[-1] > -1e-9 * values[0]
    # The smallest such constant: one more eigenvalue than that of 1 is zero, and less c is not.
    assert abs(values[-2]) < 1e-8 * values[0]
    less = np.sqrt(ROADS**2 + 1.98 * c * off) if correction == "lingoes" else ROADS + 0.99 * c * off
    assert printed(less, 7)[0][-1] < -1e-4
    assert_allclose(pdist(model.embedding_), squareform(D, checks=False), rtol=1e-7)
    assert_allclose(model.eigenvalues_, values[:5], rtol=1e-9)
    assert len(model.negative_eigenvalues_)


def test_cailliez_of_many_points_is_that_of_the_dense_eigenproblem():
    X = np.random.default_rng(0).normal(size=(220, 3))
    D = pairwise_distances(X, metric="manhattan") ** 1.5
    model = ClassicalMDS(2, "precomputed", correction="cailliez").fit(D)
    c, off = model.correction_constant_, 1 - np.eye(220)
    values = printed(D + c * off, 220)[0]
    assert abs(values[-1]) < 1e-7 * values[0]
    assert printed(D + 0.99 * c * off, 220)[0][-1] < -1e-6 * values[0]


@pytest.mark.parametrize("correction", [None, "lingoes", "cailliez"])
def test_euclidean_distances_need_no_correction(correction, X, there):
    model = there(ClassicalMDS(2, correction=correction)).fit(X)
    distances = there(ClassicalMDS(2, "precomputed", correction=correction)).fit(
        squareform(pdist(X))
    )
    assert model.correction_constant_ == distances.correction_constant_ == 0
    assert_allclose(distances.embedding_, model.embedding_, atol=1e-9)


# --- new points -----------------------------------------------------------------------------------


@pytest.mark.parametrize("correction", [None, "lingoes", "cailliez"])
def test_training_points_are_placed_where_they_were(correction, there):
    model = there(ClassicalMDS(3, "precomputed", correction=correction)).fit(ROADS)
    assert_allclose(model.transform(ROADS), model.embedding_, atol=1e-9)
    each = np.concatenate([model.transform(row[None]) for row in ROADS])
    assert_allclose(each, model.embedding_, atol=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_new_points_from_data_and_from_distances(metric, X, there):
    train, new = X[:30], X[30:]
    model = there(ClassicalMDS(3, metric)).fit(train)
    distances = there(ClassicalMDS(3, "precomputed")).fit(pairwise_distances(train, metric=metric))
    placed = distances.transform(pairwise_distances(new, train, metric=metric))
    assert_allclose(model.transform(new), placed, atol=1e-9)
    assert_allclose(model.transform(train), model.embedding_, atol=1e-9)
    if metric == "euclidean":
        expected = PCA(3).fit(train).transform(new)
        assert_allclose(np.abs(placed), np.abs(expected), atol=1e-9)


@pytest.mark.parametrize("correction", ["lingoes", "cailliez"])
def test_new_points_are_corrected_like_the_others(correction, there):
    train, new = ROADS[:6, :6], ROADS[6:, :6]
    model = there(ClassicalMDS(2, "precomputed", correction=correction)).fit(train)
    c, off = model.correction_constant_, 1 - np.eye(6)
    if correction == "lingoes":
        train, new = np.sqrt(train**2 + 2 * c * off), np.sqrt(new**2 + 2 * c)
    else:
        train, new = train + c * off, new + c
    expected = there(ClassicalMDS(2, "precomputed")).fit(train).transform(new)
    assert c > 0
    assert_allclose(model.transform(ROADS[6:, :6]), expected, atol=1e-8)


# --- arrays, precision, names ---------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "precomputed", "manhattan"])
@pytest.mark.parametrize("correction", [None, "lingoes", "cailliez"])
def test_namespaces(xp, metric, correction, X):
    data = ROADS if metric == "precomputed" else X
    expected = ClassicalMDS(2, metric, correction=correction).fit(data)
    model = ClassicalMDS(2, metric, correction=correction)
    embedding = model.fit_transform(xp.asarray(data))
    assert isinstance(embedding, type(xp.asarray(data)))
    assert_allclose(as_numpy(embedding), expected.embedding_, atol=1e-9)
    placed = model.transform(xp.asarray(data[:3]))
    assert_allclose(as_numpy(placed), expected.transform(data[:3]), atol=1e-9)


def test_single_precision(X):
    model = ClassicalMDS(2)
    single = model.fit_transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(single, clone(model).fit_transform(X), atol=1e-4)


def test_names_and_frames():
    X = load_iris(as_frame=True).data
    frame = ClassicalMDS().set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["classicalmds0", "classicalmds1"]


def test_signs_repeat(X, there):
    first = there(ClassicalMDS(3)).fit_transform(X)
    assert_allclose(there(ClassicalMDS(3)).fit_transform(X[::-1])[::-1], first, atol=1e-9)
    assert (first.max(axis=0) >= -first.min(axis=0)).all()


# --- bad input ------------------------------------------------------------------------------------


def changed(i, j, value):
    D = ROADS.copy()
    D[i, j] = value
    return D


@pytest.mark.parametrize(
    ("D", "message"),
    [
        (changed([0, 1], [1, 0], -2.0), "Negative values"),
        (changed([0, 1], [1, 0], np.nan), "NaN"),
        (changed(0, 1, 9.0), "symmetric"),
        (ROADS + np.eye(7), "to itself must be 0"),
        (ROADS[:5], "square"),
    ],
)
def test_bad_distances_are_named(D, message):
    with pytest.raises(ValueError, match=message):
        ClassicalMDS(metric="precomputed").fit(D)


def test_bad_new_distances_are_named():
    model = ClassicalMDS(metric="precomputed").fit(ROADS)
    with pytest.raises(ValueError, match="Negative values"):
        model.transform(-ROADS)
    with pytest.raises(ValueError, match="6 features"):
        model.transform(ROADS[:, :6])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "got 0"),
        ({"correction": "additive"}, "got 'additive'"),
        ({"metric": 3}, "got 3"),
    ],
)
def test_bad_parameters_are_named(parameters, message, X):
    with pytest.raises(ValueError, match=message):
        ClassicalMDS(**parameters).fit(X)


def test_constant_data_is_one_point(there):
    with pytest.warns(UserWarning, match="only 0 eigenvalues"):
        embedding = there(ClassicalMDS()).fit_transform(np.ones((5, 3)))
    assert_array_equal(embedding, np.zeros((5, 2)))


@pytest.mark.parametrize("size", [2.0**-1000, 2.0**-300, 2.0**-260, 2.0**270, 2.0**500])
@pytest.mark.parametrize("correction", [None, "lingoes", "cailliez"])
def test_distances_of_any_size(size, correction, rng):
    """Below 1e-77 coordinates were wrong by 40 %, above 1e80 there was a LinAlgError."""
    points = rng.normal(size=(70, 3))
    D = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1)) ** (1.3 if correction else 1)
    mds = ClassicalMDS(metric="precomputed", correction=correction)
    expected, of_new = mds.fit(D[:60, :60]).embedding_, mds.transform(D[60:, :60])
    constant, values = mds.correction_constant_, mds.eigenvalues_
    assert_array_equal(mds.fit(size * D[:60, :60]).embedding_ / size, expected)
    assert_allclose(mds.transform(size * D[60:, :60]) / size, of_new, rtol=1e-12)
    unit = size if correction == "cailliez" else size * size
    assert mds.correction_constant_ == pytest.approx(constant * unit, abs=0)
    assert_allclose(mds.eigenvalues_, values * size * size)


@pytest.mark.parametrize("size", [2.0**-1000, 2.0**-300, 2.0**500])
def test_vectors_of_any_size(size, rng):
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(5, 3))
    mds = ClassicalMDS().fit(X)
    expected, of_new = mds.embedding_, mds.transform(Z)
    assert_array_equal(mds.fit(size * X).embedding_ / size, expected)
    assert_array_equal(mds.transform(size * Z) / size, of_new)


@pytest.mark.parametrize("correction", ["lingoes", "cailliez"])
@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_rounding_between_a_row_and_itself_is_not_corrected(rng, metric, correction):
    """The cosine of a row with itself is 1 - 1e-16."""
    X = rng.normal(size=(40, 3))
    model = ClassicalMDS(2, metric=metric, correction=correction).fit(X)
    assert model.correction_constant_ > 0.01
    assert_allclose(model.transform(X), model.embedding_, atol=1e-9)
