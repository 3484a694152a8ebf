"""Memory is predicted, not discovered: what a fit may take, and what its parts need.

Every prediction in the library is made of the functions below, and so is `mercer.plan`. They take n
rows, r columns (coordinates, or columns of data) and numbers of `size` bytes, and return bytes.
"""

import math
import re

from .arrays import Array, free_memory, is_cpu

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
# Share of the free memory that a fit may plan with when the user sets no limit.
_DEFAULT_SHARE = 0.6
# A device's free memory is nobody else's.
_DEVICE_SHARE = 0.9


class MemoryLimitError(MemoryError, ValueError):
    """The work would need more memory than memory_limit allows; the message says what would fit."""


def budget(memory_limit: float | str | None, X: Array | None = None) -> int:
    """memory_limit (bytes, "2GB" or None) in bytes, where X lives."""
    if memory_limit is None:
        share = _DEFAULT_SHARE if X is None or is_cpu(X) else _DEVICE_SHARE
        return int(share * free_memory(X))
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", memory_limit.lower())
        if match and match[2] in _UNITS:
            memory_limit = float(match[1]) * _UNITS[match[2]]
    if isinstance(memory_limit, (bool, str)) or not isinstance(memory_limit, (int, float)):
        raise TypeError(
            f"memory_limit must be a number of bytes or a text such as '2GB', got {memory_limit!r}."
        )
    if not 0 < memory_limit < float("inf"):
        raise ValueError(f"memory_limit must be positive and finite, got {memory_limit!r}.")
    return int(memory_limit)


# --- what a pass may take -------------------------------------------------------------------------

# Square matrices of the size of the factor that choosing, growing and reordering landmarks holds.
_FACTOR_COPIES = 5
# Values in one panel of kernel values that is solved at once: large enough for BLAS's threads.
PANEL_VALUES = 1 << 22
# A pass takes so much in any case: smaller limits would be kept by refusing everything.
_LEAST_LIMIT = 16_000_000


# --- what is needed -------------------------------------------------------------------------------


def matrix_bytes(n: int, copies: float = 1, size: int = 8) -> float:
    """Square matrices, one row and one column per point."""
    return copies * n * n * size


def coordinates_bytes(n: int, r: int, copies: float = 1, size: int = 8) -> float:
    """Arrays with r numbers per row."""
    return copies * n * r * size


class MapBytes:
    """Memory of a fit of a map, for each of the ways in which it can be made.

    `copies` is how many arrays of the coordinates' shape the caller holds at once, `squares` how
    many further ones of r x r numbers.
    """

    # Landmarks and coordinates of a sample may take this share of the limit, beside tiles.
    LANDMARK_SHARE = 0.75

    @staticmethod
    def stored(
        n: int,
        copies: float = 2,
        size: int = 8,
        *,
        on_cpu: bool = True,
        proven: bool = True,
        squares: int = 0,
    ) -> float:
        """K is stored: K, the coordinates and the factor (on a device these two are one); once more
        for a kernel of unknown validity, to be compared with the coordinates."""
        return matrix_bytes(n, max(copies, 3 if on_cpu else 2) + (not proven) + squares, size)

    @staticmethod
    def partial(n: int, r: int, copies: float = 2, size: int = 8) -> float:
        """r columns of K are evaluated: coordinates, and the factor with what it takes."""
        return coordinates_bytes(n, r, copies, size) + matrix_bytes(r, 3, size)

    @staticmethod
    def streamed(r: int, sample: int, panel: int = PANEL_VALUES, size: int = 8) -> float:
        """Rows are passed over: the factor, coordinates of a sample, and panels of values."""
        held = coordinates_bytes(sample, r, size=size) + 4 * panel * size
        return matrix_bytes(r, _FACTOR_COPIES, size) + held

    @staticmethod
    def partial_rank(
        n: int, limit: float, size: int = 8, copies: float = 2, squares: int = 0
    ) -> int:
        """The largest r with which a partial fit is within the limit, at least 1. The coordinates
        that the fit itself needs are gone when the caller's squares are made."""
        after = _largest_rank(3 + squares, (copies - 1) * n, limit / size)
        return min(_largest_rank(3, copies * n, limit / size), after)

    @classmethod
    def streamed_rank(cls, rows: int, limit: float, size: int = 8, copies: float = 1) -> int:
        """The largest rank that a fit which passes over rows may reach, with coordinates of so
        many."""
        room = cls.LANDMARK_SHARE * max(limit, _LEAST_LIMIT) / size
        return _largest_rank(_FACTOR_COPIES, copies * rows, room)


def _largest_rank(factors: float, rows: float, numbers: float) -> int:
    """The largest r, at least 1, with factors r^2 + rows r numbers at most."""
    return max(1, int((math.sqrt(rows**2 + 4 * factors * numbers) - rows) / (2 * factors)))


def readable(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"
