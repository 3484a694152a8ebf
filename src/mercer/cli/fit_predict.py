"""`mercer fit` and `mercer predict`: from a file to a saved model, and from there to answers."""

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, f_classif, f_regression
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from typer import Argument, Option

from .. import KernelClassifier, KernelRegressor, TableEncoder, load, parse_kernel, save
from ..estimators import FOLDS, UNINFORMATIVE
from ..explore.compare.baselines import models_of_numbers
from ..explore.data import guessed_task
from ..export import Checkpoint
from ..kernels import listed
from ..tables import UNREAD, BadInput
from . import file_data, output
from .options import TABLE, Reading, command
from .patience import announce, signs_of_life
from .roles import in_time, last_fifth, take_roles

# Columns named in the list of importances.
_NAMED = 8
# Models to compare with, and the rows on which they are: a comparison, not a second model. Boosting
# grows a tree per class in every round, so that many classes take too long.
BOOSTING, LINEAR = "boosting", "linear"
COMPARED, COMPARED_CLASSES, COMPARED_COLUMNS = 5000, 30, 500
# Errors are smaller than others, beyond chance, from so many standard errors on.
_STANDARD_ERRORS = 2.0
# Columns that leave this share of the error may be the target in another form.
_LEAK = 0.01
# Columns are named up to this share of the importances.
_SHARE = 0.9


@command(
    "Examples:\n\n  mercer fit houses.csv --target price -o houses.mercer\n\n"
    "  mercer predict houses.mercer new.csv -o predictions.csv",
    file=TABLE,
    target="The column to predict.",
    model=Option("--output", "-o", help="The model to write."),
    kernel="A kernel to tune, such as 'RBF()'. Without it, one is chosen.",
    compare=Option(help="Also fit boosting and a linear model, to compare."),
    group="A column that names groups of rows: errors are those of new groups.",
    weights="A column that says how much each row counts.",
    time="A column of dates or numbers: also predict the last fifth of the rows.",
    max_rows=Option(min=10, help="Learn from at most so many rows, drawn at random: faster."),
)
def fit(
    file: Path,
    target: str,
    model: Path = Path("model.mercer"),
    task: str = "auto",
    kernel: str | None = None,
    compare: bool = True,
    group: str | None = None,
    weights: str | None = None,
    time: str | None = None,
    max_rows: int | None = None,
    json: bool = False,
    *,
    reading: Reading,
):
    """Learn a model from a table with nothing to tune, estimate its error, and save it."""
    file_data.check_outputs([file], [model])
    frame, notes = reading.frame(file, target)
    X, y = _split(frame, target, notes, max_rows)
    if task not in ("auto", "regression", "classification"):
        raise BadInput(f"--task must be auto, regression or classification, got {task!r}.")
    task = guessed_task(y, notes, "--task {}") if task == "auto" else task
    named = {"group": group, "weights": weights, "time": time}
    roles = take_roles(X, target, named, notes)
    X = roles.X
    chosen = parse_kernel(kernel) if kernel else None
    if chosen is not None and chosen.kind == "objects":
        raise BadInput(
            f"{chosen!r} compares texts, and mercer fit makes numbers of a table. mercer compare "
            "takes it, and fits its model with --save."
        )
    # A column of groups or weights is not among those that the encoder sees.
    given = reading.roles.items()
    kinds: Any = {kind: [name for name in names if name in X] for kind, names in given}
    made: Any = (KernelRegressor if task == "regression" else KernelClassifier)(
        chosen,
        verbose=not json and output.err.is_terminal,
        encoder=TableEncoder(**kinds) if any(kinds.values()) else None,
    )
    parts = Checkpoint(f"{model}.parts")
    if len(parts) and not json:
        output.say(
            f"{parts.folder} holds parts of a fit that did not end: one of the same table goes on "
            "from there."
        )
    fits = 1 if group is None else 1 + FOLDS
    expected = 0.0 if json else announce(made, len(X), fits)
    try:
        with signs_of_life(expected), warnings.catch_warnings():
            warnings.filterwarnings("ignore", UNINFORMATIVE)  # said first of all, below
            made.fit(X, y, roles.weights, roles.groups, checkpoint=parts)
    except ValueError as error:
        about_target = str(error).startswith(("y ", "y:", "Input y"))
        raise BadInput(f"the target {target!r}: {error}" if about_target else str(error)) from None
    save(made, model)
    parts.clear()
    ordered = in_time(roles, made.encoder_, y)
    facts = _facts(made, roles, y, task, compare)
    if ordered is not None:
        facts["last_fifth"] = last_fifth(made, roles, y, *ordered)
    notes += made.encoder_.notes()
    facts |= {"group": group, "weights": weights, "drawn": max_rows if len(y) == max_rows else None}
    facts |= {"rows": len(X), "target": target, "task": task, "model": str(model), "notes": notes}
    if json:
        output.as_json(facts)
        return
    output.notes(notes)
    code = _code(made, facts, file, reading, bool(frame[target].isna().any()))
    _print(facts, made, code)


