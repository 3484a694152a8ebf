"""The commands: fit, predict, compare, explore, differ, check, map, demo."""

import re
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from .. import __version__
from ..estimators.kernel_map import KernelMap
from ..explore.compare import compare_kernels
from ..explore.compare.baselines import BOOSTING
from ..explore.compare.comparison import named_kernels
from ..export.files import save
from ..kernels import RBF, Precomputed, check_mercer
from ..kernels.expressions import parse_kernel
from . import demo as demo_data
from . import files, output
from . import fit as fitting
from .differ import EPILOG, differ
from .explore import EPILOG as EXPLORE_EPILOG
from .explore import explore
from .files import BadInput

app = typer.Typer(
    name="mercer",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Fit kernel models to tables, compare kernels, and look at their feature spaces.",
    epilog="Start with: [bold]mercer fit data.csv --target column[/bold]\n\n"
    "Without data of your own: [bold]mercer demo[/bold]",
)
# Rows that the certificate is evaluated on, all against all.
CERTIFIED = 500

Target = Annotated[
    str | None, typer.Option("--target", "-t", help="The column to predict: numbers or classes.")
]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel", "-k", help="A kernel, such as 'RBF(0.1)' or 'Polynomial(2) + Linear()'."
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
TABLE = "csv, tsv, xlsx, jsonl, parquet (also gz), npz; - reads standard input."
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]
MaxPoints = Annotated[int, typer.Option(min=10, help="Of more rows, a sample is used.")]


def run():
    """The command; bad input ends in one line and exit code 2, without a traceback."""
    try:
        result = app(standalone_mode=False)
    except (BadInput, ValueError, TypeError, ImportError, OSError, MemoryError) as error:
        output.say(f"mercer: {error}", "bold red" if output.err.is_terminal else None)
        return 2
    except typer.Abort:
        return 130
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of the command line itself
            output.say(f"mercer: {error.format_message()}\nTry: mercer --help")
            return 2
        raise
    return result if isinstance(result, int) else 0


def _version(asked: bool):
    if asked:
        typer.echo(f"mercer {__version__}")
        raise typer.Exit()


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
):
    pass


@app.command(
    epilog="Examples:\n\n  mercer demo\n\n  mercer demo --data mnist\n\n"
    "  mercer demo --data mnist.npz -o out",
)
def demo(
    folder: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the page and the picture.")
    ] = Path("mercer-demo"),
    data: Annotated[
        str,
        typer.Option(help="'digits' (bundled), 'mnist' (downloaded once) or a local mnist.npz."),
    ] = "digits",
    json: Json = False,
):
    """Show three kernels on handwritten 2, 4 and 7, and why one of them fails."""
    X, y, shape = demo_data.digits() if data == "digits" else demo_data.mnist(data)
    kernels = demo_data.kernels(X.shape[1])
    # Learning from few shows what a space is worth; from many, all are good at small digits.
    few: dict[str, Any] = {"cv": 8, "train_size": 60} if data == "digits" else {"cv": 3}
    if not json:
        output.say(f"{len(X)} handwritten digits 2, 4 and 7, {shape[0]} x {shape[1]} pixels.")
        output.say("k1 = <x, z>^9 on pixels from 0 to 1;  k2 = ((<2x-1, 2z-1> + 1) / 2)^9;  RBF.\n")
    with output.progress(json) as callback:
        comparison = compare_kernels(X, y, kernels, image_shape=shape, callback=callback, **few)
    folder.mkdir(parents=True, exist_ok=True)
    written = _write(
        comparison, folder / "report.html", folder / "report.png", None, "Digits 2, 4, 7"
    )
    _finish(comparison, written, [], json)


