"""`mercer check`: is this similarity a kernel on your data?"""

from pathlib import Path

import typer

from .. import RBF, check_mercer
from . import file_data, output
from .options import Reading, command, kernels_of

_SHOWN = (
    *("verdict", "symmetric", "psd", "min_eigenvalue", "max_eigenvalue", "rank", "n_points"),
    *("witness", "witness_value"),
)


@command(
    "Exit code 0: may be a kernel; 1: is not a kernel; 2: bad input.\n\nExamples:\n\n"
    "  mercer check data.csv -k 'Sigmoid(1, -1)'\n\n"
    "  mercer check similarities.csv --matrix gram",
    target="A column to leave out.",
)
def check(
    file: Path,
    kernel: list[str] | None = None,
    target: str | None = None,
    matrix: str | None = None,
    scale: str = "auto",
    max_points: int = 2000,
    json: bool = False,
    *,
    reading: Reading,
):
    """Check on your data whether a similarity is a kernel; if not, show a proof."""
    kernels = kernels_of(kernel, matrix) or {"RBF()": RBF()}
    data = file_data.read_data(file, reading, kernels, target=target, matrix=matrix, scale=scale)
    X = data.numbers()
    reports = {name: check_mercer(k, X, max_points=max_points) for name, k in kernels.items()}
    if json:
        found = [
            {"kernel": name, "witness_rows": None if r.witness is None else r.indices}
            | {fact: getattr(r, fact) for fact in _SHOWN}
            for name, r in reports.items()
        ]
        output.as_json({"kernels": found, "notes": data.notes})
    else:
        output.notes(data.notes)
        for report in reports.values():
            output.out.print(str(report), markup=False)
    raise typer.Exit(0 if all(reports.values()) else 1)