@command(
    "Example:\n\n  mercer predict houses.mercer new.csv -o predictions.csv",
    kinds=False,
    model=Argument(help="A file that mercer fit or mercer compare --save has written."),
    file=Argument(help="New rows, with the columns of the training table."),
    out=Option("--output", "-o", help="Predictions: .csv, .tsv or .parquet."),
    trusted="A type that the model file may use, such as sklearn.svm.SVC; may be repeated. Only "
    "for files of people you trust: it can run code.",
)
def predict(
    model: Path,
    file: Path,
    out: Path = Path("predictions.csv"),
    trusted: list[str] | None = None,
    json: bool = False,
    *,
    reading: Reading,
):
    """Predict new rows with a saved model, with uncertainty or probabilities."""
    file_data.check_outputs([model, file], [], out)
    if not model.is_file():
        raise BadInput(f"the file {str(model)!r} does not exist.")
    fitted = load(model, trusted=trusted or [])
    if not hasattr(fitted, "predict") or not hasattr(fitted, "feature_names_in_"):
        raise BadInput(
            f"{model} holds a {type(fitted).__name__}, not a model of a table: mercer fit and "
            "mercer compare --save write those."
        )
    # The encoder of tables in a model of `mercer fit` or `mercer compare`.
    steps = [step for _, step in getattr(fitted, "steps", [])]
    found = [getattr(fitted, "encoder_", None), *steps[:1]]
    encoder = next((made for made in found if isinstance(made, TableEncoder)), None)
    wanted = [str(name) for name in fitted.feature_names_in_]
    of_texts = encoder is None and _compares_texts(fitted)
    if of_texts:  # as they are written, also where they are digits
        reading = replace(reading, category=wanted)
    frame, notes = reading.frame(file, like=encoder)
    given = set(frame.columns)
    missing = [name for name in wanted if name not in given]
    records = [] if encoder is None else encoder.columns_
    used = {record["name"] for record in records if record["outputs"]}
    if encoder is not None and missing and not used.intersection(missing):
        notes.append(f"columns that the model does not use are not there: {listed(missing)}")
        frame[missing] = np.nan
        missing = []
    if missing:
        raise BadInput(
            f"{file.name} lacks {len(missing)} of the {len(wanted)} columns that the model was "
            f"fitted on: {', '.join(missing[:8])}."
        )
    if of_texts:
        frame[wanted] = file_data.without_gaps(frame[wanted])
    extra = [str(name) for name in frame.columns if name not in wanted]
    if extra:
        notes.append(f"columns that the model does not know were not used: {', '.join(extra[:8])}")
    notes += [] if encoder is None else encoder.unknown_values(frame[wanted])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", UNREAD)  # noted above
        result = _predictions(fitted, frame[wanted])
    # Columns that name the rows: those that the user named, or those found.
    names = [record["name"] for record in records if record["kind"] == "identifier"]
    for name in reversed(names if encoder is None else encoder.id or names):
        if name in given and name not in result:
            result.insert(0, name, frame[name])
    notes += file_data.write(result, out)
    facts = {"rows": len(result), "columns": list(result.columns), "file": str(out)}
    if json:
        output.as_json(facts | {"notes": notes})
        return
    output.notes(notes)
    output.tell(f"{len(result)} row{'s' if len(result) > 1 else ''}: {', '.join(result.columns)}")
    output.tell(f"Predictions: {Path(out).resolve()}")


def _compares_texts(model):
    """Tell whether the kernel of a model, or its n-grams, see nothing but texts of a table."""
    parts = model.get_params(deep=True).values()
    return any(isinstance(p, TfidfVectorizer) or getattr(p, "kind", "") == "objects" for p in parts)


