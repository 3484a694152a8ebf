"""Numbers that describe one kernel's feature space, from its coordinates on the sample."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import Kernel, KernelMap, NotPSDError, check_mercer
from ...engine import as_numpy, evenly
from ..data import Explored
from ..embeddings import eigenvalues, smaller_product

# Eigenvalues are taken on at most this many rows (they cost about 9 n^3 operations).
SPECTRUM_ROWS = 2000
BY_CONSTRUCTION, NOT_REFUTED, REFUTED = "by construction", "not refuted", "refuted"


@dataclass
class Measures:
    """Measures of a kernel from the coordinates F of the sample (K = F F')."""

    validity: str
    rank: int
    effective_dimension: float
    self_similarity: tuple[float, float]
    condition: float
    alignment: float | None
    relative_variance: float
    longest_share: float
    spectrum: np.ndarray
    fit_seconds: float

    @property
    def is_kernel(self) -> bool:
        """Tell whether the sample does not refute it."""
        return self.validity != REFUTED


def measure(kernel: Kernel, data: Explored) -> Measures:
    """All measures of one kernel on the whole sample; what is not a kernel is made one."""
    X = data.take(np.arange(len(data)))
    start = time.perf_counter()
    kernel_map = KernelMap(kernel, indefinite="clip")
    F = as_numpy(kernel_map.fit_transform(X)).astype(float)
    seconds = time.perf_counter() - start
    diagonal = np.einsum("ij,ij->i", F, F)
    Fc = F - F.mean(axis=0)
    # Dimension and alignment know no scale; fourth powers of the coordinates would overflow.
    unit = Fc / (np.abs(Fc).max(initial=0) or 1.0)
    C = smaller_product(unit)
    square = (C**2).sum()
    alignment = None
    if data.targets is not None:
        # <K_c, T_c> / (|K_c| |T_c|) with T T' = 1 for equal classes, or the products of numbers
        T = data.targets - data.targets.mean(axis=0)
        size = np.linalg.norm(C) * np.linalg.norm(T.T @ T)
        alignment = float(np.linalg.norm(unit.T @ T) ** 2 / size) if size > 0 else 0.0
    some = slice(None) if len(F) <= SPECTRUM_ROWS else evenly(len(F), SPECTRUM_ROWS)
    # Largest over smallest eigenvalue of K among its nonzero ones, as far as seen.
    values = np.linalg.eigvalsh(smaller_product(F[some]))[::-1][: kernel_map.rank_]
    condition = 1.0  # all points at the origin
    if len(values):
        floor = np.finfo(float).eps * max(values[0], np.finfo(float).tiny)
        condition = float(values[0] / max(values[-1], floor))
    return Measures(
        validity=validity_of(kernel, X, kernel_map.correction_),
        rank=int(kernel_map.rank_),
        # (sum l)^2 / sum l^2 over the eigenvalues l of the centred kernel matrix, without any of
        # them: n - 1 where all points are equally far from each other, 1 where they lie on a line.
        effective_dimension=float(np.trace(C) ** 2 / square) if square > 0 else 0.0,
        self_similarity=(float(diagonal.min()), float(diagonal.max())),
        condition=condition,
        alignment=alignment,
        relative_variance=float((Fc**2).sum() / max(diagonal.sum(), np.finfo(float).tiny)),
        longest_share=longest_share(Fc),
        spectrum=eigenvalues(Fc[some]),
        fit_seconds=seconds,
    )


def validity_of(kernel: Kernel, X: Any, correction: Any) -> str:
    """Validity of a similarity: by construction, by a sample, or by the correction of a map."""
    if correction:
        return REFUTED
    if kernel.is_psd is True:
        return BY_CONSTRUCTION
    try:
        return NOT_REFUTED if check_mercer(kernel, X) else REFUTED
    except NotPSDError:
        return REFUTED


def longest_share(Fc: np.ndarray) -> float:
    """Share of the squared lengths that the longest 5 % of the (centred) points hold."""
    lengths = np.sort(np.einsum("ij,ij->i", Fc, Fc))[::-1]
    total = lengths.sum()
    return float(lengths[: max(1, len(lengths) // 20)].sum() / total) if total > 0 else 0.0
