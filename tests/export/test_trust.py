"""What `save` says about `load`: what it will refuse, and what it will ask for."""

import datetime
import re
import uuid
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from every_kernel import common_letters
from mercer import (
    RBF,
    ClassicalMDS,
    DriftDetector,
    FromFunction,
    KernelClassifier,
    Kernelized,
    KernelMap,
    KernelRegressor,
    Linear,
    load,
    save,
)
from mercer.export import registry

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mercer"


# --- what load will ask for -----------------------------------------------------------------------

NEEDY = {
    "svm": (SVC(), ["sklearn.svm.SVC"]),
    "svm with a kernel of mercer": (SVC(kernel=RBF(1.0)), ["sklearn.svm.SVC"]),
    "svm with a sum": (SVC(kernel=RBF(1.0) + Linear()), ["sklearn.svm.SVC"]),
    "inside Kernelized": (Kernelized(SVC()), ["sklearn.svm.SVC"]),
    "function": (
        make_pipeline(FunctionTransformer(np.tanh), KernelMap(), LinearRegression()),
        ["numpy.tanh", "sklearn.preprocessing.FunctionTransformer"],
    ),
    "forest": (
        RandomForestClassifier(2, random_state=0),
        [
            "sklearn.ensemble.RandomForestClassifier",
            "sklearn.tree.DecisionTreeClassifier",
            "sklearn.tree._tree.Tree",
        ],
    ),
}


@pytest.mark.parametrize("kind", NEEDY)
def test_save_says_what_load_will_need(kind, path):
    model, names = NEEDY[kind]
    model.fit(X, y)
    with pytest.warns(UserWarning, match=re.escape(f"load(..., trusted={names!r})")):
        save(model, path)
    with pytest.raises(TypeError, match=re.escape(f"trusted={names!r}")):
        load(path)
    assert np.array_equal(load(path, trusted=names).predict(X), model.predict(X))
    save(model, path, trusted=names)  # without a warning
    assert np.array_equal(load(path, trusted=names).predict(X), model.predict(X))


def test_arrays_for_a_metric_need_trust(path):
    """SciPy's Mahalanobis distance does not look at the shape of its matrix."""
    plain = ClassicalMDS(metric="minkowski", metric_params={"p": 3}).fit(X)
    save(plain, path)
    assert np.array_equal(load(path).transform(X), plain.transform(X))
    given = ClassicalMDS(metric="mahalanobis", metric_params={"VI": np.eye(3)}).fit(X)
    save(given, path, trusted=[ClassicalMDS])
    with pytest.raises(TypeError, match=r"trusted=\['mercer.ClassicalMDS'\]"):
        load(path)
    same = load(path, trusted=[ClassicalMDS])
    assert np.array_equal(same.transform(X), given.transform(X))


def test_the_warning_names_what_is_left(path):
    model = make_pipeline(OneHotEncoder(), KernelMap(FromFunction(common_letters)))
    with pytest.warns(UserWarning, match=r"trusted=\['sklearn.preprocessing.OneHotEncoder'\]"):
        save(model, path, trusted=[common_letters])


@pytest.mark.parametrize("trusted", [True, "os.system", 3, [4]])
def test_names_are_checked_before_anything_is_written(trusted, path):
    with pytest.raises(TypeError, match="trusted must"):
        save(RBF(), path, trusted=trusted)
    assert not path.exists()