def _predictions(fitted, X):
    if hasattr(fitted, "predict_proba"):
        P = np.asarray(fitted.predict_proba(X))
        result = pd.DataFrame({"prediction": fitted.classes_[P.argmax(axis=1)]})
        for j, name in enumerate(fitted.classes_):
            result[f"probability of {name}"] = P[:, j]
        return result
    if not isinstance(fitted, KernelRegressor):
        return pd.DataFrame({"prediction": np.asarray(fitted.predict(X))})
    value, std = fitted.predict(X, return_std=True)
    low, high = fitted.predict_interval(X)
    return pd.DataFrame({"prediction": value, "std": std, "low 90 %": low, "high 90 %": high})


def _split(frame, target, notes, max_rows=None):
    known = file_data.check_target(frame, target, notes).notna()
    if not known.all():
        n = int((~known).sum())
        notes.append(
            f"{n} row{'s' if n > 1 else ''} without a target {'were' if n > 1 else 'was'} left out"
        )
    frame = frame[known].reset_index(drop=True)
    if max_rows is not None and len(frame) > max_rows:
        notes.append(f"{max_rows} of {len(frame)} rows, drawn at random, were learned from")
        frame = frame.sample(max_rows, random_state=0).sort_index().reset_index(drop=True)
    X = frame.drop(columns=target)
    if X.shape[1] == 0:
        raise BadInput(f"the table has no column besides the target {target!r}.")
    y = frame[target].to_numpy()
    if (y == y[0]).all():
        rows = "its only row" if len(y) == 1 else f"all {len(y)} rows"
        value = repr(y[0]) if isinstance(y[0], str) else y[0]
        raise BadInput(
            f"the target {target!r} is {value} in {rows}: there is nothing to learn. "
            "Choose another column with --target."
        )
    return X, y


def _facts(made, roles, y, task, compare):
    """The error at left-out rows with its interval, what it is to be compared with, importances."""
    X = roles.X
    shares = made.feature_importances_
    order = np.argsort(-shares)[:_NAMED]
    facts = {
        "importances": {str(X.columns[j]): float(shares[j]) for j in order},
        "kernel": made.learn_report_.history[-1].kernel,
        "exact": made.exact_,
        "stack": made.stack_,
        "metric": made.metric_,
        "validation": made.validation_,
        "informative": made.informative_,
        "rows_left_out": len(made.left_out_),
        "outputs": len(made.encoder_.feature_names_out_),
    }
    rows = made.left_out_
    w = None if roles.weights is None else roles.weights[rows]
    if task == "regression":
        squares = np.asarray(made.leave_one_out_errors_)[:, 0] ** 2
        interval = [float(end) for end in made.error_interval_]
        facts |= {"measure": "RMSE", "error": made.leave_one_out_rmse_, "interval": interval}
        # On the same rows as the error: an outlier counts for both, or for none.
        centre = np.average(y, weights=roles.weights)
        facts["mean_only"] = float(np.sqrt(np.average((y[rows] - centre) ** 2, weights=w)))
    else:
        share = made.leave_one_out_accuracy_
        facts |= {"measure": "accuracy", "accuracy": share, "error": 1 - share}
        facts["interval"] = [float(1 - end) for end in made.error_interval_[::-1]]
        classes, codes = np.unique(y, return_inverse=True)
        largest = classes[np.bincount(codes, roles.weights).argmax()]
        facts["mean_only"] = float(np.average(y[rows] == largest, weights=w))
        facts["calibration_error"] = made.calibration_error_
    Z = made.encoder_.transform(X) if compare and roles.weights is None else None
    groups = roles.groups
    if groups is None and Z is not None and made.copied_rows_:  # left out together, here as there
        groups = np.unique(Z, axis=0, return_inverse=True)[1].ravel()
    for name in (BOOSTING, LINEAR) if compare else ():
        peer = _Peer(why="rows have weights")
        if Z is not None:
            peer = _Peer.of(name, Z, y, task, rows, groups)
        facts |= {name: peer.score(task), f"{name}_folds": peer.folds, f"{name}_left_out": peer.why}
        if name == LINEAR and peer.losses is not None and len(peer.losses) == len(rows):
            own = squares if task == "regression" else 1.0 - made.leave_one_out_hits_
            gain = peer.losses - own  # row by row
            least = _STANDARD_ERRORS * gain.std() / len(gain) ** 0.5
            facts["linear_is_enough"] = bool(gain.mean() <= least)
    return facts


