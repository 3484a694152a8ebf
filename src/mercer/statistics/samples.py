"""Samples of rows as they come, and how they become points of a kernel."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import Kernel, TableEncoder
from ..engine import as_numpy, evenly, is_matrix, on_device_of
from ..rows import Training, read_sample, rows_at, stacked
from ..tables import SampleEncoder
from .bulk import column_units

# Numbers in the coordinates of the rows that are mapped at once.
CHUNK_VALUES = 1 << 23


class Samples:
    """Trainings with the same kind of rows, and how rows become points of the kernel.

    With `encode`, frames are turned into numbers (standardised, categories as columns of 0 and 1)
    by a TableEncoder fitted on all samples together, unless the kernel itself names their columns.
    """

    def __init__(self, kernel: Kernel, *samples: Training, encode: bool = True):
        self.kernel = kernel
        self.all = samples
        self.columns = _common_columns(self.all)
        self.encoder: TableEncoder | None = None
        self.units: np.ndarray | float = 1.0  # what encoded columns are divided by
        self.encoded = encode and self.columns is not None and kernel.kind == "vectors"

    @classmethod
    def read(cls, kernel: Kernel, encode: bool = True, **named: Any) -> "Samples":
        """Samples under the names that messages call them."""
        return cls(kernel, *(read_sample(X, kernel, k) for k, X in named.items()), encode=encode)

    @property
    def n(self) -> int:
        """Rows of all samples together."""
        return sum(sample.rows.n for sample in self.all)

    def pooled(self, size: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        """At most `size` rows of all samples together, drawn evenly and in random order, as points;
        and their positions, sample after sample. Which rows they are does not depend on the labels:
        whatever is fitted to them leaves the level of a permutation test exact."""
        positions = np.sort(rng.choice(self.n, min(size, self.n), replace=False))
        parts, start = [], 0
        for sample in self.all:
            stop = start + sample.rows.n
            chosen = positions[(positions >= start) & (positions < stop)] - start
            if len(chosen):
                parts.append(self._in_order(sample.rows.take(chosen)))
            start = stop
        widths = [part.shape[1] for part in parts if getattr(part, "ndim", 1) == 2]
        if len(set(widths)) > 1:
            raise ValueError(
                f"X has {widths[0]} columns and Y has {widths[1]}: both samples need the same "
                "columns."
            )
        order = rng.permutation(len(positions))
        rows = rows_at(stacked(*parts), order)
        if self.encoded:
            held = all(sample.is_held for sample in self.all)
            frames = [s.points for s in self.all] if held else parts
            frames = [self._in_order(frame) for frame in frames]
            self.encoder = SampleEncoder.of(frames, stacked(*frames))
            points = self.encoder.transform(rows)
            self.units = column_units(points, self.encoder)
            for name, places in self.column_groups(points.shape[1]).items():
                if name in self.changed:  # it must not be lost among many columns
                    self.units[places] /= points.shape[1] ** 0.5
            rows = points / self.units
        return rows, positions[order]

    @property
    def identifiers(self) -> list[str]:
        """Columns of frames that name the rows of every sample, which are left out."""
        return getattr(self.encoder, "identifiers", [])

    @property
    def changed(self) -> dict[str, tuple[str, str]]:
        """Columns that are another kind of thing in the second sample, with both kinds."""
        return getattr(self.encoder, "changed", {})

    def some_points(self, which: int, most: int) -> Any:
        """At most so many rows of one sample, evenly spaced, as points."""
        rows = self.all[which].rows
        return self.written_out(rows.take(evenly(rows.n, most)))

    def written_out(self, rows: Any) -> Any:
        """Rows of a sample as points: a NumPy matrix where these are numbers, sparse or not."""
        points = self.points(rows)
        points = points.toarray() if hasattr(points, "toarray") else points
        self.like = points[:1, ...]
        return as_numpy(points) if is_matrix(points) else points

    def at(self, function: Any, rows: Any) -> np.ndarray:
        """The values, as NumPy's, of a function or a map at rows that were written out: it takes
        them where the sample lives."""
        rows = on_device_of(rows, self.like) if is_matrix(self.like) else rows
        return as_numpy(function(rows))

    def points(self, rows: Any) -> Any:
        """Rows of a sample as points of the kernel."""
        rows = self._in_order(rows)
        return rows if self.encoder is None else self.encoder.transform(rows) / self.units

    def blocks(self, sample: Training, rows: int = 8192) -> Iterator[Any]:
        """All rows of a sample as points, block by block."""
        return map(self.points, sample.rows.blocks(rows))

    def _in_order(self, rows):
        """The columns of a frame in the order of X's."""
        same = self.columns is None or list(rows.columns) == self.columns
        return rows if same else rows[self.columns]

    def column_groups(self, n_columns: int) -> dict[str, list[int]]:
        """Which columns of the points belong to which column of the input."""
        if self.encoder is not None:
            place, marked = 0, getattr(self.encoder, "marked", {})
            groups: dict[str, list[int]] = {}
            for record in self.encoder.columns_:
                places = range(place, place + len(record["outputs"]))
                if places:
                    name = str(record["name"])
                    groups.setdefault(marked.get(name, name), []).extend(places)
                place = places.stop
            return groups
        letter = self.all[0].name.lower()
        names = self.columns or [f"{letter}{j}" for j in range(n_columns)]
        return {str(name): [j] for j, name in enumerate(names)}


def _common_columns(samples):
    """Column names of frames, which must be the same up to their order; None for other rows."""
    names: list[Any] = [sample.rows.names for sample in samples]
    if all(columns is None for columns in names):
        return None
    if any(columns is None for columns in names):
        without = " and ".join(s.name for s, columns in zip(samples, names) if columns is None)
        raise TypeError(
            f"one sample has named columns and the other does not ({without} has none): pass both "
            "as data frames or both as arrays."
        )
    first, *others = names
    if len(set(first)) < len(first):
        raise ValueError("columns of a data frame must have different names.")
    for sample, columns in zip(samples[1:], others):
        only = {
            samples[0].name: [str(c) for c in first if c not in columns],
            sample.name: [str(c) for c in columns if c not in first],
        }
        if any(only.values()):
            parts = [
                f"only {name} has {', '.join(missing[:5])}{' and more' if missing[5:] else ''}"
                for name, missing in only.items()
                if missing
            ]
            raise ValueError(
                f"the samples have different columns: {'; '.join(parts)}. Keep the columns that "
                "both have."
            )
    return first
