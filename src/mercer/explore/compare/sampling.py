"""The rows that are compared: which of them, their target, and the folds."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import type_of_target

from ...engine.arrays import as_numpy, is_array, is_numpy
from ...engine.checks import check_at_least, is_count, is_integer
from ...kernels.points import as_gram, is_frame, n_points
from ...kernels.printing import listed
from ...learn.targets import are_class_numbers
from ...rows.held import rows_at

CLASSES, NUMBERS = "classification", "regression"
HOLDS = {CLASSES: "classes", NUMBERS: "numbers"}
# The scores that may decide, with the targets that have them.
SCORINGS = {"auto": None, "accuracy": CLASSES, "balanced_accuracy": CLASSES, "r2": NUMBERS}
# Folds are repeated with new divisions as long as the training sets have no more rows than this
# together: small data get more repeats, and so more certainty for the same time.
# Five folds alone have four degrees of freedom, with which hardly anything can be claimed.
FOLD_ROWS, LEAST_REPEATS, MOST_REPEATS = 10000, 2, 6


@dataclass
class ComparedRows:
    """Rows of the data, their target, and how they are split."""

    X: Any
    y: Any  # classes or numbers; None without a target
    rows: np.ndarray  # positions in the data as given
    task: str | None  # CLASSES, NUMBERS, or None without a target
    gram: bool
    folds: list
    picture: tuple  # (training rows, rows placed afterwards) of the embeddings
    notes: list[str] = field(default_factory=list)
    usable: np.ndarray | None = None  # rows with a target, before any were drawn
    balanced: bool = False  # whether every class counts the same
    groups: np.ndarray | None = None  # rows that belong together are never divided by a fold

    def __post_init__(self):
        self.classes: Any = None
        self.codes: Any = None
        self.balance: Any = None  # n / (C n_c) of each class
        if self.task == CLASSES:
            assert self.y is not None
            self.classes, self.codes = np.unique(self.y.astype(str), return_inverse=True)
            sizes = np.bincount(self.codes)
            self.balance = len(self.y) / (len(sizes) * sizes)

    def __len__(self):
        return len(self.rows)

    @property
    def n_classes(self):
        return len(self.classes)

    def ridge_targets(self, rows):
        """(targets, importance) of ridge; classes are columns of 0 and 1."""
        if self.task == NUMBERS:
            assert self.y is not None
            return self.y[rows][:, None].astype(float), None
        codes = self.codes[rows]
        return np.eye(self.n_classes)[codes], self.balance[codes] if self.balanced else None

    def take(self, rows, against=None):
        """Points at these rows; of a Gram matrix, their columns against other rows as well."""
        if not self.gram:
            return select(self.X, rows)
        return self.X[np.ix_(rows, rows if against is None else against)]


def draw(
    X,
    y,
    *,
    gram,
    task,
    cv,
    repeats,
    train_size,
    max_points,
    random_state,
    scoring="auto",
    groups=None,
):
    """The sample that is compared, with a note on every row left out."""
    if is_array(X) and not is_numpy(X):
        X = as_numpy(X)  # pictures and folds are made on the CPU
    X = np.asarray(X) if isinstance(X, np.matrix) else X  # it has an arithmetic of its own
    n = n_points(X)
    notes: list[str] = []
    _check_sizes(n, cv, repeats, max_points)
    if gram:
        X = np.asarray(as_gram(X), dtype=float)
        if X.ndim != 2 or X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed() needs a square Gram matrix, got shape {X.shape}.")
    y, task = _target(y, n, task, notes)
    groups = _checked_groups(groups, n, cv, train_size)
    balanced = _balanced(scoring, task)
    rows = np.arange(n)
    if y is not None:
        rows = rows[_usable(y, task, notes)]
    if not is_integer(random_state) or not 0 <= random_state < 2**32:
        raise ValueError(f"random_state must be an integer of at least 0, got {random_state!r}.")
    usable = rows
    rng = np.random.default_rng(int(random_state))
    if len(rows) > max_points:
        notes.append(
            f"{max_points} of {len(rows)} rows were drawn at random for the comparison "
            "(max_points changes that)."
        )
        rows = _subset(rows, None if y is None else y[rows], task, max_points, rng)
    y = None if y is None else y[rows]
    X = X[np.ix_(rows, rows)] if gram else select(X, rows)
    if task == CLASSES and len(np.unique(y)) < 2:
        raise ValueError(
            f"the target holds one class only ({str(y[0])!r}): there is nothing to predict. "
            "Leave it out to look at the spaces alone."
        )
    groups = None if groups is None else groups[rows]
    if train_size is None:
        folds = _folds(y, task, cv, repeats, random_state, groups)
    else:
        folds = _small_lessons(y, task, cv, train_size, random_state)
    if task == CLASSES:
        _note_rare(y, cv, notes)
    halves = _halves(rows, y, task, random_state)
    return ComparedRows(X, y, rows, task, gram, folds, halves, notes, usable, balanced, groups)


def _balanced(scoring, task):
    """Whether every class counts the same; a score that the target does not have is refused."""
    if not isinstance(scoring, str) or scoring not in SCORINGS:
        raise ValueError(f"scoring must be one of {listed(list(SCORINGS))}, got {scoring!r}.")
    wanted = SCORINGS[scoring]
    if wanted is not None and task is not None and wanted != task:
        fitting = [name for name, target in SCORINGS.items() if target == task]
        raise ValueError(
            f"scoring={scoring!r} is for {HOLDS[wanted]}, and the target "
            f"holds {HOLDS[task]}: use {' or '.join(fitting)}, or say what the target is (task)."
        )
    return scoring == "balanced_accuracy"


def select(X, rows):
    """Rows of anything that has rows: arrays, frames, sparse matrices, lists of objects."""
    return rows_at(X, rows)


def _check_sizes(n, cv, repeats, max_points):
    if repeats != "auto" and (not is_integer(repeats) or repeats < 1):
        raise ValueError(f"repeats must be a positive integer or 'auto', got {repeats!r}.")
    if not is_count(cv) or cv < 2:
        raise ValueError(f"cv must be a number of folds of at least 2, got {cv!r}.")
    check_at_least("max_points", max_points, 10)
    if n < 4:
        raise ValueError(f"{n} sample(s) are too few to compare kernels on; at least 4 are needed.")


def _target(y, n, task, notes):
    if task not in ("auto", CLASSES, NUMBERS):
        raise ValueError(f"task must be 'auto', {CLASSES!r} or {NUMBERS!r}, got {task!r}.")
    if y is None:
        return None, None
    y = as_numpy(y) if is_array(y) else np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n,):
        raise ValueError(f"y must hold one value for each of the {n} rows, got shape {y.shape}.")
    if task == "auto":
        task = _guessed(y, notes)
    if task == NUMBERS:
        try:
            return y.astype(float), task
        except (TypeError, ValueError):
            raise ValueError(f"task={NUMBERS!r} needs a numeric target, got {y[:1]!r}.") from None
    return y, task


def _guessed(y, notes):
    if y.dtype.kind in "OUSb":
        return CLASSES
    known = y[np.isfinite(y)] if y.dtype.kind == "f" else y
    if type_of_target(known) == "continuous":
        return NUMBERS
    n_values = len(np.unique(known))
    task, other = (CLASSES, NUMBERS) if are_class_numbers(known) else (NUMBERS, CLASSES)
    if n_values > 2:
        notes.append(
            f"the target has {n_values} different whole numbers, read as "
            f"{HOLDS[task]} "
            f"(task={other!r} changes that)."
        )
    return task


def _usable(y, task, notes):
    """Rows with a target, in classes large enough to be tested on."""
    if y.dtype.kind == "O":
        known = np.array([v is not None and v == v for v in y])
    else:
        known = np.isfinite(y) if y.dtype.kind == "f" else np.ones(len(y), dtype=bool)
    if not known.all():
        notes.append(f"{(~known).sum()} rows without a target were left out.")
    if task == CLASSES:
        codes = class_codes(y[known])
        small = np.bincount(codes)[codes] < 2
        if small.any():
            shown = listed(sorted(set(map(str, y[known][small]))))
            notes.append(
                f"{small.sum()} rows that are alone in their class were left out: {shown}."
            )
            known[np.flatnonzero(known)[small]] = False
    if known.sum() < 4:
        raise ValueError(f"only {known.sum()} rows have a usable target; at least 4 are needed.")
    return known


def _subset(rows, y, task, size, rng):
    """A random sample in the original order, with at least two of every class."""
    if task != CLASSES:
        return np.sort(rng.choice(rows, size, replace=False))
    order = rng.permutation(len(rows))
    # The first two of every class come first.
    first = np.argsort(_place_in_class(class_codes(y[order])) >= 2, kind="stable")[:size]
    return np.sort(rows[order[first]])


def _checked_groups(groups, n, cv, train_size):
    """Numbers of the groups, or None."""
    if groups is None:
        return None
    if train_size is not None:
        raise ValueError("groups and train_size do not go together: leave one of them out.")
    given = groups.to_numpy() if hasattr(groups, "to_numpy") else np.asarray(groups)
    if given.shape != (n,):
        raise ValueError(
            f"groups must hold one label for each of the {n} rows, got shape {given.shape}."
        )
    numbers = np.unique(given.astype(str), return_inverse=True)[1]
    if numbers.max() + 1 < cv:
        raise ValueError(
            f"groups holds {numbers.max() + 1} different labels, and cv={cv} folds need at least "
            f"{cv}: take fewer folds."
        )
    return numbers


def _folds(y, task, cv, repeats, random_state, groups=None):
    """(training rows, new rows) for every fold of every repeat; none without a target.

    Classes are spread evenly, also those with fewer rows than folds. Groups stay whole.
    """
    if y is None:
        return []
    if len(y) < cv:
        raise ValueError(f"cv={cv} folds need at least {cv} rows with a target, got {len(y)}.")
    if repeats == "auto":
        repeats = int(np.clip(FOLD_ROWS // (cv * len(y)), LEAST_REPEATS, MOST_REPEATS))
    folds = []
    for repeat in range(repeats):
        rng = np.random.default_rng([random_state, repeat])
        if groups is not None:
            number = _whole_groups(groups, cv, rng)
        else:
            order = rng.permutation(len(y))
            if task == CLASSES:
                order = order[np.argsort(class_codes(y)[order], kind="stable")]
            number = np.empty(len(y), dtype=int)
            number[order] = np.arange(len(y)) % cv
        folds += [(np.flatnonzero(number != f), np.flatnonzero(number == f)) for f in range(cv)]
    return folds


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


def _note_rare(y, cv, notes):
    """Classes of which some folds have no row to test on."""
    classes, sizes = np.unique(y.astype(str), return_counts=True)
    rare = [f"{c!r} ({n})" for c, n in zip(classes.tolist(), sizes.tolist()) if n < cv]
    if rare:
        notes.append(
            f"these classes have fewer rows than folds, so their part of the score is rough: "
            f"{listed(rare)}."
        )


def _small_lessons(y, task, cv, train_size, random_state):
    """cv disjoint blocks of rows: train_size rows of each train a model for the next block."""
    if y is None:
        return []
    most, fewest = len(y) // cv, len(np.unique(class_codes(y))) if task == CLASSES else 2
    if not isinstance(train_size, (int, np.integer)) or not fewest <= train_size <= most:
        raise ValueError(
            f"train_size must be an integer from {fewest} to {most} (so that {cv} groups of "
            f"{len(y)} rows are disjoint), got {train_size!r}."
        )
    order = _interleaved(y, task, np.random.default_rng(random_state))
    blocks = np.array_split(order, cv)
    return [
        (np.sort(block[:train_size]), np.sort(new))
        for block, new in zip(blocks, [*blocks[1:], blocks[0]])
    ]


def _halves(rows, y, task, random_state):
    """One half of every class teaches the pictures, as in [EXACT] section 4."""
    if y is None:
        return np.arange(len(rows)), np.arange(0)
    order = np.random.default_rng(random_state).permutation(len(rows))
    codes = class_codes(y[order]) if task == CLASSES else np.zeros(len(rows), dtype=int)
    teaches = _place_in_class(codes) % 2 == 0
    return np.sort(order[teaches]), np.sort(order[~teaches])


def _interleaved(y, task, rng):
    """A random order in which every stretch holds the classes in their shares."""
    order = rng.permutation(len(y))
    if task != CLASSES:
        return order
    codes = class_codes(y)[order]
    sizes = np.bincount(codes)
    return order[np.argsort((_place_in_class(codes) + 0.5) / sizes[codes], kind="stable")]


def class_codes(y):
    """Classes as integers from 0."""
    return np.unique(y.astype(str), return_inverse=True)[1]


# Rows that follow each other are alike where they are closer than rows with the same target in this
# share of the cases, and by so many standard deviations.
ALIKE_SHARE, ALIKE_SURELY = 0.6, 4.0


def follow_each_other(sample) -> bool:
    """Whether rows are more like the next row than like another one with as near a target.

    In a table that is sorted by its target the next row is such a row, and no closer than others.
    """
    y, n, rng = sample.y, len(sample), np.random.default_rng(0)
    if y is None or n < 20 or sample.groups is not None:
        return False
    values = class_codes(y) if sample.task == CLASSES else y
    # Rows in the order of their targets, equal ones in any order: near there is near in target.
    order = np.lexsort([rng.random(n), values])
    place = np.argsort(order)
    first, after = np.arange(n - 1), np.arange(1, n)
    steps = rng.integers(1, 4, n - 1) * rng.choice([-1, 1], n - 1)
    other = order[np.clip(place[after] + steps, 0, n - 1)]
    fair = (other != first) & (other != after) & (other != first - 1)
    near, far = (_distances(sample, first[fair], z[fair]) for z in (after, other))
    if near is None:
        return False
    wins, told = float((near < far).sum()), float((near != far).sum())
    surely = (wins - told / 2) / max(told, 1.0) ** 0.5 * 2
    return wins > ALIKE_SHARE * told and surely > ALIKE_SURELY


def _distances(sample, a, b):
    """Squared distances between rows, columns standardised; None where rows are not numbers."""
    if sample.gram:
        own = np.diagonal(sample.X)
        return own[a] + own[b] - 2 * sample.X[a, b]
    X = sample.X.to_numpy() if is_frame(sample.X) else sample.X
    if scipy.sparse.issparse(X) or not is_numpy(X) or X.ndim != 2 or X.dtype.kind not in "fiub":
        return None
    X = X.astype(float)
    spread = X.std(axis=0)
    X = X / np.where(spread > 0, spread, 1.0)
    return ((X[a] - X[b]) ** 2).sum(axis=1)


def _place_in_class(codes):
    place = np.empty(len(codes), dtype=int)
    place[np.argsort(codes, kind="stable")] = np.concatenate(
        [np.arange(size) for size in np.bincount(codes)]
    )
    return place
