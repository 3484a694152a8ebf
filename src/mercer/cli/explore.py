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
        str, typer.Option("--kernel", "-k", help="Where to begin, such as 'RBF() + Linear()'.")
    ] = "RBF()",
    demo: Annotated[bool, typer.Option("--demo", help="Handwritten digits.")] = False,
    scale: Annotated[
        str, typer.Option(help="Columns: auto, standard (mean 0, variance 1), unit, none.")
    ] = "auto",
    task: Annotated[str, typer.Option(help="The target: auto, classes or numbers.")] = "auto",
    image_shape: Annotated[
        str | None, typer.Option(help="Show rows as images, for example 28x28.")
    ] = None,
    max_points: Annotated[int, typer.Option(min=10, help="Larger data are sampled.")] = 20_000,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for what is saved from the page.")
    ] = Path("mercer-explore"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 finds a free one.")] = 0,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Show the page in a browser.")
    ] = True,
    sep: Annotated[str | None, typer.Option("--sep", help="What separates columns.")] = None,
    encoding: Annotated[
        str | None,
        typer.Option("--encoding", help="Detected if not given."),
    ] = None,
):
    """Move a slider, see the kernel's feature space change: a page served from this machine."""
    from ..explore.live import explore as start

    if demo == (file is not None):
        raise BadInput("name a file, or use --demo: mercer explore data.csv --target column.")
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
        output.say("The page is served from this machine, to this machine. Ctrl-C ends it.")
        if open_page:
            webbrowser.open(explorer.url)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            output.say("Closed.")
