"""The source documents, statement by statement: the table in docs/sources.md, and the steps of
their derivations as numbers. Results have tests of their own beside the code; here is the rest.

Misprints are corrected as the errata of that page say.
"""

import ast
import importlib
import os
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import shortest_path
from sklearn.datasets import load_digits, make_circles, make_s_curve
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph
from sklearn.svm import LinearSVC

from mercer import (
    RBF,
    ClassicalMDS,
    FromFeatures,
    FromFunction,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    Linear,
    Matern,
    NotPSDError,
    OnColumns,
    OnFeatures,
    Polynomial,
    QuadraticForm,
    Rescaled,
    RKHSFunction,
    Sigmoid,
    check_mercer,
)

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "sources.md"
NAME = re.compile(r"`([^`]+)`")

# --- the table ------------------------------------------------------------------------------------


def rows():
    """(line number, cells) of every row of every table on the page."""
    for number, line in enumerate(PAGE.read_text().splitlines(), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line == "## Errata":
            return
        if cells and not set(cells[0]) <= {"-", ":"} and cells[0] != "statement":
            yield number, cells


def names_in(path):
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def resolve(name):
    """mercer.KernelMap.transform -> the thing itself."""
    module, *attributes = name.split(".")
    thing = importlib.import_module(module)
    for attribute in attributes:
        if not hasattr(thing, attribute):
            thing = importlib.import_module(f"{thing.__name__}.{attribute}")
        else:
            thing = getattr(thing, attribute)
    return thing


def test_the_table_is_complete_and_true():
    known: dict[str, set] = {}
    count = 0
    for number, cells in rows():
        where = f"docs/sources.md:{number}"
        assert len(cells) == 4, f"{where}: {len(cells)} cells"
        assert all(cells), f"{where}: an empty cell"
        functions, tests = NAME.findall(cells[2]), NAME.findall(cells[3])
        assert functions, f"{where}: no function"
        assert tests, f"{where}: no test"
        for name in functions:
            assert resolve(name) is not None, f"{where}: {name}"
        for name in tests:
            path, _, test = name.partition("::")
            if path not in known:
                known[path] = names_in(path)
            assert test.split("::")[-1] in known[path], f"{where}: {name}"
        count += 1
    assert count > 100


NUMBERED = {
    "EXACT": [*map(str, range(1, 30)), *(f"A.{i}" for i in range(1, 11))],
    "NPT": [*map(str, range(1, 36))],
    "KERNELS": [*map(str, range(1, 9))],
    "MDS": ["1", "2", "3"],
}


@pytest.mark.parametrize("document", NUMBERED)
def test_every_numbered_equation_is_in_the_table(document):
    text = PAGE.read_text().split(f"## [{document}]")[1].split("\n## ")[0]
    covered = set()
    for line in text.splitlines():
        first = line.split("|")[1] if line.startswith("|") else ""
        for lower, upper in re.findall(r"\(((?:A\.)?\d+)\)(?:-\(((?:A\.)?\d+)\))?", first):
            prefix = "A." if lower.startswith("A.") else ""
            low = int(lower.removeprefix("A."))
            high = int((upper or lower).removeprefix("A."))
            covered |= {f"{prefix}{i}" for i in range(low, high + 1)}
    assert covered == set(NUMBERED[document])


# --- [EXACT] sections 2, 3 and Appendix A ---------------------------------------------------------


class Exact:
    """The symbols of [EXACT] on a small sample, as printed: K is regular."""

    kernel = Matern(nu=0.5, length_scale=2.0)
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(12, 3)), rng.normal(size=(1, 3))
    N = 12
    K, k_z = kernel(X), kernel(z, X)[0]
    e = np.full(12, 1 / 12)
    root = np.real(scipy.linalg.sqrtm(K))
    H = np.eye(12) - 12 * np.outer(e, e)


