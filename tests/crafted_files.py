"""Files as an attacker writes them: a saved model, with its table or its arrays changed."""

import copy
import io
import json
import zipfile

import numpy as np
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MultiLabelBinarizer,
    OneHotEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeRegressor

from mercer import RBF, FromFunction, KernelMap, KernelRidge, save

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
y = rng.integers(0, 3, 30)
WORDS = ["a cat sat", "the dog ran", "a dog sat on a mat"]


class Saved:
    """The parts of a saved file, to be changed and written again."""

    def __init__(self, model, path):
        save(model, path)
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.files = {name: archive.read(name) for name in archive.namelist()}
        self.tree = json.loads(self.files["model.json"])
        self.objects = self.tree["objects"]

    def write(self):
        self.files["model.json"] = json.dumps(self.tree).encode()
        with zipfile.ZipFile(self.path, "w") as archive:
            for name, data in self.files.items():
                archive.writestr(name, data)

    def named(self, name):
        """The last entry of a type, or made by a type."""
        found = [o for o in self.objects if name in (o.get("type"), o.get("made"))]
        return found[-1]

    def array(self, value):
        """The array that {"at": i} stands for."""
        return np.load(io.BytesIO(self.files[self.objects[value["at"]]["array"]]))

    def set_array(self, value, array):
        buffer = io.BytesIO()
        np.save(buffer, array)
        self.files[self.objects[value["at"]]["array"]] = buffer.getvalue()

    def first(self, entry):
        """Put one more entry before all others, and shift what refers to them."""
        for part in walk(self.tree):
            if isinstance(part, dict) and set(part) == {"at"}:
                part["at"] += 1
        self.objects.insert(0, entry)
        return {"at": 0}


def walk(part):
    yield part
    for inner in part.values() if isinstance(part, dict) else part:
        if isinstance(inner, (dict, list)):
            yield from walk(inner)


# --- code -----------------------------------------------------------------------------------------


def command(saved, loot, name, *arguments):
    """An object that is made by calling a function of the operating system."""
    text = [a.replace("LOOT", str(loot)) for a in arguments]
    entry = {"reduced": name, "of": text, "state": None}
    saved.named("mercer.RBF")["attributes"]["gamma"] = saved.first(entry)


def kernel_function(saved, loot):
    saved.named("mercer.FromFunction")["attributes"]["f"] = {"function": "posix.system"}


def method(saved, loot):
    place = saved.first({"type": "mercer.RBF", "attributes": {"gamma": 1.0}})
    saved.named("mercer.FromFunction")["attributes"]["f"] = {"method": [place, "set_params"]}


def class_of_anything(saved, loot):
    saved.named("mercer.RBF")["attributes"]["gamma"] = {"class": "subprocess.Popen"}


def own_type_as_a_call(saved, loot):
    """A type of this library under a form that would run its __init__ with chosen arguments."""
    entry = {"reduced": "mercer.KernelMap", "of": ["rbf"], "state": None}
    saved.named("mercer.RBF")["attributes"]["gamma"] = saved.first(entry)


# --- addresses ------------------------------------------------------------------------------------


def array_interface(saved, loot):
    """NumPy reads memory at any address that an object's __array_interface__ names."""
    interface = {
        "dict": [
            ["data", "shape", "typestr", "version"],
            [{"tuple": [8, False]}, {"tuple": [64]}, "<f8", 3],
        ]
    }
    entry = {"type": "mercer.RBF", "attributes": {"gamma": 1.0, "__array_interface__": interface}}
    saved.named("mercer.RBF")["attributes"]["gamma"] = saved.first(entry)


def array_as_an_object(saved, loot):
    entry = {"type": "numpy.ndarray", "attributes": {}}
    saved.named("mercer.RBF")["attributes"]["gamma"] = saved.first(entry)


def sparse_as_an_object(saved, loot):
    """A sparse matrix whose arrays are set without its own checks."""
    made = saved.named("scipy.sparse.csr_array")
    rows, columns, data, indices, indptr = made["of"]
    attributes = {"_shape": {"tuple": [rows, columns]}, "data": data, "indices": indices}
    made.clear()
    made.update(type="scipy.sparse.csr_array", attributes={**attributes, "indptr": indptr})


def shadowed_method(saved, loot):
    saved.named("mercer.RBF")["attributes"]["get_params"] = 1


def undeclared_attribute(saved, loot):
    saved.named("mercer.RBF")["attributes"]["surprise"] = 1


# --- indices --------------------------------------------------------------------------------------


def sparse_part(position, change):
    def edit(saved, loot):
        part = saved.named("scipy.sparse.csr_array")["of"][position]
        array = saved.array(part)
        change(array)
        saved.set_array(part, array)

    return edit


