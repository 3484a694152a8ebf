"""Many attempts one after the other, with random numbers that repeat."""

import os
import zlib

import numpy as np
import pytest

from fuzz.outcomes import Fault, attempt

# Rounds over all data with other random numbers; `make fuzz` sets more, and a new seed.
ROUNDS = int(os.environ.get("MERCER_FUZZ_ROUNDS", "1"))
SEED = int(os.environ.get("MERCER_FUZZ_SEED", "0"))


def try_all(tally, cases):
    """Every case; the faults of all of them in one message."""
    for name, work, inputs, names, *also in cases:
        try:
            tally.add(attempt(work, *inputs, names=names, also=also))
        except Fault as fault:
            tally.fault(name, fault)
    if tally.faults:
        listed = "\n".join(f"  {case}: {fault}" for fault, case in tally.faults.items())
        pytest.fail(f"{tally.text()}. Faults:\n{listed}", pytrace=False)


def generator(*words):
    return np.random.default_rng([SEED, zlib.crc32(repr(words).encode())])


def rows(X):
    try:
        return len(X) if not hasattr(X, "shape") else X.shape[0]
    except (TypeError, IndexError):
        return 3


def not_tried(name, value):
    """Progress bars are noise; a person's own function may fail as it likes."""
    takes_functions = name in ("f", "g", "kernel", "metric", "check_mercer", "Chunks")
    # Old scikit-learn has a misprint in the message for tuples.
    old_scikit_learn = name == "random_state" and isinstance(value, tuple)
    return name == "verbose" or old_scikit_learn or (takes_functions and callable(value))
