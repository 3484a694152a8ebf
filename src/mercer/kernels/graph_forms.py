"""Graphs in the forms that people have them in, read into one flat form for a whole sample."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .hashing import label_keys, mixed
from .points import read_each, short


@dataclass
class Graphs:
    """Several graphs side by side: nodes are numbered through, arcs go both ways.

    starts : where the nodes of each graph begin, and one past the last
    labels : a 64-bit key per node
    source, target : the ends of every arc, sorted by source; an undirected edge is two arcs
    arc_labels : a 64-bit key per arc, or None
    """

    starts: np.ndarray
    labels: np.ndarray
    source: np.ndarray
    target: np.ndarray
    arc_labels: np.ndarray | None


def read_graphs(X: Any, node_label: str | None, edge_label: str | None) -> Graphs:
    """All graphs of a sample; whatever is wrong with one of them is said with its position."""
    read = _plain(X) or zip(*read_each(X, lambda graph: _read(graph, node_label, edge_label), ": "))
    labels, edges, edge_keys = read
    sizes, lengths = np.array([len(l) for l in labels]), np.array([len(e) for e in edges])
    pairs = np.concatenate(edges).astype(np.int64)
    _check_ends(pairs, sizes, lengths)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    marked = _edge_keys(edge_keys, lengths)
    pairs += np.repeat(starts[:-1], lengths)[:, None]
    source, target, edge = _arcs(pairs, starts[-1])
    arc_labels = None if marked is None else marked[edge]
    return Graphs(starts, _node_keys(labels), source, target, arc_labels)


def _plain(X):
    """The same for pairs of arrays of whole numbers, the form that large samples come in: one look
    at all of them takes a tenth of the time. None where any graph has another form."""
    graphs = list(X)
    if {type(graph) for graph in graphs} != {tuple} or {len(graph) for graph in graphs} != {2}:
        return None
    edges, labels = zip(*graphs)
    if {type(a) for a in edges} | {type(a) for a in labels} != {np.ndarray}:
        return None
    pairs = {a.ndim for a in edges} == {2} and {a.shape[1] for a in edges} == {2}
    whole = {a.dtype.kind for a in edges} <= {"i", "u"}
    flat = {a.ndim for a in labels} == {1} and {a.dtype.kind for a in labels} == {"i"}
    if not (pairs and whole and flat) or any(
        len(e) == len(l) == 2 and _is_matrix(e, 2) for e, l in zip(edges, labels)
    ):
        return None
    return labels, edges, [None] * len(graphs)


def _check_ends(pairs, sizes, lengths):
    """Every edge joins nodes that there are."""
    wrong = (pairs < 0) | (pairs >= np.repeat(sizes, lengths)[:, None])
    if wrong.any():
        edge = np.argwhere(wrong)[0, 0]
        i = np.repeat(np.arange(len(sizes)), lengths)[edge]
        raise ValueError(
            f"X[{i}]: an edge joins nodes {pairs[edge].tolist()}, and its {sizes[i]} nodes are "
            f"numbered from 0."
        )


def _node_keys(labels):
    """Keys of all nodes; signed integers are not hashed yet, and are hashed here at once."""
    if all(l.dtype.kind == "i" for l in labels):
        return label_keys(np.concatenate(labels))
    return np.concatenate([label_keys(l) if l.dtype.kind == "i" else l for l in labels])


def _edge_keys(edge_keys, lengths):
    if all(keys is None for keys in edge_keys):
        return None
    for i, (keys, n) in enumerate(zip(edge_keys, lengths)):
        if keys is None and n:
            raise ValueError(f"X[{i}]: it has no edge labels, and other graphs have them.")
    return np.concatenate([keys for keys in edge_keys if keys is not None])


def _arcs(pairs, n):
    """Both directions of every edge, each once and sorted by its ends; and which edge it was.

    A sparse matrix whose rows and columns are the ends sorts them by counting.
    """
    n, m = int(n), len(pairs)
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    edge = np.concatenate([np.arange(m), np.arange(m)])
    arcs = scipy.sparse.coo_array((edge, (ends[:, 0], ends[:, 1])), shape=(n, n))
    arcs.has_canonical_format = True  # an edge that is given twice must not be added up
    arcs = arcs.tocsc().tocsr()
    source, target = np.repeat(np.arange(n), np.diff(arcs.indptr)), arcs.indices
    again = (source[1:] == source[:-1]) & (target[1:] == target[:-1])
    if again.any():
        first = np.concatenate([[True], ~again])
        return source[first], target[first], arcs.data[first]
    return source, target, arcs.data


def _read(graph, node_label, edge_label):
    """(node labels as _labels gives them, edges, edge keys or None) of one graph."""
    if hasattr(graph, "adj") and hasattr(graph, "nodes"):
        return _from_networkx(graph, node_label, edge_label)
    if hasattr(graph, "edge_index"):
        return _from_attributes(graph, node_label, edge_label)
    if scipy.sparse.issparse(graph) or _is_square(graph):
        if node_label is not None:
            raise ValueError(
                f"an adjacency matrix has no attribute {node_label!r}; pass (matrix, labels)."
            )
        return _from_parts(scipy.sparse.csr_array(graph), None, None)
    if isinstance(graph, (tuple, list)) and len(graph) in (2, 3):
        return _from_parts(*graph, *([None] if len(graph) == 2 else []))
    raise TypeError(
        f"{type(graph).__name__} {short(graph)} is not a graph: give a networkx graph, a pair "
        "(edges, node labels), an adjacency matrix, or an object with edge_index."
    )


def _is_square(graph):
    shape = tuple(getattr(graph, "shape", ()))
    return len(shape) == 2 and shape[0] == shape[1]


def _is_matrix(edges, n_nodes):
    """Whether edges are given as an adjacency matrix, for so many nodes (None: not known).

    Two by two whole numbers may also be two edges between two nodes, and then mean another graph.
    """
    if scipy.sparse.issparse(edges):
        return True
    if not _is_square(edges) or len(edges) != 2:
        return _is_square(edges)
    A = _array(edges, "edges")
    if A.dtype.kind not in "iu":
        return True  # numbers of nodes are whole
    if n_nodes != 2 or A[0, 1] != A[1, 0]:
        return False  # more nodes than rows, or not an undirected graph
    if A.max() > 1 or (A[0] == A[1]).all():
        return True  # two nodes are 0 and 1, and nobody lists the same loop twice
    if A[0, 1] and not A[0, 0]:
        return False  # both readings give the same graph
    raise ValueError(
        f"{A.tolist()} with two nodes may be two edges or an adjacency matrix: give edges as a "
        "list of pairs, or the matrix as scipy.sparse.csr_array(A)."
    )


# --- networkx -------------------------------------------------------------------------------------


def _from_networkx(graph, node_label, edge_label):
    if graph.is_directed():
        raise ValueError("a directed graph; its undirected form is graph.to_undirected().")
    number = {node: i for i, node in enumerate(graph.nodes)}
    keys = _networkx_labels(graph, node_label)
    listed = list(graph.edges(data=True))
    edges = np.array([(number[u], number[v]) for u, v, _ in listed], dtype=np.int64)
    edge_keys = None
    if edge_label is not None:
        missing = [(u, v) for u, v, d in listed if edge_label not in d]
        if missing:
            raise ValueError(f"edge {missing[0]} has no attribute {edge_label!r}.")
        edge_keys = label_keys([d[edge_label] for _, _, d in listed])
    return keys, edges.reshape(-1, 2), edge_keys


def _networkx_labels(graph, node_label):
    if node_label is None:
        named = sorted({str(name) for _, data in graph.nodes(data=True) for name in data})
        if named:
            raise ValueError(
                f"its nodes have the attributes {', '.join(named[:5])}: say which one is their "
                f"label, node_label={named[0]!r}; delete them to compare shapes alone."
            )
        return _alike(len(graph.nodes))
    labels: list[Any] = []
    for node, data in graph.nodes(data=True):
        if node_label not in data:
            raise ValueError(f"node {node!r} has no label: attribute {node_label!r} is missing.")
        labels.append(data[node_label])
    return label_keys(labels)


# --- arrays ---------------------------------------------------------------------------------------


def _from_attributes(graph, node_label, edge_label):
    """An object with edge_index (2 x arcs), as PyTorch Geometric has them."""
    edges = _array(graph.edge_index, "edge_index").T
    name = "x" if node_label is None else node_label
    labels = getattr(graph, name, None)
    if labels is None and node_label is not None:
        raise ValueError(f"it has no node labels: attribute {node_label!r} is missing.")
    edge_labels = None
    if edge_label is not None:
        edge_labels = getattr(graph, edge_label, None)
        if edge_labels is None:
            raise ValueError(f"it has no edge labels: attribute {edge_label!r} is missing.")
        edge_labels = _array(edge_labels, edge_label)
    if labels is None:
        n = getattr(graph, "num_nodes", None)
        return _checked(edges, _alike(_count(edges) if n is None else int(n)), edge_labels)
    return _checked(edges, _labels(_array(labels, name)), edge_labels)


def _from_parts(edges, labels, edge_labels):
    """Edges as pairs or as an adjacency matrix, node labels (or None: all alike), edge labels."""
    n = None
    several = edge_labels is None and labels is not None and hasattr(labels, "__len__")
    if _is_matrix(edges, len(labels) if several else None):
        n = edges.shape[0]
        if scipy.sparse.issparse(edges) and edges.shape[0] != edges.shape[1]:
            raise ValueError(f"an adjacency matrix is square, got shape {edges.shape}.")
        if edge_labels is not None:
            raise ValueError("edge labels go with a list of edges, not with a matrix.")
        if not scipy.sparse.issparse(edges):
            edges = _array(edges, "edges")
        edges = np.stack(edges.nonzero(), axis=1)
    else:
        edges = _array(edges, "edges")
        if not edges.size:
            edges = np.zeros((0, 2), dtype=np.int64)
    if labels is None:
        return _checked(edges, _alike(_count(edges) if n is None else n), edge_labels)
    if isinstance(labels, dict):
        labels = [labels[node] for node in range(len(labels))]
    elif isinstance(labels, str):
        labels = list(labels)
    elif not isinstance(labels, (list, tuple)):
        labels = _array(labels, "node labels")
    keys = _labels(labels)
    if n is not None and len(keys) != n:
        raise ValueError(f"{len(keys)} node labels for a matrix of {n} nodes.")
    return _checked(edges, keys, edge_labels)


def _checked(edges, keys, edge_labels):
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            "a graph is a pair (edges, node labels), its edges pairs of node numbers; got edges "
            f"of type {edges.dtype} and shape {edges.shape}."
        )
    edge_keys = None
    if edge_labels is not None:
        edge_keys = label_keys(edge_labels)
        if len(edge_keys) != len(edges):
            raise ValueError(f"{len(edge_keys)} edge labels for {len(edges)} edges.")
    return keys, edges, edge_keys


def _labels(values):
    """Signed integers, to be hashed later with all others; keys (unsigned) of anything else."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind == "i":
        return values
    return label_keys(values)


def _array(values, name):
    """NumPy values of lists, arrays and tensors."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _alike(n):
    return mixed(np.zeros(n, dtype=np.uint64))


def _count(edges):
    return int(edges.max()) + 1 if edges.size else 0
