"""`mercer differ old new`: has the data changed, and where?"""

from pathlib import Path
from typing import Any

import pandas as pd
import typer
from typer import Argument, Option

from .. import parse_kernel, two_sample_test
from ..explore.report.difference import write_difference
from ..kernels import listed
from ..tables import BadInput
from . import file_data, output
from .options import TABLE, Reading, command


@command(
    "Rows must be independent of each other: those of a time series are not.\n\n"
    "Exit code 0: no difference found; 1: the files differ; 2: bad input.\n\nExamples:\n\n"
    "  mercer differ january.csv february.csv\n\n"
    "  mercer differ old.parquet new.parquet --ignore id --ignore date --level 0.01\n\n"
    "  mercer differ old.csv new.csv --json > result.json",
    old=TABLE,
    new=Argument(help="Another file with the same columns."),
    kernel="The kernel.",
    level="Accepted rate of false alarms; it decides the exit code.",
    permutations=Option(min=2, help="How often rows are shuffled between the files."),
    rows=Option(min=1, help="Rows to show of each file."),
    seed="Seed of the random numbers.",
    page="The page to write.",
    no_page="Write no page.",
)
def differ(
    old: Path,
    new: Path,
    kernel: str = "RBF()",
    level: float = 0.05,
    permutations: int = 1000,
    rows: int = 5,
    seed: int = 0,
    page: Path | None = Path("differ.html"),
    no_page: bool = False,
    json: bool = False,
    *,
    reading: Reading,
):
    """Test whether two tables differ, and show the columns and rows in which they do."""
    page = None if no_page else page
    file_data.check_outputs([old, new], [page])
    frames, notes = _read(old, new, reading)
    with output.progress(json) as callback:
        callback(0, 1, "comparing")
        result: Any = two_sample_test(
            frames[0],
            frames[1],
            parse_kernel(kernel),
            n_permutations=permutations,
            level=level,
            random_state=seed,
        )
        columns, examples = result.columns, result.rows(rows)
        names = (old.name, new.name) if old.name != new.name else (str(old), str(new))
        if page is not None:
            write_difference(result, page, names=names)
    samples = result.samples
    notes += [note.rstrip(".") for note in samples.encoder.notes()]
    notes += [
        f"the kind of {column} changed: {x} in {names[0]}, {y} in {names[1]}"
        for column, (x, y) in list(result.changed.items())[:6]
    ]
    if samples.identifiers:
        few = listed(samples.identifiers)
        notes.append(f"columns with one value per row were left out: {few}")
    if json:
        output.as_json(_summary(result, columns, examples, names, page, notes))
    else:
        output.notes(notes)
        _print(result, columns, examples, names, page)
    raise typer.Exit(1 if result.differs else 0)


def _read(old, new, reading):
    frames, notes = [], []
    for path in (old, new):
        frame, read = reading.frame(path)
        frame = reading.without_names(frame)
        if frame.shape[1] == 0:
            raise BadInput(f"{path.name} has no column left to compare.")
        frames.append(frame)
        notes += [f"in {path.name}: {note}" for note in read]
    common = [c for c in frames[0].columns if c in frames[1].columns]
    for path, frame in zip((old, new), frames):
        alone = [str(c) for c in frame.columns if c not in common]
        if alone:
            few = listed(alone)
            notes.append(f"only {path.name} has these columns, which were left out: {few}")
    if not common:
        raise BadInput("the files have no column in common.")
    return [frame[common] for frame in frames], notes


def _print(result, columns, examples, names, page):
    output.tell(result.headline.replace("samples", "files"))
    output.tell(
        f"Statistic {result.statistic:.3g}, threshold {result.threshold:.3g} at level "
        f"{result.level:g}; {result.n_permutations} permutations."
    )
    if result.differs:
        output.tell("\nColumns, by their share in the difference:")
        for name, share in list(columns.items())[:10]:
            if share >= 0.005:
                output.tell(f"  {share:4.0%}  {name}")
        for name, frame in zip(names, examples):
            output.tell(f"\nRows that are most typical of {name} only:")
            output.tell(frame.to_string(index=False, max_cols=8))
    if page is not None:
        output.tell(f"\nPage: {Path(page).resolve()}")


def _summary(result, columns, examples, names, page, notes):
    """The same for scripts. In rows numbers stay numbers, gaps are null, all else is text."""

    def plain(value: Any) -> Any:
        if pd.isna(value):
            return None
        return value if isinstance(value, (bool, int, float, str)) else str(value)

    examples = [
        [{str(n): plain(v) for n, v in row.items()} for row in frame.to_dict(orient="records")]
        for frame in examples
    ]
    return {
        "differs": result.differs,
        "p_value": result.p_value,
        "statistic": result.statistic,
        "threshold": result.threshold,
        "level": result.level,
        "permutations": result.n_permutations,
        "kernel": repr(result.kernel),
        "distance": result.distance,
        "rows": {"old": result.n_x, "new": result.n_y},
        "columns": columns,
        "examples": dict(zip(("old", "new"), examples)),
        "files": {"old": names[0], "new": names[1]},
        "page": None if page is None else str(page),
        "notes": notes,
    }
