"""Kernels between graphs: counts of refined node labels, and of shortest paths."""

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from .feature_kernels import FeatureKernel
from .graph_forms import Graphs, read_graphs
from .hashing import MOST_COLUMNS, columns_of, counted, mixed
from .parameters import domain, whole
from .types import Array

# More rounds than the longest path of any sensible graph.
MOST_ROUNDS = 1000


class GraphKernel(FeatureKernel):
    """The base of graph kernels, which reads graphs: undirected, without multiple edges."""

    node_label: str | None
    edge_label: str | None = None
    drawn_as = "graphs"
    against_checks = True  # it reads every graph

    domains = dict.fromkeys(
        ("node_label", "edge_label"),
        domain(lambda v: v is None or isinstance(v, str), "the name of an attribute or None"),
    )

    def graphs(self, X: Array) -> Graphs:
        """The graphs of a sample in one flat form, checked."""
        return read_graphs(X, self.node_label, self.edge_label)

    def check_range(self, *samples: Array | None) -> None:
        """Counts do not overflow; what can be wrong is a graph."""
        for X in samples:
            if X is not None:
                self.graphs(X)

    def explicit_dim(self, n_features: int | None) -> int:
        return MOST_COLUMNS


class WeisfeilerLehman(GraphKernel):
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

    domains = GraphKernel.domains | {"rounds": whole(0, MOST_ROUNDS)}

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
            labels = _refined(labels, graphs, arcs)
            keys[:, r] = columns_of(labels)
        return counted(keys.ravel(), graphs.starts * (rounds + 1), MOST_COLUMNS)


def _refined(labels, graphs, arcs):
    """New labels from those of each node and of its neighbours, whatever their order.

    The sum of mixed keys is a hash of the neighbours as a multiset; the arcs of node i are those
    from arcs[i] to arcs[i + 1].
    """
    own = mixed(labels)
    if graphs.arc_labels is None:
        seen = own[graphs.target]
    else:
        seen = mixed(mixed(labels[graphs.target] ^ mixed(graphs.arc_labels)))
    sums = np.zeros(len(seen) + 1, dtype=np.uint64)
    np.cumsum(seen, out=sums[1:])
    totals = sums[arcs[1:]] - sums[arcs[:-1]]  # modulo 2^64, so without error
    return mixed(own ^ mixed(mixed(totals)))


class ShortestPaths(GraphKernel):
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
            lengths = hops(arcs[a:b, a:b])
            i, j = np.nonzero(np.triu(np.isfinite(lengths), k=1))
            # A sum, so that the order of the two ends does not matter.
            keys.append(mixed((ends[a + i] + ends[a + j]) ^ mixed(lengths[i, j].astype(np.uint64))))
            sizes.append(len(i))
        return counted(columns_of(np.concatenate(keys)), np.cumsum(sizes), MOST_COLUMNS)


def hops(arcs: Any):
    """Edges on the shortest way between every two nodes; infinite where there is none."""
    if not arcs.shape[0]:
        return np.zeros((0, 0))
    # SciPy before 1.15 reads indices of 32 bits only.
    arcs.indices, arcs.indptr = arcs.indices.astype(np.int32), arcs.indptr.astype(np.int32)
    return scipy.sparse.csgraph.shortest_path(arcs, unweighted=True, directed=False)