def far_column(indices):
    indices[-1] = 10**6


def negative_column(indices):
    indices[0] = -(10**6)


def falling_rows(indptr):
    indptr[1] = indptr[-1] + 10


def random_position(value):
    def edit(saved, loot):
        saved.named("numpy.random.RandomState")["of"][2] = value

    return edit


def nodes(field, value):
    def edit(saved, loot):
        part = saved.named("sklearn.tree._tree.Tree")["of"][4]
        array = saved.array(part)
        inner = np.flatnonzero(array["left_child"] >= 0)
        array[field][inner[-1]] = value
        saved.set_array(part, array)

    return edit


def shallow_tree(saved, loot):
    saved.named("sklearn.tree._tree.Tree")["of"][3] = 0


def attribute(name, key, value):
    def edit(saved, loot):
        saved.named(name)["attributes"][key] = value

    return edit


def without(name, key):
    def edit(saved, loot):
        del saved.named(name)["attributes"][key]

    return edit


def shorter(name, key):
    """An array of a fitted model without its last column or entry."""

    def edit(saved, loot):
        part = saved.named(name)["attributes"][key]
        saved.set_array(part, np.ascontiguousarray(saved.array(part)[..., :-1]))

    return edit


def sparse_coefficients(saved, loot):
    """Fewer stored numbers than classes and support vectors need."""
    part = saved.named(SVMS)["attributes"]["_dual_coef_"]
    counts = np.array([0, 1, 2], np.int32)
    for value, array in zip(
        saved.objects[part["at"]]["of"][2:], (np.zeros(2), counts[:2], counts), strict=True
    ):
        saved.set_array(value, array)


def far_word(saved, loot):
    for entry in saved.objects:
        if "vocabulary_" in entry.get("attributes", {}):
            entry["attributes"]["vocabulary_"]["dict"][1][0] = 10**6


def far_label(saved, loot):
    saved.named("sklearn.preprocessing.MultiLabelBinarizer")["attributes"]["_cached_dict"] = {
        "dict": [["a", "b", "c"], [0, 1, 10**6]]
    }


def few_columns(saved, loot):
    outs = saved.named("sklearn.preprocessing.OneHotEncoder")["attributes"]["_n_features_outs"]
    outs["list"] = [1] * len(outs["list"])


def high_degree(saved, loot):
    saved.named("scipy.interpolate.BSpline")["of"][2] = 9


# --- settings -------------------------------------------------------------------------------------


def out_argument(saved, loot):
    """A NumPy function that writes its result where the file says."""
    place = saved.first({"array": "0.npy"})
    saved.named("sklearn.preprocessing.FunctionTransformer")["attributes"]["kw_args"] = {
        "dict": [["out"], [place]]
    }


def _fitted(model, data=X, target=None):
    return copy.deepcopy(model).fit(data, y if target is None else target)


def fitted_labels():
    labels = MultiLabelBinarizer().fit([("a", "b"), ("c",)])
    labels.transform([("a",)])
    return labels


def sparse_map():
    return KernelMap(max_rank=5).fit(scipy.sparse.csr_array(np.round(X)))


COMMAND = ("touch LOOT",)
SVMS = "sklearn.svm.SVC"

