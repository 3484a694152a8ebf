"""Tables and targets that cannot be used, or nearly: an answer, or a message with the remedy."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import accuracy_score, r2_score

from mercer import (
    KernelClassifier,
    KernelDiscriminant,
    KernelMap,
    KernelRegressor,
    KernelRidge,
    TableEncoder,
)
from mercer.estimators import learned_model
from mercer.tables import columns as table_columns
from mercer.tables.columns import Texts, _ngram_counts


@pytest.fixture
def X(rng):
    return pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])


@pytest.mark.parametrize("labels", [np.arange(60), np.array([f"name {i % 40}" for i in range(60)])])
def test_fewer_than_two_rows_per_class_are_refused(X, labels):
    with pytest.raises(ValueError, match=r"classes in 60 rows.*Merge rare classes"):
        KernelClassifier().fit(X, labels)


def test_numbers_as_classes_are_told_of_regression(X):
    with pytest.raises(ValueError, match="predict them with KernelRegressor"):
        KernelClassifier().fit(X, np.arange(60))


def test_hundreds_of_classes_get_an_answer(rng):
    centres = rng.normal(size=(60, 4))
    X, y = np.repeat(centres, 5, axis=0), np.repeat(np.arange(60), 5)
    X = X + 0.1 * rng.normal(size=X.shape)
    model = KernelClassifier(n_rounds=1, max_landmarks=150).fit(X, y)
    assert model.leave_one_out_accuracy_ > 0.9
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_class_that_is_missing_is_counted(X, missing):
    y = np.array(["yes", "no"] * 30, dtype=object)
    y[[3, 4]] = missing
    with pytest.raises(ValueError, match=r"no class in 2 of 60 rows.*leave them out"):
        KernelClassifier().fit(X, y)


def test_targets_that_are_not_numbers_are_told_what_to_do(X):
    y = np.zeros(60)
    y[7] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN. Leave out such rows \(1 of 60\)"):
        KernelRegressor().fit(X, y)
    with pytest.raises(ValueError, match="Use KernelClassifier"):
        KernelRegressor().fit(X, np.array(["yes", "no"] * 30))


def test_two_columns_of_one_name_are_refused(X):
    twice = pd.concat([X, X], axis=1)
    for model in (KernelRegressor(), TableEncoder()):
        with pytest.raises(ValueError, match="2 columns called 'a': give each a name of its own"):
            model.fit(twice, np.zeros(60))


def test_a_complex_column_is_named(X):
    with pytest.raises(ValueError, match="column 'z' has dtype complex128"):
        TableEncoder().fit(X.assign(z=1j))


def test_codes_of_nearly_every_row_are_called_so(X):
    codes = [f"k{i if i < 57 else 0}" for i in range(60)]
    notes = " ".join(TableEncoder().fit(X.assign(code=codes)).notes())
    assert "57 different values in 60 rows: nearly every row has its own" in notes


def test_periods_are_dates(X):
    periods = pd.period_range("2020-01", periods=60, freq="M")
    encoder = TableEncoder().fit(X.assign(month=periods))
    assert encoder.columns_[2]["kind"] == "date"


def test_many_columns_have_a_weight_each_instead_of_a_full_metric(rng, monkeypatch):
    monkeypatch.setattr(learned_model, "_MOST_FULL", 5)
    X = rng.normal(size=(150, 6))
    model = KernelRegressor(n_rounds=2).fit(X, 3 * X[:, 4])
    assert model.metric_ != "full"
    assert model.feature_importances_.argmax() == 4


def test_ngrams_are_those_of_whole_texts():
    texts = ["The cat, the CAT", "", "naïve  Σοφός\tend", "a", "the end the end"]
    whole = HashingVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), n_features=2**14, norm=None, alternate_sign=False
    )
    assert (_ngram_counts(texts) != whole.transform(texts)).nnz == 0
    assert _ngram_counts(["", ""]).nnz == 0


def test_long_columns_of_text_are_read_in_blocks(rng, monkeypatch):
    texts = np.array([" ".join(rng.choice(["ab", "cd", "ef"], 3)) for _ in range(50)], dtype=object)
    whole = Texts(3).fit(texts, "t").transform(texts)
    monkeypatch.setattr(table_columns, "BLOCK", 7)
    assert_allclose(Texts(3).fit(texts, "t").transform(texts), whole)
    monkeypatch.setattr(table_columns, "FITTED_TEXTS", 20)
    assert np.isfinite(Texts(3).fit(texts, "t").transform(texts)).all()


def test_one_very_long_text_does_not_take_the_memory_of_all(X):
    texts = [f"some words {i % 30} here" for i in range(60)]
    texts[0] = "x" * 10**6
    assert np.isfinite(TableEncoder().fit_transform(X.assign(t=texts))).all()


@pytest.mark.parametrize(
    "model", [KernelRidge(), KernelRegressor(), KernelClassifier(), KernelDiscriminant()]
)
def test_weights_of_a_score(model):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 2)), rng.uniform(size=60)
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    model.fit(X, y)
    metric = accuracy_score if hasattr(model, "classes_") else r2_score
    assert model.score(X, y, sample_weight=w) == metric(y, model.predict(X), sample_weight=w)
    for bad in ({}, ["a"] * 60, -w, 0 * w, w[1:]):
        with pytest.raises((TypeError, ValueError), match="sample_weight"):
            model.score(X, y, sample_weight=bad)


@pytest.mark.parametrize("model", [KernelRidge(), KernelMap(), KernelDiscriminant()], ids=repr)
def test_gaps_are_answered_with_the_encoder(model, rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"Input X contains NaN.*TableEncoder") as caught:
        model.fit(X, y)
    assert "HistGradient" not in str(caught.value)
