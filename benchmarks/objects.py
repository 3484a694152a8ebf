"""Kernels on objects: graphs against GraKeL, paths against tslearn, strings and fingerprints alone.

Set MERCER_BENCH_DATA to a folder with nci1.npz for the molecules; without it the graphs are random.

`python -m benchmarks.objects graphs_wl paths_signature` prints seconds of CPU time instead of wall
time: contenders take turns in one process, and the ratios are those within each round.
"""

import argparse
import time

import numpy as np

from .datasets import _file, stand_in
from .harness import ROWS, row

# --- graphs ---------------------------------------------------------------------------------------


def molecules(n):
    """(edges, labels) pairs and classes: NCI1, or random graphs of the same size."""
    path = _file("nci1.npz")
    if path is None:
        rng = np.random.default_rng(0)
        graphs = []
        for _ in range(n):
            size = rng.integers(15, 45)
            chain = np.column_stack([np.arange(size - 1), np.arange(1, size)])
            rings = rng.integers(size, size=(3, 2))
            graphs.append((np.concatenate([chain, rings]), rng.choice([1, 1, 1, 2, 3], size)))
        return graphs, rng.integers(2, size=n)
    data = np.load(path)
    count = len(data["label"])
    starts = np.searchsorted(data["graph"], np.arange(count + 1))
    owner = data["graph"][data["edges"][:, 0]]
    order = np.argsort(owner, kind="stable")
    edges = data["edges"][order]
    ends = np.searchsorted(owner[order], np.arange(count + 1))
    graphs = [
        (edges[ends[i] : ends[i + 1]] - starts[i], data["node_label"][starts[i] : starts[i + 1]])
        for i in range(count)
    ]
    return graphs[:n], data["label"][:n]


def _wl(data):
    from mercer import WeisfeilerLehman

    return lambda: WeisfeilerLehman(5)(data[0])


def _wl_map(data):
    from mercer import WeisfeilerLehman

    return lambda: WeisfeilerLehman(5).explicit(data[0])


def _grakel(data):
    from grakel import Graph, VertexHistogram, WeisfeilerLehman

    graphs = []
    for edges, labels in data[0]:
        both = {(int(a), int(b)): 1 for a, b in np.concatenate([edges, edges[:, ::-1]])}
        nodes = {i: int(label) for i, label in enumerate(labels)}
        graphs.append(Graph(both or {i: {} for i in nodes}, node_labels=nodes))
    return lambda: WeisfeilerLehman(5, base_graph_kernel=VertexHistogram).fit_transform(graphs)


def _same_labels(data, K):
    """Largest difference from the product of the explicit map."""
    from mercer import WeisfeilerLehman

    if not isinstance(K, np.ndarray):
        return {"non-zeros": float(K.nnz)}
    F = WeisfeilerLehman(5).explicit(data[0])
    return {"error": float(np.abs((F[:100] @ F.T).toarray() - K[:100]).max())}


@row(
    title="Weisfeiler-Lehman, 5 rounds, NCI1: Gram matrix of 4110 molecules",
    contenders={"mercer": _wl, "mercer, map alone": _wl_map, "GraKeL": _grakel},
    accuracy=_same_labels,
    target={"GraKeL": 20.0},
    repeats=3,
    note=stand_in("nci1.npz"),
)
def graphs_wl(quick):
    return molecules(600 if quick else 4110)


def _wl_model(data):
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import LinearSVC

    from mercer import Kernelized, KernelMap, Normalized, WeisfeilerLehman

    graphs, y = data
    own = KernelMap(Normalized(WeisfeilerLehman(5)), basis="closed")
    model = Kernelized(LinearSVC(C=10.0), own)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    return lambda: float(cross_val_score(model, graphs, y, cv=folds).mean())


@row(
    title="NCI1, ten folds, linear SVM on the sparse Weisfeiler-Lehman map",
    contenders={"mercer": _wl_model},
    accuracy=lambda data, score: {"accuracy": score},
    repeats=1,
    rounds=1,
    quick=False,
    note=stand_in("nci1.npz"),
)
def graphs_model(quick):
    return molecules(600 if quick else 4110)