def test_exact_theorem_1():
    """(4)-(7) for a regular K, and by the pseudo-inverse for a singular one."""
    E = Exact
    assert_allclose(E.K @ np.linalg.inv(E.K), np.eye(E.N), atol=1e-12)  # "1 in its n-th element"
    phi = KernelMap(E.kernel, basis="symmetric").fit(E.X)
    assert_allclose(phi.transform(E.z)[0], np.linalg.solve(E.root, E.k_z), atol=1e-11)
    assert_allclose(phi.transform(E.X) @ phi.transform(E.z)[0], E.k_z, atol=1e-12)
    assert_allclose(E.K @ np.linalg.solve(E.K, E.k_z), E.k_z, atol=1e-12)  # (6), (7)
    kernel = Polynomial(2)  # 10 dimensions, 12 rows
    K, k_z = kernel(E.X), kernel(E.z, E.X)[0]
    values, U = np.linalg.eigh(K)
    values, U = values[2:], U[:, 2:]
    phi = KernelMap(kernel, basis="symmetric").fit(E.X)
    assert_allclose(phi.transform(E.z)[0], U @ (U.T @ k_z / np.sqrt(values)), atol=1e-9)
    assert_allclose(phi.transform(E.X) @ phi.transform(E.z)[0], k_z, atol=1e-10)


def test_exact_mean_and_centred_map():
    """(8)-(10), with psi = phi - M in (9)."""
    E, kernel_map = Exact, KernelMap(Exact.kernel, basis="symmetric", center=True).fit(Exact.X)
    M = KernelMap(E.kernel, basis="symmetric").fit_transform(E.X).mean(axis=0)
    assert_allclose(M, E.root @ E.e, atol=1e-12)
    assert_allclose(kernel_map.mean_, M, atol=1e-12)
    psi = np.linalg.solve(E.root, E.k_z - E.K @ E.e)
    assert_allclose(kernel_map.transform(E.z)[0], psi, atol=1e-11)
    centred = E.root @ (np.eye(E.N) - E.e[:, None])
    assert_allclose(kernel_map.transform(E.X), centred.T, atol=1e-11)


def test_exact_primal_equations():
    """(11)-(16): the covariance, its eigenvectors v, u = K^1/2 v, and the score of z."""
    E = Exact
    Psi = KernelMap(E.kernel, basis="symmetric", center=True).fit_transform(E.X)
    C = E.root @ E.H @ E.root / E.N
    assert_allclose(Psi.T @ Psi / E.N, C, atol=1e-12)
    values, V = np.linalg.eigh(C)
    lam, v = values[-1], V[:, -1]
    assert_allclose(E.root @ E.H @ E.root @ v, E.N * lam * v, atol=1e-11)
    u = E.root @ v
    assert_allclose(E.K @ E.H @ u, E.N * lam * u, atol=1e-11)
    assert_allclose(u @ np.linalg.solve(E.K, u), 1, rtol=1e-11)
    score = E.k_z @ np.linalg.solve(E.K, u) - E.e @ u
    model = KernelPCA(1, E.kernel, form="primal").fit(E.X)
    assert_allclose(abs(model.transform(E.z)[0, 0]), abs(score), atol=1e-11)


def test_exact_remark_on_gaussian_processes():
    """After (16): k_z K^-1 u is the mean of a Gaussian process without noise, with targets u."""
    E = Exact
    model = KernelPCA(1, E.kernel, form="primal").fit(E.X)
    u = E.root @ np.linalg.eigh(E.root @ E.H @ E.root)[1][:, -1]
    process = GaussianProcessRegressor(
        gp_kernels.Matern(2.0, nu=0.5), alpha=1e-12, optimizer=None
    ).fit(E.X, u)
    mean = process.predict(E.z)[0]
    assert_allclose(mean, E.k_z @ np.linalg.solve(E.K, u), atol=1e-9)
    assert_allclose(abs(mean - E.e @ u), abs(model.transform(E.z)[0, 0]), atol=1e-9)


def test_exact_dual_and_combined_equations():
    """(17)-(25): v by its coefficients, the same eigenproblem, and scores without centring K."""
    E = Exact
    K_bar = E.K @ E.H
    values, A = scipy.linalg.eig(K_bar)
    first = np.argmax(values.real)
    n_lam, alpha = values.real[first], A[:, first].real
    alpha = alpha / np.sqrt(alpha @ E.H @ E.K @ E.H @ alpha)  # (22)
    v = E.root @ E.H @ alpha  # (17)
    assert_allclose(E.root @ E.H @ E.root @ v, n_lam * v, atol=1e-10)  # (18)
    assert_allclose(K_bar @ K_bar @ alpha, n_lam * K_bar @ alpha, atol=1e-9)  # (19), (20)
    assert_allclose(K_bar @ alpha, n_lam * alpha, atol=1e-10)  # (21)
    assert_allclose(v @ v, 1, rtol=1e-10)
    assert_allclose(E.root @ v, n_lam * alpha, atol=1e-10)  # (24)
    dual = E.k_z @ E.H @ alpha - E.e @ E.K @ E.H @ alpha  # (23)
    combined = E.k_z @ (alpha - E.N * (E.e @ alpha) * E.e) - n_lam * (E.e @ alpha)  # (25)
    assert_allclose(combined, dual, atol=1e-11)
    for form in ("dual", "combined"):
        score = KernelPCA(1, E.kernel, form=form).fit(E.X).transform(E.z)[0, 0]
        assert_allclose(abs(score), abs(dual), atol=1e-10)


