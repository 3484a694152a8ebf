"""Free memory is known on every system, and inside control groups."""

import builtins
import os
from pathlib import Path

import numpy as np
import psutil
import pytest

from mercer import RBF, KernelMap
from mercer.engine import host_memory
from mercer.engine.arrays import free_memory

GB = 10**9


@pytest.fixture
def machine(monkeypatch):
    """A machine with 8 of 16 GB free."""

    class Memory:
        total, available = 16 * GB, 8 * GB

    monkeypatch.setattr(psutil, "virtual_memory", Memory)


@pytest.fixture
def groups(monkeypatch, tmp_path, machine):
    """An empty tree of control groups, and a function that writes one."""
    monkeypatch.setattr(host_memory, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(host_memory, "_MEMBERSHIP", tmp_path / "membership")

    def write(membership, **folders):
        (tmp_path / "membership").write_text(membership)
        for folder, files in folders.items():
            for name, text in files.items():
                path = tmp_path / "cgroup" / folder.replace("__", "/") / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{text}\n")

    return write


@pytest.mark.parametrize("system", ["macOS", "Windows"])
def test_fits_need_nothing_that_only_linux_has(monkeypatch, system, machine):
    """Neither sysconf's Linux names (Windows: no sysconf at all), nor /proc, nor /sys."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    KernelMap(RBF(1.0)).fit(X)  # threadpoolctl finds BLAS by the means of the real system
    if system == "Windows":
        monkeypatch.delattr(os, "sysconf")
    else:
        known, sysconf = {"SC_PAGE_SIZE", "SC_PHYS_PAGES"}, os.sysconf

        def of_macos(name):
            if name not in known:
                raise ValueError(f"unrecognized configuration name {name!r}")
            return sysconf(name)

        monkeypatch.setattr(os, "sysconf", of_macos)
    opened = builtins.open

    def without_proc(path, *args, **kwargs):
        if str(path).startswith(("/proc", "/sys")):
            raise FileNotFoundError(path)
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", without_proc)
    monkeypatch.setattr("io.open", without_proc)
    assert KernelMap(RBF(1.0)).fit(X).rank_ == 20
    assert free_memory() == 8 * GB


def test_a_real_machine_has_memory():
    assert 2**20 < free_memory() <= psutil.virtual_memory().total


def test_page_cache_of_a_group_is_free(groups):
    groups(
        "0::/",
        **{
            "": {
                "memory.max": 4 * GB,
                "memory.current": 3 * GB,
                "memory.stat": f"anon {GB}\nfile {2 * GB}\ninactive_file {2 * GB}\nactive_file 0",
            }
        },
    )
    assert free_memory() == 3 * GB


def test_the_tightest_group_counts(groups):
    groups(
        "0::/batch/job",
        batch={"memory.max": 2 * GB, "memory.current": GB // 2},
        batch__job={"memory.max": "max", "memory.current": GB // 4},
    )
    assert free_memory() == 3 * GB // 2


def test_groups_of_version_1(groups):
    groups(
        "5:devices:/job\n4:cpu,memory:/job\n0::/",
        memory={"memory.limit_in_bytes": 2**63 - 4096, "memory.usage_in_bytes": 6 * GB},
        memory__job={
            "memory.limit_in_bytes": 2 * GB,
            "memory.usage_in_bytes": 3 * GB // 2,
            "memory.stat": f"cache {GB}\ntotal_inactive_file {GB // 4}",
        },
    )
    assert free_memory() == 3 * GB // 4


def test_a_group_allows_no_more_than_the_machine_has(groups):
    groups("0::/", **{"": {"memory.max": 64 * GB, "memory.current": 0}})
    assert free_memory() == 8 * GB


def test_an_overfull_group_has_nothing(groups):
    groups("0::/", **{"": {"memory.max": GB, "memory.current": 2 * GB}})
    assert free_memory() == 0


def test_what_cannot_be_read_is_left_out(groups, tmp_path):
    groups("0::/gone", **{"": {"memory.max": "nonsense", "memory.current": 1}})
    assert free_memory() == 8 * GB
    host_memory._MEMBERSHIP.unlink()
    assert free_memory() == 8 * GB


LINUX_ONLY = (
    "os.sysconf",
    "sched_getaffinity",
    "/proc/",
    "/sys/",
    "import resource",
    "import fcntl",
)


def test_no_file_calls_what_only_linux_has():
    root = Path(host_memory.__file__).parents[1]
    found = {
        (path.relative_to(root).as_posix(), call)
        for path in root.rglob("*.py")
        for call in LINUX_ONLY
        if call in path.read_text(encoding="utf-8")
    }
    # The one place, where a missing file is expected.
    assert found == {("engine/host_memory.py", "/proc/"), ("engine/host_memory.py", "/sys/")}
