"""What is driven: every public estimator and function, with a check that its answers are right."""

import numpy as np
import scipy.sparse
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from fuzz.outcomes import at_most, finite
from mercer import (
    RBF,
    Chi2,
    ClassicalMDS,
    Constant,
    Cosine,
    DriftDetector,
    ForestKernel,
    FromFeatures,
    FromFunction,
    GlobalAlignment,
    Intersection,
    KernelClassifier,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
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
    RKHSFunction,
    SetOf,
    ShortestPaths,
    Sigmoid,
    Signature,
    Spectrum,
    TableEncoder,
    Tanimoto,
    WeisfeilerLehman,
    check_mercer,
    preimage,
)

KERNELS = [
    Linear(),
    Polynomial(),
    Cosine(),
    Sigmoid(),
    QuadraticForm(np.eye(3)),
    RBF(),
    RBF("median"),
    RBF(0.5),
    RBF([0.5, 1.0, 2.0]),
    Laplacian(),
    Matern(),
    Matern(0.5),
    Matern(0.8),
    RationalQuadratic(),
    Periodic(),
    Chi2(),
    Intersection(),
    Tanimoto(),
    Signature(2),
    Constant(),
    Precomputed(),
    RBF() + Linear(),
    RBF(0.5) * Polynomial(2),
    0.5 * Cosine() ** 2,
    (0.01 * Linear()).exp(),
    Linear().polynomial([1.0, 0.5]),
    OnColumns(RBF(), [0]),
    Normalized(Polynomial(2)),
]

ESTIMATORS = [
    KernelMap(),
    KernelMap("linear"),
    KernelMap("poly", basis="eigen", center=True),
    KernelMap(basis="symmetric", append_residual=True),
    KernelMap(Polynomial(2), basis="auto"),
    KernelMap(Laplacian(), max_rank=3, pivots="random", random_state=0),
    KernelMap("sigmoid", indefinite="clip"),
    KernelMap("precomputed"),
    KernelMap(Chi2()),
    KernelPCA(),
    KernelPCA(2, "poly"),
    KernelPCA(2, "linear", solver="factor"),
    KernelPCA(1, "precomputed"),
    KernelPCAL1(1, random_state=0),
    KernelDiscriminant(),
    KernelDiscriminant(1, "linear", shrinkage=0.1),
    KernelRidge(),
    KernelRidge(0.1, "poly", form="dual"),
    KernelRidge(0.1, "linear", form="primal"),
    KernelRidgeCV(),
    ClassicalMDS(1),
    Kernelized(LogisticRegression(max_iter=50)),
    Kernelized(LinearRegression(), "linear"),
]


def plain(X):
    """An input as a float array, as far as that has a meaning."""
    if scipy.sparse.issparse(X):
        return X.toarray().astype(float)
    if hasattr(X, "detach"):
        return X.detach().numpy().astype(float)
    return np.asarray(X, dtype=float)


def drive_kernel(kernel, X):
    """k(X), its diagonal, two samples, the verdict of check_mercer."""
    K = np.asarray(kernel(X))
    finite(K)
    if kernel.kind == "gram":
        return
    diagonal = np.asarray(kernel.diag(X))
    finite(diagonal)
    size = np.abs(K).max()
    tolerance = 1e-4 if K.dtype == np.float32 else 1e-9
    at_most(np.abs(K - K.T), 0.0, "symmetry")
    at_most(np.abs(np.diagonal(K) - diagonal), tolerance * size, "k.diag")
    if kernel.is_psd is True:  # Cauchy-Schwarz, relative to each pair
        smallest = np.finfo(K.dtype).smallest_normal  # below, k(x, x) underflows
        lengths = np.sqrt(np.abs(diagonal.astype(float)) + smallest)
        lengths = np.minimum(lengths, 1e154)
        at_most(
            np.abs(K) * (lengths.max() < 1e154),
            (1 + tolerance) * lengths[:, None] * lengths[None, :] + 1e-290,
            "|k(x, z)|",
        )
    report = check_mercer(kernel, X)
    if kernel.is_psd is True and report.psd is False:
        raise AssertionError("a valid kernel was refuted")


