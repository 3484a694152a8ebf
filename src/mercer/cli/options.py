"""Options that several commands share, and what their values mean."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from .. import Precomputed, TableEncoder, parse_kernel, read_table
from ..tables import BadInput, check_column

Target = Annotated[
    str | None, typer.Option("--target", "-t", help="The column to predict: numbers or classes.")
]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        "-k",
        help="A kernel, such as 'RBF(0.1)' or 'Polynomial(2) + Linear()'; may be repeated.",
    ),
]
Matrix = Annotated[
    str | None,
    typer.Option("--matrix", help="The file is a matrix: 'gram' (similarities) or 'distance'."),
]
Scale = Annotated[
    str,
    typer.Option(
        "--scale", help="Columns: auto, standard (mean 0, variance 1), unit (0 to 1), none."
    ),
]
# Options of reading(), in their order: the notation of a table, and the kinds of its columns.
_WRITTEN = {
    "decimal": Annotated[
        str | None,
        typer.Option("--decimal", help="The decimal mark: '.' or ','. Found if not given."),
    ],
    "dayfirst": Annotated[
        bool | None,
        typer.Option(
            "--dayfirst/--monthfirst", help="Whether 01/02/2012 is in February. Found if not given."
        ),
    ],
    "sep": Annotated[
        str | None,
        typer.Option("--sep", help="What separates columns: ';', 'tab', ... Found if not given."),
    ],
    "encoding": Annotated[
        str | None,
        typer.Option("--encoding", help="utf-8, latin-1, utf-16, ... Found if not given."),
    ],
}
_KINDS = {
    name: Annotated[list[str] | None, typer.Option(f"--{name}", help=help)]
    for name, help in {
        "number": "A column of numbers; may be repeated.",
        "category": "A column of categories, such as a zip code; may be repeated.",
        "ignore": "A column to leave out; may be repeated.",
        "id": "A column that names the rows; may be repeated.",
    }.items()
}
TABLE = "csv, tsv, xlsx, jsonl, parquet (also gz), npz; - reads standard input."
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
MaxPoints = Annotated[int, typer.Option(min=10, help="If there are more rows, a sample is used.")]
ImageShape = Annotated[
    str | None, typer.Option("--image-shape", help="Show rows as images, for example 28x28.")
]
Task = Annotated[str, typer.Option("--task", help="auto, classification or regression.")]


def kernels_of(expressions: list[str] | None, matrix: str | None):
    """name -> kernel; None where none was named."""
    if matrix not in (None, "gram", "distance"):
        raise BadInput(f"--matrix must be 'gram' or 'distance', got {matrix!r}.")
    if not expressions:
        return {"Precomputed()": Precomputed()} if matrix else None
    parsed = {text.strip(): parse_kernel(text) for text in expressions}
    if matrix and any(kernel.layout.on_data for kernel in parsed.values()):
        raise BadInput(
            "--matrix needs a kernel made of Precomputed(), such as '2 * Precomputed() + 1'."
        )
    for kernel in () if matrix else parsed.values():
        message = "Precomputed() needs --matrix gram or --matrix distance."
        kernel.layout.require_data(message, BadInput)
    return parsed


@dataclass(frozen=True)
class Reading:
    """Options of users about tables: the same for every command that reads one."""

    decimal: str | None = None
    dayfirst: bool | None = None
    sep: str | None = None
    encoding: str | None = None
    number: list[str] = field(default_factory=list)
    category: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    id: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of read_table."""
        given = {name: getattr(self, name) for name in (*_WRITTEN, "number")}
        # Names of rows are kept as they are written.
        given["category"] = [*self.category, *(n for n in self.id if n not in self.category)]
        return {name: value for name, value in given.items() if value not in (None, [])}

    @property
    def roles(self) -> dict[str, Any]:
        """Arguments of TableEncoder: what the frame that read_table makes does not say."""
        given = {name: getattr(self, name) for name in ("number", "ignore", "id")}
        return {name: value for name, value in given.items() if value}

    def frame(
        self, path: Path, target: str | None = None, like: TableEncoder | None = None
    ) -> tuple[pd.DataFrame, list[str]]:
        """The table in a file, and notes on how it was read."""
        frame, notes = read_table(path, target=target, like=like, **self.arguments)
        for name in (*self.ignore, *self.id):
            check_column(frame, name, notes)
        return frame, notes

    def without_names(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns that are neither ignored nor names of rows."""
        return frame.drop(columns=list({*self.ignore, *self.id}))


def reading(command: Callable[..., Any], *, kinds: bool = True) -> Callable[..., Any]:
    """A command with options for how its tables are read, given to it as `reading`.

    Without `kinds` those for single columns are left out: a model knows them.
    """
    options = _WRITTEN | (_KINDS if kinds else {})

    @wraps(command)
    def with_options(*args, **given):
        said = {name: given.pop(name, None) for name in options}
        said = {name: value for name, value in said.items() if value is not None}
        return command(*args, reading=Reading(**said), **given)

    own = inspect.signature(command).parameters.values()
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in options.items()
    ]
    with_options.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p for p in own if p.name != "reading"] + more
    )
    return with_options
