"""How many threads, and who may use them.

Tiles run on a thread pool with BLAS held to one thread each. The BLAS limit is process-wide, so
it is counted and locked here: overlapping limits of several estimators would otherwise leave BLAS
at one thread for good.

Ctrl-C may raise between any two lines of Python, those of a context manager included. So a block
that holds BLAS to one thread is counted by an object that lives exactly as long as the block: its
__enter__ and __exit__ are C code without lines, and its end calls for the limit to be looked at
again. Looking at it again sets what should be, from whatever an interrupted attempt has left.
"""

import _thread
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

# Matrices that one thread factors as fast as several.
_SMALL = 1000


@cache
def _controller() -> ThreadpoolController:
    import numpy.linalg  # noqa: F401  both BLAS libraries must be loaded to be seen
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().select(user_api="blas")


class _Limit:
    """Whether BLAS is held to one thread, and what it is to have afterwards."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.blocks: dict[int, Any] = {}  # weak references to what each block holds, by their ids
        # [(library, threads)] to restore; None while there is no limit.
        self.before: list[tuple[Any, int]] | None = None

    def settle(self) -> None:
        """One thread if any block wants it, else what was before; may be interrupted and redone."""
        # One call and nothing else: Python 3.13 does not count a jump back to the top of a loop as
        # part of the `with` around it, and Ctrl-C there would leave the lock taken.
        with self.lock:
            self._settle()

    def _settle(self) -> None:
        for key, block in list(self.blocks.items()):
            if block() is None:
                self.blocks.pop(key, None)
        if self.blocks and self.before is None:
            # Remembered before anything is changed: what is interrupted here can be undone.
            self.before = [(lib, lib.num_threads) for lib in _controller().lib_controllers]
            for lib, _ in self.before:
                lib.set_num_threads(1)
            # Another thread may hold BLAS at a number of its own, which then stands.
            if _blas_threads() != 1:
                self.before = []
        elif self.before is not None and not self.blocks:
            if self.before:
                _release_control()
                for lib, threads in self.before:
                    lib.set_num_threads(threads)
                _release_control()
            self.before = None

    def forget(self) -> None:
        """In a forked child: blocks of other threads do not go on there, nor do their locks."""
        self.lock = threading.RLock()
        self.blocks = {}
        self.settle()


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    # No thread is half-way through a change while the process is copied.
    os.register_at_fork(
        before=lambda: _limit.lock.acquire(),
        after_in_parent=lambda: _limit.lock.release(),
        after_in_child=_limit.forget,
    )


def one_blas_thread(if_small: int = 0, small: int = _SMALL) -> Any:
    """A block in which BLAS runs on one thread: ``with one_blas_thread(): ...``

    With the size of matrices `if_small`, only where they are small. In small products threads wait
    for each other longer than they work, and waking SciPy's threads while NumPy's still spin costs
    more than they save.
    """
    if if_small > small:
        return nullcontext()
    block: Any = None
    try:
        block = _thread.allocate_lock()
        for _ in range(2):  # two of them, since Ctrl-C may strike while one is served
            reference = weakref.ref(block, _ended)
            _limit.blocks[id(reference)] = reference
        _limit.settle()
        return block
    except BaseException:
        block = None  # a traceback keeps this frame, and would keep the block alive
        _limit.settle()
        raise


def _ended(reference: Any) -> None:
    """End a block, however it ended: what it held is gone."""
    try:
        _limit.settle()
    except KeyboardInterrupt:
        _limit.settle()
        _thread.interrupt_main()  # which Python would swallow here


def _release_control() -> None:
    """Let any thread set the number of BLAS threads.

    Recent threadpoolctl (3.8) gives this right to the first thread that uses it and ignores all
    others without a word; the last to leave the limit need not be the one who entered first.
    """
    for lib in _controller().lib_controllers:
        clear = getattr(lib, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


def _blas_threads() -> Any:
    return max((lib.num_threads for lib in _controller().lib_controllers), default=1)


_here = threading.local()


@contextmanager
def single_threaded() -> Iterator[None]:
    """This thread makes no others: it is one of many that a scheduler runs at once."""
    before, _here.single = getattr(_here, "single", False), True
    try:
        yield
    finally:
        _here.single = before


# More than there are processors gain nothing, and a file may ask for any number.
_MOST_THREADS = 64


def n_threads(n_jobs: int | None = None) -> int:
    """Threads for tiles: n_jobs by joblib's rules, or what BLAS would use, which already honours
    OMP_NUM_THREADS, threadpool_limits and the limits that joblib sets inside its workers."""
    if getattr(_here, "single", False):
        return 1
    if n_jobs is not None:
        return int(min(joblib.effective_n_jobs(n_jobs), max(_MOST_THREADS, joblib.cpu_count())))
    with _limit.lock:
        return max((threads for _, threads in _limit.before or ()), default=_blas_threads())
