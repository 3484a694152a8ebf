"""What a loaded object must fulfil, because native code will rely on it or a setting is not plain.

scikit-learn's native code indexes with fitted attributes and does not look at bounds. A class whose
attributes reach it has its check here; without one, it does not belong on the list in registry.py.
"""

import numpy as np
import scipy.sparse

from .rebuilt import expect, is_index

LARGEST_HASH = 2**31 - 1


def check_object(thing, name):
    """ValueError where native code would leave its arrays."""
    if name.startswith("sklearn.linear_model."):
        _linear(thing)
    if name in CHECKS:
        CHECKS[name](thing)


def check_settings(thing, name):
    """ValueError for settings with which a model reads or writes files, or runs functions."""
    if getattr(thing, "memory", None) is not None and name.startswith("sklearn."):
        raise _setting(name, f"memory={thing.memory!r}", "writes files when it is fitted")
    if name in TEXT and getattr(thing, "input", "content") != "content":
        raise _setting(name, f"input={thing.input!r}", "reads files that its data name")
    if name == FUNCTION:
        for argument in ("kw_args", "inv_kw_args"):
            if getattr(thing, argument, None):
                raise _setting(name, argument, "hands chosen arguments to a function")


class RefusedSetting(TypeError):
    """A setting that whoever loads the file must allow."""


def _setting(name, setting, what):
    short = name.rpartition(".")[2]
    return RefusedSetting(
        f"{short} with {setting}: it {what}. If you know where the file comes from, load with "
        f"trusted=[{name!r}]."
    )


FUNCTION = "sklearn.preprocessing.FunctionTransformer"
TEXT = tuple(
    f"sklearn.feature_extraction.text.{name}"
    for name in ("CountVectorizer", "HashingVectorizer", "TfidfVectorizer")
)


# --- checks ---------------------------------------------------------------------------------------


def _matrix(array, shape, what):
    """An array of floats of this shape; None stands for any length."""
    fits = isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.ndim == len(shape)
    fits = fits and all(n is None or n == m for n, m in zip(shape, array.shape))
    expect(fits, f"{what} of another shape than the model")


def _columns(thing):
    columns = vars(thing).get("n_features_in_")
    expect(is_index(columns) and columns > 0, f"{type(thing).__name__} without n_features_in_")
    return int(columns)


def _linear(thing):
    """Coordinate descent and stochastic gradients continue from coefficients as they are."""
    coef = vars(thing).get("coef_")
    if not isinstance(coef, np.ndarray):
        return
    expect(coef.ndim > 0 and coef.shape[-1] == _columns(thing), "coefficients for other columns")
    for ours, theirs in (("coef", "coef_"), ("intercept", "intercept_")):
        for kind in ("_standard_", "_average_"):
            copy = vars(thing).get(kind + ours)
            if copy is not None:
                expect(
                    np.size(copy) == np.size(vars(thing).get(theirs)),
                    f"{kind + ours} of another shape than {theirs}",
                )


def _vocabulary(thing):
    """Words are columns 0 to n - 1 of the sparse matrix that is made without further checks."""
    vocabulary = vars(thing).get("vocabulary_")
    if vocabulary is not None:
        _permutation(vocabulary, "a vocabulary")


def _permutation(mapping, what):
    known = isinstance(mapping, dict) and all(map(is_index, mapping.values()))
    expect(known, f"{what} without numbers")
    expect(
        sorted(mapping.values()) == list(range(len(mapping))), f"{what} with a word out of range"
    )


def _hashed(thing):
    n = vars(thing).get("n_features")
    expect(is_index(n) and 0 < n <= LARGEST_HASH, f"{n!r} hashed features")


def _labels(thing):
    cached = vars(thing).get("_cached_dict")
    if cached is not None:
        _permutation(cached, "labels")


def _one_hot(thing):
    """The number of columns of each feature bounds the indices that its categories get."""
    state = vars(thing)
    if "categories_" not in state:
        return
    categories = state["categories_"]
    n = len(categories)
    outs = state.get("_n_features_outs")
    drops = state.get("_drop_idx_after_grouping")
    groups = state.get("_default_to_infrequent_mappings", [None] * n)
    drops = [None] * n if drops is None else list(drops)
    expect(
        isinstance(categories, list)
        and all(isinstance(c, np.ndarray) and c.ndim == 1 for c in categories)
        and outs is not None
        and n == len(outs) == len(drops) == len(groups) == _columns(thing),
        "categories that do not fit their columns",
    )
    for category, out, drop, group in zip(categories, outs, drops, groups):
        last = len(category) - 1
        if group is not None:
            expect(
                isinstance(group, np.ndarray)
                and group.dtype.kind in "iu"
                and group.shape == category.shape
                and group.min(initial=0) >= 0,
                "groups of rare categories that do not fit them",
            )
            last = int(group.max(initial=0))
        kept = last + 1
        if drop is not None:
            expect(is_index(drop) and 0 <= drop <= last, f"a dropped category {drop!r}")
            kept -= 1
        expect(is_index(out) and out == kept, f"{out!r} columns for {kept} categories")


