"""SpectrumDisplay: how the variance of a feature space is shared among its directions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ... import KernelMap
from ...engine import Domain, as_numpy
from ...kernels import Data, KernelLike
from ...kernels import points as pts
from ..embeddings import eigenvalues
from .style import COLOURS, INK, Display, numbers_of, pyplot, share_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class SpectrumDisplay(Display):
    """Draw how many directions hold how much of the variance.

    These are the eigenvalues of a kernel matrix; :class:`Spectrum` is a kernel on strings.

    Parameters
    ----------
    eigenvalues : array
        Variances along the directions, the largest first.
    total : float or None
        Variance of all directions, where `eigenvalues` has only the leading ones.
    title : str or None
        What stands above the picture.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, Linear, SpectrumDisplay
    >>> X, _ = load_iris(return_X_y=True)
    >>> display = SpectrumDisplay.from_kernel(Linear(), X)
    >>> display.shares.round(3)
    array([0.925, 0.053, 0.017, 0.005])
    >>> display.components_for(0.95)
    2
    >>> fitted = KernelPCA(2, Linear()).fit(X)
    >>> SpectrumDisplay.from_estimator(fitted).plot().eigenvalues.shape
    (2,)
    """

    names = ("component", "variance, %")

    eigenvalues: ArrayLike
    _: KW_ONLY
    total: float | None = None
    title: str | None = None

    @classmethod
    def from_kernel(cls, kernel: KernelLike, X: Data, *, title: str | None = None) -> Self:
        """All eigenvalues of the centred kernel matrix on X; `title` stands above the picture."""
        kernel_map = KernelMap(kernel)
        Phi = as_numpy(kernel_map.fit_transform(X)).astype(float)
        title = repr(kernel_map.kernel_) if title is None else title
        return cls(eigenvalues(Phi - Phi.mean(axis=0)), title=title)

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, title: str | None = None) -> Self:
        """Take a fitted `estimator`: KernelPCA, or KernelMap(basis="eigen", center=True).

        `title` stands above the picture.
        """
        if not hasattr(estimator, "eigenvalues_"):
            raise ValueError(
                f"estimator {type(estimator).__name__} has no eigenvalues_: pass a fitted "
                "KernelPCA or KernelMap(basis='eigen', center=True), or use from_kernel."
            )
        values = as_numpy(estimator.eigenvalues_).astype(float)
        total = None
        if hasattr(estimator, "explained_variance_ratio_") and values[0] > 0:
            total = float(values[0] / as_numpy(estimator.explained_variance_ratio_)[0])
        return cls(values, total=total, title=title)

    @property
    def shares(self) -> np.ndarray:
        """Shares of the whole variance, in decreasing order."""
        values = numbers_of(self.eigenvalues, "eigenvalues", 1, empty=True)
        total = values.sum() if self.total is None else self.total
        Domain.FINITE("total", total)
        return values / total if total > 0 else values

    def components_for(self, share: float) -> int | None:
        """How many components hold this share of the variance; None where these do not."""
        share, cumulated = share_of(share, "share"), np.cumsum(self.shares)
        enough = np.flatnonzero(cumulated >= share - 1e-12)
        return int(enough[0]) + 1 if len(enough) else None

    def plot(
        self,
        ax: Axes | None = None,
        *,
        mark: float | None = 0.9,
        colour: str | tuple[float, ...] = COLOURS[0],
    ) -> Self:
        """Draw shares as bars and their sum as a line, on `ax` (None: a new figure).

        `mark` is a share of the variance to point out, `colour` that of the bars.
        """
        with pts.naming("colour"):
            shade = pyplot().matplotlib.colors.to_rgba(colour)
        wanted = share_of(mark, "mark") if mark is not None and mark is not False else None
        ax = self._begin(ax, (6.0, 3.6))
        shares, number = self.shares, np.arange(1, len(self.shares) + 1)
        cumulated = np.cumsum(shares)
        ax.fill_between(number, 100 * shares, step="mid", color=shade, alpha=0.25, lw=0)
        ax.plot(number, 100 * cumulated, color=shade, lw=2, label="running sum")
        ax.plot(number, 100 * shares, color=shade, lw=1, drawstyle="steps-mid")
        if len(number) > 20:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
        enough = self.components_for(wanted) if wanted else None
        if wanted is not None and enough:
            ax.plot([enough], [100 * cumulated[enough - 1]], "o", color=shade, ms=6)
            # Under the curve, which is concave: the right half below it is always free.
            text = f"{100 * wanted:g} % in {enough}"
            ax.text(0.97, 0.5, text, transform=ax.transAxes, ha="right", color=INK)
        ax.set_ylim(0, 104)
        ax.set_xlim(left=min(0.8, number[0]) if len(number) > 20 else 0.5)
        return self._finish()
