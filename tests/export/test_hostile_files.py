"""Files from strangers: each attack is refused, and each would work if nobody checked.

The second half matters as much as the first: a file that is refused for another reason than the
one it was made for tests nothing.
"""

import contextlib
import json
import sys
import zipfile

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from crafted_files import (
    ALSO_REFUSED,
    CORRUPT,
    CRAFTED,
    Saved,
    out_argument,
    same_array_twice,
    sparse_map,
    writes_a_file,
)
from mercer import RBF, Kernel, KernelMap, ModelFileError, Spectrum, load, save
from mercer.estimators.trees import Trees
from mercer.export import model_table, rebuilt, registry
from mercer.export.model_files import needed_trust


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "model.mercer"


def crafted(table, kind, path):
    model, change, message = table[kind]
    saved = Saved(model(), path)
    change(saved, path.parent / "loot")
    saved.write()
    return message


@pytest.mark.parametrize("kind", [*CRAFTED, *ALSO_REFUSED])
def test_a_hostile_file_is_refused(kind, path):
    message = crafted({**CRAFTED, **ALSO_REFUSED}, kind, path)
    with pytest.raises((TypeError, ModelFileError), match=message) as refused:
        load(path)
    assert len(str(refused.value)) > 40
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]


@pytest.fixture
def gullible(monkeypatch):
    """`load` as it would be if it trusted every name, attribute, index, type and depth."""
    monkeypatch.setattr(model_table.Model, "untrusted", lambda self, root: [])
    monkeypatch.setattr(model_table.Model, "vouch", lambda self, name: None)
    monkeypatch.setattr(model_table.Model, "check_depth", lambda self, root: None)
    monkeypatch.setattr(model_table, "check_parts", lambda name, values, vouched: None)
    monkeypatch.setattr(registry, "bad_attribute", lambda cls, names, trusted: None)
    monkeypatch.setattr(rebuilt, "_expect", lambda condition, message: None)
    monkeypatch.setattr(rebuilt, "_check_indices", lambda matrix: None)
    monkeypatch.setattr(Trees, "check_nodes", lambda self: None)
    for kernel in (Kernel, *registry._subclasses(Kernel)):
        monkeypatch.setattr(kernel, "check_parameters", lambda self: None)


# Loading these without checks crashes or fails by itself; from 2.5.5 on NumPy looks at the position
# of a random state.
ONLY_WITH_CHECKS = {"array as an object", "arrays in each other"}
if np.lib.NumpyVersion(np.__version__) >= "2.5.5":
    ONLY_WITH_CHECKS |= {"random position beyond", "random position before"}


@pytest.mark.parametrize("kind", [k for k in CRAFTED if k not in ONLY_WITH_CHECKS])
def test_without_its_check_the_file_would_load(kind, path, gullible):
    crafted(CRAFTED, kind, path)
    load(path)
    ran = kind in ("os.system", "eval", "subprocess")
    assert (path.parent / "loot").exists() == ran


# --- models of scikit-learn -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", CORRUPT)
def test_models_that_would_write_or_corrupt_are_refused_by_name(kind, path):
    """No state of these classes is looked at: they are not loaded at all."""
    model, name = CORRUPT[kind]
    model = model()
    needed = needed_trust(model)
    save(model, path, trusted=needed)
    assert any(name in n for n in needed)
    with pytest.raises(TypeError, match="mercer does not vouch") as refused:
        load(path)
    assert all(n in str(refused.value) for n in needed)
    assert "whoever wrote the file" in str(refused.value)


def test_a_file_that_is_trusted_can_write_files(path):
    """What trusting means: the same file, trusted, writes when it is used."""
    loot = path.parent / "loot"
    model = writes_a_file(bytes(loot))
    save(model, path, trusted=needed_trust(model))
    with pytest.raises(TypeError, match="StackingClassifier"):
        load(path)
    assert not loot.exists()
    trusted = load(path, trusted=needed_trust(model))
    with contextlib.suppress(Exception):  # it fails after it has written
        trusted.transform(np.eye(3))
    assert loot.read_bytes() == b"written by a model"


def test_trust_is_by_name(path):
    model, _ = CORRUPT["a tree"]
    model = model()
    needed = needed_trust(model)
    save(model, path, trusted=needed)
    for name in needed:
        with pytest.raises(TypeError, match="does not vouch"):
            load(path, trusted=[n for n in needed if n != name])
    assert load(path, trusted=needed).get_depth() == model.get_depth()


def test_arrays_of_a_sparse_matrix_are_its_own(path):
    """A matrix whose data are its indices would move them whenever it is scaled."""
    saved = Saved(sparse_map(), path)
    same_array_twice(saved, None)
    saved.write()
    matrix = load(path).landmarks_
    matrix.data *= 1000
    assert matrix.indices.max() < matrix.shape[1]


def test_a_refused_kernel_does_not_load(path):
    """Its features would take minutes: the constructor's own check says so."""
    saved = Saved(Spectrum(3), path)
    saved.named("mercer.Spectrum")["attributes"]["length"] = 40
    saved.named("mercer.Spectrum")["attributes"]["mismatches"] = 39
    saved.write()
    with pytest.raises(ValueError, match="mismatches") as own:
        Spectrum(40, mismatches=39)(["ab", "cd"])
    with pytest.raises(ModelFileError, match="mismatches") as refused:
        load(path)
    assert str(own.value)[:40] in str(refused.value)


