"""How much memory the machine has free, on Linux, macOS and Windows alike.

psutil knows what the operating system can give. A control group (a container, a batch job) may
allow less: its limits are files that exist on Linux alone, and are left out elsewhere.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import psutil

_GROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
# Names of the limit, the use, and the page cache in memory.stat: control groups version 2 and 1.
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def free_host_memory() -> int:
    """Bytes that can be allocated: what the system has, or what a control group leaves of it."""
    memory = psutil.virtual_memory()
    return max(0, min([int(memory.available), *_left_by_groups(memory.total)]))


def _left_by_groups(total: int) -> Iterator[int]:
    """Memory left in each control group of this process that has a limit."""
    try:
        membership = _MEMBERSHIP.read_text("utf-8")
    except OSError:  # not Linux
        return
    for folder, (limit, used, cache) in _groups(membership, _GROUPS):
        try:
            allowed = int((folder / limit).read_text("utf-8"))
            if allowed >= total:  # no limit; every fit asks, and the other files take longer
                continue
            left = allowed - int((folder / used).read_text("utf-8"))
        except (OSError, ValueError):  # no such group, or no limit ("max")
            continue
        # Pages of files that were read once are counted as used, and are given up on demand.
        with suppress(OSError, ValueError):
            lines = (folder / "memory.stat").read_text("utf-8").splitlines()
            pairs = (line.split() for line in lines)
            left += {name: int(number) for name, number in pairs}.get(cache, 0)
        yield left


@lru_cache(maxsize=8)
def _groups(membership: str, groups: Path) -> list[tuple[Path, tuple[str, str, str]]]:
    """The folders of this process's control groups and of all that contain them: inside a container
    usually the root alone."""
    found: list[tuple[Path, tuple[str, str, str]]] = []
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = groups, _VERSION_2
        elif "memory" in controllers.split(","):
            root, names = groups / "memory", _VERSION_1
        else:
            continue
        own = root / path.lstrip("/")
        around = [folder for folder in own.parents if folder == root or root in folder.parents]
        found += [(folder, names) for folder in (own, *around)]
    return found
