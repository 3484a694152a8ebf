"""check_mercer: is this a kernel, on these points?

A sample can refute validity (a vector a with a'Ka < 0 is a witness); only construction proves it.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine import as_numpy, check_at_least, eps_of, tiles
from .adapters import as_kernel
from .kernel import Kernel
from .types import Data


class NotPSDError(ValueError):
    """Raised where a kernel has a negative eigenvalue.

    `witness` is a vector with a'Ka < 0, whose largest entries are printed; `remedy` says what
    helps.
    """

    def __init__(self, message: str, witness: np.ndarray | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.witness, self.remedy = witness, remedy

    def __str__(self) -> str:
        parts = [self.args[0]]
        if self.witness is not None:
            parts.append(f"Witness: a'Ka < 0 with {_entries(as_numpy(self.witness))}.")
        return " ".join([*parts, self.remedy] if self.remedy else parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.witness, self.remedy)


def _entries(a: np.ndarray, rows: np.ndarray | None = None) -> str:
    """The largest entries of a vector over points; `rows` are the points' positions."""
    shown = [i for i in np.argsort(-np.abs(a), kind="stable")[:3] if a[i] != 0]
    text = ", ".join(f"a[{i if rows is None else rows[i]}] = {a[i]:+.3g}" for i in shown)
    return text + (", ..." if np.count_nonzero(a) > len(shown) else "")


def check_own_diagonal(kernel: Kernel, diagonal: np.ndarray, of_pairs: np.ndarray) -> None:
    """Refuse a kernel whose diagonal(X) and against(X) differ on k(x, x)."""
    apart = np.abs(diagonal - of_pairs)
    size = max(float(np.abs(diagonal).max()), float(np.abs(of_pairs).max()))
    if not apart.max() > 1e-3 * size:
        return
    i = int(apart.argmax())
    raise ValueError(
        f"{kernel!r} contradicts itself: diagonal(X) gives k(x, x) = {diagonal[i]:.6g} and "
        f"against(X) gives {of_pairs[i]:.6g} for the same point. Mend one of the two methods."
    )


def html_rows(facts: Iterable[tuple[str, str]]):
    """(name, text) pairs as rows of an HTML table."""
    left = "style='text-align:left'"
    return "".join(
        f"<tr><th {left}>{html.escape(name)}</th><td {left}>{html.escape(text)}</td></tr>"
        for name, text in facts
    )


