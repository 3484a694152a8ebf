"""mercer explore: a page on which a kernel can be played with."""

import threading
import webbrowser
from pathlib import Path
from typing import Any

from typer import Option

from .. import RBF, parse_kernel
from ..tables import BadInput
from . import demo as demo_data
from . import file_data, output
from .options import Reading, command


@command(
    "Examples:\n\n  mercer explore --demo\n\n  mercer explore iris.csv --target species\n\n"
    "  mercer explore data.parquet -t price -k 'RBF() + Linear()'",
    kernel="The kernel to begin with, such as 'RBF() + Linear()'.",
    demo="Use handwritten digits instead of a file.",
    folder="Folder for what is saved from the page.",
    port=Option(min=0, max=65535, help="Port of the page; 0 finds a free one."),
    open_page=Option("--open/--no-open", help="Show the page in a browser."),
)
def explore_(
    file: Path | None = None,
    target: str | None = None,
    kernel: str = "RBF()",
    demo: bool = False,
    scale: str = "auto",
    task: str = "auto",
    image_shape: str | None = None,
    max_points: int = 20_000,
    folder: Path = Path("mercer-explore"),
    port: int = 0,
    open_page: bool = True,
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
        options: Any = {"target": target, "scale": scale, "image_shape": image_shape}
        data = file_data.read_data(file, reading, {kernel: chosen}, **options)
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
        folder=folder,
        port=port,
    )
    with explorer:
        output.tell(explorer.url)
        output.say("Only this machine can open the page. Press Ctrl-C to stop.")
        if open_page:
            webbrowser.open(explorer.url)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            output.say("Closed.")
