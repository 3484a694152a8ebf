"""Small tables over ten splits: mean errors, with paired differences and their standard errors.

    MERCER_BENCH_DATA=folder python -m benchmarks.table_splits
    python -m benchmarks.table_splits --only concrete ionosphere --contenders mercer "SVM tuned"
    python -m benchmarks.table_splits --jobs 8
    python -m benchmarks.table_splits --only elevators bike pol kin40k --splits 1

Every result is written as soon as it is known, and results that are there already are not computed
again: a run that was stopped goes on where it ended. Regression tables are split as
uci/NAME_test_mask.csv.gz says, and their errors are on standardised targets. Tables with classes
(files *Name*.csv.gz) are split at random, stratified, 80 to 20. The tables that scikit-learn brings
need no files: diabetes, wine, breast_cancer, digits. The last lines say how many of the test rows
the 90 % intervals of KernelRegressor hold.
"""

import argparse
import csv
import gzip
import json
import sys
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn import datasets
from sklearn.model_selection import train_test_split

from . import tables

SMALL = ("concrete", "airfoil", "energy", "diabetes")
LARGE = ("elevators", "bike", "pol", "kin40k")  # where they are named, minutes for each split
REGRESSION = (*SMALL, *LARGE)
CLASSES = (
    *("ionosphere", "sonar", "vowel", "vehicle", "glass", "pima", "satellite"),
    *("wine", "breast_cancer", "digits"),
)
BUNDLED = {
    "diabetes": datasets.load_diabetes,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}


def _is_there(name):
    if name in BUNDLED:
        return True
    if name in REGRESSION:
        return (tables.folder() / f"uci/{name}.csv.gz").exists()
    return _file(name) is not None


def _file(name):
    pattern = f"*{name.capitalize()}*.csv.gz"
    return next(tables.folder().glob(pattern), None)


def _read(path):
    """(numbers, classes): columns that are not numbers, beside the class, are left out."""
    with gzip.open(path, "rt") as lines:
        cells = np.array(list(csv.reader(lines))[1:], dtype=object)
    numbers = [_as_numbers(column) for column in cells.T]
    kept = [j for j, column in enumerate(numbers) if column is not None]
    label = next(j for j in range(len(numbers) - 1, -1, -1) if j not in kept)
    # A first column that counts the rows says nothing.
    counting = np.array_equal(numbers[0], np.arange(1, len(cells) + 1)) if 0 in kept else False
    used = [j for j in kept if not (counting and j == 0)]
    X = np.column_stack([numbers[j] for j in used])
    return X[:, X.std(axis=0) > 0], cells[:, label].astype(str)


def _as_numbers(column):
    try:
        return column.astype(float)
    except ValueError:
        return None


def _tuned_ridge(data):
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV

    X = data[0]
    grid = {
        "alpha": 10.0 ** np.arange(-6, 1),
        "gamma": np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0]) / X.shape[1],
    }
    return tables.call(lambda: GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5), data)


def contenders(task):
    found = {name: tables.CONTENDERS[name] for name in tables.CONTENDERS}
    if task == "regression":
        found["RBF ridge tuned"] = _tuned_ridge
    else:
        for regression_only in ("xRFM", "HistGradientBoosting, 2000 trees"):
            found.pop(regression_only)
    return found


def measured(name, split, contender):
    """What one contender gives on one split; the reason, as a text, where it is not installed."""
    task = "regression" if name in REGRESSION else "classes"
    X, y, X_test, y_test = loaded(name, split)
    # Folds of the peers' searches take rows in their order: a sorted table would mislead them.
    order = np.random.default_rng(split).permutation(len(X))
    data = X[order], y[order], X_test, y_test
    start = time.perf_counter()
    try:
        found = (
            _with_coverage(data)
            if (contender, task) == ("mercer", "regression")
            else tables.accuracy_of(data, contenders(task)[contender](data)())
        )
    except ModuleNotFoundError as error:
        return str(error)
    return found | {"wall_s": time.perf_counter() - start}


def _with_coverage(data):
    """KernelRegressor, and the share of test rows that its 90 % intervals hold."""
    from mercer import KernelRegressor

    X, y, X_test, y_test = data
    start = time.process_time()
    value, std = KernelRegressor().fit(X, y).predict(X_test, return_std=True)
    result = tables.accuracy_of(data, (value, time.process_time() - start))
    return result | {"covered": float(np.mean(np.abs(value - y_test) <= 1.645 * std))}


