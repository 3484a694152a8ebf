"""Kernels between graphs: counts of refined node labels, and of shortest paths.

Graphs come in the forms that people have them in, and are read into one flat form for a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import shortest_path

from ..engine import Domain, as_host, short
from .feature_kernels import FeatureKernel
from .hashing import MOST_COLUMNS, columns_of, counted, label_keys, mixed, paired
from .points import read_each
from .types import Array

# More rounds than the longest path of any sensible graph.
_MOST_ROUNDS = 1000


@dataclass
class _Graphs:
    """Several graphs side by side: nodes are numbered through, arcs go both ways."""

    starts: np.ndarray  # where the nodes of each graph begin, and one past the last
    labels: np.ndarray  # a 64-bit key per node
    # The ends of every arc, sorted by source; an undirected edge is two arcs.
    source: np.ndarray
    target: np.ndarray
    arc_labels: np.ndarray | None  # a 64-bit key per arc, or None


class _GraphKernel(FeatureKernel):
    """The base of graph kernels, which reads graphs: undirected, without multiple edges."""

    node_label: str | None
    edge_label: str | None = None
    drawn_as = "graphs"
    against_checks = True  # it reads every graph

    domains = dict.fromkeys(
        ("node_label", "edge_label"),
        Domain(lambda v: v is None or isinstance(v, str), "the name of an attribute or None"),
    )

    def graphs(self, X: Array) -> _Graphs:
        """The graphs of a sample in one flat form, checked."""
        return _read_graphs(X, self.node_label, self.edge_label)

    def check_range(self, *samples: Array | None) -> None:
        """Counts do not overflow; what can be wrong is a graph."""
        for X in samples:
            if X is not None:
                self.graphs(X)

    def explicit_dim(self, n_features: int | None) -> int:
        return MOST_COLUMNS


class WeisfeilerLehman(_GraphKernel):
    r"""Compare graphs, such as molecules, by the neighbourhoods of their nodes.

    In each round the label of a node becomes its label together with those of its neighbours; k(x,
    z) counts pairs of nodes with the same label, over all rounds. Labels are 64-bit hashes, so
    coordinates do not depend on which other graphs there are, and new graphs need no refit.

    Parameters
    ----------
    rounds : int, default=3
        How far neighbourhoods reach; 0 compares node labels alone.
    node_label : str or None, default=None
        Name of the node attribute that is the label, in networkx graphs and objects with
        `edge_index` (default there: `x`). None where graphs are (edges, labels) pairs, or to
        compare shapes alone.
    edge_label : str or None, default=None
        The same for edges.

    Notes
    -----
    .. math::

        k(x, z) = \sum_{\text{rounds}} \sum_{\text{labels}} \#(x)\; \#(z)

    - *Valid*: an inner product of counts.
    - *Fails*: for graphs that rounds of relabelling cannot tell apart, such as regular graphs of
      one degree; for labels that are measured numbers.
    - *Elsewhere*: GraKeL's `WeisfeilerLehman`.

    A graph is a networkx graph; a pair (edges, node labels) or a triple with edge labels, where
    edges are pairs of node numbers or an adjacency matrix; an adjacency matrix (all nodes alike);
    or an object with `edge_index`, as in PyTorch Geometric. Graphs are undirected: an edge may be
    given once or in both directions. Labels are numbers, texts, tuples of these, or rows of
    numbers.

    The subtree kernel of Shervashidze et al. (2011). Two of m different labels share a hash with a
    probability below m^2 / 2^62.

    Examples
    --------
    >>> from mercer import WeisfeilerLehman
    >>> water = [(0, 1), (0, 2)], ["O", "H", "H"]
    >>> ammonia = [(0, 1), (0, 2), (0, 3)], ["N", "H", "H", "H"]
    >>> peroxide = [(0, 1), (0, 2), (1, 3)], ["O", "O", "H", "H"]
    >>> WeisfeilerLehman(1)([water, ammonia, peroxide])
    array([[10.,  6., 10.],
           [ 6., 20.,  6.],
           [10.,  6., 16.]])
    """

    domains = _GraphKernel.domains | {"rounds": Domain.whole(0, _MOST_ROUNDS)}

    def __init__(
        self, rounds: int = 3, node_label: str | None = None, edge_label: str | None = None
    ) -> None:
        self.rounds = rounds
        self.node_label = node_label
        self.edge_label = edge_label

    def features(self, X: Array) -> Array:
        graphs = self.graphs(X)
        rounds = int(self.rounds)
        keys = np.empty((len(graphs.labels), rounds + 1), dtype=np.int64)
        labels = graphs.labels
        arcs = np.cumsum(np.bincount(graphs.source + 1, minlength=len(labels) + 1))
        keys[:, 0] = columns_of(labels)
        for r in range(1, rounds + 1):
            if graphs.arc_labels is None:
                seen = mixed(labels)[graphs.target]
            else:
                seen = paired(labels[graphs.target], graphs.arc_labels)
            # The sum of mixed keys is a hash of the neighbours as a multiset, whatever their order;
            # the arcs of node i are those from arcs[i] to arcs[i + 1].
            sums = np.zeros(len(seen) + 1, dtype=np.uint64)
            np.cumsum(seen, out=sums[1:])
            totals = sums[arcs[1:]] - sums[arcs[:-1]]  # modulo 2^64, so without error
            labels = paired(labels, totals)
            keys[:, r] = columns_of(labels)
        return counted(keys.ravel(), graphs.starts * (rounds + 1), MOST_COLUMNS)


class ShortestPaths(_GraphKernel):
    r"""Compare graphs by the distances between their nodes.

    k(x, z) counts pairs of node pairs with the same labels at their ends and the same number of
    edges between them.

    Parameters
    ----------
    node_label : str or None, default=None
        As in :class:`WeisfeilerLehman`, which also says what a graph is.

    Notes
    -----
    .. math::

        k(x, z) = \sum_{\text{labels, length}} \#(x)\; \#(z)

    - *Valid*: an inner product of counts.
    - *Fails*: for large graphs: all pairs of nodes are looked at.
    - *Elsewhere*: GraKeL's `ShortestPath`.

    The shortest-path kernel of Borgwardt and Kriegel (2005) with equal labels and equal lengths.

    Examples
    --------
    >>> from mercer import ShortestPaths
    >>> path = [(0, 1), (1, 2)], ["C", "C", "O"]
    >>> ring = [(0, 1), (1, 2), (2, 0)], ["C", "C", "O"]
    >>> ShortestPaths()([path, ring])
    array([[3., 3.],
           [3., 5.]])
    """

    def __init__(self, node_label: str | None = None) -> None:
        self.node_label = node_label

    def features(self, X: Array) -> Array:
        graphs = self.graphs(X)
        n = len(graphs.labels)
        arcs = scipy.sparse.csr_array(
            (np.ones(len(graphs.source)), (graphs.source, graphs.target)), shape=(n, n)
        )
        ends = mixed(graphs.labels)
        keys, sizes = [], [0]
        for a, b in zip(graphs.starts[:-1], graphs.starts[1:]):
            own = arcs[a:b, a:b]
            # SciPy before 1.15 reads indices of 32 bits only.
            own.indices, own.indptr = own.indices.astype(np.int32), own.indptr.astype(np.int32)
            # Edges on the shortest way between every two nodes; infinite where there is none.
            lengths = np.zeros((0, 0))
            if b > a:
                lengths = shortest_path(own, unweighted=True, directed=False)
            i, j = np.nonzero(np.triu(np.isfinite(lengths), k=1))
            # A sum, so that the order of the two ends does not matter.
            keys.append(mixed((ends[a + i] + ends[a + j]) ^ mixed(lengths[i, j].astype(np.uint64))))
            sizes.append(len(i))
        return counted(columns_of(np.concatenate(keys)), np.cumsum(sizes), MOST_COLUMNS)


# --- reading graphs -------------------------------------------------------------------------------


def _read_graphs(X: Any, node_label: str | None, edge_label: str | None) -> _Graphs:
    """All graphs of a sample; whatever is wrong with one of them is said with its position."""
    read = _plain(X) or zip(*read_each(X, lambda graph: _read(graph, node_label, edge_label), ": "))
    labels, edges, edge_keys = read
    sizes, lengths = np.array([len(l) for l in labels]), np.array([len(e) for e in edges])
    pairs = np.concatenate(edges).astype(np.int64)
    wrong = (pairs < 0) | (pairs >= np.repeat(sizes, lengths)[:, None])
    if wrong.any():
        edge = np.argwhere(wrong)[0, 0]
        i = np.repeat(np.arange(len(sizes)), lengths)[edge]
        raise ValueError(
            f"X[{i}]: an edge joins nodes {pairs[edge].tolist()}, and its {sizes[i]} nodes are "
            f"numbered from 0."
        )
    starts = np.concatenate([[0], np.cumsum(sizes)])
    pairs += np.repeat(starts[:-1], lengths)[:, None]
    source, target, edge = _arcs(pairs, starts[-1])
    marked = [keys for keys in edge_keys if keys is not None]
    for i, (own, n) in enumerate(zip(edge_keys, lengths)):
        if marked and own is None and n:
            raise ValueError(f"X[{i}]: it has no edge labels, and other graphs have them.")
    arc_labels = np.concatenate(marked)[edge] if marked else None
    if all(l.dtype.kind == "i" for l in labels):  # signed integers are not hashed yet
        keys = label_keys(np.concatenate(labels))
    else:
        keys = np.concatenate([label_keys(l) if l.dtype.kind == "i" else l for l in labels])
    return _Graphs(starts, keys, source, target, arc_labels)


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


def _arcs(pairs, n):
    """Both directions of every edge, each once and sorted by its ends; and which edge it was.
    A sparse matrix whose rows and columns are the ends sorts them by counting."""
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
    """(node labels or keys, edges, edge keys or None) of one graph."""
    if hasattr(graph, "adj") and hasattr(graph, "nodes"):
        return _from_networkx(graph, node_label, edge_label)
    if hasattr(graph, "edge_index"):
        return _from_attributes(graph, node_label, edge_label)
    if scipy.sparse.issparse(graph) or _is_square(graph):
        if node_label is not None:
            raise ValueError(
                f"an adjacency matrix has no attribute {node_label!r}; pass (matrix, labels)."
            )
        return _from_parts(scipy.sparse.csr_array(graph))
    if isinstance(graph, (tuple, list)) and len(graph) in (2, 3):
        return _from_parts(*graph)
    raise TypeError(
        f"{type(graph).__name__} {short(graph)} is not a graph: give a networkx graph, a pair "
        "(edges, node labels), an adjacency matrix, or an object with edge_index."
    )


def _from_networkx(graph, node_label, edge_label):
    if graph.is_directed():
        raise ValueError("a directed graph; its undirected form is graph.to_undirected().")
    number = {node: i for i, node in enumerate(graph.nodes)}
    listed, labels, edge_labels = list(graph.edges(data=True)), None, None
    if node_label is None:
        named = sorted({str(name) for _, data in graph.nodes(data=True) for name in data})
        if named:
            raise ValueError(
                f"its nodes have the attributes {', '.join(named[:5])}: say which one is their "
                f"label, node_label={named[0]!r}; delete them to compare shapes alone."
            )
    else:
        labels = _attributes(graph.nodes(data=True), node_label, "node")
    if edge_label is not None:
        edge_labels = _attributes((((u, v), d) for u, v, d in listed), edge_label, "edge")
    edges = np.array([(number[u], number[v]) for u, v, _ in listed], dtype=np.int64)
    return _checked(edges.reshape(-1, 2), labels, edge_labels, len(number))


def _attributes(owners, name, what):
    found: list[Any] = []
    for owner, data in owners:
        if name not in data:
            raise ValueError(f"{what} {owner!r} has no label: it has no attribute {name!r}.")
        found.append(data[name])
    return found


def _from_attributes(graph, node_label, edge_label):
    """An object with edge_index (2 x arcs), as PyTorch Geometric has them."""

    def found(name: str, what: str):
        labels = getattr(graph, name, None)
        if labels is None:
            raise ValueError(f"it has no {what} labels: attribute {name!r} is missing.")
        return _array(labels, name)

    if node_label is None and getattr(graph, "x", None) is not None:
        node_label = "x"
    labels = None if node_label is None else found(node_label, "node")
    edge_labels = None if edge_label is None else found(edge_label, "edge")
    edges = _array(graph.edge_index, "edge_index").T
    return _checked(edges, labels, edge_labels, getattr(graph, "num_nodes", None))


def _from_parts(edges, labels=None, edge_labels=None):
    """Edges as pairs or as an adjacency matrix, node labels (or None: all alike), edge labels."""
    n = None
    several = edge_labels is None and labels is not None and hasattr(labels, "__len__")
    if _is_matrix(edges, len(labels) if several else None):
        n = edges.shape[0]
        if scipy.sparse.issparse(edges) and edges.shape[0] != edges.shape[1]:
            raise ValueError(f"an adjacency matrix is square, got shape {edges.shape}.")
        if edge_labels is not None:
            raise ValueError("edge labels go with a list of edges, not with a matrix.")
        matrix = edges if scipy.sparse.issparse(edges) else _array(edges, "edges")
        if matrix.dtype.kind == "f" and not np.isfinite(matrix.sum()):
            raise ValueError("an adjacency matrix with NaN or infinity: 0 stands for no edge.")
        edges = np.stack(matrix.nonzero(), axis=1)
    else:
        edges = _array(edges, "edges")
        edges = edges if edges.size else np.zeros((0, 2), dtype=np.int64)
    if isinstance(labels, dict):
        if set(labels) != set(range(len(labels))):
            raise ValueError(f"labels of nodes {short([*labels])}: nodes are numbered from 0.")
        labels = [labels[node] for node in range(len(labels))]
    elif isinstance(labels, str):
        labels = list(labels)
    elif labels is not None and not isinstance(labels, (list, tuple)):
        labels = _array(labels, "node labels")
    if n is not None and labels is not None and len(labels) != n:
        raise ValueError(f"{len(labels)} node labels for a matrix of {n} nodes.")
    return _checked(edges, labels, edge_labels, n)


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


def _checked(edges, labels, edge_labels, n):
    """`n` nodes where there are no labels; None: as many as edges name."""
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            "a graph is a pair (edges, node labels), its edges pairs of node numbers; got edges "
            f"of type {edges.dtype} and shape {edges.shape}."
        )
    if labels is None:
        n = int(edges.max(initial=-1)) + 1 if n is None else int(n)
        keys = mixed(np.zeros(n, dtype=np.uint64))
    elif isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind == "i":
        keys = labels  # hashed with those of all other graphs at once
    else:
        keys = label_keys(labels)
    edge_keys = None if edge_labels is None else label_keys(edge_labels)
    if edge_keys is not None and len(edge_keys) != len(edges):
        raise ValueError(f"{len(edge_keys)} edge labels for {len(edges)} edges.")
    return keys, edges, edge_keys


def _array(values, name):
    """NumPy values of lists, arrays and tensors."""
    try:
        return np.asarray(as_host(values))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
