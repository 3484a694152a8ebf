"""`mercer check`: is this similarity a kernel on your data?"""

from pathlib import Path
from typing import Annotated

import typer

from .. import RBF, check_mercer
from . import file_data, output
from .options import TABLE, Json, Kernels, Matrix, MaxPoints, Reading, Scale, kernels_of

EPILOG = (
    "Exit code 0: may be a kernel; 1: is not a kernel; 2: bad input.\n\nExamples:\n\n"
    "  mercer check data.csv -k 'Sigmoid(1, -1)'\n\n"
    "  mercer check similarities.csv --matrix gram"
)


def check(
    file: Annotated[Path, typer.Argument(help=TABLE)],
    kernel: Kernels = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="A column to leave out.")
    ] = None,
    matrix: Matrix = None,
    scale: Scale = "auto",
    max_points: MaxPoints = 2000,
    json: Json = False,
    *,
    reading: Reading,
):
    """Check on your data whether a similarity is a kernel; if not, show a proof."""
    kernels = kernels_of(kernel, matrix) or {"RBF()": RBF()}
    data = file_data.read_data(
        file,
        reading,
        target=target,
        matrix=matrix,
        scale=scale,
        kernels=list(kernels.values()),
    )
    X = data.numbers()
    reports = {name: check_mercer(k, X, max_points=max_points) for name, k in kernels.items()}
    if json:
        output.as_json(
            {"kernels": [_report(name, r) for name, r in reports.items()], "notes": data.notes}
        )
    else:
        output.notes(data.notes)
        for report in reports.values():
            output.out.print(str(report), markup=False)
    raise typer.Exit(0 if all(reports.values()) else 1)


def _report(name, report):
    return {
        "kernel": name,
        "verdict": report.verdict,
        "symmetric": report.symmetric,
        "psd": report.psd,
        "min_eigenvalue": report.min_eigenvalue,
        "max_eigenvalue": report.max_eigenvalue,
        "rank": report.rank,
        "n_points": report.n_points,
        "witness": report.witness,
        "witness_rows": None if report.witness is None else report.indices,
        "witness_value": report.witness_value,
    }
