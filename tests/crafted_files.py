"""Files as an attacker writes them: a saved model, with its table or its arrays changed."""

import io
import json
import zipfile

import numpy as np
import scipy.sparse
import sklearn
from sklearn.cluster import KMeans
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import FastICA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import StackingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.gaussian_process import kernels as gaussian
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MultiLabelBinarizer,
    OneHotEncoder,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeRegressor

from mercer import (
    RBF,
    ClassicalMDS,
    FromFunction,
    Kernelized,
    KernelMap,
    KernelRegressor,
    KernelRidge,
    Linear,
    Spectrum,
    save,
)
from mercer.estimators.trees import Trees
from mercer.export.model_files import needed_trust
from mercer.tables.columns import Texts

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
y = rng.integers(0, 3, 30)
WORDS = ["a cat sat", "the dog ran", "a dog sat on a mat"]


class Saved:
    """The parts of a saved file, to be changed and written again."""

    def __init__(self, model, path):
        save(model, path, trusted=needed_trust(model))
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
    entry = {"reduced": name, "of": text, "state": None, "items": None}
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
    entry = {"reduced": "mercer.KernelMap", "of": ["rbf"], "state": None, "items": None}
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


def attribute(name, key, value):
    def edit(saved, loot):
        saved.named(name)["attributes"][key] = value

    return edit


def same_array_twice(saved, loot):
    """Data that are the array of the indices: whoever scales them in place moves the indices."""
    made = saved.named("scipy.sparse.csr_array")
    made["of"][2] = made["of"][3]


# --- slots ----------------------------------------------------------------------------------------

ARRAY = {"array": "slot.npy"}
SCALER = {
    "type": "sklearn.preprocessing.StandardScaler",
    "attributes": {"_sklearn_version": sklearn.__version__},
}
KERNEL = {"type": "mercer.RBF", "attributes": {"gamma": 1.0}}
BYTES = {"class": "builtins.bytes"}


def placed(saved, thing):
    """A value that stands for a new entry; a value as it is."""
    if "class" in thing:
        return thing
    place = saved.first(dict(thing))
    if "array" in thing:
        saved.files[thing["array"]] = b""
        saved.set_array(place, np.array([b"/some/path"]))
    return place


def into(name, key, thing):
    """An attribute that holds another thing than its class expects."""

    def edit(saved, loot):
        value = placed(saved, thing)
        saved.named(name)["attributes"][key] = value

    return edit


def array_as_a_step(saved, loot):
    value = placed(saved, ARRAY)
    steps = saved.named("sklearn.pipeline.Pipeline")["attributes"]["steps"]["list"]
    steps[0]["tuple"][1] = value


def list_of(thing):
    def edit(saved, loot):
        value = placed(saved, thing)
        saved.named("mercer.KernelMap")["attributes"]["tol"] = {"list": [{"tuple": [value]}]}

    return edit


def matrix_of_a_metric(saved, loot):
    """SciPy reads as many numbers as the data have columns squared, wherever the matrix ends."""
    value = placed(saved, ARRAY)
    saved.set_array(value, np.eye(1))
    arguments = {"dict": [["VI"], [value]]}
    saved.named("mercer.ClassicalMDS")["attributes"]["metric_params"] = arguments


def nested_arrays(saved, loot):
    """Arrays of objects in each other: NumPy frees each by a call inside the call for the last."""
    levels = 20_000
    saved.objects[:0] = [
        {"objects": [1], "items": [{"at": i - 1} if i else 1.0]} for i in range(levels)
    ]
    saved.named("mercer.RBF")["attributes"]["gamma"] = {"at": levels - 1}
    saved.tree["model"] = {"at": len(saved.objects) - 1}


def nested_lists(saved, loot):
    value = {"list": []}
    for _ in range(100):
        value = {"list": [value]}
    saved.named("mercer.RBF")["attributes"]["gamma"] = value


# --- settings -------------------------------------------------------------------------------------


def out_argument(saved, loot):
    """A NumPy function that writes its result where the file says."""
    place = saved.first({"array": "0.npy"})
    saved.named("sklearn.preprocessing.FunctionTransformer")["attributes"]["kw_args"] = {
        "dict": [["out"], [place]]
    }


def sparse_map():
    return KernelMap(max_rank=5).fit(scipy.sparse.csr_array(np.round(X)))


def texts():
    return Texts(2).fit(np.array(WORDS * 10, dtype=object), "text")


def model_with_trees(n=81):
    """One tree: every other node is a leaf."""
    own = np.arange(n)
    inner = (own % 2 == 0) & (own < n - 1)
    below, above = np.where(inner, own + 1, own), np.where(inner, own + 2, own)
    numbers = (np.zeros(n, int), np.zeros(n), below, above, np.ones((n, 1)))
    model = KernelRegressor()
    model.others_ = [Trees(np.array([0]), *numbers, np.zeros(1), np.ones(3))]
    return model


