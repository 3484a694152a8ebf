"""The law over sources: the same options give the same answer, or the same refusal, on an array, a
stream and a Dask collection."""

from itertools import chain, repeat

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier

from mercer import (
    RBF,
    Chunks,
    FromFunction,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    Polynomial,
    Sigmoid,
)

da = pytest.importorskip("dask.array", reason="dask is not installed: pip install mercer[dask]")

N = 400
KERNEL = RBF(0.3)


def streamed(X):
    return Chunks(lambda: (X[a : a + 70] for a in range(0, len(X), 70)))


def partitioned(X):
    return da.from_array(X, chunks=(150, -1))


SOURCES = {"stream": streamed, "dask": partitioned}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N, 3))


@pytest.fixture(scope="module")
def y(X):
    return (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)


@pytest.fixture(params=["few rows", "many rows"])
def size(request, monkeypatch):
    """Rows that are held because they are few, and rows that are passed over."""
    if request.param == "many rows":
        monkeypatch.setattr("mercer.rows.gather.SAMPLE", 120)
    return request.param


def outcome(fit):
    """(model, None) or (None, the refusal)."""
    try:
        return fit(), None
    except (TypeError, ValueError, MemoryError) as error:
        return None, error


OPTIONS = [
    {},
    {"basis": "eigen"},
    {"basis": "symmetric"},
    {"basis": "auto"},
    {"center": True},
    {"append_residual": True},
    {"pivots": "random", "random_state": 0},
    {"pivots": "uniform", "random_state": 0},
    {"max_rank": 30},
    {"tol": 1e-4},
    {"indefinite": "clip"},
    {"basis": "eigen", "center": True, "max_rank": 40},
]


HERE = {}


def fitted_here(model, X, y=None):
    """The model on the array, fitted once: answers do not change it."""
    key = repr(model)
    if key not in HERE:
        HERE[key] = clone(model).fit(X, y)
    return HERE[key]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kernel", [KERNEL, Polynomial(2)], ids=repr)
def test_maps(kernel, options, source, size, X):
    here = fitted_here(KernelMap(kernel, **options), X)
    there = KernelMap(kernel, **options).fit(SOURCES[source](X))
    assert there.n_samples_seen_ == N
    P, Q = here.transform(X[:60]), there.transform(X[:60])
    allowed = here.error_bound(X[:60]) + there.error_bound(X[:60])
    if options.get("append_residual"):  # the residual coordinate is not part of the bound
        P, Q = P[:, :-1], Q[:, :-1]
    assert np.all(np.abs(P @ P.T - Q @ Q.T) <= allowed)
    whole = size == "few rows" or options.get("pivots") or options.get("basis") == "symmetric"
    if whole and here.landmark_indices_ is not None:
        assert_array_equal(here.landmark_indices_, there.landmark_indices_)


@pytest.mark.parametrize("options", [{}, {"basis": "eigen"}, {"center": True}], ids=str)
def test_rows_in_pieces_give_the_same_landmarks(options, X, monkeypatch):
    """An array whose coordinates do not fit, a stream and a collection: one sample, one growth."""
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 120)
    limit = {"memory_limit": 60_000}
    maps = [
        KernelMap(KERNEL, tol=1e-5, **options, **limit).fit(rows)
        for rows in (X, streamed(X), partitioned(X))
    ]
    for other in maps[1:]:
        assert_array_equal(maps[0].landmark_indices_, other.landmark_indices_)
        assert_allclose(maps[0].transform(X), other.transform(X), atol=1e-7)


def similarity(x, z):
    return float(np.tanh(x @ z - 1))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("indefinite", ["raise", "clip", "flip", "shift"])
def test_similarities_that_are_not_kernels(indefinite, source, size, X):
    X = X[:130]
    for kernel in (Sigmoid(1.0, -1.0), FromFunction(similarity)):
        make = KernelMap(kernel, indefinite=indefinite)
        here, refused = outcome(lambda make=make: fitted_here(make, X))
        there, refused_there = outcome(lambda make=make: make.fit(SOURCES[source](X)))
        assert type(refused) is type(refused_there)
        if refused is None:
            assert_allclose(here.transform(X), there.transform(X), atol=1e-8)
            assert here.correction_ == there.correction_


