"""DriftDetector: batches, rows, files."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from mercer import RBF, Chunks, DriftDetector, load, save

FEW = {"n_permutations": 99, "random_state": 0}


@pytest.fixture(scope="module")
def detector():
    rng = np.random.default_rng(0)
    return DriftDetector(**FEW).fit(rng.normal(size=(600, 3)))


@pytest.mark.parametrize("n", [10, 100, 1500])
def test_batches_of_any_size(detector, n):
    rng = np.random.default_rng(n)
    batch = rng.normal(size=(n, 3))
    assert detector.p_value(batch) > 0.01
    drifted = detector.test(batch + [0, 1.5, 0])
    assert drifted.differs
    assert next(iter(drifted.columns)) == "x1"
    assert drifted.rows(2)[0].shape == (2, 3)


def test_the_distance_is_that_of_the_rows_that_were_kept(rng):
    """Sums over units of any size add up to the same mean."""
    X = rng.normal(size=(3000, 2))
    detector = DriftDetector(RBF(0.5), scales=[1.0], **FEW).fit(X)
    totals = [sums.sum(axis=0) for sums in detector.sums_]
    assert len(totals) == 2
    assert_allclose(totals[0], totals[1], atol=1e-8)
    assert detector.n_reference_ == 1500


def test_false_alarms_of_batches_and_rows():
    alarms, marked = 0, []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(80, 2))
        fitted = DriftDetector(scales=[1.0], level=0.2, n_permutations=29, random_state=seed).fit(X)
        batch = rng.normal(size=(25, 2))
        alarms += fitted.test(batch).differs
        marked.append((fitted.predict(batch) < 0).mean())
    assert 2 <= alarms <= 25  # 12 are expected; 4 standard deviations
    assert 0.13 < np.mean(marked) < 0.26


def test_rows_far_away_are_marked(detector):
    assert detector.predict([[0.1, 0, 0], [9, 9, 9]]).tolist() == [1, -1]
    scores = detector.score_samples([[0.1, 0, 0], [9, 9, 9]])
    assert_allclose(detector.decision_function([[9, 9, 9]]), scores[1:] - detector.offset_)


def test_frames_and_files(rng, tmp_path):
    X = pd.DataFrame({"a": rng.normal(size=120), "b": rng.choice(["x", "y"], 120)})
    batch = pd.DataFrame({"a": rng.normal(size=60) + 2, "b": rng.choice(["x", "y"], 60)})
    fitted = DriftDetector(**FEW).fit(X)
    result = fitted.test(batch)
    assert result.differs
    assert next(iter(result.columns)) == "a"
    assert list(result.rows(2)[0].columns) == ["a", "b"]
    save(fitted, tmp_path / "detector.mercer")
    loaded = load(tmp_path / "detector.mercer")
    assert loaded.p_value(batch) == fitted.p_value(batch)
    assert_allclose(loaded.score_samples(batch), fitted.score_samples(batch))


def test_frames_of_polars_are_those_of_pandas(rng):
    polars = pytest.importorskip("polars")
    days = pd.date_range("2020-01-01", periods=120)
    X = pd.DataFrame({"a": rng.normal(size=120), "b": rng.choice(["x", "y"], 120), "day": days})
    batch = X[60:].assign(a=rng.normal(size=60) + 2)
    expected = DriftDetector(**FEW).fit(X).test(batch)
    found = DriftDetector(**FEW).fit(polars.from_pandas(X)).test(polars.from_pandas(batch))
    assert (found.p_value, found.columns) == (expected.p_value, expected.columns)


@pytest.mark.parametrize("method", ["test", "p_value", "predict", "score_samples"])
def test_before_a_fit(method):
    with pytest.raises(NotFittedError, match="DriftDetector instance is not fitted"):
        getattr(DriftDetector(), method)(np.eye(3))


@pytest.mark.parametrize("fitted_on", ["frame", "array"])
def test_names_that_were_not_there_are_noticed_once(detector, rng, fitted_on):
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    other, fitted = frame, detector
    if fitted_on == "frame":
        other, fitted = frame.to_numpy(), DriftDetector(**FEW).fit(frame)
    with pytest.warns(UserWarning, match="feature names, but DriftDetector was fitted") as found:
        fitted.predict(other)
    assert len(found) == 1


def test_a_reference_read_as_a_stream(rng):
    X = rng.normal(size=(300, 2))
    stream = Chunks(lambda: iter(np.array_split(X, 5)))
    fitted = DriftDetector(RBF(0.5), **FEW).fit(stream)
    assert fitted.n_reference_ == 150
    assert fitted.test(X + 1.0).differs


def test_a_reference_of_too_few_rows():
    with pytest.raises(ValueError, match="at least 4 rows, got n_samples=3"):
        DriftDetector().fit(np.eye(3))


@pytest.mark.parametrize("n", [38, 40, 60, 100])
def test_rows_are_marked_at_the_level_with_few_reference_rows(n):
    """The share marked is floor(0.05 (m + 1)) / (m + 1) for m = n / 2 rows compared with."""
    expected = int(0.05 * (n // 2 + 1)) / (n // 2 + 1)
    marked = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        fitted = DriftDetector(scales=[1.0], **FEW).fit(rng.normal(size=(n, 3)))
        marked.append((fitted.predict(rng.normal(size=(300, 3))) < 0).mean())
    assert abs(np.mean(marked) - expected) < 4 * np.std(marked) / 60**0.5


def test_too_few_reference_rows_mark_nothing_and_say_so(rng, tmp_path):
    fitted = DriftDetector(**FEW).fit(rng.normal(size=(30, 3)))
    with pytest.warns(UserWarning, match="15 reference rows. Fit on at least 38 rows"):
        assert (fitted.predict(rng.normal(size=(50, 3))) == 1).all()
    save(fitted, tmp_path / "few.mercer")
    assert load(tmp_path / "few.mercer").offset_ == fitted.offset_ == -np.inf
    assert DriftDetector(level=0.1, **FEW).fit(rng.normal(size=(30, 3))).offset_ > -1e300
