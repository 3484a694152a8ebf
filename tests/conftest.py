"""Fixtures that every test file may use."""

import os
import sys
from collections import Counter

# scikit-learn's array API checks run only with this, and SciPy reads it when it is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Tests that run side by side would take each other's cores: threads of BLAS wait by spinning.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest

from backends import BACKENDS, Backend
from every_kernel import numpy_only

# One deterministic profile: a law that fails must fail again, and no machine is too slow.
hypothesis.settings.register_profile(
    "mercer",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("mercer")


@pytest.fixture(params=BACKENDS)
def xp(request):
    """An array namespace: NumPy, torch, and one that allows only what is standard."""
    return BACKENDS[request.param]()


@pytest.fixture(params=BACKENDS)
def there(request):
    """The same, for tests written in NumPy: see backends.py."""
    return Backend(BACKENDS[request.param]())


def pytest_collection_modifyitems(config, items):
    """What is NumPy's own (Python functions, special functions) is tested with NumPy alone."""
    kept, left = [], []
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        foreign = params.get("there", "numpy") != "numpy"
        (left if foreign and numpy_only(params.get("kernel")) else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


@pytest.fixture(scope="module")
def few_trees():
    """Comparisons whose boosted trees are few: they take nine tenths of the time."""
    from mercer.explore.compare import baselines

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "MOST_TREES", 20)
        yield


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    """mercer ARGUMENTS in an empty folder -> (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        from mercer.cli import main

        monkeypatch.setattr(sys, "argv", ["mercer", *map(str, arguments)])
        code = main()
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return command


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
