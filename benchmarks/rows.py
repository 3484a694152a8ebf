"""The rows. Peers do the same job: scikit-learn, scikit-bio, kernelmethods, the plain form of an
algorithm. Accuracy stands beside every time."""

import subprocess
import sys
import time

import numpy as np
import scipy.linalg

from . import datasets
from .harness import row

# --- kernel matrices and the map ----------------------------------------------------------------


def _normal(n, d, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


def _rbf_matrix(dtype):
    def mercer(X):
        from mercer import RBF

        kernel = RBF(1 / X.shape[1])
        return lambda: kernel(X)

    def sklearn(X):
        from sklearn.metrics.pairwise import rbf_kernel

        return lambda: rbf_kernel(X, gamma=1 / X.shape[1])

    def accuracy(X, K):
        from scipy.spatial.distance import cdist

        exact = np.exp(-cdist(X[:200].astype(float), X.astype(float), "sqeuclidean") / X.shape[1])
        return {"error": float(np.abs(K[:200] - exact).max())}

    target = {"sklearn rbf_kernel": 1.7 if dtype == np.float64 else 2.0}
    return {
        "title": f"RBF matrix 4000 x 4000, 50 columns, {np.dtype(dtype)}",
        "contenders": {"mercer": mercer, "sklearn rbf_kernel": sklearn},
        "accuracy": accuracy,
        "target": target,
        "repeats": 41,  # short calls, the first of which pay for memory that is new
    }


@row(**_rbf_matrix(np.float64))
def rbf_float64(quick):
    return _normal(4000, 50)


@row(**_rbf_matrix(np.float32))
def rbf_float32(quick):
    return _normal(4000, 50, np.float32)


def _kernelmethods(X):
    from kernelmethods import KernelMatrix
    from kernelmethods.numeric_kernels import GaussianKernel

    sigma = (X.shape[1] / 2) ** 0.5

    def call():
        K = KernelMatrix(GaussianKernel(sigma=sigma), normalized=False)
        K.attach_to(X)
        return np.asarray(K.full)

    return call


@row(
    **_rbf_matrix(np.float64)
    | {
        "title": "RBF matrix 500 x 500, 50 columns, against a library of kernel objects",
        "contenders": {
            "mercer": _rbf_matrix(np.float64)["contenders"]["mercer"],
            "kernelmethods": _kernelmethods,
        },
        "target": {},
        "repeats": 3,
    }
)
def rbf_objects(quick):
    return _normal(500, 50)


def _map(X, gamma):
    from mercer import RBF, KernelMap

    return lambda: KernelMap(RBF(gamma)).fit_transform(X)


def _sklearn_pca_all(X, gamma):
    from sklearn.decomposition import KernelPCA

    return lambda: KernelPCA(n_components=None, kernel="rbf", gamma=gamma).fit_transform(X)


def _nystroem_all(X, gamma):
    from sklearn.kernel_approximation import Nystroem

    return lambda: Nystroem(gamma=gamma, n_components=len(X), random_state=0).fit_transform(X)


def _numpy_cholesky(X, gamma):
    """Two lines that anyone can write: coordinates of these rows, none for new ones."""
    from sklearn.metrics.pairwise import rbf_kernel

    return lambda: np.linalg.cholesky(rbf_kernel(X, gamma=gamma))


def _floor(X, gamma):
    """Kernel tiles and LAPACK's Cholesky alone: what the exact map cannot beat."""
    from mercer import RBF

    kernel = RBF(gamma)
    return lambda: scipy.linalg.lapack.dpotrf(kernel(X).T, lower=1, overwrite_a=1)[0]


def _reproduces(gamma):
    """Largest error of inner products against the kernel, centred if the coordinates are."""

    def accuracy(X, F):
        from mercer import RBF

        K = RBF(gamma)(X[:300], X[:300])
        G = F[:300] @ F[:300].T
        if np.abs(F.mean(axis=0)).max() < 1e-8:  # KernelPCA: compare distances, free of centring
            K = np.add.outer(K.diagonal(), K.diagonal()) - 2 * K
            G = np.add.outer(G.diagonal(), G.diagonal()) - 2 * G
        return {"rank": F.shape[1], "error": float(np.abs(G - K).max())}

    return accuracy


@row(
    title="full-rank map, n = 4000, 50 columns: Cholesky against eigendecompositions",
    contenders={
        "mercer": lambda X: _map(X, 1 / 50),
        "sklearn KernelPCA(None)": lambda X: _sklearn_pca_all(X, 1 / 50),
        "sklearn Nystroem(n)": lambda X: _nystroem_all(X, 1 / 50),
        "rbf_kernel + NumPy's Cholesky": lambda X: _numpy_cholesky(X, 1 / 50),
        "floor: tiles + potrf": lambda X: _floor(X, 1 / 50),
    },
    accuracy=_reproduces(1 / 50),
    target={
        "sklearn KernelPCA(None)": 18,
        "sklearn Nystroem(n)": 15,
        "floor: tiles + potrf": 1 / 1.6,
    },
    repeats=7,
    rounds=1,
)
def map_full_rank(quick):
    return _normal(1500 if quick else 4000, 50)


@row(
    title="low-rank map, RBF gamma = 1, n = 5000, 2 columns",
    contenders={
        "mercer": lambda X: _map(X, 1.0),
        "sklearn KernelPCA(None)": lambda X: _sklearn_pca_all(X, 1.0),
    },
    accuracy=_reproduces(1.0),
    target={"sklearn KernelPCA(None)": 25},
    repeats=2,
    rounds=1,
)
def map_low_rank(quick):
    return _normal(2000 if quick else 5000, 2)


@row(
    title="RBF gamma = 1, n = 100 000, 2 columns, to residual 1e-10",
    contenders={
        "mercer": lambda X: (
            lambda: (
                __import__("mercer")
                .KernelMap(__import__("mercer").RBF(1.0), tol=1e-10, memory_limit="1.5GB")
                .fit(X)
            )
        )
    },
    accuracy=lambda X, m: {"rank": m.rank_, "residual": m.max_residual_},
    repeats=1,
    note="K would be 80 GB; peers cannot",
)
def map_100k(quick):
    return _normal(20_000 if quick else 100_000, 2)


# --- landmarks ------------------------------------------------------------------------------------


def _landmarks(pivots, gamma, rank):
    def contender(X):
        from mercer import RBF, KernelMap

        return lambda: KernelMap(
            RBF(gamma), max_rank=rank, pivots=pivots, random_state=0
        ).fit_transform(X)

    return contender


def _nystroem(gamma, rank):
    def contender(X):
        from sklearn.kernel_approximation import Nystroem

        return lambda: Nystroem(gamma=gamma, n_components=rank, random_state=0).fit_transform(X)

    return contender


def _plain_rpcholesky(gamma, rank):
    """Randomly pivoted Cholesky as published, one pivot at a time: the oracle of ours."""

    def contender(X):
        norms = (X * X).sum(axis=1)

        def call():
            rng = np.random.default_rng(0)
            F, d = np.zeros((len(X), rank)), np.ones(len(X))
            for i in range(rank):
                s = rng.choice(len(X), p=d / d.sum())
                column = np.exp(-gamma * np.maximum(norms + norms[s] - 2 * X @ X[s], 0))
                column -= F[:, :i] @ F[s, :i]
                F[:, i] = column / np.sqrt(column[s])
                d = np.maximum(d - F[:, i] ** 2, 0)
                d[s] = 0
            return F

        return call

    return contender


def _trace_error(X, F):
    return {"trace error": float(1 - (F * F).sum() / len(X))}


@row(
    title="500 landmarks of Shuttle, 58 000 x 9, RBF gamma = 0.1",
    contenders={
        "mercer": _landmarks("random", 0.1, 500),
        "mercer, greedy pivots": _landmarks("greedy", 0.1, 500),
        "plain RPCholesky (NumPy)": _plain_rpcholesky(0.1, 500),
        "sklearn Nystroem": _nystroem(0.1, 500),
    },
    accuracy=_trace_error,
    target={"sklearn Nystroem": 1.0, "plain RPCholesky (NumPy)": 1.0},
    note=datasets.stand_in("*Shuttle*"),
)
def landmarks_shuttle(quick):
    return datasets.shuttle()


@row(
    title="1000 landmarks of Letter, 20 000 x 16, RBF gamma = 1/16",
    contenders={
        "mercer": _landmarks("random", 1 / 16, 1000),
        "plain RPCholesky (NumPy)": _plain_rpcholesky(1 / 16, 1000),
        "sklearn Nystroem": _nystroem(1 / 16, 1000),
    },
    accuracy=_trace_error,
    target={"plain RPCholesky (NumPy)": 1.0},
    note=datasets.stand_in("*Letter*"),
    repeats=3,
)
def landmarks_letter(quick):
    return datasets.letter()


# --- prediction -----------------------------------------------------------------------------------


def _projector(data):
    X, Z = data
    from mercer import RBF, KernelPCA

    pca = KernelPCA(50, RBF(1 / 50)).fit(X)
    return lambda: pca.transform(Z)


def _sklearn_projector(data):
    X, Z = data
    from sklearn.decomposition import KernelPCA

    pca = KernelPCA(50, kernel="rbf", gamma=1 / 50, eigen_solver="arpack").fit(X)
    return lambda: pca.transform(Z)


@row(
    title="transform 20 000 rows, 4000 landmarks, 50 outputs",
    contenders={"mercer": _projector, "sklearn KernelPCA.transform": _sklearn_projector},
    accuracy=lambda data, Y: {"score norm": float(np.sqrt((Y * Y).sum()))},
    target={"sklearn KernelPCA.transform": 2.3},
    repeats=7,
)
def transform(quick):
    rng = np.random.default_rng(0)
    n = 1500 if quick else 4000
    return rng.normal(size=(n, 50)), rng.normal(size=(20_000, 50))


# --- kernel PCA -----------------------------------------------------------------------------------


def _gamma(X):
    return 1 / (X.shape[1] * X.var())


def _pca(X):
    from mercer import RBF, KernelPCA

    return lambda: KernelPCA(50, RBF(_gamma(X)), random_state=0).fit(X).eigenvalues_


def _sklearn_pca(solver):
    def contender(X):
        from sklearn.decomposition import KernelPCA

        return lambda: (
            KernelPCA(50, kernel="rbf", gamma=_gamma(X), eigen_solver=solver, random_state=0)
            .fit(X)
            .eigenvalues_
        )

    return contender


def _eigenvalue_error(X, values):
    """Against a dense solver; beyond 5000 rows against a long Krylov run, to spare minutes."""
    from mercer import RBF
    from mercer.space.spectra import Eigenpairs

    kernel = RBF(_gamma(X))
    if len(X) <= 2500:
        K = kernel(X)
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        exact = scipy.linalg.eigvalsh(K)[::-1][:50]
    else:
        exact = Eigenpairs.leading(kernel, X, 50, tol=1e-12, random_state=1).values
    return {"eigenvalue error": float(np.abs(values / exact - 1).max())}


def _pca_row(n):
    return {
        "title": f"kernel PCA, leading 50 of {n} digits, 784 pixels",
        "contenders": {
            "mercer": _pca,
            "sklearn arpack": _sklearn_pca("arpack"),
            "sklearn randomized": _sklearn_pca("randomized"),
            "sklearn dense (default)": _sklearn_pca("auto"),
        },
        "accuracy": _eigenvalue_error,
        "target": {"sklearn arpack": 3.0, "sklearn dense (default)": 8.0},
        "repeats": 5,
        "note": datasets.stand_in("mnist.npz"),
    }


@row(**_pca_row(5000))
def pca_5000(quick):
    return datasets.digits(1500 if quick else 5000)


@row(**_pca_row(10_000), quick=False)
def pca_10000(quick):
    return datasets.digits(10_000)


# --- ridge, SVM, MDS ------------------------------------------------------------------------------


def _ridge_data(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    Z = rng.normal(size=(2000, 8))
    return X, y, Z, np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2]


ALPHAS = np.logspace(-6, 3, 20)


def _ridge_cv(data):
    X, y, Z, _ = data
    from mercer import RBF, KernelRidgeCV

    def call():
        model = KernelRidgeCV(ALPHAS, RBF(0.1)).fit(X, y)
        return model.alpha_, model.predict(Z)

    return call


def _grid_search(data):
    X, y, Z, _ = data
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV

    def call():
        model = GridSearchCV(KernelRidge(kernel="rbf", gamma=0.1), {"alpha": ALPHAS}, cv=5)
        model.fit(X, y)
        return model.best_params_["alpha"], model.predict(Z)

    return call


@row(
    title="ridge with 20 alphas, n = 2000: leave-one-out against 5-fold search",
    contenders={"mercer": _ridge_cv, "sklearn GridSearchCV(KernelRidge)": _grid_search},
    accuracy=lambda data, got: {
        "alpha": float(got[0]),
        "test RMSE": float(np.sqrt(np.mean((got[1].ravel() - data[3]) ** 2))),
    },
    target={"sklearn GridSearchCV(KernelRidge)": 10.0},
    repeats=2,
    rounds=1,
)
def ridge_cv(quick):
    return _ridge_data(600 if quick else 2000)


def _discriminant(data):
    X, y, Z, _ = data
    from mercer import KernelDiscriminant, Matern

    return lambda: KernelDiscriminant(kernel=Matern(1.5)).fit(X, y > 0).predict(Z)


def _ridge_cv_classes(data):
    X, y, Z, _ = data
    from mercer import KernelRidgeCV, Matern

    def call():
        model = KernelRidgeCV(ALPHAS, Matern(1.5)).fit(X, np.where(y > 0, 1.0, -1.0))
        return model.predict(Z) > 0

    return call


@row(
    title="discriminant, shrinkage by left-out rows, 4000 rows of full rank, against KernelRidgeCV",
    contenders={"mercer": _discriminant, "mercer KernelRidgeCV": _ridge_cv_classes},
    accuracy=lambda data, got: {"accuracy": float(np.mean(got.ravel() == (data[3] > 0)))},
    target={"mercer KernelRidgeCV": 0.5},
    repeats=2,
    rounds=1,
)
def discriminant(quick):
    return _ridge_data(600 if quick else 4000)


def _svm(data):
    X, y, Z, _ = data
    from sklearn.svm import LinearSVC

    from mercer import RBF, Kernelized, KernelMap

    def call():
        map_ = KernelMap(RBF(0.1), max_rank=500, pivots="random", random_state=0)
        model = Kernelized(LinearSVC(C=1.0), map_).fit(X, y > 0)
        return model.predict(Z)

    return call


def _svc(data):
    X, y, Z, _ = data
    from sklearn.svm import SVC

    return lambda: SVC(C=1.0, kernel="rbf", gamma=0.1).fit(X, y > 0).predict(Z)


@row(
    title="SVM, n = 10 000, 8 columns, fit and predict 2000",
    contenders={"mercer": _svm, "sklearn SVC": _svc},
    accuracy=lambda data, got: {"accuracy": float(np.mean(got == (data[3] > 0)))},
    note="mercer: 500 landmarks and LinearSVC; exact SVC here",
    repeats=3,
)
def svm(quick):
    return _ridge_data(2000 if quick else 10_000)


def _mds(D):
    from mercer import ClassicalMDS

    return lambda: ClassicalMDS(2, metric="precomputed").fit(D).embedding_


def _sklearn_mds(D):
    from sklearn.manifold import ClassicalMDS

    return lambda: ClassicalMDS(2, metric="precomputed").fit_transform(D)


def _skbio(D):
    from skbio import DistanceMatrix
    from skbio.stats.ordination import pcoa

    return lambda: pcoa(DistanceMatrix(D), dimensions=2).samples.to_numpy()


@row(
    title="classical MDS of 2000 distances to 2 dimensions",
    contenders={
        "mercer": _mds,
        "sklearn ClassicalMDS": _sklearn_mds,
        "scikit-bio pcoa": _skbio,
    },
    note="mercer also has every negative eigenvalue; scikit-bio only the leading ones",
    accuracy=lambda D, E: {"strain": float(((E - E.mean(axis=0)) ** 2).sum())},
    target={"sklearn ClassicalMDS": 1.0},
    repeats=3,
)
def mds(quick):
    from scipy.spatial.distance import cdist

    X = _normal(1000 if quick else 2000, 6)
    D = cdist(X, X)
    return (D + D.T) / 2


# --- large data -----------------------------------------------------------------------------------


def _million(X):
    from mercer import RBF, KernelMap

    return lambda: KernelMap(RBF(0.3), tol=1e-8, memory_limit="1GB").fit(X)


@row(
    title="certify and grow: RBF gamma = 0.3, 1 000 000 x 3, every residual <= 1e-8",
    contenders={"mercer": _million},
    accuracy=lambda X, m: {"rank": m.rank_, "largest residual": m.max_residual_},
    repeats=1,
    rounds=1,
    quick=False,
    note="target 90 s, 2 GB, rank at most 2273; peers cannot",
)
def million(quick):
    return _normal(1_000_000, 3)


def _million_methods(X):
    from mercer import RBF, KernelMap, KernelPCA, KernelRidge

    y = np.sin(X[:, 0]) * X[:, 1]

    def call():
        kernel = KernelMap(RBF(0.3), tol=1e-8, memory_limit="1GB")
        pca = KernelPCA(10, kernel).fit(X)
        ridge = KernelRidge(1e-3, kernel).fit(X, y)
        return pca, ridge, y

    return call


@row(
    title="kernel PCA(10) and ridge on 1 000 000 x 3, every residual <= 1e-8, maps included",
    contenders={"mercer": _million_methods},
    accuracy=lambda X, got: {
        "leading share": float(got[0].explained_variance_ratio_[0]),
        "ridge RMSE": float(np.sqrt(np.mean((got[1].predict(X[:20000]) - got[2][:20000]) ** 2))),
    },
    repeats=1,
    rounds=1,
    quick=False,
    note="streamed sums; peers cannot",
)
def million_methods(quick):
    return _normal(1_000_000, 3)


def _growth(sizes):
    from mercer import RBF, KernelMap

    def call():
        times = []
        for X in sizes:
            start = time.perf_counter()
            KernelMap(RBF(0.1), max_rank=300).fit(X)
            times.append(time.perf_counter() - start)
        return times

    return call


@row(
    title="growth of time with n at rank 300 (1 = linear)",
    contenders={"mercer": _growth},
    accuracy=lambda sizes, times: {
        "exponent": float(np.polyfit(np.log([len(X) for X in sizes]), np.log(times), 1)[0])
    },
    repeats=3,
)
def growth(quick):
    return [
        _normal(n, 5)
        for n in ((10_000, 20_000, 40_000) if quick else (50_000, 100_000, 200_000, 400_000))
    ]


# --- import ---------------------------------------------------------------------------------------


def _import(statement):
    return lambda _: lambda: subprocess.run([sys.executable, "-c", statement], check=True)


@row(
    title="import",
    contenders={
        "mercer": _import("import mercer"),
        "import sklearn.decomposition": _import("import sklearn.decomposition"),
    },
    target={"import sklearn.decomposition": 1 / 1.15},
    repeats=7,
)
def import_time(quick):
    return None
