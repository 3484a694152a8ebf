"""LearnedKernel: what learning found, to read, to draw and to use."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine import TravelsAsNumPy
from ..kernels import Kernel, Projected
from .families import FAMILIES, same_family

# Columns named in the text form.
_NAMED = 10
# Directions of a diagonal metric, which are columns: all of a wide table would be a square matrix.
_MOST_DIRECTIONS = 20


@dataclass(frozen=True)
class Round(TravelsAsNumPy):
    """One round of the search.

    error : leave-one-out error, relative to predicting the mean (root mean square)
    alpha : the penalty chosen
    kernel : the kernel on rotated columns, its lengths in units of the median distance
    linear : weight of the linear part, 0 without one
    rows, landmarks : what the ridge regression of this round was fitted on
    """

    error: float
    alpha: float
    kernel: str
    linear: float
    rows: int
    landmarks: int


@dataclass(frozen=True)
class LearnedKernel(TravelsAsNumPy):
    """Hold a kernel learned from data, and how it was found; made by :func:`mercer.learn_kernel`.

    Attributes
    ----------
    kernel : Kernel
        ``Projected(k, A)``, with a linear part where that helps: usable wherever a kernel is.
    alpha : float
        The penalty with the smallest leave-one-out error, for ridge with an intercept.
    error : float
        That error, relative to predicting the mean: 0 is perfect, 1 is useless.
    history : list of Round
        The search, round by round.
    importances : ndarray of shape (n_features,)
        Share of each column in the metric, columns scaled to equal spread; sums to one. Where no
        metric was better than the plain one, or with a linear part: share in the mean squared
        slopes of the function.
    directions : ndarray of shape (n_features, n_directions)
        What the kernel looks at: unit vectors in the scaled columns, most important first (the
        first 20 where they are columns).
    direction_lengths : ndarray of shape (n_directions,)
        How much each direction counts, relative to the first.
    names : list of str or None
        Names of the columns, where the data had them.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import learn_kernel
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> learned = learn_kernel(X, np.sin(X[:, 0]), random_state=0)
    >>> learned.importances.round(1).tolist(), learned.error < 0.1
    ([1.0, 0.0, 0.0], True)
    """

    kernel: Kernel
    alpha: float
    error: float
    history: list[Round]
    importances: np.ndarray
    directions: np.ndarray
    direction_lengths: np.ndarray
    names: list[str] | None = field(default=None)

    @classmethod
    def of_metric(
        cls,
        kernel: Kernel,
        alpha: float,
        error: float,
        history: list[Round],
        B: np.ndarray,
        names: list[str] | None = None,
        shares: np.ndarray | None = None,
    ) -> "LearnedKernel":
        """From the metric B B' on scaled columns; its diagonal tells importances without shares.

        A vector B is a diagonal matrix.
        """
        share = B**2 if B.ndim == 1 else (B**2).sum(axis=1)
        share = share if shares is None else np.maximum(shares, 0.0)
        total = share.sum()
        importances = share / total if total > 0 else np.full(len(share), 1 / len(share))
        if B.ndim == 2:
            U, lengths, _ = np.linalg.svd(B, full_matrices=False)
        else:
            order = np.argsort(-np.abs(B), kind="stable")[:_MOST_DIRECTIONS]
            lengths = np.abs(B)[order]
            U = np.zeros((len(B), len(order)))
            U[order, np.arange(len(order))] = 1.0
        # A direction has no sign of its own: its largest entry is positive.
        U = U * np.sign(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])])[None, :]
        lengths = lengths / lengths[0] if lengths[0] > 0 else lengths
        return cls(kernel, alpha, error, history, importances, U, lengths, names)

    @property
    def family(self) -> Kernel:
        """Which of the families that a search tries the kernel belongs to."""
        inner = [part.kernel for part in self.kernel.parts() if isinstance(part, Projected)]
        return next(f for f in FAMILIES if any(same_family(f, found) for found in inner))

    def _named(self) -> list[tuple[str, float]]:
        order = np.argsort(-self.importances)[:_NAMED]
        names = self.names or [f"column {j}" for j in range(len(self.importances))]
        return [(names[j], float(self.importances[j])) for j in order]

    def __str__(self) -> str:
        first = self.history[0]
        lines = [
            f"Learned kernel: leave-one-out error {self.error:.3g} of the target's spread "
            f"(plain kernel: {first.error:.3g}).",
            f"  alpha {self.alpha:.2g}, {len(self.history)} steps",
            f"  {self.history[-1].kernel}"
            + (f" + {self.history[-1].linear:.2g} * Linear()" if self.history[-1].linear else ""),
        ]
        lines += [f"  {share:6.1%}  {name}" for name, share in self._named()]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td style='text-align:right'>{share:.1%}</td></tr>"
            for name, share in self._named()
        )
        return (
            f"<div><p><b>Learned kernel</b>: leave-one-out error {self.error:.3g} of the target's "
            f"spread (plain kernel: {self.history[0].error:.3g}), alpha {self.alpha:.2g}</p>"
            f"<table><tr><th>column</th><th>importance</th></tr>{rows}</table></div>"
        )

    def plot(self, axes: Sequence[Any] | np.ndarray | None = None) -> Sequence[Any] | np.ndarray:
        """Draw the error round by round, and the importances; returns the two axes."""
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("plots need matplotlib: pip install 'mercer[plots]'.") from error
        if axes is None:
            _, axes = pyplot.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
        left, right = axes
        left.plot([r.error for r in self.history], "o-", color="#2a6f97")
        left.set(
            xlabel="step of the search", ylabel="leave-one-out error, relative", ylim=(0, None)
        )
        left.xaxis.get_major_locator().set_params(integer=True)
        named = self._named()[::-1]
        right.barh([name for name, _ in named], [share for _, share in named], color="#2a6f97")
        right.set(xlabel="share of the metric")
        return axes
