"""save and load: models as files that hold data and names of types, never code.

A file is a zip archive of NumPy arrays and one table, in JSON, of the objects that hold them
(model_table.py). Loading builds only types whose state is data (registry.py), each from the
attributes that it has. Everything else must be named by whoever loads the file.
"""

from __future__ import annotations

import json
import os
import warnings
import zipfile
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from io import BytesIO
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import Kernel, RKHSFunction
from ..kernels import points as pts
from .atomic import write_atomically
from .model_table import Model, Table
from .registry import public_name

# Raised whenever a newer mercer writes files that an older one would misread.
_FORMAT = 3
_HEADER = "mercer.json"
_TREE = "model.json"


class ModelFileError(ValueError):
    """Raised where `load` cannot read a file: damaged, from a newer version, or something else."""


def save(
    model: BaseEstimator | Kernel | RKHSFunction,
    path: str | bytes | os.PathLike[str],
    *,
    trusted: Iterable[str | type | Callable[..., Any]] = (),
) -> None:
    """Write a model to a file, whole or not at all.

    The new file is written beside the old one, flushed to the disk and then renamed: a process
    killed at any moment leaves the old file as it was. Arrays of torch and other backends are
    stored as NumPy arrays, so that the file loads on any machine, as a NumPy model.

    What `load` would refuse is refused here. Where it will ask for `trusted=`, a warning says so
    now, with the names.

    Parameters
    ----------
    model : kernel, estimator, pipeline of estimators, or RKHSFunction
        Fitted or not. Functions inside it (FromFunction and its like) are stored by name and must
        be defined at the top level of a module.
    path : str, bytes or path
        Where to write; ``.mercer`` is the usual ending.
    trusted : list of str or types, default=()
        Names that `load` will be given: there is no warning about these.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> from mercer import RBF, KernelMap, load, save
    >>> kernel_map = KernelMap(RBF(0.5)).fit(np.eye(3))
    >>> path = os.path.join(tempfile.mkdtemp(), "map.mercer")
    >>> save(kernel_map, path)
    >>> bool(np.all(load(path).transform(np.eye(3)) == kernel_map.transform(np.eye(3))))
    True
    """
    with pts.naming("path"):
        where = os.fspath(path)
    if isinstance(model, type) or not isinstance(model, (BaseEstimator, Kernel, RKHSFunction)):
        raise TypeError(
            f"save takes a kernel, an estimator, a pipeline or an RKHSFunction, got "
            f"{type(model).__name__} {str(model)[:60]!r}."
        )
    known = _names_of(trusted)
    table, tree, needed = _table(model)
    missing = sorted(needed - known)
    if missing:
        warnings.warn(
            f"{os.fsdecode(where)} will need load(..., trusted={missing!r}): mercer does not vouch "
            "for these names, and a file from a stranger could misuse them. "
            f"save(..., trusted={missing!r}) does without this warning.",
            stacklevel=2,
        )
    header = {"format": _FORMAT, "type": type(model).__name__}
    header |= {name: version(name) for name in ("mercer", "numpy", "scikit-learn")}
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        # ZipInfo has a fixed date: the same model gives the same bytes.
        archive.writestr(zipfile.ZipInfo(_HEADER), json.dumps(header))
        archive.writestr(zipfile.ZipInfo(_TREE), tree)
        for name, array in table.arrays.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    write_atomically(where, content.getbuffer())


def needed_trust(model: Any) -> list[str]:
    """Names that `load` must be given as `trusted` for a file of this model."""
    return sorted(_table(model)[2])


