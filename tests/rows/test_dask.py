"""Dask collections: the same answers as NumPy, lazily, anywhere, also when a worker dies."""

import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import LogisticRegression, SGDClassifier

import mercer
from mercer import (
    RBF,
    Chunks,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    Precomputed,
)
from mercer.engine.threads import n_threads
from mercer.fit import OnPanels
from mercer.rows import dask as engine
from mercer.rows import lazy
from mercer.rows.read import _PointCheck, _source_of
from mercer.rows.workers import Workers
from mercer.solve import solve_iteratively

dask = pytest.importorskip("dask", reason="dask is not installed: pip install mercer[dask]")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

N = 3000
KERNEL = RBF(0.1)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(N, 3))


@pytest.fixture
def y(X):
    return np.sin(X[:, 0]) + X[:, 1] ** 2


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """A sample that does not explain all rows, so that rows stay in their partitions."""

    def set_size(size):
        monkeypatch.setattr("mercer.rows.gather.SAMPLE", size)

    set_size(1500)
    return set_size


def cut(X, rows):
    """X in blocks of the given numbers of rows."""
    return da.from_array(X, chunks=(tuple(rows), -1))


def frame_of(X, **more):
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(**more)


def unknown(D):
    """The same rows, with Dask left in the dark about how many."""
    return D[da.ones(D.shape[0], chunks=D.chunks[0], dtype=bool)]


CUTS = {
    "even": lambda X: da.from_array(X, chunks=(500, -1)),
    "columns too": lambda X: da.from_array(X, chunks=(700, 2)),
    "one tiny, one huge": lambda X: cut(X, (1, N - 1)),
    "empty ones": lambda X: cut(X, (0, 1000, 0, 0, 2000, 0)),
    "unknown sizes": lambda X: unknown(cut(X, (1000, 2000))),
    "unknown and empty": lambda X: cut(X, (1000, 1000, 1000))[da.from_array(X[:, 0] > -9)],
    "frame": lambda X: dd.from_pandas(frame_of(X), npartitions=4),
    "frame, empty ones": lambda X: dd.concat(
        [dd.from_pandas(frame_of(X), npartitions=3)] * 2
    ).partitions[[0, 1, 2]],
}


# --- the map --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", CUTS)
def test_landmarks_are_those_of_a_stream_however_the_rows_are_cut(how, X, small_sample):
    one = KernelMap(KERNEL, tol=1e-6).fit(Chunks(lambda: iter(np.array_split(X, 4))))
    many = KernelMap(KERNEL, tol=1e-6).fit(CUTS[how](X))
    assert one.rank_ > 100
    assert_array_equal(many.landmark_indices_, one.landmark_indices_)
    assert_allclose(many.map_.space.C, one.map_.space.C, rtol=0, atol=1e-12)
    assert many.max_residual_ == pytest.approx(one.max_residual_, rel=1e-6)
    assert many.n_samples_seen_ == N


def test_all_rows_are_certified_in_several_rounds(X, small_sample):
    # More rows are left over than come here at once.
    small_sample(30)
    kernel_map = KernelMap(KERNEL, tol=1e-6).fit(cut(X, (1000, 1500, 500)))
    left = kernel_map.residual(X)
    assert left.max() <= 1e-6 + 1e-14
    assert kernel_map.max_residual_ >= left.max() - 1e-14
    assert_array_equal(kernel_map.landmarks_, X[kernel_map.landmark_indices_])


@pytest.mark.parametrize("size", [30, 1500])
def test_a_limited_rank_reports_what_is_left(size, X, small_sample):
    small_sample(size)
    kernel_map = KernelMap(KERNEL, tol=1e-6, max_rank=40).fit(cut(X, (1000, 2000)))
    assert kernel_map.rank_ <= 40
    assert kernel_map.max_residual_ == pytest.approx(kernel_map.residual(X).max(), rel=1e-6)
    assert kernel_map.max_residual_ > 1e-6


def test_every_row_of_many_small_files_is_certified(X, y, tmp_path):
    """Dask reads several small files as one partition, and which depends on the columns."""
    for i in range(6):
        rows = frame_of(X, y=y, z=1.0).iloc[500 * i : 500 * (i + 1)]
        rows.to_parquet(tmp_path / f"{i}.parquet")
    D = dd.read_parquet(tmp_path / "*.parquet")
    model = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(D[["a", "b", "c"]], D["y"])
    kernel_map = model.kernel_map_
    assert kernel_map.residual(frame_of(X)).max() <= 1e-6 + 1e-14
    assert kernel_map.n_samples_seen_ == N
    one = KernelRidge(0.1, Linear()).fit(kernel_map.transform(frame_of(X)), y)
    expected = one.predict(kernel_map.transform(frame_of(X)))
    assert_allclose(model.predict(D[["a", "b", "c"]]).compute(), expected, atol=1e-8)
    with pytest.raises(ValueError, match="X has 3000 rows, and y has shape"):
        model.fit(D[["a", "b", "c"]], y[1:])
    again = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(D[["a", "b", "c"]], y)
    assert_allclose(again.coef_, model.coef_, rtol=1e-6, atol=1e-8)


