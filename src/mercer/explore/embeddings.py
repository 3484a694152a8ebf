"""Coordinates made fit to be looked at: eigenvalues, kernel PCA, discriminant axes, t-SNE.

Embeddings are fitted on training rows; new rows are placed by the embedding's own out-of-sample
step ([EXACT] Fig. 1-4), so that what separates in the picture separates on data that the picture
was not fitted to. On coordinates a linear kernel is all there is to do: none of the methods cares
which orthonormal basis it gets.
"""

import importlib.util
import warnings
from typing import Any

import numpy as np

from .. import KernelDiscriminant, KernelPCA

TSNE, PCA, DISCRIMINANT = "t-SNE", "kernel PCA", "discriminant"
_EVERY = (TSNE, PCA, DISCRIMINANT)
PERPLEXITY = 30


def smaller_product(F: np.ndarray) -> np.ndarray:
    """F'F or F F', which have the same eigenvalues but for zeros."""
    return F.T @ F if F.shape[1] <= F.shape[0] else F @ F.T


def eigenvalues(F: np.ndarray) -> np.ndarray:
    """Eigenvalues of F F', decreasing, without those that are rounding error."""
    C = smaller_product(F)
    values = np.linalg.eigvalsh(C)[::-1]
    return values[values > len(C) * np.finfo(float).eps * values.max(initial=0)]


def has_tsne() -> bool:
    return importlib.util.find_spec("openTSNE") is not None


def available(asked: Any, task: str | None, notes: list[str]) -> list[str]:
    """The embeddings that can be made here, in the order in which they are shown."""
    if isinstance(asked, str) and asked == "auto":
        asked = _EVERY
        if not has_tsne():
            notes.append("t-SNE was left out: pip install 'mercer[tsne]' adds it.")
            asked = (PCA, DISCRIMINANT)
    listed = isinstance(asked, (list, tuple)) and all(isinstance(name, str) for name in asked)
    if not listed or any(name not in _EVERY for name in asked):
        raise ValueError(f"embeddings must be a list from {list(_EVERY)} or 'auto', got {asked!r}.")
    if TSNE in asked and not has_tsne():
        raise ImportError("t-SNE needs openTSNE: pip install 'mercer[tsne]'.")
    return [name for name in asked if name != DISCRIMINANT or task == "classification"]


def embed(
    name: str, Phi: np.ndarray, Phi_new: np.ndarray, codes: np.ndarray | None, random_state: int
) -> np.ndarray:
    """(n, 2) coordinates of training rows followed by new rows (perhaps none)."""
    everyone = np.vstack([Phi, Phi_new])
    # One common scale: the methods see no difference, and 1e-14 is not small any more.
    everyone = everyone / (np.sqrt((Phi**2).sum(axis=1).mean()) or 1.0)
    while everyone.shape[1] < 2:  # methods want columns to look at
        everyone = np.column_stack([everyone, np.zeros(len(everyone))])
    Phi, Phi_new = np.split(everyone, [len(Phi)])
    if name == TSNE:
        return _tsne(Phi, Phi_new, random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a flat space has columns of zeros, and may be looked at
        components = KernelPCA(2, kernel="linear", random_state=0).fit(Phi)
    scores = components.transform(everyone)
    if name == DISCRIMINANT and codes is not None:
        classes, places = np.unique(codes, return_inverse=True)
        means = np.stack([Phi[codes == c].mean(axis=0) for c in classes])
        # Classes without any spread, or one class alone, are shown by the leading components.
        if len(classes) > 1 and not np.array_equal(Phi, means[places]):
            fisher = KernelDiscriminant(kernel="linear").fit(Phi, codes)
            # Two classes, or a space of one dimension, have one axis; kernel PCA gives the other.
            scores = np.column_stack([fisher.transform(everyone), scores])
    return scores[:, :2]


def _tsne(Phi, Phi_new, random_state):
    from openTSNE import TSNE as OpenTSNE

    n = len(Phi)
    if n < 4 or not np.ptp(Phi, axis=0).max() > 1e-12:  # equal rows differ by rounding
        return np.zeros((n + len(Phi_new), 2))
    embedding = OpenTSNE(
        perplexity=min(PERPLEXITY, (n - 1) / 3),
        initialization="pca",
        neighbors="exact",
        negative_gradient_method="bh",
        n_jobs=1,  # its threads spin while they wait: on a busy machine two are ten times slower
        random_state=random_state,
    ).fit(Phi)
    if not len(Phi_new):
        return np.asarray(embedding)
    placed = embedding.transform(Phi_new, perplexity=min(5, (n - 1) / 3))
    return np.vstack([np.asarray(embedding), np.asarray(placed)])
