"""The rows that are compared or explored: points for kernels, their target, and what is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .. import Kernel, TableEncoder
from ..engine import Domain, as_host, check_at_least, is_integer
from ..kernels import Data, listed
from ..kernels import points as pts
from ..learn import Targets
from ..rows import read_whole, rows_at

CLASSES, NUMBERS = "classification", "regression"
# More different whole numbers than this are taken for numbers without a note.
_MENTIONED = 50
# Entries that a sparse matrix may have when it is written out.
_MOST_ENTRIES = 2e7
HOLDS = {CLASSES: "classes", NUMBERS: "numbers"}


@dataclass
class Explored:
    """Rows of a data set, ready for kernels."""

    X: Any  # rows as kernels see them, encoded if needed; a square part of a Gram matrix
    task: str | None  # "classification", "regression" or None without a target
    target: Any  # classes or numbers, one per row; None without
    rows: np.ndarray  # their positions in the data as given
    given: tuple[Any, Any]  # (X, y) as they came, for a model that is fitted to all of them
    usable: np.ndarray  # positions of all rows that have a target
    gram: bool = False
    shown: Any = None  # what the page shows of each row
    image_shape: tuple[int, int] | None = None
    encoder: BaseEstimator | None = None
    target_name: str = "target"
    notes: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the columns of X, where a page needs them
    classes: list[str] = field(default_factory=list)  # of all rows; a part may lack some

    def __post_init__(self) -> None:
        self.codes: Any = None
        # The targets of ridge: a column of 0 and 1 for each class, or one column of numbers.
        self.targets: Any = None
        if self.task == CLASSES:
            given = np.asarray(self.target).astype(str)
            self.classes = self.classes or np.unique(given).tolist()
            self.codes = np.searchsorted(self.classes, given)
            self.targets = np.eye(len(self.classes))[self.codes]
        elif self.task == NUMBERS:
            self.targets = np.asarray(self.target, dtype=float)[:, None]
        self.vectors = isinstance(self.X, np.ndarray) and self.X.ndim == 2

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        kernels: Mapping[str, Kernel],
        *,
        task: str = "auto",
        samples: Data | None = None,
        image_shape: tuple[int, int] | None = None,
        encoder: BaseEstimator | str | None = "auto",
        target_name: str | None = None,
        max_points: int = 20_000,
        random_state: int = 0,
    ) -> Self:
        """Checked, drawn at random where there are more rows than max_points, and encoded. There is
        a note on every row that is left out."""
        X, y = pts.collected(X), pts.collected(y)
        given, y, _ = read_whole("the comparison", X, y, None, needs_y=False)
        if target_name is None:
            target_name = getattr(y, "name", None)
        if target_name is not None and not isinstance(target_name, (str, int)):
            raise TypeError(f"target_name must be a text or None, got {target_name!r}.")
        Domain.whole(0, 2**32 - 1)("random_state", random_state)
        X = as_host(given)  # pictures and folds are made on the CPU
        X = np.asarray(X) if isinstance(X, np.matrix) else X  # it has an arithmetic of its own
        n = pts.n_points(X)
        check_at_least("max_points", max_points, 10)
        if n < 4:
            raise ValueError(
                f"{n} sample(s) are too few to compare kernels on; at least 4 are needed."
            )
        on_data = {name: kernel.layout.on_data for name, kernel in kernels.items()}
        gram = not any(on_data.values())
        if not gram and not all(on_data.values()):
            raise ValueError(
                f"{next(n for n in on_data if not on_data[n])} takes a Gram matrix and "
                f"{next(n for n in on_data if on_data[n])} takes data: they cannot share one X."
            )
        if gram:
            X = np.asarray(next(iter(kernels.values())).points(X), dtype=float)
            if X.ndim != 2 or X.shape[0] != X.shape[1]:
                raise ValueError(f"Precomputed() needs a square Gram matrix, got shape {X.shape}.")
        notes: list[str] = []
        y, task = _target(y, n, task, notes)
        usable = np.arange(n) if y is None else np.flatnonzero(_usable(y, task, notes))
        rows = usable
        if len(usable) > max_points:
            notes.append(
                f"{max_points} of {len(usable)} rows were drawn at random for the comparison "
                "(max_points changes that)."
            )
            rows = _drawn(usable, y if task == CLASSES else None, max_points, random_state)
        if task == CLASSES and len(np.unique(y[rows])) < 2:
            raise ValueError(
                f"the target holds one class only ({str(y[rows][0])!r}): there is nothing to "
                "predict. Leave it out to look at the spaces alone."
            )
        data = cls(
            X=X[np.ix_(rows, rows)] if gram else rows_at(X, rows),
            task=task,
            target=None if y is None else y[rows],
            rows=rows,
            given=(given, y),
            usable=usable,
            gram=gram,
            target_name="target" if target_name is None else str(target_name),
            notes=notes,
        )
        data.show(X, samples, image_shape)
        data.encode(kernels, encoder)
        return data

    @classmethod
    def of(cls, X: Data, y: ArrayLike | None, kernel: Kernel, **options: Any) -> Self:
        """Rows for the explorer: points of one kernel, with names of their columns (see `read`)."""
        kernel.layout.require_data(
            "the explorer changes the kernel, which a Gram matrix does not allow: pass the data "
            "themselves, or compare_kernels(K, y, [Precomputed()]) for one still picture."
        )
        data = cls.read(X, y, {"kernel": kernel}, **options)
        names, encoder = pts.column_names(data.given[0]), data.encoder
        if encoder is not None and hasattr(encoder, "get_feature_names_out"):
            names = encoder.get_feature_names_out()
        points = kernel.points(data.X)
        width = points.shape[1] if getattr(points, "ndim", 1) == 2 else 0
        names = [f"x{j}" for j in range(width)] if names is None else list(map(str, names))
        return replace(data, X=points, names=names)

    def show(self, X: Any, samples: Any, image_shape: tuple[int, int] | None) -> None:
        """Choose what the page shows: rows of X, unless something better is given."""
        if samples is not None:
            if pts.n_points(samples) != pts.n_points(X):
                raise ValueError(
                    f"samples has {pts.n_points(samples)} entries for {pts.n_points(X)} rows of X."
                )
            self.shown = rows_at(samples, self.rows)
        elif not self.gram:
            self.shown = self.X
        if image_shape is None:
            return
        sides = list(image_shape) if isinstance(image_shape, (list, tuple)) else []
        if len(sides) != 2 or not all(is_integer(side) and side > 0 for side in sides):
            raise ValueError(f"image_shape must be (height, width) or None, got {image_shape!r}.")
        height, width = map(int, sides)
        n_values = np.asarray(dense(self.shown))[0].size
        if n_values != height * width:
            raise ValueError(
                f"image_shape {tuple(image_shape)} needs {height * width} values per row, "
                f"got {n_values}."
            )
        self.image_shape = (height, width)

    def encode(self, kernels: Mapping[str, Kernel], encoder: Any) -> None:
        """Fit the encoder, where one is needed, and replace the rows by numbers."""
        if isinstance(encoder, str) and encoder == "auto":
            encoder = None
            on_vectors = all(kernel.kind in ("vectors", "any") for kernel in kernels.values())
            if on_vectors and pts.is_frame(self.X):
                values = self.X.to_numpy()
                plain = values.dtype.kind in "fiub" and np.isfinite(values.astype(float)).all()
                encoder = None if plain else TableEncoder()
        if encoder is None:
            return
        if not hasattr(encoder, "fit_transform") or isinstance(encoder, type):
            raise TypeError(f"encoder must be 'auto', None or a transformer, got {encoder!r}.")
        Z = encoder.fit_transform(self.X)
        self.X, self.encoder = Z if pts.is_frame(Z) else np.asarray(Z, dtype=float), encoder
        if hasattr(encoder, "notes"):
            self.notes.extend(encoder.notes())

    def numbers(self) -> np.ndarray | None:
        """The sample as a matrix of floats; None for objects, Gram matrices and the like."""
        too_large = scipy.sparse.issparse(self.X) and np.prod(self.X.shape) > _MOST_ENTRIES
        X = self.X if too_large else dense(self.X)
        if self.gram or not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub":
            return None
        X = X.astype(float)
        return X if np.isfinite(X).all() else None

    @cached_property
    def medians(self) -> np.ndarray:
        """The median of each column of X."""
        return np.median(self.X, axis=0)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: np.ndarray, against: np.ndarray | None = None) -> Any:
        """Points at these places; of a Gram matrix, their columns against other rows as well."""
        if self.gram:
            return self.X[np.ix_(rows, rows if against is None else against)]
        return rows_at(self.X, rows)

    def part(self, rows: np.ndarray) -> Self:
        """Some of the rows, with all columns and classes."""
        target = None if self.target is None else self.target[rows]
        return replace(self, X=self.take(rows), target=target, rows=self.rows[rows])

    def bound(self, kernel: Kernel) -> Kernel:
        """The kernel with everything that depends on the data turned into numbers."""
        return kernel.bind_points(self.X, self.names if self.vectors else None)


def dense(rows: Any) -> Any:
    """Rows of a frame or of a sparse matrix as an array; others as they are."""
    if pts.is_frame(rows):
        return rows.to_numpy()
    return rows.toarray() if scipy.sparse.issparse(rows) else rows


def place_in_class(codes: np.ndarray) -> np.ndarray:
    """For each row the number of rows of its class that come before it."""
    place = np.empty(len(codes), dtype=int)
    place[np.argsort(codes, kind="stable")] = np.concatenate(
        [np.arange(size) for size in np.bincount(codes)]
    )
    return place


def _target(y, n, task, notes):
    """(target of all rows with its own type, task)."""
    Domain.one_of("auto", CLASSES, NUMBERS)("task", task)
    if y is None:
        return None, None
    y = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else as_host(y))
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n,):
        raise ValueError(f"y must hold one value for each of the {n} rows, got shape {y.shape}.")
    if task == "auto":
        task = guessed_task(y, notes)
    if task == NUMBERS:
        try:
            return y.astype(float), task
        except (TypeError, ValueError):
            raise ValueError(f"task={NUMBERS!r} needs a numeric target, got {y[:1]!r}.") from None
    return y, task


def guessed_task(y: np.ndarray, notes: list[str], option: str = "task={!r}") -> str:
    """Classes or numbers; a guess about whole numbers is noted, with the option that changes it."""
    if y.dtype.kind not in "fiu":
        return CLASSES
    known = y[np.isfinite(y)] if y.dtype.kind == "f" else y
    if (known != np.round(known)).any():
        return NUMBERS
    n_values = len(np.unique(known))
    task, other = (CLASSES, NUMBERS) if Targets.are_classes(known) else (NUMBERS, CLASSES)
    if 2 < n_values <= _MENTIONED:
        notes.append(
            f"the target has {n_values} different whole numbers, read as {HOLDS[task]} "
            f"({option.format(other)} changes that)."
        )
    return task


def _usable(y, task, notes):
    """A mask of the rows with a target, in classes large enough to be tested on."""
    if y.dtype.kind == "O":
        known = np.array([v is not None and v == v for v in y])
    else:
        known = np.isfinite(y) if y.dtype.kind == "f" else np.ones(len(y), dtype=bool)
    if not known.all():
        notes.append(f"{(~known).sum()} rows without a target were left out.")
    if task == CLASSES:
        codes = np.unique(y[known].astype(str), return_inverse=True)[1]
        alone = np.bincount(codes)[codes] < 2
        if alone.any():
            names = listed(sorted(set(map(str, y[known][alone]))))
            notes.append(
                f"{alone.sum()} rows that are alone in their class were left out: {names}."
            )
            known[np.flatnonzero(known)[alone]] = False
    if known.sum() < 4:
        usable = "a class that another row has, too" if task == CLASSES else "a usable target"
        raise ValueError(f"only {known.sum()} rows have {usable}; at least 4 are needed.")
    return known


def _drawn(rows, classes, size, random_state):
    """A random sample in the original order, with at least two of every class."""
    rng = np.random.default_rng(int(random_state))
    if classes is None:
        return np.sort(rng.choice(rows, size, replace=False))
    order = rng.permutation(len(rows))
    # The first two of every class come first.
    codes = np.unique(classes[rows][order].astype(str), return_inverse=True)[1]
    later = place_in_class(codes) >= 2
    return np.sort(rows[order[np.argsort(later, kind="stable")[:size]]])