# --- strings, fingerprints, paths -----------------------------------------------------------------


def _spectrum(alphabet):
    def contender(X):
        from mercer import Spectrum

        return lambda: Spectrum(6, alphabet=alphabet).explicit(X)

    return contender


@row(
    title="Spectrum(6): map of 100 000 strings of 300 letters",
    contenders={"mercer": _spectrum("ACGT"), "mercer, any letters": _spectrum(None)},
    accuracy=lambda X, F: {"million non-zeros": F.nnz / 1e6},
    repeats=1,
    rounds=1,
)
def strings_spectrum(quick):
    letters = np.random.default_rng(0).choice(list("ACGT"), size=(5_000 if quick else 100_000, 300))
    return ["".join(line) for line in letters]


def _tanimoto(data):
    from mercer import KernelMap, KernelRidge, Tanimoto

    X, y = data
    landmarks = KernelMap(Tanimoto(), max_rank=2000, pivots="uniform", random_state=0)
    return lambda: KernelRidge(1.0, landmarks).fit(X, y)


def _predicts(data, model):
    X, y = data
    return {"R2 of 5000 training rows": float(model.score(X[:5000], y[:5000]))}


@row(
    title="Tanimoto, 150 000 x 2048 sparse fingerprints, ridge on 2000 landmarks",
    contenders={"mercer": _tanimoto},
    accuracy=_predicts,
    repeats=1,
    rounds=1,
)
def fingerprints_ridge(quick):
    import scipy.sparse

    # About 50 of 2048 bits per molecule; some bits are in most molecules, many in few.
    rng = np.random.default_rng(0)
    common = np.minimum(0.6, 10 / (10 + np.arange(2048)))
    common *= 50 / common.sum()
    blocks = [rng.random((5000, 2048)) < common for _ in range(3 if quick else 30)]
    X = scipy.sparse.vstack([scipy.sparse.csr_array(block) for block in blocks]).astype(float)
    return X, X @ rng.normal(size=2048) + rng.normal(size=X.shape[0])


def _signature(X):
    from mercer import Signature

    return lambda: Signature(3)(X)


def _alignment(X):
    from tslearn.metrics import cdist_gak

    cdist_gak(X[:2], sigma=10.0)  # compiled once
    return lambda: cdist_gak(X, sigma=10.0)


@row(
    title="Signature(3): Gram matrix of 400 paths of 100 points in 3 channels",
    contenders={"mercer": _signature, "tslearn global alignment": _alignment},
    target={"tslearn global alignment": 10.0},
    repeats=1,
    rounds=1,
)
def paths_signature(quick):
    n = 60 if quick else 400
    return np.random.default_rng(0).normal(size=(n, 100, 3)).cumsum(axis=1)


# --- seconds of CPU time --------------------------------------------------------------------------


def cpu_seconds(name, rounds, quick):
    """Contender -> its seconds of CPU time (user and system) in each round, warmed up before."""
    data = ROWS[name].data(quick)
    calls = {who: make(data) for who, make in ROWS[name].contenders.items()}
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {who: [] for who in calls}
    for _ in range(rounds):
        for who, call in calls.items():
            start = time.process_time()
            call()
            seconds[who].append(time.process_time() - start)
    return seconds


def main():
    parser = argparse.ArgumentParser(prog="benchmarks.objects", description=__doc__)
    parser.add_argument("rows", nargs="+", metavar="ROW")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    for name in options.rows:
        print(ROWS[name].title)
        seconds = cpu_seconds(name, options.rounds, options.quick)
        peers = list(ROWS[name].target)
        for who, times in seconds.items():
            line = f"  {who}: CPU min {min(times):.3f} s, median {np.median(times):.3f} s"
            for peer in peers if who not in peers else []:
                ratios = np.divide(seconds[peer], times)
                line += f"; {peer} / {who}: min {ratios.min():.1f}, median {np.median(ratios):.1f}"
            print(line)


if __name__ == "__main__":
    main()