# --- what load would refuse -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RBF(gamma=-1.0), "gamma"),
        (KernelMap(RBF(gamma=-1.0)), "gamma"),
        (KernelMap(bytes), "cannot hold bytes"),
        (KernelMap(np.eye(2)), "cannot hold ndarray"),
        (KernelMap([StandardScaler()]), "cannot hold list"),
        (KernelMap(tol=[StandardScaler()]), "cannot hold StandardScaler"),
        (Kernelized(np.eye(2)), "cannot hold ndarray"),
        (Kernelized("logistic"), "cannot hold str"),
        (make_pipeline(StandardScaler(), np.array([b"x"])), "steps"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_save_refuses_what_load_would_refuse(model, message, path):
    with pytest.raises(ValueError, match=f"load would refuse it.*{message}"):
        save(model, path)
    assert not path.exists()


def test_what_save_builds_is_not_the_model(path):
    """It is built once more to see that it can be: nothing of the model is touched."""
    model = KernelMap(RBF(0.5), max_rank=7).fit(X)
    before, state = model.transform(X), dict(vars(model))
    save(model, path)
    assert all(vars(model)[name] is value for name, value in state.items())
    assert np.array_equal(model.transform(X), before)


# --- values that tables hold ----------------------------------------------------------------------

VALUES = [
    1 + 2j,
    Decimal("1.10"),
    Decimal("NaN"),
    Fraction(1, 3),
    uuid.UUID(int=7),
    datetime.date(2020, 2, 29),
    datetime.time(1, 2, 3, 4),
    datetime.datetime(2020, 2, 29, 1, 2, 3, 4),
    datetime.datetime(2020, 2, 29, tzinfo=zoneinfo.ZoneInfo("UTC")),
    datetime.timedelta(-1, 2, 3),
    np.datetime64("2020-02-29T01:02:03.000000004"),
    pd.Timestamp("2020-02-29 01:02:03.123456789"),
    pd.Timestamp("2020-02-29 01:02:03").as_unit("s"),
    pd.Timestamp("2020-02-29 01:02:03+05:30"),
    pd.Timestamp("1700-01-01").as_unit("ms"),
    pd.Timedelta("-1 days 02:00:00.000000007"),
    pd.Timedelta("3h").as_unit("s"),
    pd.Period("2020-02", "M"),
    pd.Interval(0.5, 2, closed="left"),
    pd.Interval(pd.Timestamp("2020"), pd.Timestamp("2021")),
    pd.NaT,
    pd.NA,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{type(v).__name__} {v}")
def test_values_come_back(value, path):
    save(KernelMap(tol=[value]), path)
    (same,) = load(path).tol
    assert type(same) is type(value)
    assert repr(same) == repr(value) or same == value
    if isinstance(value, (pd.Timestamp, pd.Timedelta)) and value is not pd.NaT:
        assert same.unit == value.unit


COLUMNS = {
    "dates": pd.date_range("2020-01-01", periods=60, freq="37h"),
    "dates of a zone": pd.date_range("2020-01-01", periods=60, tz="Europe/Rome"),
    "durations": pd.to_timedelta(rng.integers(1, 10**6, 60), unit="s"),
    "decimals": [Decimal(int(v)) / 7 for v in rng.integers(0, 99, 60)],
    "Int64": pd.array([*range(59), None], dtype="Int64"),
    "boolean": pd.array([True, False, None] * 20, dtype="boolean"),
    "days": [datetime.date(2020, 1, 1) + datetime.timedelta(int(i)) for i in range(60)],
    "periods": pd.period_range("2015-01", periods=60, freq="M"),
    "intervals": pd.cut(X[:, 0], 4),
    "category": pd.Categorical(rng.choice(list("abc"), 60)),
    "strings": pd.array(rng.choice(["a", "b", None], 60), dtype="string"),
    "missing dates": [pd.NaT, *pd.date_range("2020-01-01", periods=59)],
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_models_of_tables_come_back_whatever_the_columns_hold(kind, path):
    frame = pd.DataFrame({"x": X[:, 0], kind: COLUMNS[kind]})
    new = frame.sample(30, random_state=0)
    try:
        detector = DriftDetector(random_state=0, n_permutations=50).fit(frame)
    except (TypeError, ValueError):  # such a column is refused by the encoder
        pytest.skip("DriftDetector does not take such a column")
    save(detector, path)
    same = load(path)
    assert same.p_value(new) == detector.p_value(new)
    assert np.array_equal(same.predict(new), detector.predict(new))


@pytest.mark.parametrize("model", [KernelRegressor(), KernelClassifier()], ids=repr)
def test_models_of_the_command_need_no_trust(model, path):
    frame = pd.DataFrame(
        {
            "number": X[:, 0],
            "word": rng.choice(["red", "green", "blue", "rare"], 60, p=[0.5, 0.3, 0.15, 0.05]),
            "date": pd.date_range("2020-01-01", periods=60),
            "text": [f"the number {i} of sixty texts about {w}" for i, w in enumerate("abc" * 20)],
        }
    )
    model.fit(frame, y)
    save(model, path)
    assert np.array_equal(load(path).predict(frame), model.predict(frame))


# --- the list -------------------------------------------------------------------------------------


def test_the_documentation_has_the_same_list():
    """Every class with its reason, as in registry.py."""
    page = (Path(__file__).parents[2] / "docs/contribute/tested.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(sklearn[\w.]*)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    written = [(module, " ".join(re.findall(r"\w+", names)), why) for module, names, why in rows]
    assert written == [(module, names, why) for module, names, why in registry._REASONS]
