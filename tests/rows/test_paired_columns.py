"""Targets and weights that come as streams, or in tuples with the rows."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import SGDClassifier

from mercer import (
    RBF,
    Chunks,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelRidge,
    KernelRidgeCV,
    Spectrum,
)
from mercer.rows.held import Column
from mercer.rows.streams import _paired_columns, _Side, _Tuples, sides

KERNEL = RBF(0.3)
FOURIER = KernelMap(KERNEL, basis="fourier", tol=1e-3)
RIDGES = [
    KernelRidge(0.1, KERNEL),
    KernelRidge(0.1, KERNEL, form="iterative", tol=1e-7),
    KernelRidge(0.1, KernelMap(KERNEL, center=True)),
    KernelRidge(0.1, FOURIER),
    KernelRidgeCV([0.1, 1.0], FOURIER),
]


def cut(values, size):
    return Chunks(lambda: (values[a : a + size] for a in range(0, len(values), size)))


def tuples(size, *columns):
    starts = range(0, len(columns[0]), size)
    return Chunks(lambda: (tuple(c[a : a + size] for c in columns) for a in starts))


def in_one_buffer(values, size):
    """A stream that fills one buffer again and again."""

    def chunks():
        buffer = np.empty((size, *values.shape[1:]), dtype=values.dtype)
        for a in range(0, len(values), size):
            part = values[a : a + size]
            buffer[: len(part)] = part
            yield buffer[: len(part)]

    return Chunks(chunks)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=400), rng.uniform(0.5, 2, size=400)


@pytest.fixture(params=["few rows", "many rows"])
def size(request, monkeypatch):
    if request.param == "many rows":
        monkeypatch.setattr("mercer.rows.gather.SAMPLE", 120)


@pytest.mark.parametrize(("targets", "weighted"), [(1, False), (2, True)])
@pytest.mark.parametrize("model", RIDGES, ids=lambda m: f"{type(m).__name__}-{m.form}-{m.kernel!r}")
def test_streams_of_targets_give_what_arrays_give(model, targets, weighted, size, data):
    X, y, weights = data
    y = y if targets == 1 else np.stack([y, 2 - X[:, 1]], axis=1)
    here = (weights,) if weighted else ()
    there = (in_one_buffer(weights, 70),) if weighted else ()
    expected = model.fit(X, y, *here).predict(X)
    for given in (y, in_one_buffer(y, 70)):
        found = model.fit(in_one_buffer(X, 70), given, *there).predict(X)
        assert_allclose(found, expected, atol=2e-5)
    pairs = tuples(70, X, y)
    assert_allclose(model.fit(pairs, None, *there).predict(X), expected, atol=2e-5)
    if weighted:
        found = model.fit(tuples(90, X, y, weights)).predict(X)
        assert_allclose(found, expected, atol=2e-5)
        found = model.fit(pairs, None, weights).predict(X)
        assert_allclose(found, expected, atol=2e-5)


def test_pairs_with_labels(size, data):
    X, y, _ = data
    labels = np.where(y > 0, "high", "low")
    pairs = Chunks(lambda: ((X[a : a + 90], labels[a : a + 90]) for a in range(0, 400, 90)))
    here = KernelDiscriminant(kernel=KERNEL).fit(X, labels)
    assert np.mean(KernelDiscriminant(kernel=KERNEL).fit(pairs).predict(X) == here.predict(X)) == 1


def test_nothing_that_grows_with_the_rows_is_held():
    """200 chunks of 80 kB pass by."""

    def pairs():
        rng = np.random.default_rng(1)
        for _ in range(200):
            rows = rng.uniform(size=(5000, 1))
            yield rows, rows[:, 0]

    def total(source, values):
        return sum(y.sum() for _, (y,) in _paired_columns(source, [Column(values, "y")]))

    rows, separate = (Chunks(lambda i=i: (pair[i] for pair in pairs())) for i in (0, 1))
    for given in [(Chunks(pairs), None, None), (rows, separate, None)]:
        source, values, _ = sides(*given)
        tracemalloc.start()
        total(source, values)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1_000_000


def test_pairs_are_read_once_per_pass():
    opened = []

    def pairs():
        opened.append(1)
        return iter([(np.zeros((2, 1)), np.zeros(2))])

    rows, targets, _ = sides(Chunks(pairs), None, None)
    opened.clear()
    list(_paired_columns(rows, [Column(targets, "y"), Column(None, "sample_weight")]))
    assert len(opened) == 1


@pytest.mark.parametrize("kernel", [KERNEL, FOURIER], ids=["landmarks", "fourier"])
def test_refusals(kernel, monkeypatch, data):
    X, y, weights = data
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 120)
    model, rows = KernelRidge(0.1, kernel), cut(X, 70)
    with pytest.raises(ValueError, match="X has more rows than y, which has 399"):
        model.fit(rows, y[:-1])
    with pytest.raises(ValueError, match="X has 400 rows and y has 402"):
        model.fit(rows, np.append(y, [0, 0]))
    cut_alike = "chunk 0 of X has 70 rows and that of y has 60: cut y where X is cut, or give tuple"
    with pytest.raises(ValueError, match=cut_alike):
        model.fit(rows, cut(y, 60))
    with pytest.raises(ValueError, match="chunk 6 of X has 0 rows and that of y has 2"):
        model.fit(rows, Chunks(lambda: iter([*cut(y, 70), y[:2]])))
    with pytest.raises(ValueError, match="chunk 5 of X has 50 rows and that of y has 0"):
        model.fit(rows, cut(y[:350], 70))
    with pytest.raises(ValueError, match="chunk 1 of X has 70 rows and that of sample_weight"):
        model.fit(rows, y, Chunks(lambda: iter([y[:70], y[70:]])))
    with pytest.raises(ValueError, match="give them once"):
        model.fit(tuples(70, X, y, weights), None, weights)
    with pytest.raises(TypeError, match="a chunk of X is a tuple of 2"):
        model.fit(tuples(70, X, y), y)
    with pytest.raises(TypeError, match="a chunk of X is a tuple of 2"):
        KernelMap(KERNEL).fit(tuples(70, X, y))
    with pytest.raises(TypeError, match="y is an iterator that can be read only once"):
        model.fit(rows, iter(cut(y, 70)))
    with pytest.raises(TypeError, match="X is an iterator that can be read only once"):
        model.fit(pair for pair in [(X, y)])
    with pytest.raises(ValueError, match="chunk 0 of X has 400 rows and that of y has 399"):
        model.fit(Chunks(lambda: iter([(X, y[:-1])])))
    with pytest.raises(TypeError, match=r"\(X, y, sample_weight\), got a tuple of 4"):
        model.fit(tuples(70, X, y, weights, weights))
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(rows, cut(np.where(np.arange(400) == 300, np.nan, y), 70))
    with pytest.raises(ValueError, match="sample_weight must not be all zero"):
        model.fit(rows, cut(y, 70), cut(0 * y, 70))
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(rows)


# --- columns that change between passes -----------------------------------------------------------


class Changing:
    """Other values each time it is opened: as they are, then `other`, and again."""

    def __init__(self, values, other, X=None):
        self.values, self.other, self.X, self.times = values, other, X, 0

    def __iter__(self):
        values = self.other if self.times % 2 else self.values
        self.times += 1
        for a in range(0, len(values), 53):
            part = values[a : a + 53]
            yield part if self.X is None else (self.X[a : a + 53], part)


METHODS = {
    "ridge": lambda: KernelRidge(0.1, KernelMap(KERNEL, max_rank=40)),
    "centred ridge": lambda: KernelRidge(0.1, KernelMap(KERNEL, max_rank=40, center=True)),
    "discriminant": lambda: KernelDiscriminant(kernel=KernelMap(KERNEL, max_rank=40)),
    "any classifier": lambda: Kernelized(SGDClassifier(), KernelMap(KERNEL, max_rank=40)),
}


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_targets_that_change_between_passes_are_noticed(name, pairs, data, monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 120)
    X, y, _ = data
    y = y if "ridge" in name else np.where(y > 0, "high", "low")
    other = -y if "ridge" in name else np.where(y == "low", "high", "low")
    for values in (other, np.where(np.arange(400) < 399, y, other)):  # all, or the last alone
        stream = Changing(y, values, X if pairs else None)
        with pytest.raises(RuntimeError, match="y changes each time it is read"):
            METHODS[name]().fit(*((stream,) if pairs else (cut(X, 53), stream)))
        same = Changing(y, y, X if pairs else None)
        METHODS[name]().fit(*((same,) if pairs else (cut(X, 53), same)))


def test_what_is_cut_elsewhere_is_the_same():
    X, y = np.zeros((100, 1)), np.arange(100.0)
    cuts = iter([1, 10, 10, 7, 30])

    def chunks():
        n = next(cuts)
        return zip(np.array_split(X, n), np.array_split(y, n), np.array_split(y, n))

    weights = _Side(_Tuples(Chunks(chunks)), 2)
    for _ in range(3):
        assert_allclose(np.concatenate(list(weights)), y)
    y = y + 1
    with pytest.raises(RuntimeError, match="y changes each time"):
        list(weights)
    words = Changing(np.array(["a", "bb"] * 60), np.array(["a", "bc"] * 60), np.zeros((120, 1)))
    targets = sides(words, None, None)[1]
    list(targets)
    with pytest.raises(RuntimeError, match="y changes"):
        next(iter(targets))  # as soon as it is seen


def test_objects_that_change_are_noticed(monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 20)
    texts = [f"word{i % 37}" for i in range(106)]
    stream = Changing(texts, texts[::-1])
    with pytest.raises(RuntimeError, match="X changes each time it is read"):
        KernelMap(Spectrum(2), max_rank=5).fit(stream)
    KernelMap(Spectrum(2), max_rank=5).fit(Changing(texts, texts))
