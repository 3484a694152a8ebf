"""Two coordinates to look at: kernel PCA, discriminant axes, t-SNE.

All are fitted on one half of the rows; the others are placed by the embedding's own
out-of-sample step ([EXACT] Fig. 1-4), so that what separates in the picture separates on data that
the picture was not fitted to.
"""

import importlib.util

import numpy as np

from .linear import components, discriminant

TSNE, PCA, DISCRIMINANT = "t-SNE", "kernel PCA", "discriminant"
EVERY = (TSNE, PCA, DISCRIMINANT)
PERPLEXITY = 30


def available(asked, task, notes):
    """The embeddings that can be made here, in the order in which they are shown."""
    if asked == "auto":
        asked = EVERY
        if importlib.util.find_spec("openTSNE") is None:
            notes.append("t-SNE was left out: pip install 'mercer[tsne]' adds it.")
            asked = (PCA, DISCRIMINANT)
    unknown = [name for name in asked if name not in EVERY]
    if unknown or isinstance(asked, str):
        raise ValueError(f"embeddings must be a list from {list(EVERY)} or 'auto', got {asked!r}.")
    if TSNE in asked and importlib.util.find_spec("openTSNE") is None:
        raise ImportError("t-SNE needs openTSNE: pip install 'mercer[tsne]'.")
    return [name for name in asked if name != DISCRIMINANT or task == "classes"]


def embed(name, fold, codes, random_state):
    """(n, 2) coordinates of training rows followed by new rows."""
    if name == TSNE:
        return _tsne(fold, random_state)
    if name == PCA:
        return _pca(fold)
    return _discriminant(fold, codes)


def _pca(fold):
    """The two leading components; a space of one dimension gets a column of zeros."""
    return _plane(_both(components(fold.Phi), fold))


def _discriminant(fold, codes):
    """The two leading axes; of two classes there is one, and kernel PCA gives the other."""
    model = discriminant(fold.Phi, codes, min(2, codes.max()))
    axes = _both(model.transform, fold)
    if axes.shape[1] < 2:
        axes = np.column_stack([axes[:, 0], _pca(fold)[:, 0]])
    return axes


def _tsne(fold, random_state):
    from openTSNE import TSNE as OpenTSNE

    n = len(fold.Phi)
    if n < 4 or not fold.Phi.std() > 0:
        return np.zeros((n + len(fold.Phi_new), 2))
    embedding = OpenTSNE(
        perplexity=min(PERPLEXITY, (n - 1) / 3),
        initialization="pca",
        neighbors="exact",
        negative_gradient_method="bh",
        n_jobs=1,  # its threads spin while they wait: on a busy machine two are ten times slower
        random_state=random_state,
    ).fit(fold.Phi)
    if not len(fold.Phi_new):
        return np.asarray(embedding)
    placed = embedding.transform(fold.Phi_new, perplexity=min(5, (n - 1) / 3))
    return np.vstack([np.asarray(embedding), np.asarray(placed)])


def _both(transform, fold):
    parts = [fold.Phi, fold.Phi_new] if len(fold.Phi_new) else [fold.Phi]
    return np.vstack([np.asarray(transform(part)) for part in parts])


def _plane(scores):
    return scores if scores.shape[1] == 2 else np.column_stack([scores, np.zeros(len(scores))])
