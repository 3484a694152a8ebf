"""How long a fit will take, said before it begins, and that it goes on."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from timeit import repeat

import numpy as np

from .. import RBF
from ..engine import budget, matrix_bytes, readable
from ..solve import MOST, STORED, time_in_words
from . import output

# Fits that take longer than this are announced; others are not worth a line.
ANNOUNCED = 30.0
# Seconds between signs of life where no bar can be drawn.
BETWEEN = 20.0
# Operations of the search for a kernel, which looks at 12000 rows and 1500 landmarks at most: a
# hundred ridge regressions on about half of these.
SEARCH, SEARCHED = 1e12, 12_000
# Products with the kernel matrix that the iterations take.
PRODUCTS = 60
# Rows up to which they end in reasonable time.
ITERATIVE_ROWS = 100_000
# Rows that are suggested for a first look.
FEWER_ROWS = 10_000


@dataclass(frozen=True)
class Rates:
    """Operations in matrix products, and kernel values, per second."""

    products: float
    values: float


# A machine that is faster than most.
FAST = Rates(products=2e11, values=2e9)


def machine_rates() -> Rates:
    """Measure how fast this machine is, on small arrays."""
    rng = np.random.default_rng(0)
    A, X = rng.standard_normal((1024, 1024)), rng.standard_normal((2048, 2))
    kernel = RBF(1.0)
    works = (lambda: A @ A, lambda: kernel(X))
    product, values = (min(repeat(work, number=1, repeat=4)) for work in works)
    return Rates(2 * 1024**3 / product, 2048**2 / values)


@dataclass(frozen=True)
class Estimate:
    """Seconds of a fit, and what takes them."""

    seconds: float
    work: str


def estimate(n: int, d: int, rates: Rates, limit: int | None = None) -> Estimate:
    """Predict the time of KernelRegressor or KernelClassifier on n rows and d encoded columns."""
    limit = budget(None) if limit is None else limit
    values = n * (1 / rates.values + 2 * d / rates.products)  # kernel values against one row
    search = SEARCH * min(1.0, n / SEARCHED) / rates.products
    if matrix_bytes(n, 1.1) <= limit:
        last = n / 2 * values + n**3 / 3 / rates.products
        work = f"an exact fit of {n} rows ({readable(matrix_bytes(n))} for the kernel matrix)"
    elif n <= ITERATIVE_ROWS:
        # The matrix is kept, in single precision, where it fits.
        held = matrix_bytes(n, 0.5) <= limit
        last = n / 2 * values + PRODUCTS * n * (n * STORED if held else values)
        work = f"iterations on {n} rows"
    else:
        m = MOST
        last = m * values + 2 * n * m**2 / rates.products
        work = f"a fit of {n} rows through {m} landmarks"
    return Estimate(search + last, work)


def announce(n: int, d: int, fits: int = 1) -> Estimate:
    """Say how long so many fits will take, and what would be faster, where it is long."""
    if fits * estimate(n, d, FAST).seconds < ANNOUNCED / 5:
        return Estimate(0.0, "")  # on any machine
    rates = machine_rates()
    found = estimate(n, d, rates)
    found = Estimate(fits * found.seconds, found.work + (f", {fits} times" if fits > 1 else ""))
    if found.seconds > ANNOUNCED:
        line = f"This takes about {time_in_words(found.seconds)}: {found.work}."
        if n > FEWER_ROWS:
            fewer = time_in_words(fits * estimate(FEWER_ROWS, d, rates).seconds)
            line += f" Faster: --max-rows {FEWER_ROWS}, about {fewer}."
        output.say(line)
    return found


@contextmanager
def signs_of_life(expected: Estimate) -> Iterator[None]:
    """A line every now and then, where there is no terminal for a bar."""
    if output.err.is_terminal or expected.seconds <= ANNOUNCED:
        yield
        return
    done, started = threading.Event(), time.monotonic()

    def report():
        while not done.wait(BETWEEN):
            passed = time_in_words(time.monotonic() - started)
            output.say(f"fitting: {passed} of about {time_in_words(expected.seconds)}")

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
