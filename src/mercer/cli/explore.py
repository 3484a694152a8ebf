"""mercer explore: a page on which a kernel can be played with."""

import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from ..kernels import RBF
from ..kernels.expressions import parse_kernel
from . import demo as demo_data
from . import files, output
from .files import BadInput

EPILOG = (
    "Examples:\n\n  mercer explore --demo\n\n  mercer explore iris.csv --target species\n\n"
    "  mercer explore data.parquet -t price -k 'RBF() + Linear()'"
)


def explore(
    file: Annotated[
        Path | None,
        typer.Argument(help="csv, tsv, xlsx, jsonl, parquet (also gz), npz; - is standard input."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="The column to predict: numbers or classes."),
    ] = None,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel", "-k", help="The kernel to begin with, such as 'RBF() + Linear()'."
        ),
    ] = "RBF()",
    demo: Annotated[
        bool, typer.Option("--demo", help="Use handwritten digits instead of a file.")
    ] = False,
    scale: Annotated[
        str, typer.Option(help="Columns: auto, standard (mean 0, variance 1), unit, none.")
    ] = "auto",
    task: Annotated[str, typer.Option(help="The target: auto, classes or numbers.")] = "auto",
    image_shape: Annotated[
        str | None, typer.Option(help="Show rows as images, for example 28x28.")
    ] = None,
    max_points: Annotated[
        int, typer.Option(min=10, help="Of more rows, a sample is shown.")
    ] = 20_000,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for what is saved from the page.")
    ] = Path("mercer-explore"),
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; 0 finds a free one.")
    ] = 0,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Show the page in a browser.")
    ] = True,
    sep: Annotated[
        str | None, typer.Option("--sep", help="What separates columns; detected if not given.")
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option("--encoding", help="Of the text; detected if not given."),
    ] = None,
):
    """Open a page where sliders change the kernel and you see its feature space."""
    from ..explore.live import explore as start

    if demo == (file is not None):
        raise BadInput("name one file, or use --demo: mercer explore data.csv --target column.")
    chosen = parse_kernel(kernel) if kernel.strip() != "RBF()" else RBF("scale")
    if demo:
        X, y, shape = demo_data.all_digits()
        data: Any = files.Data(X, y, image_shape=shape)
        target = "digit"
    else:
        data = files.read(
            file,
            target=target,
            scale=scale,
            kernels=[chosen],
            image_shape=files.shape_of(image_shape),
            sep=sep,
            encoding=encoding,
        )
    output.notes(data.notes)
    explorer = start(
        data.X,
        data.y,
        chosen,
        task=task,
        samples=data.shown,
        image_shape=data.image_shape,
        encoder=data.encoder,
        target_name=target,
        max_points=max_points,
        folder=out,
        port=port,
    )
    with explorer:
        output.out.print(explorer.url, markup=False, soft_wrap=True)
        output.say("Only this machine can open the page. Press Ctrl-C to stop.")
        if open_page:
            webbrowser.open(explorer.url)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            output.say("Closed.")
