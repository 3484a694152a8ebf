"""The comparison in words: which kernel, why, and where the rows cannot tell."""

from typing import TYPE_CHECKING

import numpy as np

from ... import Kernel
from .baselines import CONSTANT_NUMBER, CONSTANTS, Baseline
from .measures import REFUTED, Measures
from .scores import Scored
from .statistics import Difference, half_width, paired_difference, undecided

if TYPE_CHECKING:
    from ..live.space import LiveSpace
    from .kernel_comparison import KernelSpace

# Share of all squared lengths that 5 % of the points may hold before these decide everything.
# Gaussian points in a plane give 0.2.
DOMINATED = 0.5
# Share of the points that the effective dimension may reach before each point is alone.
ISOLATED = 0.5
# Share of the squared lengths that varies; below it all points look alike.
ALIKE = 1e-3


def findings(measures: "Measures | LiveSpace", n: int, kernel: Kernel) -> list[str]:
    """Findings about one kernel's space, in sentences without a subject."""
    found = []
    if measures.validity == REFUTED:
        found.append(
            "is not a kernel on this data: it has negative eigenvalues, which were set to zero here"
        )
    if measures.longest_share > DOMINATED and n >= 20:
        found.append(
            f"is dominated by a few long points: 5 % of the rows hold "
            f"{100 * measures.longest_share:.0f} % of all squared lengths (Normalized(k) takes "
            "that away)"
        )
    if measures.effective_dimension > ISOLATED * n:
        found.append(
            f"spreads the points over {measures.effective_dimension:.0f} directions: nearly every "
            f"point is alone{_advice(kernel, wider=True)}"
        )
    elif measures.relative_variance < ALIKE:
        found.append(
            f"sees all points as nearly alike: only {100 * measures.relative_variance:.2g} % of "
            f"their squared length varies{_advice(kernel, wider=False)}"
        )
    return found


def _advice(kernel, wider):
    """Advice for kernels that have something to change."""
    has = {name.rpartition("__")[2] for name in kernel.get_params(deep=True)}
    ways = []
    if "gamma" in has:
        ways.append("a smaller gamma" if wider else "a larger gamma")
    if "length_scale" in has:
        ways.append("a larger length_scale" if wider else "a smaller length_scale")
    if "degree" in has:
        ways.append("a lower degree" if wider else "a higher degree")
    done = "connects them" if wider else "tells them apart"
    return f" ({' or '.join(ways)} {done})" if ways else ""


def ranked(spaces: "list[KernelSpace]") -> "list[KernelSpace]":
    """Best first; kernels before what is not one; without scores in the order given."""
    return sorted(spaces, key=lambda s: (not s.is_kernel, -_known(s.score)))


def _known(score):
    return -np.inf if score is None or np.isnan(score) else score


class Contest:
    """All models on the same folds, and what their differences allow one to say.

    Parameters
    ----------
    spaces : list of KernelSpace, best first
    baselines : list of Baseline
    overlap : n_test / n_train of the folds
    degrees : degrees of freedom that the rows have; None: as many as the folds
    """

    def __init__(
        self,
        spaces: "list[KernelSpace]",
        baselines: list[Baseline],
        overlap: float,
        degrees: int | None = None,
    ):
        self.spaces, self.baselines, self.overlap = spaces, baselines, overlap
        self.degrees = degrees
        self.valid = [space for space in spaces if space.is_kernel]
        self.n_models = len(self.valid) + len(baselines)

    @property
    def scored(self) -> bool:
        return bool(self.spaces) and self.spaces[0].score is not None

    def difference(self, a: Scored, b: Scored) -> Difference:
        """Difference of two models: mean and margin of score(a) - score(b)."""
        return paired_difference(a.folds, b.folds, self.overlap, self.n_models, self.degrees)

    def beats(self, a: Scored, b: Scored) -> bool:
        """Whether a is better than b beyond the noise."""
        difference = self.difference(a, b)
        return not difference.within_noise and difference.mean > 0

    def interval(self, model: Scored) -> float:
        return half_width(model.folds, self.overlap, self.degrees)

    def shown(self, model: Scored) -> str:
        """The score of a kernel or baseline, with its interval."""
        if model.score is None:
            return ""
        return f"{model.score:.3f} ± {self.interval(model):.3f}"

    @property
    def group(self) -> "list[KernelSpace]":
        """The kernels that are not significantly worse than the best, best first."""
        if not self.valid or not self.scored:
            return []
        folds = [space.folds for space in self.valid]
        return self.valid[: undecided(folds, self.overlap, self.n_models, self.degrees)]

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


def headline(contest: Contest, n_points: int) -> str:
    """One sentence."""
    if not contest.scored:
        return "Without a target nothing says which space suits the data: look at the pictures."
    if not contest.valid:
        return "None of these is a kernel on this data."
    group, rows = contest.group, f"on these {n_points} rows"
    names = _listed([space.name for space in group])
    baseline = contest.better_baseline
    if baseline is not None:
        return f"{_capital(baseline.name)} predicts better than every kernel {rows}."
    if not contest.useful:
        always = "a constant answer"
        if contest.constant is not None and contest.constant.name == CONSTANT_NUMBER:
            always = "the mean of the target"
        return (
            "No kernel is shown to predict the target: none beats "
            f"{always} beyond the noise {rows}."
        )
    if len(group) == 1:
        if len(contest.valid) == 1 and contest.constant is None:
            return (
                f"{group[0].name} scores {group[0].score:.3f} {rows}; nothing was compared with it."
            )
        if len(contest.valid) == 1:
            return f"{group[0].name} predicts the target {rows}; no other kernel was compared."
        return f"{group[0].name} predicts best {rows}."
    return f"{names} cannot be told apart {rows}."


def reasons(contest: Contest, score_name: str | None, n_training: int, n_folds: int) -> list[str]:
    """Sentences that carry the headline."""
    lines = []
    if contest.scored and contest.valid:
        best = contest.valid[0]
        lines.append(
            f"{best.name} reaches {score_name} {best.score:.3f} ± {contest.interval(best):.3f} on "
            f"rows it has not seen (mean of {n_folds} folds, each trained on {n_training} rows)."
        )
        if len(contest.group) > 1 and contest.useful and contest.better_baseline is None:
            names = _listed([space.name for space in contest.group])
            lines.append(f"{names} may still differ: more rows could show which is better.")
        lines += [_against(contest, best, b, baseline=True) for b in contest.baselines]
        others = [space for space in contest.spaces if space is not best]
        lines += [_against(contest, best, other) for other in others]
    for space in contest.spaces:
        lines += [f"{space.name} {finding}." for finding in space.findings]
    return lines


def _against(contest, best, other, baseline=False):
    difference = contest.difference(best, other)
    name = _capital(other.name) if baseline else other.name
    seen = f"{name} reaches {other.score:.3f}"
    apart = f"{abs(difference.mean):.3f} ± {difference.margin:.3f}"
    in_group = not baseline and any(other is space for space in contest.group)
    if difference.within_noise or in_group:
        return f"{seen}: the difference, {apart}, is within the noise."
    side = "less" if difference.mean > 0 else "more"
    return f"{seen}, {apart} {side}: beyond the noise."


def _capital(text):
    return text[:1].upper() + text[1:]


def _listed(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
