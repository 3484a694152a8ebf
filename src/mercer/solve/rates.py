"""How fast a machine is, measured, and times in words."""

import time
from dataclasses import dataclass

import numpy as np

from ..kernels import RBF


@dataclass(frozen=True)
class Rates:
    """Operations in matrix products, and kernel values, per second."""

    products: float
    values: float


def machine_rates() -> Rates:
    """Measure how fast this machine is, on small arrays."""
    rng = np.random.default_rng(0)
    A, X = rng.standard_normal((1024, 1024)), rng.standard_normal((2048, 2))
    kernel = RBF(1.0)
    product, values = _best(lambda: A @ A), _best(lambda: kernel(X))
    return Rates(2 * 1024**3 / product, 2048**2 / values)


def _best(call):
    times = []
    for _ in range(4):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def time_in_words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
