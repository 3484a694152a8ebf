"""Models that a comparison or the explorer ends with, and the code that makes them."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ... import Kernel, KernelDiscriminant, Kernelized, KernelMap, KernelPCA
from ...kernels import points as pts
from ...rows import rows_at
from ..data import CLASSES, Explored
from .baselines import CONSTANTS, Baseline, texts
from .measures import REFUTED

# Beyond so many rows the map gets landmarks instead of all rows.
EXACT_ROWS, LANDMARKS = 5000, 1500


def kernel_model(
    kernel: Kernel,
    data: Explored,
    validity: str,
    *,
    alpha: float | None = None,
    shrinkage: Any = "auto",
    priors: Sequence[float] | None = None,
) -> BaseEstimator:
    """A model in the kernel's space, for rows as they were given. For numbers ridge with an
    intercept, for classes the discriminant, without a target kernel PCA."""
    used: Any = kernel
    if validity == REFUTED:
        used = KernelMap(kernel, indefinite="clip")
    elif len(data.usable) > EXACT_ROWS and not data.gram:
        used = KernelMap(kernel, max_rank=LANDMARKS, pivots="random", random_state=0)
    if data.task is None:
        model: BaseEstimator = KernelPCA(2, used)
    elif data.task == CLASSES:
        model = KernelDiscriminant(kernel=used, shrinkage=shrinkage, priors=priors)
    else:
        # An intercept of its own: the target need not have mean zero.
        model = Kernelized(Ridge(alpha=alpha), used)
    return model if data.encoder is None else make_pipeline(clone(data.encoder), model)


def baseline_model(baseline: Baseline, data: Explored) -> BaseEstimator:
    """An ordinary model, for rows as they were given."""
    model, X = clone(baseline.model), data.given[0]
    if baseline.name in CONSTANTS:
        return model
    steps = list(model) if isinstance(model, Pipeline) else [model]
    if data.encoder is not None:
        steps.insert(0, clone(data.encoder))
    elif scipy.sparse.issparse(X):
        steps.insert(0, FunctionTransformer(_to_dense, accept_sparse=True))
    elif pts.is_frame(X) and texts(X) is not None:
        steps[0] = make_column_transformer((steps[0], str(X.columns[0])))
    return make_pipeline(*steps) if len(steps) > 1 else steps[0]


def _to_dense(X):
    return X.toarray()


def fit_model(model: BaseEstimator, data: Explored) -> BaseEstimator:
    """The model, fitted to all rows that have a target, as they were given."""
    X, y = data.given
    rows = data.usable
    X = np.asarray(X, dtype=float)[np.ix_(rows, rows)] if data.gram else rows_at(X, rows)
    return model.fit(X) if y is None else model.fit(X, y[rows])


def code_of(
    model: BaseEstimator, *, before: Sequence[str] = (), named: tuple[str, str] = ("", "")
) -> str:
    """Lines that make and fit a model. `before` are lines before it; `named` is a text, and what
    stands for it in the model's line."""
    from ... import __all__ as public

    steps, rows = list(model) if isinstance(model, Pipeline) else [model], "X"
    if isinstance(steps[0], FunctionTransformer):
        steps, rows = steps[1:], "X.toarray()"
    used: dict[str, set[str]] = {}
    for step in steps:
        for part in (step, *step.get_params(deep=True).values()):
            module = type(part).__module__
            if isinstance(part, BaseEstimator) and module.startswith("sklearn."):
                # sklearn.linear_model._logistic -> sklearn.linear_model
                used.setdefault(module.partition("._")[0], set()).add(type(part).__name__)
    made = ", ".join(map(one_line, steps))
    if len(steps) > 1:
        used.setdefault("sklearn.pipeline", set()).add("make_pipeline")
        made = f"make_pipeline({made})"
    made = made.replace(*named)
    if getattr(steps[-1], "priors", None):  # they are equal, and long to write
        n = len(steps[-1].priors)
        made = re.sub(r"priors=\[[^\]]*\]", f"priors=[1 / {n}] * {n}", made)
    fitted_to = rows if isinstance(steps[-1], KernelPCA) else f"{rows}, y"
    lines = [*before, f"model = {made}.fit({fitted_to})"]
    imports = [f"from {name} import {', '.join(sorted(used[name]))}" for name in sorted(used)]
    own = set(re.findall(r"\b\w+(?=\()", "\n".join(lines))) & set(public)
    if own:  # constants first, then classes, as formatters sort them
        ordered = sorted(own, key=lambda name: (not name.isupper(), name))
        imports.insert(0, f"from mercer import {', '.join(ordered)}")
    return "\n".join([*imports, *lines])


def one_line(value: Any) -> str:
    # scikit-learn's own text leaves out the middle of what is long; a user's class has its own.
    whole = type(value).__repr__ is BaseEstimator.__repr__
    text = BaseEstimator.__repr__(value, N_CHAR_MAX=np.inf) if whole else repr(value)
    return re.sub(r"\s*\n\s*", " ", text)