def test_exact_appendix():
    """(A.1)-(A.10), the last with the signs and the factor N put right."""
    E = Exact
    J = np.full((E.N, E.N), 1 / E.N)
    K_bar = E.K - J @ E.K - E.K @ J + J @ E.K @ J  # (A.9)
    Psi = KernelMap(E.kernel, center=True).fit_transform(E.X)
    assert_allclose(Psi @ Psi.T, K_bar, atol=1e-11)
    values, A = np.linalg.eigh(K_bar)
    n_lam, alpha = values[-1], A[:, -1] / np.sqrt(values[-1])
    v = Psi.T @ alpha  # (A.1)
    assert_allclose(Psi.T @ (Psi @ v), n_lam * v, atol=1e-10)  # (A.2)
    # (A.3): its last line prints K for the centred matrix, which shows only if a is not centred.
    assert_allclose(Psi.T @ (K_bar @ alpha), n_lam * v, atol=1e-10)
    assert_allclose(Psi.T @ (E.K @ alpha), n_lam * v, atol=1e-10)
    assert np.abs(Psi.T @ (E.K @ (alpha + 0.3) - K_bar @ (alpha + 0.3))).max() > 0.1
    assert_allclose(Psi @ (Psi.T @ (K_bar @ alpha)), n_lam * Psi @ v, atol=1e-10)  # (A.4), (A.5)
    assert_allclose(K_bar @ K_bar @ alpha, n_lam * K_bar @ alpha, atol=1e-10)  # (A.6), (A.7)
    assert_allclose(K_bar @ alpha, n_lam * alpha, atol=1e-10)  # (A.8)
    # (A.10) for coefficients that are not centred, where the misprints would show.
    a = alpha + 0.3
    psi_z = KernelMap(E.kernel, center=True).fit(E.X).transform(E.z)[0]
    direct = a @ (Psi @ psi_z)
    printed = (a - a.mean()) @ E.k_z - E.e @ E.K @ a + (E.e @ E.K @ E.e) * E.N * (a @ E.e)
    assert_allclose(printed, direct, atol=1e-10)


def digits_247():
    """(X, y, Z, t, the shares of Figures 1 to 4), training and test digits 2, 4 and 7.

    As printed, 500 + 500 of each of MNIST, where MERCER_BENCH_DATA names a folder with mnist.npz;
    otherwise the small digits of scikit-learn, on which k1 fails less. The shares are those of
    docs/sources.md, each as (lowest, highest) of k1 and of k2.
    """
    path = Path(os.environ.get("MERCER_BENCH_DATA", "no-such-folder")) / "mnist.npz"
    if path.exists():
        with np.load(path) as arrays:
            parts = [
                (arrays[f"x_{part}"][rows].reshape(len(rows), -1) / 255.0, labels[rows])
                for part in ("train", "test")
                for labels in [arrays[f"y_{part}"]]
                for rows in [np.concatenate([np.flatnonzero(labels == c)[:500] for c in (2, 4, 7)])]
            ]
        shares = {
            "space": ((0.64, 0.66), (0.965, 0.975)),
            "t-SNE": ((0.465, 0.555), (0.955, 0.975)),
            "Fisher": ((0.83, 0.85), (0.965, 0.98)),
        }
        return *parts[0], *parts[1], shares
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (2, 4, 7))
    X, y = X[chosen] / 16, y[chosen]
    shares = {
        "space": ((0, 0.97), (0.98, 1)),
        "t-SNE": ((0, 0.97), (0.98, 1)),
        "Fisher": ((0, 0.98), (0.98, 1)),
    }
    return X[:180], y[:180], X[180:], y[180:], shares


def to_plus_minus(X):
    return 2 * X - 1


def mnist_kernels(d):
    """k1 (27)-(28) and k2 (29)."""
    k1 = Polynomial(9, gamma=1 / d, coef0=0.0)
    return k1, OnFeatures(Polynomial(9, gamma=1 / (2 * d), coef0=0.5), to_plus_minus)


