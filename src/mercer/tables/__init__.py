"""Tables: files, values as people write them, kinds of columns, and their encoding."""

from typing import TYPE_CHECKING

from . import encoder_tools, given
from .columns import Numbers
from .encoder import UNREAD, TableEncoder
from .errors import BadInput
from .notes import IDENTIFIER, TEXT
from .reading import read_like, read_target
from .sample_encoder import SampleEncoder

if TYPE_CHECKING:
    from .files import check_column, check_unpacked, first_line, read_table

__all__ = [
    "IDENTIFIER",
    "TEXT",
    "UNREAD",
    "BadInput",
    "SampleEncoder",
    "TableEncoder",
    "check_column",
    "check_unpacked",
    "encoder_tools",
    "first_line",
    "given",
    "read_like",
    "read_table",
    "read_target",
]


def __getattr__(name):
    # Files are read with pandas, which an encoder of arrays does not need.
    if name in __all__:
        from . import files

        return getattr(files, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
