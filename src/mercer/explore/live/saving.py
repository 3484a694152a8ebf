"""Kept kernels compared by the rules of the comparison, and written to files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import clone

from ...export.files import save
from ...kernels import Kernel
from ..compare import KernelComparison, compare_kernels
from ..compare.sampling import select
from .code import model_of, portable
from .data import Explored
from .space import LiveSpace

# Rows of the comparison on the page, which a person waits for, and of the report.
COMPARED, REPORTED = 600, 2000


def comparison_of(
    kernels: Mapping[str, Kernel], data: Explored, *, max_points: int, embeddings: Any = "auto"
) -> KernelComparison:
    """compare_kernels on the explored rows, every number as it stands."""
    X, y = data.given
    return compare_kernels(
        select(X, data.rows),
        None if y is None else y[data.rows],
        {name: portable(kernel, data) for name, kernel in kernels.items()},
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
    rows = [
        {
            "name": record["kernel"] or record["model"],
            "score": record.get("score"),
            "interval": record.get("interval"),
            "best": bool(record.get("within_noise_of_best")),
            "kernel": record["kernel"] is not None,
        }
        for record in comparison.records()
    ]
    return {
        "headline": comparison.headline,
        "reasons": comparison.reasons,
        "score": comparison.score_name,
        "rows": rows,
    }


def write_files(
    folder: Path, kernel: Kernel, kernels: Mapping[str, Kernel], space: LiveSpace, data: Explored
) -> list[str]:
    """model.mercer, fitted to all rows that have a target, and report.html; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    X, y = data.given
    rows = select(X, data.usable)
    model = model_of(kernel, space, data)
    model = model.fit(rows) if y is None else model.fit(rows, y[data.usable])
    save(model, folder / "model.mercer")
    comparison = comparison_of(kernels, data, max_points=REPORTED)
    comparison.to_html(folder / "report.html", title="Kernels explored")
    return [str(folder / "model.mercer"), str(folder / "report.html")]