def test_exact_kernels_on_mnist():
    """(27)-(29) as printed, both forms of (29), and what the captions say of self-similarities."""
    X, _, Z, *_ = digits_247()
    k1, k2 = mnist_kernels(d := X.shape[1])
    if d == 784:  # the digits of the figures
        of_k1, of_k2 = (kernel.diag(np.concatenate([X, Z])) for kernel in (k1, k2))
        assert_allclose([of_k1.min(), of_k1.max()], [1e-14, 2.5e-5], rtol=0.1)
        assert_allclose([of_k2.min(), of_k2.max()], [0.58, 0.86], atol=0.005)
    X = X[:60]
    assert_allclose(k1(X), (X @ X.T / d) ** 9, rtol=1e-11)
    inner = (2 * X - 1) @ (2 * X - 1).T / d
    assert_allclose(k2(X), (inner + 1) ** 9 / 512, rtol=1e-11)
    assert_allclose(k2(X), ((inner + 1) / 2) ** 9, rtol=1e-11)
    assert k1.diag(X).max() < 1e-4  # "the similarity of a data point with itself can be very low"
    assert k1.diag(X).max() > 50 * k1.diag(X).min()
    assert k2.diag(X).min() > 0.1  # "nearly one" is 0.58 to 0.86 there
    assert k2.diag(X).max() < 4 * k2.diag(X).min()
    assert k2(X).min() >= 0


def test_exact_figures_1_and_2():
    """t-SNE of the training digits; test digits are placed by the fitted map and picture.

    The picture of k1 changes with the seed and the rounding; neighbours in its space do not.
    """
    tsne = pytest.importorskip("openTSNE").TSNE
    X, y, Z, t, shares = digits_247()
    kernels = mnist_kernels(X.shape[1])
    for kernel, seen, (lowest, highest) in zip(kernels, shares["space"], shares["t-SNE"]):
        kernel_map = KernelMap(kernel, basis="eigen").fit(X)
        space = KNeighborsClassifier(5).fit(kernel_map.transform(X), y)
        assert seen[0] < space.score(kernel_map.transform(Z), t) < seen[1]
        learn = tsne(
            perplexity=30 if len(X) > 500 else 15,
            n_iter=250,
            neighbors="exact",
            negative_gradient_method="bh",
            n_jobs=1,
            random_state=0,
        )
        picture = learn.fit(kernel_map.transform(X))
        placed = picture.transform(kernel_map.transform(Z))
        near = KNeighborsClassifier(5).fit(np.asarray(picture), y)
        assert lowest < near.score(np.asarray(placed), t) < highest


def test_exact_figures_3_and_4():
    """Fisher analysis on the explicit coordinates: test digits, k1 against k2."""
    X, y, Z, t, shares = digits_247()
    for kernel, (lowest, highest) in zip(mnist_kernels(X.shape[1]), shares["Fisher"]):
        assert lowest < KernelDiscriminant(kernel=kernel).fit(X, y).score(Z, t) < highest


# --- [SLIDES] -------------------------------------------------------------------------------------


def test_slides_steps_3_and_4():
    """beta, alpha and K^C alpha with all printed digits; +0.486 where alpha_3 prints -0.486."""
    X = np.array([[1.0, 1], [2, 4], [-1, 1], [-2, 4]])
    model = KernelPCA(3, Polynomial(2)).fit(X)
    H = np.eye(4) - 1 / 4
    centred = H @ Polynomial(2)(X) @ H
    assert_allclose(np.linalg.eigvalsh(centred)[::-1], [277.927, 252, 2.072, 0], atol=5e-4)
    beta = np.array(
        [
            [0.10365278, -0.5, -0.69946844],
            [0.69946844, 0.5, 0.10365278],
            [-0.10365278, -0.5, 0.69946844],
            [-0.69946844, 0.5, -0.10365278],
        ]
    )
    alpha = np.array(
        [
            [0.00621749, -0.03149704, -0.48587288],
            [0.0419568, 0.03149704, 0.0720005],
            [-0.00621749, -0.03149704, 0.48587288],
            [-0.0419568, 0.03149704, -0.0720005],
        ]
    )
    scores = np.array(
        [
            [1.72801191, -7.93725393, -1.00696319],
            [11.66094908, 7.93725393, 0.14921979],
            [-1.72801191, -7.93725393, 1.00696319],
            [-11.66094908, 7.93725393, -0.14921979],
        ]
    )
    sign = np.sign((model.eigenvectors_ * beta).sum(axis=0))  # one per column, and no more
    assert_allclose(model.eigenvectors_ * sign, beta, atol=6e-9)
    assert_allclose(model.eigenvectors_ / np.sqrt(model.eigenvalues_) * sign, alpha, atol=6e-9)
    assert_allclose(centred @ alpha, scores, atol=2e-6)
    assert_allclose(model.transform(X) * sign, scores, atol=6e-9)
    assert_allclose(centred @ np.full(4, 0.5), 0, atol=1e-12)  # the fourth beta, of eigenvalue 0


