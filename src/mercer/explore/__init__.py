"""Looking at kernels: comparisons, pictures, the report page, the live explorer.

The package can be called: ``mercer.explore(X, y)`` is ``mercer.explore.explore(X, y)``.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..doors import door

if TYPE_CHECKING:
    from .live import Explorer, explore

__all__ = ["Explorer", "explore"]


# The explorer is imported when it is first used: it loads all of the library.
__getattr__ = door(__name__, {"live": "Explorer explore"})


class _Callable(ModuleType):
    """One name at the top, for the function and for the package that Python puts there."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.explore(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
