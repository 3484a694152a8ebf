"""The transforms of nufft.py on a GPU, where the points are: cufinufft.

Only sums leave the device, and only coefficients go there.
"""

import importlib
import math
from typing import Any

import numpy as np

from .arrays import as_numpy, cuda_stream, is_cpu, namespace, on_device_of


def runs_on(X: Any) -> bool:
    """Whether X is on a CUDA device, and cufinufft is there to transform it."""
    if is_cpu(X) or cuda_stream(X) is None:
        return False
    try:
        importlib.import_module("cufinufft")
    except ImportError:  # not installed, or without the libraries of CUDA that it was built for
        return False
    return True


def device_sums(t: Any, packed: np.ndarray, shape: tuple[int, ...], eps: float) -> np.ndarray:
    """sum_i v_i exp(-2 pi i k . t_i) for each row v of `packed`, on the host."""
    return as_numpy(_transform(1, t, packed, shape, -1, eps))


def device_values(t: Any, packed: np.ndarray, eps: float) -> Any:
    """sum_k C_k exp(2 pi i k . t_i) for each array C of `packed`, on the device."""
    return _transform(2, t, packed, packed.shape[1:], 1, eps)


def _transform(kind, t, packed, shape, sign, eps):
    cufinufft: Any = importlib.import_module("cufinufft")
    xp, d, (where, stream) = namespace(t), len(shape), cuda_stream(t)
    if not (bool(xp.all(xp.isfinite(t))) and np.isfinite(packed).all()):
        raise ValueError("points and values of a transform must be finite.")
    # In three columns a tile of double precision is more than the shared memory of some devices.
    options = {"gpu_method": 1} if d == 3 else {}
    plan = cufinufft.Plan(
        kind,
        shape,
        len(packed),
        eps,
        sign,
        "complex128",
        gpu_device_id=where,
        gpu_stream=stream,
        **options,
    )
    plan.setpts(*[2 * math.pi * t[:, a] for a in range(d)])
    given = on_device_of(packed, t, xp.complex128)
    found = plan.execute(given)
    return xp.reshape(found, (len(packed), *(shape if kind == 1 else (-1,))))
