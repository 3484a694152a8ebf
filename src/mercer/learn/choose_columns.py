"""Which of several sets of columns predicts best: rows that a short search has not seen decide."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..engine.arrays import as_numpy
from .cross_fit import CrossFit, better
from .observations import Observations
from .targets import Targets

# Rows and rounds of the short search, and parts of the rows: each judges what the others found.
ROWS, ROUNDS, PARTS = 1000, 3, 2
# More columns must also lower the mean loss by this share over the root of the number of rows.
GAIN = 2.0


def choose_columns(
    rows: Observations,
    targets: Targets,
    candidates: Sequence[np.ndarray],
    *,
    metric: str | None,
    n_rounds: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """The candidate, a list of columns, that predicts rows best which its search has not seen.

    The first one is kept unless another is better by more than chance would have it.
    """
    some = rows.some(rng.permutation(rows.n)[:ROWS])
    weights = None if some.weights is None else as_numpy(some.weights)
    some = replace(some, share=None, spread=None, group=np.arange(some.n), row_weights=weights)
    targets = replace(targets, columns=as_numpy(some.T), weights=weights)
    seed = int(rng.integers(2**31))
    folds = CrossFit(some, targets, None, min(n_rounds, ROUNDS), seed, parts=PARTS)
    (best,) = folds.candidates([metric], candidates[0])
    for columns in candidates[1:]:
        (new,) = folds.candidates([metric], columns)
        fewer = len(columns) < len(best.columns)
        if fewer or new.error < (1 - GAIN / some.n**0.5) * best.error:
            best = better(new, best)
    return best.columns
