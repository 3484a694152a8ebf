"""`mercer compare` and `mercer demo`: kernels on your data, or on handwritten digits."""

import io
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import Any

from typer import Option

from .. import compare_kernels, save
from ..explore.compare.baselines import BOOSTING
from ..export import needed_trust, write_output
from ..tables import BadInput
from . import demo as demo_data
from . import file_data, output
from .options import Reading, command, kernels_of


@command(
    "Examples:\n\n  mercer demo\n\n  mercer demo --data mnist\n\n"
    "  mercer demo --data mnist.npz -o out",
    folder="Folder for the page and the picture.",
    data="'digits' (bundled), 'mnist' (downloaded once) or a local mnist.npz.",
)
def demo(folder: Path = Path("mercer-demo"), data: str = "digits", json: bool = False):
    """Show three kernels on handwritten 2, 4 and 7, and why one of them fails."""
    X, y, shape = demo_data.digits() if data == "digits" else demo_data.mnist(data)
    kernels = demo_data.kernels(X.shape[1])
    few: dict[str, Any] = demo_data.FROM_FEW if data == "digits" else {"cv": 3}
    if not json:
        output.say(f"{len(X)} handwritten digits 2, 4 and 7, {shape[0]} x {shape[1]} pixels.")
        output.say("k1 = <x, z>^9 on pixels from 0 to 1;  k2 = ((<2x-1, 2z-1> + 1) / 2)^9;  RBF.\n")
    with output.progress(json) as callback:
        comparison = compare_kernels(X, y, kernels, image_shape=shape, callback=callback, **few)
    folder.mkdir(parents=True, exist_ok=True)
    written = _write(
        comparison, folder / "report.html", folder / "report.png", None, "Digits 2, 4, 7"
    )
    if not json:
        for line in demo_data.story(comparison, folder / "report.png"):
            output.tell(line)
        output.out.print()
    _finish(comparison, written, [], json)


@command(
    "Examples:\n\n"
    "  mercer compare iris.csv --target species\n\n"
    "  mercer compare data.parquet -t label -k 'RBF(0.1)' -k 'Polynomial(2) + Linear()'\n\n"
    "  mercer compare dna.csv -t promoter -k 'Spectrum(3)' -k 'Spectrum(5)'\n\n"
    "  mercer compare cities.csv --matrix distance\n\n"
    "  mercer compare data.csv -t price --json > result.json",
    scoring="What ranks: auto, accuracy, balanced_accuracy (classes) or r2 (numbers).",
    page="The page to write.",
    png="Also write a picture.",
    table="Also write the table: .csv, .tsv or .parquet.",
    cv=Option(min=2, help="Folds of the cross-validation."),
    save_to="Also fit the best model and save it here.",
    open_page="Show the page in a browser.",
)
def compare(
    file: Path,
    target: str | None = None,
    kernel: list[str] | None = None,
    matrix: str | None = None,
    scale: str = "auto",
    task: str = "auto",
    scoring: str = "auto",
    page: Path = Path("report.html"),
    png: Path | None = None,
    table: Path | None = None,
    image_shape: str | None = None,
    cv: int = 5,
    max_points: int = 2000,
    save_to: Path | None = None,
    open_page: bool = False,
    json: bool = False,
    *,
    reading: Reading,
):
    """Compare kernels on your data: a ranked table, a verdict, a page and a model to use."""
    kernels = kernels_of(kernel, matrix)
    file_data.check_outputs([file], [page, png, save_to], table)
    if save_to is not None and target is None:
        raise BadInput("--save needs --target: without one there is no model to save.")
    options = {"target": target, "matrix": matrix, "image_shape": image_shape}
    data = file_data.read_data(file, reading, kernels, scale=scale, **options)
    if not json:
        output.notes(data.notes)
    with output.progress(json) as callback:
        comparison = compare_kernels(
            data.X,
            data.y,
            kernels or data.kernels,
            task=task,
            scoring=scoring,
            cv=cv,
            samples=data.shown,
            image_shape=data.image_shape,
            max_points=max_points,
            encoder=data.encoder,
            target_name=target,
            callback=callback,
        )
    comparison.notes[:0] = data.notes
    comparison.command = "mercer " + shlex.join(sys.argv[1:])  # as it was typed, for the page
    title = "standard input" if str(file) == "-" else file.name
    if save_to is not None:
        _save(comparison, save_to)
    written = _write(comparison, page, png, table, f"Kernels on {title}")
    if save_to is not None:
        written["model"] = str(save_to)
    _finish(comparison, written, data.notes, json)
    if open_page:
        webbrowser.open(page.resolve().as_uri())


def _write(comparison, page, png, table, title):
    written = {"page": comparison.to_html(page, title=title)}
    if png is not None:
        import matplotlib

        matplotlib.use("Agg")
        display, picture = comparison.plot(), io.BytesIO()
        display.figure_.savefig(picture, dpi=110, format=png.suffix[1:] or "png")
        write_output(png, picture.getbuffer())
        matplotlib.pyplot.close(display.figure_)
        written["picture"] = str(png)
    if table is not None:
        file_data.write(comparison.table.reset_index(), table)
        written["table"] = str(table)
    return written


def _save(comparison, path):
    """The best model; the best kernel where that is a model of boosted trees."""
    name = comparison.best
    if name == BOOSTING:
        name = comparison.spaces[0].name
        comparison.notes.append(
            f"the file {Path(path).name} contains {name}, the best kernel. {BOOSTING.capitalize()} "
            "predicts better here, but mercer cannot save boosted trees; the code below makes that "
            "model."
        )
    model = comparison.best_model(name)
    needed = needed_trust(model)
    if needed:
        options = " ".join(f"--trusted {name}" for name in needed)
        comparison.notes.append(
            f"the file {Path(path).name} uses names that a stranger's file could misuse: mercer "
            f"predict needs {options}"
        )
    save(model, path, trusted=needed)


def _finish(comparison, written, already_said, json):
    if json:
        output.as_json(output.summary(comparison, written))
        return
    output.notes([note for note in comparison.notes if note not in already_said])
    output.report(comparison)
    output.out.print()
    if comparison.task is not None:
        output.out.print("To use it in Python:", style="bold")
        output.tell(comparison.code())
        output.out.print()
    for what, path in written.items():
        output.tell(f"{what.capitalize()}: {Path(path).resolve()}")
