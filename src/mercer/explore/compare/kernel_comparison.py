"""Results of compare_kernels: KernelComparison, and one KernelSpace per kernel."""

from dataclasses import dataclass, field
from html import escape
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import CLASSES
from . import verdict
from .baselines import Baseline
from .folds import ComparedRows
from .measures import Measures
from .model import baseline_model, code_of, fit_model, kernel_model
from .scores import MEANING, Scored

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator

    from ..plots import ComparisonDisplay


@dataclass
class KernelSpace(Measures, Scored):
    """One kernel's feature space on the sample: its measures, scores and embeddings."""

    name: str
    kernel: Any  # with the width that leave-one-out chose on the whole sample
    alpha: float | None = None  # the penalty chosen with it
    shrinkage: float | None = None  # the same for classes, in the unit of KernelDiscriminant
    parameter: str | None = None  # the width that was tuned, where one was open
    value: float | None = None
    curve: list[tuple[float, float]] = field(default_factory=list)  # (value, leave-one-out error)
    penalties: list[tuple[float, float]] = field(default_factory=list)  # (alpha, the same error)
    embeddings: dict[str, np.ndarray] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    @property
    def tuned(self) -> str:
        """The chosen values as text, such as "gamma=0.03, alpha=0.1"."""
        parts = [] if self.parameter is None else [f"{self.parameter}={self.value:.4g}"]
        if self.shrinkage is not None:
            parts.append(f"shrinkage={self.shrinkage:.3g}")
        elif self.alpha is not None:
            parts.append(f"alpha={self.alpha:.3g}")
        return ", ".join(parts)


