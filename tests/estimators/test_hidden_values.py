"""Masked arrays and dates: refused, since what they hide or mean would be used as numbers."""

import numpy as np
import pytest

from mercer import RBF, KernelDiscriminant, KernelMap, KernelPCA, KernelRidge

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 2))
y = rng.integers(0, 2, 20)
MASKED = np.ma.masked_array(X, mask=np.abs(X) > 1.5)
DAYS = np.datetime64("2020-01-01") + np.arange(40).reshape(20, 2)


@pytest.mark.parametrize("model", [KernelMap(), KernelPCA(1), KernelRidge(), KernelDiscriminant()])
def test_masked_rows_are_refused(model):
    with pytest.raises(TypeError, match=r"X is a masked array; fill it first: X\.filled"):
        model.fit(MASKED, y)
    model.fit(X, y)
    with pytest.raises(TypeError, match="X is a masked array"):
        (model.predict if hasattr(model, "predict") else model.transform)(MASKED)


def test_masked_targets_and_weights_are_refused():
    hidden = np.ma.masked_array(y.astype(float), mask=y > 0)
    for model in (KernelRidge(), KernelDiscriminant()):
        with pytest.raises(TypeError, match="y is a masked array"):
            model.fit(X, hidden)
        with pytest.raises(TypeError, match="y is a masked array"):
            model.fit(X, y=hidden)
    with pytest.raises(TypeError, match="sample_weight is a masked array"):
        KernelRidge().fit(X, y, sample_weight=hidden)


@pytest.mark.parametrize("dates", [DAYS, DAYS - DAYS[0], DAYS.tolist(), list(DAYS)], ids=type)
def test_dates_are_refused(dates):
    with pytest.raises((TypeError, ValueError), match=r"dates or durations|argument must be"):
        KernelMap().fit(dates)
    if isinstance(dates, np.ndarray):
        with pytest.raises(TypeError, match="holds dates or durations, which are not numbers"):
            RBF(1.0)(dates)


def test_dates_in_frames_are_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "day": pd.to_datetime(DAYS[:, 0])})
    with pytest.raises(TypeError, match="column 'day' of X holds dates"):
        KernelMap().fit(frame)
    with pytest.raises(TypeError, match="column 'day' of X holds dates"):
        KernelMap().fit(frame[["day"]])


def test_dates_in_polars_frames_are_named():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": X[:, 0], "day": DAYS[:, 0]})
    with pytest.raises(TypeError, match="column 'day' of X holds dates"):
        KernelMap().fit(frame)
