import dis
import gc
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer.engine.threads import (
    _MOST_THREADS,
    _blas_threads,
    _limit,
    _release_control,
    n_threads,
    one_blas_thread,
)


@pytest.fixture(autouse=True)
def two_blas_threads():
    """Two threads, whatever the machine has: then one is a change that can be seen."""
    for thread in threading.enumerate():  # of an explorer that was stopped in the midst of a step
        if thread.name.startswith("mercer-"):
            thread.join(60)
    # What earlier tests left behind may restore a number of threads of its own when it is deleted.
    gc.collect()
    gc.disable()
    try:
        with threadpool_limits(2, user_api="blas"):
            if _blas_threads() != 2:
                pytest.skip("this BLAS cannot run on two threads")
            _release_control()
            yield
    finally:
        gc.enable()


def test_limits_and_restores():
    with one_blas_thread():
        assert _blas_threads() == 1
    assert _blas_threads() == 2


def test_nested_limits_restore_once():
    with one_blas_thread():
        with one_blas_thread():
            assert _blas_threads() == 1
        assert _blas_threads() == 1
    assert _blas_threads() == 2


def test_errors_restore():
    with pytest.raises(KeyboardInterrupt), one_blas_thread():
        raise KeyboardInterrupt
    assert _blas_threads() == 2
    assert not _limit.blocks


def test_overlapping_limits_of_several_threads_restore():
    """The first to enter leaves first: separate limits would leave BLAS at one thread for good."""
    entered, leave = threading.Event(), threading.Event()

    def second():
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=second)
    with one_blas_thread():
        thread.start()
        assert entered.wait(10)
    assert _blas_threads() == 1
    leave.set()
    thread.join()
    assert _blas_threads() == 2


def test_many_threads_at_once():
    def enter():
        for _ in range(50):
            with one_blas_thread():
                assert _blas_threads() == 1

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not _limit.blocks
    assert _blas_threads() == 2


def test_number_of_threads():
    assert n_threads() == 2
    assert n_threads(1) == 1
    assert n_threads(3) == 3
    assert n_threads(-1) == joblib.cpu_count()
    assert n_threads(10**6) == max(_MOST_THREADS, joblib.cpu_count())
    with one_blas_thread():
        assert n_threads() == 2  # what BLAS had before
    with threadpool_limits(1, user_api="blas"):
        assert n_threads() == 1


def test_a_limit_held_by_another_thread_stands():
    """threadpoolctl obeys one thread at a time; what that thread set is not ours to restore."""
    held, leave = threading.Event(), threading.Event()

    def other():
        with threadpool_limits(2, user_api="blas"):
            held.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert held.wait(10)
    with one_blas_thread():
        pass
    assert _blas_threads() == 2
    leave.set()
    thread.join()
    assert _blas_threads() == 2


# --- interrupts -----------------------------------------------------------------------------------


class Interrupted(BaseException):
    pass


# Python looks for signals when it enters a function, has called one, and when it jumps back.
SERVES_SIGNALS = ("RESUME", "CALL", "JUMP_BACKWARD")


class InterruptAt:
    """Raise at the n-th point of this thread where Ctrl-C could strike, wherever that is."""

    def __init__(self, n):
        self.left, self.reached = n, False
        self.last: dict[int, int] = {}  # the instruction before, by the frame's id

    def __call__(self, frame, event, argument):
        frame.f_trace_opcodes = True
        if event == "call":
            self.last.pop(id(frame), None)
        if event == "opcode" and not self.reached:
            before = self.last.get(id(frame))
            self.last[id(frame)] = frame.f_lasti
            code = frame.f_code.co_code
            if before is None or dis.opname[code[before]].startswith(SERVES_SIGNALS):
                self.left -= 1
            if self.left < 0:
                self.reached = True
                raise Interrupted
        return self

    def __enter__(self):
        sys._getframe().f_trace_opcodes = True  # Python 3.12 looks at it here, and only here
        sys.settrace(self)

    def __exit__(self, *_):
        sys.settrace(None)


def block():
    with one_blas_thread():
        pass


@pytest.mark.usefixtures("untraced")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_point_restores():
    """Also while the traceback is kept, as an interactive session does."""
    block()
    n, kept = 0, []
    while True:
        interrupt = InterruptAt(n)
        try:
            with interrupt:
                block()
        except Interrupted as error:
            kept.append(error)
        sys.settrace(None)
        assert _blas_threads() == 2, f"interrupted at {n}"
        if not interrupt.reached:
            break
        n += 1
    assert n > 50
    assert kept
    assert not any(reference() for reference in _limit.blocks.values())
    assert in_another_thread(_limit.lock.acquire, False)  # nobody has kept the lock
    block()
    assert _blas_threads() == 2


def in_another_thread(work, *arguments):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: [work(*arguments), _limit.lock.release()][0]).result()


@pytest.mark.usefixtures("untraced")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_by_a_timer_restore():
    rng = np.random.default_rng(0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    caught = 0
    try:
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 3e-4))
                for _ in range(10):
                    block()
            except KeyboardInterrupt:
                caught += 1
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                caught += 1
            assert _blas_threads() == 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught > 5


# --- forks ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("untraced")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("busy", ["inside the block", "at the lock"])
def test_a_child_of_a_busy_process_is_free(busy):
    """Another thread holds the limit, or is changing it, at the moment of the fork."""
    stop, started = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread():
            started.set()
            stop.wait(30)

    def change():
        started.set()
        while not stop.is_set():
            block()

    thread = threading.Thread(target=hold if busy == "inside the block" else change)
    thread.start()
    assert started.wait(10)
    try:
        for _ in range(1 if busy == "inside the block" else 20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # a deadlock ends here
                free = _blas_threads() == 2 and n_threads() == 2
                block()
                os._exit(0 if free and _blas_threads() == 2 else 3)
            assert os.waitpid(child, 0)[1] == 0
            time.sleep(0.001)
    finally:
        stop.set()
        thread.join()
    assert _blas_threads() == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_inside_the_block_leaves_both_sides_whole():
    with one_blas_thread():
        child = os.fork()
    if child == 0:
        os._exit(0 if _blas_threads() == 2 else 3)
    assert _blas_threads() == 2
    assert os.waitpid(child, 0)[1] == 0