def test_slides_question_1():
    """More components than columns; but five, since PCA centres and one coordinate is constant."""
    X = np.random.default_rng(0).normal(size=(1000, 2))
    assert KernelMap(Polynomial(2)).fit(X).rank_ == 6
    model = KernelPCA(kernel=Polynomial(2)).fit(X)
    assert len(model.eigenvalues_) == 5
    assert model.transform(X).shape == (1000, 5)


def test_gaussian_kernels_of_the_documents():
    """exp(-d^2 / (2 s^2)), exp(-d^2 / s^2) and exp(-g d^2): [EXACT] (1), [MDS] 7 (c), [KERNELS]."""
    x, z, s = np.array([[1.0, 2.0]]), np.array([[0.5, 4.0]]), 1.7
    d2 = 0.5**2 + 2.0**2
    assert_allclose(RBF(1 / (2 * s**2))(x, z), np.exp(-d2 / (2 * s**2)), rtol=1e-14)
    assert_allclose(RBF(1 / s**2)(x, z), np.exp(-d2 / s**2), rtol=1e-14)
    assert_allclose(RBF(0.3)(x, z), np.exp(-0.3 * d2), rtol=1e-14)
    assert RBF(0.3).explicit_dim(2) is None
    # Its Taylor series does not end: every degree adds to the rank.
    X = np.linspace(-1, 1, 9)[:, None]
    K, terms = RBF(1.0)(X), np.arange(30)
    assert np.linalg.matrix_rank(K) == 9
    roots = np.sqrt(2.0**terms / scipy.special.factorial(terms))
    Phi = np.exp(-(X**2)) * X**terms * roots
    assert_allclose(Phi @ Phi.T, K, atol=1e-14)
    assert np.abs(Phi[:, :6] @ Phi[:, :6].T - K).max() > 1e-3


# --- [NPT] ----------------------------------------------------------------------------------------


def test_npt_bases_are_orthonormal():
    """Lemma 1, as functions: <pi_i, pi_j> = delta_ij; (1): coordinates are <pi_i, k(z, .)>."""
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(15, 4)), rng.normal(size=(1, 4))
    kernel_map = KernelMap(RBF(0.3), basis="eigen").fit(X)
    r = kernel_map.rank_
    Pi = [kernel_map.function(row) for row in np.eye(r)]
    gram = [[p.inner(q) for q in Pi] for p in Pi]
    assert_allclose(gram, np.eye(r), atol=1e-10)
    image = RKHSFunction(kernel_map.kernel_, z, [1.0])
    phi = kernel_map.transform(z)[0]
    assert_allclose([p.inner(image) for p in Pi], phi, atol=1e-11)
    # (1): no other combination of the basis is nearer to the image.
    nearest = kernel_map.function(phi)
    for step in rng.normal(size=(5, r)):
        farther = image - kernel_map.function(phi + 0.1 * step)
        assert (image - nearest).norm() < farther.norm()


def test_npt_training_coordinates_are_centred():
    """Lemma 4, (5): the mean of the centred coordinates is zero."""
    X = np.random.default_rng(0).normal(size=(25, 3))
    Y = KernelMap(RBF(0.3), basis="eigen", center=True).fit_transform(X)
    assert np.abs(Y.sum(axis=0)).max() < 1e-12 * len(X)