def _clusters(thing):
    state = vars(thing)
    if "cluster_centers_" not in state:
        return
    clusters = state.get("n_clusters")
    expect(is_index(clusters), f"{clusters!r} clusters")
    _matrix(state["cluster_centers_"], (clusters, _columns(thing)), "centres")
    if "_counts" in state:
        _matrix(state["_counts"], (clusters,), "counts")
    threads = state.get("_n_threads", 1)
    expect(is_index(threads) and 0 < threads < 10_000, f"{threads!r} threads")


def _support_vectors(thing):
    """libsvm's model, as scikit-learn hands it over: pointers, and the number of classes."""
    state = vars(thing)
    if "support_" not in state:
        return
    columns, support, counts = _columns(thing), state["support_"], state.get("_n_support")
    for part in (support, counts):
        expect(
            isinstance(part, np.ndarray) and part.dtype == np.int32 and part.ndim == 1,
            "support vectors without their numbers",
        )
    classes = len(state["classes_"]) if "classes_" in state else 2
    vectors, pairs = len(support), classes * (classes - 1) // 2
    expect(
        len(counts) == classes >= 2 and (counts >= 0).all(),
        "support vectors that do not fit the classes",
    )
    if "classes_" in state:
        expect(counts.sum() == vectors, "support vectors that do not fit the classes")
    points, coef = state.get("support_vectors_"), state.get("_dual_coef_")
    if state.get("kernel") == "precomputed":
        expect(((support >= 0) & (support < columns)).all(), "support vectors outside the data")
        expect(state.get("_sparse") is False, "a sparse Gram matrix")
    elif state.get("_sparse"):
        for part in (points, coef):
            expect(scipy.sparse.issparse(part) and part.format == "csr", "dense support vectors")
        expect(points.shape == (vectors, columns), "support vectors of another shape")
        coef = coef.data.reshape(classes - 1, -1)  # libsvm reads them as if none were zero
    else:
        _matrix(points, (vectors, columns), "support vectors")
    _matrix(coef, (classes - 1, vectors), "dual coefficients")
    _matrix(state.get("_intercept_"), (pairs,), "intercepts")
    sizes = {np.size(state.get(name, ())) for name in ("_probA", "_probB")}
    expect(sizes in ({0}, {pairs}), "probabilities of other classes")


def _one_tree(thing):
    tree = vars(thing).get("tree_")
    if tree is not None:
        expect(getattr(tree, "n_features", None) == _columns(thing), "a tree of other columns")


def _forest(thing):
    """A forest checks the columns of its data once, and its trees not again."""
    for member in vars(thing).get("estimators_", ()):
        tree = getattr(member, "tree_", None)
        expect(getattr(tree, "n_features", None) == _columns(thing), "a tree of other columns")
        outputs = vars(thing).get("n_outputs_")
        expect(getattr(tree, "n_outputs", None) == outputs, "a tree of other outputs")


CHECKS = {
    "sklearn.cluster.KMeans": _clusters,
    "sklearn.cluster.MiniBatchKMeans": _clusters,
    "sklearn.feature_extraction.DictVectorizer": _vocabulary,
    "sklearn.feature_extraction.FeatureHasher": _hashed,
    "sklearn.feature_extraction.text.CountVectorizer": _vocabulary,
    "sklearn.feature_extraction.text.HashingVectorizer": _hashed,
    "sklearn.feature_extraction.text.TfidfVectorizer": _vocabulary,
    "sklearn.preprocessing.MultiLabelBinarizer": _labels,
    "sklearn.preprocessing.OneHotEncoder": _one_hot,
    **dict.fromkeys(
        (f"sklearn.svm.{name}" for name in ("NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR")),
        _support_vectors,
    ),
    **{
        f"sklearn.tree.{kind}Tree{task}": _one_tree
        for kind in ("Decision", "Extra")
        for task in ("Classifier", "Regressor")
    },
    **{
        f"sklearn.ensemble.{name}": _forest
        for name in (
            "ExtraTreesClassifier",
            "ExtraTreesRegressor",
            "RandomForestClassifier",
            "RandomForestRegressor",
            "RandomTreesEmbedding",
        )
    },
}
