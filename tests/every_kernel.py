"""One list of every kernel there is, with points that suit each: the laws run over all of it."""

from importlib.util import find_spec

import numpy as np

from mercer import (
    RBF,
    Chi2,
    Constant,
    Cosine,
    FromFeatures,
    FromFunction,
    GlobalAlignment,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    OnColumns,
    OnFeatures,
    Periodic,
    Polynomial,
    Precomputed,
    Projected,
    QuadraticForm,
    RationalQuadratic,
    Rescaled,
    SetOf,
    ShortestPaths,
    Sigmoid,
    Signature,
    Spectrum,
    Tanimoto,
    WeisfeilerLehman,
)

N_COLUMNS = 4
PSD_MATRIX = [
    [2.0, 1.0, 0.0, 0.0],
    [1.0, 2.0, 0.0, 0.0],
    [0.0, 0.0, 1.0, 0.0],
    [0.0, 0.0, 0.0, 0.0],
]
PROJECTION = [[1.0, 0.5], [0.0, 2.0], [-1.0, 0.0], [0.25, 0.0]]


# --- functions that a person might hand in ----------------------------------------------------


def damping(X):
    """f of rule 2, for any array namespace."""
    return 1.0 / (1.0 + X[:, 0] ** 2)


def doubled(X):
    """g of rule 7, for any array namespace."""
    return 2.0 * X


def two_features(X):
    return X[:, :2]


def letter_counts(words):
    return np.array([[word.count(letter) for letter in "abc"] for word in words], dtype=float)


def common_letters(a, b):
    return float(sum(a.count(letter) * b.count(letter) for letter in "abc"))


def product_matrix(X, Z):
    return X @ Z.T


# --- the list -----------------------------------------------------------------------------------

VECTOR_KERNELS = [
    Linear(),
    Polynomial(),
    Polynomial(degree=2, gamma=0.5, coef0=0.0),
    Polynomial(degree=4, gamma=[0.1, 0.2, 0.3, 0.4], coef0=2.0),
    Cosine(),
    QuadraticForm(PSD_MATRIX),
    Sigmoid(gamma=0.5, coef0=-0.1),
    RBF(),
    RBF(gamma="median"),
    RBF(gamma=0.3),
    RBF(gamma=[0.1, 0.2, 0.3, 0.4]),
    Laplacian(),
    Laplacian(gamma="median"),
    Laplacian(gamma=[0.1, 0.2, 0.3, 0.4]),
    Matern(),
    Matern(nu=0.5, length_scale=2.0),
    Matern(nu=2.5, length_scale=[1.0, 2.0, 3.0, 4.0]),
    Matern(nu=0.8),
    RationalQuadratic(),
    RationalQuadratic(alpha=0.7, length_scale=[1.0, 2.0, 3.0, 4.0]),
    Periodic(),
    Periodic(length_scale=[1.0, 2.0, 3.0, 4.0], period=1.7),
    Constant(),
    Constant(0.0),
    # the rules: [KERNELS] 1 to 10
    2.5 * RBF(0.3),
    0.0 * Linear(),
    Rescaled(RBF(0.3), damping),
    Linear().polynomial([1.0, 0.0, 0.5]),
    (0.1 * Linear()).exp(),
    RBF(0.3) + Linear(),
    RBF(0.3) * Linear(),
    Linear() ** 3,
    RBF() ** 0,
    OnFeatures(Polynomial(2), doubled),
    OnColumns(RBF(0.3), [0, 2]) + OnColumns(Linear(), slice(1, 3)),
    OnColumns(RBF(), [0, 1]) * OnColumns(Linear(), [False, False, True, True]),
    OnColumns(Polynomial(2), -1),
    Projected(Matern(2.5), [1.0, 0.0, 0.5, -2.0]),
    Projected(Matern(0.5), PROJECTION),
    Projected(RBF(), PROJECTION) + 0.5 * Linear(),
    Projected(Polynomial(2), PROJECTION),
    # nesting
    Linear() + RBF(0.3) * Matern(),
    (Linear() + RBF(0.3)) * Matern(),
    (Linear() + 1) ** 2 + 0.5 * Cosine() * RBF(),
    Normalized(Polynomial(2)),
    Normalized(Linear() + 1).exp(),
    FromFeatures(two_features),
    FromFunction(product_matrix, vectorized=True),
]
HISTOGRAM_KERNELS = [
    Chi2(),
    Chi2(gamma=[0.1, 0.2, 0.3, 0.4]),
    Intersection(),
    Normalized(Intersection()),
    Chi2(0.5) * Linear(),
    Tanimoto(),
    Tanimoto() ** 2 + Intersection(),
]
STRING_KERNELS = [
    FromFunction(common_letters),
    FromFeatures(letter_counts),
    OnFeatures(RBF(0.3), letter_counts),
    Normalized(FromFunction(common_letters)),
    FromFeatures(letter_counts) ** 2 + 1,
    Spectrum(2),
    Spectrum(length=range(1, 4), normalize=True),
    Spectrum(length=[1, 9]),
    Spectrum(2, mismatches=1, alphabet="abcd"),
    Spectrum(2, gaps=2),
    Spectrum(1) * Spectrum(2) + 0.5 * Normalized(Spectrum(3)),
]
GRAPH_KERNELS = [
    WeisfeilerLehman(),
    WeisfeilerLehman(rounds=0),
    ShortestPaths(),
    Normalized(WeisfeilerLehman(1)) + 2 * ShortestPaths(),
]
SET_KERNELS = [
    SetOf(RBF(0.3)),
    SetOf(RBF()),
    SetOf(Polynomial(2)),
    SetOf(Linear()) * SetOf(Cosine()),
]
PATH_KERNELS = [
    Signature(),
    Signature(depth=2, time=False, length_scale=[0.5, 2.0]),
    Signature(depth=2) + SetOf(RBF(0.3)),
]
if find_spec("tslearn"):  # an extra
    PATH_KERNELS += [GlobalAlignment(0.3), GlobalAlignment([0.1, 2.0]) * Signature(depth=1)]
