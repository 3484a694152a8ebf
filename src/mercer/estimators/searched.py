"""Results of the search for a kernel, saved so that a fit that was killed can resume."""

import hashlib
from collections.abc import Callable, MutableMapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone

from ..engine import as_numpy

# Parameters that do not change what is searched for.
BESIDE = ("verbose", "memory_limit", "solver")


def _key_of(model: Any, *arrays: Any) -> str:
    """A name made from the rows, the targets, the weights and the parameters."""
    digest = hashlib.sha256(type(model).__name__.encode())
    for name, value in sorted(model.get_params(deep=False).items()):
        if name not in BESIDE:
            digest.update(f"{name}={value!r};".encode())
    for array in arrays:
        values = np.ascontiguousarray(as_numpy(array)) if array is not None else np.empty(0)
        digest.update(str((values.dtype, values.shape)).encode())
        digest.update(values.tobytes())
    return digest.hexdigest()[:32]


def check_checkpoint(checkpoint: Any) -> None:
    if checkpoint is not None and not isinstance(checkpoint, MutableMapping):
        raise TypeError(
            "checkpoint must be a dict, mercer.export.checkpoint.Checkpoint(folder) or None, got "
            f"{checkpoint!r}."
        )


def resumed(
    checkpoint: MutableMapping[str, Any] | None,
    model: Any,
    arrays: tuple[Any, ...],
    search: Callable[[], dict[str, Any]],
) -> Any:
    """What a search finds, as attributes; or has found, where a fit of the same rows was killed.

    A checkpoint keeps it in an unfitted copy of the model.
    """
    if checkpoint is None:
        return SimpleNamespace(**search())
    key = _key_of(model, *arrays)
    if (part := checkpoint.get(key)) is None:
        found = search()
        part = clone(model)
        vars(part).update(found)
        checkpoint[key] = part
    return part
