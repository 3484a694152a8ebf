"""The model that a comparison ends with, where it is not a kernel's."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.preprocessing import StandardScaler

from every_kernel import random_graph
from mercer import (
    RBF,
    Kernelized,
    Linear,
    OnColumns,
    Spectrum,
    WeisfeilerLehman,
    compare_kernels,
)


def steps_and_noise(rng, n=240):
    """A target that trees learn and a straight line does not."""
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n, 3)), columns=["a", "b", "c"])
    y = np.sign(X["a"]) * np.sign(X["b"]) * np.sign(np.sin(6 * X["a"])) * 3
    return X, y.to_numpy() + 0.05 * rng.normal(size=n)


def test_an_ordinary_model_that_wins_is_the_best_model(rng):
    X, y = steps_and_noise(rng)
    comparison = compare_kernels(X, y, [Linear()], repeats=1, embeddings=[])
    assert comparison.headline.startswith("Gradient boosting predicts better than every kernel")
    assert comparison.best == "gradient boosting"
    model = comparison.best_model()
    assert isinstance(model, HistGradientBoostingRegressor)
    made = {"X": X, "y": y}
    exec(comparison.code(), made)
    assert_array_equal(made["model"].predict(X), model.predict(X))
    assert isinstance(comparison.best_model("Linear()"), Kernelized)
    assert_allclose(comparison.best_model("mean").predict(X), y.mean())


@pytest.mark.parametrize("form", ["frame", "list", "sparse", "table", "both", "graphs"])
def test_ordinary_models_take_the_rows_as_they_came(form, rng):
    texts = ["".join(rng.choice(list("abcd"), size=8)) + "xyz"[i % 2 :] for i in range(40)]
    y = np.array(["odd", "even"] * 20)
    kernel, name = Spectrum(2), "logistic regression on n-grams"
    X = {"frame": pd.DataFrame({"text": texts}), "list": texts}.get(form)
    if form == "sparse":
        X, kernel = scipy.sparse.csr_array(rng.normal(size=(40, 3))), Linear()
        name = "gradient boosting"
    elif form == "table":
        X = pd.DataFrame({"size": rng.normal(size=40), "town": ["Rome", "Oslo"] * 20})
        kernel, name = Linear(), "logistic regression"
    elif form == "both":
        X = pd.DataFrame({"text": texts, "size": rng.normal(size=40), "town": ["Rome", ""] * 20})
        kernel = OnColumns(Spectrum(2), "text") + OnColumns(Linear(), ["size"])
        name = "logistic regression on n-grams and numbers"
    elif form == "graphs":
        X = pd.DataFrame({"graph": [random_graph(rng) for _ in y], "size": rng.normal(size=40)})
        kernel = OnColumns(WeisfeilerLehman(1), "graph") * OnColumns(RBF(1.0), ["size"])
        name = "logistic regression on numbers"
    comparison = compare_kernels(X, y, [kernel], cv=2, repeats=1, embeddings=[])
    assert name in [b.name for b in comparison.baselines]
    predicted = comparison.best_model(name).predict(X)
    assert set(predicted) <= {"odd", "even"}
    made = {"X": X, "y": y}
    exec(comparison.code(name), made)
    rows = X.toarray() if form == "sparse" else X
    assert_array_equal(made["model"].predict(rows), predicted)


def test_texts_beside_numbers_are_predicted_as_well_without_a_kernel(rng):
    """Only both columns together tell the answer."""
    words = rng.choice(["up", "down"], size=120)
    size = rng.normal(size=120)
    X = pd.DataFrame({"word": words, "size": size, "graph": [([], "C")] * 120})
    y = 3.0 * (words == "up") + size
    kernel = OnColumns(Spectrum(1), "word")
    comparison = compare_kernels(X, y, [kernel], cv=3, repeats=1, embeddings=[])
    assert comparison.best == "linear regression on n-grams and numbers"
    assert comparison.contest.better_baseline.score > 0.9


def test_objects_without_an_ordinary_model_are_told_so(rng):
    X, y = [random_graph(rng) for _ in range(24)], np.arange(24) % 2
    comparison = compare_kernels(X, y, [WeisfeilerLehman(1)], cv=2, repeats=1, embeddings=[])
    assert [b.name for b in comparison.baselines] == ["most frequent class"]
    assert any("the only model beside the kernels is a constant" in n for n in comparison.notes)


class Plain(StandardScaler):
    """A user's encoder that writes itself in its own way."""

    def __repr__(self):
        return "Plain()"


def test_the_code_writes_a_long_kernel_whole_and_a_users_class_as_it_writes_itself(rng):
    X = rng.normal(size=(40, 90))
    gamma = np.round(rng.uniform(0.001, 0.002, size=90), 9).tolist()
    options = {"cv": 2, "repeats": 1, "embeddings": [], "baselines": False}
    comparison = compare_kernels(X, X[:, 0] > 0, [RBF(gamma)], encoder=Plain(), **options)
    code = comparison.code()
    assert "make_pipeline(Plain(), KernelDiscriminant(" in code
    assert all(repr(value) in code for value in gamma)


def test_two_hundred_classes_and_more_columns_than_rows(rng):
    y = np.repeat([f"class {i}" for i in range(200)], 2)
    centres = rng.normal(size=(200, 500))
    X = np.repeat(centres, 2, axis=0) + 0.1 * rng.normal(size=(400, 500))
    comparison = compare_kernels(X, y, [Linear()], cv=2, repeats=1, embeddings=[], baselines=False)
    assert len(comparison.classes) == 200
    assert comparison.spaces[0].score > 0.9
    assert np.mean(comparison.best_model().predict(X) == y) > 0.9
