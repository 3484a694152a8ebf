"""`python -m benchmarks.honest_errors`: is the error that a model prints that of new rows?

Each design is drawn several times; the model's own error (`leave_one_out_rmse_`, or the share of
wrong classes) and the share of new rows in its 90 % intervals are compared with new rows. Hidden is
the table of MATH.md section 13: three of 32 columns matter, and none says anything alone.
"""

import argparse
import time
import warnings

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
    "weak 820 x 40": (weak, 820, 0),
    "coins 450 x 8": (coins, 450, 0),
    "no copies": (smooth, 300, 0),
    "half repeated": (smooth, 300, 150),
    "all repeated": (smooth, 300, 300),
    "rows far out": (far_out, 300, 0),
    "hidden": (hidden, 6300, 0),
}
NEW_ROWS = 1000


def judged(name, seed):
    """(printed, on new rows, share of new rows in 90 % intervals, of predicting the mean)."""
    from mercer import KernelClassifier, KernelRegressor

    draw, n, repeated = DESIGNS[name]
    rng = np.random.default_rng([seed, n])
    X, y = draw(rng, n + NEW_ROWS)
    X, new, y, truth = X[:n], X[n:], y[:n], y[n:]
    X, y = np.concatenate([X, X[:repeated]]), np.concatenate([y, y[:repeated]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "knows nothing" is expected of noise
        if draw is coins:
            model = KernelClassifier().fit(X, y)
            wrong = float(np.mean(model.predict(new) != truth))
            return 1 - model.leave_one_out_accuracy_, wrong, np.nan, 0.5
        model = KernelRegressor().fit(X, y)
    value, std = model.predict(new, return_std=True)
    inside = float(np.mean(np.abs(value - truth) <= 1.645 * std))
    error = float(np.sqrt(np.mean((value - truth) ** 2)))
    return model.leave_one_out_rmse_, error, inside, float(truth.std())


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("designs", nargs="*", help=f"some of: {', '.join(DESIGNS)}")
    parser.add_argument("--simulations", type=int, default=10)
    options = parser.parse_args(argv)
    print("design            printed   new rows  inside   of the mean   seconds")
    for name in options.designs or DESIGNS:
        for seed in range(options.simulations):
            start = time.process_time()
            printed, error, inside, mean = judged(name, seed)
            spent = time.process_time() - start
            print(
                f"{name:16} {printed:8.3f} {error:10.3f} {inside:8.2f} {mean:12.3f} {spent:10.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
