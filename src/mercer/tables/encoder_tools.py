"""Work on a fitted TableEncoder that models ask for: its columns, outputs and target encoding."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .columns import LEVEL, RANK, Categories, Dates, Kept, Numbers, Texts, as_float
from .given import read_columns
from .notes import CATEGORY, EFFECT, NO_HELP, TEXT, left_out, with_further
from .target_encoding import MOST_MEANS, WORDS, TargetEncoding, WithTargetEncoding

if TYPE_CHECKING:
    from .encoder import TableEncoder

# Known values of a category that stand for an unseen one.
_DRAWS = 16


def keep_outputs(
    encoder: "TableEncoder", *, ranks: bool = False, levels: bool = False, texts: bool = True
) -> "TableEncoder":
    """The same fitted encoder, with ranks and columns for single values only if asked for.

    With `texts=False` columns of free text are left out.
    """
    check_is_fitted(encoder)
    kept = _copied(encoder)
    kept.set_params(ranks=encoder.ranks and ranks, levels=encoder.levels and levels)
    for j, (made, record) in enumerate(zip(encoder.encoders_, encoder.columns_)):
        if isinstance(made, Numbers):
            kept.encoders_[j] = made = made.keeping(ranks, levels)
            action = with_further(record["action"], made)
            kept.columns_[j] = record | {"action": action, "outputs": made.names_}
        elif isinstance(made, Texts) and not texts:
            kept.encoders_[j], kept.columns_[j] = left_out(record["name"], TEXT, NO_HELP)
    return name_outputs(kept)


def _copied(encoder: "TableEncoder") -> "TableEncoder":
    """The same fitted encoder with lists of its own; `copy` would pack it as for a file."""
    made = object.__new__(type(encoder))
    own = {name: list(getattr(encoder, name)) for name in ("encoders_", "columns_")}
    made.__dict__ = vars(encoder) | own
    return made


def add_target_encoding(
    encoder: "TableEncoder", X: Any, targets: np.ndarray, weights: np.ndarray | None = None
) -> tuple["TableEncoder", dict[str, np.ndarray]]:
    """The same fitted encoder, with the effect of each frequent value on the targets.

    That is for columns of categories and text with many values, where the effects are larger
    than chance. `targets` has one column of numbers per target. Also returned, by the names of
    the outputs: the effects for these rows, each without the row itself.
    """
    check_is_fitted(encoder)
    table = read_columns(encoder, X)
    names, columns = table.names, table.columns
    made = _copied(encoder)
    without: dict[str, np.ndarray] = {}
    for j, (name, record) in enumerate(zip(names, encoder.columns_)):
        many = record["kind"] == TEXT or record["n_pooled"]
        if not many or targets.shape[1] > MOST_MEANS:
            continue
        beside = [
            (other, values)
            for i, (other, values) in enumerate(zip(encoder.encoders_, columns))
            if other is not None and not isinstance(other, Kept | Texts) and i != j
        ]

        def others(beside=beside):
            return np.hstack([other.transform(values) for other, values in beside])

        means = TargetEncoding().fit(
            columns[j], name, targets, others if beside else None, weights, encoder.random_state
        )
        if not means.is_significant_:
            continue
        without |= dict(zip(means.names_, means.__dict__.pop("without_").T))
        words = np.mean([len(level.split()) for level in means.levels_])
        keeps = record["kind"] == CATEGORY or words >= WORDS
        made.encoders_[j] = WithTargetEncoding(encoder.encoders_[j], means) if keeps else means
        made.columns_[j] = record | {
            "kind": record["kind"] if keeps else CATEGORY,
            "action": record["action"] if keeps else EFFECT,
            "outputs": made.encoders_[j].names_,
            "has_means": True,
        }
    return name_outputs(made), without


def unseen_values(
    encoder: "TableEncoder", X: Any
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each column of categories: where new rows have a value that `fit` has not seen.

    Each is (rows, places among the outputs, what known values have there: any of these may be that
    of the unseen one).
    """
    check_is_fitted(encoder)
    table, end = None, 0
    for j, (made, record) in enumerate(zip(encoder.encoders_, encoder.columns_)):
        end += len(record["outputs"])
        # Free text has its n-grams, whether it has been seen or not.
        parts = [made.plain, made.means] if isinstance(made, WithTargetEncoding) else [made]
        parts = [part for part in parts if isinstance(part, Categories | TargetEncoding)]
        if not parts:
            continue
        table = read_columns(encoder, X) if table is None else table
        rows = np.flatnonzero(parts[-1].unseen(table.columns[j]))
        if len(rows):
            levels = parts[-1].typical(_DRAWS)
            known = np.hstack([part.transform(levels) for part in parts])
            yield rows, np.arange(end - known.shape[1], end), known


def column_as_numbers(encoder: "TableEncoder", X: Any, name: str) -> np.ndarray | None:
    """One column of numbers or dates (in seconds) as it is read; None where it is neither."""
    check_is_fitted(encoder)
    j = [record["name"] for record in encoder.columns_].index(name)
    made = encoder.encoders_[j]
    if not isinstance(made, Numbers | Dates):
        return None
    return as_float(made.read(read_columns(encoder, X).columns[j]))


def effects_of(encoder: Any) -> TargetEncoding | None:
    """The effects of values on the target that an encoder of a column holds; None without any."""
    made = encoder.means if isinstance(encoder, WithTargetEncoding) else encoder
    return made if isinstance(made, TargetEncoding) else None


def name_outputs(encoder: "TableEncoder") -> "TableEncoder":
    """The encoder, with what its columns say about its outputs."""
    outputs = [name for record in encoder.columns_ for name in record["outputs"]]
    encoder.feature_names_out_ = np.array(outputs, dtype=object)
    kinds: list[Any] = []
    for made in encoder.encoders_:
        kinds += getattr(made, "kinds_", [type(made)] * len(getattr(made, "names_", ())))
    encoder.rank_outputs_, encoder.level_outputs_, encoder.text_outputs_ = (
        np.flatnonzero([kind == wanted for kind in kinds]) for wanted in (RANK, LEVEL, Texts)
    )
    return encoder
