"""Stable 64-bit hashes of labels, and counts of them as rows of a sparse matrix.

The hash of a thing depends on the thing alone: not on the sample, the process or the machine. So
coordinates that are numbered by hashes are the same wherever a point is met, and new points need no
refit. Two of m different things share a column with a probability of at most m^2 / 2^62.
"""

import hashlib
import numbers
from typing import Any

import numpy as np
import scipy.sparse

# Columns of a hashed map: a power of two that leaves room for a few maps side by side in int64.
MOST_COLUMNS = 1 << 61
# Matrices with fewer columns multiply as they are; wider ones would fill the memory with zeros.
FEW_COLUMNS = 1 << 22
# Slots of the table of `distinct_places`: a power of two that fits in the cache.
_SLOTS = 1 << 19


class _WideRows(scipy.sparse.csr_array):
    """Sparse rows with up to 2^61 columns, which `F @ G.T` numbers anew before it multiplies.

    SciPy's own product takes memory in proportion to the number of columns.
    """

    def __matmul__(self, other: Any) -> Any:
        if not scipy.sparse.issparse(other) or other.shape[0] != self.shape[1]:
            raise self._too_wide()
        right = scipy.sparse.csr_array(other.T)
        columns = distinct_keys(self.indices)
        return numbered(self, columns) @ numbered(right, columns).T

    @property
    def iloc(self) -> Any:
        """Refused: scikit-learn asks every input for it (is this of pandas?) before use.

        Its estimators would allocate one number per column, or ask for a report of the fault.
        """
        raise self._too_wide()

    def _too_wide(self):
        return TypeError(
            f"these coordinates have {self.shape[1]} hashed columns: multiply them by the "
            "transpose of others (F @ G.T), or number the columns in use, for any estimator, by "
            "KernelMap(kernel, basis='closed').fit_transform(X)."
        )