def test_npt_principal_axes_are_the_unit_vectors():
    """(8)-(16): in the centred eigen basis the scatter is diagonal, and PCA picks coordinates."""
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(20, 3)), rng.normal(size=(1, 3))
    kernel_map = KernelMap(RBF(0.3), basis="eigen", center=True)
    Y = kernel_map.fit_transform(X)
    values = kernel_map.eigenvalues_
    assert_allclose(Y.T @ Y, np.diag(values), atol=1e-12 * values[0])  # (9), S = Lambda
    H = np.eye(20) - 1 / 20
    U = Y[:, :5] / np.sqrt(values[:5])
    K = H @ RBF(0.3)(X) @ H
    A = U / np.sqrt(values[:5])  # (12), (13)
    assert_allclose(K @ A, A * values[:5], atol=1e-11)  # (10), (11)
    assert_allclose(np.diagonal(A.T @ K @ A), 1, rtol=1e-11)
    k_z = (RBF(0.3)(z, X) - RBF(0.3)(X).mean(axis=0)) @ H
    assert_allclose(kernel_map.transform(z)[:, :5], k_z @ A, atol=1e-11)  # (14) is (15), (16)
    scores = KernelPCA(5, RBF(0.3)).fit(X).transform(z)
    assert_allclose(np.abs(scores), np.abs(k_z @ A), atol=1e-11)


def test_npt_scatters_of_both_derivations():
    """(21)-(32): with b = Y'a, quadratic forms of S_T and S_W are those of the kernel matrices.

    (22) and (29) are the total scatter; within + between = total, so the maximiser is the same.
    """
    rng = np.random.default_rng(0)
    X, c = rng.normal(size=(18, 4)), np.arange(18) % 3
    kernel_map = KernelMap(RBF(0.2), basis="eigen", center=True)
    Y = kernel_map.fit_transform(X)
    H = np.eye(18) - 1 / 18
    K = H @ RBF(0.2)(X) @ H
    a = rng.normal(size=18)
    b = Y.T @ a
    within_Y, within_K, between = np.zeros((Y.shape[1],) * 2), np.zeros((18, 18)), 0
    for label in range(3):
        mine = c == label
        apart = Y[mine] - Y[mine].mean(axis=0)
        within_Y += apart.T @ apart  # (23), (28)
        apart = K[mine] - K[mine].mean(axis=0)
        within_K += apart.T @ apart  # (26)
        between = between + mine.sum() * np.outer(Y[mine].mean(axis=0), Y[mine].mean(axis=0))
    assert_allclose(within_Y + between, Y.T @ Y, atol=1e-12)
    assert_allclose(b @ Y.T @ Y @ b, a @ K @ K @ a, rtol=1e-10)  # (25), (31)
    assert_allclose(b @ within_Y @ b, a @ within_K @ a, rtol=1e-10)  # (32)


def test_npt_footnote_2():
    """The rank is the effective dimension, and at least the intrinsic one: a circle is a line."""
    angle = np.linspace(0, 6, 40)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    for kernel, rank in ((Linear(), 2), (Polynomial(2), 5), (Polynomial(3), 7)):
        kernel_map = KernelMap(kernel).fit(X)
        values = np.linalg.eigvalsh(kernel(X))
        assert kernel_map.rank_ == rank == np.sum(values > 1e-13 * values[-1])
        assert rank > 1  # the dimension of the circle itself


def test_npt_footnote_3():
    """Cholesky's factor is V Y with V'V = I; V is square and the factor unique if K is regular."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    K = Matern(0.5)(X)
    values, U = np.linalg.eigh(K)
    Y, upper = np.sqrt(values)[:, None] * U.T, np.linalg.cholesky(K).T
    V = upper @ np.linalg.inv(Y)
    assert_allclose(V.T @ V, np.eye(12), atol=1e-11)
    assert_allclose(upper, V @ Y, atol=1e-12)
    kernel_map = KernelMap(Matern(0.5))  # pivoted: the same up to a rotation
    assert_allclose(kernel_map.fit_transform(X) @ kernel_map.transform(X).T, Y.T @ Y, atol=1e-12)
    singular = np.array([[0.0, 0.0], [0.0, 1.0]])  # two upper triangular factors, Y of one row
    for a, b in ((0.0, 1.0), (0.6, 0.8)):
        factor = np.array([[0.0, a], [0.0, b]])
        assert_allclose(factor.T @ factor, singular, atol=1e-15)
        V = factor @ np.linalg.pinv([[0.0, 1.0]])
        assert_allclose(V.T @ V, [[1.0]], atol=1e-15)


def test_npt_kpca_l1_is_pca_l1_on_the_coordinates():
    """(34)-(35): PCA-L1 with a kernel is PCA-L1, whose kernel is linear, on its coordinates."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    Y = KernelMap(RBF(0.3), basis="eigen", center=True).fit_transform(X)
    kernelized = KernelPCAL1(2, RBF(0.3), random_state=0).fit(X)
    plain = KernelPCAL1(2, Linear(), random_state=0).fit(Y)
    assert_allclose(kernelized.dispersions_, plain.dispersions_, rtol=1e-9)
    assert_allclose(np.abs(kernelized.transform(X)), np.abs(plain.transform(Y)), atol=1e-8)


