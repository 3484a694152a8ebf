"""Rows: where they come from (arrays, streams, Dask collections), and sums over them."""
