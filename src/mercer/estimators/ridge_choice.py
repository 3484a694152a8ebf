"""Which form of ridge regression costs least, and which forms an input cannot have."""

from ..engine.arrays import evenly, namespace
from ..engine.memory import budget, matrix
from ..kernels import points as pts
from ..rows.source import in_pieces
from ..space import factorize
from .kernel_map import KernelMap

FORMS = ("auto", "primal", "dual", "iterative", "fourier")
# Rows from which "auto" judges whether the kernel matrix has full rank.
SAMPLE = 400
# Below this share of the kernel's trace, alpha shows the rounding of the map's coordinates at new
# points, about sqrt(eps) times |w|: the dual form does not.
SMALL_ALPHA = 1e-6


def form_for(form, kernel, X):
    """The form that is asked for, or the only one for X; "auto" where the rows must decide."""
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}.")
    if in_pieces(X) and form == "dual":
        raise ValueError(
            "form='dual' stores the kernel matrix, too large for rows that come in pieces: use "
            "form='iterative', which gathers the rows alone, or form='primal'."
        )
    if isinstance(kernel, KernelMap):
        if form == "dual":
            raise ValueError(
                "form='dual' solves with the kernel matrix and has no use for a KernelMap: "
                "pass its kernel, or form='primal'."
            )
        if form == "fourier":
            raise ValueError(
                "form='fourier' chooses its own coordinates and has no use for a KernelMap: "
                "pass its kernel, or KernelMap(kernel, basis='fourier') with form='auto'."
            )
        return "iterative" if form == "iterative" else "primal"
    return "primal" if in_pieces(X) else form


def cheapest_form(kernel, points, smallest_alpha, matrices):
    """Of rows at hand; the dual form holds so many n x n `matrices` at once."""
    n = points.shape[0]
    if not kernel.is_proven:
        return "primal"  # the map tests validity
    fits = matrix(n, matrices) <= budget(None, points)
    trace = float(namespace(points).sum(kernel.diagonal(points)))
    alpha = smallest_alpha()
    if fits and 0 < alpha < SMALL_ALPHA * trace and not _has_few_dimensions(kernel, points):
        return "dual"
    spread = evenly(n, SAMPLE)
    rank = factorize(kernel, pts.take(points, spread)).factor.rank
    if rank < len(spread):
        return "primal"
    if fits:
        return "dual"
    return "iterative" if alpha > 0 else "primal"


def _has_few_dimensions(kernel, points):
    """Whether the kernel has fewer of its own than there are rows: K is then singular beyond them,
    and K + alpha I for a tiny alpha is so to rounding."""
    if len(points.shape) != 2:
        return False
    own = kernel.explicit_dim(points.shape[1])
    return own is not None and own < points.shape[0]
