"""Rows: where they come from (arrays, streams, Dask collections), and sums over them."""

from .gather import drawn_rows, in_pieces
from .held import Column, HeldRows, LargestResidual, Rows, rows_at, stacked
from .lazy import in_turn, lazily
from .moments import ByClass, Spread
from .read import (
    Training,
    check_kind,
    check_n_columns,
    read,
    read_sample,
    read_whole,
    validated_points,
)
from .streams import first_block, refuse_stream
from .workers import Workers
