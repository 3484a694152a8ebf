"""`mercer map`: coordinates of a table, with a bound for their error."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer import Option

from .. import KernelMap, NotPSDError
from ..engine import evenly
from ..rows import rows_at
from ..tables import BadInput
from . import file_data, output
from .options import Reading, command, kernels_of

# Rows that the certificate is evaluated on, all against all.
_CERTIFIED = 500


@command(
    "Examples:\n\n"
    "  mercer map data.csv -o coordinates.parquet -k 'RBF(0.1)'\n\n"
    "  mercer map data.csv -o coordinates.csv -k 'Matern()' --max-rank 50",
    out=Option("--output", "-o", help="Coordinates: .parquet, .csv or .tsv."),
    kernel="The kernel.",
    target="A column to copy into the result.",
    max_rank=Option(min=1, help="The largest number of coordinates."),
    tol="Largest relative residual of a row.",
    basis="Kind of coordinates: cholesky, eigen, symmetric, closed or auto.",
    indefinite="If the similarity is not a kernel: raise, clip, flip or shift.",
)
def map_(
    file: Path,
    out: Path,
    kernel: str = "RBF()",
    target: str | None = None,
    matrix: str | None = None,
    scale: str = "auto",
    max_rank: int | None = None,
    tol: float | None = None,
    basis: str = "cholesky",
    indefinite: str = "raise",
    json: bool = False,
    *,
    reading: Reading,
):
    """Write coordinates whose inner products are the kernel, with a bound for their error."""
    kernels = kernels_of([kernel] if matrix is None or kernel != "RBF()" else None, matrix)
    (name, chosen), *_ = kernels.items()
    file_data.check_outputs([file], [], out)
    if target is not None and re.fullmatch(r"phi\d+|residual", target):
        raise BadInput(
            f"--target {target} has the name of a column of coordinates; rename it in {file.name}."
        )
    data = file_data.read_data(file, reading, kernels, target=target, matrix=matrix, scale=scale)
    X = data.numbers()
    options: dict[str, Any] = {"basis": basis, "indefinite": indefinite}  # fit checks them
    kernel_map = KernelMap(chosen, max_rank=max_rank, tol=tol, **options)
    with output.progress(json) as callback:
        callback(0, 1, f"the map of {name}")
        try:
            Phi = kernel_map.fit_transform(X)
        except NotPSDError as error:
            error.remedy = _remedy(X, matrix)
            raise
    frame = pd.DataFrame(Phi, columns=[f"phi{j}" for j in range(Phi.shape[1])])
    bound = None  # nothing is certified where the similarity was changed
    if kernel_map.correction_ is None:
        frame["residual"], bound = _certificate(kernel_map, X, data.gram, Phi)
    if data.y is not None:
        frame.insert(0, target or "target", data.y)
    data.notes += file_data.write(frame, out)
    facts = {
        "kernel": repr(kernel_map.kernel_),
        "rows": len(frame),
        "rank": int(kernel_map.rank_),
        "max_residual": float(kernel_map.max_residual_),
        "error_bound": bound,
        "file": str(out),
        "notes": data.notes,
    }
    if json:
        output.as_json(facts)
        return
    output.notes(data.notes)
    output.tell(f"{len(frame)} rows, {kernel_map.rank_} coordinates: {out}")
    output.tell(
        f"The similarity is not a kernel and was changed (--indefinite {indefinite}): inner "
        "products of coordinates are those of another one, without a certificate."
        if bound is None
        else f"Largest residual {kernel_map.max_residual_:.2g}; inner products of coordinates "
        f"differ from the kernel by at most {bound:.2g} (certified on "
        f"{min(len(frame), _CERTIFIED)} rows)."
    )


def _remedy(X, matrix):
    """The remedy, in the words of the command."""
    if matrix != "distance" and not np.diagonal(X).any() and X.min() >= 0:
        return "The diagonal is zero: if the numbers are distances, use --matrix distance."
    return (
        "--indefinite clip (drop negative eigenvalues), flip (take absolute values) or shift (add "
        "to the diagonal) repairs it; or choose a valid kernel with --kernel."
    )


def _certificate(kernel_map, X, gram, Phi):
    """rho^2 of every row, and the largest certified error over pairs of at most _CERTIFIED rows."""
    rows = evenly(len(Phi), _CERTIFIED)
    diag = np.diagonal(X) if gram else None
    residual = kernel_map.residual(X, diag=diag)
    bound = kernel_map.error_bound(rows_at(X, rows), diag=None if diag is None else diag[rows])
    return np.asarray(residual), float(np.max(bound))
