"""Sizes of a search that fits its memory: how many rows and landmarks its parts may have.

What a part takes is counted in matrices of doubles, as peaks of resident memory show it. Without a
limit every part has its usual size.
"""

import math
from dataclasses import replace

from ..engine import MemoryLimitError, Resources, current, readable

# Square matrices of the rows of evidence, and of rows whose errors are exact.
EVIDENCE, EXACT = 13, 9
# Matrices of a stage: rows by landmarks, and landmarks by landmarks.
OBLONG, SQUARE = 8, 5
# Copies of the table and of its targets; what the smallest search takes beside them; and the share
# of the rest that is planned with: what is freed is not given back at once.
COPIES, LEAST, SHARE = 8, 20_000_000, 0.75


def beside_table(n: int, width: int) -> Resources:
    """Resources to learn from n rows of so many numbers; refused where they are too little.

    width : of the rows and their targets
    """
    if current().memory_limit is None:
        return current()
    limit, held = current().limit(), 8 * COPIES * n * width
    if limit < held + LEAST:
        raise MemoryLimitError(
            f"to learn a kernel from {n} rows of {width} numbers, targets included, takes at least "
            f"{readable(held + LEAST)}; memory_limit allows {readable(limit)}. Raise it, or learn "
            "from fewer rows."
        )
    return replace(current(), memory_limit=int(SHARE * (limit - held)))


def rows_within(most: int, matrices: int) -> int:
    """Rows, so many at most, of which so many square matrices fit."""
    return min(most, math.isqrt(_room() // matrices))


def stage_landmarks(rows: int, most: int) -> int:
    """Landmarks, so many at most, of a stage with so many rows."""
    half = OBLONG * rows / 2
    return min(most, max(1, int((math.sqrt(half**2 + SQUARE * _room()) - half) / SQUARE)))


def block_values(most: int) -> int:
    """Numbers, so many at most, of one of a dozen arrays that a block of rows needs."""
    return min(most, _room() // 24)


def _room() -> int:
    """Numbers that fit; no end of them where nobody has set a limit."""
    return (1 << 60) if current().memory_limit is None else current().limit() // 8
