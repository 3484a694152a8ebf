"""Changes that an attacker makes to a saved model: other things in its slots, names of methods,
indices far outside, arrays that are shared, classes that call what they are told to.

Random changes find none of these: there was no attack among 1505 of them.
"""

import io
import json
import random

import numpy as np

METHODS = ["tofile", "__deepcopy__", "dump", "__reduce__", "__class__", "predict", "fit", "resize"]
FUNCTIONS = ["numpy.save", "numpy.ndarray.tofile", "os.system", "builtins.open", "builtins.exec"]
TYPES = ["bytes", "str", "object", "int"]
CALLERS = {
    "sklearn.ensemble.StackingClassifier": ["estimators_", "stack_method_", "final_estimator_"],
    "sklearn.multioutput.ClassifierChain": ["estimators_", "chain_method_"],
    "sklearn.preprocessing.FunctionTransformer": ["func", "kw_args"],
    "sklearn.svm.SVC": ["support_", "_n_support", "kernel"],
    "sklearn.preprocessing.OneHotEncoder": ["_infrequent_indices", "_n_features_outs"],
    "sklearn.preprocessing.MultiLabelBinarizer": ["classes_", "_cached_dict"],
    "sklearn.tree._tree.Tree": ["nodes"],
    "sklearn.covariance.EmpiricalCovariance": ["precision_"],
}
# Attributes by which some class calls, reads files, or hands arrays to compiled code.
SETTINGS = ["memory", "warm_start", "metric", "metric_params", "kernel", "estimator", "estimator_"]
SETTINGS += ["kernel_", "encoder_", "f", "g", "func", "steps", "random_state", "_scaler", "k1"]


