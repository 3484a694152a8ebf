"""`python -m benchmarks.levels_of_tests`: how often tests raise an alarm, with and without cause.

Level: both samples come from one distribution, and the share of alarms at 5 % is counted. Power:
they do not, and the share is compared with hyppo's MMD on the same samples. Errors: level and power
of every test where one cell in a hundred is -9999, and where columns have the tails of a Cauchy
distribution; and how many rows like the reference a DriftDetector marks. Results are printed as
they come, and written as JSON; docs/contribute/tested.md shows them.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

LEVEL = 0.05
# A permutation test is exact for any number of permutations; a few are enough to count alarms.
PERMUTATIONS = 199


# --- samples that are alike -----------------------------------------------------------------------


def alarm_two_samples(n, d, max_rank, seed):
    """Whether two samples of one distribution, normal or (odd seeds) skewed, are told apart."""
    from mercer import KernelMap, two_sample_test

    rng = np.random.default_rng([n, d, seed])
    draw = rng.exponential if seed % 2 else rng.normal
    X, Y = draw(size=(n, d)), draw(size=(n, d))
    kernel = "rbf" if max_rank is None else KernelMap("rbf", max_rank=max_rank, pivots="random")
    return two_sample_test(X, Y, kernel, n_permutations=PERMUTATIONS, random_state=seed).differs


def alarm_of_reference(n, d, max_rank, seed):
    """The two-sample test written down once more: exact kernel matrices, rows permuted one by one.

    Only the way in which scales are combined is the library's (`judge`). Its samples are those of
    `alarm_two_samples`; `max_rank` has no meaning here.
    """
    from mercer.statistics.permutations import judge

    rng = np.random.default_rng([n, d, seed])
    draw = rng.exponential if seed % 2 else rng.normal
    X, Y = draw(size=(n, d)), draw(size=(n, d))
    Z, scales = np.concatenate([X, Y]), (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    squared = ((Z[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2) / (d * Z.var())
    signs = np.repeat([1.0, -1.0], n)
    signs = np.stack([signs, *(rng.permutation(signs) for _ in range(PERMUTATIONS))])
    mmd = [((signs @ np.exp(-squared / s**2)) * signs).sum(axis=1) / n**2 for s in scales]
    return judge(np.stack(mmd, axis=1), LEVEL, scales).p_value <= LEVEL


def alarm_independence(n, d, max_rank, seed):
    """Whether independent columns are taken for dependent."""
    from mercer import KernelMap, independence_test

    rng = np.random.default_rng([n, d, seed])
    draw = rng.exponential if seed % 2 else rng.normal
    X, Y = draw(size=(n, d)), draw(size=(n, d))
    kernel = "rbf" if max_rank is None else KernelMap("rbf", max_rank=max_rank, pivots="random")
    return independence_test(X, Y, kernel, n_permutations=PERMUTATIONS, random_state=seed).differs


# --- samples that differ --------------------------------------------------------------------------


def shifted(rng, n):
    """One of five means is moved."""
    X, Y = rng.normal(size=(n, 5)), rng.normal(size=(n, 5))
    Y[:, 0] += 0.17
    return X, Y


def wider(rng, n):
    """All five columns have a larger spread."""
    return rng.normal(size=(n, 5)), 1.08 * rng.normal(size=(n, 5))


def correlated(rng, n):
    """Two of five columns are correlated."""
    X, Y = rng.normal(size=(n, 5)), rng.normal(size=(n, 5))
    Y[:, 1] = 0.35 * Y[:, 0] + np.sqrt(1 - 0.35**2) * Y[:, 1]
    return X, Y


def heavy_tailed(rng, n):
    """The same means and variances, with heavier tails."""
    return rng.normal(size=(n, 3)), rng.standard_t(6, size=(n, 3)) * np.sqrt(4 / 6)


def mixed(rng, n):
    """Four in a hundred rows come from a small group apart."""
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    apart = rng.random(n) < 0.04
    Y[apart] = 2.0 + 0.2 * rng.normal(size=(apart.sum(), 2))
    return X, Y


ALTERNATIVES = {f.__name__: f for f in (shifted, wider, correlated, heavy_tailed, mixed)}


def alarms_power(name, n, seed):
    """(mercer, hyppo): who tells the samples apart."""
    from hyppo.ksample import MMD

    from mercer import two_sample_test

    X, Y = ALTERNATIVES[name](np.random.default_rng([n, seed]), n)
    ours = two_sample_test(X, Y, n_permutations=PERMUTATIONS, random_state=seed).differs
    return bool(ours), bool(MMD().test(X, Y)[1] <= LEVEL)


# --- gross errors and heavy tails -----------------------------------------------------------------


def clean(rng, size):
    return rng.normal(size=size)


def error_codes(rng, size):
    """One cell in a hundred is -9999."""
    return np.where(rng.random(size) < 0.01, -9999.0, rng.normal(size=size))


def cauchy(rng, size):
    return rng.standard_cauchy(size=size)


def alarm_of(test, design, moved, seed):
    """Whether a test speaks: of a first column moved by 0.6 of its interquartile range (of 200 rows
    of 5 columns), or of one whose sign the second variable follows; of nothing where `moved` is
    False."""
    from mercer import DriftDetector, independence_test, two_sample_test

    rng = np.random.default_rng([seed, moved])
    draw, options = DESIGNS[design], {"n_permutations": PERMUTATIONS, "random_state": seed}
    X, Y = draw(rng, (200, 5)), draw(rng, (200, 5))
    if test == "independence":
        Y = Y[:, :1] + (np.sign(X[:, :1]) if moved else 0.0)
        return bool(independence_test(X, Y, **options).differs)
    Y[:, 0] += moved * (1.2 if design == "cauchy" else 0.8)
    if test == "two-sample":
        return bool(two_sample_test(X, Y, **options).differs)
    return bool(DriftDetector(**options).fit(X).test(Y).differs)


def share_marked(n, seed):
    """The share of new rows that a DriftDetector fitted on n rows like them marks."""
    from mercer import DriftDetector

    rng = np.random.default_rng([n, seed])
    detector = DriftDetector(n_permutations=PERMUTATIONS, random_state=seed)
    return float(
        (detector.fit(rng.normal(size=(n, 3))).predict(rng.normal(size=(500, 3))) < 0).mean()
    )


DESIGNS = {f.__name__: f for f in (clean, error_codes, cauchy)}


# --- the tables -----------------------------------------------------------------------------------


def count(job, options):
    """The answers of job(seed) for so many seeds."""
    seeds = range(options.first_seed, options.first_seed + options.simulations)
    if options.workers == 1:
        return [job(seed) for seed in seeds]
    with ProcessPoolExecutor(options.workers) as pool:
        return list(pool.map(job, seeds, chunksize=10))


def standard_error(share, simulations):
    return (share * (1 - share) / simulations) ** 0.5


def levels(options, save):
    tests = {
        "two-sample": alarm_two_samples,
        "independence": alarm_independence,
        "reference": alarm_of_reference,
    }
    for test, alarm in tests.items():
        if test not in options.tests:
            continue
        for n in options.n:
            for d in options.d:
                for max_rank in options.max_rank:
                    start = time.perf_counter()
                    job = partial(alarm, n, d, max_rank)
                    share = float(np.mean(count(job, options)))
                    line = {"test": test, "n": n, "d": d, "max_rank": max_rank, "level": share}
                    line["simulations"] = options.simulations
                    save(line)
                    print(
                        f"{test:13} n = {n:5}, d = {d:3}, rank {max_rank or 'usual':>5}: "
                        f"{100 * share:5.2f} % of {options.simulations} "
                        f"(± {100 * standard_error(0.05, options.simulations):.2f})"
                        f"  {time.perf_counter() - start:.0f} s",
                        flush=True,
                    )


def power(options, save):
    for name in ALTERNATIVES:
        job = partial(alarms_power, name, 500)
        answers = np.array(count(job, options), dtype=float)
        ours, theirs = answers.mean(axis=0)
        noise = (answers[:, 0] - answers[:, 1]).std() / len(answers) ** 0.5
        save(
            {"alternative": name, "mercer": ours, "hyppo": theirs, "noise": noise}
            | {"simulations": options.simulations}
        )
        print(
            f"{name:13} mercer {ours:.3f}, hyppo {theirs:.3f}, difference {ours - theirs:+.3f} "
            f"± {noise:.3f} ({options.simulations} pairs of samples)",
            flush=True,
        )


def errors(options, save):
    for test in ("two-sample", "independence", "drift"):
        for design in DESIGNS:
            shares = [
                float(np.mean(count(partial(alarm_of, test, design, moved), options)))
                for moved in (False, True)
            ]
            line = {"test": test, "design": design, "level": shares[0], "power": shares[1]}
            save(line | {"simulations": options.simulations})
            print(
                f"{test:13} {design:12} false alarms {100 * shares[0]:5.1f} %, found "
                f"{100 * shares[1]:5.1f} % of {options.simulations}",
                flush=True,
            )
    for n in (38, 80, 400):
        share = float(np.mean(count(partial(share_marked, n), options)))
        save({"reference": n, "marked": share, "simulations": options.simulations})
        print(f"rows marked with a reference of {n}: {100 * share:.1f} %", flush=True)


TABLES = {"levels": levels, "power": power, "errors": errors}


def main(argv=None):
    parser = argparse.ArgumentParser(prog="benchmarks.levels_of_tests", description=__doc__)
    parser.add_argument("what", choices=[*TABLES], nargs="?", default="levels")
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=0, help="for other samples")
    parser.add_argument("--tests", nargs="+", default=["two-sample", "independence"])
    parser.add_argument("--n", type=int, nargs="+", default=[50, 200, 2000])
    parser.add_argument("--d", type=int, nargs="+", default=[1, 5, 50])
    parser.add_argument(
        "--max-rank",
        nargs="+",
        default=[None, 30],
        type=lambda text: None if text == "usual" else int(text),
        help="ranks of the maps, or 'usual'",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, default=Path("bench-output"))
    options = parser.parse_args(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    path, lines = options.output / f"{options.what}_of_tests.json", []

    def save(line):
        lines.append(line)
        path.write_text(json.dumps(lines, indent=1))

    TABLES[options.what](options, save)
    print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
