"""A fitted TableEncoder of numbers as an ONNX graph: gaps are NaN, and filled in the graph."""

import numpy as np

from ...tables import Numbers, Ranks, TableEncoder


def encoded_tensor(encoder: TableEncoder, X):
    """The encoder's outputs for rows of numbers; columns of words and dates are refused by name."""
    parts = []
    for j, (made, record) in enumerate(zip(encoder.encoders_, encoder.columns_)):
        if made is None:
            continue
        if not isinstance(made, Numbers):
            raise TypeError(
                f"to_onnx: the column {record['name']!r} is a {record['kind']}, and ONNX graphs "
                "take rows of numbers. Fit on columns of numbers, or save the model with "
                "mercer.save."
            )
        parts += _numbers(made, X.columns([j]))
    return parts[0] if len(parts) == 1 else parts[0].concat(*parts[1:])


def _numbers(made, x):
    """As Numbers.transform: scaled values, where they were missing, ranks, single values."""
    graph = x.graph
    missing = graph.op("IsNaN", x)
    x = graph.op("Where", missing, made.median_, x)
    parts = [(x - made.centre_) / made.spread_]
    parts += [missing.cast(np.float64)] if made.marks_missing_ else []
    parts += [_ranks(made.ranks_, x)] if made.ranks_ is not None else []
    if made.levels_ is not None:
        parts.append(graph.op("Equal", x, made.levels_[None, :]).cast(np.float64))
    return parts


def _ranks(ranks: Ranks, x):
    """Linear between knots: what each step between two knots adds, up to x."""
    below, above = ranks.knots_[:-1], ranks.knots_[1:]
    slopes = np.diff(ranks.shares_) / (above - below)
    steps = x.maximum(below[None, :]).minimum(above[None, :]) - below[None, :]
    return ((steps @ slopes[:, None]) + (ranks.shares_[0] - ranks.centre_)) / ranks.spread_
