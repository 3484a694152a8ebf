"""How large can I go? Memory and time of a fit, predicted before it is paid for."""

import time
from dataclasses import dataclass, field

import numpy as np

from .engine.checks import is_integer, is_number
from .engine.memory import budget, partial_fit, readable, stored_fit, streamed_fit
from .engine.tiles import PANEL_VALUES
from .kernels import as_kernel
from .rows.gather import SAMPLE
from .space.fourier_grid import Extent
from .space.fourier_plan import plan_fourier

__all__ = ["Plan", "Rates", "machine_rates", "plan"]

MOST = 10**15  # rows, columns, landmarks


@dataclass(frozen=True)
class Rates:
    """How fast a machine is: operations in matrix products, and kernel values, per second."""

    products: float
    values: float


@dataclass(frozen=True)
class Plan:
    """Show the memory and time of each way to fit, and which one KernelMap would take.

    Attributes
    ----------
    route : str
        "stored" (the whole kernel matrix), "partial" (n x rank coordinates) or "streamed" (a panel
        of rows at a time).
    memory : dict of route -> bytes
    seconds : dict of route -> predicted time of fit
    seconds_per_million_rows : float
        Predicted time to transform a million new rows to `rank` coordinates.
    limit : int
        Bytes that a fit may take here.
    """

    n: int
    d: int
    rank: int
    dtype: str
    route: str
    memory: dict = field(repr=False)
    seconds: dict = field(repr=False)
    seconds_per_million_rows: float = 0.0
    limit: int = 0

    def __str__(self):
        lines = [f"{self.n:,} rows, {self.d} columns, rank {self.rank:,}, {self.dtype}:"]
        for route in self.memory:
            mark = "->" if route == self.route else "  "
            fits = "" if self.memory[route] <= self.limit else ", more than the limit"
            lines.append(
                f" {mark} {route:9} {readable(self.memory[route]):>9}{fits}, "
                f"about {time_in_words(self.seconds[route])}"
            )
        lines.append(
            f"    transform: about {time_in_words(self.seconds_per_million_rows)} per million rows"
        )
        return "\n".join(lines)


def plan(
    n,
    d,
    rank=None,
    dtype="float64",
    *,
    memory_limit=None,
    rates=None,
    kernel=None,
    extent=1.0,
    alpha=1.0,
):
    """Predict memory and time of ``KernelMap(RBF()).fit`` on n rows with d columns.

    Parameters
    ----------
    n, d : int
        Rows and columns.
    rank : int or None
        Expected rank (None: full, n). Fit a sample of a few thousand rows to learn it.
    dtype : "float64" or "float32"
    memory_limit : as in KernelMap
    rates : Rates or None
        Measured here, in a fraction of a second, when None.
    kernel : Kernel or None
        With one, "fourier" is what ``KernelRidge(alpha, kernel, form="fourier")`` would take, in
        seconds of one core of a common machine; left out where the kernel has no such form.
    extent : float or one per column, default=1.0
        Largest minus smallest value in each column, for `kernel`.
    alpha : float, default=1.0
        For `kernel`: smaller ones need more digits.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from mercer.plan import Rates, plan
    >>> p = plan(1_000_000, 3, 2000, memory_limit="2GB", rates=Rates(1e11, 5e8))
    >>> p.route
    'streamed'
    >>> p.memory["stored"] // 10**9  # gigabytes: the kernel matrix, its factor, the coordinates
    24000
    """
    n, d = _positive("n", n), _positive("d", d)
    rank = n if rank is None else min(_positive("rank", rank), n)
    size = _float(dtype).itemsize
    rates = machine_rates(dtype) if rates is None else rates
    if not isinstance(rates, Rates) or not all(
        is_number(rate) and 0 < rate < np.inf for rate in (rates.products, rates.values)
    ):
        raise TypeError(f"rates must be Rates of positive numbers or None, got {rates!r}.")
    limit = budget(memory_limit)
    memory = {
        "stored": stored_fit(n, size=size),
        "partial": partial_fit(n, rank, size=size),
        "streamed": streamed_fit(rank, SAMPLE, PANEL_VALUES, size),
    }
    column = n * (1 / rates.values + 2 * d / rates.products)  # kernel values against one landmark
    solves = n * rank**2 / rates.products
    seconds = {
        "stored": n / 2 * column + (n**3 / 3 if rank == n else n * rank**2) / rates.products,
        "partial": rank * column + 2 * solves,
        "streamed": rank * column * 1.2 + solves * (1 + 40_000 / n),
    }
    fitting = [route for route in memory if memory[route] <= limit]
    if kernel is not None:
        found = _by_fourier(kernel, n, d, extent, alpha)
        if found is not None:
            memory["fourier"], seconds["fourier"] = found.bytes, found.seconds
    row = rank / rates.values + (2 * d * rank + rank**2) / rates.products
    return Plan(
        n=n,
        d=d,
        rank=rank,
        dtype=str(np.dtype(dtype)),
        route=fitting[0] if fitting else "streamed",
        memory=memory,
        seconds=seconds,
        seconds_per_million_rows=1e6 * row,
        limit=limit,
    )


def _by_fourier(kernel, n, d, extent, alpha):
    """The FourierPlan of eight digits, or None."""
    width = np.broadcast_to(np.asarray(extent, dtype=float), (d,))
    if not (np.all(np.isfinite(width)) and np.all(width >= 0)):
        raise ValueError(f"extent must hold non-negative numbers, got {extent!r}.")
    if not is_number(alpha) or not 0 < alpha < np.inf:
        raise ValueError(f"alpha must be a positive number, got {alpha!r}.")
    ends = np.stack([0 * width, width])
    return plan_fourier(as_kernel(kernel).bind(ends), Extent.of(ends), n, 1, alpha, 1e-8)


def machine_rates(dtype="float64"):
    """Measure how fast this machine is, on small arrays."""
    from .kernels import RBF

    dtype = _float(dtype)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1024, 1024)).astype(dtype)
    product = _best(lambda: A @ A)
    X = rng.standard_normal((2048, 2)).astype(dtype)
    kernel = RBF(1.0)
    values = _best(lambda: kernel(X))
    return Rates(2 * 1024**3 / product, 2048**2 / values)


def _best(call):
    times = []
    for _ in range(4):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _float(dtype):
    if not isinstance(dtype, (str, type, np.dtype)) or np.dtype(dtype).kind != "f":
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}.")
    return np.dtype(dtype)


def _positive(name, value):
    if not is_integer(value) or not 1 <= value <= MOST:
        raise ValueError(f"{name} must be an integer from 1 to {MOST:.0e}, got {value!r}.")
    return int(value)


def time_in_words(seconds):
    if seconds < 120:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