MODELS = [
    KernelPCA(3, KernelMap(KERNEL)),
    KernelPCA(3, KERNEL),
    KernelPCA(3, KERNEL, solver="krylov"),
    KernelPCA(3, KERNEL, solver="dense"),
    KernelPCAL1(2, KernelMap(KERNEL, max_rank=60), random_state=0),
    KernelDiscriminant(kernel=KERNEL),
    KernelDiscriminant(kernel=KERNEL, shrinkage=0.1, form="iterative", tol=1e-8),
    KernelRidge(0.1, KERNEL),
    KernelRidge(0.1, KERNEL, form="dual"),
    KernelRidge(0.1, KERNEL, form="iterative", tol=1e-7),
    KernelRidge(0.1, KERNEL, form="fourier"),
    KernelRidge(0.1, KernelMap(KERNEL, center=True)),
    KernelRidge(0.1, Linear()),
    KernelRidge(0.1, KernelMap(KERNEL, basis="fourier", tol=1e-2)),
    KernelRidgeCV([0.1, 1.0], KernelMap(KERNEL, basis="fourier", tol=1e-2)),
    KernelPCA(3, KernelMap(KERNEL, basis="fourier", tol=1e-2)),
    KernelRidgeCV([0.01, 0.1], KERNEL),
    KernelRidgeCV([0.01, 0.1], KERNEL, form="iterative", tol=1e-7),
    KernelRidgeCV([0.01, 0.1], KERNEL, form="fourier"),
    Kernelized(LogisticRegression(), KERNEL),
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_methods(model, source, size, X, y):
    here = fitted_here(model, X, y)
    there, refused = outcome(lambda: clone(model).fit(SOURCES[source](X), y))
    if refused is not None:
        # What needs all rows at once says so; rows that are few are always held.
        assert size == "many rows"
        assert str(refused)
        return
    method = "predict" if hasattr(here, "predict") else "transform"
    expected, got = getattr(here, method)(X[:50]), getattr(there, method)(X[:50])
    assert_allclose(np.asarray(got, float), np.asarray(expected, float), atol=2e-5)


@pytest.mark.parametrize("source", SOURCES)
def test_pre_images_of_streamed_models(source, X, monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 120)
    model = KernelPCA(3, KERNEL).fit(SOURCES[source](X))
    back = model.inverse_transform(model.transform(X[:5]))
    assert back.shape == (5, 3)
    assert np.isfinite(back).all()


def test_streams_that_change_or_reuse_a_buffer(X, monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 120)
    rng = np.random.default_rng(1)

    def new_values():
        return iter(rng.normal(size=(4, 100, 3)))

    with pytest.raises(RuntimeError, match="values differ between two passes"):
        KernelMap(KERNEL, tol=1e-4).fit(Chunks(new_values))
    passes = chain([4] * 6, repeat(3))  # looked at twice, read, looked at twice, sampled; then less

    def fewer_rows():
        return iter(X.reshape(4, 100, 3)[: next(passes)])

    with pytest.raises(RuntimeError, match="rows differ between two passes"):
        KernelMap(KERNEL, tol=1e-4).fit(Chunks(fewer_rows))
    buffer = np.empty((50, 3))

    def one_buffer():
        for a in range(0, N, 50):
            buffer[:] = X[a : a + 50]
            yield buffer

    kernel_map = KernelMap(KERNEL, tol=1e-4).fit(Chunks(one_buffer))
    assert_array_equal(kernel_map.landmarks_, X[kernel_map.landmark_indices_])
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 20_000)
    kernel_map = KernelMap(KERNEL, tol=1e-4).fit(Chunks(one_buffer))
    assert_array_equal(kernel_map.landmarks_, X[kernel_map.landmark_indices_])


def test_a_collection_that_changes_is_noticed(X, monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 120)
    rng = np.random.default_rng(1)
    D = partitioned(X).map_blocks(lambda b: b + rng.normal(size=b.shape), dtype=float)
    with pytest.raises(RuntimeError, match="changes each time"):
        KernelMap(KERNEL, tol=1e-4).fit(D)


def test_who_predicts_during_a_refit_sees_a_whole_model(X, y):
    """The fitted state is swapped in one assignment."""
    import threading

    model, stop, seen = KernelRidge(0.1, KERNEL).fit(X, y), threading.Event(), []

    def predict():
        while not stop.is_set():
            try:
                seen.append(np.isfinite(model.predict(X[:3])).all())
            except Exception as error:
                seen.append(error)

    thread = threading.Thread(target=predict)
    thread.start()
    for alpha in (0.1, 0.2, 0.3, 0.4):
        model.set_params(alpha=alpha, form="primal" if alpha > 0.2 else "dual").fit(X, y)
    stop.set()
    thread.join()
    assert seen
    assert all(outcome is np.True_ or outcome is True for outcome in seen)


def test_words_in_a_frame_are_refused_alike(X):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": X[:, 0], "word": np.where(X[:, 1] > 0, "u", "v")})
    sources = (frame, streamed(frame), dd.from_pandas(frame, npartitions=3))
    refusals = {str(outcome(lambda r=rows: KernelMap(KERNEL).fit(r))[1]) for rows in sources}
    assert len(refusals) == 1
    assert "column 'word' holds other values" in refusals.pop()


@pytest.mark.parametrize("model", [KernelMap(KERNEL), KernelPCA(2, KERNEL), KernelPCAL1(2, KERNEL)])
def test_scores_of_a_stream_are_not_held(model, X):
    with pytest.raises(TypeError, match="one chunk at a time"):
        model.fit_transform(streamed(X))


def dask_column(y):
    return da.from_array(y, chunks=150)


@pytest.mark.parametrize("words", [False, True], ids=["numbers", "words"])
@pytest.mark.parametrize("source", SOURCES)
def test_labels_come_as_the_rows_do(source, words, size, X, y):
    y = np.array(["no", "yes"])[y] if words else y
    there = {"stream": streamed, "dask": dask_column}[source](y)
    here = KernelDiscriminant(kernel=KERNEL).fit(X, y)
    model = KernelDiscriminant(kernel=KERNEL).fit(SOURCES[source](X), there)
    assert_array_equal(model.classes_, here.classes_)
    assert_allclose(model.predict_proba(X[:50]), here.predict_proba(X[:50]), atol=1e-5)


@pytest.mark.parametrize("given", ["array", "pieces"])
@pytest.mark.parametrize("source", SOURCES)
def test_learning_piece_by_piece(source, given, X, y, monkeypatch):
    """Streams and collections go through the same lessons, wherever the labels are."""
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 120)
    words = np.array(["no", "yes"])[y]
    labels = words if given == "array" else {"stream": streamed, "dask": dask_column}[source](words)
    model = Kernelized(SGDClassifier(random_state=0), KernelMap(KERNEL, tol=1e-4))
    there = clone(model).fit(SOURCES[source](X), labels)
    step = {"stream": 70, "dask": 150}[source]
    here, seen = SGDClassifier(random_state=0), there.kernel_map_
    for a in range(0, N, step):
        here.partial_fit(seen.transform(X[a : a + step]), words[a : a + step], ["no", "yes"])
    assert_array_equal(there.classes_, ["no", "yes"])
    assert_allclose(there.estimator_.coef_, here.coef_, rtol=1e-9)