# What it is: (a model, how it is changed, what load must say).
CRAFTED = {
    "os.system": (RBF, lambda s, l: command(s, l, "posix.system", *COMMAND), "posix.system"),
    "eval": (
        RBF,
        lambda s, l: command(s, l, "builtins.eval", "__import__('os').system('touch LOOT')"),
        "builtins.eval",
    ),
    "subprocess": (
        RBF,
        lambda s, l: command(s, l, "subprocess.getoutput", *COMMAND),
        "subprocess.getoutput",
    ),
    "own type as a call": (RBF, own_type_as_a_call, "mercer.KernelMap"),
    "kernel function": (lambda: FromFunction(np.dot), kernel_function, "posix.system"),
    "bound method": (lambda: FromFunction(np.dot), method, "mercer.RBF.set_params"),
    "class": (RBF, class_of_anything, "subprocess.Popen"),
    "NumPy function": (lambda: FromFunction(np.dot), lambda s, l: None, "numpy.dot"),
    "FunctionTransformer": (
        lambda: FunctionTransformer(np.log1p),
        lambda s, l: None,
        "numpy.log1p",
    ),
    "__array_interface__": (RBF, array_interface, "__array_interface__"),
    "array as an object": (RBF, array_as_an_object, "numpy.ndarray"),
    "sparse as an object": (sparse_map, sparse_as_an_object, "scipy.sparse.csr_array"),
    "shadowed method": (RBF, shadowed_method, "get_params"),
    "undeclared attribute": (RBF, undeclared_attribute, "surprise"),
    "sparse column beyond": (sparse_map, sparse_part(3, far_column), "indices"),
    "sparse column before": (sparse_map, sparse_part(3, negative_column), "indices"),
    "random position beyond": (
        lambda: KernelMap(random_state=np.random.RandomState(0)),
        random_position(10**6),
        "position 1000000",
    ),
    "random position before": (
        lambda: KernelMap(random_state=np.random.RandomState(0)),
        random_position(-5),
        "position -5",
    ),
    "tree child beyond": (
        lambda: _fitted(DecisionTreeRegressor()),
        nodes("left_child", 10**6),
        "a child outside",
    ),
    "tree child before": (
        lambda: _fitted(DecisionTreeRegressor()),
        nodes("right_child", -7),
        "a child outside",
    ),
    "tree in a circle": (
        lambda: _fitted(DecisionTreeRegressor()),
        nodes("left_child", 1),
        "branches meet",
    ),
    "tree feature beyond": (
        lambda: _fitted(DecisionTreeRegressor()),
        nodes("feature", 10**6),
        "feature outside",
    ),
    "tree too shallow": (lambda: _fitted(DecisionTreeRegressor()), shallow_tree, "claims 0"),
    "tree without columns": (
        lambda: _fitted(DecisionTreeRegressor()),
        without("sklearn.tree.DecisionTreeRegressor", "n_features_in_"),
        "n_features_in_",
    ),
    "forest of fewer columns": (
        lambda: _fitted(RandomForestClassifier(2)),
        attribute("sklearn.ensemble.RandomForestClassifier", "n_features_in_", 1),
        "other columns",
    ),
    "support vectors narrower": (
        lambda: _fitted(SVC()),
        shorter(SVMS, "support_vectors_"),
        "support vectors of another shape",
    ),
    "dual coefficients fewer": (
        lambda: _fitted(SVC()),
        shorter(SVMS, "_dual_coef_"),
        "dual coefficients",
    ),
    "intercepts fewer": (lambda: _fitted(SVC()), shorter(SVMS, "_intercept_"), "intercepts"),
    "counts fewer": (lambda: _fitted(SVC()), shorter(SVMS, "_n_support"), "do not fit the classes"),
    "support of regression": (
        lambda: _fitted(SVR()),
        shorter("sklearn.svm.SVR", "_dual_coef_"),
        "dual coefficients",
    ),
    "support without columns": (
        lambda: _fitted(SVC()),
        without(SVMS, "n_features_in_"),
        "n_features_in_",
    ),
    "sparse support vectors fewer": (
        lambda: _fitted(SVC(), scipy.sparse.csr_array(X)),
        sparse_coefficients,
        "dual coefficients",
    ),
    "clusters narrower": (
        lambda: _fitted(KMeans(3, n_init=1)),
        shorter("sklearn.cluster.KMeans", "cluster_centers_"),
        "centres",
    ),
    "coefficients shorter": (
        lambda: _fitted(SGDClassifier()),
        shorter("sklearn.linear_model.SGDClassifier", "coef_"),
        "other columns",
    ),
    "columns of categories": (
        lambda: _fitted(OneHotEncoder(), np.round(X)),
        few_columns,
        "columns for",
    ),
    "word beyond": (lambda: CountVectorizer().fit(WORDS), far_word, "vocabulary"),
    "weighted word beyond": (lambda: TfidfVectorizer().fit(WORDS), far_word, "vocabulary"),
    "key beyond": (lambda: DictVectorizer().fit([{"a": 1, "b": 2}]), far_word, "vocabulary"),
    "label beyond": (fitted_labels, far_label, "labels"),
    "no hashed features": (
        FeatureHasher,
        attribute("sklearn.feature_extraction.FeatureHasher", "n_features", 0),
        "hashed features",
    ),
    "no hashed words": (
        HashingVectorizer,
        attribute("sklearn.feature_extraction.text.HashingVectorizer", "n_features", -1),
        "hashed features",
    ),
    "files as text": (lambda: CountVectorizer(input="filename"), lambda s, l: None, "reads files"),
    "open files as text": (lambda: TfidfVectorizer(input="file"), lambda s, l: None, "reads files"),
    "cache on disk": (
        lambda: make_pipeline(StandardScaler(), KernelRidge(), memory="cache"),
        lambda s, l: None,
        "writes files",
    ),
}

# Refused by the carriers too (SciPy's and NumPy's own checks), whatever mercer checks.
ALSO_REFUSED = {
    "sparse rows fall": (sparse_map, sparse_part(4, falling_rows), "ind"),
    "spline of high degree": (lambda: _fitted(SplineTransformer()), high_degree, "knots"),
}
