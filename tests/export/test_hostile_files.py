"""Files from strangers: each attack is refused, and each would work if nobody checked.

The second half matters as much as the first: a file that is refused for another reason than the
one it was made for tests nothing.
"""

import json
import sys
import zipfile

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from crafted_files import ALSO_REFUSED, CRAFTED, Saved, out_argument
from mercer import RBF, KernelMap, ModelFileError, load, save
from mercer.export import decode, rebuilt, registry


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
    """`load` as it would be if it trusted every name, attribute, index and setting."""
    monkeypatch.setattr(decode.Model, "untrusted", lambda self, root: [])
    monkeypatch.setattr(decode.Model, "vouch", lambda self, name: None)
    monkeypatch.setattr(registry, "bad_attribute", lambda cls, names, trusted: None)
    monkeypatch.setattr(decode, "check_object", lambda thing, name: None)
    monkeypatch.setattr(decode, "check_settings", lambda thing, name: None)
    monkeypatch.setattr(rebuilt, "expect", lambda condition, message: None)
    monkeypatch.setattr(rebuilt, "_check_indices", lambda matrix: None)
    monkeypatch.setattr(rebuilt, "_depth", lambda *tree: None)


# Loading these without checks crashes or fails by itself.
ONLY_WITH_CHECKS = {"array as an object"}


@pytest.mark.parametrize("kind", [k for k in CRAFTED if k not in ONLY_WITH_CHECKS])
def test_without_its_check_the_file_would_load(kind, path, gullible):
    crafted(CRAFTED, kind, path)
    load(path)
    ran = kind in ("os.system", "eval", "subprocess")
    assert (path.parent / "loot").exists() == ran


def test_trust_in_a_function_does_not_cover_its_arguments(path):
    """np.log1p with out= would write into an array that the file chooses."""
    saved = Saved(FunctionTransformer(np.log1p), path)
    saved.files["0.npy"] = b""
    out_argument(saved, None)
    saved.set_array({"at": 0}, np.zeros(3))
    saved.write()
    with pytest.raises(TypeError, match="kw_args: it hands chosen arguments"):
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


def test_what_is_listed_is_a_class_or_a_function_of_arrays():
    for name in registry.SKLEARN_NAMES:
        try:
            assert isinstance(registry.find(name), type)
        except AttributeError:
            continue  # not in every version of scikit-learn
    assert all(name.startswith("sklearn.feature_selection.") for name in registry.FUNCTIONS)
    for name, found in registry.own_classes().items():
        assert isinstance(found, type)
        assert name.startswith("mercer.")
