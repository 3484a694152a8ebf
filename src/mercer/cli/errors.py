"""The one kind of error that the command shows without a traceback."""

from ..tables import BadInput

__all__ = ["BadInput"]
