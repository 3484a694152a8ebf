"""Parameters that are one number or one per column, and those that the data decide."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import as_host, as_numpy, namespace, on_device_of, require
from .points import take

RULES = ("scale", "median")
# Pairs looked at by the median rule.
_SAMPLED_PAIRS = 1000


def per_column(*rules, positive: bool = True):
    """One finite positive number, one per column, or one of the named rules."""
    what = "a positive number" if positive else "a number"

    def check(name: str, value: Any, kernel: str) -> None:
        if isinstance(value, str):
            known = f" or one of {', '.join(map(repr, rules))}." if rules else "."
            message = f"{kernel}({name}={value!r}) is unknown; use a number{known}"
            return require(value in rules, message)
        try:
            values = as_numbers(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"{kernel}({name}) must be {what} or a list with one per column, got {value!r}."
            ) from None
        good = values.ndim <= 1 and values.size > 0 and not isinstance(value, bool)
        good = good and np.isfinite(values).all() and not (positive and (values <= 0).any())
        message = f"{kernel}({name}) must be {what} or one per column, all finite, got {value!r}."
        require(bool(good), message)

    return check


def is_one_number(*values):
    """Whether no value is one per column. The rules give one number, too."""
    return all(isinstance(value, str) or as_numbers(value).ndim == 0 for value in values)


def as_numbers(value: Any):
    """A parameter of any kind (number, list, array of any backend) as float64 of NumPy."""
    return np.asarray(as_host(value), dtype=float)


def checked_numbers(call: str, what: str, values: Any) -> np.ndarray:
    """As `as_numbers`, of a matrix A that must be finite; errors say which `call` needs `what`."""
    try:
        numbers: np.ndarray = as_numbers(values)
    except (TypeError, ValueError):
        raise ValueError(f"{call} needs {what} of numbers, got {values!r}.") from None
    require(bool(np.isfinite(numbers).all()), f"{call}: A contains NaN or infinity.")
    return numbers


def weighted_columns(X: Any, weights: Any):
    """X with each column multiplied by its weight (or all by one)."""
    weights = as_numbers(weights)
    if weights.ndim == 0:
        return X if weights == 1 else X * float(weights)
    weights = _weights_for(X, weights)
    if scipy.sparse.issparse(X):
        return (X @ scipy.sparse.diags_array(weights.astype(X.dtype))).tocsr()
    return X * on_device_of(weights, X)


def column_scale(X: Any, weights: Any):
    """Weights as a float, or as a float64 vector where X lives, checked against X's columns."""
    if as_numbers(weights).ndim == 0:
        return float(weights)
    weights = _weights_for(X, weights)
    if scipy.sparse.issparse(X):
        return weights
    return on_device_of(weights, X, dtype=namespace(X).float64)


def _weights_for(X, weights):
    weights = as_numbers(weights)
    require(
        weights.shape[0] in (1, X.shape[1]),
        f"{weights.shape[0]} per-column values were given for data with {X.shape[1]} columns: give "
        "one number, or one per column.",
    )
    return np.broadcast_to(weights, (X.shape[1],))


def gamma_from_data(rule: str, X: Any, weights: Any = None, *, absolute: bool = False):
    """The number behind gamma="scale" or "median"; 1.0 where the data have no spread.

    "scale" is 1 / (d * variance of all entries), as in scikit-learn's SVC; "median" is
    1 / (2 * median squared distance) over at most 1000 sampled pairs. For L1 kernels
    (`absolute`) mean absolute deviation and absolute distances take their places. A row of weight
    w counts as w rows.
    """
    if X.shape[0] == 1:
        return 1.0
    if weights is not None:
        weights = as_numbers(weights)
        if (weights == weights[0]).all() and (rule == "scale" or weights[0] == 1):
            weights = None
    spread_of = _scale_spread if rule == "scale" else _median_spread
    with np.errstate(over="ignore", invalid="ignore"):  # no finite spread is no spread
        spread = spread_of(X, weights, absolute)
    largest = float(namespace(X).finfo(X.dtype).max)  # a gamma that the data's precision can hold
    if 1 / largest < spread < np.inf:
        return 1.0 / spread
    apart = spread_of(X, weights, True) if spread < 1 else 0.0
    require(
        apart == 0,
        f"gamma={rule!r} underflows: {X.dtype} cannot square entries that are {apart:.1g} "
        f"apart. Scale the data, for example X / {apart:.1g}, or use float64.",
    )
    return 1.0


def _scale_spread(X, weights, absolute):
    n, d = X.shape
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    if scipy.sparse.issparse(X):
        X = X.tocsr()
        entries = scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        mean = (shares @ entries.sum(axis=1)) / d  # NumPy's number: its square may overflow
        if not absolute:
            return float(shares @ entries.power(2).sum(axis=1) - d * mean**2)
        # Stored entries, then the zeros between them.
        entries.data = np.abs(entries.data - mean)
        zeros = d - np.diff(entries.indptr)
        return float(shares @ (entries.sum(axis=1) + zeros * abs(mean)))
    xp = namespace(X)
    X = xp.astype(X, xp.float64)
    if bool(xp.all(X[0, 0] == X)):  # their mean may be off by rounding
        return 0.0
    if weights is None:
        return d * float(xp.mean(xp.abs(X - xp.mean(X))) if absolute else xp.var(X))
    shares = on_device_of(shares, X)
    apart = X - float(shares @ xp.mean(X, axis=1))
    return d * float(shares @ xp.mean(xp.abs(apart) if absolute else apart**2, axis=1))


def _median_spread(X, weights, absolute):
    n = X.shape[0]
    counts = None
    if n * (n - 1) // 2 <= _SAMPLED_PAIRS:
        i, j = np.triu_indices(n, 1)
        if weights is not None:  # a row of weight w makes w (w - 1) / 2 pairs with its copies
            own = np.arange(n)
            counts = np.concatenate([weights[i] * weights[j], weights * (weights - 1) / 2])
            i, j = np.concatenate([i, own]), np.concatenate([j, own])
            counts = np.maximum(counts, 0.0)
    else:
        rng = np.random.default_rng(0)  # a fixed sample: binding twice gives the same kernel
        if weights is None:
            i = rng.integers(n, size=_SAMPLED_PAIRS)
            j = (i + rng.integers(1, n, size=_SAMPLED_PAIRS)) % n
        else:
            i, j = rng.choice(n, size=(2, _SAMPLED_PAIRS), p=weights / weights.sum())
    difference = take(X, i) - take(X, j)
    difference = difference.toarray() if scipy.sparse.issparse(difference) else as_numpy(difference)
    difference = difference.astype(float)
    distances = (np.abs(difference) if absolute else difference**2).sum(axis=1)
    return 2 * (float(np.median(distances)) if counts is None else _median(distances, counts))


def _median(values, counts):
    """The median of values that are there so many times."""
    order = np.argsort(values)
    below = np.cumsum(counts[order])
    half = below[-1] / 2
    middle = np.searchsorted(below, [half * (1 - 1e-12), half * (1 + 1e-12)])
    return float(values[order][np.minimum(middle, len(values) - 1)].mean())


def rules_in(kernel: Any) -> Iterator[tuple[str, str]]:
    """Parameters such as gamma="scale", in the kernel and in all that it is made of."""
    for part in kernel.parts():
        for name, given in part.get_params(deep=False).items():
            if isinstance(given, str) and given in RULES:
                yield name, given
