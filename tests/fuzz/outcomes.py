"""One attempt and its outcome: a right answer, a refusal that helps, or a fault."""

import hashlib
import re
import signal
import warnings
from contextlib import contextmanager

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

ANSWERED, REFUSED = "right answer", "refused with reason"
ALLOWED = (ValueError, TypeError, NotFittedError)
SECONDS = 60


class Fault(AssertionError):
    """An outcome that is never allowed."""


def fingerprint(value):
    """The bytes of an input, so that a change is seen."""
    if scipy.sparse.issparse(value):
        coo = value.tocoo()
        return fingerprint(np.concatenate([np.asarray(coo.data, float), *coo.coords]))
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        data = repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
        return hashlib.sha1(data).hexdigest(), value.shape, str(value.dtype)
    return repr(value)


@contextmanager
def no_hang():
    """An alarm for what does not come back."""

    def ring(*_):
        raise Fault(f"no answer after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(work, *inputs, names=(), also=()):
    """Run work(); the outcome as a word, or Fault. `also`: further exceptions that are a reason."""
    before = [fingerprint(value) for value in inputs]
    try:
        with no_hang(), warnings.catch_warnings():
            warnings.simplefilter("error")
            # What a person is told is no fault: ranks below n_components, classes that look odd.
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)  # bool(empty array), of old NumPy
            warnings.simplefilter("ignore", ConvergenceWarning)
            # Nor is what scikit-learn's own estimators do to hostile targets.
            warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"(sklearn|scipy)\.")
            work()
        outcome = ANSWERED
    except Fault:
        raise
    except (*ALLOWED, *also) as error:
        check_message(error, names)
        outcome = REFUSED
    except MemoryError as error:
        raise Fault(f"ran out of memory: {error}") from error
    except Exception as error:
        raise Fault(f"{type(error).__name__} from inside: {error}") from error
    if [fingerprint(value) for value in inputs] != before:
        raise Fault("an input array was changed")
    return outcome


def check_message(error, names):
    """Longer than 20 characters, and about something that the caller gave."""
    text = str(error)
    if len(text) <= 20:
        raise Fault(f"{type(error).__name__} with a short message: {text!r}") from error
    if names is None:  # what scikit-learn's estimators say is theirs
        return
    known = r"\b(" + "|".join(map(re.escape, [*names, *WORDS])) + r")\b"
    if not re.search(known, text, flags=re.IGNORECASE):
        raise Fault(f"{type(error).__name__} that names no argument: {text!r}") from error


# What arguments are called in messages, scikit-learn's included.
WORDS = (
    "Gram",
    "RKHSFunction",
    "Constant",
    "file",
    "seed",
    "X",
    "Y",
    "Z",
    "input",
    "inputs",
    "array",
    "data",
    "rows",
    "columns",
    "samples",
    "feature",
    "features",
    "kernel",
    "kernels",
    "points",
    "target",
    "targets",
    "label",
    "labels",
    "class",
    "classes",
    "coef",
    "alpha",
    "diag",
    "path",
)


def finite(*arrays):
    """Fault on any NaN or infinity in an answer."""
    for values in arrays:
        values = values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise Fault(f"NaN or infinity in an answer of shape {values.shape}")


def at_most(error, bound, what):
    error, bound = np.asarray(error, float), np.asarray(bound, float)
    if not np.all(error <= bound):
        raise Fault(f"{what}: {np.max(error - bound):.3g} beyond its bound")


class Tally:
    """How many cases ran, and how they ended."""

    def __init__(self):
        self.outcomes = {}
        self.faults = {}

    def add(self, outcome):
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def fault(self, case, fault):
        self.add("fault")
        self.faults.setdefault(str(fault)[:300], case)

    def text(self):
        return ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