def attacked(files: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """The files of a model after one attack."""
    files = dict(files)
    tree = json.loads(files["model.json"])
    rng.choice(ATTACKS)(tree, files, rng)
    files["model.json"] = json.dumps(tree).encode()
    return files


# --- attacks --------------------------------------------------------------------------------------


def other_thing(tree, files, rng):
    """Something else in a slot, or in an attribute that the class may ask for."""
    attributes = rng.choice(_objects(tree))["attributes"]
    names = [*attributes, *(SETTINGS if rng.random() < 0.5 or not attributes else [])]
    attributes[rng.choice(names)] = _hostile(tree, files, rng)


def thing_inside(tree, files, rng):
    """Something else among the items of a list, a tuple or an array of objects."""
    found = [part for part in _walk(tree["objects"]) if isinstance(part, list) and part]
    items = rng.choice(found or [[None]])
    items[rng.randrange(len(items))] = _hostile(tree, files, rng)


def name_of_a_method(tree, files, rng):
    """Wherever a word stands."""
    words = [
        (part, key)
        for part in _walk(tree["objects"])
        for key in (part if isinstance(part, dict) else range(len(part)))
        if isinstance(part[key], str) and key not in ("type", "made", "array")
    ]
    if words:
        part, key = rng.choice(words)
        part[key] = rng.choice(METHODS)


def far_indices(tree, files, rng):
    """Whole numbers far outside, unsorted or repeated."""
    name, array = _some_array(files, rng, "iu")
    if array is not None and array.size:
        change = rng.randrange(5)
        if change == 0:
            array = array + np.array(2**28).astype(array.dtype)
        elif change == 1:
            array = -array - 1
        elif change == 2:
            array = array[::-1].copy()
        elif change == 3:
            array = np.zeros_like(array)
        else:
            array.flat[rng.randrange(array.size)] = 2**31 - 1
        files[name] = _npy(array)


def wild_numbers(tree, files, rng):
    """Real numbers that become indices when they are rounded; arrays of other shapes."""
    name, array = _some_array(files, rng, "f")
    if array is not None:
        changes = [array * 1e30, np.full_like(array, np.nan), array[..., :1], array.T]
        changes += [array.astype("i8"), array.astype("S8"), np.zeros((0,)), array[None]]
        files[name] = _npy(np.ascontiguousarray(rng.choice(changes)))


def shared_arrays(tree, files, rng):
    """The same array twice: what changes one changes the other."""
    holders = [o for o in tree["objects"] if "of" in o or "attributes" in o]
    parts = rng.choice(holders)
    parts = parts.get("of") or parts.get("attributes")
    keys = list(parts) if isinstance(parts, dict) else range(len(parts))
    places = [k for k in keys if isinstance(parts[k], dict) and set(parts[k]) == {"at"}]
    if len(places) > 1:
        a, b = rng.sample(places, 2)
        parts[a] = parts[b]


def nested(tree, files, rng):
    """Arrays of objects, or lists, in each other."""
    n = rng.choice([10, 60, 1000, 20_000])
    start = len(tree["objects"])
    for i in range(n):
        item = {"at": start + i - 1} if i else 1.0
        tree["objects"].append({"objects": [1], "items": [item]})
    model = tree["objects"].pop(start - 1)
    for part in tree["objects"][start - 1 :]:
        for item in part["items"]:
            if isinstance(item, dict):
                item["at"] -= 1
    tree["objects"].append(model)
    tree["model"] = {"at": len(tree["objects"]) - 1}
    if model.get("attributes"):
        key = rng.choice(list(model["attributes"]))
        model["attributes"][key] = {"at": len(tree["objects"]) - 2}


def caller(tree, files, rng):
    """An object of a class that calls or indexes as it is told, in the place of another one."""
    name = rng.choice(list(CALLERS))
    chosen = rng.choice(_objects(tree))
    chosen["type"] = name
    for key in CALLERS[name]:
        chosen["attributes"][key] = _hostile(tree, files, rng)


def parameters(tree, files, rng):
    """Numbers that a constructor refuses."""
    attributes = rng.choice(_objects(tree))["attributes"]
    numbers = [k for k, v in attributes.items() if isinstance(v, (int, float))]
    if numbers:
        attributes[rng.choice(numbers)] = rng.choice([-1, 0, 10**6, 2**62, 1e308, -1e-300])


ATTACKS = [
    other_thing,
    other_thing,
    thing_inside,
    name_of_a_method,
    far_indices,
    wild_numbers,
    shared_arrays,
    nested,
    caller,
    parameters,
]


# --- parts ----------------------------------------------------------------------------------------


def _hostile(tree, files, rng):
    """An array of bytes, a type, a function, a method, an object, a list of them."""
    array = {"at": _added(tree, files)}
    values = [
        array,
        {"class": f"builtins.{rng.choice(TYPES)}"},
        {"function": rng.choice(FUNCTIONS)},
        {"method": [array, rng.choice(METHODS)]},
        rng.choice(METHODS),
        {"list": [array, rng.choice(METHODS)]},
        {"list": [{"tuple": ["a", array]}]},
        {"dict": [["VI", "out", "p"], [array, array, -1]]},
        {"at": rng.randrange(len(tree["objects"]))},
        True,
        2**40,
        {"class": "mercer.KernelMap"},
        {"class": "sklearn.preprocessing.StandardScaler"},
    ]
    return rng.choice(values)


def _added(tree, files):
    """The place of an array of bytes, before all others."""
    name = f"hostile{len(files)}.npy"
    files[name] = _npy(np.array([b"/tmp/loot"]))
    for part in _walk(tree):
        if isinstance(part, dict) and set(part) == {"at"} and isinstance(part["at"], int):
            part["at"] += 1
    tree["objects"].insert(0, {"array": name})
    return 0


def _objects(tree):
    return [o for o in tree["objects"] if "attributes" in o]


def _some_array(files, rng, kinds):
    found = []
    for name in files:
        if name.endswith(".npy"):
            array = np.load(io.BytesIO(files[name]))
            if array.dtype.kind in kinds:
                found.append((name, array))
    return rng.choice(found) if found else (None, None)


def _walk(part):
    left = [part]
    while left:
        part = left.pop()
        yield part
        inner = part.values() if isinstance(part, dict) else part
        left += [p for p in inner if isinstance(p, (dict, list))]


def _npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