class _Peer(NamedTuple):
    """An ordinary model on rows that it has not seen: squared errors, or which classes are wrong.

    `why` says why there are none.
    """

    losses: np.ndarray | None = None
    folds: int = 0
    why: str | None = None

    def score(self, task: str) -> float | None:
        if self.losses is None:
            return None
        mean = self.losses.mean()
        return float(np.sqrt(mean) if task == "regression" else 1 - mean)

    @classmethod
    def of(
        cls,
        name: str,
        Z: np.ndarray,
        y: np.ndarray,
        task: str,
        judged: np.ndarray | None = None,
        groups: np.ndarray | None = None,
    ) -> "_Peer":
        """Cross-validated on at most COMPARED rows, those of `judged` first, which count alone.

        A class that a fold has not seen counts as wrong, as it does for the model. With groups,
        each fold holds whole ones.
        """
        is_judged = np.isin(np.arange(len(y)), np.arange(len(y)) if judged is None else judged)
        order = np.random.default_rng(0).permutation(len(y))
        some = np.sort(order[np.argsort(~is_judged[order], kind="stable")][:COMPARED])
        Z, y, groups = Z[some], y[some], None if groups is None else groups[some]
        folds = min(5, len(y) if groups is None else len(np.unique(groups)))
        if folds < 2:
            return cls(None, folds, "a single row" if groups is None else "a single group")
        splits: Any = KFold
        if task == "classification":
            splits, sizes = StratifiedKFold, np.unique(y, return_counts=True)[1]
            folds = min(folds, int(sizes.max()))
            if folds < 2:
                return cls(None, folds, "every row has a class of its own")
            if len(sizes) > COMPARED_CLASSES and name == BOOSTING:
                why = f"{len(sizes)} classes, and it grows a tree for each in every round"
                return cls(None, folds, why)
        splits = splits(folds, shuffle=True, random_state=0)
        splits = splits if groups is None else GroupKFold(folds)
        linear, boosted = models_of_numbers(task, len(y)).values()
        if Z.shape[1] > COMPARED_COLUMNS:
            # Boosting sees the columns that tell most in its fold.
            telling = f_regression if task == "regression" else f_classif
            boosted = make_pipeline(SelectKBest(telling, k=COMPARED_COLUMNS), boosted)
        model = linear if name == LINEAR else boosted
        p = np.empty(len(y), dtype=float if task == "regression" else y.dtype)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # Columns that are constant in a fold tell nothing.
            warnings.filterwarnings("ignore", "The least populated class|Features ")
            # A linear model that has not quite converged is still one to compare with.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for known, new in splits.split(Z, y, groups):
                p[new] = y[known][0]
                if len(np.unique(y[known])) > 1:
                    p[new] = clone(model).fit(Z[known], y[known]).predict(Z[new])
        losses = (p - y) ** 2 if task == "regression" else (p != y).astype(float)
        return cls(losses[is_judged[some]], folds)


