"""Small drawings of objects for the page: graphs, paths and sets of points as SVG images."""

import base64
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import shortest_path
from sklearn.preprocessing import KernelCenterer

from ... import Kernel
from ...engine import evenly
from ...kernels import points as pts
from ...kernels import read_paths
from ..plots.style import COLOURS

# Side of a drawing in its own units, with a margin inside.
SIDE, MARGIN = 96, 8
# Nodes, points of a path and members of a set that can still be seen at this size.
MOST_NODES, MOST_POINTS, MOST_MEMBERS = 60, 64, 80
# Steps that bring distances in the picture nearer to numbers of edges.
_LAYOUT_STEPS = 30


def of_objects(kernel: Any, X: Any) -> tuple[list[str], list[str]] | None:
    """(drawings, texts) of points that a kernel compares as objects; None for all others."""
    part, column = _part(kernel)
    if part is None:
        return None
    if pts.is_frame(X):
        if column is None and X.shape[1] > 1:
            return None
        if isinstance(column, str):
            column = list(X.columns).index(column)
        X = X.to_numpy()[:, column or 0]
    ways: dict[str, Callable] = {"graphs": _graphs, "paths": _paths, "sets": _sets}
    drawn = list(ways[part.drawn_as](part, part.points(X)))
    return [_image(shapes) for shapes, _ in drawn], [text for _, text in drawn]


def _part(kernel, column=None):
    """The part of a kernel whose points can be drawn, and the column that it sees (or None)."""
    if kernel.drawn_as is not None:
        return kernel, column
    own = getattr(kernel, "columns", None)
    column = own if isinstance(own, (str, int, np.integer)) else column
    for part in kernel.get_params(deep=False).values():
        if isinstance(part, Kernel):
            found = _part(part, column)
            if found[0] is not None:
                return found
    return None, None


# --- graphs ---------------------------------------------------------------------------------------


def _graphs(kernel, X):
    """Nodes in the colours of their labels, the most frequent label first."""
    graphs = kernel.graphs(X)
    _, codes, sizes = np.unique(graphs.labels, return_inverse=True, return_counts=True)
    place = np.empty(len(sizes), dtype=int)
    place[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    colour = place[codes]
    firsts = np.searchsorted(graphs.source, graphs.starts)
    for i, (a, b) in enumerate(pairwise(graphs.starts)):
        arcs = slice(firsts[i], firsts[i + 1])
        u, v = graphs.source[arcs] - a, graphs.target[arcs] - a
        u, v = u[u <= v], v[u <= v]
        seen = 0 < b - a <= MOST_NODES
        shapes = _graph(b - a, u, v, colour[a:b]) if seen else []
        yield shapes, f"{b - a} nodes, {len(u)} edges"


def _graph(n, u, v, colour):
    Z = _fitted(_layout(n, u, v), equal=True)
    lines = "".join(f"M{_xy(Z[i])}L{_xy(Z[j])}" for i, j in zip(u, v) if i != j)
    shapes = [_stroke(lines, "#777", 2)] if lines else []
    for c in np.unique(colour):
        dots = "".join(f"M{_xy(z)}h0" for z in Z[colour == c])
        shapes.append(_stroke(dots, COLOURS[c % len(COLOURS)], 10))
    return shapes


def _layout(n, u, v):
    """Nodes in a plane, as far apart as there are edges between them (least stress, [MDS])."""
    arcs = scipy.sparse.csr_array((np.ones(len(u)), (u, v)), shape=(n, n))
    D = shortest_path(arcs.toarray(), directed=False, unweighted=True)
    known = D[np.isfinite(D)]
    D[~np.isfinite(D)] = known.max() + 2
    values, vectors = np.linalg.eigh(KernelCenterer().fit_transform(-0.5 * D**2))
    Z = np.zeros((n, 2))
    kept = min(n, 2)
    Z[:, :kept] = vectors[:, ::-1][:, :kept] * np.sqrt(np.maximum(values[::-1][:kept], 0))
    # Nodes at the same place would never part.
    Z += 0.05 * np.column_stack([np.cos(np.arange(n)), np.sin(np.arange(n))])
    weights = 1 / np.maximum(D, 1) ** 2  # near nodes matter most
    np.fill_diagonal(weights, 0)
    V = np.diag(weights.sum(axis=1)) - weights + 1 / n
    for _ in range(_LAYOUT_STEPS):
        distances = np.linalg.norm(Z[:, None] - Z[None], axis=2)
        B = -weights * D / np.maximum(distances, 1e-9)
        np.fill_diagonal(B, 0)
        np.fill_diagonal(B, -B.sum(axis=1))
        Z = np.linalg.solve(V, B @ Z)
    return Z


# --- paths and sets -------------------------------------------------------------------------------


def _paths(kernel, X):
    """One line per channel, each over its own range."""
    for path in read_paths(X):
        rows = evenly(len(path), MOST_POINTS)
        shapes = []
        for c, channel in enumerate(path[rows].T if len(path) else ()):
            Z = _fitted(np.column_stack([rows, channel]))
            line = "M" + "L".join(_xy(z) for z in Z)
            shapes.append(_stroke(line, COLOURS[c % len(COLOURS)], 3))
        yield shapes, f"{len(path)} points, {path.shape[1]} channels"


def _sets(kernel, X):
    """The first two columns of the members, on axes common to all sets."""
    members, starts = kernel.pooled(X)
    Z = np.zeros((len(members), 2))
    if len(members):
        Z[:, : min(2, members.shape[1])] = members[:, :2]
        Z = _fitted(Z)
    for a, b in pairwise(starts):
        dots = "".join(f"M{_xy(z)}h0" for z in Z[a + evenly(b - a, MOST_MEMBERS)])
        yield [_stroke(dots, COLOURS[0], 5)] if dots else [], f"{b - a} members"


# --- SVG ------------------------------------------------------------------------------------------


def _fitted(Z, equal=False):
    """Points moved and scaled into the picture, the second axis upwards."""
    low, spread = Z.min(axis=0), np.ptp(Z, axis=0)
    if equal:
        spread = np.full(2, spread.max())
        low = (Z.min(axis=0) + Z.max(axis=0)) / 2 - spread / 2
    share = np.where(spread > 0, (Z - low) / np.where(spread > 0, spread, 1), 0.5)
    share[:, 1] = 1 - share[:, 1]
    return MARGIN + share * (SIDE - 2 * MARGIN)


def _xy(z):
    return f"{z[0]:.0f} {z[1]:.0f}"


def _stroke(path, colour, width):
    return f'<path d="{path}" stroke="{colour}" stroke-width="{width}"/>'


def _image(shapes):
    """A picture that a page can show: an image can run no script."""
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIDE}" height="{SIDE}" fill="none" '
        'stroke-linecap="round" stroke-linejoin="round">'
        f'<rect width="{SIDE}" height="{SIDE}" fill="#fff"/>{"".join(shapes)}</svg>'
    )
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()
