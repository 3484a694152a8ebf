"""The tile loop: every kernel evaluation is cut into blocks of rows that fit the cache.

A tile is evaluated by the kernel's plain formula and consumed at once: stored, multiplied by
weights, or reduced. On the CPU tiles run on a thread pool with BLAS held to one thread; on a
device they run one after the other, as large as its memory allows.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from .arrays import Array, device, free_memory, is_array, is_cpu, is_numpy, namespace, rows_of
from .memory import PANEL_VALUES, coordinates_bytes
from .resources import current, using
from .threads import one_blas_thread

# Values in one tile: smaller tiles pay Python's overhead, larger ones leave the cache.
_TILE_VALUES = 1 << 18
_LEAST_ROWS = 192
_MOST_ROWS = 1024
# One panel may take this share of the memory: a pass holds about four arrays of its size.
_PANEL_SHARE = 1 / 24
# On a device: large products, a small share of its free memory.
_DEVICE_TILE_SHARE = 0.05


def evaluate(kernel: Any, X: Array, Y: Array | None = None, *, S: Any = None) -> Any:
    """The kernel matrix k(X, Y), stored; half is evaluated and mirrored where k is symmetric. `S`
    is Y in the form that `kernel.against` takes, where it is known."""
    half = Y is None and S is None and kernel.symmetric
    S = kernel.landmarks(X if Y is None else Y) if S is None else S
    tile = kernel.against(S)
    alone = getattr(tile, "holds_lock", False)
    values = getattr(tile, "stored", tile)  # need not be in double precision before they are in K
    K = allocate(X, (X.shape[0], S.shape[0]))
    blocks, columns_of = _cut(tile, X, S.shape[0])
    xp = namespace(K)
    size = blocks[0][1] if half else 0
    lower = xp.tril(xp.ones((size, size), dtype=xp.bool, device=device(K)))

    def work(a: int, b: int) -> None:
        # Half of a symmetric matrix: columns before this block's rows, then the diagonal square.
        for c, d in columns_of(a if half else S.shape[0], b - a):
            t = values(rows_of(X, a, b), slice(c, d))
            K[a:b, c:d] = t
            if half:
                K[c:d, a:b] = t.T
        if half:
            t = values(rows_of(X, a, b), slice(a, b))
            K[a:b, a:b] = xp.where(lower[: b - a, : b - a], t, t.T)  # one half decides, to the bit

    if half:
        # Upwards, so that each block is the first to touch its own rows of K: two threads would
        # both clear a page that both touch. The shortest blocks last, so that threads end together.
        short = len(blocks) // 4
        blocks = blocks[short:] + blocks[:short][::-1]
    run_tasks(work, blocks, kernel, X, alone=alone)
    return K


def multiply(kernel: Any, X: Array, S: Array, W: Array) -> Any:
    """k(X, S) @ W without ever storing k(X, S)."""
    tile = kernel.against(S)
    blocks, columns_of = _cut(tile, X, S.shape[0])
    product = allocate(W, (X.shape[0], W.shape[1]))

    def work(a: int, b: int) -> None:
        for c, d in columns_of(S.shape[0], b - a):
            t = tile(rows_of(X, a, b), slice(c, d))
            part = (t if t.dtype == W.dtype else namespace(t).astype(t, W.dtype)) @ W[c:d, :]
            if c == 0:
                product[a:b, :] = part
            else:
                product[a:b, :] += part

    run_tasks(work, blocks, kernel, X)
    return product


def _cut(
    tile: Any, X: Array, n_columns: int
) -> tuple[list[tuple[int, int]], Callable[[int, int], list[tuple[int, int]]]]:
    """Blocks of rows, and what cuts so many columns of so many rows: as the tile says, or so that
    tiles fit the cache."""
    if not hasattr(tile, "shape"):
        return row_blocks(X, n_columns), partial(_column_blocks, X)
    height, width = tile.shape
    return cuts(X.shape[0], height), lambda n, rows: cuts(n, width)


def allocate(like: Array, shape: tuple[int, ...]) -> Any:
    """An uninitialised float array where (and as) the points or weights are."""
    if not is_array(like) or is_numpy(like):
        dtype = getattr(like, "dtype", None)
        return np.empty(shape, dtype if dtype in (np.float32, np.float64) else np.float64)
    return namespace(like).empty(shape, dtype=like.dtype, device=device(like))


def cuts(n: int, size: int) -> list[tuple[int, int]]:
    """(start, stop) pairs that cut n into stretches of `size`, the last one shorter."""
    return [(a, min(a + size, n)) for a in range(0, n, size)]


def panel_values(usual: int) -> int:
    """Values in a panel: the usual number, or fewer where memory is limited."""
    resources = current()
    if resources.memory_limit is None:
        return usual
    return min(usual, int(_PANEL_SHARE * resources.limit()) // 8)


def panel_slices(X: Array, width: int) -> list[slice]:
    """Cuts the rows of X into panels that hold about PANEL_VALUES coordinates each."""
    rows = max(256, panel_values(PANEL_VALUES) // max(1, width))
    if not is_cpu(X):
        rows = max(rows, row_blocks(X, width)[0][1])
    n = X.shape[0] if hasattr(X, "shape") else len(X)  # a list of objects
    return [slice(a, b) for a, b in cuts(n, rows)]


def row_blocks(X: Array, n_columns: int, most: int = _MOST_ROWS) -> list[tuple[int, int]]:
    """(start, stop) pairs that cut the rows of X; they depend on sizes alone, never on threads."""
    if is_cpu(X):
        rows = max(_LEAST_ROWS, min(most, _TILE_VALUES // max(1, n_columns)))
    else:
        room = int(_DEVICE_TILE_SHARE * free_memory(X))
        rows = max(1024, int(room // coordinates_bytes(1, max(n_columns, 1))))
    return cuts(X.shape[0], rows)


def _column_blocks(X: Array, n_columns: int, rows: int) -> list[tuple[int, int]]:
    """Columns of a block of rows, cut evenly so that a tile stays near TILE_VALUES.

    On a device a block of rows is one tile: row_blocks has fitted it to the memory. Tiles of long
    rows are larger: a value then costs many multiplications, leaving the cache few, and what
    prepares the rows is done once a tile.
    """
    d = X.shape[1] if len(X.shape) > 1 else 1
    values = int(_TILE_VALUES * min(max(d / 128, 1.0), 4.0))
    blocks = max(1, round(n_columns * rows / values)) if is_cpu(X) else 1
    width = max(1, -(-n_columns // blocks))
    return cuts(n_columns, width)


def run_tasks(
    work: Callable[[int, int], None],
    blocks: list[tuple[int, int]],
    kernel: Any,
    X: Array,
    *,
    alone: bool = False,
    threads: int | None = None,
) -> None:
    """work(a, b) for every block, on threads where that is safe and worth it; `alone`: on one."""
    asked = threads is not None or current().n_jobs is not None
    on_host = is_numpy(X) or not hasattr(X, "device")
    if alone or not on_host or (kernel is not None and kernel.runs_user_code):
        threads = 1
    elif threads is None:
        threads = current().threads
    waiting = iter(blocks)

    def take_turns() -> None:
        """The next block until none is left; one that fails, in any thread, ends all work."""
        try:
            for a, b in waiting:
                work(a, b)
                progress.update()
        finally:
            deque(waiting, maxlen=0)

    with progress_bar("kernel tiles", len(blocks)) as progress:
        if threads == 1 or len(blocks) == 1:
            # Explicit n_jobs: one BLAS thread here too, so that its number does not change a byte.
            alike = asked and is_cpu(X) and not (kernel and kernel.runs_user_code)
            with one_blas_thread() if alike or alone else nullcontext():
                return take_turns()
        with one_blas_thread(), ThreadPoolExecutor(threads - 1) as pool:
            others = [pool.submit(take_turns) for _ in range(threads - 1)]
            take_turns()
            for other in others:
                other.result()


# Takes what a progress bar takes: tqdm starts a thread even for a bar that is not shown.
_NO_BAR = SimpleNamespace(n=0, update=lambda n=1: None, set_postfix=lambda **_: None)


@contextmanager
def progress_bar(description: str, total: int | None = None) -> Iterator[Any]:
    """A bar that counts up to the total, where it is wanted; inside another bar there is none."""
    if not current().verbose:
        yield _NO_BAR
        return
    from tqdm.auto import tqdm  # half of what importing this library would cost

    with using(verbose=False), tqdm(total=total, desc=description, leave=False) as bar:
        yield bar
