"""Fixtures that every test file may use."""

import os
from collections import Counter

# scikit-learn's array API checks run only with this, and SciPy reads it when it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import hypothesis
import numpy as np
import pytest

# One deterministic profile: a law that fails must fail again, and no machine is too slow.
hypothesis.settings.register_profile(
    "mercer",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("mercer")


def _numpy():
    return np


def _torch():
    pytest.importorskip("torch", reason="torch is not installed: make torch")
    from array_api_compat import torch

    # MERCER_TEST_DEVICE=cuda runs the same tests on a GPU: arrays are made there by default.
    torch.set_default_device(os.environ.get("MERCER_TEST_DEVICE", "cpu"))
    return torch


def _strict():
    return pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")


BACKENDS = {"numpy": _numpy, "torch": _torch, "array_api_strict": _strict}


@pytest.fixture(params=BACKENDS)
def xp(request):
    """An array namespace: NumPy, torch on the CPU, and one that allows only what is standard."""
    return BACKENDS[request.param]()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def pytest_terminal_summary(terminalreporter):
    """How many cases the fuzz suite tried, and how they ended."""
    total, kinds = Counter(), ("passed", "failed")
    for report in [r for kind in kinds for r in terminalreporter.stats.get(kind, [])]:
        for name, outcomes in getattr(report, "user_properties", []):
            if name == "fuzz":
                total.update(outcomes)
    if total:
        ended = ", ".join(f"{count} {name}" for name, count in total.most_common())
        terminalreporter.write_line(f"fuzz: {sum(total.values())} cases: {ended}")
