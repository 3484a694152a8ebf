"""The model that a comparison recommends: an ordinary pipeline, and the code that makes it."""

import re

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ...estimators.discriminant import KernelDiscriminant
from ...estimators.kernel_map import KernelMap
from ...estimators.kernelized import Kernelized
from ...kernels.points import is_frame
from .baselines import CONSTANT_NUMBER, texts
from .measures import REFUTED
from .sampling import CLASSES, select

# Beyond so many rows the map gets landmarks instead of all rows.
EXACT_ROWS, LANDMARKS = 5000, 1500


def pipeline(space, task, encoder, n_rows, equal_classes=0):
    """Unfitted: the encoder (if any), and the method in the kernel's space as it was chosen.

    `equal_classes` of them are taken as equally probable; 0: as probable as they are frequent.
    """
    kernel = map_of(space.kernel, space.validity, n_rows)
    if task == CLASSES:
        priors = [1 / equal_classes] * equal_classes if equal_classes else None
        model = KernelDiscriminant(kernel=kernel, shrinkage=space.shrinkage, priors=priors)
    else:
        # An intercept of its own: the target need not have mean zero.
        model = Kernelized(Ridge(alpha=space.alpha), kernel)
    return model if encoder is None else make_pipeline(clone(encoder), model)


def map_of(kernel, validity, n_rows):
    """The kernel for a method, or its map where it was corrected or rows are many."""
    if validity == REFUTED:
        return KernelMap(kernel, indefinite="clip")
    if n_rows > EXACT_ROWS and kernel.layout.on_data:
        return KernelMap(kernel, max_rank=LANDMARKS, pivots="random", random_state=0)
    return kernel


def fit_model(space, task, encoder, X, y, rows, *, balanced=False):
    """The pipeline, fitted to these rows of the data as they were given."""
    equal_classes = len(np.unique(y[rows].astype(str))) if balanced else 0
    model = pipeline(space, task, encoder, len(rows), equal_classes)
    if not space.kernel.layout.on_data:
        return model.fit(np.asarray(X, dtype=float)[np.ix_(rows, rows)], y[rows])
    return model.fit(select(X, rows), y[rows])


def baseline_pipeline(baseline, encoder, X):
    """Unfitted, for rows as they were given; a constant answer becomes scikit-learn's."""
    if baseline.model is None:
        return DummyRegressor() if baseline.name == CONSTANT_NUMBER else DummyClassifier()
    model = baseline.model
    steps = [clone(step) for step in (list(model) if isinstance(model, Pipeline) else [model])]
    if encoder is not None:
        steps.insert(0, clone(encoder))
    elif scipy.sparse.issparse(X):
        steps.insert(0, FunctionTransformer(_written_out, accept_sparse=True))
    elif is_frame(X) and texts(X) is not None:
        steps[0] = make_column_transformer((steps[0], str(X.columns[0])))
    return make_pipeline(*steps) if len(steps) > 1 else steps[0]


def _written_out(X):
    """A sparse matrix as a dense one, for models that take no other."""
    return X.toarray()


def baseline_code(baseline, encoder, X):
    """A few lines that make and fit the same ordinary model."""
    made = baseline_pipeline(baseline, encoder, X)
    steps = list(made) if isinstance(made, Pipeline) else [made]
    rows = "X"
    if isinstance(steps[0], FunctionTransformer):
        steps, rows = steps[1:], "X.toarray()"
    used: dict[str, set[str]] = {}
    for step in steps:
        for part in (step, *step.get_params(deep=True).values()):
            if isinstance(part, BaseEstimator):
                # sklearn.linear_model._logistic -> sklearn.linear_model; mercer's own -> mercer
                module = re.sub(r"\._.*|(?<=^mercer)\..*", "", type(part).__module__)
                used.setdefault(module, set()).add(type(part).__name__)
    model = ", ".join(map(one_line, steps))
    if len(steps) > 1:
        used.setdefault("sklearn.pipeline", set()).add("make_pipeline")
        model = f"make_pipeline({model})"
    lines = [f"from {name} import {', '.join(sorted(used[name]))}" for name in sorted(used)]
    return "\n".join([*lines, f"model = {model}.fit({rows}, y)"])


def code(space, task, encoder, n_rows, equal_classes=0):
    """A few lines that make and fit the same pipeline."""
    model = pipeline(space, task, encoder, n_rows, equal_classes)
    kernel = one_line((model if encoder is None else model[-1]).kernel)
    lines = []
    if task == CLASSES:
        n = equal_classes
        priors = f", priors=[1 / {n}] * {n}" if n else ""
        made = f"KernelDiscriminant(kernel={kernel}, shrinkage={space.shrinkage!r}{priors})"
    else:
        lines.append("from sklearn.linear_model import Ridge")
        made = f"Kernelized(Ridge(alpha={space.alpha!r}), {kernel})"
    if encoder is not None:
        lines.append("from sklearn.pipeline import make_pipeline")
        made = f"make_pipeline({one_line(encoder)}, {made})"
    lines.append(imported(made))
    return "\n".join([*lines, f"model = {made}.fit(X, y)"])


def imported(text):
    """The line that imports what a piece of code calls from this library."""
    from ... import __all__ as public

    used = set(re.findall(r"\b\w+(?=\()", text)) & set(public)
    # Constants first, then classes, as formatters sort them.
    ordered = sorted(used, key=lambda name: (not name.isupper(), name))
    return f"from mercer import {', '.join(ordered)}"


def one_line(value):
    return re.sub(r"\s*\n\s*", " ", repr(value))
