"""Samples that are not held: read block by block, with the answers of an array."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import RBF, Chunks, DriftDetector, distance_between, two_sample_test
from mercer.rows import read_sample

FEW = {"n_permutations": 99, "random_state": 0}


@pytest.fixture(autouse=True)
def nothing_is_gathered(monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 10)


def streamed(A):
    return Chunks(lambda: iter([A[:17], A[17:17], A[17:130], A[130:]]))


def partitioned(A):
    if hasattr(A, "columns"):
        return dd.from_pandas(A, npartitions=3)
    return da.from_array(A, chunks=(40, 2))


@pytest.mark.parametrize("source", [np.asarray, streamed, partitioned])
def test_blocks_and_rows_at_positions_are_those_of_the_array(rng, source):
    A = rng.normal(size=(200, 3))
    sample = read_sample(source(A), RBF(), "X")
    assert sample.is_held == (source is np.asarray)
    assert sample.rows.n == 200
    assert_array_equal(np.concatenate(list(sample.rows.blocks(64))), A)
    assert_array_equal(sample.rows.take(np.array([0, 16, 17, 150, 199])), A[[0, 16, 17, 150, 199]])


@pytest.mark.parametrize("source", [streamed, partitioned])
def test_frames_stay_frames(rng, source):
    frame = pd.DataFrame({"b": list("xyzx") * 50, "a": rng.normal(size=200)})
    sample = read_sample(source(frame), RBF(), "X")
    assert sample.rows.names == ["b", "a"]
    pd.testing.assert_frame_equal(
        sample.rows.take(np.array([3, 40, 199])),
        frame.iloc[[3, 40, 199]].reset_index(drop=True),
        check_dtype=False,
    )


@pytest.mark.parametrize("source", [streamed, partitioned])
def test_answers_do_not_depend_on_where_the_rows_are(rng, source):
    X, Y = rng.normal(size=(200, 3)), rng.normal(0.4, 1, size=(180, 3))
    there, here = (two_sample_test(of(X), of(Y), RBF(0.3), **FEW) for of in (source, lambda A: A))
    assert_allclose(there.distance, here.distance, rtol=1e-9)
    assert_array_equal(there.rows(3)[0], here.rows(3)[0])
    assert_allclose(
        distance_between(source(X), source(Y), RBF(0.3)).value,
        distance_between(X, Y, RBF(0.3)).value,
    )


@pytest.mark.parametrize("source", [streamed, partitioned])
def test_a_detector_knows_the_columns_of_rows_that_pass_by(rng, source):
    X, batch = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    detector = DriftDetector(**FEW).fit(source(X))
    assert detector.n_features_in_ == 3
    assert detector.p_value(source(batch)) == DriftDetector(**FEW).fit(X).p_value(batch)
    with pytest.raises(ValueError, match="X has 2 features, but DriftDetector is expecting 3"):
        detector.test(rng.normal(size=(40, 2)))


def test_a_stream_that_changes_is_refused(rng):
    changing = Chunks(lambda: (rng.normal(size=(60, 2)) for _ in range(3)))
    with pytest.raises(RuntimeError, match="X changes each time it is read"):
        two_sample_test(changing, rng.normal(size=(100, 2)), **FEW)
