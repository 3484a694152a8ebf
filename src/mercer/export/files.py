"""save and load: models as files that hold data and names of types, never code.

The carrier is skops: a zip archive of NumPy arrays and one JSON tree that names the type of every
object. Loading builds only types that are trusted beforehand: scikit-learn's, NumPy's and this
library's own, listed here one by one. Everything else must be named by whoever loads the file.
"""

import json
import os
import secrets
import sys
import types
import zipfile
from functools import cache
from importlib.metadata import version
from io import BytesIO

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

from ..engine.arrays import as_numpy, is_array
from ..estimators.preimage import Ridge
from ..expansion import Expansion, RKHSFunction
from ..feature_map import FeatureMap, LinearOnMap
from ..kernels import Kernel
from ..kernels.adapters import GramColumns
from ..kernels.points import naming
from ..solve.direct import Shifted
from ..space.certificate import Radii
from ..space.corrected import Corrected
from ..space.landmarks import Landmarks
from ..space.own_features import OwnFeatures

# Raised whenever a newer mercer writes files that an older one would misread.
FORMAT = 1
HEADER = "mercer.json"
# What estimators keep inside them, beside kernels, arrays and other estimators.
PARTS = (
    Corrected,
    Expansion,
    FeatureMap,
    GramColumns,
    Landmarks,
    LinearOnMap,
    OwnFeatures,
    Radii,
    Ridge,
    RKHSFunction,
    Shifted,
)


class ModelFileError(ValueError):
    """A file that `load` cannot read: damaged, written by a newer version, or something else."""