def test_rows_that_change_are_noticed(X, small_sample):
    small_sample(500)
    count = iter([1000, 1000, 900])  # counted, sampled, certified

    def source():
        return X[: next(count)]

    D = da.from_delayed(dask.delayed(source, pure=False)(), shape=(np.nan, 3), dtype=float)
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(RuntimeError, match="changes each time"),
    ):
        KernelMap(KERNEL).fit(D)


def test_random_state_chooses_the_sample(X, small_sample):
    D = cut(X, (1000, 2000))
    first, again, other = (
        KernelMap(KERNEL, tol=1e-4, random_state=seed).fit(D).landmark_indices_
        for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("basis", ["cholesky", "eigen"])
@pytest.mark.parametrize("kernel", [KERNEL, Polynomial(2)], ids=repr)
def test_centred_and_rotated_maps(basis, kernel, X, small_sample):
    D = cut(X, (1000, 0, 2000))
    options = {"center": True, "basis": basis, "tol": 1e-8}
    one = KernelMap(kernel, **options).fit(Chunks(lambda: iter([X[:1000], X[1000:]])))
    many = KernelMap(kernel, **options).fit(D)
    Phi = many.transform(D).compute()
    assert_allclose(Phi.mean(axis=0), 0, atol=1e-10)
    assert_allclose(Phi @ Phi[:50].T, one.transform(X) @ one.transform(X[:50]).T, atol=1e-8)
    bound = many.error_bound(X[:20], X[:20])
    assert_allclose(bound, one.error_bound(X[:20], X[:20]), rtol=1e-6)
    if basis == "eigen":
        assert_allclose(many.eigenvalues_, one.eigenvalues_, atol=1e-9 * one.eigenvalues_[0])


@pytest.mark.parametrize("center", [False, True])
def test_closed_maps(center, X):
    D = cut(X, (1000, 0, 2000))
    one = KernelMap(Polynomial(2), basis="auto", center=center).fit(X)
    many = KernelMap(Polynomial(2), basis="auto", center=center).fit(D)
    assert many.landmarks_ is None
    assert_allclose(many.transform(D).compute(), one.transform(X), atol=1e-10)
    assert_allclose(many.error_bound(X[:5]), one.error_bound(X[:5]), rtol=1e-9)


def test_parameters_of_the_kernel_come_from_the_sample(X, small_sample):
    small_sample(N)
    # Fewer rows than a sample: all of them.
    many = KernelMap(RBF("scale"), tol=1e-4).fit(cut(X, (1000, 2000)))
    assert many.kernel_.gamma == pytest.approx(RBF("scale").bind(X).gamma, rel=1e-12)


# --- lazy results ---------------------------------------------------------------------------------


def test_arrays_come_back_lazy_with_known_chunks(X):
    D = da.from_array(X, chunks=(700, 2))
    kernel_map = KernelMap(KERNEL, tol=1e-4, append_residual=True).fit(D)
    Phi = kernel_map.transform(D)
    assert isinstance(Phi, da.Array)
    assert Phi.chunks == ((700, 700, 700, 700, 200), (kernel_map.rank_ + 1,))
    assert Phi.dtype == np.float64
    assert_allclose(Phi.compute(), kernel_map.transform(X), atol=1e-12)
    rho2 = kernel_map.residual(D)
    assert rho2.chunks == (D.chunks[0],)
    assert_allclose(rho2.compute(), kernel_map.residual(X), atol=1e-12)
    assert_allclose((Phi.T @ Phi).compute(), kernel_map.transform(X).T @ kernel_map.transform(X))


def test_frames_come_back_as_frames_with_names_and_index(X):
    frame = frame_of(X).set_index(np.arange(N) * 10)
    D = dd.from_pandas(frame, npartitions=3)
    kernel_map = KernelMap(KERNEL, tol=1e-4).fit(D)
    assert_array_equal(kernel_map.feature_names_in_, ["a", "b", "c"])
    Phi = kernel_map.transform(D)
    assert list(Phi.columns) == list(kernel_map.get_feature_names_out())
    assert Phi.divisions == D.divisions
    got = Phi.compute()
    assert_array_equal(got.index, frame.index)
    assert_allclose(got.to_numpy(), kernel_map.transform(frame), atol=1e-12)
    assert kernel_map.residual(D).name == "residual"
    with pytest.raises(ValueError, match="feature names"):
        kernel_map.transform(D.rename(columns={"a": "z"}))


def test_unknown_and_empty_blocks_are_mapped(X):
    D = cut(X, (0, 1000, 2000, 0))
    kernel_map = KernelMap(KERNEL, tol=1e-4).fit(D)
    expected = kernel_map.transform(X)
    assert_allclose(kernel_map.transform(D).compute(), expected, atol=1e-12)
    Phi = kernel_map.transform(unknown(D))
    assert np.isnan(Phi.shape[0])
    assert Phi.chunks[1] == (kernel_map.rank_,)
    assert_allclose(Phi.compute(), expected, atol=1e-12)


def test_large_blocks_of_results_are_cut(X):
    D = cut(X, (N,))
    kernel_map = KernelMap(KERNEL, tol=1e-4).fit(D)
    limit = 100 * 8 * kernel_map.rank_
    with dask.config.set({"array.chunk-size": limit}):
        Phi = kernel_map.transform(D)
    assert max(Phi.chunks[0]) * 8 * kernel_map.rank_ <= limit
    assert_allclose(Phi.compute(), kernel_map.transform(X), atol=1e-12)


def test_a_map_fitted_in_memory_maps_collections(X):
    kernel_map = KernelMap(KERNEL, tol=1e-4).fit(X)
    assert_allclose(
        kernel_map.transform(cut(X, (1000, 2000))).compute(), kernel_map.transform(X), atol=1e-12
    )


def test_single_precision_stays(X):
    D = cut(X.astype(np.float32), (1000, 2000))
    kernel_map = KernelMap(KERNEL, tol=1e-3).fit(D)
    Phi = kernel_map.transform(D)
    assert Phi.dtype == np.float32
    assert Phi.compute().dtype == np.float32


# --- methods --------------------------------------------------------------------------------------

METHODS = {
    "ridge": (lambda k: KernelRidge(0.1, k), "predict"),
    "pca": (lambda k: KernelPCA(5, k), "transform"),
    "discriminant": (lambda k: KernelDiscriminant(kernel=k), "decision_function"),
}


def cut_alike(values, D):
    """y for the rows of D: cut elsewhere where Dask can tell, else at the same rows."""
    if hasattr(D, "columns"):
        return dd.from_pandas(pd.Series(values, name="y"), npartitions=D.npartitions)
    return da.from_array(values, chunks=len(values))


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("ridge", "even"),
        ("ridge", "one tiny, one huge"),
        ("ridge", "frame"),
        ("pca", "one tiny, one huge"),
        ("pca", "empty ones"),
        ("discriminant", "empty ones"),
        ("discriminant", "frame"),
    ],
)
def test_methods_give_the_answer_of_numpy_on_the_same_landmarks(name, how, X, y, small_sample):
    make, method = METHODS[name]
    t = (y > 1).astype(int) if name == "discriminant" else y
    D = CUTS[how](X)
    many = make(KernelMap(KERNEL, tol=1e-6)).fit(D, cut_alike(t, D))
    got = getattr(many, method)(D)
    assert engine.is_dask(got)
    # The linear kernel of the coordinates is the kernel: its method in memory is the oracle.
    Phi = many.kernel_map_.transform(frame_of(X) if hasattr(D, "columns") else X)
    one = make(Linear()).fit(Phi, t)
    expected = getattr(one, method)(Phi)
    assert_allclose(np.asarray(got.compute()), expected, atol=1e-8 * np.abs(expected).max())
    if name == "pca":
        assert_allclose(many.eigenvalues_, one.eigenvalues_, rtol=1e-9)
        assert_allclose(many.explained_variance_ratio_, one.explained_variance_ratio_, rtol=1e-9)


