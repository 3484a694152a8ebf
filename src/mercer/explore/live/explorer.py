"""explore: open a page on which a kernel can be played with."""

import webbrowser
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ... import RBF, Kernel, as_kernel
from ...kernels import Data, KernelLike
from ..data import Explored
from ..report.page import require_bokeh
from .session import Session


class Explorer:
    """Control a running page of :func:`explore`; shows the page in a notebook.

    Attributes
    ----------
    url : str
        The address of the page, on this machine. Whoever knows it can use the page.
    kernel : Kernel
        The kernel as it stands on the page now.
    selection : ndarray
        Positions, in the data as given, of the rows that are selected now.
    code : str
        Python lines that make the present model.

    Examples
    --------
    See :func:`explore`.
    """

    def __init__(self, session: Session, port: int = 0) -> None:
        require_bokeh()
        from .live_page import LiveServer

        self.session = session
        self._server = LiveServer(session, port)
        self.url = self._server.url

    @property
    def kernel(self) -> Kernel:
        return self.session.full_kernel

    @property
    def selection(self) -> np.ndarray:
        return self.session.data.rows[self.session.selected]

    @property
    def code(self) -> str:
        return self.session.code()

    def stop(self) -> None:
        """Close the page's address."""
        self._server.stop()

    def __enter__(self) -> "Explorer":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Explorer of {len(self.session.data)} rows at {self.url}>"

    def _repr_html_(self) -> str:
        url = escape(self.url, quote=True)
        return (
            f'<iframe src="{url}" width="100%" height="900" style="border:0"></iframe>'
            f'<p><a href="{url}" target="_blank">Open the explorer in its own window</a></p>'
        )


def explore(
    X: Data,
    y: ArrayLike | None = None,
    kernel: KernelLike | None = None,
    *,
    task: str = "auto",
    image_shape: tuple[int, int] | None = None,
    samples: Data | None = None,
    encoder: BaseEstimator | str | None = "auto",
    target_name: str | None = None,
    max_points: int = 20_000,
    folder: str | Path = "mercer-explore",
    port: int = 0,
    open_page: bool = False,
    random_state: int = 0,
) -> Explorer:
    """Play with a kernel: move a slider, and see its feature space change.

    A page is served from this machine, to this machine alone. It shows the rows in the kernel's
    space (kernel PCA, discriminant axes or t-SNE), its spectrum and certificate, the leave-one-out
    score along every slider, the kernel matrix, and functions drawn from the kernel. In a notebook
    the page appears below the cell; elsewhere open :attr:`Explorer.url`, or pass `open_page`.

    Parameters
    ----------
    X : array, frame or list of objects
        Rows. Frames with texts, dates or gaps are encoded by :class:`TableEncoder`.
    y : array of shape (n_samples,) or None
        Classes or numbers.
    kernel : Kernel, str or None
        Where to begin; None: ``RBF("scale")``.
    task : {"auto", "classification", "regression"}
        What the target is.
    image_shape : (height, width) or None
        Show rows as images of this shape.
    samples : list of str, frame or array of images, one per row
        What is shown of a point; None: the rows of X.
    encoder : "auto", None or a transformer
        What turns the rows into numbers first.
    target_name : str or None
        Its name on the page.
    max_points : int
        Larger data are sampled.
    folder : path
        Where "Save" writes the model and the report.
    port : int
        0 finds a free one.
    open_page : bool
        Show the page in a browser now.
    random_state : int
        Of the sample.

    Returns
    -------
    Explorer

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import mercer
    >>> X, y = load_iris(return_X_y=True)
    >>> with mercer.explore(X, y, "rbf") as explorer:
    ...     explorer.kernel
    RBF()
    """
    start = RBF("scale") if kernel is None else as_kernel(kernel)
    data = Explored.of(
        X, y, start, task=task, samples=samples, image_shape=image_shape, encoder=encoder,
        target_name=target_name, max_points=max_points, random_state=random_state,
    )  # fmt: skip
    data.bound(start)
    explorer = Explorer(Session(data, start, folder), port)
    if open_page:
        webbrowser.open(explorer.url)
    return explorer
