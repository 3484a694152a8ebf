"""One column of a table, encoded: numbers, dates, categories or text as columns of floats.

Every encoder learns from one column (an array that :func:`column_values` makes) and gives a matrix
whose total variance is about that of one standardised number, so that no column of the table
weighs more in a kernel only because of its kind.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.preprocessing import OneHotEncoder

from ..engine import evenly
from ..kernels import points as pts
from .parse_dates import DateFormat
from .parse_numbers import NumberFormat
from .parse_text import as_texts, is_missing

# The outputs for a column of numbers; the values themselves come first.
VALUE, GAP, RANK, LEVEL = "value", "gap", "rank", "level"
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d*)?")
_DAY = 86400.0
_YEAR = 365.2425 * _DAY
# Cycles of a date: name, seconds they last, and how much of the past must be covered to see one.
_CYCLES = (
    ("time of day", _DAY, 2 * _DAY),
    ("weekday", 7 * _DAY, 14 * _DAY),
    ("day of year", _YEAR, _YEAR / 2),
)
# Missing values are marked by a column of their own where at least so many rows lack one.
_MARKED = 5
# Most values whose ranks are stored; the ranks of values between them are interpolated.
_KNOTS = 1000
# Columns with so many different values may be categories that were written as numbers; two values
# say the same either way. There must be some rows for each value.
FEWEST_LEVELS, MOST_LEVELS, ROWS_PER_LEVEL = 3, 12, 10
# Most values of names have fewer rows than this.
_NAMES = 10
# A rank that correlates with its value as closely as this differs from it by chance, as a rule: so
# do ranks of uniform columns.
_SAME = 0.99
# Texts from which the directions of n-grams are found, and texts transformed at once.
FITTED_TEXTS, BLOCK = 10_000, 4096
_HASHED = HashingVectorizer(
    analyzer="char_wb", ngram_range=(2, 4), n_features=2**14, norm=None, alternate_sign=False
)


def column_values(column: Any, name: str) -> np.ndarray:
    """A column of a frame or array as a float, bool, datetime64[us] or object array.

    Objects are stripped texts, None where a value is missing.
    """
    dtype = str(getattr(column, "dtype", "")).lower()
    if getattr(getattr(column, "dtype", None), "tz", None) is not None:  # pandas: one clock for all
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if dtype.startswith("period"):  # pandas: when it begins
        column = column.dt.to_timestamp()
    values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if values.dtype.kind == "O" and dtype.startswith(("int", "uint", "float", "bool")):
        # Numbers and booleans with gaps, in the types of pandas or polars.
        return np.array([np.nan if is_missing(v) else float(v) for v in values])
    if values.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: column {name!r} has dtype {values.dtype}. Give real and "
            "imaginary parts as two columns."
        )
    if values.dtype.kind in "fiub":
        return values
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    if values.dtype.kind == "m":
        return values.astype("timedelta64[us]").astype(float) / 1e6
    return as_texts(values.tolist())


def frame_columns(X: Any) -> list[np.ndarray]:
    """The columns of a pandas or polars frame, each as `column_values` makes it, by position."""
    names = [str(name) for name in X.columns]
    if not hasattr(X, "iloc"):
        return [column_values(X[:, j], name) for j, name in enumerate(names)]
    found: list[Any] = [None] * len(names)
    plain: dict[Any, list[int]] = {}
    for j, dtype in enumerate(X.dtypes):
        if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
            plain.setdefault(dtype, []).append(j)
        else:
            found[j] = column_values(X.iloc[:, j], names[j])
    for places in plain.values():  # all columns of a type at once: a table may have thousands
        for j, values in zip(places, X.iloc[:, places].to_numpy().T):
            found[j] = values
    return found


def declared_categories(X: Any) -> list[str]:
    """Columns of a frame whose dtype says that they are categories."""
    if not pts.is_frame(X):
        return []
    declared = ("category", "categorical", "enum")
    return [str(c) for c, d in zip(X.columns, X.dtypes) if str(d).lower().startswith(declared)]


def spelled(values: np.ndarray) -> np.ndarray:
    """A column as texts, None where a value is missing; whole numbers without a point."""
    if values.dtype.kind == "f":
        return as_texts(int(v) if v == v and v == int(v) else v for v in values.tolist())
    return values if values.dtype.kind == "O" else as_texts(values.tolist())


def texts_of(values: np.ndarray, missing: str = "(missing)") -> list[str]:
    """A column as texts, with one for values that are missing."""
    texts = as_texts(values.tolist()) if values.dtype.kind != "O" else values
    return [missing if text is None else text for text in texts]


def as_codes(values: np.ndarray, known: Collection[str]) -> np.ndarray:
    """A column with the spelling that is known: 1.0 and "1" as "01" where that is a category.

    Codes become numbers where pandas finds no letters among them, and 1.0 where it finds gaps.
    """
    if values.dtype.kind not in "fiuO":
        return values
    written = {float(text): text for text in known if _PLAIN_NUMBER.fullmatch(text)}
    if values.dtype.kind == "O" and not written:
        return values
    texts = np.empty(len(values), dtype=object)
    for i, value in enumerate(values.tolist()):
        text = str(value)
        if value is None or value != value:
            texts[i] = None
        elif text in known or not (values.dtype.kind != "O" or _PLAIN_NUMBER.fullmatch(text)):
            texts[i] = text
        else:
            texts[i] = written.get(float(value), text)
    return texts


def not_in(known: Collection[str], values: np.ndarray) -> np.ndarray:
    """Which values of a column of categories are not among the known ones."""
    return np.array([text not in known for text in texts_of(as_codes(values, known))], dtype=bool)


def as_float(values: np.ndarray) -> np.ndarray:
    """A column of numbers, truths or dates as floats; dates in seconds."""
    if values.dtype.kind == "M":
        seconds = values.astype("datetime64[us]").astype("int64") / 1e6
        return np.where(np.isnat(values), np.nan, seconds)
    return values.astype(float)


class Numbers(BaseEstimator):
    """Scaled, with the median where a value is missing and a column that says where.

    With `ranks` the standardised rank of the value is one more column, unless it is the same up to
    a shift and a scale. With `levels` a column with few values also has one of 0 and 1 for each.
    """

    def __init__(self, scale: str = "standard", ranks: bool = False, levels: bool = False) -> None:
        self.scale = scale
        self.ranks = ranks
        self.levels = levels

    def fit(self, values: np.ndarray, name: str, format: dict[str, Any] | None = None) -> Self:
        # New rows are read as these were written, even where they alone would not tell: "1,200".
        self.format_ = dict(format or {})
        x = as_float(values)
        known = x[~np.isnan(x)]
        self.median_ = float(np.median(known))
        if self.scale == "standard":
            # The largest value is divided out first: squares of large numbers overflow.
            largest = float(np.abs(known).max()) or 1.0
            self.centre_ = float((known / largest).mean() * largest)
            self.spread_ = float((known / largest).std() * largest)
        elif self.scale == "unit":
            self.centre_ = float(known.min())
            self.spread_ = float(known.max() / 2 - known.min() / 2) * 2
        else:
            self.centre_, self.spread_ = 0.0, 1.0
        self.spread_ = self.spread_ if self.spread_ > 0 else 1.0
        missing = len(x) - len(known)
        self.n_missing_ = missing
        self.marks_missing_ = missing >= _MARKED and len(known) >= _MARKED
        self.ranks_ = Ranks.of(known) if self.ranks else None
        values = np.unique(known)
        few = FEWEST_LEVELS <= len(values) <= MOST_LEVELS
        many_rows = len(known) >= ROWS_PER_LEVEL * len(values)
        self.levels_ = values if self.levels and few and many_rows else None
        return self.named(name)

    def transform(self, values: np.ndarray) -> np.ndarray:
        x = self.read(values)
        missing = np.isnan(x)
        x = np.where(missing, self.median_, x)
        parts = [(x - self.centre_) / self.spread_]
        parts += [missing] if self.marks_missing_ else []
        parts += [self.ranks_.transform(x)] if self.ranks_ is not None else []
        parts += [x[:, None] == self.levels_] if self.levels_ is not None else []
        return np.column_stack(parts)

    @staticmethod
    def transform_all(encoders: "Sequence[Numbers]", columns: Sequence[np.ndarray]) -> np.ndarray:
        """`transform` of many encoders with one output each."""
        X = np.array([as_float(values) for values in columns]).T
        median, centre, spread = (
            np.array([getattr(made, name) for made in encoders])
            for name in ("median_", "centre_", "spread_")
        )
        return (np.where(np.isnan(X), median, X) - centre) / spread

    def read(self, values: np.ndarray) -> np.ndarray:
        """New rows as floats, each text by itself: one bad value does not spoil the others."""
        if values.dtype.kind != "O":
            return as_float(values)
        # Yes and no are numbers: with gaps, pandas keeps True and False as objects.
        words = {"true": "1", "false": "0"}
        texts = [text and words.get(text.lower(), text) for text in values]
        return NumberFormat(**self.format_).read(texts)

    @property
    def kinds_(self) -> list[str]:
        """The kind of each output."""
        kinds = [VALUE] + [GAP] * self.marks_missing_ + [RANK] * (self.ranks_ is not None)
        return kinds + ([] if self.levels_ is None else [LEVEL] * len(self.levels_))

    def keeping(self, ranks: bool, levels: bool) -> "Numbers":
        """The same encoder with ranks, and columns for single values, only where asked for."""
        kept = copy(self).set_params(ranks=self.ranks and ranks, levels=self.levels and levels)
        kept.ranks_ = self.ranks_ if ranks else None
        kept.levels_ = self.levels_ if levels else None
        return kept.named(self.names_[0])

    def named(self, name: str) -> Self:
        """With the names of its outputs."""
        after = {VALUE: "", GAP: " is missing", RANK: " (rank)"}
        self.names_ = [f"{name}{after[kind]}" for kind in self.kinds_ if kind != LEVEL]
        self.names_ += [] if self.levels_ is None else [f"{name}={v:g}" for v in self.levels_]
        return self


class Ranks(BaseEstimator):
    """The share of known values below a value (equal ones count half), mean 0 and variance 1.

    Files of models name it.
    """

    def fit(self, known: np.ndarray) -> Self:
        knots, counts = np.unique(known, return_counts=True)
        shares = (np.cumsum(counts) - counts / 2) / len(known)
        if len(knots) > _KNOTS:
            some = np.unique(np.linspace(0, len(knots) - 1, _KNOTS).round().astype(int))
            knots, shares = knots[some], shares[some]
        self.knots_, self.shares_ = knots, shares
        found = np.interp(known, knots, shares)
        self.centre_, self.spread_ = float(found.mean()), float(found.std())
        return self

    @classmethod
    def of(cls, known: np.ndarray) -> Self | None:
        """Fitted ranks; None where they say what the values say."""
        if known.min() == known.max():
            return None
        ranks = cls().fit(known)
        largest = np.abs(known).max()
        scaled = known / largest
        alike = np.corrcoef(ranks.transform(known), scaled)[0, 1] if scaled.std() > 0 else 1.0
        return None if alike > _SAME else ranks

    def transform(self, x: np.ndarray) -> np.ndarray:
        return (np.interp(x, self.knots_, self.shares_) - self.centre_) / self.spread_


class Categories(BaseEstimator):
    """One column of 0 and 1 per frequent value; rare and unseen values share one."""

    def __init__(self, max_categories: int = 20) -> None:
        self.max_categories = max_categories

    def fit(self, values: np.ndarray, name: str) -> Self:
        texts = np.array(texts_of(values), dtype=object)[:, None]
        # A value that fewer than one row in 500 has (at least two rows) says little about others.
        # Where most have a few rows, as names do, a single row is not rare: pooled, it would tell
        # the next row of its name nothing, although the errors of rows left out, where one of two
        # rows is known, say that it does.
        rows = list(Counter(texts[:, 0]).values())
        fit_in = len(rows) <= self.max_categories
        names = fit_in and 2 <= np.median(rows) < _NAMES
        rare = max(1 if names else 2, len(texts) // 500)
        chosen = OneHotEncoder(
            max_categories=None if fit_in else self.max_categories,
            min_frequency=rare,
            handle_unknown="infrequent_if_exist",
        ).fit(texts)
        infrequent = chosen.infrequent_categories_[0]
        rare_ones = set() if infrequent is None else set(infrequent)
        # Texts alone, not the encoder: a saved model must be plain data.
        self.categories_ = [str(c) for c in chosen.categories_[0]]
        self.kept_ = [c for c in self.categories_ if c not in rare_ones]
        self.n_pooled_ = len(rare_ones)
        self.names_ = [f"{name}={c}" for c in self.kept_]
        self.names_ += [f"{name}=(other)"] if self.n_pooled_ else []
        return self

    def transform(self, values: np.ndarray) -> np.ndarray:
        number = {category: j for j, category in enumerate(self.kept_)}
        texts = texts_of(self.read(values))
        # The column after the kept ones is that of all others, where there is one.
        columns = np.array([number.get(text, len(number)) for text in texts], dtype=int)
        return (columns[:, None] == np.arange(len(self.names_))).astype(float)

    def read(self, values: np.ndarray) -> np.ndarray:
        """New rows with codes as they were written in `fit`."""
        return as_codes(values, set(self.categories_))

    def unseen(self, values: np.ndarray) -> np.ndarray:
        """Which rows have a value that `fit` has not seen."""
        return not_in({*self.categories_}, values)

    def typical(self, most: int) -> np.ndarray:
        """Known values, any of which may be like an unseen one."""
        return np.array(self.kept_, dtype=object)[evenly(len(self.kept_), most)]


class Dates(BaseEstimator):
    """The day as a number, and sine and cosine of the cycles that the dates cover."""

    def fit(self, values: np.ndarray, name: str, format: dict[str, Any] | None = None) -> Self:
        self.day_first_ = (format or {}).get("day_first")
        self.digits_ = (format or {}).get("digits", False)
        x = as_float(values)
        known = x[~np.isnan(x)]
        self.day_ = Numbers().fit(x, name)
        covered = float(known.max() - known.min())
        with_time = bool((known % _DAY > 0).any())
        self.cycles_ = [
            (cycle, length)
            for cycle, length, least in _CYCLES
            if covered >= least and (cycle != "time of day" or with_time)
        ]
        self.names_ = list(self.day_.names_)
        for cycle, _ in self.cycles_:
            self.names_ += [f"{name} ({cycle}, sine)", f"{name} ({cycle}, cosine)"]
        self.n_missing_ = self.day_.n_missing_
        return self

    def read(self, values: np.ndarray) -> np.ndarray:
        """New rows as datetime64[us], each text by itself, written as those of `fit`."""
        if values.dtype.kind in "fiu" and self.digits_:
            values = spelled(values)
        if values.dtype.kind == "O":
            return DateFormat(self.day_first_).read(values)
        return values

    def transform(self, values: np.ndarray) -> np.ndarray:
        x = as_float(self.read(values))
        parts = [self.day_.transform(x)]
        missing = np.isnan(x)
        for _, length in self.cycles_:
            angle = 2 * np.pi * (np.where(missing, 0.0, x) / length)
            circle = np.column_stack([np.sin(angle), np.cos(angle)])
            parts.append(np.where(missing[:, None], 0.0, circle))
        return np.hstack(parts)


class Texts(BaseEstimator):
    """Character n-grams, weighted by TF-IDF, in the few directions along which they vary most."""

    def __init__(self, n_components: int = 10, random_state: Any = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, values: np.ndarray, name: str) -> Self:
        texts = texts_of(values, "")
        some = evenly(len(texts), FITTED_TEXTS)
        counts = _ngram_counts([texts[i] for i in some])
        self.weights_ = TfidfTransformer(sublinear_tf=True).fit(counts)
        weighted = self.weights_.transform(counts)
        size = max(1, min(self.n_components, min(weighted.shape) - 1))
        self.directions_ = TruncatedSVD(size, random_state=self.random_state).fit(weighted)
        Z = self.directions_.transform(weighted)
        self.mean_ = Z.mean(axis=0)
        self.spread_ = float(np.sqrt(Z.var(axis=0).sum())) or 1.0
        self.names_ = [f"{name} (text {j + 1})" for j in range(size)]
        return self

    def transform(self, values: np.ndarray) -> np.ndarray:
        texts = texts_of(values, "")
        parts = [
            self.directions_.transform(self.weights_.transform(_ngram_counts(texts[i : i + BLOCK])))
            for i in range(0, len(texts), BLOCK)
        ]
        return (np.vstack(parts) - self.mean_) / self.spread_


def _ngram_counts(texts: Sequence[str]) -> Any:
    """Hashed character n-grams of each text, words padded by spaces: the sums over its words.

    The n-grams of each different word are counted once.
    """
    number: dict[str, int] = {}
    words, ends = [], [0]
    for text in texts:
        words += [number.setdefault(word, len(number)) for word in text.lower().split()]
        ends.append(len(words))
    of_words = _HASHED.transform(list(number) or [""])
    shape = (len(texts), of_words.shape[0])
    return scipy.sparse.csr_matrix((np.ones(len(words)), words, ends), shape=shape) @ of_words


class Kept(BaseEstimator):
    """As it is, for kernels on objects; where a text is missing, the empty one."""

    def fit(self, values: np.ndarray, name: str) -> Self:
        self.names_ = [name]
        self.texts_ = all(isinstance(value, str | None) for value in values)
        return self

    def transform(self, values: np.ndarray) -> np.ndarray:
        if getattr(self, "texts_", False):  # a file of digits alone has numbers
            values = spelled(values)
        column = np.empty((len(values), 1), dtype=object)
        column[:, 0] = ["" if value is None else value for value in values]
        return column