@dataclass(frozen=True)
class MercerReport:
    """Say what a sample shows about a kernel; prints as a short text.

    Attributes
    ----------
    kernel : Kernel
        The kernel, bound to the data.
    n_points, n_given : int
        Points tested, and points given (large inputs are sampled).
    symmetric, psd : bool
        Whether k(x, z) = k(z, x), and whether no eigenvalue is negative, both up to rounding error.
    asymmetry : float
        Largest |k(x, z) - k(z, x)|.
    min_eigenvalue, max_eigenvalue : float
        Extreme eigenvalues of the (symmetrised) matrix.
    rank : int
        Eigenvalues above rounding.
    witness : ndarray or None
        A vector over the tested points with a'Ka < 0, re-checked by direct evaluation.
    witness_value : float or None
        That a'Ka.
    indices : ndarray
        Which points were tested.
    verdict : str
        One sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Sigmoid, check_mercer
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> report = check_mercer(Sigmoid(1.0, -1.0), X)
    >>> report.psd, report.witness_value < 0
    (False, True)
    >>> report.verdict
    "refuted: a vector a with a'Ka < 0 exists on this data"
    """

    kernel: object
    n_points: int
    n_given: int
    symmetric: bool
    psd: bool
    asymmetry: float
    min_eigenvalue: float
    max_eigenvalue: float
    rank: int
    witness: np.ndarray | None
    witness_value: float | None
    indices: np.ndarray = field(repr=False)
    verdict: str = ""

    def __bool__(self) -> bool:
        return self.symmetric and self.psd

    def rows(self) -> list[tuple[str, str]]:
        """Label and text of every line of the report."""
        sampled = f" (sampled from {self.n_given})" if self.n_points < self.n_given else ""
        rows = [
            ("verdict", self.verdict),
            ("points", f"{self.n_points}{sampled}"),
            ("symmetric", "yes" if self.symmetric else f"no: differs by {self.asymmetry:.3g}"),
            ("eigenvalues", f"{self.min_eigenvalue:.4g} to {self.max_eigenvalue:.4g}"),
            ("rank", f"{self.rank} of {self.n_points}"),
        ]
        if self.witness is not None:
            with_a = _entries(self.witness, self.indices)
            rows.append(("witness", f"a'Ka = {self.witness_value:.4g} with {with_a}"))
        return rows

    def __str__(self) -> str:
        lines = [f"  {label + ':':<13}{text}" for label, text in self.rows()]
        return "\n".join([f"check_mercer({self.kernel!r})", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        caption = f"<caption><code>{html.escape(repr(self.kernel))}</code></caption>"
        return f"<table>{caption}{html_rows(self.rows())}</table>"


def check_mercer(
    kernel: Kernel | str | Callable[..., Any],
    X: Data,
    *,
    max_points: int = 2000,
    random_state: int = 0,
) -> MercerReport:
    """Test on data whether a kernel is symmetric and positive semi-definite.

    Parameters
    ----------
    kernel : Kernel, str or callable
        What compares two points, or its name as in scikit-learn ("rbf", "poly", "linear", ...).
    X : array, sparse matrix, frame, list of objects, or a Gram matrix with Precomputed()
        The points on which it is tested; a matrix of similarities for ``Precomputed()``.
    max_points : int
        Larger inputs are sampled (an eigendecomposition costs about 9 n^3 operations).
    random_state : int
        Seed of that sample.

    Returns
    -------
    MercerReport

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Sigmoid, check_mercer
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> check_mercer(RBF(0.5), X).verdict
    'valid by construction; the data agree'
    >>> report = check_mercer(Sigmoid(gamma=1.0, coef0=-1.0), X)
    >>> report.psd, bool(report.witness @ report.kernel(X) @ report.witness < 0)
    (False, True)
    """
    check_at_least("max_points", max_points, 2)
    kernel = as_kernel(kernel).bind(X)
    points = kernel.points(X)
    kernel.layout.check_training(points)
    n_given = points.shape[0]
    indices = np.arange(n_given)
    if n_given > max_points:
        rng = np.random.default_rng(random_state)
        indices = np.sort(rng.choice(n_given, max_points, replace=False))
    sample, copy = (kernel.layout.subset(points, indices) for _ in range(2))
    # Each pair in both orders: mirroring one half would hide an asymmetry, and a function that is
    # taken to be symmetric asks once for pairs of the same points.
    K = as_numpy(tiles.evaluate(kernel, sample, copy)).astype(np.float64)
    if not kernel.is_proven:
        own = as_numpy(kernel.diagonal(sample)).astype(np.float64)
        check_own_diagonal(kernel, own, np.diagonal(K))
    n, size, eps = len(indices), np.abs(K).max(), eps_of(sample)
    asymmetry = float(np.abs(K - K.T).max())
    symmetric = asymmetry <= 1e3 * eps * size
    # Halved before the sum: no overflow at the top of the range.
    K = 0.5 * K + 0.5 * K.T
    values, vectors = np.linalg.eigh(K)
    smallest, largest = float(values[0]), float(max(abs(values[0]), abs(values[-1])))
    # The data are looked at whatever the class says of itself; what its own parts prove is only
    # given the rounding that these parts are known to have.
    units = 8.0
    if kernel.is_proven:
        units = max(units, float(kernel.rounding(kernel.landmarks(sample))))
    noise = units * n * eps * largest
    value = None
    witness = _witness(kernel, sample, K, units * n * eps) if smallest >= -noise else vectors[:, 0]
    if witness is not None:
        a = witness.astype(np.longdouble)  # on the values that the kernel returned
        value = float(a @ (K.astype(np.longdouble) @ a))
        if value >= -kernel.layout.absolute_noise(noise):  # rounding, after all
            witness = value = None
    psd = witness is None
    return MercerReport(
        kernel=kernel,
        n_points=n,
        n_given=n_given,
        symmetric=bool(symmetric),
        psd=psd,
        asymmetry=asymmetry,
        min_eigenvalue=smallest,
        max_eigenvalue=float(values[-1]),
        rank=int((values > noise).sum()),
        witness=witness,
        witness_value=value,
        indices=indices,
        verdict=_verdict(kernel, symmetric, psd),
    )


def _witness(kernel, sample, K, noise):
    """A witness among points whose k(x, x) is far below the largest: where the rows are scaled to
    the size that their own rounding has, their eigenvalues show."""
    with np.errstate(invalid="ignore"):
        squares = kernel.layout.magnitude(kernel, sample, np.diagonal(K))
        lengths = np.sqrt(as_numpy(squares).astype(np.float64))
    if not lengths.min() > 0:
        return None
    values, vectors = np.linalg.eigh(K / lengths[:, None] / lengths[None, :])
    if values[0] >= -noise * max(abs(values[0]), abs(values[-1])):
        return None
    witness = vectors[:, 0] / lengths
    return witness / np.linalg.norm(witness)


def _verdict(kernel, symmetric, psd):
    negative = "a vector a with a'Ka < 0 exists on this data"
    # A claim of validity rests on a class from elsewhere, or on the kernel's own.
    foreign = [p for p in kernel.parts() if p.is_psd is True and not p.is_proven]
    claimant = type(foreign[-1] if foreign else kernel).__name__
    if kernel.is_psd is True and not (symmetric and psd):
        what = negative if symmetric else "it is not symmetric"
        return f"refuted: {claimant} says is_psd = True, and is wrong: {what}"
    if kernel.is_proven:
        return "valid by construction; the data agree"
    if kernel.is_psd is True:
        return f"valid by what {claimant} says of itself; the data agree"
    if not symmetric and not psd:
        return "refuted: not symmetric, and with a negative eigenvalue"
    if not symmetric:
        return "refuted: k(x, z) and k(z, x) differ"
    if not psd:
        return f"refuted: {negative}"
    return "not refuted on this data (a sample cannot prove validity)"