def save(model, path):
    """Write a model to a file, whole or not at all.

    The new file is written beside the old one, flushed to the disk and then renamed: a process
    killed at any moment leaves the old file as it was. Arrays of torch and other backends are
    stored as NumPy arrays, so that the file loads on any machine, as a NumPy model.

    Parameters
    ----------
    model : kernel, estimator, pipeline of estimators, or RKHSFunction
        Fitted or not. Functions inside it (FromFunction and its like) are stored by name and must
        be defined at the top level of a module.
    path : str or path

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
    skops_io = _skops()
    with naming("path"):
        path = os.fspath(path)
    if isinstance(model, type) or not isinstance(model, (BaseEstimator, RKHSFunction)):
        raise TypeError(
            f"save takes a kernel, an estimator, a pipeline or an RKHSFunction, got "
            f"{type(model).__name__} {str(model)[:60]!r}."
        )
    content = BytesIO()
    skops_io.dump(_Portable().of(model), content)
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr(HEADER, json.dumps(_header(model)))
    _write_atomically(path, content.getbuffer())


def load(path, *, trusted=()):
    """Read a model that `save` has written. No code of the file is executed.

    Parameters
    ----------
    path : str or path
    trusted : list of str or types, default=()
        Further types and functions that the file may use, by their full names
        ("my_module.my_kernel"). Look at them first: they are what could run code.

    Returns
    -------
    model : as it was saved, on NumPy arrays

    Raises
    ------
    ModelFileError
        The file is damaged, comes from a newer version, or is no mercer file.
    TypeError
        It needs types that are not trusted; the message names them.

    Examples
    --------
    >>> from mercer import load
    >>> load(__file__)
    Traceback (most recent call last):
        ...
    mercer.export.files.ModelFileError: ... is no file of mercer.save (not a zip archive)...
    """
    skops_io = _skops()
    with naming("path"):
        path = os.fspath(path)
    trusted = _names_of(trusted)
    with open(path, "rb") as file:  # a missing file is the operating system's error
        content = file.read()
    _check_archive(content, path)
    try:
        model = skops_io.loads(content, trusted=[*own_types(), *trusted])
    except TypeError as error:
        if type(error).__name__ == "UntrustedTypesFoundException":
            raise _untrusted(content, trusted, path) from None
        raise _damaged(path, error) from error
    except (ImportError, AttributeError) as error:
        raise ModelFileError(
            f"{path} names something that does not exist here ({error}): install or define it "
            "before loading; functions are stored by name."
        ) from error
    except Exception as error:  # whatever a damaged file makes of its reader
        raise _damaged(path, error) from error
    if not isinstance(model, (BaseEstimator, RKHSFunction)):
        raise ModelFileError(f"{path} holds a {type(model).__name__}, which is no model.")
    return model


# --- what may be loaded ---------------------------------------------------------------------------


@cache
def own_types():
    """Full names of this library's types, and of scikit-learn's Gaussian-process kernels, which
    FromSklearn holds: all of them are parameters and arrays, and none runs code when it is made.
    """
    import sklearn.gaussian_process.kernels as gp

    ours = [c for base in (Kernel, BaseEstimator) for c in _subclasses(base)]
    ours = [c for c in ours if c.__module__.split(".")[0] == "mercer"]
    theirs = [c for c in _subclasses(gp.Kernel) if c.__module__ == gp.__name__]
    sparse = [scipy.sparse.csr_array, scipy.sparse.csr_matrix]  # what sparse landmarks are
    listed = [*ours, *PARTS, *theirs, gp.Hyperparameter, *sparse]
    return tuple(sorted({f"{c.__module__}.{c.__qualname__}" for c in listed}))


def _subclasses(base):
    for c in base.__subclasses__():
        yield c
        yield from _subclasses(c)


def _names_of(trusted):
    if isinstance(trusted, (str, bool)) or not np.iterable(trusted):
        raise TypeError(
            f"trusted must be a list of names such as ['my_module.my_kernel'], got {trusted!r}."
        )
    bad = [t for t in trusted if not isinstance(t, str) and not hasattr(t, "__qualname__")]
    if bad:
        raise TypeError(f"trusted must hold names, types or functions, got {bad[0]!r}.")
    return [t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}" for t in trusted]


def _untrusted(content, trusted, path):
    found = _skops().get_untrusted_types(data=content)
    missing = [name for name in found if name not in {*own_types(), *trusted}]
    return TypeError(
        f"{path} uses {', '.join(missing)}, which neither mercer, scikit-learn nor NumPy vouch "
        f"for. If you know what they do, load with trusted={missing!r}."
    )


# --- what is stored -------------------------------------------------------------------------------


class _Portable:
    """A copy of a model with all arrays on the host, and functions that can be found by name."""

    def __init__(self):
        self.done = {}

    def of(self, value, where="model"):
        if id(value) not in self.done:
            # The value is kept with its copy, lest another one get its id.
            self.done[id(value)] = (value, self._copied(value, where))
        return self.done[id(value)][1]

    def _copied(self, value, where):
        if is_array(value) and not isinstance(value, np.generic):
            return self._array(value, where)
        if isinstance(value, dict):
            return type(value)((k, self.of(v, f"{where}[{k!r}]")) for k, v in value.items())
        if type(value) in (list, tuple):
            return type(value)(self.of(v, f"{where}[{i}]") for i, v in enumerate(value))
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            return _named(value, where)
        if isinstance(value, (BaseEstimator, *PARTS)):
            copy = object.__new__(type(value))
            for name, attribute in vars(value).items():
                if name.startswith("_cached"):
                    continue  # made again when needed
                vars(copy)[name] = self.of(attribute, f"{type(value).__name__}.{name}")
            if "_array_kind" in vars(copy):
                vars(copy)["_array_kind"] = ("numpy", "cpu")
            return copy
        return value

    def _array(self, value, where):
        array = np.asarray(as_numpy(value))  # of memory maps and tensors too
        if array.dtype == object:
            for i, item in enumerate(array.flat):
                self.of(item, f"{where}[{i}]")
        return array


def _named(function, where):
    """The function, if its name leads back to it: a file stores names, not code."""
    module, name = function.__module__, function.__qualname__
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function:
        raise TypeError(
            f"{where} is the function {name}, which a file cannot hold: files store names, not "
            "code. Define it with def at the top level of a module; whoever loads the file then "
            "passes trusted=['module.function']."
        )
    return function


def _header(model):
    return {
        "format": FORMAT,
        "type": type(model).__name__,
        "mercer": version("mercer"),
        "numpy": np.__version__,
        "scikit-learn": version("scikit-learn"),
        "skops": version("skops"),
    }


# --- the file -------------------------------------------------------------------------------------


def _write_atomically(path, data):
    """All of the data under this name, or what was there before."""
    path = os.path.realpath(os.fspath(path))  # the file behind a link, not the link
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; save needs the name of a file.")
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"the folder {folder} does not exist; make it before saving.")
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    # Created as any new file is, with the permissions that the user's mask leaves.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


_BINARY = getattr(os, "O_BINARY", 0)


def _sync_folder(folder):
    """The rename itself, on the disk; not every system opens folders."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _check_archive(content, path):
    """Refuse what is no mercer file, is damaged, or comes from a newer version."""
    if not content.startswith(b"PK\x03\x04"):
        raise ModelFileError(
            f"{path} is no file of mercer.save (not a zip archive). Pickles are read by pickle or "
            "joblib, which execute code: only from sources you trust."
        )
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            names = archive.namelist()
            # save stores as is; anything compressed could unfold to any size.
            packed = [i.filename for i in archive.infolist() if i.compress_type or i.flag_bits & 1]
            damaged = archive.testzip() if not packed else None
            header = json.loads(archive.read(HEADER)) if HEADER in names and not packed else None
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
    if found > FORMAT:
        raise ModelFileError(
            f"{path} has format {found}, written by mercer {header.get('mercer', '?')}; this is "
            f"mercer {version('mercer')}, which reads formats up to {FORMAT}. Upgrade mercer."
        )


def _damaged(path, reason):
    return ModelFileError(
        f"{path} is damaged, or was changed after mercer.save wrote it ({str(reason)[:200]}). "
        "Restore it from a copy, or save the model again."
    )


def _skops():
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("save and load need skops: pip install 'mercer[persistence]'.") from error
    return skops.io