def load(
    path: str | bytes | os.PathLike[str], *, trusted: Iterable[str | type | Callable[..., Any]] = ()
) -> Any:
    """Read a model that `save` has written. No code of the file is executed.

    Without `trusted` a file may hold classes of this library, arrays, and a short list of
    scikit-learn's classes (scalers, linear models, PCA and the like); SECURITY.md
    says what is promised.

    Parameters
    ----------
    path : str, bytes or path
        A file that `save` wrote.
    trusted : list of str or types, default=()
        Further types and functions that the file may use, by their full names
        ("my_module.my_kernel", "sklearn.svm.SVC"). Whoever wrote the file then decides what these
        are given: that can run code, overwrite files or crash Python. Only for files of people you
        trust: checksums in the file find accidents, and nothing in it proves who wrote it.

    Returns
    -------
    model : as it was saved, on NumPy arrays

    Raises
    ------
    ModelFileError
        The file is damaged, comes from a newer version, or is not a file of mercer.
    TypeError
        It needs types that are not trusted; the message names them.

    Examples
    --------
    >>> from mercer import load
    >>> load(__file__)
    Traceback (most recent call last):
        ...
    mercer.export.model_files.ModelFileError: ... is not a file of mercer.save (not a zip...
    """
    with pts.naming("path"):
        name = os.fsdecode(path)
    known = _names_of(trusted)
    with open(name, "rb") as file:  # a missing file is the operating system's error
        content = file.read()
    _check_archive(content, name)
    with zipfile.ZipFile(BytesIO(content)) as archive:
        try:
            tree = json.loads(archive.read(_TREE))
            built = Model(tree["objects"], _read_array(archive), known)
            built.check_depth(tree["model"])
            missing = built.untrusted(tree["model"])
        except Exception as error:
            raise _damaged(name, error) from error
        if missing:
            raise TypeError(
                f"{name} uses {', '.join(missing)}, which mercer does not vouch for: whoever wrote "
                "the file decides what they are given, and that can run code, overwrite files or "
                "crash Python. If you trust the file's author, load with "
                f"trusted={sorted({*known, *missing})!r}."
            )
        try:
            model = built.build(tree["model"])
        except (ImportError, AttributeError) as error:
            raise ModelFileError(
                f"{name} names something that does not exist here ({error}): install or define it "
                "before loading; functions are stored by name."
            ) from error
        except Exception as error:  # whatever a damaged file makes of its reader
            raise _damaged(name, error) from error
    if not isinstance(model, (BaseEstimator, Kernel, RKHSFunction)):
        raise ModelFileError(f"{name} holds a {type(model).__name__}, which is not a model.")
    return model


def _names_of(trusted):
    if isinstance(trusted, (str, bool)) or not np.iterable(trusted):
        raise TypeError(
            f"trusted must be a list of names such as ['my_module.my_kernel'], got {trusted!r}."
        )
    bad = [t for t in trusted if not isinstance(t, str) and not hasattr(t, "__name__")]
    if bad:
        raise TypeError(f"trusted must hold names, types or functions, got {bad[0]!r}.")
    return frozenset(t if isinstance(t, str) else public_name(t) for t in trusted)


def _table(model):
    """(the table, its JSON, the names that whoever loads it must trust), built once as `load` will:
    what it would refuse is refused here."""
    table = Table()
    try:
        root = table.value(model)
        tree = json.dumps({"objects": table.entries, "model": root})
        built = Model(json.loads(tree)["objects"], table.arrays.__getitem__)
        built.check_depth(root)
        built.trusted = frozenset(built.names(root))
        built.build(root)
    except RecursionError:
        raise ValueError(
            "model is nested too deeply to be saved: kernels of several hundred terms are best "
            "written with fewer operators."
        ) from None
    except ValueError as error:
        raise ValueError(f"model cannot be saved, since load would refuse it: {error}") from error
    return table, tree, built.trusted


def _read_array(archive):
    def read(name: str):
        if not name.endswith(".npy"):
            raise ValueError(f"an array in {name!r}")
        with archive.open(name) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        if array.dtype.itemsize == 0 < array.size:
            raise ValueError(f"an array of {array.size} empty items")
        return array

    return cache(read)


def _check_archive(content, path):
    """Refuse what is not a mercer file, is damaged, or comes from a newer version."""
    if not content.startswith(b"PK\x03\x04"):
        raise ModelFileError(
            f"{path} is not a file of mercer.save (not a zip archive). Pickles are read by pickle "
            "or joblib, which execute code: only from sources you trust."
        )
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            names = archive.namelist()
            # save stores as is; anything compressed could unfold to any size.
            packed = [i.filename for i in archive.infolist() if i.compress_type or i.flag_bits & 1]
            damaged = archive.testzip() if not packed else None
            header = json.loads(archive.read(_HEADER)) if _HEADER in names and not packed else None
    except Exception as error:  # a damaged zip fails in many ways
        raise _damaged(path, error) from error
    if header is None or packed:
        kind = "a skops file: use skops.io.load" if "schema.json" in names else "a zip archive"
        raise ModelFileError(f"{path} was not written by mercer.save; it may be {kind}.")
    if damaged is not None:
        raise _damaged(path, f"{damaged} has a wrong checksum")
    found = header.get("format") if isinstance(header, dict) else None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise _damaged(path, f"format {found!r}")
    if found != _FORMAT:
        older = "Read it with the version that wrote it, or fit the model again and save it."
        raise ModelFileError(
            f"{path} has format {found}, written by mercer {header.get('mercer', '?')}; mercer "
            f"{version('mercer')} reads format {_FORMAT} only. "
            + (older if found < _FORMAT else "Upgrade mercer.")
        )


def _damaged(path, reason):
    return ModelFileError(
        f"{path} is damaged, or was changed after mercer.save wrote it ({str(reason)[:200]}). "
        "Restore it from a copy, or save the model again."
    )
