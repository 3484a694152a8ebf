"""Rows of Fourier coordinates: very many points in one or two columns.

The other contender is mercer's own landmark map: no other library is compared here.
`python -m benchmarks.fourier --rows 1e9` is the row that is too long for the table: points are made
chunk by chunk, added up, and forgotten.
"""

import argparse
import resource
import time

import numpy as np

from .harness import row

# A length scale of 0.1 on the unit square.
GAMMA, ALPHA = 50.0, 1.0
SOME = 200


def field(X):
    """What is to be found again."""
    return np.sin(8 * X[:, 0]) * np.cos(6 * X[:, -1])


def points(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    return X, field(X) + rng.normal(size=n)


def _plane():
    from mercer import RBF

    return RBF(GAMMA)


def _series():
    from mercer import Matern

    return Matern(1.5, 0.1)


def _fourier(tol):
    def mercer(data):
        from mercer import KernelMap, KernelRidge

        kernel, X, y = data
        chosen = KernelMap(kernel, basis="fourier", tol=tol)

        def call():
            model = KernelRidge(ALPHA, chosen).fit(X, y)
            return model, model.predict(X)

        return call

    return mercer


def _landmarks(data):
    from mercer import KernelMap, KernelRidge

    kernel, X, y = data
    chosen = KernelMap(kernel, tol=1e-8, max_rank=1000)

    def call():
        model = KernelRidge(ALPHA, chosen).fit(X, y)
        return model, model.predict(X)

    return call


def _accuracy(data, result):
    """Distance from the exact answer on all these rows, at most, and from the field.

    For any f let a = (y - f) / alpha and s = f - K a. Then f - f* = alpha (K + alpha I)^-1 s at the
    rows, so the root mean square of f - f* is at most that of s, which some rows estimate.
    """
    kernel, X, y = data
    model, predicted = result
    some = np.random.default_rng(1).choice(len(X), SOME, replace=False)
    summed = kernel(X[some], X) @ ((y - predicted) / ALPHA)
    return {
        "rms from exact, at most": float(np.sqrt(np.mean((predicted[some] - summed) ** 2))),
        "rmse": float(np.sqrt(np.mean((predicted - field(X)) ** 2))),
        "coordinates": float(model.kernel_map_.rank_),
    }


@row(
    title="10^6 points in the plane, RBF length 0.1, noise 1: fit and 10^6 predictions",
    contenders={"mercer": _fourier(1e-8), "mercer, landmarks": _landmarks},
    accuracy=_accuracy,
    repeats=2,
    rounds=1,
    quick=False,
    note="at most 3 s on two cores",
)
def fourier_plane(quick):
    return (_plane(), *points(100_000 if quick else 1_000_000, 2))


@row(
    title="10^7 points in the plane, the same",
    contenders={"mercer": _fourier(1e-8)},
    accuracy=_accuracy,
    repeats=1,
    rounds=1,
    quick=False,
    note="at most 15 s on two cores",
)
def fourier_plane_large(quick):
    return (_plane(), *points(1_000_000 if quick else 10_000_000, 2))


@row(
    title="10^6 samples of a time series, Matern-3/2, tol 1e-6",
    contenders={"mercer": _fourier(1e-6)},
    accuracy=_accuracy,
    repeats=2,
    rounds=1,
    quick=False,
    note="at most 2 s on two cores",
)
def fourier_series(quick):
    return (_series(), *points(100_000 if quick else 1_000_000, 1))


def _ridge(**options):
    def mercer(data):
        from mercer import KernelRidge

        kernel, X, y = data

        def call():
            model = KernelRidge(ALPHA, kernel, **options).fit(X, y)
            return model, model.predict(X)

        return call

    return mercer


def _residual(data, result):
    """y - f - alpha a at some rows, f as the sum of kernels and as predicted."""
    kernel, X, y = data
    model, predicted = result
    some = np.linspace(0, len(X) - 1, 200).astype(int)
    summed = kernel(X[some], X) @ model.dual_coef_
    left = y[some] - ALPHA * model.dual_coef_[some]
    return {
        "residual": float(np.abs(left - summed).max()),
        "of predictions": float(np.abs(left - predicted[some]).max()),
        "form fourier": float(model.form_ == "fourier"),
    }


@row(
    title="KernelRidge(form='auto'), 20 000 points in the plane, RBF: fit and 20 000 predictions",
    contenders={
        "mercer": _ridge(),
        "mercer, iterative": _ridge(form="iterative", tol=1e-8),
    },
    accuracy=_residual,
    repeats=2,
    rounds=1,
    quick=False,
    note="what 'auto' takes, and what it took before: both to eight digits",
)
def fourier_auto(quick):
    return (_plane(), *points(8_000 if quick else 20_000, 2))


@row(
    title="KernelRidge(form='auto'), 10^6 points in the plane, Matern-3/2: fit and predictions",
    contenders={"mercer": _ridge()},
    accuracy=_residual,
    repeats=1,
    rounds=1,
    quick=False,
    note="residuals of at most 1e-4 of y; the iterative form would take hours",
)
def fourier_auto_rough(quick):
    return (_series(), *points(100_000 if quick else 1_000_000, 2))


def main(argv=None):
    """A stream that is made on the fly: time, memory, and the error of the field."""
    from mercer import Chunks, KernelMap, KernelRidge

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--chunk", type=float, default=2e6)
    options = parser.parse_args(argv)
    n, chunk = int(options.rows), int(options.chunk)
    sizes, making = [min(chunk, n - a) for a in range(0, n, chunk)], [0.0, 0.0]

    def pairs():
        """(points, targets), chunk by chunk; the time that making them takes is noted."""
        for seed, size in enumerate(sizes):
            start, cpu = time.perf_counter(), time.process_time()
            pair = points(size, 2, seed)
            making[0] += time.perf_counter() - start
            making[1] += time.process_time() - cpu
            yield pair

    start, cpu = time.perf_counter(), time.process_time()
    model = KernelRidge(ALPHA, KernelMap(_plane(), basis="fourier")).fit(Chunks(pairs))
    took, used = time.perf_counter() - start, time.process_time() - cpu
    Z = np.random.default_rng(0).uniform(0.01, 0.99, size=(100_000, 2))
    error = float(np.sqrt(np.mean((model.predict(Z) - field(Z)) ** 2)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{n:.2g} rows in chunks of {chunk:.2g}, {model.kernel_map_.rank_} coordinates: "
        f"{took:.1f} s, of which making the points twice takes {making[0]:.1f} s; the fit itself "
        f"{took - making[0]:.1f} s, {1e6 * (took - making[0]) / n:.3f} microseconds per row "
        f"({1e6 * (used - making[1]) / n:.3f} of CPU time); at most {peak:.2f} GB of memory; root "
        f"mean squared error of the field {error:.2g}"
    )


if __name__ == "__main__":
    main()
