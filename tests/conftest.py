"""Fixtures that every test file may use."""

import math
import os
import sys
import threading
from collections import Counter, defaultdict

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


@pytest.fixture
def untraced():
    """No measurement of coverage: an interrupt inside its tracer would keep the tracer's lock.

    (The marker `no_cover` of pytest-cov does nothing in the workers of pytest-xdist.)
    """
    here, in_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    yield
    threading.settrace(in_threads)
    sys.settrace(here)


# Files with the longest tests are begun first, so that no core waits for another at the end.
LONGEST = (
    "test_documentation.py",
    "rows/test_dask.py",
    "browser/test_page.py",
    "browser/test_explorer.py",
    "fuzz/test_public.py",
    "fuzz/test_fuzz.py",
)


def pytest_collection_modifyitems(config, items):
    """Leave out what says nothing new of a backend, and begin with the longest files.

    What is NumPy's own (Python functions, special functions) is tested with NumPy alone. NumPy (on
    a GPU: the first backend) meets all combinations of a test's parameters; the others meet each
    value of each parameter.
    """
    of_test, left = defaultdict(list), []
    for item in items:
        if "there" in getattr(getattr(item, "callspec", None), "params", {}):
            of_test[item.nodeid.split("[")[0]].append(item)
    for of_one in of_test.values():
        left.extend(said_already(of_one))
    if left:
        config.hook.pytest_deselected(items=left)
    gone = {id(item) for item in left}
    kept = [item for item in items if id(item) not in gone]
    items[:] = sorted(kept, key=lambda item: not item.path.as_posix().endswith(LONGEST))


def said_already(items):
    """Of the cases of one test: those off the diagonal of its parameters, on other backends."""
    values = defaultdict(dict)  # parameter -> {a value of it: its place}
    for item in items:
        for name, value in item.callspec.params.items():
            values[name].setdefault(id(value), len(values[name]))
    sizes = {name: len(found) for name, found in values.items()}
    all_combinations = len(items) == math.prod(sizes.values())
    del sizes["there"]
    longest = max(sizes, key=sizes.get, default=None)
    for item in items:
        params = item.callspec.params
        if params["there"] != "numpy" and numpy_only(params.get("kernel")):
            yield item
            continue
        if params["there"] == next(iter(BACKENDS)):
            continue
        place = {name: values[name][id(params[name])] for name in sizes}
        diagonal = all(place[name] == place[longest] % sizes[name] for name in sizes)
        if all_combinations and not diagonal:
            yield item


@pytest.fixture(scope="module")
def few_trees():
    """Comparisons whose boosted trees are few: they take nine tenths of the time."""
    from mercer.explore.compare import baselines

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "_MOST_TREES", 20)
        yield


@pytest.fixture(scope="module")
def quick_workers():
    """Dask's workers are forked from a process that has imported everything: tests start and kill
    many of them, and each would spend seconds importing."""
    import dask
    from distributed.utils import get_mp_context

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        modules = ["distributed", "dask.dataframe", "mercer", "mercer.rows.dask"]
        get_mp_context().set_forkserver_preload(modules)
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