def nodes(change):
    def changed(saved, loot):
        attributes = saved.named("mercer.Trees")["attributes"]
        for name, array in change(np.arange(81)).items():
            saved.set_array(attributes[name], array)

    return changed


def shared_nodes(own):
    """Two ways from each node to the next: 2**80 ways down."""
    following = np.minimum(own + 1, 80)
    return {"below": following, "above": following}


COMMAND = ("touch LOOT",)

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
    # Slots.
    "array as an estimator": (
        lambda: Kernelized(Ridge()).fit(X, y),
        into("mercer.Kernelized", "estimator_", ARRAY),
        "Kernelized.estimator_ cannot hold ndarray",
    ),
    "kernel as an estimator": (
        lambda: Kernelized(Ridge()).fit(X, y),
        into("mercer.Kernelized", "estimator", KERNEL),
        "Kernelized.estimator cannot hold RBF",
    ),
    "array as a kernel": (
        KernelMap,
        into("mercer.KernelMap", "kernel", ARRAY),
        "KernelMap.kernel cannot hold ndarray",
    ),
    "array as a kernel of a sum": (
        lambda: RBF() + Linear(),
        into("mercer.Sum", "left", ARRAY),
        "Sum.left cannot hold ndarray",
    ),
    "array as a step": (
        lambda: make_pipeline(StandardScaler(), KernelMap()),
        array_as_a_step,
        "Pipeline.steps cannot hold",
    ),
    "array as a scaler": (
        lambda: PowerTransformer().fit(X),
        into("sklearn.preprocessing.PowerTransformer", "_scaler", ARRAY),
        "PowerTransformer._scaler cannot hold",
    ),
    "array as a Gaussian kernel": (
        lambda: KernelMap(gaussian.RBF() + gaussian.DotProduct()),
        into("sklearn.gaussian_process.kernels.Sum", "k1", ARRAY),
        "Sum.k1 cannot hold",
    ),
    "array as the weights of texts": (
        texts,
        into("mercer.Texts", "weights_", ARRAY),
        "Texts.weights_ cannot hold",
    ),
    "type as a kernel": (
        KernelMap,
        into("mercer.KernelMap", "kernel", BYTES),
        "KernelMap.kernel cannot hold bytes",
    ),
    "type as a function": (
        lambda: FromFunction(np.dot),
        into("mercer.FromFunction", "f", BYTES),
        "FromFunction.f cannot hold bytes",
    ),
    "estimator where none belongs": (
        KernelMap,
        into("mercer.KernelMap", "tol", SCALER),
        "KernelMap.tol cannot hold StandardScaler",
    ),
    "estimator in a list": (KernelMap, list_of(SCALER), "KernelMap.tol cannot hold StandardScaler"),
    "type in a list": (KernelMap, list_of(BYTES), "KernelMap.tol cannot hold bytes"),
    "matrix of a metric": (
        lambda: ClassicalMDS(metric="mahalanobis").fit(X),
        matrix_of_a_metric,
        "mercer.ClassicalMDS",
    ),
    # Data and parameters.
    "arrays in each other": (RBF, nested_arrays, "levels"),
    "lists in each other": (RBF, nested_lists, "levels"),
    "parameters that are refused": (
        lambda: Spectrum(3),
        attribute("mercer.Spectrum", "mismatches", 10**6),
        "mismatches",
    ),
    "parameters inside that are refused": (
        lambda: KernelMap(2.0 * Spectrum(3) + Spectrum(2)),
        attribute("mercer.Spectrum", "length", 10**9),
        "length",
    ),
    # Settings.
    "cache on disk": (
        lambda: make_pipeline(StandardScaler(), KernelRidge(), memory="cache"),
        lambda s, l: None,
        "sklearn.pipeline.Pipeline",
    ),
    "coefficients to go on from": (
        lambda: Lasso(warm_start=True).fit(X, y),
        lambda s, l: None,
        "sklearn.linear_model.Lasso",
    ),
    "function as a setting": (
        lambda: FastICA(2, fun=np.tanh, random_state=0),
        lambda s, l: None,
        "sklearn.decomposition.FastICA",
    ),
    "estimator as a setting": (
        lambda: LinearDiscriminantAnalysis(
            solver="lsqr", covariance_estimator=EmpiricalCovariance()
        ),
        lambda s, l: None,
        "LinearDiscriminantAnalysis",
    ),
}

