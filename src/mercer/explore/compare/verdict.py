"""The comparison in words: which kernel, why, and where the rows cannot tell.

Training sets of cross-validation overlap, so fold differences are not independent. Their variance
is multiplied by 1/J + n_test/n_train instead of 1/J (Nadeau and Bengio, 2003; for repeated folds
Bouckaert and Frank, 2004). With m models any of m(m-1)/2 differences may be the largest: the
limit is that of the studentised range (Tukey), which for two models is Student's t.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from ... import Kernel
from .baselines import CONSTANT_NUMBER, CONSTANTS, Baseline
from .folds import ComparedRows
from .measures import REFUTED, Measures
from .scores import Scored

if TYPE_CHECKING:
    from ..live.space import LiveSpace
    from .kernel_comparison import KernelSpace

# Share of all squared lengths that 5 % of the points may hold before these decide everything.
# Gaussian points in a plane give 0.2.
_DOMINATED = 0.5
# Share of the points that the effective dimension may reach before each point is alone.
_ISOLATED = 0.5
# Share of the squared lengths that varies; below it all points look alike.
_ALIKE = 1e-3
# The change of a kernel's parameters that connects isolated points, or separates similar ones.
_WAYS = {
    "gamma": ("a smaller gamma", "a larger gamma"),
    "length_scale": ("a larger length_scale", "a smaller length_scale"),
    "degree": ("a lower degree", "a higher degree"),
}
_LEVEL = 0.95
INTERVAL = "95 % intervals, corrected for overlapping training sets (Nadeau and Bengio)"


def findings(measures: "Measures | LiveSpace", n: int, kernel: Kernel) -> list[str]:
    """Findings about one kernel's space, in sentences without a subject."""
    found = []
    if measures.validity == REFUTED:
        found.append(
            "is not a kernel on this data: it has negative eigenvalues, which were set to zero here"
        )
    if measures.longest_share > _DOMINATED and n >= 20:
        found.append(
            f"is dominated by a few long points: 5 % of the rows hold "
            f"{100 * measures.longest_share:.0f} % of all squared lengths (Normalized(k) takes "
            "that away)"
        )
    if measures.effective_dimension > _ISOLATED * n:
        found.append(
            f"spreads the points over {measures.effective_dimension:.0f} directions: nearly every "
            f"point is alone{_advice(kernel, wider=True)}"
        )
    elif measures.relative_variance < _ALIKE:
        found.append(
            f"sees all points as nearly alike: only {100 * measures.relative_variance:.2g} % of "
            f"their squared length varies{_advice(kernel, wider=False)}"
        )
    return found


def _advice(kernel, wider):
    """Advice for kernels that have something to change."""
    has = {name.rpartition("__")[2] for name in kernel.get_params(deep=True)}
    ways = [pair[not wider] for name, pair in _WAYS.items() if name in has]
    done = "connects them" if wider else "tells them apart"
    return f" ({' or '.join(ways)} {done})" if ways else ""


def ranked(spaces: "list[KernelSpace]") -> "list[KernelSpace]":
    """Best first; kernels before what is not one; without scores in the order given."""
    return sorted(spaces, key=lambda s: (not s.is_kernel, -_known(s.score)))


def _known(score):
    return -np.inf if score is None or np.isnan(score) else score


@dataclass
class _Difference:
    """Mean paired difference over folds, and the half-width of its interval."""

    mean: float
    margin: float

    @property
    def within_noise(self) -> bool:
        return bool(not abs(self.mean) > self.margin)


def _paired_difference(
    a: ArrayLike, b: ArrayLike, overlap: float, n_models: int = 2, most: int | None = None
) -> _Difference:
    """Difference of two models on the same folds, among `n_models` that are compared. `most`:
    degrees of freedom that the rows have, where folds would claim more."""
    d = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    margin = _half_width(d, overlap, n_models, most)
    return _Difference(float(d.mean()), np.inf if np.isnan(margin) else margin)


def _half_width(values, overlap, n_models, most):
    """Half the width of the 95 % interval of the mean over folds whose training sets overlap."""
    n = len(values)
    if n < 2:
        return np.nan
    degrees = n - 1 if most is None else max(1, min(n - 1, most))
    error = float(np.std(values, ddof=1) * np.sqrt(1 / n + overlap))
    return limit(n_models, degrees) * error


@lru_cache(maxsize=256)
def limit(n_models: int, degrees: int) -> float:
    """How many standard errors the largest of all pairwise differences exceeds once in 20 times."""
    if n_models <= 2:
        return float(scipy.stats.t.ppf((1 + _LEVEL) / 2, degrees))
    return float(scipy.stats.studentized_range.ppf(_LEVEL, n_models, degrees) / 2**0.5)


