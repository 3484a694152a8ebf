"""compare_kernels: the work from data to a KernelComparison."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from tqdm import tqdm

from ...engine.arrays import as_numpy
from ...engine.checks import is_integer
from ...engine.threads import blas_threads_for
from ...kernels import RBF, Cosine, Kernel, Laplacian, Linear, Polynomial, as_kernel
from ...kernels.points import collected, is_frame, n_points
from ...kernels.types import Data
from ...tables import TableEncoder
from ..embeddings import Coordinates, available, embed
from . import verdict
from .baselines import Baseline, ordinary_models
from .kernel_comparison import KernelComparison, KernelSpace
from .measures import SPECTRUM_ROWS, measure, measured_space
from .ridge_scores import shrinkage
from .sampling import CLASSES, class_codes, draw, follow_each_other, select
from .scores import kernel_scores
from .tuning import Candidates, rounded

# Rows up to which one thread of BLAS is faster.
FEW_ROWS = 600
FOLLOWING = (
    "rows that follow each other are alike, as in a series or in groups: they are not independent, "
    "so scores are too high and differences less certain than they look (groups=... keeps rows "
    "that belong together in one fold)."
)


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
    n_neighbors: int = 5,
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
        One row per observation.
    y : array with one value per row, or None
        Classes or numbers; None to look at the spaces alone.
    kernels : dict of name to kernel, list of kernels, or None
        What is compared; None: a usual selection.
    task : {"auto", "classification", "regression"}
        What the target is.
    scoring : {"auto", "accuracy", "balanced_accuracy", "r2"}
        What ranks the models. "auto": accuracy for classes, R² for numbers (which ranks as the
        RMSE does). "balanced_accuracy" counts every class the same, however small it is; then
        models also take all classes as equally probable.
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
    n_neighbors : int
        Neighbours of the nearest-neighbour score, which is shown but does not decide.
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
    X, y = collected(X), collected(y)
    by_name = named_kernels(kernels)
    gram = _all_gram(by_name)
    if target_name is None:
        target_name = getattr(y, "name", None)
    given = X
    sample = draw(
        X,
        y,
        gram=gram,
        task=task,
        scoring=scoring,
        cv=cv,
        repeats=repeats,
        train_size=train_size,
        max_points=max_points,
        random_state=random_state,
        groups=groups,
    )
    names = available(embeddings, sample.task, sample.notes)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function or None, got {callback!r}.")
    if not is_integer(n_neighbors) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be a positive integer, got {n_neighbors!r}.")
    for name, value in (("tune", tune), ("baselines", baselines)):
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False, got {value!r}.")
    if target_name is not None and not isinstance(target_name, (str, int)):
        raise TypeError(f"target_name must be a text or None, got {target_name!r}.")
    shown = shown_rows(X, samples, image_shape, sample)
    encoder = encoded_rows(sample, by_name, encoder)
    if sample.folds and follow_each_other(sample):
        sample.notes.append(FOLLOWING)
    _check_on_data(by_name, sample)
    if len(sample) > SPECTRUM_ROWS:
        sample.notes.append(f"Spectra are those of {SPECTRUM_ROWS} of the points.")
    work = _Work(sample, names, n_neighbors, bool(tune), random_state)
    steps = _Progress(len(by_name) * (1 + len(sample.folds) + len(names)), verbose, callback)
    with steps, blas_threads_for(len(sample), FEW_ROWS):
        spaces = [work.space(name, kernel, steps) for name, kernel in by_name.items()]
        ordinary: list[Baseline] = []
        if sample.folds and baselines:
            steps.say("models without a kernel")
            ordinary = ordinary_models(sample)
    held_out = np.zeros(len(sample), dtype=bool)
    held_out[sample.picture[1]] = True
    return KernelComparison(
        verdict.ranked(spaces),
        ordinary,
        sample,
        (given, target_as_given(y, sample)),
        held_out=held_out,
        shown=shown,
        encoder=encoder,
        image_shape=image_shape,
        target_name=None if target_name is None else str(target_name),
        shows_points=samples is None and not gram and image_shape is None,
    )


@dataclass
class _Work:
    """Settings that are the same for every kernel."""

    sample: Any
    embeddings: list[str]
    n_neighbors: int
    tune: bool
    random_state: int

    def space(self, name, kernel, steps):
        """Everything about one kernel."""
        sample, everyone = self.sample, np.arange(len(self.sample))
        steps.say(f"{name}: the whole sample")
        candidates = Candidates(kernel, sample, tuned=self.tune and bool(sample.folds))
        found: dict[str, Any] = {}
        chosen = kernel
        if sample.folds:
            tuned = candidates.tune(everyone)
            chosen = kernel if sample.gram else candidates.kernels[tuned.number]
            found["alpha"] = rounded(tuned.choice.alpha)
            if sample.task == CLASSES:
                K = candidates.matrix(tuned.number, everyone)
                found["shrinkage"] = rounded(shrinkage(K, sample.codes, tuned.choice.alpha))
            found["penalties"] = list(
                zip(tuned.choice.alphas.tolist(), tuned.choice.errors.tolist())
            )
            if tuned.errors:
                found["parameter"] = candidates.parameter
                found["value"] = candidates.values[tuned.number]
                found["curve"] = list(zip(candidates.values, tuned.errors))
        measures = measure(chosen, sample)
        steps.advance()
        if sample.folds:
            steps.say(f"{name}: folds")
            scored = kernel_scores(candidates, sample, self.n_neighbors, steps.advance)
            found |= vars(scored)
        space = KernelSpace(name=name, kernel=chosen, **vars(measures), **found)
        space.findings = verdict.findings(measures, len(sample), chosen)
        picture = _coordinates(chosen, sample) if self.embeddings else None
        for embedding in self.embeddings:
            steps.say(f"{name}: {embedding}")
            space.embeddings[embedding] = self._embedded(embedding, picture)
            steps.advance()
        return space

    def _embedded(self, name, coordinates):
        training, new = self.sample.picture
        codes = None
        if self.sample.task == CLASSES:
            codes = class_codes(self.sample.y)[training]
        placed = embed(name, coordinates, codes, self.random_state)
        result = np.empty((len(self.sample), 2))
        result[np.concatenate([training, new])] = placed
        return result


def _coordinates(kernel, sample):
    """Coordinates of the rows that pictures are fitted to, and of those placed afterwards."""
    training, new = sample.picture
    kernel_map = measured_space(kernel)
    Phi = as_numpy(kernel_map.fit_transform(sample.take(training))).astype(float)
    Phi_new = Phi[:0]
    if len(new):
        Phi_new = as_numpy(kernel_map.transform(sample.take(new, training))).astype(float)
    return Coordinates.scaled(Phi, Phi_new)


def encoded_rows(sample, kernels, encoder):
    """Fit the encoder to the sample, and replace its rows by numbers; None where not needed."""
    if isinstance(encoder, str) and encoder == "auto":
        on_vectors = all(kernel.kind in ("vectors", "any") for kernel in kernels.values())
        encoder = TableEncoder() if on_vectors and _needs_encoding(sample.X) else None
    if encoder is None:
        return None
    if not hasattr(encoder, "fit_transform") or isinstance(encoder, type):
        raise TypeError(f"encoder must be 'auto', None or a transformer, got {encoder!r}.")
    Z = encoder.fit_transform(sample.X)
    sample.X = Z if is_frame(Z) else np.asarray(Z, dtype=float)
    if hasattr(encoder, "notes"):
        sample.notes.extend(encoder.notes())
    return encoder


def _needs_encoding(X):
    if not is_frame(X):
        return False
    values = X.to_numpy()
    return values.dtype.kind not in "fiub" or not np.isfinite(values.astype(float)).all()


def target_as_given(y, sample):
    """The target with its own type, for a model that answers with it."""
    if y is None:
        return None
    y = np.asarray(
        y.to_numpy() if hasattr(y, "to_numpy") else as_numpy(y) if hasattr(y, "shape") else y
    )
    y = y[:, 0] if y.ndim == 2 else y
    return y.astype(float) if sample.task == "regression" else y


def named_kernels(kernels) -> dict[str, Kernel]:
    """name -> kernel, from a dict, a list, one kernel, or nothing."""
    if kernels is None:
        kernels = default_kernels()
    if not isinstance(kernels, (dict, list, tuple)):
        kernels = [kernels]
    if not isinstance(kernels, dict):
        made = [as_kernel(kernel) for kernel in kernels]
        repeated = [repr(k) for i, k in enumerate(made) if k in made[:i]]
        if repeated:
            raise ValueError(f"{repeated[0]} is listed twice; name both in a dict to compare them.")
        kernels = {repr(kernel): kernel for kernel in made}
    if not kernels:
        raise ValueError("no kernels to compare: pass a list such as [Linear(), RBF(0.1)].")
    return {str(name): as_kernel(kernel) for name, kernel in kernels.items()}


def default_kernels():
    """Default kernels: a line, a curve, two widths of neighbourhood, and angles."""
    return {
        "Linear()": Linear(),
        "Polynomial(2)": Polynomial(2),
        "RBF('scale')": RBF("scale"),
        "Laplacian('scale')": Laplacian("scale"),
        "Cosine()": Cosine(),
    }


def _all_gram(kernels):
    gram = {name: not kernel.layout.on_data for name, kernel in kernels.items()}
    if any(gram.values()) and not all(gram.values()):
        raise ValueError(
            f"{next(n for n in gram if gram[n])} takes a Gram matrix and "
            f"{next(n for n in gram if not gram[n])} takes data: they cannot share one X."
        )
    return all(gram.values())


def _check_on_data(kernels, sample):
    """Every kernel on a few rows, before hours are spent on the first."""
    few = np.arange(min(len(sample), 5))
    everyone = np.arange(len(sample))
    for name, kernel in kernels.items():
        try:
            kernel.diag(sample.take(everyone))
            kernel(sample.take(few))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from None


def shown_rows(X, samples, image_shape, sample):
    """Samples that the page shows: rows of X, unless something better is given."""
    if samples is not None:
        if n_points(samples) != n_points(X):
            raise ValueError(
                f"samples has {n_points(samples)} entries for {n_points(X)} rows of X."
            )
        shown = select(samples, sample.rows)
    else:
        shown = None if sample.gram else sample.X
    if image_shape is not None:
        sides = list(image_shape) if isinstance(image_shape, (list, tuple)) else []
        if len(sides) != 2 or not all(is_integer(side) and side > 0 for side in sides):
            raise ValueError(f"image_shape must be (height, width) or None, got {image_shape!r}.")
        height, width = map(int, sides)
        pixels = np.asarray(shown.to_numpy() if is_frame(shown) else shown)
        if pixels[0].size != height * width:
            raise ValueError(
                f"image_shape {tuple(image_shape)} needs {height * width} values per row, "
                f"got {pixels[0].size}."
            )
    return shown


class _Progress:
    """A bar, a callback, both or neither."""

    def __init__(self, total, verbose, callback):
        self.total, self.done, self.callback = total, 0, callback
        self.bar = tqdm(total=total, disable=not verbose)

    def say(self, what):
        self.what = what
        self.bar.set_description(what)
        if self.callback is not None:
            self.callback(self.done, self.total, what)

    def advance(self):
        self.done += 1
        self.bar.update()
        if self.callback is not None:
            self.callback(self.done, self.total, self.what)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.bar.close()
