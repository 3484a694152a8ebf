"""Coordinates made fit to be looked at: eigenvalues, kernel PCA, discriminant axes, t-SNE.

Embeddings are fitted on training rows; new rows are placed by the embedding's own out-of-sample
step ([EXACT] Fig. 1-4), so that what separates in the picture separates on data that the picture
was not fitted to. On coordinates a linear kernel is all there is to do: none of the methods cares
which orthonormal basis it gets.
"""

import importlib.util
import warnings
from dataclasses import dataclass

import numpy as np

from ..estimators.discriminant import KernelDiscriminant
from ..estimators.pca import KernelPCA

TSNE, PCA, DISCRIMINANT = "t-SNE", "kernel PCA", "discriminant"
EVERY = (TSNE, PCA, DISCRIMINANT)
PERPLEXITY = 30


@dataclass
class Coordinates:
    """Coordinates of training rows, and of rows seen afterwards (perhaps none)."""

    Phi: np.ndarray
    Phi_new: np.ndarray

    @classmethod
    def scaled(cls, Phi, Phi_new=None):
        """In one common scale: the methods see no difference, and 1e-14 is not small any more."""
        Phi_new = Phi[:0] if Phi_new is None else Phi_new
        if not Phi.shape[1]:  # all points at the origin: methods want a column to look at
            Phi, Phi_new = (np.zeros((len(A), 1)) for A in (Phi, Phi_new))
        size = np.sqrt((Phi**2).sum(axis=1).mean()) or 1.0
        return cls(Phi / size, Phi_new / size)


def smaller_product(F):
    """F'F or F F', which have the same eigenvalues but for zeros."""
    return F.T @ F if F.shape[1] <= F.shape[0] else F @ F.T


def eigenvalues(F):
    """Eigenvalues of F F', decreasing, without those that are rounding error."""
    C = smaller_product(F)
    values = np.linalg.eigvalsh(C)[::-1]
    return values[values > len(C) * np.finfo(float).eps * values.max(initial=0)]


# --- methods --------------------------------------------------------------------------------------


def components(Phi):
    """A function giving scores on the (at most two) leading components."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a flat space has columns of zeros, and may be looked at
        return KernelPCA(min(2, *Phi.shape), kernel="linear", random_state=0).fit(Phi).transform


def discriminant(Phi, codes, n_components):
    """A function giving scores on Fisher's axes; on the leading components where there are none:
    classes without any spread, or one class alone."""
    classes, places = np.unique(codes, return_inverse=True)
    means = np.stack([Phi[codes == c].mean(axis=0) for c in classes])
    if len(classes) == 1 or np.array_equal(Phi, means[places]):
        return components(Phi)
    return KernelDiscriminant(n_components, kernel="linear").fit(Phi, codes).transform


# --- embeddings -----------------------------------------------------------------------------------


def available(asked, task, notes):
    """The embeddings that can be made here, in the order in which they are shown."""
    if isinstance(asked, str) and asked == "auto":
        asked = EVERY
        if importlib.util.find_spec("openTSNE") is None:
            notes.append("t-SNE was left out: pip install 'mercer[tsne]' adds it.")
            asked = (PCA, DISCRIMINANT)
    listed = isinstance(asked, (list, tuple)) and all(isinstance(name, str) for name in asked)
    if not listed or any(name not in EVERY for name in asked):
        raise ValueError(f"embeddings must be a list from {list(EVERY)} or 'auto', got {asked!r}.")
    if TSNE in asked and importlib.util.find_spec("openTSNE") is None:
        raise ImportError("t-SNE needs openTSNE: pip install 'mercer[tsne]'.")
    return [name for name in asked if name != DISCRIMINANT or task == "classification"]


def embed(name, coordinates, codes, random_state):
    """(n, 2) coordinates of training rows followed by new rows."""
    if name == TSNE:
        return _tsne(coordinates, random_state)
    if name == PCA:
        return _pca(coordinates)
    return _discriminant(coordinates, codes)


def _pca(coordinates):
    """The two leading components; a space of one dimension gets a column of zeros."""
    return _plane(_both(components(coordinates.Phi), coordinates))


def _discriminant(coordinates, codes):
    """The two leading axes; of two classes there is one, and kernel PCA gives the other."""
    axes = _both(discriminant(coordinates.Phi, codes, min(2, codes.max())), coordinates)
    if axes.shape[1] < 2:
        axes = np.column_stack([axes[:, 0], _pca(coordinates)[:, 0]])
    return axes


def _tsne(coordinates, random_state):
    from openTSNE import TSNE as OpenTSNE

    Phi, Phi_new = coordinates.Phi, coordinates.Phi_new
    n = len(Phi)
    if n < 4 or not Phi.std() > 0:
        return np.zeros((n + len(Phi_new), 2))
    if Phi.shape[1] == 1:  # it begins with two principal components
        Phi, Phi_new = _plane(Phi), _plane(Phi_new)
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


def _both(transform, coordinates):
    parts = [part for part in (coordinates.Phi, coordinates.Phi_new) if len(part)]
    return np.vstack([np.asarray(transform(part)) for part in parts])


def _plane(scores):
    return scores if scores.shape[1] == 2 else np.column_stack([scores, np.zeros(len(scores))])