def loaded(name, split):
    """(X, y, X_test, y_test), standardised for all contenders."""
    if name in REGRESSION and name not in BUNDLED:
        return tables.uci(name, split)
    X, y = BUNDLED[name](return_X_y=True) if name in BUNDLED else _read(_file(name))
    if name in REGRESSION:
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, random_state=split)
        return tables.standardised(X, y, X_test, y_test)
    y = y.astype(str)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=split)
    nothing = np.zeros(len(y)), np.zeros(len(y_test))
    X, _, X_test, _ = tables.standardised(X, nothing[0], X_test, nothing[1])
    return X, y, X_test, y_test


def summary(found, name):
    """Lines of Markdown: mean of each contender, and its paired difference from mercer."""
    label = "rmse" if name in REGRESSION else "accuracy"
    ours = {s: r[label] for (n, s, c), r in found.items() if (n, c) == (name, "mercer")}
    for contender in dict.fromkeys(c for n, _, c in found if n == name):
        runs = {s: r for (n, s, c), r in found.items() if (n, c) == (name, contender)}
        mean = np.mean([r[label] for r in runs.values()])
        cpu = np.mean([r["cpu_s"] for r in runs.values()])
        both = [s for s in runs if s in ours]
        paired = np.array([runs[s][label] - ours[s] for s in both])
        against = ""
        if contender != "mercer" and len(paired) > 1:
            against = f"{paired.mean():+.4f} ± {paired.std(ddof=1) / len(paired) ** 0.5:.4f}"
        splits = f"{len(runs)} splits" if len(runs) > 1 else "1 split"
        yield f"| {name} ({splits}) | {contender} | {mean:.4f} | {against} | {cpu:.1f} |"


def table(found):
    head = ["| table | model | error or accuracy | minus mercer, ± s.e. | CPU seconds |"]
    head.append("|---|---|---|---|---|")
    names = dict.fromkeys(n for n, _, _ in found)
    return "\n".join(head + [line for name in names for line in summary(found, name)])


def coverage(found):
    """One line per table: the share of test rows inside the 90 % intervals of KernelRegressor."""
    for name in dict.fromkeys(n for n, _, _ in found):
        shares = [r["covered"] for (n, _, _), r in found.items() if n == name and "covered" in r]
        if shares:
            share = f"{np.mean(shares):.1%}"
            if len(shares) > 1:
                share += f" ± {np.std(shares, ddof=1) / len(shares) ** 0.5:.1%}"
            yield f"{name}: 90 % intervals hold {share} of the test rows"


def read(path):
    if not path.exists():
        return {}
    return {tuple(key): result for key, result in json.loads(path.read_text())}


def missing(options, found):
    """(table, split, contender) that are asked for and not known."""
    for name in options.only:
        if not _is_there(name):
            print(f"left out: {name} (no file in MERCER_BENCH_DATA)", file=sys.stderr)
            continue
        known = contenders("regression" if name in REGRESSION else "classes")
        for split in range(options.splits):
            for contender in options.contenders or known:
                if contender in known and (name, split, contender) not in found:
                    yield name, split, contender


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="benchmarks.table_splits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", nargs="+", default=[*SMALL, *CLASSES], choices=[*REGRESSION, *CLASSES]
    )
    parser.add_argument("--contenders", nargs="+", choices=[*contenders("regression")])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="Processes, with one thread each.")
    parser.add_argument("--output", type=Path, default=Path("bench-output/table_splits.json"))
    options = parser.parse_args(argv)
    found = read(options.output)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for key, result in _results(list(missing(options, found)), options.jobs):
        if isinstance(result, str):
            print(f"left out: {key[2]} ({result})", file=sys.stderr)
            continue
        found[key] = result
        options.output.write_text(json.dumps([[list(k), r] for k, r in found.items()]))
    # In the order of the tables and contenders, whichever was known first.
    found = {key: found[key] for key in sorted(found, key=_place)}
    print(table(found), *coverage(found), sep="\n")
    return 0


def _results(keys, jobs):
    """(key, result) as they come."""
    with parallel_config("loky", inner_max_num_threads=1):
        work = Parallel(n_jobs=jobs, return_as="generator_unordered")
        yield from work(delayed(_one)(key) for key in keys)


def _one(key):
    return key, measured(*key)


def _place(key):
    name, split, contender = key
    return [*REGRESSION, *CLASSES].index(name), [*contenders("regression")].index(contender), split


if __name__ == "__main__":
    sys.exit(main())
