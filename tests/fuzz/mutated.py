"""Saved models with changes of their tables and arrays, loaded and used in this process.

Run as ``python -m fuzz.mutated SEED COUNT FOLDER random`` for changes at random, or with
``directed`` for those of an attacker (attacks.py). Every change gives a well-formed archive, so
that it is judged by what it says. Allowed are a refusal by `load`, an answer (of whatever worth),
and an exception when the model is used. Not allowed: a crash, another exception of `load`, and any
event by which Python reports that a file is written, a process started or memory opened.
"""

import copy
import io
import json
import os
import random
import resource
import signal
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.gaussian_process.kernels import RBF as GaussianRBF
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, QuantileTransformer, StandardScaler
from sklearn.svm import LinearSVC

from fuzz.attacks import attacked
from mercer import (
    RBF,
    ClassicalMDS,
    DriftDetector,
    KernelClassifier,
    KernelDiscriminant,
    Kernelized,
    KernelLogistic,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
    KernelSVC,
    Linear,
    ModelFileError,
    OnColumns,
    Polynomial,
    SetOf,
    ShortestPaths,
    Signature,
    Spectrum,
    TableEncoder,
    WeisfeilerLehman,
    load,
    save,
)

SECONDS = 20
MEMORY = 3 << 30
HOSTILE_EVENTS = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.remove",
    "os.rename",
    "subprocess.Popen",
    "socket.",
    "ctypes.",
    "shutil.",
    "pickle.find_class",
)
NAMES = [
    "mercer.KernelMap",
    "mercer.RBF",
    "mercer.Factor",
    "numpy.ndarray",
    "numpy.random.RandomState",
    "scipy.sparse.csr_array",
    "scipy.sparse.csc_matrix",
    "sklearn.tree._tree.Tree",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing.StandardScaler",
    "sklearn.svm.SVC",
    "posix.system",
    "builtins.eval",
    "mercer.nothing",
]
ATTRIBUTES = ["__array_interface__", "__array__", "__class__", "transform", "_private", "fitted_"]
NUMBERS = [0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**63, 1e300, -1e-300, float("nan"), float("inf")]
OTHERS = [None, True, "", "rbf", "filename", "\ud800", {"list": []}, {"at": 0}, {"dict": [[], []]}]


