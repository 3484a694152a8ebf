"""How often `compare_kernels` claims a difference that is not there, and finds one that is.

    python -m benchmarks.compare_level               # all of it, about an hour on one core
    python -m benchmarks.compare_level --sets 20     # a quick look

Level: the share of data sets without any difference on which a claim is made. Three kinds of data:
"coins", classes that nothing predicts (any claim among five kernels and three ordinary models is
false); "noise", numbers that nothing predicts (any claim that a model beats the mean is false); and
"twins", two kernels that see one half each of exchangeable columns (any claim is false).

Power: the share of data sets on which the better of two kernels is found, where the true balanced
accuracies differ by 5 points (0.85 and 0.80), the errors of both being nearly independent or mostly
shared. It is given for two kernels alone and for two among eight models.
"""

import argparse
import warnings

import numpy as np
from scipy.stats import beta

from mercer import RBF, Linear, OnColumns, compare_kernels
from mercer.explore.compare.verdict import _paired_difference

ROWS, COLUMNS = 200, 4
# Distances of class means, in standard deviations, that give accuracies 0.85 and 0.80.
NEAR, FAR = 1.683, 2.073


def coins(rng):
    """Classes that nothing predicts."""
    return rng.normal(size=(ROWS, COLUMNS)), rng.integers(0, 2, ROWS)


def noise(rng):
    """Numbers that nothing predicts."""
    return rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=ROWS)


def claims_anything(comparison):
    """Whether any difference between any two models is called more than noise."""
    contest = comparison.contest
    models = [*contest.valid, *contest.baselines]
    return any(contest.beats(a, b) for a in models for b in models)


def claims_prediction(comparison):
    """Whether any model is said to beat the mean. (That one predicts worse may well be true.)"""
    contest = comparison.contest
    models = [*contest.valid, *contest.baselines]
    return any(contest.beats(model, contest.constant) for model in models)


def twins(rng):
    """A target that depends on two pairs of columns in the same way."""
    X = rng.normal(size=(ROWS, 4))
    y = np.sin(X[:, 0]) + X[:, 1] + np.sin(X[:, 2]) + X[:, 3] + 0.5 * rng.normal(size=ROWS)
    return X, y


# name -> (data, kernels, whether ordinary models take part, what would be a false claim)
NULLS = {
    "coins": (coins, None, True, claims_anything),
    "noise": (noise, None, True, claims_prediction),
    "twins": (
        twins,
        {"first": OnColumns(RBF(0.2), [0, 1]), "second": OnColumns(RBF(0.2), [2, 3])},
        False,
        claims_anything,
    ),
}


def level(name, sets, seed):
    """Number of false claims on null data; a line on the way for every 25 data sets."""
    make, kernels, baselines, claim = NULLS[name]
    false = 0
    for i in range(sets):
        X, y = make(np.random.default_rng([seed, i]))
        comparison = compare_kernels(
            X, y, kernels, embeddings=[], baselines=baselines, random_state=i
        )
        false += claim(comparison)
        if (i + 1) % 25 == 0 or i + 1 == sets:
            low, high = interval(false, i + 1)
            print(
                f"false claims, {name}, n = {ROWS}: {false} of {i + 1} "
                f"({100 * low:.1f} to {100 * high:.1f} %)",
                flush=True,
            )


def apart(rng, n, shared):
    """Two columns with class means FAR and NEAR apart, and noises of correlation `shared`."""
    y = np.arange(n) % 2
    noise = rng.normal(size=(n, 2))
    noise[:, 1] = shared * noise[:, 0] + (1 - shared**2) ** 0.5 * noise[:, 1]
    return noise + y[:, None] * [FAR, NEAR], y


def power(sets, seed, n, shared):
    """Shares of data sets on which the better kernel is found: alone, and among eight models."""
    kernels = {"better": OnColumns(Linear(), [0]), "worse": OnColumns(Linear(), [1])}
    found = np.zeros(2)
    for i in range(sets):
        X, y = apart(np.random.default_rng([seed, n, i]), n, shared)
        comparison = compare_kernels(X, y, kernels, embeddings=[], baselines=False, random_state=i)
        folds = {space.name: space.folds for space in comparison.spaces}
        overlap = comparison.contest.overlap
        for j, n_models in enumerate((2, 8)):
            difference = _paired_difference(folds["better"], folds["worse"], overlap, n_models)
            found[j] += difference.mean > difference.margin
    return found / sets


def interval(count, sets):
    """95 % interval of a share (Clopper and Pearson)."""
    low = beta.ppf(0.025, count, sets - count + 1) if count else 0.0
    return low, beta.ppf(0.975, count + 1, sets - count) if count < sets else 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=200, help="data sets of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=[*NULLS, "power"], help="one part only")
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    for name in NULLS:
        if arguments.part in (None, name):
            level(name, arguments.sets, arguments.seed)
    if arguments.part in (None, "power"):
        for n, sets in ((200, arguments.sets), (1000, max(1, arguments.sets // 2))):
            for shared in (0.0, 0.9):
                alone, among = power(sets, arguments.seed, n, shared)
                print(
                    f"power, 5 points, n = {n}, shared noise {shared:g}: {100 * alone:.0f} % "
                    f"(two kernels), {100 * among:.0f} % (among eight models); {sets} data sets",
                    flush=True,
                )


if __name__ == "__main__":
    main()
