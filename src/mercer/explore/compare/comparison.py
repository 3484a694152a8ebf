"""compare_kernels and what it returns."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tqdm import tqdm

from ...kernels import RBF, Cosine, Laplacian, Linear, Polynomial, as_kernel
from ...kernels.base import is_integer
from ...kernels.points import is_frame, n_points
from ..embeddings import available, embed
from . import verdict
from .measures import SPECTRUM_ROWS, Measures, measure
from .sampling import CLASSES, class_codes, draw, select
from .scores import fold_of, overlap_of, scores, standard_error


@dataclass
class KernelSpace(Measures):
    """One kernel's feature space on the sample: its measures, scores and embeddings."""

    name: str
    kernel: Any
    scores: dict[str, np.ndarray] = field(default_factory=dict)
    embeddings: dict[str, np.ndarray] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    n_points: int = 0
    n_training: int = 0
    overlap: float = 0.0

    @property
    def method(self):
        """The method that does better in this space; None without a target."""
        return max(self.scores, key=lambda m: np.mean(self.scores[m])) if self.scores else None

    @property
    def folds(self):
        """Scores of that method, one a fold."""
        return self.scores[self.method]

    @property
    def score(self):
        return None if self.method is None else float(np.mean(self.folds))


class KernelComparison:
    """Kernels side by side: numbers, words and pictures. Made by :func:`compare_kernels`.

    Attributes
    ----------
    spaces : list of KernelSpace
        Best first.
    table : DataFrame
        One row a kernel, ranked (needs pandas).
    recommendation : str
        Which kernel and why; honest where the difference is within noise.
    embeddings : dict
        ``embeddings[kernel name][embedding name]``: (n, 2) coordinates of the sample.
    target : ndarray or None
        Classes or numbers of the sample.
    held_out : ndarray of bool
        Rows that the embeddings were not fitted to.
    rows : ndarray
        Positions of the sample in the data given.
    notes : list of str
        What was done to the data: rows drawn or left out.
    """

    def __init__(self, spaces, sample, *, held_out, shown, image_shape=None, notes=()):
        self.spaces = spaces
        self.target, self.task, self.rows = sample.y, sample.task, sample.rows
        self.held_out = held_out
        self.shown = shown
        self.image_shape = image_shape
        self.notes = list(notes)

    def __len__(self):
        return len(self.rows)

    @property
    def embeddings(self):
        return {space.name: space.embeddings for space in self.spaces}

    @property
    def headline(self):
        """The verdict in one sentence."""
        return verdict.headline(self.spaces, self.task)

    @property
    def reasons(self):
        """Sentences that carry it."""
        return verdict.reasons(self.spaces, self.task)

    @property
    def recommendation(self):
        return " ".join([self.headline, *self.reasons])

    def records(self):
        """The ranked table as a list of dicts of plain Python values."""
        tied = verdict.tied_with_best(self.spaces)
        return [
            self._record(place, space, place == 1 or space.name in tied)
            for place, space in enumerate(self.spaces, 1)
        ]

    def _record(self, place, space, tied):
        record = {"place": place, "kernel": space.name}
        if space.scores:
            record |= {"score": space.score, "within_noise_of_best": tied}
            for method, folds in space.scores.items():
                name = method.replace(" ", "_")
                record |= {name: float(np.mean(folds)), f"{name}_error": standard_error(folds)}
            record["alignment"] = space.alignment
        low, high = space.self_similarity
        return record | {
            "rank": space.rank,
            "effective_dimension": space.effective_dimension,
            "self_similarity_min": low,
            "self_similarity_max": high,
            "condition": space.condition,
            "valid": space.validity,
            "fit_seconds": space.fit_seconds,
        }

    @property
    def table(self):
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(".table needs pandas: pip install 'mercer[report]'.") from None
        return pd.DataFrame(self.records()).set_index("place")

    def plot(self, embedding=None, **kwargs):
        """Draw every kernel's space beside its spectrum; see ComparisonDisplay."""
        from ..plots import ComparisonDisplay

        return ComparisonDisplay(self).plot(embedding, **kwargs)

    def to_html(self, path=None, *, title="Kernels compared"):
        """One self-contained page, to look at and to lasso points in; returns its path or text."""
        from ..report import write_report

        return write_report(self, path, title=title)

    def __repr__(self):
        names = ", ".join(space.name for space in self.spaces)
        return f"<KernelComparison of {names} on {len(self)} points: {self.headline}>"