@pytest.mark.parametrize("kernel", [Polynomial(2), RBF(0.02)], ids=repr)
@pytest.mark.parametrize("name", METHODS)
def test_methods_give_the_answer_of_numpy(name, kernel, X, y):
    """Landmarks of its own, and all that they miss is rounding."""
    X, y = X[: N // 2], y[: N // 2]
    make, method = METHODS[name]
    t = (y > 1).astype(int) if name == "discriminant" else y
    kernel = KernelMap(kernel, tol=1e-14)
    one = make(kernel).fit(X, t)
    many = make(kernel).fit(cut(X, (1000, 500)), t)  # y in memory is cut as X is
    expected = getattr(one, method)(X)
    got = np.asarray(getattr(many, method)(cut(X, (700, 800))).compute())
    assert_allclose(got, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("name", METHODS)
def test_methods_give_the_answer_of_a_stream(name, X, y, small_sample):
    """One machine and many choose the same landmarks, and differ by the order of sums."""
    make, method = METHODS[name]
    t = (y > 1).astype(int) if name == "discriminant" else y
    kernel_map = KernelMap(KERNEL, tol=1e-6)
    one = make(kernel_map).fit(Chunks(lambda: iter(np.array_split(X, 4))), t)
    many = make(kernel_map).fit(cut(X, (1000, 1500, 500)), cut_alike(t, cut(X, (N,))))
    assert_array_equal(many.kernel_map_.landmark_indices_, one.kernel_map_.landmark_indices_)
    expected = getattr(one, method)(X)
    assert_allclose(getattr(many, method)(X), expected, atol=1e-8 * np.abs(expected).max())


# Rows are read for the sample, for the certificate, and once for all sums. Only then are axes
# known, whose signs kernel PCA takes from the largest scores.
READS = {
    "ridge": (lambda: KernelRidge(0.1, KernelMap(KERNEL, tol=1e-4)), 3),
    "centred ridge": (lambda: KernelRidge(0.1, KernelMap(KERNEL, tol=1e-4, center=True)), 3),
    "eigen ridge": (lambda: KernelRidge(0.1, KernelMap(KERNEL, tol=1e-4, basis="eigen")), 3),
    # Once more for the rows that are left out.
    "discriminant": (lambda: KernelDiscriminant(kernel=KernelMap(KERNEL, tol=1e-4)), 4),
    "pca": (lambda: KernelPCA(2, KernelMap(KERNEL, tol=1e-4)), 4),
    "centred pca": (lambda: KernelPCA(2, KernelMap(KERNEL, tol=1e-4, center=True)), 4),
}


@pytest.mark.parametrize("source", ["dask", "stream"])
@pytest.mark.parametrize("name", READS)
def test_how_often_rows_are_read(name, source, X, y, small_sample):
    make, times = READS[name]
    t, read = (y > 1).astype(int), []

    def count(block):
        read.append(len(block))
        return block

    def chunks():
        return (count(part) for part in np.array_split(X, 3))

    if source == "stream":
        model = make().fit(Chunks(chunks), t)
    else:
        D = cut(X, (1000, 2000)).map_blocks(count, dtype=float, meta=np.empty((0, 0)))
        with dask.config.set(scheduler="synchronous"):
            model = make().fit(D, da.from_array(t, chunks=N))
    # Of a stream the first rows are read once more, to see whether there are few.
    assert sum(read) == times * N + (2000 if source == "stream" else 0)
    # What was fused is what is done in memory on the same coordinates.
    if name == "discriminant":
        mean = model.kernel_map_.transform(X).mean(axis=0)
        assert_allclose(mean, 0, atol=1e-10)
    elif "ridge" in name:
        Phi = model.kernel_map_.transform(X)
        one = KernelRidge(0.1, Linear(), form="primal").fit(Phi, t)
        assert_allclose(model.predict(X), one.predict(Phi), atol=1e-9)


def test_a_discriminant_of_one_class_says_so_after_the_pass(X):
    labels = da.zeros(N, chunks=1000, dtype=int)
    with pytest.raises(ValueError, match="at least two classes"):
        KernelDiscriminant(kernel=KernelMap(KERNEL, tol=1e-4)).fit(cut(X, (1000, 2000)), labels)
    with pytest.raises(ValueError, match="shrinkage must be"):
        KernelDiscriminant(shrinkage=-1.0).fit(cut(X, (1000, 2000)), labels)


def test_several_targets_weights_and_uncertainty(X, y):
    D, kernel = cut(X, (1000, 2000)), KernelMap(Polynomial(2))
    T, w = np.column_stack([y, X[:, 2]]), np.random.default_rng(1).integers(0, 3, N)
    many = KernelRidge([0.1, 1.0], kernel).fit(D, da.from_array(T, chunks=(500, 1)), w)
    one = KernelRidge([0.1, 1.0], kernel).fit(X, T, w)
    assert_allclose(many.coef_.shape, one.coef_.shape)
    assert_allclose(many.predict(D).compute(), one.predict(X), atol=1e-8)
    values, std = many.predict(D, return_std=True)
    assert_allclose(values.compute(), one.predict(X), atol=1e-8)
    assert_allclose(std.compute(), one.predict(X, return_std=True)[1], atol=1e-6)
    assert not hasattr(many, "dual_coef_")


def test_classes_are_found_in_all_partitions(X):
    labels = np.where(X[:, 0] > 1, "high", np.where(X[:, 0] < -1, "low", "middle"))
    order = np.argsort(labels)  # no partition has seen all of them
    frame = frame_of(X[order], label=labels[order])
    D = dd.from_pandas(frame, npartitions=6, sort=False)
    model = KernelDiscriminant(kernel=KernelMap(KERNEL, tol=1e-6)).fit(
        D[["a", "b", "c"]], D["label"]
    )
    assert_array_equal(model.classes_, ["high", "low", "middle"])
    predicted = model.predict(D[["a", "b", "c"]]).compute()
    assert np.mean(predicted == frame["label"]) > 0.9
    proba = model.predict_proba(D[["a", "b", "c"]])
    assert list(proba.columns) == ["high", "low", "middle"]
    assert_allclose(proba.compute().sum(axis=1), 1)


def test_kernelized_learns_one_partition_after_the_other(X, y):
    labels = (y > 1).astype(int)
    inner = SGDClassifier(random_state=0)
    D = cut(X, (1000, 0, 500, 1500))
    many = Kernelized(inner, KernelMap(KERNEL, tol=1e-6)).fit(D, da.from_array(labels, chunks=500))
    one = SGDClassifier(random_state=0)
    for rows in (slice(0, 1000), slice(1000, 1500), slice(1500, N)):
        Phi = many.kernel_map_.transform(X[rows])
        one.partial_fit(Phi, labels[rows], classes=[0, 1])
    assert_allclose(many.estimator_.coef_, one.coef_, atol=1e-10)
    assert_array_equal(many.predict(D).compute(), one.predict(many.kernel_map_.transform(X)))
    assert not hasattr(inner, "coef_")


def test_kernelized_clusters(X):
    D = cut(X, (1000, 2000))
    model = Kernelized(MiniBatchKMeans(3, random_state=0, n_init=1), KernelMap(KERNEL, tol=1e-4))
    found = model.fit(D).predict(D).compute()
    assert set(found) == {0, 1, 2}


# --- bad input ------------------------------------------------------------------------------------


def test_categories_are_refused_or_left_out(X):
    kind = pd.Categorical(np.where(X[:, 0] > 0, "u", "v"))
    D = dd.from_pandas(frame_of(X, kind=kind), npartitions=3)
    with pytest.raises(ValueError, match=r"column .kind. holds other values"):
        KernelMap(KERNEL, tol=1e-4).fit(D)
    kernel_map = KernelMap(OnColumns(KERNEL, ["a", "b", "c"]), tol=1e-4).fit(D)
    left = kernel_map.residual(D).compute()
    assert left.max() <= 1e-4
    Phi = kernel_map.transform(D).compute().to_numpy()
    assert_allclose(Phi[:20] @ Phi[:20].T, KERNEL(X[:20]), atol=1e-3)


def test_predicted_words_can_be_written(X, tmp_path):
    """Labels that came as objects: Parquet has to know that they are words."""
    frame = frame_of(X)
    words = pd.Series(np.where(X[:, 0] > 0, "up", "down"), dtype=object)
    model = KernelDiscriminant(kernel=KernelMap(KERNEL, max_rank=30)).fit(frame, words)
    D = dd.from_pandas(frame, npartitions=2)
    D.assign(side=model.predict(D)).to_parquet(tmp_path / "predicted", write_index=False)
    back = pd.read_parquet(tmp_path / "predicted")
    assert list(back["side"]) == list(model.predict(frame))


def test_numbers_of_several_types(X):
    frame = frame_of(X, d=np.arange(N) % 3, e=X[:, 0] > 0)
    kernel_map = KernelMap(KERNEL, tol=1e-4).fit(dd.from_pandas(frame, npartitions=2))
    assert_allclose(
        kernel_map.transform(dd.from_pandas(frame, npartitions=2)).compute().to_numpy(),
        kernel_map.transform(frame),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (KernelMap(Precomputed()), "Gram matrix is not cut"),
        (KernelMap(KERNEL, basis="symmetric", memory_limit=10_000), "basis='symmetric'"),
        (KernelMap(KERNEL, pivots="random", memory_limit=10_000), "pivots='random'"),
        (KernelRidge(form="dual"), "form='dual'"),
        (KernelRidgeCV(), "KernelRidge"),
        (KernelPCA(2, solver="krylov"), "solver='krylov'"),
        (Kernelized(LogisticRegression()), "LogisticRegression has no partial_fit"),
    ],
    ids=repr,
)
def test_what_needs_all_rows_says_so(model, match, X, y):
    with pytest.raises((TypeError, ValueError), match=match):
        model.fit(cut(X, (1000, 2000)), y)


@pytest.mark.parametrize("model", [KernelMap(), KernelPCA(1), KernelRidge()], ids=repr)
def test_a_series_is_told_to_become_a_frame(model, X):
    series = dd.from_pandas(pd.Series(X[:, 0], name="a"), npartitions=2)
    with pytest.raises(TypeError, match=r"got Series with 1 dimension\(s\).*to_frame\(\)"):
        model.fit(series, X[:, 0])


def test_rows_that_do_not_match(X, y):
    D = cut(X, (1000, 2000))
    model = KernelRidge(kernel=KernelMap(KERNEL, tol=1e-4))
    with pytest.raises(ValueError, match="X has 3000 rows, and y has 2999"):
        model.fit(D, da.from_array(y[:-1]))
    with pytest.raises(ValueError, match="X has 3000 rows, and y has shape"):
        model.fit(D, y[:-1])
    with pytest.raises(ValueError, match="3 partitions and X 2"):
        model.fit(unknown(D), unknown(da.from_array(y, chunks=1000)))
    with pytest.raises(ValueError, match=r"a partition of X has [12]000 rows and that of y 1500"):
        model.fit(unknown(D), unknown(da.from_array(y, chunks=1500)))
    assert not hasattr(model, "coef_")


def test_bad_values_are_named(X, y):
    X[2500, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        KernelMap(KERNEL).fit(cut(X, (1000, 2000)))
    with pytest.raises(ValueError, match="all partitions of X are empty"):
        KernelMap(KERNEL).fit(cut(X, (1000, 2000))[:0])
    with pytest.raises(TypeError, match="2-D Dask array or a Dask DataFrame"):
        KernelMap(KERNEL).fit(da.from_array(y))
    with pytest.raises(ValueError, match="set_output"):
        KernelMap(KERNEL).fit(X[:99]).set_output(transform="pandas").transform(cut(X, (1000, 2000)))


def test_columns_are_counted(X):
    kernel_map = KernelMap(KERNEL, tol=1e-4).fit(cut(X, (1000, 2000)))
    with pytest.raises(ValueError, match="2 features"):
        kernel_map.transform(cut(X[:, :2].copy(), (N,)))


# --- schedulers, threads and memory ---------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_local_schedulers_start_no_client(scheduler, X, y):
    D = cut(X, (1000, 2000))
    with dask.config.set(scheduler=scheduler):
        model = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(D, y)
        expected = model.predict(X)
        assert_allclose(model.predict(D).compute(), expected, atol=1e-10)
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()


def test_tasks_side_by_side_use_one_thread_each():
    probe = engine.task(lambda: np.array(n_threads(4)))
    assert probe() == n_threads(4)  # alone in its process: as set
    together = dask.compute(*[dask.delayed(probe)() for _ in range(4)], scheduler="threads")
    assert {int(threads) for threads in together} == {1}
    assert probe() == n_threads(4)


@pytest.mark.parametrize("options", [{}, {"basis": "closed"}, {"append_residual": True}], ids=str)
def test_a_huge_partition_is_mapped_in_panels(options, X, monkeypatch):
    monkeypatch.setattr("mercer.engine.tiles.PANEL_VALUES", 1)
    D = cut(X, (N,))
    kernel_map = KernelMap(Polynomial(2), **options).fit(D)

    def summed(statistic):
        rows = _source_of(D, _PointCheck.of(kernel_map, kernel_map.kernel_, bound=True))
        return rows.fold(OnPanels(kernel_map.map_, statistic))

    rows = summed(lambda Phi: [len(Phi)])
    assert max(rows) == 256
    assert sum(rows) == N
    Phi = kernel_map.transform(X)
    assert_allclose(summed(lambda Phi: Phi.T @ Phi), Phi.T @ Phi, atol=1e-8 * N)
    assert_allclose(kernel_map.transform(D).compute(), Phi, atol=1e-12)


def test_a_task_holds_what_only_it_needs(X):
    """So a block is used where it is read; what blocks share stays a task of its own."""
    D = cut(X, (1000, 1500, 500)).map_blocks(np.sin, dtype=float)
    blocks = list(D.to_delayed().ravel())
    first = dask.delayed(np.sum)(blocks[0])
    add = dask.delayed(lambda block, total: block.sum() + total)
    made = [add(block, first) for block in blocks]
    fused = engine.fuse_reads(made)
    left = dict(fused[0].__dask_graph__())
    assert [block.key in left for block in blocks] == [True, False, False]
    assert first.key in left
    assert dask.compute(*fused) == dask.compute(*made)


def test_blocks_are_added_up_on_several_threads():
    """Fusing keeps a block with its task, and tasks apart from each other."""
    parts, together = engine.Partitions(da.ones((4, 2), chunks=(2, 2))), threading.Barrier(2)

    def meets(shared, block):
        together.wait(timeout=60)
        return block.sum()

    with dask.config.set(scheduler="threads", num_workers=2):
        assert parts.total(parts.each(meets, parts.share(1))) == 8


def test_a_chain_has_a_task_for_each_block():
    rows, ran = _source_of(da.ones((6, 2), chunks=(2, 2)), _PointCheck(None, RBF(1.0))), []
    with (
        dask.callbacks.Callback(pretask=lambda key, *_: ran.append(key)),
        dask.config.set(scheduler="threads"),
    ):
        assert rows.chain(lambda state, points: state + points.sum(), 0.0) == 12
    assert len(ran) >= 3


@pytest.mark.parametrize("lacks", ["module", "fuse"])
def test_a_dask_that_cannot_fuse_gives_the_same(lacks, X, y, monkeypatch):
    """Fusing asks Dask for what it does not promise to keep."""
    D, T = cut(X, (1000, 1500, 500)), da.from_array(y, chunks=((1000, 1500, 500),))
    model = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-4))
    expected = model.fit(D, T).predict(X)
    calls, fuse = [], engine.fuse_reads

    def without(made):
        with monkeypatch.context() as lacking:
            if lacks == "module":
                lacking.setitem(sys.modules, "dask._task_spec", None)
            else:
                lacking.delattr("dask._task_spec.GraphNode.fuse")
            calls.append(fuse(made))
        assert calls[-1] is made
        return made

    monkeypatch.setattr(engine, "fuse_reads", without)
    assert_allclose(model.fit(D, T).predict(X), expected, rtol=1e-12)
    assert calls


