"""Hostile data through comparisons, pictures, files, graphs and partitions; any text as kernel."""

import numpy as np
import pytest
from sklearn.base import clone

import mercer
from fuzz import public
from fuzz.cases import ROUNDS, generator, rows, try_all
from fuzz.hostile import DATA, TARGETS
from fuzz.outcomes import Fault, at_most, finite
from mercer import KernelMap, KernelPCA, KernelRidge
from mercer.kernels.expressions import KERNELS, parse_kernel


def over_data(tally, drive, *subjects, kinds=DATA):
    """drive(subject, X, y) for every kind of data; one kind of X a subject and turn."""

    def cases():
        for turn in range(ROUNDS):
            for kind in kinds:
                for subject in subjects or (None,):
                    rng = generator(kind, turn, drive.__name__)
                    X = DATA[kind](rng)
                    y = TARGETS["classes"](rows(X), rng)
                    work = lambda s=subject, X=X, y=y: drive(s, X, y)  # noqa: E731
                    yield f"{subject} {kind}", work, [X], []

    try_all(tally, cases())


def compared(kernel, X, y):
    options = {"embeddings": ["kernel PCA"], "cv": 2, "repeats": 1 if ROUNDS == 1 else "auto"}
    # Ordinary models do not know of the kernel: once is enough.
    options["baselines"] = kernel == "rbf"
    public.check_answer("", mercer.compare_kernels(X, y, [kernel], **options))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_comparisons_of_any_data(kernel, tally):
    over_data(tally, compared, kernel)


def drawn(cls, X, y):
    from matplotlib import pyplot as plt

    if cls is mercer.ResidualDisplay:
        display = cls.from_estimator(KernelMap().fit(X), X, resolution=4)
    elif cls is mercer.SpectrumDisplay:
        display = cls.from_kernel("rbf", X)
    else:
        display = cls.from_kernel("rbf", X, y)
    public.check_answer("", display.plot())
    plt.close("all")


@pytest.mark.parametrize("name", [n for n in mercer.__all__ if n.endswith("Display")])
def test_pictures_of_any_data(name, tally):
    over_data(tally, drawn, getattr(mercer, name))


def embedded(name, X, y):
    display = mercer.FeatureSpaceDisplay.from_kernel("rbf", X, y, embedding=name)
    finite(display.coordinates)
    at_most(abs(len(display.coordinates) - rows(X)), 0, "rows")


@pytest.mark.parametrize("name", ["kernel PCA", "discriminant"])
def test_embeddings_of_any_data(name, tally):
    over_data(tally, embedded, name)


def saved(model, X, y):
    """To the bit, whatever the data."""
    fitted = clone(model).fit(X, y)
    mercer.save(fitted, "model.mercer")
    name = "predict" if hasattr(model, "predict") else "transform"
    before, after = (getattr(m, name)(X) for m in (fitted, mercer.load("model.mercer")))
    if np.asarray(before).tobytes() != np.asarray(after).tobytes():
        raise Fault("a saved model answers otherwise")


def test_files_of_models_of_any_data(tally):
    kinds = [kind for kind in DATA if "tensor" not in kind]  # they come back as NumPy models
    over_data(tally, saved, KernelMap(), KernelRidge(), kinds=kinds)


def exported(model, X, y):
    """Inner products within the certificates' reach, predictions to 1e-8, in onnxruntime."""
    from onnxruntime import InferenceSession

    fitted = clone(model).fit(X, y)
    graph = InferenceSession(mercer.to_onnx(fitted).SerializeToString())
    Z = public_floats(X)
    answer = graph.run(None, {"X": Z})[0]
    finite(answer)
    if isinstance(model, KernelMap):
        Phi = np.asarray(fitted.transform(X), float)
        bound = 2 * np.asarray(fitted.error_bound(X), float) + 1e-8 * np.abs(Phi @ Phi.T).max()
        at_most(np.abs(answer @ answer.T - Phi @ Phi.T), bound, "inner products")


def public_floats(X):
    X = X.toarray() if hasattr(X, "toarray") else X
    X = X.detach() if hasattr(X, "detach") else X
    return np.asarray(X, dtype=float)


def test_graphs_of_models_of_any_data(tally):
    over_data(tally, exported, KernelMap(), KernelPCA(1, "linear"))


def in_partitions(model, X, y):
    """Dask: the same inner products as in memory, within both certificates."""
    import dask

    collection = pytest.importorskip("dask.array").from_array(X, chunks=(3, -1))
    with dask.config.set(scheduler="synchronous"):
        there = clone(model).fit(collection)
        P = np.asarray(there.transform(collection).compute(), float)
    finite(P)
    here = clone(model).fit(X)
    Q = np.asarray(here.transform(X), float)
    if isinstance(model, KernelMap):
        bound = np.asarray(there.error_bound(X), float) + np.asarray(here.error_bound(X), float)
        at_most(np.abs(P @ P.T - Q @ Q.T), bound, "inner products")


def test_partitions_of_any_data(tally):
    plain = [k for k, make in DATA.items() if type(make(generator(k))) is np.ndarray]
    kinds = [k for k in plain if DATA[k](generator(k)).ndim == 2 and "no " not in k]
    over_data(tally, in_partitions, KernelMap(), kinds=[k for k in kinds if k != "nothing"])


PIECES = (
    "RBF(0.5)",
    "Linear()",
    "RBF",
    "Cosine()",
    "+",
    "*",
    "(",
    ")",
    "+",
    "*",
    "**",
    "0.5",
    "1e300",
    "-",
    "2",
    ",",
    "gamma=",
    "'x'",
)
PIECES += (
    "__import__",
    ".",
    "exp",
    "[",
    "]",
    "lambda",
    "nan",
    "polynomial",
    "\n",
    "\x00",
    "Matern",
)


def test_any_text_as_an_expression(tally):
    """Texts of tokens, of any characters, and long or deep ones."""

    def parsed(text):
        public.check_answer("parse_kernel", parse_kernel(text))

    def cases():
        rng = generator("texts")
        for i in range(400 * ROUNDS):
            if i % 4:
                text = "".join(rng.choice(PIECES, size=int(rng.integers(1, 9))))
            else:
                text = "".join(chr(c) for c in rng.integers(32, 0x3000, size=int(rng.integers(40))))
            yield repr(text), lambda t=text: parsed(t), [], ["expression", "method", *KERNELS]
        for text in ("(" * 5000, "RBF()+" * 3000 + "RBF()", "RBF(" + "9" * 400 + ")", "-" * 999):
            yield text[:20], lambda t=text: parsed(t), [], ["expression", "method", *KERNELS]

    try_all(tally, cases())
