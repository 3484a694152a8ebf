"""How long a fit will take, said before it begins, and that it goes on."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from timeit import repeat
from typing import Any

import numpy as np

from .. import RBF, KernelRidge, plan
from ..engine import readable
from ..solve import time_in_words
from . import output

# Fits that take longer than this are announced; others are not worth a line.
_ANNOUNCED = 30.0
# Seconds between signs of life where no bar can be drawn.
_BETWEEN = 20.0
# The search for a kernel, in seconds of one core of a common machine as plan counts them: a hundred
# ridge regressions on about half of the rows that it looks at, which are so many at most.
SEARCH, SEARCHED = 50.0, 12_000
# Rows, in all fits together, that take less than that on any machine.
_FEW_ROWS = 2000
# Rows that are suggested for a first look.
_FEWER_ROWS = 10_000
_WAYS = {"dual": "an exact fit of {} rows ({})", "iterative": "iterations on {} rows"}


def _machine_pace() -> float:
    """Seconds that this machine takes for one predicted second, measured on a small fit."""
    X = np.random.default_rng(0).uniform(size=(1500, 8))
    model = KernelRidge(1.0, RBF(1.0), form="dual")
    measured = min(repeat(lambda: model.fit(X, X[:, 0]), number=1, repeat=3))
    return measured / (plan(model, X).ways[0].seconds or measured)


def estimate(model: Any, n: int) -> tuple[float, str]:
    """Seconds of the whole fit of n rows on one core of a common machine, and what takes them."""
    way = plan(model, (n, 1)).ways[0]
    work = _WAYS.get(way.name, "a fit of {} rows through landmarks")
    search = SEARCH * min(1.0, n / SEARCHED)
    return search + (way.seconds or 0.0), work.format(n, readable(way.bytes or 0))


def announce(model: Any, n: int, fits: int = 1) -> float:
    """Predict the seconds of some fits, and print them, with a faster choice, if they are many."""
    if fits * n <= _FEW_ROWS:
        return 0.0
    pace = _machine_pace()
    seconds, work = estimate(model, n)
    seconds *= fits * pace
    if seconds > _ANNOUNCED:
        often = f", {fits} times" if fits > 1 else ""
        line = f"This takes about {time_in_words(seconds)}: {work}{often}."
        if n > _FEWER_ROWS:
            fewer = time_in_words(fits * pace * estimate(model, _FEWER_ROWS)[0])
            line += f" Faster: --max-rows {_FEWER_ROWS}, about {fewer}."
        output.say(line)
    return seconds


@contextmanager
def signs_of_life(seconds: float) -> Iterator[None]:
    """A line every now and then, where there is no terminal for a bar."""
    if output.err.is_terminal or seconds <= _ANNOUNCED:
        yield
        return
    done, started = threading.Event(), time.monotonic()

    def report():
        while not done.wait(_BETWEEN):
            passed = time_in_words(time.monotonic() - started)
            output.say(f"fitting: {passed} of about {time_in_words(seconds)}")

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
