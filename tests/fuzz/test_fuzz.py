"""Bad input, tried by machine. Bounded here; `make fuzz` runs longer and with new seeds.

Allowed: a right answer (checked by an identity or by the certificate), or a ValueError, TypeError
or NotFittedError whose message names the argument. Never: a crash, a silent NaN, an IndexError from
inside, a hang, a changed input.
"""

import inspect

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.base import clone

import mercer
from fuzz.cases import ROUNDS, SEED, generator, not_tried, rows, try_all
from fuzz.hostile import DATA, PARAMETERS, TARGETS
from fuzz.outcomes import Fault, attempt
from fuzz.subjects import (
    ESTIMATORS,
    EXAMPLES,
    KERNELS,
    drive_estimator,
    drive_function,
    drive_kernel,
    drive_preimage,
)
from mercer.kernels.expressions import parse_kernel


def names_of(model):
    if isinstance(model, mercer.Kernelized):
        return None
    return [*model.get_params(), type(model).__name__]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_on_any_data(kernel, tally):
    def cases():
        for turn in range(ROUNDS):
            for kind, make in DATA.items():
                X = make(generator(kind, turn, repr(kernel)))
                yield kind, lambda X=X: drive_kernel(kernel, X), [X], names_in(kernel)

    try_all(tally, cases())


ANY_ARRAY = arrays.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.bool_]),
    arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
    fill=st.nothing(),
)
FINITE = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 4)),
    elements=st.one_of(
        st.floats(-10, 10), st.floats(allow_nan=False, allow_infinity=False), st.just(0.0)
    ),
    fill=st.nothing(),
)


