"""Tables: files, values as people write them, kinds of columns, and their encoding."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..doors import door as _door
from . import encoder_tools, given
from .columns import Numbers
from .encoder import UNREAD, TableEncoder
from .given import BadInput
from .reading import WrittenTarget
from .sample_encoder import SampleEncoder

if _TYPE_CHECKING:
    from .files import check_column, read_arrays, read_table

# Files are read with pandas, which an encoder of arrays does not need.
__getattr__ = _door(__name__, {"files": "check_column read_arrays read_table"})