def mixed(x: np.ndarray) -> np.ndarray:
    """Every bit of a 64-bit integer spread over all bits, one to one (the end of splitmix64)."""
    x = np.asarray(x).astype(np.uint64)
    x += np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def paired(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A hash of (x, y). The odd factor tells the two places apart, even where x and y are hashes of
    each other's like."""
    return mixed(mixed(x) + mixed(y) * np.uint64(0xD1B54A32D192ED03))


def distinct_keys(numbers: np.ndarray) -> np.ndarray:
    """Sorted, each once. (np.unique looks integers up in a hash table, which is slower here.)"""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def distinct_places(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted, each once; and where each of the given numbers (not negative) stands among them.

    In long arrays most repeated numbers are found in a table with one slot for each value of the
    last bits, and only the rest is sorted.
    """
    if len(numbers) < _SLOTS // 4:
        return _sorted_places(numbers)
    slots = numbers & (_SLOTS - 1)
    table = np.full(_SLOTS, -1, dtype=np.int64)
    table[slots] = numbers
    rest = np.flatnonzero(table[slots] != numbers)  # another number has their slot
    used = np.flatnonzero(table >= 0)
    ordered, found = _sorted_places(np.concatenate([table[used], numbers[rest]]))
    of_slot = np.empty(_SLOTS, dtype=np.int64)
    of_slot[used] = found[: len(used)]
    places = of_slot[slots]
    places[rest] = found[len(used) :]
    return ordered, places


def _sorted_places(numbers):
    order, ordered = _sorted_keys(numbers)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.cumsum(first) - 1
    return ordered[first], places


def _sorted_keys(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order that sorts integers that are not negative, and the sorted integers.

    Each number and its place are sorted as one integer: np.sort is several times as fast as
    np.argsort. Where both do not fit in 63 bits, the lowest bits of the numbers are left out; in
    the rare case that they matter, np.argsort decides.
    """
    n = len(numbers)
    for_places = max(1, n - 1).bit_length()
    for_numbers = int(numbers.max(initial=0)).bit_length()
    left_out = max(0, for_numbers + for_places - 63)
    both = numbers.astype(np.int64) >> left_out
    both <<= for_places
    both |= np.arange(n)
    both.sort()
    order = both & ((1 << for_places) - 1)
    ordered = numbers[order]
    if left_out and (ordered[1:] < ordered[:-1]).any():
        order = np.argsort(numbers)
        ordered = numbers[order]
    return order, ordered


def columns_of(keys: np.ndarray) -> np.ndarray:
    """Hashes as column numbers below MOST_COLUMNS."""
    return (keys & np.uint64(MOST_COLUMNS - 1)).astype(np.int64)


# --- labels ---------------------------------------------------------------------------------------


def label_keys(labels: Any) -> np.ndarray:
    """A 64-bit key for each label: numbers, texts, tuples of these, or rows of numbers.

    Equal labels have equal keys, whatever they are held in: 1, 1.0 and numpy.int32(1) are equal.
    """
    as_rows = isinstance(labels, list) and labels and isinstance(labels[0], (list, np.ndarray))
    if as_rows or isinstance(labels, np.ndarray):
        values = np.asarray(labels)
    else:
        values = np.asarray(labels, dtype=object)
    if values.ndim == 2 and values.dtype.kind in "fiub":  # rows such as one-hot codes
        keys = np.zeros(len(values), dtype=np.uint64)
        for c in range(values.shape[1]):
            keys = mixed(keys ^ label_keys(values[:, c]))
        return keys
    if values.ndim != 1:
        values = np.fromiter(labels, dtype=object, count=len(labels))
    if values.dtype.kind in "iub" and not (values.dtype == np.uint64 and (values >> 63).any()):
        return mixed(values.astype(np.int64).view(np.uint64))
    if values.dtype.kind == "f":
        return _number_keys(values.astype(np.float64))
    known: dict[Any, int] = {}
    keys = np.empty(len(values), dtype=np.uint64)
    for i, label in enumerate(values.tolist() if values.dtype.kind != "O" else values):
        if label not in known:
            known[label] = _label_key(label)
        keys[i] = known[label]
    return keys


def _number_keys(values):
    if np.isnan(values).any():
        raise ValueError("a label is NaN.")
    whole = values == np.floor(values)
    small = whole & (np.abs(values) < 2.0**63)
    keys = mixed(values.view(np.uint64) ^ np.uint64(0xF10A7))
    keys[small] = mixed(values[small].astype(np.int64).view(np.uint64))
    for i in np.flatnonzero(whole & ~small & np.isfinite(values)):
        keys[i] = _label_key(int(values[i]))
    return keys


def _label_key(label):
    if isinstance(label, numbers.Integral):
        label = int(label)
        if -(2**63) <= label < 2**63:
            return int(label_keys(np.array([label], dtype=np.int64))[0])
        return _digest(b"i", str(label).encode())  # through a float, neighbours would meet
    if isinstance(label, numbers.Rational) and label != float(label):
        return _digest(b"q", str(label).encode())
    if isinstance(label, numbers.Real):
        return int(_number_keys(np.array([float(label)]))[0])
    if isinstance(label, str):
        return _digest(b"s", label.encode("utf-8", "surrogatepass"))
    if isinstance(label, bytes):
        return _digest(b"b", label)
    if isinstance(label, (tuple, frozenset)):
        parts = [_label_key(part) for part in label]
        parts = sorted(parts) if isinstance(label, frozenset) else parts
        return _digest(type(label).__name__.encode(), np.array(parts, dtype=np.uint64).tobytes())
    raise TypeError(
        f"a label is {type(label).__name__} {label!r:.40}; labels are numbers, texts or tuples."
    )


def _digest(kind, content):
    return int.from_bytes(hashlib.blake2b(kind + content, digest_size=8).digest(), "little")


# --- sparse rows ----------------------------------------------------------------------------------


def counted(keys: np.ndarray, starts: np.ndarray, n_columns: int) -> scipy.sparse.csr_array:
    """How often each column occurs in each row; keys[starts[i] : starts[i + 1]] are row i's."""
    return rows_of_entries(np.ones(len(keys)), keys, starts, n_columns)


def rows_of_entries(
    values: np.ndarray, keys: np.ndarray, starts: np.ndarray, n_columns: int
) -> scipy.sparse.csr_array:
    """Sparse rows from values and column numbers, those of one column added up."""
    kind = _WideRows if n_columns > FEW_COLUMNS else scipy.sparse.csr_array
    # 32-bit numbers where they suffice: scikit-learn's linear models ask for them.
    index = np.int32 if max(n_columns, len(keys)) < 2**31 else np.int64
    rows = kind(
        (values, keys.astype(index), starts.astype(index)), shape=(len(starts) - 1, n_columns)
    )
    rows.sum_duplicates()
    return rows


def numbered(F: Any, columns: np.ndarray) -> scipy.sparse.csr_array:
    """F in the given columns alone (sorted), numbered from 0; other columns are left out."""
    if F.nnz and len(columns):
        places = np.searchsorted(columns, F.indices)
        places[places == len(columns)] = 0
        kept = columns[places] == F.indices
    else:
        places, kept = np.zeros(F.nnz, dtype=np.int64), np.zeros(F.nnz, dtype=bool)
    starts = np.concatenate([[0], np.cumsum(kept)])[F.indptr]
    index = np.int32 if max(F.nnz, len(columns)) < 2**31 else np.int64
    return scipy.sparse.csr_array(
        (F.data[kept], places[kept].astype(index), starts.astype(index)),
        shape=(F.shape[0], len(columns)),
    )


def squared_lengths(F: Any) -> np.ndarray:
    """|f|^2 for every row of a matrix, dense or sparse and of any width."""
    if not scipy.sparse.issparse(F):
        return np.einsum("ij,ij->i", F, F)
    # Without entries bincount counts, in integers.
    squares = np.bincount(row_numbers(F), weights=F.data**2, minlength=F.shape[0])
    return squares.astype(float)


def row_numbers(F: Any) -> np.ndarray:
    """The row of every entry of a sparse matrix."""
    return np.repeat(np.arange(F.shape[0]), np.diff(F.indptr))


def scaled_rows(F: Any, factors: Any) -> Any:
    """Each row of a sparse matrix multiplied by its factor."""
    F = F.copy()
    F.data *= np.repeat(factors, np.diff(F.indptr))
    return F


def width_side_by_side(left: int, right: int) -> int:
    """The number of columns of two maps together."""
    return left + right if left + right < 2**63 else MOST_COLUMNS


def side_by_side(F: Any, G: Any) -> Any:
    """Two sparse maps of the same points as one: the columns of G stand after those of F, or all
    are hashed anew, where numbers of 63 bits do not suffice."""
    width = width_side_by_side(F.shape[1], G.shape[1])
    if width < F.shape[1] + G.shape[1]:
        keys = F.indices.astype(np.uint64), G.indices.astype(np.uint64) | np.uint64(2**63)
        maps = ((A.data, columns_of(mixed(k)), A.indptr, width) for A, k in zip((F, G), keys))
        return rows_of_entries(*next(maps)) + rows_of_entries(*next(maps))
    both = scipy.sparse.hstack([F, G], "csr")
    return _WideRows(both) if width > FEW_COLUMNS else both


def row_products(F: Any, G: Any) -> Any:
    """The sparse map of a product: every coordinate of F times every one of G, row by row."""
    nF, nG = np.diff(F.indptr).astype(np.int64), np.diff(G.indptr).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(nF * nG)])
    # Entry e of row i stands for the pair (e // nG, e % nG) of that row's entries.
    row = np.repeat(np.arange(F.shape[0]), nF * nG)
    place = np.arange(starts[-1]) - starts[row]
    left, right = F.indptr[row] + place // nG[row], G.indptr[row] + place % nG[row]
    values = F.data[left] * G.data[right]
    width = F.shape[1] * G.shape[1]
    if width <= MOST_COLUMNS:
        keys = F.indices[left].astype(np.int64) * G.shape[1] + G.indices[right]
    else:
        width = MOST_COLUMNS
        keys = columns_of(paired(F.indices[left], G.indices[right]))
    return rows_of_entries(values, keys, starts, width)