@app.command(
    epilog="Examples:\n\n"
    "  mercer compare iris.csv --target species\n\n"
    "  mercer compare data.parquet -t label -k 'RBF(0.1)' -k 'Polynomial(2) + Linear()'\n\n"
    "  mercer compare dna.csv -t promoter -k 'Spectrum(3)' -k 'Spectrum(5)'\n\n"
    "  mercer compare cities.csv --matrix distance\n\n"
    "  mercer compare data.csv -t price --json > result.json",
)
def compare(
    file: Annotated[Path, typer.Argument(help=TABLE)],
    target: Target = None,
    kernel: Kernels = None,
    matrix: Matrix = None,
    scale: Scale = "auto",
    task: Annotated[str, typer.Option(help="The target: auto, classes or numbers.")] = "auto",
    page: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    png: Annotated[Path | None, typer.Option(help="Also write a picture.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Also write the table: .csv, .tsv or .parquet.")
    ] = None,
    image_shape: Annotated[
        str | None, typer.Option(help="Show rows as images, for example 28x28.")
    ] = None,
    cv: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    max_points: MaxPoints = 2000,
    sep: Sep = None,
    encoding: Encoding = None,
    save_to: Annotated[
        Path | None, typer.Option("--save", help="Also fit and save the best model: model.mercer.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
    json: Json = False,
):
    """Compare kernels on your data: a ranked table, a verdict, a page and a model to use."""
    kernels = _kernels(kernel, matrix)
    for path in filter(None, (page, png, table, save_to)):
        _check_folder(path)
    if save_to is not None and target is None:
        raise BadInput("--save needs --target: without one there is no model to save.")
    data = files.read(
        file,
        target=target,
        matrix=_matrix(matrix),
        scale=scale,
        kernels=list((kernels or {}).values()),
        image_shape=files.shape_of(image_shape),
        sep=sep,
        encoding=encoding,
    )
    if not json:
        output.notes(data.notes)
    with output.progress(json) as callback:
        comparison = compare_kernels(
            data.X,
            data.y,
            kernels or data.kernels,
            task=task,
            cv=cv,
            samples=data.shown,
            image_shape=data.image_shape,
            max_points=max_points,
            encoder=data.encoder,
            target_name=target,
            callback=callback,
        )
    comparison.notes[:0] = data.notes
    comparison.command = _command()
    title = "standard input" if str(file) == "-" else file.name
    if save_to is not None:
        _save(comparison, save_to)
    written = _write(comparison, page, png, table, f"Kernels on {title}")
    if save_to is not None:
        written["model"] = str(save_to)
    _finish(comparison, written, data.notes, json)
    if open_page:
        webbrowser.open(page.resolve().as_uri())


@app.command(
    epilog="Exit code 0: may be a kernel; 1: is not a kernel; 2: bad input.\n\nExamples:\n\n"
    "  mercer check data.csv -k 'Sigmoid(1, -1)'\n\n"
    "  mercer check similarities.csv --matrix gram",
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
    sep: Sep = None,
    encoding: Encoding = None,
    json: Json = False,
):
    """Check on your data whether a similarity is a kernel; if not, show a proof."""
    kernels = _kernels(kernel, matrix) or {"RBF()": RBF()}
    data = files.read(
        file,
        target=target,
        matrix=_matrix(matrix),
        scale=scale,
        kernels=list(kernels.values()),
        sep=sep,
        encoding=encoding,
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


@app.command(
    name="map",
    epilog="Examples:\n\n"
    "  mercer map data.csv -o coordinates.parquet -k 'RBF(0.1)'\n\n"
    "  mercer map data.csv -o coordinates.csv -k 'Matern()' --max-rank 50",
)
def map_(
    file: Annotated[Path, typer.Argument(help=TABLE)],
    out: Annotated[
        Path, typer.Option("--output", "-o", help="Coordinates: .parquet, .csv or .tsv.")
    ],
    kernel: Annotated[str, typer.Option("--kernel", "-k", help="The kernel.")] = "RBF()",
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="A column to copy into the result."),
    ] = None,
    matrix: Matrix = None,
    scale: Scale = "auto",
    max_rank: Annotated[
        int | None, typer.Option(min=1, help="The largest number of coordinates.")
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(help="Largest relative residual of a row."),
    ] = None,
    basis: Annotated[
        str, typer.Option(help="Kind of coordinates: cholesky, eigen, symmetric, closed or auto.")
    ] = "cholesky",
    indefinite: Annotated[
        str, typer.Option(help="If the similarity is not a kernel: raise, clip, flip or shift.")
    ] = "raise",
    sep: Sep = None,
    encoding: Encoding = None,
    json: Json = False,
):
    """Write coordinates whose inner products are the kernel, with a bound for their error."""
    kernels = _kernels(
        [kernel] if matrix is None else [kernel] if kernel != "RBF()" else None, matrix
    )
    (name, chosen), *_ = kernels.items()
    _check_folder(out)
    if target is not None and re.fullmatch(r"phi\d+|residual", target):
        raise BadInput(
            f"--target {target} has the name of a column of coordinates; rename it in {file.name}."
        )
    data = files.read(
        file,
        target=target,
        matrix=_matrix(matrix),
        scale=scale,
        kernels=[chosen],
        sep=sep,
        encoding=encoding,
    )
    X = data.numbers()
    options: dict[str, Any] = {"basis": basis, "indefinite": indefinite}  # fit checks them
    kernel_map = KernelMap(chosen, max_rank=max_rank, tol=tol, **options)
    with output.progress(json) as callback:
        callback(0, 1, f"the map of {name}")
        Phi = kernel_map.fit_transform(X)
    frame = pd.DataFrame(Phi, columns=[f"phi{j}" for j in range(Phi.shape[1])])
    residual, bound = _certificate(kernel_map, X, data.gram, Phi)
    frame["residual"] = residual
    if data.y is not None:
        frame.insert(0, target or "target", data.y)
    files.write(frame, out)
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
    output.out.print(f"{len(frame)} rows, {kernel_map.rank_} coordinates: {out}", markup=False)
    output.out.print(
        f"Largest residual {kernel_map.max_residual_:.2g}; inner products of coordinates differ "
        f"from the kernel by at most {bound:.2g} (certified on {min(len(frame), CERTIFIED)} rows).",
        markup=False,
    )


app.command(epilog=EPILOG)(differ)
app.command(epilog=EXPLORE_EPILOG)(explore)
app.command(
    epilog="Examples:\n\n  mercer fit houses.csv --target price -o houses.mercer\n\n"
    "  mercer predict houses.mercer new.csv -o predictions.csv",
)(fitting.fit)
app.command(epilog="Example:\n\n  mercer predict houses.mercer new.csv -o predictions.csv")(
    fitting.predict
)
# The order in which --help lists them: what a new user needs comes first.
COMMANDS = ["fit", "predict", "compare", "explore", "differ", "check", "map_", "demo"]
app.registered_commands.sort(
    key=lambda command: COMMANDS.index(getattr(command.callback, "__name__", ""))
)


# --- small parts ----------------------------------------------------------------------------------


def _kernels(expressions, matrix):
    """name -> kernel; None where compare is to choose."""
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


def _command():
    """The command as it was typed, for the page."""
    return "mercer " + shlex.join(sys.argv[1:])


def _matrix(matrix):
    if matrix not in (None, "gram", "distance"):
        raise BadInput(f"--matrix must be 'gram' or 'distance', got {matrix!r}.")
    return matrix


def _check_folder(path):
    """Before the work, not after it."""
    if not Path(path).parent.is_dir():
        raise BadInput(f"there is no folder {str(Path(path).parent)!r} for {Path(path).name}.")


def _write(comparison, page, png, table, title):
    written = {"page": comparison.to_html(page, title=title)}
    if png is not None:
        import matplotlib

        matplotlib.use("Agg")
        display = comparison.plot()
        display.figure_.savefig(png, dpi=110)
        matplotlib.pyplot.close(display.figure_)
        written["picture"] = str(png)
    if table is not None:
        files.write(comparison.table.reset_index(), table)
        written["table"] = str(table)
    return written


def _save(comparison, path):
    """The best model; the best kernel where that is a model of boosted trees."""
    name = comparison.best
    if name == BOOSTING:
        name = comparison.spaces[0].name
        comparison.notes.append(
            f"{Path(path).name} contains {name}, the best kernel. {BOOSTING} predicts better here, "
            "but mercer cannot save boosted trees; the code below makes that model."
        )
    save(comparison.best_model(name), path)


def _finish(comparison, written, already_said, json):
    if json:
        output.as_json(output.summary(comparison, written))
        return
    output.notes([note for note in comparison.notes if note not in already_said])
    output.report(comparison)
    output.out.print()
    if comparison.task is not None:
        output.out.print("To use it in Python:", style="bold")
        output.out.print(comparison.code(), markup=False, soft_wrap=True)
        output.out.print()
    for what, path in written.items():
        output.out.print(
            f"{what.capitalize()}: {Path(path).resolve()}", markup=False, soft_wrap=True
        )


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


def _certificate(kernel_map, X, gram, Phi):
    """rho^2 of every row, and the largest certified error over pairs of at most CERTIFIED rows."""
    n = len(Phi)
    rows = np.linspace(0, n - 1, min(n, CERTIFIED)).astype(int)
    if gram:
        diagonal = np.diagonal(X)
        residual = kernel_map.residual(X, diag=diagonal)
        bound = kernel_map.error_bound(X[rows], diag=diagonal[rows])
    else:
        residual = kernel_map.residual(X)
        bound = kernel_map.error_bound(X.iloc[rows] if hasattr(X, "iloc") else X[rows])
    return np.asarray(residual), float(np.max(bound))


if __name__ == "__main__":
    sys.exit(run())