# --- [KERNELS] ------------------------------------------------------------------------------------


def squared_norm(X):
    return np.sum(X**2, axis=1)


def first_two(X):
    return np.tanh(X[:, :2])


A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
K1, K2 = RBF(0.3), Polynomial(2)
RULES = {
    1: (0.7 * K1, lambda x, z: 0.7 * one(K1, x, z)),
    2: (Rescaled(K1, squared_norm), lambda x, z: (x @ x) * one(K1, x, z) * (z @ z)),
    3: (
        K1.polynomial([0.5, 0.0, 2.0]),
        lambda x, z: 0.5 + 2 * one(K1, x, z) ** 2,
    ),
    4: (K1.exp(), lambda x, z: np.exp(one(K1, x, z))),
    5: (K1 + K2, lambda x, z: one(K1, x, z) + one(K2, x, z)),
    6: (K1 * K2, lambda x, z: one(K1, x, z) * one(K2, x, z)),
    7: (OnFeatures(K1, first_two), lambda x, z: one(K1, np.tanh(x[:2]), np.tanh(z[:2]))),
    8: (QuadraticForm(A), lambda x, z: x @ A @ z),
    9: (
        OnColumns(K1, [0]) + OnColumns(K2, [1, 2]),
        lambda x, z: one(K1, x[:1], z[:1]) + one(K2, x[1:], z[1:]),
    ),
    10: (
        OnColumns(K1, [0]) * OnColumns(K2, [1, 2]),
        lambda x, z: one(K1, x[:1], z[:1]) * one(K2, x[1:], z[1:]),
    ),
}


def one(kernel, x, z):
    return kernel(x[None], z[None])[0, 0]


@pytest.mark.parametrize("rule", RULES)
def test_kernels_ten_rules(rule):
    """Each rule as printed, known to be valid, and valid on a sample."""
    kernel, printed = RULES[rule]
    X = np.random.default_rng(0).normal(size=(12, 3))
    K = kernel(X)
    assert_allclose(K, [[printed(x, z) for z in X] for x in X], rtol=1e-12, atol=1e-14)
    assert kernel.is_psd is True
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-13 * values[-1]


def test_kernels_rule_1_needs_c_not_negative():
    """The document leaves it out."""
    with pytest.raises(ValueError, match="negative"):
        -1.0 * RBF(0.3)
    assert not check_mercer(FromFunction(minus_one), np.eye(2)).psd


def minus_one(x, z):
    return -float(x @ z)


# --- [MDS] ----------------------------------------------------------------------------------------


def test_mds_figure_1_a_curved_surface():
    """No linear projection unrolls an S, not even the best one; distances along the surface do."""
    X, t = make_s_curve(400, random_state=0)
    graph = kneighbors_graph(X, 8, mode="distance")
    along = shortest_path(graph, directed=False)
    linear = PCA(2).fit_transform(X)[:, 0]
    best = X @ np.linalg.lstsq(X - X.mean(axis=0), t)[0]
    unrolled = ClassicalMDS(2, metric="precomputed").fit(along).embedding_[:, 0]
    assert abs(np.corrcoef(unrolled, t)[0, 1]) > 0.995
    assert abs(np.corrcoef(linear, t)[0, 1]) < 0.95
    assert abs(np.corrcoef(best, t)[0, 1]) < 0.975


