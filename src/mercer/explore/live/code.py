"""The present kernel as a model: an unfitted pipeline, and the Python lines that make it."""

import re
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ...estimators.discriminant import KernelDiscriminant
from ...estimators.kernelized import Kernelized
from ...estimators.pca import KernelPCA
from ...kernels import Kernel, OnColumns, Projected
from ..compare.model import imported, map_of, one_line
from ..compare.sampling import CLASSES
from ..compare.tuning import rounded
from .data import Explored
from .space import LiveSpace


def portable(kernel: Kernel, data: Explored) -> Kernel:
    """The kernel as a model outside this page takes it: columns by position, not by name."""
    parts = [kernel, *kernel.get_params(deep=True).values()]
    return data.bound(kernel) if any(isinstance(p, OnColumns) for p in parts) else kernel


def model_of(kernel: Kernel, space: LiveSpace, data: Explored) -> BaseEstimator:
    """A model in the kernel's space, to be fitted to the rows as they were given.

    For numbers ridge with an intercept, as the page judges it; for classes the discriminant, which
    has the same directions, and probabilities; without a target kernel PCA.
    """
    used: Any = map_of(portable(kernel, data), space.validity, len(data.usable))
    if space.alpha is None:
        model: BaseEstimator = KernelPCA(2, used)
    elif data.task == CLASSES:
        model = KernelDiscriminant(kernel=used)
    else:
        model = Kernelized(Ridge(alpha=rounded(space.alpha)), used)
    return model if data.encoder is None else make_pipeline(clone(data.encoder), model)


def code_of(
    kernel: Kernel, space: LiveSpace, data: Explored, learned_from: Kernel | None = None
) -> str:
    """Lines to copy into a script. `learned_from` is the kernel whose metric was learned."""
    model = model_of(kernel, space, data)
    method: Any = model if data.encoder is None else model.steps[-1][1]
    lines, made = [], one_line(method)
    if isinstance(kernel, Projected) and learned_from is not None:
        made = made.replace(one_line(kernel), f"Projected({kernel.kernel!r}, A)")
        rows = "Z" if data.encoder is not None else "X"
        if data.encoder is not None:
            lines.append(f"Z = {one_line(data.encoder)}.fit_transform(X)")
        lines.append(f"A = learn_kernel({rows}, y, {learned_from!r}, random_state=0).kernel.A")
    if data.encoder is not None:
        made = f"make_pipeline({one_line(data.encoder)}, {made})"
    given = "X, y" if space.alpha is not None else "X"
    lines.append(f"model = {made}.fit({given})")
    text = "\n".join(lines)
    names = set(re.findall(r"\b\w+(?=\()", text))
    imports = []
    if "Ridge" in names:
        imports.append("from sklearn.linear_model import Ridge")
    if "make_pipeline" in names:
        imports.append("from sklearn.pipeline import make_pipeline")
    return "\n".join([*imports, imported(text), *lines])