def compare_kernels(
    X,
    y=None,
    kernels=None,
    *,
    task="auto",
    cv=5,
    train_size=None,
    n_neighbors=5,
    embeddings="auto",
    samples=None,
    image_shape=None,
    max_points=2000,
    random_state=0,
    verbose=False,
    callback=None,
):
    """What several kernels make of the same data: validity, geometry, scores and pictures.

    Parameters
    ----------
    X : array, sparse matrix, frame, list of objects, or a Gram matrix with Precomputed()
    y : classes or numbers, one a row; None to look at the spaces alone
    kernels : dict of name to kernel, or list of kernels; None: a usual selection
    task : {"auto", "classes", "numbers"}
        What the target is.
    cv : int
        Folds. Every kernel sees the same ones; maps are fitted on training rows only.
    train_size : int or None
        Learn from so few rows: each of `cv` disjoint groups of this size teaches in turn, and all
        other rows are told. None: ordinary folds.
    n_neighbors : int
        Of the nearest-neighbour score.
    embeddings : "auto" or a list from "t-SNE", "kernel PCA", "discriminant"
        Fitted on one half of the rows; the other half is placed afterwards.
    samples : list of str, frame or array of images, one a row
        What is shown of a point on the page; None: the rows of X.
    image_shape : (height, width) or None
        Show rows as images of this shape.
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
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RBF, Linear, compare_kernels
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = [Linear(), RBF(100.0)]
    >>> comparison = compare_kernels(X, y, kernels, embeddings=["kernel PCA"])
    >>> [space.name for space in comparison.spaces]
    ['Linear()', 'RBF(gamma=100.0)']
    >>> comparison.headline
    'Linear() suits this data best.'
    """
    kernels = named_kernels(kernels, X)
    gram = _all_gram(kernels)
    sample = draw(
        X,
        y,
        gram=gram,
        task=task,
        cv=cv,
        train_size=train_size,
        max_points=max_points,
        random_state=random_state,
    )
    names = available(embeddings, sample.task, sample.notes)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function or None, got {callback!r}.")
    if not isinstance(n_neighbors, (int, np.integer)) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be a positive integer, got {n_neighbors!r}.")
    shown = _shown(X, samples, image_shape, sample)
    _check_on_data(kernels, sample)
    if len(sample) > SPECTRUM_ROWS:
        sample.notes.append(f"Spectra are those of {SPECTRUM_ROWS} of the points.")
    steps = _Progress(len(kernels) * (1 + len(sample.folds) + len(names)), verbose, callback)
    with steps:
        spaces = [
            _space(name, kernel, sample, names, n_neighbors, random_state, steps)
            for name, kernel in kernels.items()
        ]
    held_out = np.zeros(len(sample), dtype=bool)
    held_out[sample.picture[1]] = True
    return KernelComparison(
        verdict.ranked(spaces),
        sample,
        held_out=held_out,
        shown=shown,
        image_shape=image_shape,
        notes=sample.notes,
    )


def named_kernels(kernels, X=None):
    """name -> kernel, from a dict, a list, one kernel, or nothing."""
    if kernels is None:
        kernels = usual_kernels(X)
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


def usual_kernels(X):
    """Where nothing is known: a line, a curve, two widths of neighbourhood, and angles."""
    columns = X.shape[1] if getattr(X, "ndim", 1) == 2 else 1
    return {
        "Linear()": Linear(),
        "Polynomial(2)": Polynomial(2, gamma=1 / columns),
        "RBF('scale')": RBF("scale"),
        "Laplacian('scale')": Laplacian("scale"),
        "Cosine()": Cosine(),
    }


def _all_gram(kernels):
    gram = {name: kernel.kind == "gram" for name, kernel in kernels.items()}
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


def _space(name, kernel, sample, embeddings, n_neighbors, random_state, steps):
    steps.say(f"{name}: the whole sample")
    measures = measure(kernel, sample)
    steps.advance()
    space = KernelSpace(name=name, kernel=kernel, n_points=len(sample), **vars(measures))
    space.findings = verdict.findings(measures, len(sample))
    by_fold = []
    for number, (training, new) in enumerate(sample.folds, 1):
        steps.say(f"{name}: fold {number} of {len(sample.folds)}")
        fold = fold_of(kernel, sample, training, new)
        by_fold.append(scores(fold, sample, n_neighbors))
        steps.advance()
    if by_fold:
        space.scores = {m: np.array([fold[m] for fold in by_fold]) for m in by_fold[0]}
        space.n_training, space.overlap = len(sample.folds[0][0]), overlap_of(sample.folds)
    picture = fold_of(kernel, sample, *sample.picture) if embeddings else None
    for embedding in embeddings:
        steps.say(f"{name}: {embedding}")
        space.embeddings[embedding] = _embedded(embedding, picture, sample, random_state)
        steps.advance()
    return space


def _embedded(name, fold, sample, random_state):
    codes = None
    if sample.task == CLASSES:
        codes = class_codes(sample.y)[fold.training]
    placed = embed(name, fold, codes, random_state)
    result = np.empty((len(sample), 2))
    result[np.concatenate([fold.training, fold.new])] = placed
    return result


def _shown(X, samples, image_shape, sample):
    """What the page shows of each point: rows of X, unless something better is given."""
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
                f"image_shape {tuple(image_shape)} needs {height * width} values a row, "
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
