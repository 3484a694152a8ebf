"""Saved models: they come back as they were, survive a crash, and never run code."""

import json
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA
from sklearn.gaussian_process import kernels as gp
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mercer
from every_kernel import EVERY_KERNEL, common_letters, points_for
from mercer import (
    RBF,
    ClassicalMDS,
    FromFeatures,
    FromFunction,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    ModelFileError,
    OnColumns,
    Polynomial,
    Precomputed,
    RKHSFunction,
    WeisfeilerLehman,
    load,
    save,
)
from mercer.engine.arrays import TravelsAsNumPy
from mercer.export import registry
from mercer.export.model_files import _FORMAT, _HEADER

FUNCTIONS = [
    f"every_kernel.{name}"
    for name in (
        "common_letters",
        "damping",
        "doubled",
        "letter_counts",
        "product_matrix",
        "two_features",
    )
]


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 4))


@pytest.fixture
def y(X):
    return (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mercer"


def answers(model, X):
    """What a model says of points, whatever kind of model it is."""
    if isinstance(model, RKHSFunction):
        return [model(X)]
    names = ("predict", "transform", "decision_function", "predict_proba", "residual")
    return [getattr(model, n)(X) for n in names if callable(getattr(model, n, None))]


def assert_same_answers(model, other, X):
    ours, theirs = answers(model, X), answers(other, X)
    assert ours
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)  # to the bit


# --- coming back as it was ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_every_kernel_comes_back(kernel, path):
    save(kernel, path, trusted=FUNCTIONS)
    assert load(path, trusted=FUNCTIONS) == kernel


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_every_map_comes_back(kernel, path):
    X = points_for(kernel)
    kernel_map = KernelMap(kernel, indefinite="clip").fit(X)
    save(kernel_map, path, trusted=FUNCTIONS)
    same = load(path, trusted=FUNCTIONS)
    assert np.array_equal(same.transform(X), kernel_map.transform(X))
    assert same.get_params(deep=False).keys() == kernel_map.get_params(deep=False).keys()
    assert same.kernel_ == kernel_map.kernel_


MODELS = [
    *(
        KernelMap(RBF(0.2), basis=basis, center=center, append_residual=residual)
        for basis in ("cholesky", "eigen", "symmetric")
        for center in (False, True)
        for residual in (False, True)
    ),
    KernelMap(Polynomial(2), basis="closed", center=True),
    KernelMap(max_rank=7, pivots="random", random_state=np.random.RandomState(3)),
    KernelMap("sigmoid", indefinite="flip"),
    KernelMap(gp.RBF(2.0) + 0.5 * gp.DotProduct()),
    KernelPCA(3),
    KernelPCA(3, solver="factor"),
    KernelPCAL1(2),
    KernelDiscriminant(),
    KernelRidge(),
    KernelRidge(form="dual"),
    KernelRidge(form="iterative"),
    KernelRidge(form="primal"),
    KernelRidgeCV([0.1, 1.0]),
    ClassicalMDS(2),
    Kernelized(LogisticRegression(), RBF(0.3)),
    Kernelized(LinearSVC(), KernelMap(RBF(0.3), max_rank=20)),
    Kernelized(PCA(2)),
    make_pipeline(StandardScaler(), KernelMap(), LogisticRegression()),
    make_pipeline(StandardScaler(), Kernelized(Ridge(), RBF(0.3) + Linear())),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: repr(m)[:60])
def test_every_estimator_comes_back(model, X, y, path):
    model.fit(X, y)
    save(model, path)
    assert_same_answers(model, load(path), X)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: repr(m)[:60])
def test_pickle_and_joblib_work_too(model, X, y, path):
    model.fit(X, y)
    assert_same_answers(model, pickle.loads(pickle.dumps(model)), X)
    joblib.dump(model, path)
    assert_same_answers(model, joblib.load(path), X)


def test_an_unfitted_model_comes_back_and_fits(X, path):
    save(KernelMap(RBF("median"), append_residual=True), path)
    same = load(path)
    assert same.get_params()["append_residual"] is True
    assert same.fit(X).transform(X).shape[1] == same.rank_ + 1


