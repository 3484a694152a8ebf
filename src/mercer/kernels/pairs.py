"""One kernel value for two vectors: what scikit-learn's callables are asked for."""

import math
from typing import Any

import numpy as np

from ..engine import is_array, namespace, same_kind
from .kernel import Kernel
from .parameters import rules_in


def are_vectors(kernel: Kernel, x: Any, z: Any) -> bool:
    """Whether x and z are two single vectors of a kernel on vectors, each a 1-D array.

    Kernels on objects take a 1-D array for a batch of objects.
    """
    kind = kernel.kind
    if kind not in ("vectors", "table", "any"):
        return False
    return _is_vector(x, kind) and _is_vector(z, kind)


def value(kernel: Kernel, x: Any, z: Any) -> float:
    """k(x, z) for two vectors, without the work that pays for many rows alone."""
    x, z = (v if is_array(v) else np.asarray(v) for v in (x, z))
    if not same_kind(x, z) or x.shape != z.shape:
        return float(kernel(x[None, :], z[None, :])[0, 0])  # which says what is wrong
    points = kernel.points(namespace(x, z).stack([x, z]))
    for name, rule in rules_in(kernel):
        raise ValueError(
            f"{kernel!r} takes {name}={rule!r} from data, and two vectors do not say how the data "
            "are spread. Give a number, or take it from the data first: kernel = kernel.bind(X)."
        )
    kernel.check_parameters()
    X, Z = points[:1, ...], points[1:, ...]
    with np.errstate(over="ignore", invalid="ignore"):  # then check_range says what to do
        result = float(kernel.against(kernel.landmarks(Z))(X)[0, 0])
    if not math.isfinite(result):
        kernel.check_range(points)
    return result


def _is_vector(x: Any, kind: str) -> bool:
    if is_array(x):
        return x.ndim == 1 and getattr(x.dtype, "kind", "f") in "fiub"
    # A list may be a batch of objects, of which Constant() takes any.
    return kind != "any" and isinstance(x, (list, tuple)) and _is_vector(np.asarray(x), kind)
