"""Tables: files, values as people write them, kinds of columns, and their encoding."""

from typing import TYPE_CHECKING

from .columns import (
    column_values,
    declared_categories,
    reads_as,
    spelled,
)
from .decisions import IDENTIFIED
from .encoder import UNREAD, TableEncoder
from .errors import BadInput
from .given import array_of_lists, check_names
from .notes import DATE, IDENTIFIER, NUMBER, TEXT
from .target import read_like, read_target

if TYPE_CHECKING:
    from .files import check_column, check_unpacked, first_line, read_table

__all__ = [
    "DATE",
    "IDENTIFIED",
    "IDENTIFIER",
    "NUMBER",
    "TEXT",
    "UNREAD",
    "BadInput",
    "TableEncoder",
    "array_of_lists",
    "check_column",
    "check_names",
    "check_unpacked",
    "column_values",
    "declared_categories",
    "first_line",
    "read_like",
    "read_table",
    "read_target",
    "reads_as",
    "spelled",
]


def __getattr__(name):
    # Files are read with pandas, which an encoder of arrays does not need.
    if name in __all__:
        from . import files

        return getattr(files, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