class Contest:
    """All models on the same folds of the data, and what their differences allow one to say.

    `spaces` come best first.
    """

    def __init__(self, spaces: "list[KernelSpace]", baselines: list[Baseline], data: ComparedRows):
        self.spaces, self.baselines, self.data = spaces, baselines, data
        self.overlap = 0.0  # n_test / n_train of the folds, where their training sets overlap
        if len(data.folds) > 1 and len(np.intersect1d(data.folds[0][0], data.folds[1][0])):
            n_train, n_test = np.sum([[len(t), len(n)] for t, n in data.folds], axis=0)
            self.overlap = float(n_test / n_train)
        # Degrees of freedom that the rows have, or groups of them: repeated folds of few rows see
        # the same few rows again and again. A quarter was found by simulation (30 rows).
        self.degrees = len(data) // 4 if data.groups is None else len(np.unique(data.groups)) - 1
        self.valid = [space for space in spaces if space.is_kernel]
        self.n_models = len(self.valid) + len(baselines)

    @property
    def scored(self) -> bool:
        return bool(self.spaces) and self.spaces[0].score is not None

    def difference(self, a: Scored, b: Scored) -> _Difference:
        """Difference of two models: mean and margin of score(a) - score(b)."""
        return _paired_difference(a.folds, b.folds, self.overlap, self.n_models, self.degrees)

    def beats(self, a: Scored, b: Scored) -> bool:
        """Whether a is better than b beyond the noise."""
        difference = self.difference(a, b)
        return not difference.within_noise and difference.mean > 0

    def interval(self, model: Scored) -> float:
        return _half_width(model.folds, self.overlap, 2, self.degrees)

    def shown(self, model: Scored) -> str:
        """The score of a kernel or baseline, with its interval."""
        if model.score is None:
            return ""
        return f"{model.score:.3f} ± {self.interval(model):.3f}"

    @property
    def group(self) -> "list[KernelSpace]":
        """The kernels that are not significantly worse than the best, best first. They stand
        together at the top: a kernel counts as worse only if all kernels below it do, too, so that
        no group has a better score outside than inside."""
        if not self.valid or not self.scored:
            return []
        alike = [self.difference(self.valid[0], space).within_noise for space in self.valid]
        return self.valid[: max(np.flatnonzero(alike), default=0) + 1]

    @property
    def constant(self) -> Baseline | None:
        return next((b for b in self.baselines if b.name in CONSTANTS), None)

    @property
    def useful(self) -> bool:
        """Whether the best kernel predicts better than a constant answer."""
        return self.constant is None or self.beats(self.valid[0], self.constant)

    @property
    def better_baseline(self) -> Baseline | None:
        """An ordinary model that is better than every kernel beyond the noise, or None."""
        ordinary = [b for b in self.baselines if b.name not in CONSTANTS]
        better = [b for b in ordinary if self.beats(b, self.valid[0])]
        return max(better, key=lambda b: _known(b.score), default=None)

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        if not self.scored:
            return "Without a target nothing says which space suits the data: look at the pictures."
        if not self.valid:
            return "None of these is a kernel on this data."
        group, rows = self.group, f"on these {len(self.data)} rows"
        best, baseline = group[0], self.better_baseline
        if baseline is not None:
            return f"{_capital(baseline.name)} predicts better than every kernel {rows}."
        if not self.useful:
            always = "a constant answer"
            if self.constant is not None and self.constant.name == CONSTANT_NUMBER:
                always = "the mean of the target"
            return (
                "No kernel is shown to predict the target: none beats "
                f"{always} beyond the noise {rows}."
            )
        if len(group) > 1:
            return f"{_listed([space.name for space in group])} cannot be told apart {rows}."
        if len(self.valid) > 1:
            return f"{best.name} predicts best {rows}."
        if self.constant is None:
            return f"{best.name} scores {best.score:.3f} {rows}; nothing was compared with it."
        return f"{best.name} predicts the target {rows}; no other kernel was compared."

    @property
    def reasons(self) -> list[str]:
        """Sentences that carry it."""
        lines = []
        if self.scored and self.valid:
            best, folds = self.valid[0], self.data.folds
            sizes = [len(training) for training, _ in folds]
            size = " to ".join(map(str, dict.fromkeys((min(sizes), max(sizes)))))
            lines.append(
                f"{best.name} reaches {self.data.score_name} {self.shown(best)} on rows it has not "
                f"seen (mean of {len(folds)} folds, each trained on {size} rows)."
            )
            if len(self.group) > 1 and self.useful and self.better_baseline is None:
                names = _listed([space.name for space in self.group])
                lines.append(f"{names} may still differ: more rows could show which is better.")
            lines += [self._against(best, b, baseline=True) for b in self.baselines]
            lines += [self._against(best, other) for other in self.spaces if other is not best]
        for space in self.spaces:
            lines += [f"{space.name} {finding}." for finding in space.findings]
        return lines

    def _against(self, best, other, baseline=False):
        difference = self.difference(best, other)
        name = _capital(other.name) if baseline else other.name
        seen = f"{name} reaches {other.score:.3f}"
        apart = f"{abs(difference.mean):.3f} ± {difference.margin:.3f}"
        in_group = not baseline and any(other is space for space in self.group)
        if difference.within_noise or in_group:
            return f"{seen}: the difference, {apart}, is within the noise."
        side = "less" if difference.mean > 0 else "more"
        return f"{seen}, {apart} {side}: beyond the noise."


def _capital(text):
    return text[:1].upper() + text[1:]


def _listed(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