class KernelComparison:
    """Hold the result of :func:`compare_kernels`: a ranked table, a verdict in words, pictures.

    Attributes
    ----------
    spaces : list of KernelSpace
        Best first.
    baselines : list of Baseline
        A constant answer, a linear model and gradient boosting on the same folds.
    table : DataFrame
        One row per kernel and baseline, kernels ranked first (needs pandas).
    recommendation : str
        Which kernel and why; honest where the difference is within noise.
    score_name : str or None
        The score that decides: "accuracy", "balanced accuracy" or "R²".
    embeddings : dict
        ``embeddings[kernel name][embedding name]``: (n, 2) coordinates of the sample.
    target : ndarray or None
        Classes or numbers of the sample.
    target_name : str
        What the target is called on the page.
    held_out : ndarray of bool
        Rows that the embeddings were not fitted to.
    rows : ndarray
        Positions of the sample in the data given.
    notes : list of str
        What was done to the data: rows drawn or left out, columns encoded.
    columns : list of dict
        What became of each column; empty where nothing was encoded.
    command : str or None
        How the comparison was asked for, shown on the page.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Linear, compare_kernels
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> rings = np.hypot(X[:, 0], X[:, 1]) > 1.2
    >>> found = compare_kernels(X, rings, [Linear(), RBF()], cv=3, repeats=1, embeddings=[])
    >>> found.best, found.score_name, len(found.rows)
    ('RBF()', 'accuracy', 100)
    """

    def __init__(
        self,
        spaces: list[KernelSpace],
        baselines: list[Baseline],
        data: ComparedRows,
        *,
        shows_points: bool = False,
    ) -> None:
        self.spaces, self.baselines, self.data = spaces, baselines, data
        self.target, self.target_name, self.task = data.target, data.target_name, data.task
        self.rows, self.held_out, self.notes = data.rows, data.held_out, list(data.notes)
        self.classes, self.codes = data.classes, data.codes
        self.columns = list(getattr(data.encoder, "columns_", []))
        self.shows_points = shows_points
        self.command: str | None = None
        self.contest = verdict.Contest(spaces, baselines, data)

    def __len__(self):
        return len(self.rows)

    @property
    def score_name(self) -> str | None:
        return self.data.score_name

    @property
    def method(self) -> str:
        """The method that is fitted in every kernel's space."""
        return "discriminant" if self.task == CLASSES else "ridge"

    @property
    def score_meaning(self) -> str:
        """The meaning of the score and of its intervals."""
        return "" if self.score_name is None else f"{MEANING[self.score_name]}; {verdict.INTERVAL}"

    @property
    def embeddings(self) -> dict[str, dict[str, np.ndarray]]:
        return {space.name: space.embeddings for space in self.spaces}

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        return self.contest.headline

    @property
    def reasons(self) -> list[str]:
        """Sentences that carry it."""
        return self.contest.reasons

    @property
    def recommendation(self) -> str:
        return " ".join([self.headline, *self.reasons])

    # --- the next step ----------------------------------------------------------------------------

    @property
    def best(self) -> str:
        """Name of the model that `best_model` gives.

        The best kernel, or the ordinary model that predicts better than every kernel.
        """
        self._check_target()
        baseline = self.contest.better_baseline
        return self.spaces[0].name if baseline is None else baseline.name

    def best_model(self, name: str | None = None) -> "BaseEstimator":
        """A fitted model, ready to predict: the comparison's next step.

        It takes rows as `compare_kernels` got them: columns are encoded by the pipeline itself. It
        is fitted to all rows that have a target, with the width and penalty that were chosen. Where
        an ordinary model predicts better than every kernel, it is that model, from scikit-learn.

        Parameters
        ----------
        name : str or None
            The name of another kernel or ordinary model of the comparison; None: the best one.
        """
        return fit_model(self._unfitted(name), self.data)

    def code(self, name: str | None = None) -> str:
        """Python that makes the model of this `name` (None: the best): copy it into a script."""
        return code_of(self._unfitted(name))

    def _unfitted(self, name):
        name = self.best if name is None else name
        self._check_target()
        if not isinstance(name, str):
            raise TypeError(f"name must be the name of a model that was compared, got {name!r}.")
        models: list[Any] = [*self.spaces, *self.baselines]
        found = next((model for model in models if model.name == name), None)
        if found is None:
            names = ", ".join(repr(model.name) for model in models)
            raise ValueError(f"no model {name!r} was compared; there are {names}.")
        if isinstance(found, Baseline):
            return baseline_model(found, self.data)
        priors = [1 / len(self.classes)] * len(self.classes) if self.data.balanced else None
        chosen: Any = {"alpha": found.alpha, "shrinkage": found.shrinkage, "priors": priors}
        return kernel_model(found.kernel, self.data, found.validity, **chosen)

    def _check_target(self):
        if self.task is None:
            raise ValueError("there is no model without a target: compare with y.")

    # --- tables -----------------------------------------------------------------------------------

    def records(self) -> list[dict[str, Any]]:
        """Return the ranked table as a list of dicts of plain values: kernels, then baselines."""
        kernels = [self._record(place, space) for place, space in enumerate(self.spaces, 1)]
        baselines = [self._scores(b) | {"kernel": None, "model": b.name} for b in self.baselines]
        return kernels + baselines

    def _scores(self, scored):
        found = {"score": scored.score, "interval": self.contest.interval(scored)}
        for name, folds in scored.scores.items():
            found[name.replace(" ", "_").replace("R²", "R2")] = float(np.mean(folds))
        return found

    def _record(self, place, space):
        record: dict[str, Any] = {"place": place, "kernel": space.name, "model": self.method}
        if space.scores:
            in_group = any(space is best for best in self.contest.group)
            record |= self._scores(space) | {"within_noise_of_best": in_group}
            record |= {"alignment": space.alignment, "tuned": space.tuned, "alpha": space.alpha}
        low, high = space.self_similarity
        return record | {
            "tuned_kernel": repr(space.kernel),
            "rank": space.rank,
            "effective_dimension": space.effective_dimension,
            "self_similarity_min": low,
            "self_similarity_max": high,
            "condition": space.condition,
            "valid": space.validity,
            "fit_seconds": space.fit_seconds,
        }

    @property
    def table(self) -> "pd.DataFrame":
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(".table needs pandas: pip install 'mercer[report]'.") from None
        frame = pd.DataFrame(self.records())
        frame["place"] = np.arange(1, len(frame) + 1)
        return frame.set_index("place")

    # --- pictures ---------------------------------------------------------------------------------

    def plot(self, embedding: str | None = None, *, spectra: bool = True) -> "ComparisonDisplay":
        """Draw the space of every kernel by one `embedding` (None: by all), and the `spectra`."""
        from ..plots import ComparisonDisplay

        return ComparisonDisplay(self).plot(embedding, spectra=spectra)

    def to_html(
        self, path: str | PathLike[str] | None = None, *, title: str = "Kernels compared"
    ) -> str:
        """Write one self-contained page with all pictures; returns its path or text.

        Without a `path` nothing is written, and the page comes back as a text. `title` stands at
        its top.
        """
        from ..report import write_report

        return write_report(self, path, title=title)

    def _repr_html_(self):
        """For notebooks: the verdict and the table."""
        cells = [("", "model", self.score_name or "", "chosen values")]
        models: list[Any] = [*self.spaces, *self.baselines]
        for place, model in enumerate(models, 1):
            number = str(place) if place <= len(self.spaces) else ""
            cells.append((number, model.name, self.contest.shown(model), model.tuned))
        left, rows = "<td style='text-align:left'>", []
        for number, *texts in cells:
            name, score, tuned = map(escape, texts)
            rows.append(f"<tr><td>{number}</td>{left}{name}</td><td>{score}</td>{left}{tuned}</td>")
        rows[0] = rows[0].replace("td", "th")
        lines = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        return (
            f"<div><p><b>{escape(self.headline)}</b></p><table>{'</tr>'.join(rows)}</tr></table>"
            f"<details><summary>Why</summary><ul>{lines}</ul></details></div>"
        )

    def __repr__(self):
        names = ", ".join(space.name for space in self.spaces)
        return f"<KernelComparison of {names} on {len(self)} points: {self.headline}>"
