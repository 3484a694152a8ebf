"""Kept views: pictures to look at beside the next, kernels to compare, models to write to files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ... import Kernel, OnColumns, Projected
from ...rows import rows_at
from ..compare import KernelComparison, compare_kernels
from ..compare.model import code_of, kernel_model, one_line
from ..compare.tuning import rounded
from ..data import Explored
from .pictures import Plane
from .space import LiveSpace

MOST_KEPT = 4
# Rows of the comparison on the page, which a person waits for, and of the report.
COMPARED, REPORTED = 600, 2000


@dataclass(frozen=True)
class SavedView:
    """A kernel, its picture of all rows, and its score where there is a target."""

    name: str
    kernel: Kernel
    plane: Plane
    score: float | None


def shown_views(views: list[SavedView]) -> dict[str, Any]:
    """For the page: what is kept, and where its points lie."""
    points: dict[str, np.ndarray] = {}
    for place, view in enumerate(views):
        points[f"x{place}"], points[f"y{place}"] = view.plane.points.T.astype(np.float32)
    return {
        "saved_points": points,
        "saved_views": [{"name": view.name, "score": view.score} for view in views],
    }


def _portable(kernel: Kernel, data: Explored) -> Kernel:
    """The kernel as a model outside this page takes it: columns by position, not by name."""
    parts = [kernel, *kernel.get_params(deep=True).values()]
    return data.bound(kernel) if any(isinstance(p, OnColumns) for p in parts) else kernel


def comparison_of(
    kernels: Mapping[str, Kernel], data: Explored, *, max_points: int, embeddings: Any = "auto"
) -> KernelComparison:
    """compare_kernels on the explored rows, every number as it stands."""
    X, y = data.given
    return compare_kernels(
        rows_at(X, data.rows),
        None if y is None else y[data.rows],
        {name: _portable(kernel, data) for name, kernel in kernels.items()},
        task=data.task or "auto",
        tune=False,
        embeddings=embeddings,
        encoder=None if data.encoder is None else clone(data.encoder),
        samples=data.shown,
        image_shape=data.image_shape,
        target_name=data.target_name,
        max_points=max_points,
    )


def verdict_of(comparison: KernelComparison) -> dict[str, Any]:
    """The verdict of a comparison, as the page shows it."""
    return {
        "headline": comparison.headline,
        "reasons": comparison.reasons,
        "score": comparison.score_name,
        "rows": [
            {
                "name": record["kernel"] or record["model"],
                "score": record.get("score"),
                "interval": record.get("interval"),
                "best": bool(record.get("within_noise_of_best")),
                "kernel": record["kernel"] is not None,
            }
            for record in comparison.records()
        ],
    }


def model_of(kernel: Kernel, space: LiveSpace, data: Explored) -> BaseEstimator:
    """A model in the kernel's space, with the penalty that the page has found for numbers."""
    alpha = None if space.alpha is None else rounded(space.alpha)
    return kernel_model(_portable(kernel, data), data, space.validity, alpha=alpha)


def model_code(
    kernel: Kernel, space: LiveSpace, data: Explored, learned_from: Kernel | None = None
) -> str:
    """Lines to copy into a script. `learned_from` is the kernel whose metric was learned."""
    model = model_of(kernel, space, data)
    if not isinstance(kernel, Projected) or learned_from is None:
        return code_of(model)
    before, rows = [], "X"
    if data.encoder is not None:
        before, rows = [f"Z = {one_line(data.encoder)}.fit_transform(X)"], "Z"
    before.append(f"A = learn_kernel({rows}, y, {learned_from!r}, random_state=0).kernel.A")
    named = (one_line(kernel), f"Projected({kernel.kernel!r}, A)")
    return code_of(model, before=before, named=named)