@pytest.mark.parametrize("subject", [*KERNELS, *ESTIMATORS], ids=repr)
def test_arrays_that_hypothesis_makes(subject, tally):
    """Values of any kind, made smaller until the fault is plain."""

    @settings(
        max_examples=16 * ROUNDS,
        derandomize=SEED == 0,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(X=st.one_of(FINITE, FINITE, ANY_ARRAY))
    def tried(X):
        if isinstance(subject, mercer.Kernel):
            tally.add(attempt(lambda: drive_kernel(subject, X), X, names=names_in(subject)))
        else:
            y = np.arange(rows(X)) % 2
            drive = attempt(
                lambda: drive_estimator(clone(subject), X, y), X, names=names_of(subject)
            )
            tally.add(drive)

    tried()


def names_in(kernel):
    return [type(k).__name__ for k in [kernel, *kernel.get_params().values()]]


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_estimators_on_any_data(model, tally):
    good = "numbers" if "Ridge" in repr(model) or "LinearRegression" in repr(model) else "classes"

    def cases():
        for turn in range(ROUNDS):
            for kind, make in DATA.items():
                rng = generator(kind, turn, repr(model))
                X = make(rng)
                y = TARGETS[good](rows(X), rng)
                yield (
                    kind,
                    lambda X=X, y=y: drive_estimator(clone(model), X, y),
                    [X],
                    names_of(model),
                )

    try_all(tally, cases())


@pytest.mark.parametrize("model", [m for m in ESTIMATORS if hasattr(m, "predict")], ids=repr)
def test_estimators_on_any_target(model, tally):
    def cases():
        for turn in range(ROUNDS):
            for kind, make in TARGETS.items():
                rng = generator(kind, turn, repr(model))
                X = rng.normal(size=(9, 2))
                y = make(9, rng)
                yield (
                    kind,
                    lambda X=X, y=y: drive_estimator(clone(model), X, y),
                    [X, y],
                    names_of(model),
                )

    try_all(tally, cases())


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_new_rows_of_any_kind(model, tally):
    """Fitted on good data, asked about anything."""
    rng = generator("new rows")
    X = np.abs(rng.normal(size=(8, 3)))
    X = X[:, :3] if "precomputed" not in repr(model) else X @ X.T
    fitted = clone(model).fit(X, np.arange(8) % 2)

    def ask(Z):
        from fuzz.outcomes import finite

        for name in ("transform", "predict", "predict_proba", "residual", "inverse_transform"):
            if hasattr(fitted, name):
                answer = getattr(fitted, name)(Z)
                finite(answer)
                if np.shape(answer)[0] != rows(Z):
                    raise Fault(f"{name} answers {np.shape(answer)} for {rows(Z)} rows")

    def cases():
        for turn in range(ROUNDS):
            for kind, make in DATA.items():
                Z = make(generator(kind, turn, repr(model)))
                yield kind, lambda Z=Z: ask(Z), [Z], names_of(model)

    try_all(tally, cases())


def parameters_of(cls):
    return [p for p in inspect.signature(cls).parameters if p not in ("args", "kwargs")]


@pytest.mark.parametrize("cls", EXAMPLES, ids=lambda c: c.__name__)
def test_any_value_for_any_parameter(cls, tally):
    X = generator("parameters").normal(size=(7, 2))
    X = np.abs(X) if cls in (mercer.Chi2, mercer.Intersection) else X
    X = X @ X.T if cls is mercer.Precomputed else X
    y = np.arange(7) % 2
    example = EXAMPLES[cls]

    def drive(name, value):
        given = {**example.get_params(deep=False), name: value}
        model = cls(**given)
        if isinstance(model, mercer.Kernel):
            drive_kernel(model, X)
        else:
            drive_estimator(model, X, y)

    def cases():
        for name in parameters_of(cls):
            for value in PARAMETERS:
                if not_tried(name, value):
                    continue
                label = f"{cls.__name__}({name}={value!r})"
                yield label, lambda n=name, v=value: drive(n, v), [X], names_of(example)

    try_all(tally, cases())


def test_functions_on_any_data(tally):
    def cases():
        for kind, make in DATA.items():
            X = make(generator(kind, "functions"))
            yield f"RKHSFunction {kind}", lambda X=X: drive_function(X), [X], []
            yield f"preimage {kind}", lambda X=X: drive_preimage(X), [X], []

    try_all(tally, cases())


def test_functions_with_any_argument(tally, tmp_path):
    X = generator("functions").normal(size=(6, 2))
    fitted = mercer.KernelMap().fit(X)
    functions = {
        "as_kernel": mercer.as_kernel,
        "check_mercer": lambda v: mercer.check_mercer(v, X),
        "preimage model": lambda v: mercer.preimage(v, X),
        "preimage Z": lambda v: mercer.preimage(fitted, v),
        "preimage method": lambda v: mercer.preimage(fitted, fitted.transform(X), v),
        "preimage alpha": lambda v: mercer.preimage(fitted, fitted.transform(X), alpha=v),
        "function": lambda v: fitted.function(v),
        "coordinates": lambda v: fitted.coordinates(v),
        "project": lambda v: fitted.project(X, v),
        "error_bound Y": lambda v: fitted.error_bound(X, v),
        "residual diag": lambda v: fitted.residual(X, diag=v),
        "RKHSFunction coef": lambda v: mercer.RKHSFunction("rbf", X, v),
        "RKHSFunction points": lambda v: mercer.RKHSFunction("rbf", v, [1.0]),
        "RKHSFunction intercept": lambda v: mercer.RKHSFunction("rbf", X, np.ones(6), v)(X),
        "f + g": lambda v: mercer.RKHSFunction("rbf", X, np.ones(6)) + v,
        "k + v": lambda v: mercer.RBF() + v,
        "k * v": lambda v: mercer.RBF() * v,
        "k ** v": lambda v: mercer.RBF() ** v,
        "polynomial": lambda v: mercer.RBF().polynomial(v),
        "parse_kernel": parse_kernel,
        "save": lambda v: mercer.save(v, tmp_path / "model"),
        "load trusted": lambda v: mercer.load(__file__, trusted=v),
        "to_onnx": mercer.to_onnx,
        "to_onnx dtype": lambda v: mercer.to_onnx(fitted, dtype=v),
        "Chunks": lambda v: fitted.fit(mercer.Chunks(v)),
    }

    def cases():
        for name, function in functions.items():
            for value in PARAMETERS:
                if not_tried(name, value):
                    continue
                label = f"{name} {value!r}"
                yield label, lambda f=function, v=value: f(v), [X], [*name.split(), "expression"]

    try_all(tally, cases())
