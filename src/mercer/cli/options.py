"""Options that several commands share, and what their values mean."""

from typing import Annotated

import typer

from ..explore.compare.comparison import named_kernels
from ..kernels import Precomputed
from ..kernels.expressions import parse_kernel
from .errors import BadInput

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
Sep = Annotated[
    str | None,
    typer.Option("--sep", help="What separates columns: ';', 'tab', ... Detected if not given."),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="utf-8, latin-1, utf-16, ... Detected if not given."),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", help="The decimal mark: '.' or ','. Found if not given."),
]
DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--dayfirst/--monthfirst", help="Whether 01/02/2012 is in February. Found if not given."
    ),
]
Number = Annotated[
    list[str] | None, typer.Option("--number", help="A column of numbers; may be repeated.")
]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", help="A column of categories, such as a zip code; repeatable."),
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", help="A column to leave out; may be repeated.")
]
Id = Annotated[
    list[str] | None,
    typer.Option("--id", help="A column that names the rows; mercer predict copies it."),
]
TABLE = "csv, tsv, xlsx, jsonl, parquet (also gz), npz; - reads standard input."
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
MaxPoints = Annotated[int, typer.Option(min=10, help="If there are more rows, a sample is used.")]
ImageShape = Annotated[
    str | None, typer.Option("--image-shape", help="Show rows as images, for example 28x28.")
]
Task = Annotated[str, typer.Option("--task", help="auto, classification or regression.")]


def kernels_of(expressions, matrix):
    """name -> kernel; None where none was named."""
    if matrix not in (None, "gram", "distance"):
        raise BadInput(f"--matrix must be 'gram' or 'distance', got {matrix!r}.")
    if not expressions:
        return {"Precomputed()": Precomputed()} if matrix else None
    parsed = {text.strip(): parse_kernel(text) for text in expressions}
    if matrix and any(kernel.kind != "gram" for kernel in parsed.values()):
        raise BadInput(
            "--matrix needs a kernel made of Precomputed(), such as '2 * Precomputed() + 1'."
        )
    if not matrix and any(kernel.kind == "gram" for kernel in parsed.values()):
        raise BadInput("Precomputed() needs --matrix gram or --matrix distance.")
    return named_kernels(parsed)
