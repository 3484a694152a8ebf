"""Which of several sets of columns predicts best: a short search on some rows decides."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..kernels import Matern
from .learn_kernel import learn_from
from .observations import Observations
from .targets import Targets

# Rows, landmarks and rounds of the short search.
ROWS, LANDMARKS, ROUNDS = 1000, 500, 3
# A later candidate is taken if the squared leave-one-out error falls by this share over the root
# of the number of rows: differences of that order arise by chance.
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
    """The candidate, a list of columns, with the smallest leave-one-out error on some rows.

    The first one is kept unless another is clearly better.
    """
    some = rows.some(rng.permutation(rows.n)[:ROWS])
    seed = int(rng.integers(2**31))

    def error(columns):
        found = learn_from(
            replace(some, X=some.X[:, columns]),
            targets,
            Matern(1.5),
            metric=metric,
            max_landmarks=LANDMARKS,
            n_rounds=min(n_rounds, ROUNDS),
            rng=np.random.default_rng(seed),
            verbose=False,
            quick=True,
        )
        return found.error**2

    best, least = candidates[0], error(candidates[0])
    for candidate in candidates[1:]:
        found = error(candidate)
        if found < (1 - GAIN / some.n**0.5) * least:
            best, least = candidate, found
    return best
