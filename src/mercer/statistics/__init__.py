"""Comparing samples in feature space: are they alike, and does one depend on the other?"""

# --- the door: written by tools/doors.py
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..engine import door as _door

if _TYPE_CHECKING:
    from .drift import DriftDetector

__getattr__ = _door(
    __name__,
    {
        "drift": "DriftDetector",
    },
)
# --- end of the door
