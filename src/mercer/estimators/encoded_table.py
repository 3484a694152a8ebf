"""Tables of learned models: rows as matrices of floats, and the columns that a fit keeps."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ..engine import (
    Domain,
    coordinates_bytes,
    is_array,
    is_numpy,
    namespace,
    readable,
    same_kind,
)
from ..kernels import points as pts
from ..learn import Observations
from ..rows import check_n_columns, gather, in_pieces, read_whole, rows_at
from ..tables import UNREAD, TableEncoder, encoder_tools, given
from .base import HasKernel

SOLVERS = ("auto", "direct", "mixed", "iterative", "landmarks")
# Ranks are tried up to so many columns of values: the metric is a matrix with a row for each.
_MOST_RANKED = 100
# Kinds of columns of an encoder that a fit may leave out.
_KINDS = ("rank", "level", "text")
# Tables with more columns than this have more than _MOST_RANKED columns of values, as a rule.
_MANY_COLUMNS = 5 * _MOST_RANKED
# Most columns for single values of numbers, for the same reason.
_MOST_LEVELS = 64


class EncodedTable(HasKernel):
    """A model whose rows go through a table encoder, or are numbers on a device."""

    domains = {
        "solver": Domain.one_of(*SOLVERS),
        "stack": Domain.FLAG,
        "encoder": Domain(
            lambda e: e is None or (isinstance(e, TableEncoder) and e.keep is None),
            "a TableEncoder that makes numbers of all columns (keep=None), or None",
        ),
    }
    solver: str
    encoder: TableEncoder | None
    encoder_: TableEncoder | None
    points_: Any
    _shares: np.ndarray

    def _gathered(self, X, y, sample_weight):
        """Rows, targets and weights of a stream or a Dask collection in memory: all are needed."""
        gathers, name = in_pieces(X), type(self).__name__
        X, y, sample_weight = read_whole(name, X, y, sample_weight)
        if gathers and X.shape[0] > gather.SAMPLE:
            size = readable(coordinates_bytes(X.shape[0], X.shape[1]))
            warnings.warn(
                f"{name} needs all rows at once: {X.shape[0]} rows, about {size} as numbers, were "
                "gathered into this process. Fit on a sample (Dask: X.sample(frac=...)), or use "
                "TableEncoder and KernelRidge, which pass over the rows where they are.",
                stacklevel=4,
            )
        return X, y, sample_weight

    def _used(self, X, y, sample_weight):
        """(X, y, weights, which rows) without the rows of weight zero."""
        weights = pts.row_weights(sample_weight, len(y))
        if weights is None:
            return X, y, None, np.arange(len(y))
        used = np.flatnonzero(weights > 0)
        kept = None if np.all(weights[used] == 1) else weights[used]
        if len(used) == len(y):
            return X, y, kept, used
        X = X if hasattr(X, "shape") else given.array_of_lists(X)
        if X.shape[0] != len(y):
            raise ValueError(inconsistent(X.shape[0], len(y)))
        return rows_at(X, used), y[used], kept, used

    def _encoded(self, X, targets=None):
        """The rows as a matrix of floats: through the encoder, or as they are on a device.

        With targets the encoder is fitted.
        """
        reset = targets is not None
        if not hasattr(X, "shape"):
            X = given.array_of_lists(X)
        if not reset:
            self._check_same_kind(X)
        if is_array(X) and not is_numpy(X):
            X = pts.as_vectors(X)
            if reset:
                self.encoder_, self.n_features_in_ = None, X.shape[1]
            else:
                check_n_columns(self, X.shape[1])
            return namespace(X).astype(X, namespace(X).float64)
        if not reset and self.encoder_ is None:  # fitted on tensors, loaded from a file
            return pts.as_vectors(X).astype(np.float64)
        if is_array(X) and X.ndim != 2:
            X = pts.as_vectors(X)  # says how to reshape
        if pts.is_frame(X):
            given.check_names(X)
        if reset:
            validate_data(self, X, skip_check_array=True)
            encoder = self._new_encoder(X.shape[1])
            n, distinct = X.shape[0], Observations.distinct(X, targets.weights is not None)
            # Once: fit, effects and rows share it.
            table = given.read_columns(encoder, X, reset=True)
            self.encoder_ = encoder.fit(table if distinct is X else distinct, targets.written)
            X = table
            if self.kernel is None and n == targets.columns.shape[0]:
                # The shares of all classes sum to one: the last says nothing new.
                T = targets.columns if targets.classes is None else targets.columns[:, :-1]
                self.encoder_, self._means_without_ = encoder_tools.add_target_encoding(
                    self.encoder_, X, T, targets.weights
                )
        else:
            X = given.read_columns(self, X)
        assert self.encoder_ is not None
        with warnings.catch_warnings():
            if reset:  # its notes say which values of the training table were not read
                warnings.filterwarnings("ignore", UNREAD)
            return self.encoder_.transform(X)

    def _new_encoder(self, width: int = 0) -> TableEncoder:
        """The encoder that was given, unfitted, with ranks and columns for values to choose from.

        A kernel that was given may be made for the columns as they are; with very many columns
        there is nothing to choose.
        """
        further = self.kernel is None and width <= _MANY_COLUMNS
        if self.encoder is None:
            return TableEncoder(ranks=further, levels=further)
        encoder = clone(self.encoder)
        return encoder.set_params(ranks=further, levels=further) if self.kernel is None else encoder

    def _check_same_kind(self, X):
        rows = X if is_array(X) else np.empty(0)
        if not same_kind(rows, self.points_):
            raise ValueError(
                f"Inputs passed to {type(self).__name__}.predict() must use the same namespace and "
                "the same device as those passed to fit(). Convert X, or fit again."
            )

    def _without_own_targets(self, Z):
        """The rows as they would be if the effects of categories did not know their own targets.

        None where no column holds such effects.
        """
        without: dict[str, np.ndarray] = self.__dict__.pop("_means_without_", {})
        if not without:
            return None
        assert self.encoder_ is not None
        unseen, names = Z.copy(), list(self.encoder_.feature_names_out_)
        for name, effects in without.items():
            unseen[:, names.index(name)] = effects
        return unseen

    def _keeping(self, rows, chosen):
        """The rows with the chosen columns; the encoder follows where others are left out."""
        if len(chosen) < rows.X.shape[1]:
            assert self.encoder_ is not None
            kinds = {
                f"{kind}s": bool(np.isin(self._outputs(kind), chosen).any()) for kind in _KINDS
            }
            self.encoder_ = encoder_tools.keep_outputs(self.encoder_, **kinds)
        return of_columns(rows, chosen)

    def _outputs(self, kind):
        """Numbers of the encoder's columns of a kind."""
        return getattr(self.encoder_, f"{kind}_outputs_")

    def _setsof_columns(self, columns):
        """The values alone; then with ranks, with columns for single values, and with both.

        Then without free text: where it says nothing, its many directions hide the other columns.
        """
        if self.encoder_ is None:
            return [columns]
        ranks, levels = self.encoder_.rank_outputs_, self.encoder_.level_outputs_
        values = np.setdiff1d(columns, np.union1d(ranks, levels))
        if not 0 < len(values) <= _MOST_RANKED:
            return [values]
        levels = levels[: len(levels) if len(levels) <= _MOST_LEVELS else 0]
        further = [a for a in (ranks, levels, np.union1d(ranks, levels)) if len(a)]
        further = further if len(ranks) and len(levels) else further[:1]
        bases = [values]
        without = np.setdiff1d(values, self.encoder_.text_outputs_)
        bases += [without] if 0 < len(without) < len(values) else []
        return [s for base in bases for s in (base, *(np.union1d(base, a) for a in further))]

    def _columns_like(self, model, width):
        """The columns of the kinds that another model kept."""
        kept = np.arange(width)
        for kind in _KINDS if self.encoder_ is not None else ():
            if not len(getattr(model.encoder_, f"{kind}_outputs_")):
                kept = np.setdiff1d(kept, self._outputs(kind))
        return kept

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column of the table, in every part of the stack by its weight."""
        check_is_fitted(self)
        shares = self._shares
        if self.encoder_ is None:
            return shares
        widths = [len(record["outputs"]) for record in self.encoder_.columns_]
        ends = np.cumsum(widths)
        return np.array([shares[b - w : b].sum() for b, w in zip(ends, widths)])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def of_columns(rows: Observations, chosen: np.ndarray) -> Observations:
    """The same rows with some of their columns."""
    return rows if len(chosen) == rows.X.shape[1] else replace(rows, X=rows.X[:, chosen])


def inconsistent(n_X: int, n_y: int) -> str:
    return (
        f"Found input variables with inconsistent numbers of samples: X has {n_X} rows and y has "
        f"{n_y}."
    )
