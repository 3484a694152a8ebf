"""Tables: files, values as people write them, kinds of columns, and their encoding."""

from typing import TYPE_CHECKING

from .columns import column_values, dates_one_by_one, numbers_one_by_one
from .encoder import IDENTIFIED, UNREAD, TableEncoder, array_of_lists, check_names
from .errors import BadInput
from .notes import DATE, IDENTIFIER, NUMBER, TEXT

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
    "dates_one_by_one",
    "first_line",
    "numbers_one_by_one",
    "read_table",
]


def __getattr__(name):
    # Files are read with pandas, which an encoder of arrays does not need.
    if name in __all__:
        from . import files

        return getattr(files, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
