"""Small tables over ten splits: mean errors, with paired differences and their standard errors.

    MERCER_BENCH_DATA=folder python -m benchmarks.table_splits
    python -m benchmarks.table_splits --only concrete ionosphere --contenders mercer "SVM tuned"

Every result is written as soon as it is known, and results that are there already are not computed
again: a run that was stopped goes on where it ended. Regression tables are split as
uci/NAME_test_mask.csv.gz says, and their errors are on standardised targets. Tables with classes
(files *Name*.csv.gz) are split at random, stratified, 80 to 20. The tables that scikit-learn brings
need no files: diabetes, wine, breast_cancer, digits.
"""

import argparse
import csv
import gzip
import json
import sys
import time
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from . import tables

REGRESSION = ("concrete", "airfoil", "energy", "diabetes")
CLASSES = ("ionosphere", "sonar", "vowel", "wine", "breast_cancer", "digits")
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
        found.pop("xRFM")
    return found


def measured(name, split, contender):
    task = "regression" if name in REGRESSION else "classes"
    X, y, X_test, y_test = loaded(name, split)
    # Folds of the peers' searches take rows in their order: a sorted table would mislead them.
    order = np.random.default_rng(split).permutation(len(X))
    data = X[order], y[order], X_test, y_test
    start = time.perf_counter()
    result = contenders(task)[contender](data)()
    return tables.accuracy_of(data, result) | {"wall_s": time.perf_counter() - start}


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
        yield f"| {name} ({len(runs)} splits) | {contender} | {mean:.4f} | {against} | {cpu:.1f} |"


def table(found):
    head = ["| table | model | error or accuracy | minus mercer, ± s.e. | CPU seconds |"]
    head.append("|---|---|---|---|---|")
    names = dict.fromkeys(n for n, _, _ in found)
    return "\n".join(head + [line for name in names for line in summary(found, name)])


def main(argv=None):
    parser = argparse.ArgumentParser(prog="benchmarks.table_splits", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[*REGRESSION, *CLASSES])
    parser.add_argument("--contenders", nargs="+")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("bench-output/table_splits.json"))
    options = parser.parse_args(argv)
    found = {}
    if options.output.exists():
        found = {tuple(k): r for k, r in json.loads(options.output.read_text())}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        task = "regression" if name in REGRESSION else "classes"
        if not _is_there(name):
            print(f"left out: {name} (no file in MERCER_BENCH_DATA)", file=sys.stderr)
            continue
        for split in range(options.splits):
            for contender in options.contenders or contenders(task):
                if (name, split, contender) in found:
                    continue
                try:
                    result = measured(name, split, contender)
                except ModuleNotFoundError as error:
                    print(f"left out: {contender} ({error})", file=sys.stderr)
                    continue
                found[name, split, contender] = result
                options.output.write_text(json.dumps([[list(k), r] for k, r in found.items()]))
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
