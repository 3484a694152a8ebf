"""Graph kernels: forms of graphs, labels, invariance, and what is refused."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

import oracles
from every_kernel import random_graph
from mercer import RBF, KernelMap, OnColumns, ShortestPaths, WeisfeilerLehman, check_mercer

ETHANOL = np.array([[0, 1], [1, 2]]), ["C", "C", "O"]
ETHER = np.array([[0, 1], [1, 2]]), ["C", "O", "C"]
KERNELS = [WeisfeilerLehman(2), ShortestPaths()]
every_graph_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def test_the_two_isomers_differ_after_one_round():
    same, different = WeisfeilerLehman(0), WeisfeilerLehman(1)
    assert_array_equal(same([ETHANOL, ETHER]), [[5, 5], [5, 5]])
    assert different([ETHANOL], [ETHER])[0, 0] == 5
    assert different([ETHANOL])[0, 0] == 8


@every_graph_kernel
def test_the_order_of_nodes_and_edges_does_not_matter(kernel, rng):
    for _ in range(20):
        edges, labels = random_graph(rng)
        order = rng.permutation(len(labels))
        place = np.argsort(order)
        flip = rng.random(len(edges)) < 0.5
        moved = place[np.where(flip[:, None], edges[:, ::-1], edges)][rng.permutation(len(edges))]
        renamed = moved, [labels[i] for i in order]
        K = kernel([(edges, labels), renamed])
        assert K[0, 0] == K[0, 1] == K[1, 1]


@every_graph_kernel
def test_every_form_of_a_graph_is_the_same_graph(kernel):
    nx = pytest.importorskip("networkx")
    edges, labels = np.array([[0, 1], [1, 2], [2, 0], [2, 3]]), [6, 6, 8, 7]
    A = np.zeros((4, 4))
    A[tuple(edges.T)] = 1
    G = nx.Graph()
    G.add_nodes_from((node, {"element": label}) for node, label in enumerate(labels))
    G.add_edges_from(edges.tolist())
    both = np.concatenate([edges, edges[:, ::-1]])
    data = SimpleNamespace(edge_index=both.T, x=np.array(labels), num_nodes=4)
    forms = [
        (edges, labels),
        (edges.tolist(), labels),
        (both, np.array(labels)),
        (edges, np.array(labels, dtype=float)),
        (edges, dict(enumerate(labels))),
        (A, labels),
        (scipy.sparse.csr_array(A + A.T), labels),
        (scipy.sparse.coo_matrix(A), labels),
        data,
    ]
    K = kernel(forms)
    assert_array_equal(K, np.full_like(K, K[0, 0]))
    named = type(kernel)(**kernel.get_params() | {"node_label": "element"})
    assert named([G])[0, 0] == K[0, 0]
    assert named.explicit([G]).indices.tolist() == kernel.explicit([data]).indices.tolist()


def test_tensors_of_pytorch_geometric():
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    one_hot = torch.eye(2)[[0, 0, 1]]
    data = SimpleNamespace(edge_index=torch.tensor([[0, 1], [1, 2]]), x=one_hot)
    other = SimpleNamespace(edge_index=torch.tensor([[0, 1], [1, 2]]), z=torch.tensor([6, 6, 8]))
    kernel = WeisfeilerLehman(2)
    assert kernel([data])[0, 0] == kernel([ETHANOL])[0, 0]
    assert WeisfeilerLehman(2, node_label="z")([other])[0, 0] == kernel([ETHANOL])[0, 0]


def test_shapes_alone():
    nx = pytest.importorskip("networkx")
    A = nx.to_scipy_sparse_array(nx.petersen_graph())
    K = WeisfeilerLehman(3)([nx.petersen_graph(), A, (nx.petersen_graph().edges, None)])
    assert_array_equal(K, np.full((3, 3), 4 * 10**2))  # all nodes stay alike


def test_edge_labels_tell_bonds_apart():
    nx = pytest.importorskip("networkx")
    single = [(0, 1), (1, 2)], ["C", "C", "O"], [1, 1]
    double = [(0, 1), (1, 2)], ["C", "C", "O"], [1, 2]
    kernel = WeisfeilerLehman(2)
    assert_array_equal(
        kernel([single, double]), oracles.matrix(kernel, [single, double], [single, double])
    )
    assert kernel([single], [double])[0, 0] < kernel([ETHANOL])[0, 0]
    G = nx.Graph()
    G.add_nodes_from([(0, {"e": "C"}), (1, {"e": "C"}), (2, {"e": "O"})])
    G.add_edge(0, 1, bond=1)
    G.add_edge(1, 2, bond=2)
    named = WeisfeilerLehman(2, node_label="e", edge_label="bond")
    assert_array_equal(named([G, double]), np.full((2, 2), kernel([double])[0, 0]))


def test_a_sample_of_many_is_the_oracle(rng):
    graphs = [random_graph(rng) for _ in range(60)]
    for kernel in (WeisfeilerLehman(4), ShortestPaths()):
        assert_array_equal(kernel(graphs), oracles.matrix(kernel, graphs, graphs))


def test_new_graphs_need_no_refit():
    kernel = WeisfeilerLehman(2)
    alone = kernel.explicit([ETHER])
    among = kernel.explicit([ETHANOL, ETHER])[[1]]
    assert_array_equal(alone.indices, among.indices)


def test_empty_graphs_and_nodes_without_edges():
    graphs = [([], []), ([], ["C"]), ([], ["C", "O"])]
    assert_array_equal(WeisfeilerLehman(1)(graphs), [[0, 0, 0], [0, 2, 2], [0, 2, 4]])
    assert_array_equal(ShortestPaths()(graphs), np.zeros((3, 3)))


def test_labels_of_every_kind():
    for label in ("C", b"C", 6, 6.5, ("C", 4), frozenset(["C", 2]), -3, 2**70, np.int8(6)):
        K = WeisfeilerLehman(1)([([(0, 1)], [label, label]), ([(0, 1)], [label, "other"])])
        assert_array_equal(K, [[8, 2], [2, 4]])


def test_molecules_and_measurements_in_one_frame():
    frame = pd.DataFrame({"molecule": [ETHANOL, ETHER, ETHANOL], "weight": [46.0, 46.5, 40.0]})
    kernel = OnColumns(WeisfeilerLehman(3), "molecule") * OnColumns(RBF(0.1), ["weight"])
    graphs, weights = frame["molecule"].tolist(), frame[["weight"]].to_numpy()
    expected = WeisfeilerLehman(3)(graphs) * RBF(0.1)(weights)
    assert_array_equal(kernel(frame), expected)
    assert check_mercer(kernel, frame).verdict == "valid by construction; the data agree"
    Phi = KernelMap(kernel).fit_transform(frame)
    np.testing.assert_allclose(Phi @ Phi.T, expected, rtol=1e-12)


def test_one_column_of_a_frame_needs_no_name():
    frame = pd.DataFrame({"molecule": [ETHANOL, ETHER]})
    assert_array_equal(WeisfeilerLehman(1)(frame), WeisfeilerLehman(1)([ETHANOL, ETHER]))
    with pytest.raises(ValueError, match=r"a table of 2 columns.*OnColumns\(WeisfeilerLehman"):
        WeisfeilerLehman(1)(frame.assign(weight=1.0))


class _Networkx:
    """Made when a test asks, since networkx may be missing."""

    def __init__(self, **options):
        self.options = options

    def __call__(self):
        nx = pytest.importorskip("networkx")
        G = (nx.DiGraph if self.options.get("directed") else nx.Graph)()
        G.add_node("a", **self.options.get("a", {}))
        G.add_node("b", **self.options.get("b", {}))
        G.add_edge("a", "b")
        return G


@pytest.mark.parametrize(
    ("kernel", "bad", "error", "message"),
    [
        (WeisfeilerLehman(), ([(0, 5)], ["C"]), ValueError, r"joins nodes \[0, 5\].*1 nodes"),
        (WeisfeilerLehman(), ([(0, -1)], ["C"]), ValueError, r"joins nodes \[0, -1\]"),
        (WeisfeilerLehman(), [(0, 1), (1, 2)], ValueError, r"a pair \(edges, node labels\)"),
        (WeisfeilerLehman(), ([(0, 1, 2)], "abc"), ValueError, r"shape \(1, 3\)"),
        (WeisfeilerLehman(), ([(0.5, 1)], ["C", "O"]), ValueError, "pairs of node numbers"),
        (WeisfeilerLehman(), "CCO", TypeError, "'CCO' is not a graph"),
        (WeisfeilerLehman(), 7, TypeError, "int 7 is not a graph"),
        (WeisfeilerLehman(), ([(0, 1)], ["C", None]), TypeError, "a label is NoneType"),
        (WeisfeilerLehman(), ([(0, 1)], [1.0, np.nan]), ValueError, "a label is NaN"),
        (WeisfeilerLehman(), (np.eye(3), ["C"]), ValueError, "1 node labels for a matrix of 3"),
        (WeisfeilerLehman(), ([(0, 1)], "CO", [1, 2]), ValueError, "2 edge labels for 1 edges"),
        (WeisfeilerLehman(), ([(0, 1)], {1: "C", 2: "O"}), ValueError, r"\[1, 2\].* from 0"),
        (WeisfeilerLehman(), np.full((3, 3), np.nan), ValueError, "matrix with NaN"),
        (WeisfeilerLehman(node_label="e"), np.eye(3), ValueError, r"pass \(matrix, labels\)"),
        (WeisfeilerLehman(), _Networkx(a={"e": 1}), ValueError, "node_label='e'"),
        (WeisfeilerLehman(node_label="e"), _Networkx(a={"e": 1}), ValueError, "'b' has no label"),
        (WeisfeilerLehman(), _Networkx(directed=True), ValueError, r"to_undirected\(\)"),
        (WeisfeilerLehman(edge_label="w"), _Networkx(), ValueError, "no attribute 'w'"),
        (
            WeisfeilerLehman(node_label="z"),
            SimpleNamespace(edge_index=[[0], [1]]),
            ValueError,
            "no node labels: attribute 'z' is missing",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_refused_is_named_by_its_position(kernel, bad, error, message):
    bad = bad() if isinstance(bad, _Networkx) else bad
    good = ([(0, 1)], ["C", "C"])
    for call in (kernel, kernel.diag, kernel.explicit, lambda X: kernel(X, [good])):
        with pytest.raises(error, match=rf"X\[1\]:.*{message}"):
            call([good, bad])


def test_edge_labels_for_all_or_none():
    with pytest.raises(ValueError, match=r"X\[0\]: it has no edge labels, and other graphs have"):
        WeisfeilerLehman()([([(0, 1)], "CO"), ([(0, 1)], "CO", [1])])


@pytest.mark.parametrize(
    "kernel",
    [WeisfeilerLehman(-1), WeisfeilerLehman(1.5), WeisfeilerLehman(node_label=3)],
    ids=repr,
)
def test_parameters_that_make_no_sense(kernel):
    with pytest.raises(ValueError, match=r"WeisfeilerLehman\((rounds|node_label)\) must be"):
        kernel([ETHANOL])


@pytest.mark.parametrize("held", [list, np.array])
def test_large_labels_do_not_meet(held):
    """Through a float, neighbours from 2^62 on had one key; unsigned ones met negative ones."""
    labels = [2**62, 2**62 + 1, 2**63 - 1, -(2**63)]
    K = WeisfeilerLehman(0)([([], held([label])) for label in labels])
    assert_array_equal(K, np.eye(4))
    K = WeisfeilerLehman(0)([([], held([label])) for label in (2**63, 2**63 + 1, 2**64 - 1, -1)])
    assert_array_equal(K, np.eye(4))


def test_equal_labels_have_equal_keys_whatever_holds_them():
    for label in (2**62, 2**63, 2**70, -(2**63), 7):
        forms = [label, float(label), Fraction(label), np.float64(label)]
        K = WeisfeilerLehman(0)([([], [form]) for form in forms])
        assert_array_equal(K, np.ones((4, 4)))
    different = [2**70, 2**70 + 1, Fraction(1, 3), 1 / 3]
    assert_array_equal(WeisfeilerLehman(0)([([], [label]) for label in different]), np.eye(4))


@pytest.mark.parametrize(
    "A", [np.zeros((2, 2)), np.ones((2, 2)), [[0, 1], [1, 0]], [[0, 2], [2, 0]]]
)
@pytest.mark.parametrize("dtype", [int, float])
@pytest.mark.parametrize("labels", [["C", "O"], np.array([6, 8])], ids=["list", "array"])
def test_an_adjacency_matrix_of_two_nodes(A, dtype, labels):
    """Zeros were read as two loops, and numbers above 1 as nodes that do not exist."""
    A = np.array(A, dtype=dtype)
    forms = [(A, labels), (scipy.sparse.csr_array(A), labels)]
    K = WeisfeilerLehman(2)([*forms, ([], labels), ([(0, 1)], labels)])
    assert_array_equal(K[0], K[1])
    assert (K[0, 2] == K[2, 2]) == (not A.any())


def test_what_may_be_two_edges_or_a_matrix():
    two_edges = np.array([[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="may be two edges or an adjacency matrix"):
        WeisfeilerLehman()([(two_edges, ["C", "O"])])
    with pytest.raises(ValueError, match="may be two edges or an adjacency matrix"):
        WeisfeilerLehman()([(two_edges, np.array([6, 8]))])
    said = [([(1, 0), (0, 1)], ["C", "O"]), (two_edges.astype(float), ["C", "O"])]
    assert WeisfeilerLehman(1)(said)[0, 1] == 2  # an edge, and two nodes with a loop each
    path = np.array([[0, 1], [1, 2]]), ["C", "C", "O"]  # three nodes: edges
    assert WeisfeilerLehman(2)([path])[0, 0] == WeisfeilerLehman(2)([ETHANOL])[0, 0]


def test_a_node_without_edges_has_a_new_label_in_each_round():
    alone = [([], [0]), ([], [1]), ([], ["C"]), np.zeros((1, 1))]
    assert_array_equal(np.diag(WeisfeilerLehman(2)(alone)), [3, 3, 3, 3])
    assert_array_equal(WeisfeilerLehman(1)([np.zeros((2, 2))]), [[8]])


def test_a_node_without_edges_meets_no_node_of_another_round():
    """A node with two neighbours had the label that a lone one has a round later."""
    lone, ring = ([], [0]), ([(0, 1), (1, 2), (2, 0)], [0, 0, 0])
    for rounds in range(4):
        K = WeisfeilerLehman(rounds)([lone, ring])
        assert_array_equal(K, [[rounds + 1, 3], [3, 9 * (rounds + 1)]])


def test_rows_of_numbers_are_labels_in_lists_too():
    rows = [[0.0, 1.0], [1.0, 0.0]]
    held = [rows, np.array(rows), [np.array(row) for row in rows], [[0, 1], [1, 0]]]
    assert_array_equal(WeisfeilerLehman(0)([([(0, 1)], labels) for labels in held]), 2)
