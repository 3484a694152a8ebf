"""Samples on the page: a thumbnail, its text, or its values."""

import base64
import io
from typing import Any

import numpy as np
import scipy.sparse

from ... import Kernel
from ...kernels import points as pts
from ..data import dense
from ..plots.style import as_bytes, as_text, shortened
from . import drawings

# Longest side of a thumbnail in pixels; the page enlarges it.
_LARGEST = 48
MOST_VALUES, LONGEST_TEXT = 8, 240
# Columns of the table of selected rows.
_MOST_COLUMNS = 40


def described(data: Any, kernel: Kernel | None = None) -> tuple[list[str] | None, list[str]]:
    """(thumbnails or None, texts): one of each for every point. Objects are drawn as the kernel
    sees them, where one is given."""
    shown, n = data.shown, len(data)
    if shown is None:
        return None, [""] * n
    columns = named_columns(shown)
    drawn = None if kernel is None else drawings.of_objects(kernel, shown)
    if drawn is not None:
        images, texts = drawn
        several = pts.is_frame(shown) and shown.shape[1] > 1
        return images, _values(*columns) if several and columns is not None else texts
    if data.image_shape is not None:
        return thumbnails(np.reshape(dense(shown), (n, *data.image_shape))), [""] * n
    if columns is not None:
        return None, _values(*columns)
    if scipy.sparse.issparse(shown):
        return None, [_sparse_values(shown[[i]]) for i in range(n)]
    if isinstance(shown, np.ndarray) and shown.ndim == 3:
        return thumbnails(shown), [""] * n
    return None, [shortened(str(item), LONGEST_TEXT) for item in shown]


def named_columns(shown: Any) -> tuple[list[str], np.ndarray] | None:
    """(names, table) of a frame or a matrix; None for anything else."""
    if pts.is_frame(shown):
        return [str(name) for name in shown.columns], shown.to_numpy()
    if isinstance(shown, np.ndarray) and shown.ndim == 2:
        return [f"x{i}" for i in range(shown.shape[1])], shown
    return None


def values_of(data: Any) -> dict[str, Any] | None:
    """Full values of every point, for the table of selected rows; None for images and objects."""
    columns = None if data.image_shape is not None else named_columns(data.shown)
    if columns is None:
        return None
    names, rows = columns
    return {
        "names": names[:_MOST_COLUMNS],
        "rows": [[_plain(v) for v in row[:_MOST_COLUMNS]] for row in rows],
    }


def _plain(value):
    """A number (six digits), a text, or None, as JSON can hold it."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, float, np.integer, np.floating)):
        value = float(value)
        return float(f"{value:.6g}") if np.isfinite(value) else None
    if value is None or value is np.nan:
        return None
    return value if isinstance(value, str) else shortened(str(value), LONGEST_TEXT)


def thumbnails(images: Any) -> list[str]:
    """Grey images (n, height, width) as data URIs of PNG files, dark on white."""
    from PIL import Image

    images = np.nan_to_num(np.asarray(images, dtype=float))
    uris = []
    for grey in 255 - as_bytes(images):
        image, file = Image.fromarray(grey), io.BytesIO()
        image.thumbnail((_LARGEST, _LARGEST))
        image.save(file, format="PNG", optimize=True)
        uris.append("data:image/png;base64," + base64.b64encode(file.getvalue()).decode())
    return uris


def _values(names, rows):
    """ "name: value" for the first columns."""
    more = f"\n… {rows.shape[1] - MOST_VALUES} more" if rows.shape[1] > MOST_VALUES else ""
    first = [shortened(name, 30) for name in names[:MOST_VALUES]]
    return ["\n".join(f"{n}: {_value(v)}" for n, v in zip(first, row)) + more for row in rows]


def _sparse_values(row):
    row = row.tocoo()
    largest = np.argsort(-np.abs(row.data))[:MOST_VALUES]
    return "\n".join(f"x{row.coords[1][i]}: {_value(row.data[i])}" for i in largest)


def _value(value):
    return shortened(as_text(value), 60)
