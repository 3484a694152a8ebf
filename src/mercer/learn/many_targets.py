"""Hundreds of targets or classes: random combinations of them stand for all in the search.

Ridge is linear in its targets, so the errors of T R are E R where E are those of T. With
independent normal entries of variance 1 / s in the s columns of R, the expected sum of squares of
E R is that of E: the search compares kernels by it. The same holds for the average outer product of
gradients.
"""

from dataclasses import replace

import numpy as np

from ..engine import on_device_of
from .observations import Observations
from .targets import Targets

# Columns of the search: more targets than that are combined into so many.
MOST_COLUMNS = 50


def in_few_columns(
    rows: Observations, targets: Targets, rng: np.random.Generator
) -> tuple[Observations, Targets]:
    """Rows and targets as they are, or with random combinations of the targets in their place."""
    t = targets.columns.shape[1]
    if t <= MOST_COLUMNS:
        return rows, targets
    R = rng.spawn(1)[0].normal(size=(t, MOST_COLUMNS)) / MOST_COLUMNS**0.5
    return (
        replace(rows, T=rows.T @ on_device_of(R, rows.T)),
        replace(targets, columns=targets.columns @ R),
    )