def test_deep_models_are_freed(path):
    """As deep as may be: arrays in arrays, and kernels in kernels."""
    kernel = RBF(0.5)
    for _ in range(200):
        kernel = kernel + RBF(0.5)
    save(kernel, path)
    assert load(path) == kernel
    saved = Saved(KernelMap(), path)
    saved.objects[:0] = [
        {"objects": [1], "items": [{"at": i - 1} if i else 1.0]} for i in range(40)
    ]
    saved.named("mercer.KernelMap")["attributes"]["tol"] = {"at": 39}
    saved.tree["model"] = {"at": 40}
    saved.write()
    assert load(path).tol.shape == (1,)


def test_trust_in_a_function_does_not_cover_its_arguments(path):
    """np.log1p with out= would write into an array that the file chooses."""
    saved = Saved(FunctionTransformer(np.log1p), path)
    saved.files["0.npy"] = b""
    out_argument(saved, None)
    saved.set_array({"at": 0}, np.zeros(3))
    saved.write()
    with pytest.raises(TypeError, match="FunctionTransformer"):
        load(path, trusted=["numpy.log1p"])
    both = ["numpy.log1p", "sklearn.preprocessing.FunctionTransformer"]
    assert load(path, trusted=both).func is np.log1p


def test_trust_does_not_cover_special_names(path):
    """A trusted class gets attributes of any name but Python's own."""
    saved = Saved(RBF(), path)
    saved.named("mercer.RBF")["attributes"]["__array_interface__"] = {"dict": [[], []]}
    saved.write()
    with pytest.raises(ModelFileError, match="__array_interface__"):
        load(path, trusted=["mercer.RBF"])


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"type": "mercer.RBF"},
        {"type": "mercer.RBF", "attributes": {}, "state": 1},
        {"type": ["mercer.RBF"], "attributes": {}},
        {"array": "../../etc/passwd"},
        {"array": "model.json"},
        {"array": "9.npy"},
        {"objects": [2, -1], "items": []},
        {"objects": [10**9], "items": []},
        {"made": "posix.system", "of": ["true"]},
        {"made": "mercer.KernelMap", "of": []},
        {"made": "numpy.random.RandomState", "of": []},
        {"at": 0},
        7,
        None,
    ],
    ids=str,
)
def test_entries_that_do_not_exist_are_refused(entry, path):
    saved = Saved(RBF(), path)
    saved.objects.append(entry)
    saved.write()
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


@pytest.mark.parametrize(
    "value",
    [
        {"at": 0},
        {"at": 10**6},
        {"at": -1},
        {"at": True},
        {},
        {"list": 3},
        {"list": [], "tuple": []},
        {"dict": [[1], []]},
        {"dict": [[{"list": []}], [1]]},
        {"scalar": ["<f8", "00"]},
        {"scalar": ["O", "00"]},
        {"scalar": ["V8", "00" * 8]},
        {"dtype": "i8,i8"},
        {"dtype": "{'names': ['a'], 'formats': ['O']}"},
        {"bytes": "zz"},
        {"pickle": "gASVHAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAR0cnVllIWUUpQu"},
        {"method": ["text", "format"]},
        [1, 2],
    ],
    ids=str,
)
def test_values_that_do_not_exist_are_refused(value, path):
    saved = Saved(RBF(), path)
    saved.named("mercer.RBF")["attributes"]["gamma"] = value
    saved.write()
    with pytest.raises((ModelFileError, TypeError), match=r"damaged|not a model"):
        load(path)


def test_what_is_not_a_model_is_refused(path):
    saved = Saved(RBF(), path)
    saved.tree["model"] = {"list": [{"at": 0}]}
    saved.write()
    with pytest.raises(ModelFileError, match="holds a list, which is not a model"):
        load(path)


def test_deep_nesting_is_refused(path):
    saved = Saved(RBF(), path)
    saved.write()
    deep = b'{"list": [' * 50_000 + b"]}" * 50_000
    saved.files["model.json"] = b'{"objects": [], "model": ' + deep + b"}"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in saved.files.items():
            archive.writestr(name, data)
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_arrays_of_objects_are_not_unpickled(path, tmp_path):
    saved = Saved(KernelMap().fit(np.eye(3)), path)
    array = np.array([RBF()], dtype=object)
    place = next(i for i, o in enumerate(saved.objects) if "array" in o)
    with open(tmp_path / "pickled.npy", "wb") as file:
        np.save(file, array, allow_pickle=True)
    saved.files[saved.objects[place]["array"]] = (tmp_path / "pickled.npy").read_bytes()
    saved.write()
    with pytest.raises(ModelFileError, match="allow_pickle=False"):
        load(path)


def test_names_outside_the_list_are_not_even_imported(path):
    """Importing a module runs it: the name is refused first."""
    save(RBF(), path)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(files["model.json"])
    tree["objects"][0]["type"] = "antigravity.RBF"
    files["model.json"] = json.dumps(tree).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(TypeError, match=r"trusted=\['antigravity.RBF'\]"):
        load(path)
    assert "antigravity" not in sys.modules


def test_what_is_listed_is_a_class():
    for name in registry.SKLEARN:
        assert isinstance(registry.find(name), type)
    for name, found in registry._own_classes().items():
        assert isinstance(found, type)
        assert name.startswith("mercer.")
