"""mercer explore: a page on which a kernel can be played with."""

import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import RBF, parse_kernel
from ..tables import BadInput
from . import demo as demo_data
from . import file_data, output
from .options import TABLE, ImageShape, MaxPoints, Reading, Scale, Target, Task

EPILOG = (
    "Examples:\n\n  mercer explore --demo\n\n  mercer explore iris.csv --target species\n\n"
    "  mercer explore data.parquet -t price -k 'RBF() + Linear()'"
)


def explore_(
    file: Annotated[Path | None, typer.Argument(help=TABLE)] = None,
    target: Target = None,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel", "-k", help="The kernel to begin with, such as 'RBF() + Linear()'."
        ),
    ] = "RBF()",
    demo: Annotated[
        bool, typer.Option("--demo", help="Use handwritten digits instead of a file.")
    ] = False,
    scale: Scale = "auto",
    task: Task = "auto",
    image_shape: ImageShape = None,
    max_points: MaxPoints = 20_000,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for what is saved from the page.")
    ] = Path("mercer-explore"),
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; 0 finds a free one.")
    ] = 0,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Show the page in a browser.")
    ] = True,
    *,
    reading: Reading,
):
    """Open a page where sliders change the kernel and you see its feature space."""
    from .. import explore as start

    if demo == (file is not None):
        raise BadInput("name one file, or use --demo: mercer explore data.csv --target column.")
    chosen = parse_kernel(kernel) if kernel.strip() != "RBF()" else RBF("scale")
    if file is None:
        X, y, shape = demo_data.digits(range(10))
        data: Any = file_data.FileData(X, y, image_shape=shape)
        target = "digit"
    else:
        data = file_data.read_data(
            file,
            reading,
            target=target,
            scale=scale,
            kernels=[chosen],
            image_shape=file_data.shape_of(image_shape),
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
