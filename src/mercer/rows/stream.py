"""Rows that do not fit the memory: chunks that can be read more than once.

Certification needs every row, and methods need another pass, so a stream must start anew each time
it is iterated: a class with __iter__, or Chunks around a function that opens the data.
"""

import numpy as np
import scipy.sparse

from ..engine.arrays import is_array, rows_of, to_torch

# Rows read at once from an array that is streamed.
CHUNK_ROWS = 1 << 16


class Chunks:
    """A re-iterable of chunks of rows from a function that opens the data.

    Parameters
    ----------
    open_chunks : callable
        Returns a fresh iterator over 2-D arrays each time it is called.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Chunks, KernelMap
    >>> def rows():
    ...     rng = np.random.default_rng(0)
    ...     return (rng.normal(size=(1000, 2)) for _ in range(5))
    >>> kernel_map = KernelMap(RBF(0.1), tol=1e-6).fit(Chunks(rows))
    >>> kernel_map.max_residual_ <= 1e-6
    True
    """

    def __init__(self, open_chunks):
        if not callable(open_chunks):
            raise TypeError(
                f"Chunks takes a function that returns a fresh iterator of chunks, got "
                f"{type(open_chunks).__name__}."
            )
        self.open_chunks = open_chunks

    def __iter__(self):
        return iter(self.open_chunks())

    @classmethod
    def on_device(cls, X, device="cuda", rows=CHUNK_ROWS):
        """Rows of a host array (or memory map) as torch tensors on a device, a chunk at a time.

        Chunks travel from page-locked memory, so that copying the next overlaps with the work on
        the last. For data larger than the device's memory.
        """
        n = X.shape[0]
        cuts = [(a, min(a + rows, n)) for a in range(0, n, rows)]
        return cls(lambda: (to_torch(rows_of(X, a, b), device) for a, b in cuts))


def is_stream(X):
    """Whether X is chunks of rows rather than rows: iterable, but no array, frame or sequence."""
    if is_array(X) or scipy.sparse.issparse(X) or hasattr(X, "columns"):
        return False
    if hasattr(X, "__len__") or hasattr(X, "__array__") or isinstance(X, (str, bytes)):
        return False
    return hasattr(X, "__iter__")


class Rows:
    """One view of all data sources: numbered chunks of points, as often as asked for."""

    def __init__(self, source, check):
        if is_stream(source) and iter(source) is source:
            raise TypeError(
                "X is an iterator that can be read only once, and certification reads the rows "
                "more than once: pass a re-iterable, for example Chunks(lambda: open_the_chunks())."
            )
        self.source = source
        self.check = check

    def __iter__(self):
        """(position of the first row, points)"""
        start = 0
        for chunk in self._chunks():
            if chunk.shape[0]:
                yield start, chunk
                start += chunk.shape[0]
        if start == 0:
            raise ValueError("Found array with 0 sample(s): the stream holds no rows.")

    def _chunks(self):
        if not is_stream(self.source):
            n = self.source.shape[0]
            for a in range(0, n, CHUNK_ROWS):
                yield rows_of(self.source, a, min(a + CHUNK_ROWS, n))
            return
        for chunk in self.source:
            # Empty chunks are passed over: no check could tell their columns.
            if (chunk.shape[0] if hasattr(chunk, "shape") else len(chunk)) > 0:
                yield self.check(chunk)

    def sample(self, size, rng):
        """`size` rows drawn evenly (reservoir), their positions, and the number of all rows."""
        if not is_stream(self.source):
            n = self.source.shape[0]
            chosen = np.sort(rng.choice(n, min(size, n), replace=False))
            return _gather(self.source, chosen), chosen, n
        kept, positions, n = None, np.empty(0, dtype=int), 0
        for start, chunk in self:
            n = start + chunk.shape[0]
            # Every row gets a number; the smallest `size` numbers of all are the sample.
            keys = rng.random(chunk.shape[0])
            if kept is None:
                kept, positions, numbers = chunk, np.arange(chunk.shape[0]), keys
            else:
                kept = stacked(kept, chunk)
                positions = np.concatenate([positions, start + np.arange(chunk.shape[0])])
                numbers = np.concatenate([numbers, keys])
            if kept.shape[0] > size:
                best = np.sort(np.argpartition(numbers, size)[:size])
                kept, positions, numbers = _gather(kept, best), positions[best], numbers[best]
        return kept, positions, n


def stacked(X, Y):
    """Two sets of points, one below the other."""
    if scipy.sparse.issparse(X):
        return scipy.sparse.vstack([X, Y], format="csr")
    if isinstance(X, np.ndarray):
        return np.concatenate([X, Y])
    from ..engine.arrays import namespace

    return namespace(X, Y).concat([X, Y], axis=0)


def _gather(X, indices):
    if isinstance(X, np.ndarray) or scipy.sparse.issparse(X):
        return X[indices]
    from ..engine.arrays import namespace, on_device_of

    return namespace(X).take(X, on_device_of(indices, X, dtype=namespace(X).int64), axis=0)
