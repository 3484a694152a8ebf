"""Rows that do not fit the memory: streams, memory maps, online growth, and methods from sums."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import SGDClassifier

from mercer import (
    RBF,
    Chunks,
    ClassicalMDS,
    FromFunction,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    OnColumns,
    Polynomial,
    Spectrum,
)
from mercer.engine.memory import MemoryLimitError
from mercer.rows.streams import StreamedRows, is_stream

KERNEL = RBF(0.5)
TOL = 1e-8


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """A first sample of 300 rows, so that streams of a few thousand have something to grow."""
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 300)
    monkeypatch.setattr("mercer.rows.held.CHUNK_ROWS", 700)


@pytest.fixture
def X(rng):
    return rng.normal(size=(3000, 2))


def chunks_of(X, size=450):
    return Chunks(lambda: (X[a : a + size] for a in range(0, len(X), size)))


def true_residuals(kernel_map, X):
    """Slow and obvious: k(x, x) - k_x' k(S, S)^-1 k_x with an accurate solver."""
    S = kernel_map.landmarks_
    K, C = KERNEL(S), KERNEL(X, S)
    return KERNEL.diag(X) - np.einsum("ij,ij->i", C, np.linalg.solve(K, C.T).T)


# --- certify and grow -----------------------------------------------------------------------------


@pytest.mark.parametrize("as_stream", [chunks_of, lambda X: X], ids=["chunks", "array"])
def test_every_row_is_certified(as_stream, X):
    kernel_map = KernelMap(KERNEL, tol=TOL, memory_limit=300_000).fit(as_stream(X))
    assert kernel_map.n_samples_seen_ == len(X)
    assert 0 < kernel_map.max_residual_ <= TOL
    assert kernel_map.residual(X).max() <= 1.01 * TOL
    assert true_residuals(kernel_map, X).max() <= 2 * TOL
    # One pass costs rank: within a quarter of what greedy pivots on all rows need.
    assert kernel_map.rank_ <= 1.25 * KernelMap(KERNEL, tol=TOL).fit(X).rank_
    assert_array_equal(X[kernel_map.landmark_indices_], kernel_map.landmarks_)


def test_rows_far_from_the_sample_become_landmarks(X):
    X[-5:] += 50.0 * np.arange(1, 6)[:, None]
    kernel_map = KernelMap(KERNEL, tol=TOL, random_state=3).fit(chunks_of(X))
    assert kernel_map.residual(X).max() <= 1.01 * TOL


def test_kept_rows_that_exceed_the_budget_grow_the_factor_on_the_way(X):
    tight = KernelMap(KERNEL, tol=TOL, memory_limit=150_000).fit(chunks_of(X))
    assert tight.residual(X).max() <= 1.01 * TOL


def test_max_rank_stops_and_says_what_is_left(X):
    kernel_map = KernelMap(KERNEL, tol=TOL, max_rank=40).fit(chunks_of(X))
    assert kernel_map.rank_ == 40
    assert kernel_map.max_residual_ > TOL
    assert_allclose(kernel_map.residual(X).max(), kernel_map.max_residual_, rtol=1e-6)


def test_memory_maps_and_the_same_bytes_from_chunks_of_any_size(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    fits = [
        KernelMap(KERNEL, tol=TOL, memory_limit=300_000).fit(mapped).transform(X[:9])
        for _ in range(2)
    ]
    assert_array_equal(*fits)


@pytest.mark.parametrize("basis", ["cholesky", "eigen"])
def test_centred_and_rotated_streams(basis, X):
    kernel_map = KernelMap(KERNEL, tol=TOL, basis=basis, center=True).fit(chunks_of(X))
    F = kernel_map.transform(X)
    assert_allclose(F.mean(axis=0), 0, atol=1e-12)
    if basis == "eigen":
        scatter = F.T @ F
        assert_allclose(np.diag(scatter), kernel_map.eigenvalues_, atol=1e-9 * len(X))
        assert np.abs(scatter - np.diag(np.diag(scatter))).max() < 1e-9 * len(X)
    error = np.abs(F[:50] @ F[-50:].T - _centred(X)[:50, -50:])
    assert np.all(error <= kernel_map.error_bound(X[:50], X[-50:]))


def _centred(X):
    K = KERNEL(X)
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


def test_objects_stream_too():
    words = [f"{a}{b}{c}" for a in "abcd" for b in "abcd" for c in "abcd"]
    kernel = FromFunction(_shared_letters)
    kernel_map = KernelMap(kernel, tol=1e-6).fit(Chunks(lambda: iter([words[:30], words[30:]])))
    assert_allclose(
        kernel_map.transform(words) @ kernel_map.transform(words).T, kernel(words), atol=1e-6
    )


def _shared_letters(a, b):
    return sum(a.count(letter) * b.count(letter) for letter in "abcd")


def test_frames_in_chunks_with_columns_by_name(X):
    frame = pd.DataFrame(np.c_[X, X[:, 0] ** 2], columns=["a", "b", "c"])
    kernel = OnColumns(RBF("scale"), ["a", "b"]) + OnColumns(Linear(), ["c"])
    kernel_map = KernelMap(kernel, tol=1e-6).fit(chunks_of(frame))
    assert list(kernel_map.feature_names_in_) == ["a", "b", "c"]
    assert kernel_map.residual(frame).max() <= 1.01e-6 * kernel_map.kernel_.diag(frame).max()


def test_the_residual_coordinate_streams(X):
    model = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-4, append_residual=True))
    assert_allclose(
        model.fit(chunks_of(X), X[:, 0]).predict(X[:20]),
        model.fit(X, X[:, 0]).predict(X[:20]),
        atol=0.02,  # other landmarks, truncated at 1e-4
    )