@pytest.mark.parametrize("format", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_sparse_landmarks_come_back(format, X, path):
    kernel_map = KernelMap().fit(format(X))
    save(kernel_map, path)
    assert type(load(path).landmarks_) is format
    assert_same_answers(kernel_map, load(path), format(X))


def test_frames_strings_and_gram_matrices_come_back(X, path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = KernelMap(OnColumns(RBF(), ["b", "a"])).fit(frame)
    save(model, path)
    assert_same_answers(model, load(path), frame)
    assert list(load(path).feature_names_in_) == list("abcd")
    gram = KernelMap(Precomputed()).fit(X @ X.T)
    save(gram, path)
    assert np.array_equal(load(path).transform(X @ X.T), gram.transform(X @ X.T))


def test_functions_of_the_space_come_back(X, path):
    f = RKHSFunction(RBF(0.3), X, np.arange(40.0), intercept=2.0)
    save(f, path)
    assert_same_answers(f, load(path), X)


def test_memory_maps_and_learned_preimages_come_back(X, tmp_path, path):
    np.save(tmp_path / "X.npy", X)
    kernel_map = KernelMap().fit(np.load(tmp_path / "X.npy", mmap_mode="r"))
    back = kernel_map.inverse_transform(kernel_map.transform(X))
    save(kernel_map, path)
    assert np.array_equal(load(path).inverse_transform(kernel_map.transform(X)), back)


def test_the_same_model_gives_the_same_bytes(X, path, tmp_path):
    save(KernelMap().fit(X), path)
    save(KernelMap().fit(X), tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_files_use_public_names(X, path):
    """So that a class may move between modules, and old files still load."""
    save(make_pipeline(StandardScaler(), KernelPCA(2)).fit(X), path)
    with zipfile.ZipFile(path) as archive:
        objects = json.loads(archive.read("model.json"))["objects"]
    names = {o["type"] for o in objects if "type" in o}
    assert {"mercer.KernelPCA", "sklearn.pipeline.Pipeline"} <= names
    assert all(n.count(".") == 1 for n in names if n.startswith("mercer."))


def test_files_name_classes_without_an_underscore(X, path):
    save(KernelRidge().fit(X, X[:, 0]), path)
    with zipfile.ZipFile(path) as archive:
        objects = json.loads(archive.read("model.json"))["objects"]
    assert "mercer.DirectSolution" in {o.get("type") for o in objects}


def test_every_class_has_a_name_of_its_own():
    found = [c for root in registry.ROOTS for c in registry._subclasses(root)]
    ours = {c for c in found if c.__module__.startswith("mercer.")}
    assert len(registry._own_classes()) == len(ours)


def test_a_fresh_process_knows_every_class():
    """Those of modules that are imported when first used, too."""
    code = (
        "import mercer.export.registry as r; few = set(r._own_classes())\n"
        "import pkgutil, importlib, mercer\n"
        "for folder in ('space', 'solve', 'learn', 'kernels'):\n"
        "    for m in pkgutil.iter_modules([f'{mercer.__path__[0]}/{folder}']):\n"
        "        importlib.import_module(f'mercer.{folder}.{m.name}')\n"
        "print(set(r._own_classes()) - few)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_dataclasses_are_stored_by_their_fields(path):
    @dataclass(frozen=True)
    class Pair(TravelsAsNumPy):
        first: object
        second: object

    Pair.__module__, Pair.__qualname__ = "mercer.somewhere", "Pair"
    save(KernelMap(tol=Pair(np.eye(2), "b")), path)
    found = load(path).tol
    assert type(found) is Pair
    assert (found.first == np.eye(2)).all()
    assert found.second == "b"


class Curve:
    """A class whose state is not a dictionary, as that of SciPy's splines is."""

    def __init__(self, knots):
        self.knots = knots

    def __getstate__(self):
        return (self.knots,)

    def __setstate__(self, state):
        (self.knots,) = state


def test_a_trusted_class_is_made_as_pickle_makes_it(path):
    save(KernelMap(tol=Curve([1.0, 2.0])), path, trusted=[Curve])
    assert load(path, trusted=[Curve]).tol.knots == [1.0, 2.0]


def test_what_is_shared_stays_shared(X, path):
    scaler = StandardScaler()
    save(make_pipeline(scaler, scaler), path)
    steps = load(path).steps
    assert steps[0][1] is steps[1][1]


def test_a_model_that_holds_itself_is_refused(path):
    model = KernelMap()
    model.kernel = [model]
    with pytest.raises(TypeError, match="holds itself"):
        save(model, path)


def test_a_model_on_networkx_graphs_says_how_it_can_be_saved(path):
    nx = pytest.importorskip("networkx")
    model = KernelMap(WeisfeilerLehman(1)).fit([nx.path_graph(3), nx.cycle_graph(3)])
    with pytest.raises(TypeError, match="a pair of edges and node labels"):
        save(model, path)


def test_saving_changes_nothing_in_the_model(X, path):
    kernel_map = KernelMap().fit(X)
    before = dict(vars(kernel_map))
    save(kernel_map, path)
    assert vars(kernel_map).keys() == before.keys()
    assert all(vars(kernel_map)[name] is value for name, value in before.items())


# --- models of other backends ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        KernelMap(RBF(0.3), basis="eigen", center=True),
        KernelMap(Polynomial(2), basis="closed"),
        KernelMap("sigmoid", indefinite="clip"),
        KernelPCA(2),
        KernelPCAL1(2),
        KernelDiscriminant(),
        KernelRidge(),
    ],
    ids=repr,
)
def test_tensors_are_stored_as_numpy_arrays(model, X, y, path):
    torch = pytest.importorskip("torch")
    model.fit(torch.tensor(X), torch.tensor(y))
    save(model, path)
    same = load(path)
    for a, b in zip(answers(same, X), answers(model, torch.tensor(X))):
        assert isinstance(a, np.ndarray)
        np.testing.assert_allclose(a, b.cpu().numpy(), rtol=1e-9, atol=1e-9)


def test_a_model_of_tensors_loads_where_there_is_no_torch(X, path):
    torch = pytest.importorskip("torch")
    save(KernelMap(RBF(0.3)).fit(torch.tensor(X)), path)
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] == 'torch': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "import mercer, numpy as np\n"
        "m = mercer.load(sys.argv[1])\n"
        "Phi = m.transform(np.ones((2, 4)))\n"
        "assert type(Phi) is np.ndarray and Phi.shape == (2, m.rank_)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


# --- functions -----------------------------------------------------------------------------------


def test_a_function_needs_a_name(path):
    def local(a, b):
        return 1.0

    for f in (lambda a, b: 1.0, local):
        with pytest.raises(TypeError, match=r"FromFunction\.f is the function .* top level"):
            save(FromFunction(f), path)
        assert not path.exists()


def test_a_function_by_name_needs_trust(path):
    save(
        KernelMap(FromFunction(common_letters)).fit(["ab", "bc", "a"]),
        path,
        trusted=[common_letters],
    )
    with pytest.raises(TypeError, match=r"trusted=\['every_kernel.common_letters'\]"):
        load(path)
    for trusted in (["every_kernel.common_letters"], [common_letters]):
        assert load(path, trusted=trusted).rank_ == 3


def test_methods_of_estimators_need_trust(X, path):
    name = "sklearn.preprocessing.StandardScaler.transform"
    save(FromFeatures(StandardScaler().fit(X).transform), path, trusted=[name])
    with pytest.raises(TypeError, match=r"StandardScaler\.transform"):
        load(path)


@pytest.mark.parametrize("trusted", [True, "os.system", 3])
def test_trust_is_given_by_name(trusted, X, path):
    save(RBF(), path)
    with pytest.raises(TypeError, match="trusted must be a list of names"):
        load(path, trusted=trusted)


@pytest.mark.parametrize("thing", [None, "rbf", {"a": RBF()}, RBF, np.eye(2)], ids=str)
def test_what_is_no_model_is_refused(thing, path):
    with pytest.raises(TypeError, match="save takes a kernel, an estimator"):
        save(thing, path)


# --- files from strangers: see also test_hostile_files.py -----------------------------------------


def test_a_hidden_kernel_function_is_found_by_the_audit(path):
    """os.system as the function of a kernel, deep inside a pipeline."""
    model = make_pipeline(StandardScaler(), KernelMap(RBF() + FromFunction(os.system)))
    save(model, path, trusted=[os.system])
    with pytest.raises(TypeError, match="system"):
        load(path)


def test_compressed_archives_are_refused(path, X):
    save(KernelMap().fit(X), path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    with pytest.raises(ModelFileError, match=r"not written by mercer\.save"):
        load(path)


# --- damaged, newer and foreign files -------------------------------------------------------------


def test_a_newer_format_says_so(path):
    save(RBF(), path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(content[_HEADER]) | {"format": _FORMAT + 1, "mercer": "9.9"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, json.dumps(header) if name == _HEADER else data)
    with pytest.raises(ModelFileError, match=r"written by mercer 9\.9.*Upgrade mercer"):
        load(path)


def test_the_header_says_what_wrote_the_file(path):
    save(RBF(), path)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read(_HEADER))
    assert header["format"] == _FORMAT
    assert header["mercer"] == mercer.__version__
    assert header["type"] == "RBF"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a file of mercer.save"),
        (b"hello", "not a file of mercer.save"),
        (pickle.dumps(RBF()), "Pickles are read by pickle"),
        (b"PK\x03\x04" + bytes(100), "damaged"),
    ],
)
def test_foreign_files_are_named(content, message, path):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_a_skops_file_is_told_apart(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(ModelFileError, match=r"skops\.io\.load"):
        load(path)


def test_the_first_format_is_named(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
        archive.writestr(_HEADER, json.dumps({"format": 1, "mercer": "0.1.0"}))
    with pytest.raises(ModelFileError, match=r"format 1, written by mercer 0\.1\.0.*fit the model"):
        load(path)


def test_every_cut_and_every_flipped_byte_is_noticed_or_harmless(path, X):
    """A damaged file is refused with a message, or loads as the same model (spare zip bytes)."""
    model = KernelMap(RBF(0.3), max_rank=5).fit(X)
    save(model, path)
    whole, expected = path.read_bytes(), model.transform(X)
    rng, messages = random.Random(0), []
    damaged = [whole[: rng.randrange(len(whole))] for _ in range(60)]
    for position in rng.sample(range(len(whole)), 240):
        damaged.append(
            whole[:position]
            + bytes([whole[position] ^ rng.randrange(1, 256)])
            + whole[position + 1 :]
        )
    for content in damaged:
        path.write_bytes(content)
        try:
            same = load(path)
        except ModelFileError as error:
            messages.append(str(error))
        else:
            assert np.array_equal(same.transform(X), expected)
    assert len(messages) > 0.8 * len(damaged)
    assert min(map(len, messages)) > 40
    print(f"{len(damaged)} damaged files, {len(messages)} refused, the rest load as they were")


# --- crashes --------------------------------------------------------------------------------------


needs_fork = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    # The children only write files: no lock of another thread is in their way.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def forked(work):
    """The id of a child process that does the work and ends."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        os._exit(1)


def status_of(child):
    return os.waitpid(child, 0)[1]


class TestKilled:
    pytestmark = needs_fork

    def test_at_any_byte_the_old_file_stays_whole(self, path, X):
        """The kernel kills the child at the write that passes a limit of bytes."""
        old, new = KernelMap(RBF(0.3)).fit(X), KernelMap(RBF(0.7)).fit(X)

        def save_up_to(limit):
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            save(new, path)

        save(new, path)
        size = path.stat().st_size
        save(old, path)
        before, rng = path.read_bytes(), random.Random(1)
        limits = [0, 1, size - 1, *(rng.randrange(size) for _ in range(60))]
        for limit in limits:
            status = status_of(forked(lambda limit=limit: save_up_to(limit)))
            assert os.WIFSIGNALED(status)  # it died in the middle of its write
            assert path.read_bytes() == before, f"killed at byte {limit}"
        assert status_of(forked(lambda: save_up_to(10 * size))) == 0
        assert_same_answers(load(path), new, X)

    def test_at_any_moment_a_whole_file_stays(self, path, X):
        models = [KernelMap(RBF(gamma)).fit(X) for gamma in (0.3, 0.7)]
        expected, rng = [m.transform(X) for m in models], random.Random(2)

        def save_for_ever(started):
            while True:
                for model in models:
                    save(model, path)
                os.write(started, b".")

        for _ in range(30):
            save(RBF(), path)
            reader, writer = os.pipe()
            child = forked(lambda writer=writer: save_for_ever(writer))
            os.read(reader, 1)
            time.sleep(rng.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
            assert os.WIFSIGNALED(status_of(child))
            os.close(reader)
            os.close(writer)
            found = load(path).transform(X)
            assert any(np.array_equal(found, e) for e in expected)


def test_a_full_disk_leaves_the_old_file_and_no_litter(path, X, monkeypatch):
    save(RBF(0.5), path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(KernelMap().fit(X), path)
    assert load(path) == RBF(0.5)
    assert os.listdir(path.parent) == [path.name]


def test_links_and_permissions_stay(path, tmp_path):
    save(RBF(0.5), path)
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    save(RBF(0.7), link)
    assert link.is_symlink()
    assert load(path) == RBF(0.7)
    assert path.stat().st_mode & 0o777 == 0o640


def test_places_that_cannot_be_written_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; make it"):
        save(RBF(), tmp_path / "nowhere" / "model")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(RBF(), tmp_path)
    with pytest.raises(FileNotFoundError, match="nothing_here"):
        load(tmp_path / "nothing_here")
