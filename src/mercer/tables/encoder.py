"""TableEncoder: a table as people keep it, turned into a matrix that a kernel can use."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..engine import Domain
from ..kernels import listed
from ..kernels import points as pts
from ..rows import drawn_rows, gather, in_pieces, lazily
from .columns import Categories, Dates, Numbers
from .decisions import Decisions, check_finite
from .encoder_tools import effects_of, name_outputs
from .given import ReadTable, read_columns
from .notes import IDENTIFIER, in_rows, notes_on
from .target_encoding import WithTargetEncoding

if TYPE_CHECKING:
    import pandas as pd

# Arguments that name columns.
_ROLES = ("keep", "number", "category", "ignore", "id")
UNREAD = "values that cannot be read count as missing"
# Attributes that differ among columns of plain numbers; arrays hold them for so many or more.
OWN, MANY_ALIKE = ("median_", "centre_", "spread_"), 20


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table with numbers, categories, dates, text and gaps into a matrix of floats.

    Each column is looked at once, in `fit`, and what was decided is listed in `columns_`:

    - numbers (also "1,200", "$5", "12%", "12 kg", "<0.1" and "1:02:33") are standardised; gaps get
      the median, and a column that says where they were;
    - categories become columns of 0 and 1; rare values share one, and so do values that `fit` has
      not seen; where most values have two to nine rows, as names do, a single row is not rare;
    - dates (whole numbers such as 20240131 and 202401, too) become a number of days and the cycles
      that they cover (time of day, weekday, season);
    - free text, and sequences such as DNA or SMILES, become a few directions of their character
      n-grams (TF-IDF);
    - identifiers (one value per row), constant and empty columns are left out.

    Numbers and dates that are texts are read by the evidence of the whole table, since "1,234" and
    "01/02/2012" mean different things in different countries; :meth:`notes` shows how. What you say
    comes first: `decimal`, `dayfirst`, the lists of columns, and the dtype "category" of a frame.

    Every kind comes out with about the same total variance, so that no column dominates a kernel
    only because of its kind. Arrays of numbers pass through the same steps.

    Parameters
    ----------
    scale : {"standard", "unit", "none"}, default="standard"
        Of numbers: mean 0 and variance 1, from 0 to 1, or as they are.
    ranks : bool, default=False
        Whether numbers also come as their rank among the rows of `fit`, in a column of its own.
        That helps where a column is skewed, has outliers, or matters by its order.
    levels : bool, default=False
        Whether numbers with three to twelve different values also come as one column of 0 and 1 for
        each value. That helps where numbers stand for categories, or matter one by one.
    max_categories : int, default=20
        At most so many columns for one column of categories. Names that have two to nine rows each
        (states in a table of states and years) have up to five times as many.
    text : {"ngrams", "drop"}, default="ngrams"
        What becomes of free text.
    text_components : int, default=10
        Columns for one column of text.
    random_state : int, default=0
        Of the reduction of texts.
    keep : list of str or None, default=None
        Columns that pass as they are, for kernels on objects such as ``OnColumns(Spectrum(3),
        "dna")``. With a list, even an empty one, the result is a pandas frame, so that kernels can
        ask for its columns by name.
    decimal : {".", ","} or None, default=None
        The decimal mark of numbers that are texts; None: by the evidence of the table.
    dayfirst : bool or None, default=None
        Whether 01/02/2012 is in February; None: by the evidence of the table.
    number, category, ignore, id : list of str or None, default=None
        Columns that are numbers (what cannot be read is missing) or categories whatever they look
        like, columns that are left out, and columns that only name the rows.

    Attributes
    ----------
    columns_ : list of dict
        For each input column: "name", "kind", "action" (what was done), "reason" and "outputs"
        (names of the columns made from it).
    encoders_ : list
        The fitted encoder of each input column; None where it was left out.
    feature_names_out_ : ndarray of str
        Names of the columns of the result.
    rank_outputs_ : ndarray of int
        Which columns of the result are ranks.
    level_outputs_ : ndarray of int
        Which columns of the result stand for single values of a number.
    text_outputs_ : ndarray of int
        Which columns of the result are directions of free text.
    sampled_from_ : int or None
        How many rows a stream or a Dask collection has of which a sample decided.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Only for frames.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer import TableEncoder
    >>> table = pd.DataFrame({"size": ["1,200", "950", None], "town": ["Rome", "Oslo", "Rome"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.transform(table).shape
    (3, 3)
    >>> encoder.get_feature_names_out()
    array(['size', 'town=Rome', 'town=(other)'], dtype=object)
    >>> print(encoder.notes()[0])
    1 column of numbers was standardised: size.
    >>> encoder.unknown_values(table.assign(town="Bern"))
    ["values that the training table does not have: 'Bern' in town (3 rows)"]
    """

    n_features_in_: int
    feature_names_in_: np.ndarray
    feature_names_out_: np.ndarray
    rank_outputs_: np.ndarray
    level_outputs_: np.ndarray
    text_outputs_: np.ndarray
    domains = {
        "scale": Domain.one_of("standard", "unit", "none"),
        "text": Domain.one_of("ngrams", "drop"),
        "ranks": Domain.FLAG,
        "levels": Domain.FLAG,
        "decimal": Domain.one_of(".", ",", None),
        "dayfirst": Domain.one_of(True, False, None),
        **dict.fromkeys(
            _ROLES,
            Domain(
                lambda given: (
                    isinstance(given, list | tuple | None)
                    and all(isinstance(name, str) for name in given or ())
                ),
                "a list of names of columns or None",
            ),
        ),
        "max_categories": Domain.count(2),
        "text_components": Domain.count(1),
    }

    def __init__(
        self,
        *,
        scale: str = "standard",
        ranks: bool = False,
        levels: bool = False,
        max_categories: int = 20,
        text: str = "ngrams",
        text_components: int = 10,
        random_state: int = 0,
        keep: Sequence[str] | None = None,
        decimal: str | None = None,
        dayfirst: bool | None = None,
        number: Sequence[str] | None = None,
        category: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        id: Sequence[str] | None = None,
    ) -> None:
        self.scale = scale
        self.ranks = ranks
        self.levels = levels
        self.max_categories = max_categories
        self.text = text
        self.text_components = text_components
        self.random_state = random_state
        self.keep = keep
        self.decimal = decimal
        self.dayfirst = dayfirst
        self.number = number
        self.category = category
        self.ignore = ignore
        self.id = id

    def fit(self, X: ArrayLike | ReadTable, y: object = None) -> Self:
        """Decide what becomes of each column.

        `y` is not used, except that texts in it tell how this table writes its numbers. Of a stream
        or a Dask collection with many rows a sample decides, drawn in one pass.
        """
        Domain.check(self)
        X = pts.collected(X)
        X, n = drawn_rows(X, gather.SAMPLE, self.random_state)
        self.sampled_from_ = n if n is not None and n > gather.SAMPLE else None
        table = read_columns(self, X, reset=True)
        names, columns = table.names, table.columns
        self._check_named(names)
        decisions = Decisions(self)
        found = decisions.of_table(table, y)
        if not any(encoder for encoder, _ in found):
            # Better a row number than nothing: a single column may be all that there is.
            found = [
                decisions.numbers(name, values, reason="the only information in the table")
                if record["kind"] == IDENTIFIER and values.dtype.kind in "iu"
                else (encoder, record)
                for (encoder, record), name, values in zip(found, names, columns)
            ]
        self.encoders_ = [encoder for encoder, _ in found]
        self.columns_ = [record for _, record in found]
        if not any(self.encoders_):
            raise ValueError(
                f"nothing in this table tells its rows apart (n_samples={len(columns[0])}): "
                + " ".join(self.notes())
                + " At least one column with different values is needed."
            )
        return name_outputs(self)

    @lazily
    def transform(self, X: ArrayLike | ReadTable) -> np.ndarray | pd.DataFrame:
        """The columns of `X` as floats, (n, number of outputs); a frame where columns are kept.

        A Dask collection is encoded partition by partition, when the result is asked for. Texts in
        columns of numbers and dates that cannot be read count as missing, with a warning.
        """
        check_is_fitted(self)
        return self._encoded(read_columns(self, X))

    def _encoded(self, table):
        parts: dict[int, Any] = {}
        unread: list[str] = []
        numbers: list[tuple[int, Numbers, np.ndarray]] = []
        triples = zip(table.names, table.columns, self.encoders_)
        for j, (name, values, encoder) in enumerate(triples):
            if encoder is None:
                continue
            check_finite(name, values)
            if isinstance(encoder, Numbers | Dates) and values.dtype.kind == "O":
                texts, values = values, encoder.read(values)
                unread += _shown(name, _unread(texts, values))
            if isinstance(encoder, Numbers) and len(encoder.names_) == 1:
                numbers.append((j, encoder, values))
                parts[j] = None  # in its place, below
            else:
                parts[j] = encoder.transform(values)
        if unread:
            warnings.warn(f"{UNREAD}: {', '.join(unread[:4])}.", UserWarning, stacklevel=3)
        if numbers:
            places, encoders, columns = zip(*numbers)
            parts |= zip(places, Numbers.transform_all(encoders, columns).T[:, :, None])
        if self.keep is not None:
            return self._frame(parts.values(), table.index)
        return np.hstack(list(parts.values())).astype(float, copy=False)

    def fit_transform(self, X: ArrayLike, y: object = None) -> np.ndarray | pd.DataFrame:
        """Decide what becomes of each column, and turn these rows into floats."""
        Domain.check(self)
        X = pts.collected(X)
        table: Any = X if in_pieces(X) else read_columns(self, X, reset=True)  # once for both
        self.fit(table, y)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", UNREAD)  # the notes say it
            return self.transform(X) if table is X else self._encoded(table)

    def _frame(self, parts, index):
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "TableEncoder(keep=...) makes a frame: pip install 'mercer[report]' for pandas."
            ) from None
        columns = [column for part in parts for column in part.T]
        frame = pd.DataFrame(
            {j: c if c.dtype.kind == "O" else c.astype(float) for j, c in enumerate(columns)},
            index=index if isinstance(index, pd.Index) else None,
        )
        return frame.set_axis(self.feature_names_out_, axis=1)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Names of the columns of the result, such as "age", "town=Rome", "day (weekday, sine)"."""
        check_is_fitted(self)
        given = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            names = np.atleast_1d(np.asarray(input_features, dtype=object))
            if len(names) != self.n_features_in_:
                raise ValueError(
                    f"input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(names)}."
                )
            if given is not None and list(names) != list(given):
                raise ValueError("input_features is not equal to feature_names_in_.")
        return self.feature_names_out_

    def notes(self) -> list[str]:
        """The treatment of the columns, in a few sentences: one per kind of treatment."""
        notes = notes_on(self.columns_)
        if getattr(self, "sampled_from_", None) is not None:
            notes.append(
                f"{gather.SAMPLE} of {self.sampled_from_} rows, drawn at random, decided what each "
                "column is."
            )
        return notes

    def unknown_values(self, X: ArrayLike) -> list[str]:
        """Sentences on values of new rows that the fitted encoder cannot use as they are."""
        check_is_fitted(self)
        table = read_columns(self, X)
        unread: list[str] = []
        unseen: list[str] = []
        for name, values, made in zip(table.names, table.columns, self.encoders_):
            effects = effects_of(made)
            made = made.plain if isinstance(made, WithTargetEncoding) else made
            if effects is not None:
                where = np.flatnonzero(effects.unseen(values))
                unseen += _shown(name, [str(values[i]) for i in where if values[i] is not None])
            elif isinstance(made, Numbers | Dates) and values.dtype.kind == "O":
                unread += _shown(name, _unread(values, made.read(values)))
            elif isinstance(made, Categories):
                known = set(made.categories_)
                read = [t for t in made.read(values).tolist() if t is not None]
                unseen += _shown(name, [str(t) for t in read if str(t) not in known])
        notes = [(UNREAD, unread), ("values that the training table does not have", unseen)]
        return [f"{what}: {', '.join(shown[:4])}" for what, shown in notes if shown]

    # --- files: columns of numbers that differ in three numbers only are kept as arrays -----------

    def __getstate__(self):
        state = dict(super().__getstate__())
        names = self._given_names() if "n_features_in_" in state else []
        pairs = zip(state.get("encoders_", ()), state.get("columns_", ()))
        first: Any = None
        at = []
        for j, (name, (made, record)) in enumerate(zip(names, pairs)):
            if isinstance(made, Numbers) and made.names_ == [name] and not made.n_missing_:
                first = first or (made, record)
                # Alike are encoders and records that differ in their names and OWN only.
                mine, others = (
                    {k: v for k, v in vars(one).items() if k not in (*OWN, "names_")}
                    for one in (made, first[0])
                )
                named = {"name": record["name"], "outputs": record["outputs"]}
                if mine == others and first[1] | named == record:
                    at.append(j)
        if len(at) > MANY_ALIKE:
            kept = [[getattr(state["encoders_"][j], key) for key in OWN] for j in at]
            state["alike_"] = (*first, np.array(at), np.array(kept))
            there = set(at)
            for key in ("encoders_", "columns_"):
                state[key] = [None if j in there else v for j, v in enumerate(state[key])]
        return state

    def __setstate__(self, state):
        state = dict(state)
        alike = state.pop("alike_", None)
        super().__setstate__(state)
        if alike is not None:
            first, record, at, kept = alike
            names = self._given_names()
            for j, own in zip(at.tolist(), kept.tolist()):
                made = copy(first)
                vars(made).update(zip(OWN, own), names_=[names[j]])
                self.encoders_[j] = made
                named = {"name": names[j], "outputs": made.names_}
                self.columns_[j] = record | named | {"not_read": list(record["not_read"])}

    def _given_names(self):
        """Names of the columns of `fit`, where they are texts or columns of an array."""
        given = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if given is None else given.tolist()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # --- reading the input ------------------------------------------------------------------------

    def _check_named(self, names):
        """Columns that arguments name are there, and are named once."""
        role: dict[str, str] = {}
        for argument in _ROLES:
            for name in getattr(self, argument) or ():
                if name not in names:
                    raise ValueError(
                        f"{argument} names the column {name!r}; there are {listed(names)}."
                    )
                if role.setdefault(name, argument) != argument:
                    raise ValueError(
                        f"{role[name]} and {argument} both name the column {name!r}: choose one."
                    )


def _unread(texts, values):
    """Texts that became missing, although something is written there."""
    return [text for text, gap in zip(texts, np.isnan(values)) if gap and text is not None]


def _shown(name, texts):
    """A list with the first of these texts and their number of rows; empty where there is none."""
    return [f"{texts[0]!r} in {name} ({in_rows(len(texts))})"] if texts else []
