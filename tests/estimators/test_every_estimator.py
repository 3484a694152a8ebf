"""What every estimator owes: no memory of an earlier fit, and messages about itself."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge

import mercer
from mercer import (
    RBF,
    ClassicalMDS,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
    OnColumns,
    TableEncoder,
    compare_kernels,
)

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.arange(60) % 2
MODELS = [
    KernelMap(),
    KernelPCA(2),
    KernelPCA(2, solver="krylov"),
    KernelPCA(2, KernelMap(max_rank=10)),
    KernelPCAL1(1, random_state=0),
    KernelRidge(),
    KernelRidge(form="dual"),
    KernelRidgeCV(),
    KernelDiscriminant(),
    Kernelized(Ridge()),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


@every_model
def test_nothing_of_an_earlier_fit_is_kept(model):
    again = clone(model).fit(X, Y).fit(X[:12], Y[:12])
    fresh = clone(model).fit(X[:12], Y[:12])
    assert vars(again).keys() == vars(fresh).keys()
    assert len(pickle.dumps(again)) == len(pickle.dumps(fresh))


@pytest.mark.parametrize(
    ("model", "then"),
    [
        (KernelRidge(form="primal"), {"form": "dual"}),
        (KernelRidge(form="dual"), {"form": "primal"}),
        (KernelRidge(kernel="precomputed", form="dual"), {"kernel": RBF(1.0)}),
        (KernelPCA(2, solver="factor"), {"solver": "dense"}),
        (ClassicalMDS(2, metric="cityblock"), {"metric": "euclidean"}),
        (ClassicalMDS(2), {"metric": "cityblock"}),
    ],
    ids=str,
)
def test_nor_where_another_way_is_taken(model, then):
    """The factor of an earlier fit stayed in the model, and in its file."""
    K = X @ X.T if model.get_params().get("kernel") == "precomputed" else X
    again = clone(model).fit(K, Y).set_params(**then).fit(X[:12], Y[:12])
    fresh = clone(model).set_params(**then).fit(X[:12], Y[:12])
    assert vars(again).keys() == vars(fresh).keys()
    assert len(pickle.dumps(again)) == len(pickle.dumps(fresh))


def test_what_scikit_learn_keeps_outlives_a_fit():
    with config_context(enable_metadata_routing=True):
        model = KernelRidge().set_fit_request(sample_weight=True).fit(X, Y)
        assert model.get_metadata_routing().fit.requests == {"sample_weight": True}
    pandas = pytest.importorskip("pandas")
    scores = KernelPCA(2).set_output(transform="pandas").fit(X).transform(X)
    assert isinstance(scores, pandas.DataFrame)


@every_model
@pytest.mark.parametrize(
    ("parameter", "rows"),
    [
        ({"kernel": 3}, X),
        ({"kernel": "nonsense"}, X),
        ({"kernel": RBF(-1.0)}, X),
        ({}, X * np.nan),
        ({}, X[:0]),
        ({"kernel": "linear"}, X * 1e200),
        ({}, X[:, 0]),
    ],
)
def test_messages_name_the_class_that_the_user_wrote(model, parameter, rows):
    model = clone(model).set_params(**parameter)
    with pytest.raises((TypeError, ValueError)) as refused:
        model.fit(rows, Y[: len(rows)])
    assert "KernelMap" in repr(model) or "KernelMap" not in str(refused.value)


@pytest.mark.parametrize(
    "model", [KernelRidge(), KernelMap(), KernelRegressor(n_rounds=1), TableEncoder()], ids=repr
)
def test_lazy_frames_are_collected(model, rng):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    frame = pl.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30)})
    y = rng.normal(size=30)
    name = "predict" if hasattr(model, "predict") else "transform"
    expected = getattr(clone(model).fit(frame, y), name)(frame)
    fitted = clone(model).fit(frame.lazy(), y)
    assert list(fitted.feature_names_in_) == ["a", "b"]
    np.testing.assert_allclose(getattr(fitted, name)(frame.lazy()), expected)
    with pytest.raises(ValueError, match="names"):
        getattr(fitted, name)(frame.lazy().select("b", "a"))


def test_kernels_and_comparisons_take_lazy_frames(rng):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    frame = pl.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40)})
    kernel = OnColumns(RBF(), ["b"])
    np.testing.assert_allclose(kernel(frame.lazy()), kernel(frame))
    y = pl.DataFrame({"y": frame["a"] > 0})
    found = compare_kernels(frame.lazy(), y.lazy(), [kernel], embeddings=[], baselines=False)
    assert found.task == "classification"


# --- domains of parameters ------------------------------------------------------------------------

DECLARED = [
    (public, name)
    for public in (getattr(mercer, public) for public in mercer.__all__)
    if isinstance(public, type) and issubclass(public, BaseEstimator)
    for name in getattr(public, "domains", ())
]


class Untouched:
    """Rows that nobody may look at."""

    def __getattribute__(self, name):
        raise AssertionError(f"{name} of the rows was asked for")


@pytest.mark.parametrize(("kind", "name"), DECLARED, ids=str)
def test_parameters_are_refused_by_name_before_the_rows_are_looked_at(kind, name):
    arguments = {"estimator": Ridge()} if kind is Kernelized else {}
    model = kind(**arguments)
    kind.domains[name](name, getattr(model, name))  # the default is in the domain
    model.set_params(**{name: 1j})  # in no domain
    with pytest.raises((ValueError, TypeError), match=f"^{name} must be .*, got 1j"):
        model.fit(Untouched(), Untouched())


def test_a_plan_refuses_them_too():
    for model in (KernelRidge(form="both"), KernelRegressor(solver="both")):
        with pytest.raises(ValueError, match=r"must be one of auto, .*, got 'both'"):
            mercer.plan(model, (100, 2))
