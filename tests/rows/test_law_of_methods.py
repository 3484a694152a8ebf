"""The law over sources, for what follows a fit: answers about streams and Dask collections, and
clear refusals where there can be none."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, SGDClassifier

from mercer import (
    RBF,
    Chunks,
    ClassicalMDS,
    DriftDetector,
    KernelClassifier,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
    Polynomial,
    Sigmoid,
    Spectrum,
    TableEncoder,
    two_sample_test,
)

da = pytest.importorskip("dask.array", reason="dask is not installed: pip install mercer[dask]")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed: pip install mercer[dask]")

KERNEL = RBF(0.3)


@pytest.fixture(scope="module")
def X():
    return load_iris().data[::2]


@pytest.fixture(scope="module")
def y():
    return load_iris().target[::2]


@pytest.fixture
def many_rows(monkeypatch):
    """Rows that are passed over, not held."""
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 30)


def streamed(X, size=17):
    def take(a):
        return X.iloc[a : a + size] if hasattr(X, "iloc") else X[a : a + size]

    return Chunks(lambda: (take(a) for a in range(0, len(X), size)))


def partitioned(X, size=40):
    return da.from_array(X, chunks=(size,) + (-1,) * (X.ndim - 1))


def framed(X):
    return pd.DataFrame(X, columns=list("abcd"))


METHODS = [
    (KernelMap(KERNEL), "transform residual error_bound distances fit_transform"),
    (KernelPCA(2, KERNEL), "transform fit_transform"),
    (KernelPCAL1(2, KERNEL, random_state=0), "transform fit_transform"),
    (KernelDiscriminant(kernel=KERNEL), "transform predict predict_proba fit_transform"),
    (KernelRidge(0.1, KERNEL), "predict"),
    (Kernelized(LogisticRegression(), KERNEL), "predict predict_proba"),
    (Kernelized(PCA(2), KERNEL), "transform fit_transform"),
    (Kernelized(KMeans(2, n_init=1, random_state=0), KERNEL), "predict fit_predict"),
    (ClassicalMDS(2), "transform fit_transform"),
]


@pytest.mark.parametrize(("model", "names"), METHODS, ids=lambda value: str(value)[:40])
def test_a_stream_is_refused_by_all_but_fit(model, names, X, y):
    model.fit(X, y)
    for name in names.split():
        given = (streamed(X), y) if name.startswith("fit_") else (streamed(X),)
        with pytest.raises(TypeError, match="one chunk at a time"):
            getattr(model, name)(*given)


@pytest.mark.parametrize("rows", [partitioned, lambda X: dd.from_pandas(framed(X), npartitions=2)])
def test_kernelized_answers_about_a_few_rows_of_a_collection(rows, X):
    clusters = Kernelized(KMeans(3, n_init=1, random_state=0), KERNEL)
    assert_array_equal(clusters.fit_predict(rows(X)), clusters.fit_predict(X))
    components = Kernelized(PCA(2), KERNEL)
    assert_allclose(components.fit_transform(rows(X)), components.fit_transform(X), atol=1e-10)


def test_kernelized_says_what_to_call_for_many_rows(X, many_rows):
    with pytest.raises(TypeError, match=r"call fit\(X\), then predict\(X\)"):
        Kernelized(KMeans(3), KERNEL).fit_predict(partitioned(X))


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
@pytest.mark.parametrize("rows", [streamed, partitioned, lambda X: streamed(framed(X))])
def test_classical_mds_gathers_rows(rows, metric, X, many_rows):
    here, there = ClassicalMDS(2, metric).fit(X), ClassicalMDS(2, metric).fit(rows(X))
    assert_allclose(there.embedding_, here.embedding_, atol=1e-12)
    lazy = here.transform(partitioned(X))
    assert isinstance(lazy, da.Array)
    assert_allclose(lazy, here.transform(X), atol=1e-12)


@pytest.mark.parametrize("rows", [streamed, partitioned, lambda X: streamed(framed(X))])
def test_a_map_grows_by_rows_in_pieces(rows, X, many_rows):
    here, there = KernelMap(KERNEL, tol=1e-4), KernelMap(KERNEL, tol=1e-4)
    for part in (X[:50], X[50:]):
        here.partial_fit(part)
        there.partial_fit(rows(part))
    assert there.n_samples_seen_ == len(X)
    assert_array_equal(there.landmark_indices_, here.landmark_indices_)


FRAMES = {"stream": streamed, "dask": lambda F: dd.from_pandas(F, npartitions=3, sort=False)}


@pytest.mark.parametrize("source", FRAMES)
def test_learned_models_gather_tables_with_words(source, X, y):
    give = FRAMES[source]
    table = framed(X).assign(e=np.array(["left", "right"])[y % 2])
    words, size = pd.Series(np.array(["a", "b", "c"])[y]), pd.Series(X[:, 0] + y)
    weights = pd.Series(1.0 + y % 2)
    quick = {"n_rounds": 1, "max_landmarks": 40}
    for model, target in ((KernelClassifier(**quick), words), (KernelRegressor(**quick), size)):
        expected = clone(model).fit(table, target, weights).predict(table)
        fitted = clone(model).fit(give(table), give(target), give(weights))
        assert_array_equal(fitted.predict(table), expected)
        lazy = fitted.predict(FRAMES["dask"](table)).compute()
        if target is size:
            assert_allclose(lazy, expected, rtol=1e-9)
        else:
            assert_array_equal(lazy, expected)


def learner(kernel=KERNEL):
    """It learns one piece after the other; weights of zero leave rows out."""
    return Kernelized(SGDClassifier(random_state=0, shuffle=False), KernelMap(kernel, max_rank=5))


@pytest.mark.parametrize("rows", [streamed, partitioned])
@pytest.mark.parametrize("column", [streamed, partitioned, np.asarray, pd.Series])
def test_weights_go_along_with_pieces(rows, column, X, y, many_rows):
    weights = (y < 2).astype(float)
    model = learner().fit(rows(X), y, sample_weight=column(weights))
    assert 2 not in model.predict(X)
    assert_array_equal(model.classes_, [0, 1, 2])


@pytest.mark.parametrize("rows", [streamed, partitioned, lambda X: dd.from_pandas(framed(X), 1)])
@pytest.mark.parametrize("more", [-1, 1])
def test_labels_of_other_rows_are_refused(rows, more, X, y, many_rows):
    y = np.resize(y, len(y) + more)
    for labels in (y, dd.from_pandas(pd.Series(y), 1)):
        with pytest.raises(ValueError, match="rows"):
            learner().fit(rows(X), labels)


def test_pieces_of_objects_are_learned_from(many_rows):
    words = ["abab", "baba", "cdcd", "dcdc"] * 20
    model = learner(Spectrum(2)).fit(streamed(words), [0, 0, 1, 1] * 20)
    assert_array_equal(model.predict(words[:4]), [0, 0, 1, 1])


@pytest.mark.parametrize("rows", [streamed, partitioned])
def test_one_weight_for_all_rows(rows, X, many_rows):
    here = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(X, X[:, 0], 2.0)
    there = KernelRidge(0.1, KernelMap(KERNEL, tol=1e-6)).fit(rows(X), rows(X[:, 0]), 2.0)
    assert_allclose(there.predict(X), here.predict(X), atol=1e-4)


@pytest.mark.parametrize("rows", [streamed, partitioned])
def test_refusals_of_columns_name_them(rows, X, many_rows):
    words = np.repeat("word", len(X))
    with pytest.raises(ValueError, match="y: could not convert string"):
        KernelRidge(0.1, KERNEL).fit(rows(X), rows(words))
    with pytest.raises(ValueError, match="sample_weight: could not convert string"):
        KernelRidge(0.1, KERNEL).fit(rows(X), rows(X[:, 0]), rows(words))
    with pytest.raises(ValueError, match="sample_weight"):
        KernelRidge(0.1, KERNEL).fit(rows(X), rows(X[:, 0]), rows(X[1:, 0]))


MAPS = [
    KernelMap(KERNEL, basis="symmetric"),
    KernelMap(KERNEL, pivots="random", random_state=0, center=True),
    KernelMap(Sigmoid(0.05, -1.0), indefinite="clip"),
]


@pytest.mark.parametrize("rows", [streamed, partitioned])
@pytest.mark.parametrize("kernel_map", MAPS, ids=lambda value: repr(value)[10:40])
def test_maps_that_need_all_rows_take_targets_in_pieces(kernel_map, rows, X, y, many_rows):
    """Held with their rows: one-dimensional targets of a collection gave wrong coefficients."""
    for model in (KernelRidge(0.1, kernel_map), KernelRidgeCV([0.1, 1.0], kernel_map)):
        here, there = clone(model).fit(X, X[:, 0]), clone(model).fit(rows(X), rows(X[:, 0]))
        assert_allclose(there.dual_coef_, here.dual_coef_, atol=1e-8)
        assert_allclose(there.predict(X), here.predict(X), atol=1e-8)
    model = KernelDiscriminant(kernel=kernel_map)
    expected = clone(model).fit(X, y).predict(X)
    assert_array_equal(clone(model).fit(rows(X), rows(y)).predict(X), expected)


@pytest.mark.parametrize("options", [{"basis": "closed"}, {"append_residual": True}], ids=str)
@pytest.mark.parametrize("rows", [np.asarray, streamed, partitioned])
def test_no_penalty_on_maps_without_sums_of_kernels(rows, options, X, many_rows):
    model = KernelRidge(0.0, KernelMap(Polynomial(2), **options)).fit(rows(X), X[:, 0] ** 2)
    assert_allclose(model.predict(X), X[:, 0] ** 2, rtol=1e-6)
    assert not hasattr(model, "dual_coef_")


# --- chunks of several kinds ----------------------------------------------------------------------


@pytest.fixture(params=["few rows", "many rows"])
def size(request, monkeypatch):
    if request.param == "many rows":
        monkeypatch.setattr("mercer.rows.gather.SAMPLE", 30)


KINDS = {"list": lambda X: X.tolist(), "array": np.asarray, "frame": framed}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("last", KINDS)
@pytest.mark.parametrize("first", KINDS)
def test_lists_arrays_and_frames_may_follow_each_other(first, last, X, size):
    chunks = [KINDS[first](X[:50]), KINDS[last](X[50:])]
    there = KernelMap(KERNEL).fit(Chunks(lambda: iter(chunks)))
    P, Q = there.transform(KINDS[first](X)), KernelMap(KERNEL).fit(X).transform(X)
    assert_allclose(P @ P.T, Q @ Q.T, atol=1e-6)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (lambda X: framed(X)[list("dcba")], "same order"),
        (lambda X: framed(X).rename(columns={"a": "z"}), "columns|names"),
        (lambda X: scipy.sparse.csr_array(X), "sparse"),
        (lambda X: X[0], "shape|1D"),
        (lambda X: np.ma.masked_array(X, X > 6), "masked"),
    ],
)
def test_other_chunks_are_refused(last, message, X, size):
    """Whether the rows are few or many, and before an array library says something of its own."""
    rest = last(X[50:])
    first = framed(X[:50]) if hasattr(rest, "iloc") else X[:50]
    with pytest.raises((TypeError, ValueError), match=message):
        KernelMap(KERNEL).fit(Chunks(lambda: iter([first, rest])))


def test_arrays_and_lists_of_objects_may_follow_each_other(size):
    words = ["abab", "baba", "cdcd", "dcdc"] * 20
    chunks = [words[:40], np.array(words[40:], dtype=object)]
    for order in (chunks, chunks[::-1]):
        there = KernelMap(Spectrum(2)).fit(Chunks(lambda order=order: iter(order)))
        assert there.n_samples_seen_ == 80


def test_pairs_are_for_fits_without_y(X, y, size):
    pairs = Chunks(lambda: ((X[a : a + 20], y[a : a + 20]) for a in range(0, len(X), 20)))
    assert KernelRidge(0.1, KERNEL).fit(pairs).score(X, y) > 0.8
    for fit in (KernelMap(KERNEL).fit, KernelPCA(2, KERNEL).fit):
        with pytest.raises(TypeError, match="takes rows alone"):
            fit(pairs)
    with pytest.raises(TypeError, match="leave y out"):
        KernelRidge(0.1, KERNEL).fit(pairs, y)


def test_empty_chunks_of_targets_say_nothing(X, size):
    targets = X[:, :2]
    chunks = Chunks(lambda: iter([[], targets[:17], [], *streamed(targets[17:])]))
    model = KernelRidge(0.1, KERNEL, form="primal").fit(streamed(X), chunks)
    assert model.predict(X).shape == targets.shape
    with pytest.raises(ValueError, match="y"):
        KernelRidge(0.1, KERNEL).fit(streamed(X), Chunks(lambda: iter([[]])))


def test_missing_labels_are_refused_by_name(X, y, size):
    words = pd.Series(np.array(["a", "b", None], dtype=object)[y])
    rows = dd.from_pandas(framed(X), npartitions=3)
    for labels in (dd.from_pandas(words, npartitions=3), partitioned(words.to_numpy(), 25)):
        given = partitioned(X, 25) if hasattr(labels, "chunks") else rows
        with pytest.raises(ValueError, match="y has no class in"):
            KernelDiscriminant(kernel=KERNEL).fit(given, labels)


# --- names of columns -----------------------------------------------------------------------------

NAMED = [
    (KernelMap(KERNEL), "error_bound distances pair_residual transform residual"),
    (KernelRegressor(n_rounds=1), "predict"),
    (KernelClassifier(n_rounds=1), "predict predict_proba"),
    (ClassicalMDS(2), "transform"),
]


@pytest.mark.parametrize(("model", "names"), NAMED, ids=lambda value: str(value)[:20])
def test_columns_of_a_collection_must_be_those_of_the_fit(model, names, X, y):
    table = framed(X)
    model.fit(table, y)
    rows = dd.from_pandas(table, npartitions=2)
    for name in names.split():
        expected = getattr(model, name)(table)
        assert_allclose(np.asarray(getattr(model, name)(rows)), expected, atol=1e-8)
        for other in (rows[list("dcba")], rows.rename(columns={"a": "z"})):
            with pytest.raises(ValueError, match="names"):
                np.asarray(getattr(model, name)(other))


# --- statistics -----------------------------------------------------------------------------------


@pytest.fixture
def tables(X, y):
    """Two samples with words, and a number of each row that is left out of a comparison."""
    words = np.array(["left", "right"])[y % 2]
    table = framed(X).assign(e=words, number=np.tile(np.arange(38), 2)[: len(X)])
    return table[:38].reset_index(drop=True), table[37:].reset_index(drop=True)


@pytest.mark.parametrize("source", FRAMES)
def test_samples_of_few_rows_are_held(source, tables):
    give, options = FRAMES[source], {"n_permutations": 99, "random_state": 0}
    here = two_sample_test(*tables, **options)
    for pair in (map(give, tables), (tables[0], give(tables[1]))):
        there = two_sample_test(*pair, **options)
        assert (there.statistic, there.p_value) == (here.statistic, here.p_value)
    detector, reference = DriftDetector(random_state=0), DriftDetector(random_state=0)
    reference.fit(tables[0])
    detector.fit(give(tables[0]))
    assert list(detector.feature_names_in_) == list(reference.feature_names_in_)
    assert detector.p_value(give(tables[1])) == reference.p_value(tables[1])


def test_a_drift_detector_reads_columns_by_name(tables):
    detector = DriftDetector(random_state=0).fit(tables[0])
    rows = FRAMES["dask"](tables[1])
    assert_array_equal(detector.predict(rows).compute(), detector.predict(tables[1]))
    with pytest.raises(ValueError, match="names"):
        detector.predict(rows[rows.columns[::-1]])
    with pytest.raises(TypeError, match="one chunk at a time"):
        detector.predict(streamed(tables[1]))


@pytest.mark.parametrize(
    "empty", [Chunks(lambda: iter([])), da.zeros((0, 4))], ids=["stream", "dask"]
)
def test_samples_without_rows_are_refused(empty, X):
    with pytest.raises(ValueError, match="0 sample"):
        two_sample_test(empty, X)


# --- tables where they are ------------------------------------------------------------------------


@pytest.fixture
def table(rng):
    n = 90
    table = pd.DataFrame(
        {
            "size": rng.normal(50, 9, n),
            "town": rng.choice(["Rome", "Oslo", "Bern"], n),
            "when": pd.date_range("2020-01-01", periods=n).astype(str),
        }
    )
    table.loc[::7, "size"] = np.nan
    return table


@pytest.mark.parametrize("source", FRAMES)
def test_an_encoder_of_few_rows_is_that_of_the_table(source, table):
    here, there = TableEncoder().fit(table), TableEncoder().fit(FRAMES[source](table))
    assert there.columns_ == here.columns_
    assert list(there.feature_names_in_) == list(table.columns)
    assert there.notes() == here.notes()
    assert_array_equal(there.transform(table), here.transform(table))


def test_a_collection_is_encoded_where_it_is(table):
    rows = dd.from_pandas(table, npartitions=4)
    encoder = TableEncoder().fit(rows)
    lazy = encoder.transform(rows)
    assert hasattr(lazy, "compute")
    assert list(lazy.columns) == list(encoder.get_feature_names_out())
    assert_allclose(lazy.compute(), encoder.transform(table))
    for other in (rows[["town", "size", "when"]], rows.rename(columns={"town": "city"})):
        with pytest.raises(ValueError, match="names"):
            encoder.transform(other).compute()


@pytest.mark.parametrize("source", FRAMES)
def test_a_sample_decides_where_rows_are_many(source, table, monkeypatch):
    """No more than the sample travels, and the notes say so."""
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 40)
    encoder = TableEncoder().fit(FRAMES[source](table))
    assert encoder.sampled_from_ == 90
    assert "40 of 90 rows, drawn at random" in encoder.notes()[-1]
    again = TableEncoder().fit(FRAMES[source](table))
    assert_array_equal(again.transform(table), encoder.transform(table))
    # Not the first rows: an ordered column is met over its whole range.
    days = encoder.transform(table)[:, list(encoder.get_feature_names_out()).index("when")]
    assert abs(days.mean()) < 0.5


def test_a_learned_model_says_that_it_gathers(table, monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 50)
    y = table["size"].fillna(0) + (table["town"] == "Rome")
    model = KernelRegressor(n_rounds=1)
    for give in FRAMES.values():
        with pytest.warns(UserWarning, match=r"KernelRegressor needs all rows at once: 90 rows"):
            model.fit(give(table), give(y))


def test_learned_models_predict_a_stream(table):
    y = table["size"].fillna(0)
    model = KernelRegressor(n_rounds=1).fit(table, y)
    assert_allclose(model.predict(streamed(table)), model.predict(table), atol=1e-9)
    for there, here in zip(
        model.predict(streamed(table), return_std=True), model.predict(table, return_std=True)
    ):
        assert_allclose(there, here, atol=1e-9)
    classes = KernelClassifier(n_rounds=1).fit(table[["size", "when"]], table["town"])
    some = table[["size", "when"]]
    assert_allclose(classes.predict_proba(streamed(some)), classes.predict_proba(some))
    assert_array_equal(classes.predict(streamed(some)), classes.predict(some))
