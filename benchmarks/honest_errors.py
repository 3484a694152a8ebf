"""`python -m benchmarks.honest_errors`: is the error that a model prints that of new rows?

Each design is drawn several times; the R2 or accuracy that the model prints of rows left out is
compared with that of new rows, and the share of these inside its 90 % intervals is counted. Hidden
is the table of MATH.md section 13: three of 32 columns matter, and none says anything alone.
docs/contribute/tested.md shows the results.
"""

import argparse
import time
import warnings
from functools import partial

import numpy as np


def noise(rng, n, d=40):
    return rng.normal(size=(n, d)), rng.normal(size=n)


def weak(rng, n, d=40):
    """True R2 of 0.2."""
    X = rng.normal(size=(n, d))
    return X, 0.5 * X[:, 0] + rng.normal(size=n)


def coins(rng, n, d=8):
    return rng.normal(size=(n, d)), rng.choice(["a", "b"], size=n)


def smooth(rng, n, d=4):
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=n)


def far_out(rng, n, d=1):
    X = np.exp(2 * rng.normal(size=(n, d)))
    return X, np.log(X[:, 0]) + 0.3 * rng.normal(size=n)


def hidden(rng, n, d=32):
    X = rng.uniform(-1, 1, size=(n, d))
    f = np.sin(3 * X[:, 4]) * np.cos(3 * X[:, 15]) * X[:, 3]
    return X, f / f.std() + 0.2 * rng.normal(size=n)


# name: how rows are drawn, how many of them, and how many are repeated.
DESIGNS = {
    "noise 800 x 40": (noise, 800, 0),
    "noise 820 x 40": (noise, 820, 0),
    "weak 800 x 40": (weak, 800, 0),
    "weak 820 x 40": (weak, 820, 0),
    "coins 220 x 4": (partial(coins, d=4), 220, 0),
    "coins 450 x 8": (coins, 450, 0),
    "no copies": (smooth, 300, 0),
    "half repeated": (smooth, 300, 150),
    "all repeated": (smooth, 300, 300),
    "rows far out": (far_out, 300, 0),
    "hidden": (hidden, 6300, 0),
}
NEW_ROWS = 1000


def judged(name, seed):
    """(printed score, score on new rows, share inside 90 % intervals, whether it is beyond chance).

    The score is R2, or the accuracy for classes. Whether a score is beyond chance is asked of coins
    alone: two standard errors above one half, as one set in twenty has it by predicting the larger
    class.
    """
    from mercer import KernelClassifier, KernelRegressor

    draw, n, repeated = DESIGNS[name]
    rng = np.random.default_rng([seed, n])
    X, y = draw(rng, n + NEW_ROWS)
    X, new, y, truth = X[:n], X[n:], y[:n], y[n:]
    X, y = np.concatenate([X, X[:repeated]]), np.concatenate([y, y[:repeated]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "knows nothing" is expected of noise
        if y.dtype.kind == "U":
            classifier = KernelClassifier().fit(X, y)
            printed = classifier.leave_one_out_accuracy_
            limit = 0.5 + 1.96 * 0.5 / len(classifier.left_out_) ** 0.5
            return printed, np.mean(classifier.predict(new) == truth), np.nan, printed > limit
        model = KernelRegressor().fit(X, y)
    value, std = model.predict(new, return_std=True)
    inside = np.mean(np.abs(value - truth) <= 1.645 * std)
    printed = 1 - model.leave_one_out_rmse_**2 / np.var(y)
    return printed, 1 - np.mean((value - truth) ** 2) / np.var(truth), inside, np.nan


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("designs", nargs="*", help=f"some of: {', '.join(DESIGNS)}")
    parser.add_argument("--simulations", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=np.inf, help="no set begins after them")
    options = parser.parse_args(argv)
    start = time.monotonic()
    for name in options.designs or DESIGNS:
        found = []
        print(f"{name}\n  printed  new rows  inside   CPU s")
        for seed in range(options.simulations):
            if time.monotonic() - start > options.seconds:
                break
            began = time.process_time()
            found.append(judged(name, seed))
            printed, new, inside, _ = found[-1]
            spent = time.process_time() - began
            print(f"{printed:9.3f} {new:9.3f} {inside:7.2f} {spent:7.1f}", flush=True)
        if not found:
            continue
        printed, new, inside, beyond = np.array(found, dtype=float).T
        print(
            f"{len(found)} sets: printed {printed.mean():.3f} ({printed.min():.3f} to "
            f"{printed.max():.3f}), new rows {new.mean():.3f} ({new.min():.3f} to {new.max():.3f})"
            + (f", inside {inside.mean():.3f}" if np.isfinite(inside).all() else "")
            + (f", beyond chance {int(beyond.sum())}" if np.isfinite(beyond).all() else ""),
            flush=True,
        )


if __name__ == "__main__":
    main()
