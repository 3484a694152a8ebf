"""Rows about tests: the same question answered by mercer and by hyppo, and a million rows."""

import numpy as np

from .harness import row


def _samples(n, d):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(n, d))
    Y[:, 0] += 0.1
    return rng.normal(size=(n, d)), Y


def _mercer(samples):
    from mercer import two_sample_test

    return lambda: two_sample_test(*samples, n_permutations=1000, random_state=0)


def _hyppo(samples):
    """The same question in the same way: permutations, on as many cores as everyone has."""
    from hyppo.ksample import MMD

    return lambda: MMD().test(*samples, reps=1000, auto=False, workers=-1, random_state=0)


def _hyppo_default(samples):
    """What its users run: no permutations, but an approximate distribution of the statistic."""
    from hyppo.ksample import MMD

    return lambda: MMD().test(*samples)


def _p_value(samples, result):
    return {"p-value": float(result[1] if isinstance(result, tuple) else result.p_value)}


@row(
    title="two-sample test, 500 + 500 rows, 5 columns, 1000 permutations",
    contenders={
        "mercer": _mercer,
        "hyppo MMD, 1000 permutations": _hyppo,
        "hyppo MMD, default (chi-square)": _hyppo_default,
    },
    accuracy=_p_value,
    target={"hyppo MMD, 1000 permutations": 10.0},
    repeats=3,
    rounds=1,
)
def two_sample_500(quick):
    return _samples(100 if quick else 500, 5)


@row(
    title="two-sample test, 10^6 + 10^6 rows, 10 columns, 1000 permutations",
    contenders={"mercer": _mercer},
    accuracy=_p_value,
    repeats=1,
    rounds=1,
    quick=False,
    note="no other test of this kind holds a million rows: 60 s and 2 GB are the aim",
)
def two_sample_million(quick):
    return _samples(1_000_000, 10)
