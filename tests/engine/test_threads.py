import threading

import joblib
import pytest
from threadpoolctl import threadpool_limits

from mercer.engine.threads import _blas_threads, n_threads, one_blas_thread, release_control


@pytest.fixture(autouse=True)
def two_blas_threads():
    """Two threads, whatever the machine has: then one is a change that can be seen."""
    with threadpool_limits(2, user_api="blas"):
        if _blas_threads() != 2:
            pytest.skip("this BLAS cannot run on two threads")
        release_control()
        yield


def test_limits_and_restores():
    with one_blas_thread:
        assert _blas_threads() == 1
    assert _blas_threads() == 2


def test_nested_limits_restore_once():
    with one_blas_thread:
        with one_blas_thread:
            assert _blas_threads() == 1
        assert _blas_threads() == 1
    assert _blas_threads() == 2


def test_errors_restore():
    with pytest.raises(KeyboardInterrupt), one_blas_thread:
        raise KeyboardInterrupt
    assert _blas_threads() == 2
    assert one_blas_thread.users == 0


def test_overlapping_limits_of_several_threads_restore():
    """The first to enter leaves first: separate limits would leave BLAS at one thread for good."""
    entered, leave = threading.Event(), threading.Event()

    def second():
        with one_blas_thread:
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=second)
    with one_blas_thread:
        thread.start()
        assert entered.wait(10)
    assert _blas_threads() == 1
    leave.set()
    thread.join()
    assert _blas_threads() == 2


def test_many_threads_at_once():
    def enter():
        for _ in range(50):
            with one_blas_thread:
                assert _blas_threads() == 1

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one_blas_thread.users == 0
    assert _blas_threads() == 2


def test_number_of_threads():
    assert n_threads() == 2
    assert n_threads(1) == 1
    assert n_threads(3) == 3
    assert n_threads(-1) == joblib.cpu_count()
    with one_blas_thread:
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
    with one_blas_thread:
        pass
    assert _blas_threads() == 2
    leave.set()
    thread.join()
    assert _blas_threads() == 2