def drive_estimator(model, X, y):
    """Fit, answer for the training rows again, and check what must hold."""
    if hasattr(model, "fit_transform") and not hasattr(model, "predict"):
        first = model.fit_transform(X, y)
        finite(first)
    else:
        model.fit(X, y)
    for name in ("transform", "predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            answer = getattr(model, name)(X)
            if hasattr(answer, "dtype"):
                finite(answer)
            if name == "predict_proba":
                at_most(np.abs(np.asarray(answer).sum(axis=1) - 1), 1e-6, "sum of probabilities")
    check = CHECKS.get(type(model))
    if check is not None:
        check(model, X, y)


def check_map(model, X, y):
    """The certificate: |k(x, z) - phi(x).phi(z)| is at most its bound."""
    if model.kernel_.is_psd is not True or model.correction_ is not None or model.center:
        return
    if model.get_params()["append_residual"]:
        return
    Phi = model.transform(X)
    finite(model.residual(X))
    bound = np.asarray(model.error_bound(X))
    finite(bound)
    # Half precision is read as float32 by kernels, as float64 by estimators.
    K = model.kernel_(plain(X) if getattr(X, "dtype", None) == np.float16 else X)
    K, Phi = np.asarray(K, float), np.asarray(Phi, float)
    at_most(np.abs(K - Phi @ Phi.T), bound, "certificate")


def check_pca(model, X, y):
    """Scores are centred, and their squares sum to the eigenvalues."""
    values = np.asarray(model.eigenvalues_, float)
    at_most(-values, 0.0, "minus eigenvalues")
    at_most(np.diff(values), 0.0, "order of eigenvalues")
    scores = np.asarray(model.eigenvectors_, float) * np.sqrt(values)
    scale = values.max(initial=0.0)
    at_most(np.abs((scores**2).sum(axis=0) - values), 1e-3 * scale, "squares of scores")


def check_ridge(model, X, y):
    """alpha a + f(x) = t at the training rows: [KERNELS] (7)."""
    if np.ndim(model.alpha) or getattr(model, "form_", None) == "primal":
        return
    t, f = np.asarray(y, float), np.asarray(model.predict(X), float)
    a = np.asarray(model.dual_coef_, float)
    # A backward stable solve leaves eps K a; where that is large the equations were singular.
    K = np.asarray(model.kernel_(X), float)
    eps = np.finfo(np.float32 if "32" in str(getattr(X, "dtype", "")) else float).eps
    solve = 10 * len(a) * eps * (np.abs(K).max() + model.alpha) * np.abs(a).sum(axis=0)
    allowed = np.minimum(1e-6 * np.abs(t).max(initial=1e-300) + solve, 0.1 * np.abs(t).max())
    at_most(np.abs(model.alpha * a + f - t), allowed, "normal equations")


def check_mds(model, X, y):
    """An embedding is a projection: it stretches no distance."""
    X, E = plain(X), np.asarray(model.embedding_, float)
    scale = np.abs(X).max()
    if not 1e-140 < scale < 1e140:
        return
    far = np.linalg.norm(X[:, None] - X[None], axis=2)
    near = np.linalg.norm(E[:, None] - E[None], axis=2)
    at_most(near, far + 1e-4 * scale, "distances of the embedding")


CHECKS = {
    KernelMap: check_map,
    KernelPCA: check_pca,
    KernelRidge: check_ridge,
    ClassicalMDS: check_mds,
}


def drive_function(X):
    """RKHSFunction: the reproducing property, <f, k(z, .)> = f(z)."""
    points = RBF().points(X)
    f = RKHSFunction(RBF(), X, np.ones(points.shape[0]))
    values = np.asarray(f(X))
    finite(values, f.norm())
    z = points[:1]
    at_most(
        abs(f.inner(RKHSFunction(f.kernel, z, [1.0])) - values[0]), 1e-3 * points.shape[0], "f(z)"
    )


def drive_preimage(X):
    model = KernelMap().fit(X)
    finite(preimage(model, model.transform(X)))


# One of each class, to change a parameter of.
EXAMPLES = {
    type(m): m
    for m in [
        *ESTIMATORS[::-1],
        *KERNELS[::-1],
        Rescaled(RBF(), lambda X: X[:, 0]),
        OnFeatures(RBF(), np.abs),
        Projected(RBF(0.5), np.eye(2)),
        FromFunction(lambda x, z: float(x @ z)),
        FromFeatures(np.abs),
        ForestKernel(ExtraTreesRegressor(3, max_depth=2).fit(np.eye(2), [0.0, 1.0])),
        Spectrum(2),
        WeisfeilerLehman(1),
        ShortestPaths(),
        GlobalAlignment(0.5),
        SetOf(RBF(0.5)),
        DriftDetector(n_permutations=19, random_state=0),
        TableEncoder(),
        KernelRegressor(RBF(0.5), metric=None, n_rounds=1),  # learning a metric takes long
        KernelClassifier(RBF(0.5), metric=None, n_rounds=1),
    ]
}