def _print(facts, made, code):
    say, (low, high) = output.tell, facts["interval"]
    constant = "mean" if facts["task"] == "regression" else "largest class"
    some = facts["rows_left_out"] < facts["rows"]
    value = facts.get(facts["measure"], facts["error"])
    if not facts["informative"]:
        say(
            f"Nothing was learned: rows left out are predicted no better than by the {constant}, "
            "beyond chance."
        )
    elif facts.get("linear_is_enough"):
        say("A linear model is as good: on the same rows its errors are no larger, beyond chance.")
    say(
        f"{facts['measure']} {value:.4g} on rows left out "
        f"(95 % interval {low:.4g} to {high:.4g}; {facts['validation']}"
        + (f" of {facts['rows_left_out']} rows)." if some else ").")
    )
    last = facts.get("last_fifth")
    if last is not None and "why" in last:
        before = f"the last fifth by {last['column']} was not predicted from the rows before"
        say(f"  {before}: {last['why']}")
    elif last is not None:
        inside = ""
        if "inside_90" in last:
            inside = f" ({last['inside_90']:.0%} of them inside 90 % intervals)"
        error = f"{facts['measure']} {last[facts['measure']]:.4g}"
        say(f"  {error} on the last fifth by {last['column']}, from the rows before{inside}")
    effects = [r["name"] for r in made.encoder_.columns_ if r.get("has_means")]
    if effects and facts["group"] is None:
        say(
            f"  this holds for rows whose {listed(effects)} the table has; for new ones: --group "
            f"{effects[0]}"
        )
    for key, words in ((BOOSTING, "gradient boosting"), (LINEAR, "linear model")):
        if facts.get(key) is not None:
            most = COMPARED_COLUMNS if key == BOOSTING else math.inf
            some = f", the {most} columns that tell most" if facts["outputs"] > most else ""
            say(f"  {words}, {facts[f'{key}_folds']} folds{some}: {facts[key]:.4g}")
        elif facts.get(f"{key}_left_out"):
            say(f"  {words} was not fitted: {facts[f'{key}_left_out']}")
    say(f"  predicting the {constant}: {facts['mean_only']:.4g}")
    if "calibration_error" in facts:
        say(f"  calibration error of the probabilities: {facts['calibration_error']:.3f}")
    if facts["metric"] is None:
        say("All columns count alike: weighting them did not lower the error on rows left out.")
    else:
        say("Columns that matter most:")
        for name, share in facts["importances"].items():
            say(f"  {share:6.1%}  {name}")
    leak = _leak(facts)
    if leak:
        asked = f"will {'it' if len(leak) == 1 else 'they'} be known for new rows?"
        say(f"The target is predicted almost exactly, above all from {listed(leak)}: {asked}")
    if len(facts["stack"]) > 1 or "learned kernel" not in facts["stack"]:
        parts = " + ".join(f"{weight:.2f} {name}" for name, weight in facts["stack"].items())
        say(f"Predictions are a sum: {parts}")
    say(f"Model: {Path(facts['model']).resolve()}")
    say("The same in Python:")
    for line in code:
        say(f"  {line}")
    say(f"Next: mercer predict {facts['model']} new.csv -o predictions.csv")


def _leak(facts):
    """Columns of almost exact predictions, such as the parts of a sum; empty elsewhere."""
    shares = facts["importances"]
    first = max(shares.values()) > _SHARE
    if facts["measure"] == "RMSE":
        exact = facts["error"] < _LEAK * facts["mean_only"]
    else:
        exact = first and facts["mean_only"] < 1 - _LEAK < facts["accuracy"]
    if not exact:
        return []
    order = sorted(shares, key=lambda name: -shares[name])
    reached = np.cumsum([shares[name] for name in order])
    return order[: 1 + int(np.argmax(reached >= _SHARE * reached[-1]))]


def _code(made, facts, file, reading, gaps):
    """The lines of Python that fit the same model; `gaps`: rows without a target are dropped."""
    kernel, name, target = made.kernel, type(made).__name__, facts["target"]
    parts = [] if kernel is None else kernel.parts()
    parts = {type(part).__name__ for part in parts if f"{type(part).__name__}(" in repr(kernel)}
    arguments = [] if kernel is None else [repr(kernel)]
    if made.encoder is not None:
        parts.add("TableEncoder")
        kinds = {kind: getattr(made.encoder, kind) for kind in reading.roles}
        shown = ", ".join(f"{kind}={names!r}" for kind, names in kinds.items() if names)
        arguments.append(f"encoder=TableEncoder({shown})")
    given = {"target": target} | reading.arguments
    options = ", ".join(f"{k}={v!r}" for k, v in given.items())
    yield f"from mercer import {', '.join([name, *sorted(parts), 'read_table'])}"
    yield f"frame, notes = read_table({file.name!r}, {options})"
    if gaps:
        yield f"frame = frame.dropna(subset=[{target!r}])"
    if facts["drawn"] is not None:
        yield f"frame = frame.sample({facts['drawn']}, random_state=0).sort_index()"
    group, weights = facts["group"], facts["weights"]
    others = [column for column in (group, weights) if column is not None]
    dropped = repr([target, *others]) if others else repr(target)
    rows = f"frame.drop(columns={dropped}), frame[{target!r}]"
    rows += "" if weights is None else f", frame[{weights!r}]"
    rows += "" if group is None else f", groups=frame[{group!r}]"
    yield f"model = {name}({', '.join(arguments)}).fit({rows})"