# Trees that would be followed without end, or out of their arrays.
CRAFTED |= {
    "shared nodes": (model_with_trees, nodes(shared_nodes), "of another one"),
    "nodes in a circle": (
        model_with_trees,
        nodes(lambda own: {"below": (own + 1) % 81, "above": (own + 1) % 81}),
        "leads back",
    ),
    "far nodes": (model_with_trees, nodes(lambda own: {"below": own + 2**40}), "not there"),
    "far roots": (model_with_trees, nodes(lambda own: {"roots": own[:1] - 2**40}), "not there"),
    "repeated roots": (model_with_trees, nodes(lambda own: {"roots": 0 * own}), "of another one"),
    "far columns": (model_with_trees, nodes(lambda own: {"feature": own}), "column beyond"),
}

# Refused by the carriers too (SciPy's and NumPy's own checks), whatever mercer checks.
ALSO_REFUSED = {
    "sparse rows fall": (sparse_map, sparse_part(4, falling_rows), "ind"),
}


# --- models of scikit-learn that were made to write files or leave their arrays -------------------


def stack(array, method):
    """What StackingClassifier does: getattr(estimator, method)(X), both from the file."""
    made = StackingClassifier([("a", None)])
    made.estimators_, made.stack_method_, made._n_feature_outs = [array], [method], [1]
    made.classes_, made.final_estimator_ = np.array([0, 1]), None
    return made


def writes_a_file(path, content=b"written by a model"):
    """Its transform writes the content to the path, whatever it is given."""
    return make_pipeline(
        stack(np.array([path]), "__deepcopy__"),
        FunctionTransformer(bytes),
        stack(np.array([content]), "tofile"),
    )


def _changed(model, **attributes):
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def far_support(model):
    """Rows of a kernel matrix that does not exist, of a machine whose kernel is an object."""
    model.fit(X, y % 2)
    vectors = np.zeros((len(model.support_), X.shape[1]))
    far = model.support_ + 2**28
    return _changed(model, support_=far, support_vectors_=vectors, n_features_in_=X.shape[1])


def sparse_support():
    model = SVC().fit(scipy.sparse.csr_array(X), y)
    model.support_vectors_.data[:] = 1e30
    return model


def without_classes():
    model = SVC().fit(X, y % 2)
    del model.classes_
    return _changed(model, _n_support=np.array([2**30] * 2, np.int32))


def one_hot(change):
    encoder = OneHotEncoder().fit(np.round(X))
    return _changed(encoder, **change(encoder))


def groups_not_used(encoder):
    """One column for each feature, and categories that are not mapped to it."""
    groups = [np.zeros(len(c), dtype=int) for c in encoder.categories_]
    return {
        "_infrequent_enabled": False,
        "_default_to_infrequent_mappings": groups,
        "_n_features_outs": [1] * len(groups),
    }


def repeated_labels():
    labels = MultiLabelBinarizer().fit([("a", "b"), ("c",)])
    return _changed(labels, classes_=np.array(["a", "a", "a"], dtype=object))


def chain():
    made = ClassifierChain(LogisticRegression()).fit(X, np.eye(3, dtype=int)[y])
    return _changed(made, chain_method_="__reduce__", estimators_=[np.array([b"x"])] * 3)


# name: (a model with which load and predict would write a file or leave an array, what it needs)
CORRUPT = {
    "a file is written": (lambda: writes_a_file(b"/tmp/loot"), "StackingClassifier"),
    "a method of a chain": (chain, "ClassifierChain"),
    "support of a function": (lambda: far_support(SVC(kernel=gaussian.RBF())), "sklearn.svm.SVC"),
    "support of one class": (
        lambda: far_support(OneClassSVM(kernel=gaussian.RBF())),
        "OneClassSVM",
    ),
    "support without classes": (without_classes, "sklearn.svm.SVC"),
    "sparse support": (sparse_support, "sklearn.svm.SVC"),
    "rare categories not enabled": (lambda: one_hot(groups_not_used), "OneHotEncoder"),
    "rare categories beyond": (
        lambda: one_hot(lambda e: {"_infrequent_indices": [np.array([2**30])] * 3}),
        "OneHotEncoder",
    ),
    "columns as an array": (
        lambda: one_hot(lambda e: {"_n_features_outs": np.array(e._n_features_outs)}),
        "OneHotEncoder",
    ),
    "categories unsorted": (
        lambda: one_hot(lambda e: {"categories_": [c[::-1].copy() for c in e.categories_]}),
        "OneHotEncoder",
    ),
    "labels repeated": (repeated_labels, "MultiLabelBinarizer"),
    "a tree": (lambda: DecisionTreeRegressor().fit(X, y), "sklearn.tree._tree.Tree"),
    "clusters": (lambda: KMeans(3, n_init=1).fit(X), "sklearn.cluster.KMeans"),
    "a vocabulary": (lambda: CountVectorizer().fit(WORDS), "CountVectorizer"),
    "a spline": (lambda: SplineTransformer().fit(X), "scipy.interpolate.BSpline"),
    "a covariance": (lambda: EmpiricalCovariance().fit(X), "EmpiricalCovariance"),
}
