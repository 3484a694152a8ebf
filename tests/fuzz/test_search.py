"""The random search counts every case, whatever happens to its processes."""

import os
import signal
import time
from dataclasses import dataclass

import pytest

from fuzz.search import Found, Stop, search, search_in_processes


@dataclass
class Sums(Found):
    total: int = 0


def draw(rng, found):
    found.total += int(rng.integers(100))
    return ""


def die_at_a_small_number(rng, found):
    if draw(rng, found) == "" and rng.random() < 0.05:
        os.kill(os.getpid(), signal.SIGKILL)
    return ""


def raise_at_a_small_number(rng, found):
    assert rng.random() > 0.05
    return ""


def stop_the_search_at_a_small_number(rng, found):
    """The processes are stopped from the third case on; they finish it and report."""
    found.total += 1
    if rng.random() < 0.5:
        os.kill(os.getpid(), signal.SIGTERM)
    return ""


def test_a_search_in_processes_makes_the_same_cases():
    said = []
    here = search(draw, Sums, range(40), seed=3)
    there = search_in_processes(draw, Sums, range(40), 3, 3, time.time() + 60, said.append)
    assert here == there
    assert (here.cases, said) == (40, [])


def test_a_crash_is_a_finding_and_does_not_end_the_search():
    found = search(raise_at_a_small_number, Sums, range(100))
    assert found.cases == 100
    assert 0 < len(found.findings) < 20
    assert all("AssertionError" in what for _, what in found.findings)


def test_a_process_that_dies_is_a_finding():
    said = []
    found = search_in_processes(
        die_at_a_small_number, Sums, range(500), 0, 2, time.time() + 60, said.append
    )
    assert [what for _, what in found.findings] == ["a process ended with -9"] * 2
    assert len(said) == 2


def test_a_process_that_is_told_to_stop_reports_what_it_has():
    found = search_in_processes(
        stop_the_search_at_a_small_number, Sums, range(10**6), 0, 2, time.time() + 60, print
    )
    assert 2 <= found.cases == found.total < 100
    assert found.findings == []


@pytest.mark.parametrize("end", [0.0, -1.0])
def test_no_case_after_the_end(end):
    assert search(draw, Sums, range(10), stop=Stop(end)).cases == 0
