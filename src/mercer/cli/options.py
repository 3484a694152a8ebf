"""Options of the commands: their names and help texts, and what their values mean."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from typer import Argument, Option

from .. import Precomputed, TableEncoder, parse_kernel, read_table
from ..tables import BadInput, check_column

# Arguments that have another name on the command line.
_NAMES = {
    "target": ("--target", "-t"),
    "kernel": ("--kernel", "-k"),
    "page": ("--output", "-o"),
    "folder": ("--out", "-o"),
    "save_to": ("--save",),
    "open_page": ("--open",),
    "dayfirst": ("--dayfirst/--monthfirst",),
}
TABLE = Argument(help="csv, tsv, xlsx, jsonl, parquet (also gz); - reads standard input.")
_ARRAYS = Argument(help="csv, tsv, xlsx, jsonl, parquet (also gz), npz; - reads standard input.")
# Help texts of arguments that several commands have.
_HELP: dict[str, Any] = {
    "file": _ARRAYS,
    "target": "The column to predict: numbers or classes.",
    "kernel": "A kernel, such as 'RBF(0.1)' or 'Polynomial(2) + Linear()'; may be repeated.",
    "matrix": "The file is a matrix: 'gram' (similarities) or 'distance'.",
    "scale": "Columns: auto, standard (mean 0, variance 1), unit (0 to 1), none.",
    "task": "auto, regression (numbers) or classification (classes).",
    "image_shape": "Show rows as images, for example 28x28.",
    "max_points": Option(min=10, help="If there are more rows, a sample is used."),
    "json": "Print one JSON object, for scripts.",
}
# Options of every command that reads a table: its notation, and the kinds of its columns.
_WRITTEN = {
    "decimal": (str, "The decimal mark: '.' or ','. Found if not given."),
    "dayfirst": (bool, "Whether 01/02/2012 is in February. Found if not given."),
    "sep": (str, "What separates columns: ';', 'tab', ... Found if not given."),
    "encoding": (str, "utf-8, latin-1, utf-16, ... Found if not given."),
}
_KINDS = {
    "number": (list[str], "A column of numbers; may be repeated."),
    "category": (list[str], "A column of categories, such as a zip code; may be repeated."),
    "ignore": (list[str], "A column to leave out; may be repeated."),
    "id": (list[str], "A column that names the rows; may be repeated."),
}


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


def command(epilog: str, *, kinds: bool = True, **helps: Any) -> Callable[..., Any]:
    """A function as a command: `helps` are the texts for its arguments, or typer's Option.

    An argument `reading` is made of the options for how tables are read. Without `kinds` those for
    single columns are left out: a model knows them.
    """
    helps = _HELP | helps

    def described(name: str, kind: Any) -> Any:
        told = helps[name]
        if isinstance(told, str):
            told = Option(*_NAMES.get(name, (f"--{name.replace('_', '-')}",)), help=told)
        return Annotated[kind, told]

    def made(function: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(function).parameters
        options = _WRITTEN | (_KINDS if kinds else {}) if "reading" in own else {}

        @wraps(function)
        def called(*args, **given):
            said = {name: given.pop(name, None) for name in options}
            said = {name: value for name, value in said.items() if value is not None}
            return function(*args, **given, **({"reading": Reading(**said)} if options else {}))

        arguments = [
            argument.replace(annotation=described(name, argument.annotation))
            for name, argument in own.items()
            if name != "reading"
        ]
        for name, (kind, text) in options.items():
            helps[name] = text
            shown, place = described(name, kind | None), inspect.Parameter.KEYWORD_ONLY
            arguments.append(inspect.Parameter(name, place, default=None, annotation=shown))
        called.__signature__ = inspect.Signature(arguments)  # type: ignore[attr-defined]
        called.epilog = epilog  # type: ignore[attr-defined]
        return called

    return made