# --- a cluster ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(quick_workers):
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="1GB"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def test_processes_give_the_same_answer(client, X, y, small_sample):
    D, t = cut(X, (500,) * 6), da.from_array(y, chunks=500)
    with dask.config.set(scheduler="synchronous"):
        one = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(D, t)
    many = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(D, t)
    assert_array_equal(many.kernel_map_.landmark_indices_, one.kernel_map_.landmark_indices_)
    assert_allclose(many.predict(D).compute(), one.predict(X), atol=1e-9)
    persisted = client.persist(D)
    again = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(persisted, t)
    assert_allclose(again.coef_, many.coef_, rtol=1e-6, atol=1e-8)


def test_models_too_large_for_a_graph_go_to_the_cluster_first(client, X, monkeypatch):
    monkeypatch.setattr(lazy, "_LARGEST_IN_GRAPH", 0)
    D = cut(X, (1000, 2000))
    kernel_map = KernelMap(KERNEL, tol=1e-6).fit(D)
    Phi = kernel_map.transform(D)
    assert any(isinstance(k, distributed.Future) for k in _futures(Phi))
    assert_allclose(Phi.compute(), kernel_map.transform(X), atol=1e-12)


def _futures(collection):
    from distributed.client import futures_of

    return futures_of(collection)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_what_travels_is_not_a_sum_for_each_block(kind, client, small_sample):
    """Landmarks go to the workers, and one sum comes back from each, however many blocks."""
    blocks = 40
    D = da.random.default_rng(0).standard_normal((blocks * 500, 3), chunks=(500, 3))
    t = da.sin(D[:, 0])
    if kind == "frame":
        frame = dd.from_dask_array(D, columns=["a", "b", "c"])
        D, t = frame, np.sin(frame["a"])
    before = sum(client.run(sent).values())
    model = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-4)).fit(D, t)
    moved = sum(client.run(sent).values()) - before
    factor = 8 * model.kernel_map_.rank_**2
    # A sum for each block would be half of all blocks' sums, on two workers.
    assert moved < blocks / 4 * factor
    assert moved > factor
    assert engine.bytes_of(model.kernel_map_.map_.space) >= factor


