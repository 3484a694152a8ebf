"""Rows: where they come from (arrays, streams, Dask collections), and sums over them."""

from .draw import drawn_rows
from .held import HeldRows, rows_at, stacked
from .interface import Column, LargestResidual, Rows
from .lazy import in_turn, lazily
from .moments import ByClass, Spread
from .read import Training, read, read_sample, read_whole
from .source import first_block, in_pieces, refuse_stream
from .validate import check_kind, check_n_columns, validated_points
from .workers import Workers