# --- streams that make no sense -------------------------------------------------------------------


def test_what_cannot_be_read_twice_is_refused(X):
    with pytest.raises(TypeError, match="only once"):
        KernelMap(KERNEL).fit(chunk for chunk in [X])
    with pytest.raises(TypeError, match="fresh iterator"):
        Chunks([X])
    left = iter([X, X])
    with pytest.raises(TypeError, match=r"only once.*anew at each call"):
        KernelMap(Linear(), basis="closed").fit(Chunks(lambda: left))


def test_bad_chunks_are_named(X):
    with pytest.raises(ValueError, match="3 features, but KernelMap is expecting 2"):
        KernelMap(KERNEL).fit(Chunks(lambda: iter([X, np.ones((4, 3))])))
    with pytest.raises(ValueError, match="no rows"):
        KernelMap(KERNEL).fit(Chunks(lambda: iter([])))
    X[2500, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        KernelMap(KERNEL).fit(chunks_of(X))


def test_a_stream_of_single_texts_is_refused():
    with pytest.raises(TypeError, match=r"a chunk of X is the text 'abc': .* lists of texts"):
        KernelMap(Spectrum(2)).fit(Chunks(lambda: iter(["abc", "abd"])))


def test_what_a_stream_cannot_have(X):
    with pytest.raises(TypeError, match="one chunk at a time"):
        KernelMap(KERNEL).fit_transform(chunks_of(X))
    with pytest.raises(MemoryLimitError, match="symmetric"):
        KernelMap(KERNEL, basis="symmetric", memory_limit=10_000).fit(chunks_of(X))
    with pytest.raises(TypeError, match="Gram"):
        KernelMap("precomputed").fit(chunks_of(X))
    with pytest.raises(TypeError, match="sample"):
        KernelRidgeCV(kernel=KERNEL).fit(chunks_of(X), X[:, 0])
    with pytest.raises(ValueError, match="dual"):
        KernelRidge(kernel=KERNEL, form="dual").fit(chunks_of(X), X[:, 0])


@pytest.mark.parametrize("small", [False, True], ids=["many rows", "few rows"])
@pytest.mark.parametrize(
    ("make", "method"),
    [
        (KernelMap, "transform"),
        (KernelMap, "fit_transform"),
        (KernelMap, "residual"),
        (KernelPCA, "transform"),
        (KernelPCA, "fit_transform"),
        (KernelDiscriminant, "predict"),
        (KernelRidge, "predict"),
        (lambda kernel: Kernelized(SGDClassifier(), kernel), "predict"),
        (lambda kernel: ClassicalMDS(), "transform"),
    ],
)
def test_only_fit_reads_a_stream(X, make, method, small):
    """Other methods say so, and do not speak of float()."""
    X = X[:100] if small else X[:400]
    model = make(kernel=KERNEL).fit(X, X[:, 0] > 0)
    with pytest.raises(TypeError, match=r"X is a stream.*one chunk at a time"):
        getattr(model, method)(chunks_of(X, 50))


def test_arrays_lists_and_frames_are_no_streams(X):
    assert is_stream(chunks_of(X))
    for given in (X, X.tolist(), "text", ["a", "b"], (1, 2)):
        assert not is_stream(given)


def test_a_sample_is_even_and_knows_its_places(rng):
    X = np.arange(5000.0)[:, None]
    drawn = StreamedRows(chunks_of(X), lambda chunk: chunk).sample(1000, rng)
    sample, positions = drawn.points, drawn.positions
    assert drawn.n == 5000
    assert_array_equal(sample[:, 0], positions)
    assert len(np.unique(positions)) == 1000
    # Mean and spread of 1000 even draws from 5000: five standard errors.
    assert abs(positions.mean() - 2500) < 5 * 1443 / 1000**0.5


# --- online growth: [NPT] Lemma 5 -----------------------------------------------------------------


def test_partial_fit_adds_columns_and_keeps_old_ones(X):
    kernel_map, before = KernelMap(KERNEL, tol=1e-6), None
    for a in range(0, 3000, 600):
        kernel_map.partial_fit(X[a : a + 600])
        F = kernel_map.transform(X[:30])
        if before is not None:
            assert F.shape[1] >= before.shape[1]
            assert_allclose(F[:, : before.shape[1]], before, atol=1e-9)
        before = F
    assert kernel_map.n_samples_seen_ == 3000
    assert kernel_map.residual(X).max() <= 1.01e-6
    error = np.abs(kernel_map.transform(X) @ kernel_map.transform(X[:40]).T - KERNEL(X, X[:40]))
    assert np.all(error <= kernel_map.error_bound(X, X[:40]))


def test_partial_fit_binds_once_and_goes_on_from_fit(X):
    online = KernelMap(RBF("scale"), tol=1e-6).fit(X[:500])
    bound = online.kernel_
    online.partial_fit(100 * X[500:600])
    assert online.kernel_ == bound
    assert online.residual(100 * X[500:600]).max() <= 1e-6


def test_partial_fit_only_where_coordinates_can_stay():
    assert hasattr(KernelMap(KERNEL), "partial_fit")
    for unfit in (
        KernelMap(KERNEL, center=True),
        KernelMap(KERNEL, basis="eigen"),
        KernelMap("precomputed"),
    ):
        assert not hasattr(unfit, "partial_fit")


def test_one_point_at_a_time(X):
    kernel_map = KernelMap(Linear())
    for x in X[:6]:
        kernel_map.partial_fit(x[None, :])
    assert kernel_map.rank_ == 2  # the plane has two dimensions
    assert_allclose(
        kernel_map.transform(X) @ kernel_map.transform(X).T, X @ X.T, atol=1e-9 * (X * X).sum()
    )


# --- methods from sums over rows ------------------------------------------------------------------


@pytest.mark.parametrize("where", ["stream", "large array"])
@pytest.mark.parametrize(
    "make",
    [
        lambda k: KernelPCA(4, k),
        lambda k: KernelRidge(0.01, k),
        lambda k: KernelDiscriminant(kernel=k),
    ],
    ids=["pca", "ridge", "discriminant"],
)
def test_streamed_sums_give_the_answer_of_memory(make, where, X):
    target = np.sin(X[:, 0]) * X[:, 1]
    labels = np.where(target > 0.2, "up", np.where(target < -0.2, "down", "flat"))
    limit = 300_000 if where == "large array" else None
    given = chunks_of(X) if where == "stream" else X
    model, memory = make(KernelMap(KERNEL, tol=1e-10, memory_limit=limit)), make(KERNEL)
    y = labels if isinstance(model, KernelDiscriminant) else target
    model.fit(given, y)
    memory.fit(X, y)
    assert model.kernel_map_.rank_ > 50
    if isinstance(model, KernelDiscriminant):
        # Points on the border may fall to either side of rounding.
        assert np.mean(model.predict(X[:500]) == memory.predict(X[:500])) > 0.995
        assert_allclose(model.predict_proba(X[:50]), memory.predict_proba(X[:50]), atol=1e-4)
    elif isinstance(model, KernelPCA):
        assert_allclose(model.eigenvalues_, memory.eigenvalues_, rtol=1e-8)
        assert_allclose(model.transform(X[:50]), memory.transform(X[:50]), atol=1e-7)
    else:
        assert_allclose(model.predict(X[:50]), memory.predict(X[:50]), atol=1e-6)


def test_targets_in_chunks(X):
    target, cut = X[:, 0] ** 2, 450
    chunked = Chunks(lambda: (target[a : a + cut] for a in range(0, 3000, cut)))
    one = KernelRidge(0.1, Polynomial(2)).fit(chunks_of(X), chunked)
    other = KernelRidge(0.1, Polynomial(2)).fit(X, target)
    assert_allclose(one.predict(X[:20]), other.predict(X[:20]), atol=1e-8)


def test_rows_and_targets_of_different_number(X):
    with pytest.raises(ValueError, match="more rows than y, which has 2999"):
        KernelRidge(0.1, KERNEL).fit(chunks_of(X), X[1:, 0])
    with pytest.raises(ValueError, match="2999 rows and y has 3000"):
        KernelRidge(0.1, KERNEL).fit(chunks_of(X[1:]), X[:, 0])