def test_what_travels_does_not_grow_with_the_rows(client, small_sample):
    """At a given rank: a sample, the factor and one sum a worker, and no block of rows."""
    moved, rows = [], 8000
    for blocks in (8, 32):
        D = da.random.default_rng(0).standard_normal((blocks * rows, 3), chunks=(rows, 3))
        before = sum(client.run(sent).values())
        model = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-8, max_rank=40)).fit(D, D[:, 0])
        assert model.kernel_map_.rank_ == 40
        moved.append(sum(client.run(sent).values()) - before)
    # Only the numbers that every block reports: far less than one of the 24 blocks more.
    assert moved[1] - moved[0] < D[:rows].nbytes / 2
    assert moved[0] > 8 * 40**2


def sent(dask_worker):
    return dask_worker.transfer_outgoing_bytes_total


def test_errors_in_workers_reach_the_user(client, X):
    X[2500, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        KernelMap(KERNEL).fit(cut(X, (1000, 2000)))


def test_results_too_large_for_a_worker_are_refused(client, X, monkeypatch):
    with pytest.raises(mercer.engine.memory.MemoryLimitError, match="use smaller partitions"):
        client.submit(lazy._check_room, 700_000_000).result()
    assert client.submit(lazy._check_room, 500_000_000).result() is None


def slow(block, folder):
    """A block of data that takes its time and says that it was asked for."""
    if block.shape[0]:
        time.sleep(0.04)
        (Path(folder) / f"{time.monotonic_ns()}-{os.getpid()}").touch()
    return block


def kill_a_worker(cluster, folder, after):
    """Kill a worker process once so many blocks were read; returns who was killed."""
    killed = []

    def wait_and_kill():
        for _ in range(20_000):  # a machine may be busy
            if len(list(folder.iterdir())) >= after:
                worker = next(iter(cluster.workers.values()))
                killed.append(worker.process.pid)
                os.kill(worker.process.pid, signal.SIGKILL)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    return killed, thread


@pytest.mark.parametrize("stage", ["sample", "certificate", "sums", "transform"])
def test_a_killed_worker_changes_nothing(stage, cluster, client, X, y, tmp_path, small_sample):
    blocks = 12
    source = cut(X, (N // blocks,) * blocks)
    t = da.from_array(y, chunks=N // blocks)
    with dask.config.set(scheduler="synchronous"):
        one = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(source, t)
    D = source.map_blocks(slow, str(tmp_path), dtype=float, meta=np.empty((0, 0)))
    passes = {"sample": 0, "certificate": 1, "sums": 2, "transform": 3}[stage]
    killed, thread = kill_a_worker(cluster, tmp_path, passes * blocks + 4)
    many = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(D, t)
    Phi = many.kernel_map_.transform(D).compute() if stage == "transform" else None
    thread.join()
    assert killed
    readers = {int(path.name.split("-")[1]) for path in tmp_path.iterdir()}
    assert killed[0] in readers  # it had work to lose
    assert_array_equal(many.kernel_map_.landmark_indices_, one.kernel_map_.landmark_indices_)
    assert_allclose(many.coef_, one.coef_, rtol=1e-6, atol=1e-8)
    if stage == "transform":
        assert_allclose(Phi, one.kernel_map_.transform(X), atol=1e-12)


def test_a_killed_worker_costs_its_share_of_one_product(cluster, client, X, y):
    """Points, vectors and coordinates that were lost are sent or made again."""
    rows, t, kernel, killed = X[:300], y[:300, None], Matern(1.5), []

    def kill(step):
        if step.products == 3 and not killed:
            worker = next(iter(cluster.workers.values()))
            killed.append(worker.process.pid)
            os.kill(worker.process.pid, signal.SIGKILL)

    there = solve_iteratively(
        kernel,
        rows,
        t,
        [1.0],
        rank=20,
        workers=Workers(cut(rows, (100,) * 3)),
        callback=kill,
    )
    here = solve_iteratively(kernel, rows, t, [1.0], rank=20)
    assert killed
    assert there.converged
    difference = np.abs(kernel(rows) @ (there.coef - here.coef))
    assert np.all(difference <= there.error_norms + here.error_norms)


def test_a_lazy_result_outlives_its_client(cluster, X):
    """A model of 7 MB, and rows that need no cluster."""
    D = cut(X, (1000, 2000))
    with distributed.Client(cluster):
        kernel_map = KernelMap(RBF(30.0), max_rank=900, tol=1e-12).fit(D)
        assert len(pickle.dumps(kernel_map)) > 4 << 20
        Phi = kernel_map.transform(D)
    assert_allclose(Phi.compute(scheduler="threads"), kernel_map.transform(X), atol=1e-12)


def test_workers_without_mercer_are_named(quick_workers):
    """They used to wait for ever."""

    def hide():
        import sys
        from pathlib import Path

        sys.path[:] = [p for p in sys.path if not (Path(p) / "mercer").exists()]
        finders = [f for f in sys.meta_path if "mercer" not in getattr(f, "__module__", "")]
        sys.meta_path[:] = finders
        for name in [name for name in sys.modules if name.split(".")[0] == "mercer"]:
            del sys.modules[name]
        sys.path_importer_cache.clear()

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(hide, workers=[next(iter(client.scheduler_info()["workers"]))])
        with pytest.raises(RuntimeError, match="1 of 2 Dask workers cannot import mercer"):
            KernelMap(RBF(1.0)).fit(da.ones((20, 2), chunks=(10, 2)))


def test_what_is_shared_outlives_the_only_worker(quick_workers, X):
    """Scattered data would be gone."""
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0"
        ) as alone,
        distributed.Client(alone) as client,
    ):
        shared = engine.share({"landmarks": X}, client)
        distributed.wait(shared)
        os.kill(next(iter(alone.workers.values())).process.pid, signal.SIGKILL)
        kept = engine.opened(client.compute(shared).result())
        assert_array_equal(kept["landmarks"], X)
