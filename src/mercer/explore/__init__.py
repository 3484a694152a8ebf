"""Looking at kernels: comparisons, pictures, the report page, the live explorer."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .live import Explorer, explore

__all__ = ["Explorer", "explore"]


def __getattr__(name):
    """The explorer is imported when it is first used: it loads all of the library."""
    if name not in __all__:
        raise AttributeError(f"module 'mercer.explore' has no attribute {name!r}")
    from . import live

    return getattr(live, name)
