"""Folds: which rows train a model, and which new rows it is judged by."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.preprocessing import StandardScaler

from ...engine import Domain, check_at_least, is_integer
from ...kernels import listed
from ...kernels import points as pts
from ..data import CLASSES, HOLDS, NUMBERS, Explored, place_in_class

ACCURACY: str = "accuracy"
BALANCED: str = "balanced accuracy"
R2: str = "R²"
# The scores that may decide, with the targets that have them.
_SCORINGS = {"auto": None, "accuracy": CLASSES, "balanced_accuracy": CLASSES, "r2": NUMBERS}
# Folds are repeated with new divisions as long as the training sets have no more rows than this
# together: small data get more repeats, and so more certainty for the same time.
# Five folds alone have four degrees of freedom, with which hardly anything can be claimed.
FOLD_ROWS, LEAST_REPEATS, MOST_REPEATS = 10000, 2, 6
# Rows that follow each other are alike where they are closer than rows with the same target in this
# share of the cases, and by so many standard deviations.
ALIKE_SHARE, ALIKE_SURELY = 0.6, 4.0
_FOLLOWING = (
    "rows that follow each other are alike, as in a series or in groups: they are not independent, "
    "so scores are too high and differences less certain than they look (groups=... keeps rows "
    "that belong together in one fold)."
)


@dataclass
class ComparedRows(Explored):
    """Rows that models are compared on."""

    # (training rows, new rows); none without a target
    folds: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    held_out: Any = None  # mask of the rows that pictures are not fitted to
    balanced: bool = False  # whether every class counts the same
    groups: np.ndarray | None = None  # numbers of groups that a fold never divides

    def divide(
        self,
        *,
        scoring: str = "auto",
        cv: int = 5,
        repeats: int | str = "auto",
        train_size: int | None = None,
        groups: ArrayLike | None = None,
        random_state: int = 0,
    ) -> None:
        """Cut the rows into folds, and into halves for the pictures."""
        if repeats != "auto" and not (is_integer(repeats) and int(repeats) >= 1):
            raise ValueError(f"repeats must be a positive integer or 'auto', got {repeats!r}.")
        check_at_least("cv", cv, 2)
        self.balanced = _is_balanced(scoring, self.task)
        if groups is not None:
            self.groups = self._group_numbers(groups, cv, train_size)
        self.held_out = np.zeros(len(self), dtype=bool)
        if self.task is None:
            return
        # One half of every class teaches the pictures, as in [EXACT] section 4.
        order = np.random.default_rng(random_state).permutation(len(self))
        codes = np.zeros(len(self), dtype=int) if self.codes is None else self.codes[order]
        self.held_out[order] = place_in_class(codes) % 2 == 1
        if train_size is None:
            self.folds = self._cross_validation(cv, repeats, random_state)
        else:
            self.folds = self._small_lessons(cv, train_size, random_state)
        if self.task == CLASSES:
            sizes = zip(self.classes, np.bincount(self.codes).tolist())
            rare = [f"{name!r} ({size})" for name, size in sizes if size < cv]
            if rare:
                self.notes.append(
                    "these classes have fewer rows than folds, so their part of the score is "
                    f"rough: {listed(rare)}."
                )
        if _follow_each_other(self):
            self.notes.append(_FOLLOWING)

    @property
    def score_name(self) -> str | None:
        """The score that decides."""
        if self.task == CLASSES:
            return BALANCED if self.balanced else ACCURACY
        return None if self.task is None else R2

    @property
    def balance(self) -> np.ndarray:
        """n / (C n_c) for each row: weights with which every class counts the same."""
        sizes = np.bincount(self.codes)
        return len(self) / (len(sizes) * sizes[self.codes])

    def _group_numbers(self, groups, cv, train_size):
        if train_size is not None:
            raise ValueError("groups and train_size do not go together: leave one of them out.")
        groups = groups.to_numpy() if hasattr(groups, "to_numpy") else np.asarray(groups)
        n = pts.n_points(self.given[0])
        if groups.shape != (n,):
            raise ValueError(
                f"groups must hold one label for each of the {n} rows, got shape {groups.shape}."
            )
        labels, numbers = np.unique(groups[self.rows].astype(str), return_inverse=True)
        if len(labels) < cv:
            raise ValueError(
                f"groups holds {len(labels)} different labels in the {len(numbers)} rows that are "
                f"compared, and cv={cv} folds need at least {cv}: take fewer folds."
            )
        return numbers

    def _cross_validation(self, cv, repeats, random_state):
        """Every repeat divides the rows anew. Classes are spread evenly, also those with fewer rows
        than folds. Groups stay whole."""
        n = len(self)
        if n < cv:
            raise ValueError(f"cv={cv} folds need at least {cv} rows with a target, got {n}.")
        if repeats == "auto":
            repeats = int(np.clip(FOLD_ROWS // (cv * n), LEAST_REPEATS, MOST_REPEATS))
        folds = []
        for repeat in range(int(repeats)):
            rng = np.random.default_rng([random_state, repeat])
            if self.groups is not None:
                number = _whole_groups(self.groups, cv, rng)
            else:
                order = rng.permutation(n)
                if self.task == CLASSES:
                    order = order[np.argsort(self.codes[order], kind="stable")]
                number = np.empty(n, dtype=int)
                number[order] = np.arange(n) % cv
            folds += [(np.flatnonzero(number != f), np.flatnonzero(number == f)) for f in range(cv)]
        return folds

    def _small_lessons(self, cv, train_size, random_state):
        """cv disjoint blocks of rows: train_size rows of each train a model for the next block."""
        n = len(self)
        most, fewest = n // cv, len(self.classes) or 2
        if not Domain.count(fewest, most).accepts(train_size):
            raise ValueError(
                f"train_size must be an integer from {fewest} to {most} (so that {cv} groups of "
                f"{n} rows are disjoint), got {train_size!r}."
            )
        order = np.random.default_rng(random_state).permutation(n)
        if self.task == CLASSES:  # every stretch holds the classes in their shares
            codes = self.codes[order]
            share = (place_in_class(codes) + 0.5) / np.bincount(codes)[codes]
            order = order[np.argsort(share, kind="stable")]
        blocks = np.array_split(order, cv)
        return [
            (np.sort(block[:train_size]), np.sort(new))
            for block, new in zip(blocks, [*blocks[1:], blocks[0]])
        ]


def _is_balanced(scoring, task):
    """Whether every class counts the same; a score that the target does not have is refused."""
    Domain.one_of(*_SCORINGS)("scoring", scoring)
    wanted = _SCORINGS[scoring]
    if wanted is not None and task is not None and wanted != task:
        fitting = [name for name, target in _SCORINGS.items() if target == task]
        raise ValueError(
            f"scoring={scoring!r} is for {HOLDS[wanted]}, and the target "
            f"holds {HOLDS[task]}: use {' or '.join(fitting)}, or say what the target is (task)."
        )
    return scoring == "balanced_accuracy"


def _whole_groups(groups, cv, rng):
    """The fold of every row: groups in a random order, large ones first, each to the fold that has
    the fewest rows so far."""
    labels, sizes = np.unique(groups, return_counts=True)
    order = rng.permutation(len(labels))
    order = order[np.argsort(-sizes[order], kind="stable")]
    rows, fold = np.zeros(cv), np.empty(len(labels), dtype=int)
    for i in order:
        fold[i] = rows.argmin()
        rows[fold[i]] += sizes[i]
    return fold[np.searchsorted(labels, groups)]


def _follow_each_other(data):
    """Whether rows are more like the next row than like another one with as near a target. In a
    table that is sorted by its target the next row is such a row, and no closer than others."""
    n, rng = len(data), np.random.default_rng(0)
    if n < 20 or data.groups is not None:
        return False
    values = data.target if data.codes is None else data.codes
    # Rows in the order of their targets, equal ones in any order: near there is near in target.
    order = np.lexsort([rng.random(n), values])
    place = np.argsort(order)
    first, after = np.arange(n - 1), np.arange(1, n)
    steps = rng.integers(1, 4, n - 1) * rng.choice([-1, 1], n - 1)
    other = order[np.clip(place[after] + steps, 0, n - 1)]
    fair = (other != first) & (other != after) & (other != first - 1)
    near, far = (_distances(data, first[fair], z[fair]) for z in (after, other))
    if near is None:
        return False
    wins, told = float((near < far).sum()), float((near != far).sum())
    surely = (wins - told / 2) / max(told, 1.0) ** 0.5 * 2
    return wins > ALIKE_SHARE * told and surely > ALIKE_SURELY


def _distances(data, a, b):
    """Squared distances between rows, columns standardised; None where rows are not numbers."""
    if data.gram:
        own = np.diagonal(data.X)
        return own[a] + own[b] - 2 * data.X[a, b]
    X = None if scipy.sparse.issparse(data.X) else data.numbers()
    if X is None:
        return None
    X = StandardScaler(with_mean=False).fit_transform(X)
    return ((X[a] - X[b]) ** 2).sum(axis=1)
