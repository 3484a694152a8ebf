"""Rows of the benchmark: contenders on the same data, each in a process of its own.

A row names its data, its contenders and what to check. Every contender runs in a fresh process
with the same number of threads; rounds alternate between contenders, so that a busy moment of the
machine hits all alike. What is compared is the ratio of medians within one run, never a time of
another day.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

ROWS: dict[str, "Row"] = {}
# Seconds after which a slow contender is not repeated.
ENOUGH = 20.0


@dataclass
class Row:
    """One line of the table.

    data : seed-free function of `quick` that makes what all contenders share
    contenders : name -> function of the data that returns the timed call
    accuracy : function of (data, result) -> {label: number}, printed beside every time
    target : peer -> how many times faster mercer should be
    """

    name: str
    title: str
    data: Callable
    contenders: dict[str, Callable]
    accuracy: Callable | None = None
    target: dict[str, float] = field(default_factory=dict)
    repeats: int = 5
    rounds: int = 2
    quick: bool = True
    note: str = ""


def row(**options):
    """Register a row; the decorated function makes its data."""

    def register(data):
        made = Row(name=data.__name__, data=data, **options)
        ROWS[made.name] = made
        return data

    return register


def measure(name, contender, quick, repeats):
    """Times, accuracy and peak memory of one contender: what a child process runs."""
    line = ROWS[name]
    data = line.data(quick)
    call = line.contenders[contender](data)
    result, times = None, []
    for i in range(repeats + (repeats > 1)):
        start = time.perf_counter()
        result = call()
        elapsed = time.perf_counter() - start
        if i or repeats == 1:  # the first call warms caches and thread pools
            times.append(elapsed)
        if sum(times) > ENOUGH or elapsed > ENOUGH:
            break
    times = times or [elapsed]
    accuracy = line.accuracy(data, result) if line.accuracy else {}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"times": times, "accuracy": accuracy, "peak": peak}


def run_row(name, quick, threads):
    """All contenders of a row, rounds alternating."""
    line = ROWS[name]
    repeats = max(1, line.repeats // (2 if quick else 1))
    rounds = 1 if quick else line.rounds
    results: dict[str, dict] = {}
    for _ in range(rounds):
        for contender in line.contenders:
            got = _in_child(name, contender, quick, repeats, threads)
            if got is None:
                continue
            kept = results.setdefault(contender, got | {"times": []})
            kept["times"] += got["times"]
            kept["peak"] = max(kept["peak"], got["peak"])
    return results


def _in_child(name, contender, quick, repeats, threads):
    env = os.environ | {f"{lib}_NUM_THREADS": str(threads) for lib in ("OMP", "OPENBLAS", "MKL")}
    job = json.dumps([name, contender, quick, repeats])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--child", job],
        env=env,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        why = [f"ended with status {done.returncode}", *done.stderr.strip().splitlines()][-1]
        if "ModuleNotFoundError" in why:
            print(f"left out: {contender} ({why})", file=sys.stderr)
            return None
        raise RuntimeError(f"{name}, {contender}: {why}")
    return json.loads(done.stdout.splitlines()[-1])


def lines_of(name, results):
    """The table's lines for a row: one for each contender."""
    line = ROWS[name]
    ours = statistics.median(results["mercer"]["times"]) if "mercer" in results else None
    for contender, got in results.items():
        median = statistics.median(got["times"])
        spread = (max(got["times"]) - min(got["times"])) / 2
        yield {
            "row": line.name,
            "title": line.title,
            "contender": contender,
            "median_s": median,
            "spread_s": spread,
            "ratio": None if ours is None or contender == "mercer" else median / ours,
            "target": line.target.get(contender),
            "peak_gb": got["peak"] / 1e9,
            "accuracy": got["accuracy"],
            "note": line.note,
        }
