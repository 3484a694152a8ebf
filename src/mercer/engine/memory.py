"""Memory is predicted, not discovered."""

import re

from .arrays import free_memory, is_cpu

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
# Share of the free memory that a fit may plan with when the user sets no limit.
DEFAULT_SHARE = 0.6
# A device's free memory is nobody else's.
DEVICE_SHARE = 0.9


class MemoryLimitError(MemoryError, ValueError):
    """The work would need more memory than memory_limit allows; the message says what would fit."""


def budget(memory_limit, X=None):
    """memory_limit (bytes, "2GB" or None) in bytes, where X lives."""
    if memory_limit is None:
        share = DEFAULT_SHARE if X is None or is_cpu(X) else DEVICE_SHARE
        return int(share * free_memory(X))
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", memory_limit.lower())
        if match and match[2] in UNITS:
            memory_limit = float(match[1]) * UNITS[match[2]]
    if isinstance(memory_limit, (bool, str)) or not isinstance(memory_limit, (int, float)):
        raise TypeError(
            f"memory_limit must be a number of bytes or a text such as '2GB', got {memory_limit!r}."
        )
    if not 0 < memory_limit < float("inf"):
        raise ValueError(f"memory_limit must be positive and finite, got {memory_limit!r}.")
    return int(memory_limit)


def readable(n_bytes):
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"
