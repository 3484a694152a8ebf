"""How many threads, and who may use them.

Tiles run on a thread pool with BLAS held to one thread each. The BLAS limit is process-wide, so
it is counted and locked here: overlapping limits of several estimators would otherwise leave BLAS
at one thread for good.
"""

import threading
from contextlib import contextmanager
from functools import cache
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController


@cache
def _controller():
    import numpy.linalg  # noqa: F401  both BLAS libraries must be loaded to be seen
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().select(user_api="blas")


class _OneBlasThread:
    """A reference-counted context in which BLAS runs on one thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.users = 0
        self.threads_before = 1
        self._limit: Any = None

    def __enter__(self):
        with self.lock:
            if self.users == 0:
                self.threads_before = _blas_threads()
                limit = _controller().limit(limits=1)
                # Another thread may hold BLAS at a number of its own, which then stands.
                self._limit = limit if _blas_threads() == 1 else None
            self.users += 1

    def __exit__(self, *_):
        with self.lock:
            self.users -= 1
            if self.users == 0 and self._limit is not None:
                release_control()
                self._limit.restore_original_limits()
                release_control()
                self._limit = None


one_blas_thread = _OneBlasThread()


def release_control():
    """Let any thread set the number of BLAS threads.

    Recent threadpoolctl (3.8) gives this right to the first thread that uses it and ignores all
    others without a word; the last to leave the limit need not be the one who entered first.
    """
    for lib in _controller().lib_controllers:
        clear = getattr(lib, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


def _blas_threads():
    return max((lib.num_threads for lib in _controller().lib_controllers), default=1)


_here = threading.local()


@contextmanager
def single_threaded():
    """This thread makes no others: it is one of many that a scheduler runs at once."""
    before, _here.single = getattr(_here, "single", False), True
    try:
        yield
    finally:
        _here.single = before


def n_threads(n_jobs=None):
    """Threads for tiles: what BLAS would use, or n_jobs by joblib's rules.

    BLAS's own number already honours OMP_NUM_THREADS, threadpool_limits and the limits that
    joblib sets inside its workers.
    """
    if getattr(_here, "single", False):
        return 1
    if n_jobs is not None:
        return joblib.effective_n_jobs(n_jobs)
    with one_blas_thread.lock:
        return one_blas_thread.threads_before if one_blas_thread.users else _blas_threads()
