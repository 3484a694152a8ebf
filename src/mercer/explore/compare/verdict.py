"""The comparison in words: which kernel, why, and where the numbers cannot tell."""

import numpy as np

from .measures import REFUTED
from .scores import NEIGHBOURS, paired_difference, standard_error

# Self-similarities this many times apart let the longest points decide every distance.
WIDE_SPREAD = 100.0
# Share of the points that the effective dimension may reach before each point is alone.
ISOLATED = 0.5
# Share of the squared lengths that varies; below it all points look alike.
ALIKE = 1e-3


def findings(measures, n):
    """What is remarkable about one kernel's space, in sentences without a subject."""
    found = []
    if measures.validity == REFUTED:
        found.append(
            "is not a kernel on this data: it has negative eigenvalues, which were set to zero here"
        )
    low, high = measures.self_similarity
    if high > WIDE_SPREAD * low:
        times = f"by a factor of {_times(high / low)}" if low > 0 else "down to zero"
        found.append(
            f"has self-similarities that differ {times}: a few long points dominate all distances "
            "(Normalized(k) takes that away)"
        )
    if measures.effective_dimension > ISOLATED * n:
        found.append(
            f"spreads the points over {measures.effective_dimension:.0f} directions: nearly every "
            "point is alone (a smaller gamma, or a lower degree, connects them)"
        )
    elif measures.relative_variance < ALIKE:
        found.append(
            f"sees all points as nearly alike: only {100 * measures.relative_variance:.2g} % of "
            "their squared length varies (a larger gamma tells them apart)"
        )
    return found


def ranked(spaces):
    """Best first; kernels before what is none; without scores in the order given."""
    return sorted(spaces, key=lambda s: (s.validity == REFUTED, -_known(s.score)))


def _known(score):
    return -np.inf if score is None or np.isnan(score) else score


def tied_with_best(spaces):
    """Names of the kernels whose scores cannot be told from the best one's."""
    best, *others = spaces
    if best.score is None:
        return []
    return [s.name for s in others if against(best, s).within_noise]


def against(best, other):
    """Paired difference of two kernels, each by its better method."""
    return paired_difference(best.folds, other.folds, best.overlap)


def headline(spaces, task):
    """One sentence."""
    best = spaces[0]
    if best.score is None:
        return "Without a target nothing says which space suits the data: look at the pictures."
    if best.validity == REFUTED:
        return "None of these is a kernel on this data."
    ties = [name for name in tied_with_best(spaces) if _space(spaces, name).validity != REFUTED]
    if not ties:
        alone = len(spaces) == 1
        return (
            f"{best.name} is the only kernel compared."
            if alone
            else (f"{best.name} suits this data best.")
        )
    return (
        f"{_listed([best.name, *ties])} suit this data equally well, as far as these "
        f"{best.n_points} points can tell."
    )


def reasons(spaces, task):
    """Sentences that carry the headline."""
    best, *others = spaces
    lines = []
    if best.score is not None:
        what = "accuracy" if task == "classes" else "R²"
        lines.append(
            f"{best.name} reaches {what} {best.score:.3f} ± {standard_error(best.folds):.3f} on "
            f"rows it has not seen (by {_method(best.method)} in its space; learned "
            f"{len(best.folds)} times from {best.n_training} rows)."
        )
        lines += [_compared(best, other, what) for other in others]
    for space in spaces:
        lines += [f"{space.name} {finding}." for finding in space.findings]
    return lines


def _compared(best, other, what):
    difference = against(best, other)
    seen = f"{other.name} reaches {other.score:.3f}"
    apart = f"{abs(difference.mean):.3f} ± {difference.margin:.3f}"
    if difference.within_noise:
        return f"{seen}: the difference, {apart} at 95 %, is within the noise of the folds."
    side = "less" if difference.mean > 0 else "more"
    return f"{seen}, {apart} {side}: beyond the noise of the folds."


def _method(method):
    return "nearest neighbours" if method == NEIGHBOURS else f"the {method}"


def _listed(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _space(spaces, name):
    return next(s for s in spaces if s.name == name)


def _times(ratio):
    return f"{ratio:.0f}" if ratio < 1e4 else f"{ratio:.0e}"
