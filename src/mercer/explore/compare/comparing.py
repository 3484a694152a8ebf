"""compare_kernels: the work from data to a KernelComparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from tqdm import tqdm

from ... import RBF, Cosine, Kernel, KernelMap, Laplacian, Linear, Polynomial, as_kernel
from ...engine import Domain, as_numpy, one_blas_thread
from ...kernels import Data
from ..data import CLASSES
from ..embeddings import available, embed
from . import verdict
from .baselines import Baseline, ordinary_models
from .folds import ComparedRows
from .kernel_comparison import KernelComparison, KernelSpace
from .measures import SPECTRUM_ROWS, measure
from .scores import kernel_scores, shrinkage
from .tuning import Candidates, rounded

# Rows up to which one thread of BLAS is faster.
_FEW_ROWS = 600


def compare_kernels(
    X: ArrayLike,
    y: ArrayLike | None = None,
    kernels: Mapping[str, Kernel | str] | Sequence[Kernel | str] | Kernel | str | None = None,
    *,
    task: str = "auto",
    scoring: str = "auto",
    cv: int = 5,
    repeats: int | str = "auto",
    tune: bool = True,
    baselines: bool = True,
    encoder: BaseEstimator | str | None = "auto",
    train_size: int | None = None,
    groups: ArrayLike | None = None,
    embeddings: str | Sequence[str] = "auto",
    samples: Data | None = None,
    image_shape: tuple[int, int] | None = None,
    target_name: str | None = None,
    max_points: int = 2000,
    random_state: int = 0,
    verbose: bool = False,
    callback: Callable[[int, int, str], Any] | None = None,
) -> KernelComparison:
    """Find out which kernel suits the data: scores on unseen rows, pictures, and a model.

    Every kernel is judged by the same quantity, on rows that the model has not seen: for classes
    the accuracy of the discriminant in its feature space, for numbers the R² of ridge regression
    there, as :class:`KernelClassifier` and :class:`KernelRegressor` are. The penalty, and the width
    where it is left open, are chosen inside each training part, so that kernels are compared at
    their best and not at a default. A constant answer, a linear model and gradient boosting run on
    the same folds. Beside texts, alone or with numbers, a linear model on their n-grams runs
    instead.

    Rows must be independent of each other: what is said of differences counts rows. Where several
    rows come from one person, place or day, say so by `groups`. Rows that follow each other in time
    are dependent, too; a note says so where they are alike.

    Parameters
    ----------
    X : array, sparse matrix, frame, list of objects, or a Gram matrix with Precomputed()
        One row per observation. Streams and Dask collections are read into memory.
    y : array with one value per row, or None
        Classes or numbers; None to look at the spaces alone.
    kernels : dict of name to kernel, list of kernels, or None
        What is compared; None: a usual selection.
    task : {"auto", "classification", "regression"}
        What the target is.
    scoring : {"auto", "accuracy", "balanced_accuracy", "r2"}
        What ranks the models. "auto": accuracy for classes, R² for numbers (which ranks as the
        mean squared error does). "balanced_accuracy" counts every class the same, however small it
        is; then models also take all classes as equally probable.
    cv : int
        Folds. Every model sees the same ones.
    repeats : int or "auto"
        How often the folds are divided anew. "auto": 2 times, and up to 6 times for small data.
    tune : bool
        Whether gamma and length_scale are chosen along a short path where they are at their
        default or given by a rule ("scale"). A number that you write is never changed.
    baselines : bool
        Whether models without a kernel run on the same folds.
    encoder : "auto", None or a transformer
        What turns the rows into numbers first. "auto": :class:`TableEncoder` for frames with
        gaps or with columns that are not numbers.
    train_size : int or None
        Learn from so few rows: the data are cut into `cv` blocks, and this many rows of each
        train a model for the next block. None: ordinary folds.
    groups : one label per row, or None
        Rows with the same label belong together: they are in the same fold, and differences are
        judged by the number of groups.
    embeddings : "auto" or a list from "t-SNE", "kernel PCA", "discriminant"
        Fitted on one half of the rows; the other half is placed afterwards.
    samples : list of str, frame or array of images, one per row
        What is shown of a point on the page; None: the rows of X.
    image_shape : (height, width) or None
        Show rows as images of this shape.
    target_name : str or None
        Shown on the page; None: the name of y where it has one.
    max_points : int
        Larger inputs are sampled, which the notes say.
    random_state : int
        Of the sample, the folds and t-SNE.
    verbose : bool
        Show progress.
    callback : callable or None
        Called as ``callback(done, total, what)`` while working.

    Returns
    -------
    KernelComparison

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from mercer import RBF, Linear, compare_kernels
    >>> X, y = make_circles(100, factor=0.4, noise=0.1, random_state=0)
    >>> comparison = compare_kernels(X, y, [Linear(), RBF()], embeddings=[])
    >>> comparison.headline
    'RBF() predicts best on these 100 rows.'
    >>> comparison.best_model().predict([[0.0, 0.1], [1.0, 0.0]])
    array([1, 0])
    """
    by_name = _named_kernels(kernels)
    data = ComparedRows.read(
        X, y, by_name, task=task, samples=samples, image_shape=image_shape, encoder=encoder,
        target_name=target_name, max_points=max_points, random_state=random_state,
    )  # fmt: skip
    data.divide(
        scoring=scoring, cv=cv, repeats=repeats, train_size=train_size, groups=groups,
        random_state=random_state,
    )  # fmt: skip
    names = available(embeddings, data.task, data.notes)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function or None, got {callback!r}.")
    Domain.FLAG("tune", tune)
    Domain.FLAG("baselines", baselines)
    few, everyone = np.arange(min(len(data), 5)), np.arange(len(data))
    for name, kernel in by_name.items():  # all of them, before hours are spent on the first
        try:
            kernel.diag(data.take(everyone))
            kernel(data.take(few))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from None
    if len(data) > SPECTRUM_ROWS:
        data.notes.append(f"Spectra are those of {SPECTRUM_ROWS} of the points.")
    steps = _Progress(len(by_name) * (1 + len(data.folds) + len(names)), verbose, callback)
    with closing(steps.bar), one_blas_thread(if_small=len(data), small=_FEW_ROWS):
        spaces = []
        for name, kernel in by_name.items():
            space = _measured(name, kernel, data, bool(tune), steps)
            _embed(space, names, data, random_state, steps)
            spaces.append(space)
        ordinary: list[Baseline] = []
        if data.folds and baselines:
            steps.say("models without a kernel")
            ordinary = ordinary_models(data)
    shows_points = samples is None and not data.gram and image_shape is None
    return KernelComparison(verdict.ranked(spaces), ordinary, data, shows_points=shows_points)


def _measured(name, kernel, data, tune, steps):
    """Width and penalty of one kernel, its measures and its scores."""
    steps.say(f"{name}: the whole sample")
    everyone = np.arange(len(data))
    candidates = Candidates(kernel, data, tuned=tune and bool(data.folds))
    found: dict[str, Any] = {}
    chosen = kernel
    if data.folds:
        tuned = candidates.tune(everyone)
        choice = tuned.solution.choice
        chosen = kernel if data.gram else candidates.kernels[tuned.number]
        found["alpha"] = rounded(choice.alpha)
        found["penalties"] = list(zip(choice.alphas.tolist(), choice.errors.tolist()))
        if data.task == CLASSES:
            K = candidates.matrix(tuned.number, everyone)
            found["shrinkage"] = rounded(shrinkage(K, data.codes, choice.alpha))
        if tuned.errors:
            found["parameter"] = candidates.parameter
            found["value"] = candidates.values[tuned.number]
            found["curve"] = list(zip(candidates.values, tuned.errors))
    measures = measure(chosen, data)
    steps.advance()
    if data.folds:
        steps.say(f"{name}: folds")
        found |= vars(kernel_scores(candidates, data, steps.advance))
    space = KernelSpace(name=name, kernel=chosen, **vars(measures), **found)
    space.findings = verdict.findings(measures, len(data), chosen)
    return space


def _embed(space, names, data, random_state, steps):
    """Pictures, fitted to some rows; others are placed afterwards."""
    if not names:
        return
    training, new = np.flatnonzero(~data.held_out), np.flatnonzero(data.held_out)
    kernel_map = KernelMap(space.kernel, indefinite="clip")
    Phi = as_numpy(kernel_map.fit_transform(data.take(training))).astype(float)
    Phi_new = Phi[:0]
    if len(new):
        Phi_new = as_numpy(kernel_map.transform(data.take(new, training))).astype(float)
    codes = None if data.codes is None else data.codes[training]
    for name in names:
        steps.say(f"{space.name}: {name}")
        space.embeddings[name] = np.empty((len(data), 2))
        placed = embed(name, Phi, Phi_new, codes, random_state)
        space.embeddings[name][np.concatenate([training, new])] = placed
        steps.advance()


def _named_kernels(
    kernels: Mapping[str, Kernel | str] | Sequence[Kernel | str] | Kernel | str | None,
) -> dict[str, Kernel]:
    """name -> kernel, from a dict, a list, one kernel, or nothing."""
    if kernels is None:  # a line, a curve, two widths of neighbourhood, and angles
        return {
            "Linear()": Linear(),
            "Polynomial(2)": Polynomial(2),
            "RBF('scale')": RBF("scale"),
            "Laplacian('scale')": Laplacian("scale"),
            "Cosine()": Cosine(),
        }
    if not isinstance(kernels, (dict, list, tuple)):
        kernels = [kernels]  # type: ignore[list-item]
    if not isinstance(kernels, dict):
        made = [as_kernel(kernel) for kernel in kernels]
        repeated = [repr(k) for i, k in enumerate(made) if k in made[:i]]
        if repeated:
            raise ValueError(f"{repeated[0]} is listed twice; name both in a dict to compare them.")
        kernels = {repr(kernel): kernel for kernel in made}
    if not kernels:
        raise ValueError("no kernels to compare: pass a list such as [Linear(), RBF(0.1)].")
    return {str(name): as_kernel(kernel) for name, kernel in kernels.items()}


class _Progress:
    """A bar, a callback, both or neither."""

    def __init__(self, total, verbose, callback):
        self.total, self.done = total, 0
        self.callback = (lambda *_: None) if callback is None else callback
        self.bar = tqdm(total=total, disable=not verbose)

    def say(self, what: str):
        self.what = what
        self.bar.set_description(what)
        self.callback(self.done, self.total, what)

    def advance(self):
        self.done += 1
        self.bar.update()
        self.callback(self.done, self.total, self.what)