def test_mds_eckart_young():
    """Theorem 2, Definition 1: no other points of p columns have a nearer Gram matrix."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(15, 5)) * [3, 2, 1, 0.5, 0.2]
    Y -= Y.mean(axis=0)
    best = ClassicalMDS(2).fit(Y).embedding_
    strain = np.linalg.norm(Y @ Y.T - best @ best.T)
    rest = np.linalg.eigvalsh(Y @ Y.T)[:-2]
    assert_allclose(strain, np.linalg.norm(rest), rtol=1e-10)
    for step in rng.normal(size=(20, 15, 2)):
        other = best + 0.1 * step
        assert np.linalg.norm(Y @ Y.T - other @ other.T) > strain


def test_mds_example_3_circles():
    """Figure 2: one more column, the squared radius, and a plane separates the circles."""
    X, y = make_circles(200, factor=0.4, noise=0.05, random_state=0)

    def lifted(X):
        return np.column_stack([X, np.sum(X**2, axis=1)])

    assert LinearSVC().fit(X, y).score(X, y) < 0.7
    assert Kernelized(LinearSVC(C=10.0), FromFeatures(lifted)).fit(X, y).score(X, y) == 1.0


def test_mds_kernel_implies_embedding():
    """Theorem 5: valid if and only if there is a feature map."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    for kernel in (RBF(0.5), Polynomial(2), Linear(), Matern()):
        assert check_mercer(kernel, X).psd
        Phi = KernelMap(kernel).fit_transform(X)
        assert_allclose(Phi @ Phi.T, kernel(X), atol=1e-12 * abs(kernel(X)).max())
    # If: any feature map makes a kernel. Only if: no map where a'Ka < 0.
    assert check_mercer(FromFunction(lambda x, z: float(np.tanh(x) @ np.tanh(z))), X).psd
    with pytest.raises(NotPSDError) as refused:
        KernelMap(Sigmoid(1.0, -1.0)).fit(X)
    a = refused.value.witness
    assert a @ Sigmoid(1.0, -1.0)(X) @ a < 0


def test_mds_example_7():
    """(a): k_x(y) = x.y, where the document prints x; (b): the six coordinates."""
    x, y = np.array([1.5, -2.0]), np.array([[0.5, 4.0], [1.0, 1.0]])
    assert_allclose(RKHSFunction(Linear(), x[None], [1.0])(y), y @ x)
    assert_allclose(Linear().explicit(x[None])[0], x)
    root = np.sqrt(2)
    expected = [1, root * 1.5, root * -2.0, 1.5**2, 4.0, root * 1.5 * -2.0]
    found = Polynomial(2).explicit(x[None])[0]
    assert_allclose(sorted(np.abs(found)), sorted(np.abs(expected)))
    assert_allclose(found @ Polynomial(2).explicit(y).T, (1 + y @ x) ** 2)


def test_mds_algorithm_8():
    """(a)-(d), and (e) with the centring and 1 / sqrt(lambda) that it lacks."""
    rng = np.random.default_rng(0)
    Y, y = rng.normal(size=(20, 3)), rng.normal(size=(4, 3))
    K, k_y = RBF(0.4)(Y), RBF(0.4)(y, Y)  # (a), (b)
    H = np.eye(20) - 1 / 20
    values, Q = np.linalg.eigh(H @ K @ H)  # (c), (d)
    values, Q = values[::-1][:4], Q[:, ::-1][:, :4]
    model = KernelPCA(4, RBF(0.4)).fit(Y)
    assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    assert_allclose(np.abs(model.transform(Y)), np.abs(Q * np.sqrt(values)), atol=1e-10)
    scores = (k_y - K.mean(axis=0)) @ H @ Q / np.sqrt(values)
    assert_allclose(np.abs(model.transform(y)), np.abs(scores), atol=1e-10)
    assert np.abs(np.abs(k_y @ Q) - np.abs(scores)).max() > 0.1  # (e) as printed


def test_mds_feature_pca():
    """2.3, (1)-(3): v_j = Phi'a_j, |v_j|^2 = N lambda_j, and the scores of old and new points."""
    rng = np.random.default_rng(0)
    Y, y = rng.normal(size=(16, 3)), rng.normal(size=(1, 3))
    kernel_map = KernelMap(RBF(0.4), center=True)
    Phi = kernel_map.fit_transform(Y)
    N, phi = 16, kernel_map.transform(y)[0]
    K = Phi @ Phi.T
    values, A = np.linalg.eigh(K / N)
    values, A = values[::-1][:4], A[:, ::-1][:, :4]
    V = Phi.T @ A  # (1)
    assert_allclose(Phi.T @ Phi @ V / N, V * values, atol=1e-12)  # (2), C = Phi'Phi / N
    assert_allclose(np.sum(V**2, axis=0), N * values, rtol=1e-11)
    basis = V / np.sqrt(N * values)  # (3)
    assert_allclose(basis.T @ basis, np.eye(4), atol=1e-11)
    model = KernelPCA(4, RBF(0.4)).fit(Y)
    new = Phi @ phi @ A / np.sqrt(N * values)
    assert_allclose(np.abs(model.transform(y)[0]), np.abs(new), atol=1e-11)
    assert_allclose(np.abs(model.transform(Y)), np.abs(K @ A / np.sqrt(N * values)), atol=1e-11)