def models():
    """Of every kind that loads without trust, with points to use them on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = rng.integers(0, 3, 24)
    steps = rng.normal(size=(100, 3))
    sparse = scipy.sparse.csr_array(np.round(X))
    text = ["a cat", "the dog ran", "a dog on a mat", "cat and dog"] * 6
    graphs = [([(0, 1), (1, 2), (2, i % 3)], ["a", "b", "c"]) for i in range(24)]
    paths = [np.cumsum(rng.normal(size=(4 + i % 3, 2)), axis=0) for i in range(24)]
    given = [
        (RBF(0.5) + 2.0 * Polynomial(2) * Linear(), X),
        (KernelMap(RBF(0.5), max_rank=5, random_state=np.random.RandomState(0)).fit(X), X),
        (KernelMap(max_rank=5).fit(sparse), sparse),
        (KernelMap(GaussianRBF() + DotProduct(), basis="eigen", center=True).fit(X), X),
        (KernelMap("sigmoid", indefinite="clip").fit(X), X),
        (KernelMap(OnColumns(RBF(), [0, 2]) + Linear(), basis="cholesky").fit(X), X),
        (KernelMap(Spectrum(2), basis="closed").fit(text), text),
        (KernelMap(WeisfeilerLehman(2)).fit(graphs), graphs),
        (KernelMap(SetOf(RBF(0.5))).fit(paths), paths),
        (KernelMap(Signature(2)).fit(paths), paths),
        (KernelPCA(2).fit(X), X),
        (KernelRidge().fit(X, y), X),
        (KernelRidge(form="iterative").fit(X, y), X),
        (KernelDiscriminant().fit(X, y), X),
        (ClassicalMDS(2, metric="mahalanobis").fit(X), X),
        (Kernelized(LogisticRegression()).fit(X, y), X),
        (Kernelized(make_pipeline(PCA(2), Ridge())).fit(X, y), X),
        (make_pipeline(StandardScaler(), KernelMap(max_rank=5), LinearSVC()).fit(X, y), X),
        (make_pipeline(SimpleImputer(), PowerTransformer(), KernelMap(max_rank=5)).fit(X), X),
        (make_pipeline(QuantileTransformer(n_quantiles=9), KernelRidge()).fit(X, y), X),
        (make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()).fit(X, y), X),
        (make_pipeline(KernelMap(max_rank=5), GaussianMixture(2)).fit(X), X),
        (MultinomialNB().fit(np.abs(X), y), np.abs(X)),
        (DriftDetector(n_permutations=20).fit(X), X),
        (KernelSVC().fit(X, y), X),
        (KernelLogistic().fit(X, y), X),
        (KernelRidgeCV().fit(X, y), X),
        (KernelPCAL1(2).fit(X), X),
        (KernelMap(RBF(0.5), basis="fourier").fit(X[:, :2]), X[:, :2]),
        (KernelRidge(0.1, RBF(0.5), form="fourier").fit(X[:, :1], y), X[:, :1]),
        (KernelMap(ShortestPaths()).fit(graphs), graphs),
        (KernelClassifier().fit(X, y), X),
        (KernelRegressor().fit(steps, (steps > 0) @ [1.0, 2.0, 0.0]), steps),
    ]
    try:
        import pandas as pd
    except ImportError:
        return given
    frame = pd.DataFrame({"a": X[:, 0], "b": np.array(list("xyz"))[y], "c": text})
    frame["d"] = pd.date_range("2020-01-01", periods=24)
    levels = pd.DataFrame({"a": steps[:, 0], "b": [f"town {i % 35}" for i in range(100)]})
    return [
        *given,
        (make_pipeline(TableEncoder(), KernelRidge()).fit(frame, y), frame),
        (KernelRegressor().fit(levels, steps[:, 0]), levels),
        (DriftDetector(n_permutations=20).fit(frame), frame),
    ]


# --- changes --------------------------------------------------------------------------------------


def places(part, found):
    """(container, key) of every value in the table."""
    keys = list(part) if isinstance(part, dict) else range(len(part))
    for key in keys:
        found.append((part, key))
        if isinstance(part[key], (dict, list)):
            places(part[key], found)
    return found


def change_table(tree, rng):
    container, key = rng.choice(places(tree["objects"], []))
    old = container[key]
    kinds = ["number", "other", "name", "copy", "remove", "attribute", "kind"]
    match rng.choice(kinds):
        case "number" if isinstance(old, (int, float)):
            container[key] = rng.choice([*NUMBERS, old + 1, -old])
        case "number" | "other":
            container[key] = copy.deepcopy(rng.choice([*OTHERS, *NUMBERS]))
        case "name":
            container[key] = rng.choice(NAMES)
        case "copy":
            other, place = rng.choice(places(tree["objects"], []))
            container[key] = copy.deepcopy(other[place])
        case "remove":
            del container[key]
        case "attribute" if isinstance(container, dict):
            container[rng.choice(ATTRIBUTES)] = container[key]
        case "kind" if isinstance(container, dict):
            new = rng.choice(["type", "made", "reduced", "of", "attributes", "at", "method"])
            container[new] = container.pop(key)
        case _:
            container[key] = rng.choice(NUMBERS)


def change_array(data, rng):
    array = np.load(io.BytesIO(data))
    match rng.choice(["value", "value", "shape", "dtype", "order"]):
        case "value" if array.size and array.dtype.names:
            field = rng.choice(array.dtype.names)
            value = np.array(rng.choice([0, 1, 5, 10**6, -1, -5])).astype(array[field].dtype)
            array[field].flat[rng.randrange(array.size)] = value
        case "value" if array.size and array.dtype.kind in "iuf":
            value = rng.choice([0, 1, -1, 99, 10**6, -(10**6), 2**31 - 1])
            array.flat[rng.randrange(array.size)] = np.array(value).astype(array.dtype)
        case "shape":
            array = rng.choice([array[:-1] if array.ndim else array, array.ravel(), array[None]])
        case "dtype" if not array.dtype.names:
            array = array.astype(rng.choice(["f4", "i4", "i8", "u1", "U3", "c16", "?", "f8"]))
        case _:
            array = np.asfortranarray(array.T)
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def mutated(files, rng):
    files = dict(files)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        arrays = [name for name in files if name.endswith(".npy")]
        if arrays and rng.random() < 0.4:
            name = rng.choice(arrays)
            files[name] = change_array(files[name], rng)
        else:
            tree = json.loads(files["model.json"])
            change_table(tree, rng)
            files["model.json"] = json.dumps(tree).encode()
    return files


# --- use ------------------------------------------------------------------------------------------


class TooLong(Exception):
    pass


def ring(*_):
    raise TooLong


def use(model, X):
    """Everything that a model answers; exceptions are as good as nonsense."""
    names = ("transform", "predict", "decision_function", "predict_proba", "residual", "__call__")
    names += ("score_samples", "error_bound", "__repr__")
    for name in names:
        try:
            found = getattr(model, name)(*([] if name == "__repr__" else [X]))
            if scipy.sparse.issparse(found):
                found.toarray()
        except TooLong:
            raise
        except Exception:
            continue


def watch(seen):
    def hook(event, arguments):
        writes = event == "open" and set(str(arguments[1])) & set("wax+")
        if event.startswith(HOSTILE_EVENTS) or writes:
            seen.append(f"{event} {str(arguments)[:100]}")

    sys.addaudithook(hook)


def main(seed, count, folder, how):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    path = Path(folder) / "model.mercer"
    saved = []
    for model, X in models():
        save(model, path)
        with zipfile.ZipFile(path) as archive:
            saved.append(({n: archive.read(n) for n in archive.namelist()}, X))
        use(load(path), X)  # whatever is imported when first used is imported now
    signal.signal(signal.SIGALRM, ring)
    seen: list[str] = []
    watch(seen)
    outcomes = {"refused": 0, "loaded": 0, "too long": 0}
    for i in range(seed, seed + count):
        rng = random.Random(i)
        files, X = saved[i % len(saved)]
        files = attacked(files, rng) if how == "directed" else mutated(files, rng)
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        os.write(2, f"{i}\n".encode())  # the last one named is the one that crashed
        seen.clear()
        signal.alarm(SECONDS)
        try:
            use(load(path), X)
            outcomes["loaded"] += 1
        except (ModelFileError, TypeError):
            outcomes["refused"] += 1
        except TooLong:
            outcomes["too long"] += 1
        signal.alarm(0)
        if seen:
            raise SystemExit(f"mutation {i}: {seen[0]}")
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