GRAM_KERNELS = [Precomputed(), 2.0 * Precomputed(), Precomputed() ** 2 + 1]

OBJECT_KERNELS = STRING_KERNELS + GRAPH_KERNELS + SET_KERNELS + PATH_KERNELS
EVERY_KERNEL = VECTOR_KERNELS + HISTOGRAM_KERNELS + OBJECT_KERNELS + GRAM_KERNELS


def numpy_only(kernel):
    """Whether it needs NumPy: special functions, and Python functions of objects."""
    return kernel in OBJECT_KERNELS or kernel == Matern(nu=0.8) or isinstance(kernel, FromFunction)


PORTABLE_KERNELS = [k for k in VECTOR_KERNELS + HISTOGRAM_KERNELS if not numpy_only(k)]


def random_graph(rng):
    """(edges, labels): some edges twice or in both directions, some nodes alone."""
    n = rng.integers(1, 7)
    edges = rng.integers(n, size=(rng.integers(0, 9), 2))
    if n == len(edges) == 2:
        edges = edges.tolist()  # as an array it might be an adjacency matrix
    return edges, [str(label) for label in rng.choice(["C", "N", "O"], size=n)]


def points_for(kernel, n=13, seed=0):
    """n points that the kernel accepts, the last a duplicate of the first."""
    rng = np.random.default_rng(seed)
    if kernel in STRING_KERNELS:
        words = ["".join(rng.choice(list("abcd"), size=rng.integers(1, 7))) for _ in range(n - 1)]
        return [*words, words[0]]
    if kernel in GRAPH_KERNELS:
        graphs = [random_graph(rng) for _ in range(n - 1)]
        return [*graphs, graphs[0]]
    if kernel in SET_KERNELS + PATH_KERNELS:
        shortest = 0 if kernel in SET_KERNELS else 1
        arrays = [rng.normal(size=(rng.integers(shortest, 6), 2)) for _ in range(n - 1)]
        return [*arrays, arrays[0]]
    X = rng.normal(size=(n, N_COLUMNS))
    if kernel in HISTOGRAM_KERNELS:
        X = np.floor(3 * np.abs(X))
        X[:, -1] += 1
    X[-1] = X[0]
    return X @ X.T if kernel in GRAM_KERNELS else X
