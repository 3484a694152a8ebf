"""Random search for an error beyond its bound.

Kernels x dtypes x pivots x bases x sources x offsets:

    python -m fuzz.certificates [--cases N] [--seconds T] [--seed S] [--jobs J]

The oracle is every kernel's plain formula in extended precision (NumPy's longdouble), on the rows
as they were given. A case is a map, fitted in one precision and asked in another, on training rows,
new rows, rows nearby and rows far away; a violation is a pair whose error exceeds `error_bound`. Or
it is a classifier (KernelSVC, KernelLogistic), asked how far it is from the exact one.
"""

import sys
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from fuzz import search
from fuzz.machines import machine
from mercer import (
    RBF,
    Chunks,
    Constant,
    Cosine,
    KernelMap,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Periodic,
    Polynomial,
    Projected,
    QuadraticForm,
    RationalQuadratic,
    Rescaled,
    SetOf,
    Signature,
)
from mercer.kernels.algebra import Exp, Product, Scaled, Sum

L = np.longdouble
PI = 4 * np.arctan(L(1))
# Share of the cases that are classifiers.
MACHINES = 0.15


def value(kernel, X, Z, A=None):
    """k(X, Z) by the formula, in extended precision; of X A and Z A where A is given."""
    X, Z = X.astype(L), Z.astype(L)
    if isinstance(kernel, Sum):
        return value(kernel.left, X, Z, A) + value(kernel.right, X, Z, A)
    if isinstance(kernel, Product):
        return value(kernel.left, X, Z, A) * value(kernel.right, X, Z, A)
    if isinstance(kernel, Scaled):
        return L(kernel.scale) * value(kernel.kernel, X, Z, A)
    if isinstance(kernel, Exp):
        return np.exp(value(kernel.kernel, X, Z, A))
    if isinstance(kernel, Constant):
        return np.full((len(X), len(Z)), L(kernel.c))
    if isinstance(kernel, Rescaled):
        factors = (kernel.f(P.astype(float)).astype(L) for P in (X, Z))
        return value(kernel.kernel, X, Z, A) * np.outer(*factors)
    if isinstance(kernel, Normalized):
        x, z = (np.sqrt(own_values(kernel.kernel, P, A)) for P in (X, Z))
        x, z = (np.where(l > 0, l, 1) for l in (x, z))  # the origin stays there
        return value(kernel.kernel, X, Z, A) / np.outer(x, z)
    if isinstance(kernel, Projected):
        return value(kernel.kernel, X, Z, np.asarray(kernel.A, dtype=L))
    difference = X[:, None, :] - Z[None, :, :]
    if A is not None:
        X, Z, difference = X @ A, Z @ A, difference @ A
    if isinstance(kernel, QuadraticForm):
        return X @ np.asarray(kernel.A, dtype=L) @ Z.T
    if isinstance(kernel, Linear):
        return X @ Z.T
    if isinstance(kernel, Polynomial):
        return (L(kernel.gamma) * (X @ Z.T) + L(kernel.coef0)) ** int(kernel.degree)
    if isinstance(kernel, Cosine):
        x, z = (np.sqrt((P * P).sum(axis=1)) for P in (X, Z))
        return (X @ Z.T) / np.where(x > 0, x, 1)[:, None] / np.where(z > 0, z, 1)[None, :]
    if isinstance(kernel, Laplacian):
        return np.exp(-L(kernel.gamma) * np.abs(difference).sum(axis=2))
    if isinstance(kernel, Periodic):
        turns = np.sin(PI * difference / L(kernel.period)) / L(kernel.length_scale)
        return np.exp(-2 * (turns * turns).sum(axis=2))
    d2 = (difference * difference).sum(axis=2)
    if isinstance(kernel, RBF):
        return np.exp(-L(kernel.gamma) * d2)
    d2 = d2 / L(kernel.length_scale) ** 2
    if isinstance(kernel, RationalQuadratic):
        return np.exp(-L(kernel.alpha) * np.log1p(d2 / (2 * L(kernel.alpha))))
    nu = kernel.nu
    t = np.sqrt(2 * L(nu) * d2)
    factor = {0.5: L(1), 1.5: 1 + t, 2.5: 1 + t + t * t / 3}[nu]
    return factor * np.exp(-t)


def own_values(kernel, X, A):
    return np.array([value(kernel, x[None, :], x[None, :], A)[0, 0] for x in X])


def value_of_lists(kernel, X, Z):
    """The same for sets of points and for paths."""
    if isinstance(kernel, Signature):
        return signatures(kernel, X) @ signatures(kernel, Z).T
    return np.array([[value(kernel.kernel, x, z).mean() for z in Z] for x in X])


def signatures(kernel, X):
    """Chen's identity, one path at a time: S(path + step) = S(path) exp(step)."""
    found = []
    for x in X:
        steps = np.diff(x.astype(L), axis=0) / np.asarray(kernel.length_scale, L)
        if kernel.time:
            steps = np.column_stack([steps, np.full(len(steps), L(1) / max(len(steps), 1))])
        levels = [np.ones(1, L)] + [
            np.zeros(steps.shape[1] ** m, L) for m in range(1, kernel.depth + 1)
        ]
        for step in steps:
            powers = [np.ones(1, L)]
            for j in range(1, kernel.depth + 1):
                powers.append(np.outer(powers[-1], step).ravel() / j)
            levels = [
                sum(np.outer(levels[m - j], powers[j]).ravel() for j in range(m + 1))
                for m in range(kernel.depth + 1)
            ]
        found.append(np.concatenate(levels))
    return np.array(found)


def leaf(rng, d):
    scale = 10 ** rng.uniform(-1.5, 1)
    root = np.linalg.qr(rng.normal(size=(d, d)))[0] * 10.0 ** (-rng.uniform(0, 10) * rng.random(d))
    return [
        lambda: RBF(scale / d),
        lambda: RBF(scale / d),
        lambda: Matern(float(rng.choice([0.5, 1.5, 2.5])), d**0.5 / scale),
        lambda: RationalQuadratic(10 ** rng.uniform(-1, 7), d**0.5 / scale),
        lambda: Periodic(rng.uniform(0.3, 3) * d**0.5, rng.uniform(0.2, 5)),
        lambda: Laplacian(scale / d),
        lambda: Polynomial(int(rng.integers(1, 6)), scale / d, float(rng.choice([0.0, 1.0, 3.0]))),
        lambda: Linear(),
        lambda: Cosine(),
        lambda: QuadraticForm(((root @ root.T) + (root @ root.T).T) / 2),
        lambda: Periodic(10 ** rng.uniform(-6, 0), rng.uniform(0.2, 5)),
        lambda: Constant(10 ** rng.uniform(-3, 3)),
    ][rng.integers(12)]()


def combined(rng, d):
    kernel = leaf(rng, d)
    for _ in range(int(rng.choice([0, 0, 1, 2]))):
        other = leaf(rng, d)
        kernel = kernel + other if rng.random() < 0.5 else kernel * other
    return kernel


def kernel_for(rng, d):
    kernel = combined(rng, d)
    around = rng.random()
    if around < 0.2:
        return 10 ** rng.uniform(-8, 8) * kernel
    if around < 0.3:
        return Rescaled(kernel, weights)
    if around < 0.35:
        return Normalized(kernel)
    return kernel


def projected(rng, d):
    """A kernel of few combinations of the columns, some of which cancel."""
    q = int(rng.integers(1, 4))
    A = rng.normal(size=(d, q))
    if d > 1 and rng.random() < 0.3:
        A -= A.mean(axis=0)  # offsets that all columns share drop out
    kernel = combined(rng, q)
    return Projected(Normalized(kernel) if rng.random() < 0.2 else kernel, A)


def weights(X):
    """The same in every precision, so that what it rounds is not at issue."""
    X = X.toarray() if scipy.sparse.issparse(X) else X
    return np.where(X[:, 0] > 0, 1.0, 0.125)


def lists(rng):
    """Sets or paths, close to the origin or far away, that cancel or do not, and their kernel."""
    channels, size = int(rng.integers(1, 4)), 10 ** rng.uniform(-3, 3)
    offset = float(rng.choice([0, 0, 1e3, 1e6])) * rng.normal(size=channels)
    X = [size * rng.normal(size=(rng.integers(1, 12), channels)) for _ in range(12)]
    kind = rng.integers(3)
    if kind == 1:
        X = [np.concatenate([x, x[::-1]] * int(rng.integers(1, 6))) for x in X]
    elif kind == 2:
        X = [np.concatenate([x, -x]) for x in X]
    inner = [Linear(), Polynomial(3, coef0=0.0), RBF(0.3 / size**2), Cosine()][rng.integers(4)]
    signature = Signature(
        int(rng.integers(1, 5)), bool(rng.random() < 0.5), size * rng.uniform(0.1, 3)
    )
    return signature if rng.random() < 0.5 else SetOf(inner), [x + offset for x in X]


def data(rng, d):
    n = int(rng.integers(5, 120))
    X = rng.normal(size=(n, d))
    kind = rng.integers(5)
    if kind == 1:  # tight clusters
        X = rng.normal(size=(4, d))[rng.integers(4, size=n)] + 10 ** rng.uniform(-6, -1) * X
    elif kind == 2:  # repeated rows
        X = X[rng.integers(max(2, n // 3), size=n)]
    elif kind == 3:  # a grid
        X = np.round(2 * X) / 2
    Z = np.concatenate(
        [
            X[: n // 3],
            X[: n // 4] * (1 + 10 ** rng.uniform(-9, -2) * rng.normal(size=(n // 4, d))),
            rng.normal(size=(10, d)),
            4 * rng.normal(size=(5, d)),
        ]
    )
    offset = float(rng.choice([0, 0, 0, 10, 1e3, 1e6])) * rng.normal(size=d)
    size = 10 ** rng.uniform(-30, 0) if rng.random() < 0.1 else 1.0
    return size * (X + offset), size * (Z + offset)


@dataclass
class Found(search.Found):
    refused: int = 0
    pairs: int = 0
    useless: int = 0

    def __str__(self):
        return (
            f"certificates: {self.cases} cases, {self.pairs} pairs, {self.refused} refused, "
            f"{self.useless / max(self.pairs, 1):.1%} of bounds above |k|, "
            f"{len(self.findings)} violations"
        )


def one(rng, found):
    if rng.random() < 0.1:
        return one_of_lists(rng, found)
    d = int(rng.choice([1, 2, 2, 3, 5, 20, 300]))
    kernel, (X, Z) = (kernel_for if rng.random() < 0.8 else projected)(rng, d), data(rng, d)
    if rng.random() < MACHINES:
        try:
            return machine(rng, found, kernel, X, Z, value)
        except (ValueError, TypeError) as refusal:
            found.refused += 1
            return "" if len(str(refusal)) > 20 else f"unclear: {refusal!r}"
    fitted, asked = (rng.choice([np.float64, np.float32]) for _ in range(2))
    X, Z = X.astype(fitted), Z.astype(asked)
    source = rng.choice(["array", "array", "array", "sparse", "stream", "partial"])
    options = {
        "basis": str(rng.choice(["cholesky", "cholesky", "eigen", "symmetric", "auto"])),
        "pivots": str(rng.choice(["greedy", "random", "uniform"])),
        "center": bool(rng.random() < 0.25),
        "max_rank": [None, None, int(rng.integers(1, len(X) + 1))][rng.integers(3)],
        "tol": [None, None, 1e-4][rng.integers(3)],
    }
    if source in ("stream", "partial"):
        options |= {"basis": "cholesky", "pivots": "greedy", "center": False}
    kernel_map = KernelMap(kernel, random_state=0, **options)
    try:
        Phi = fit(kernel_map, X, source, rng)
        Psi = kernel_map.transform(Z).astype(L)
        pairs = [(Z, Z, Psi, Psi), (X, Z, kernel_map.transform(X).astype(L), Psi)]
        if Phi is not None:
            pairs.append((X, X, Phi.astype(L), Phi.astype(L)))
        for A, B, P, Q in pairs:
            truth = centred(kernel, X, A, B) if options["center"] else value(kernel, A, B)
            bound = kernel_map.error_bound(A, B)
            error = np.abs(P @ Q.T - truth)
            found.pairs += error.size
            found.useless += int((bound >= np.abs(truth)).sum())
            if not np.all(error <= bound):
                worst = float(np.max(error / np.maximum(bound, 1e-300)))
                return f"{worst:.3g} x bound: {kernel!r} {options} {source} {fitted} {asked} d={d}"
    except (ValueError, TypeError) as refusal:
        found.refused += 1
        return "" if len(str(refusal)) > 20 else f"unclear: {refusal!r}"
    return ""


def one_of_lists(rng, found):
    kernel, X = lists(rng)
    options = {"basis": str(rng.choice(["cholesky", "eigen", "auto"])), "center": False}
    try:
        kernel_map = KernelMap(kernel, **options).fit(X[:8])
        Phi = np.asarray(kernel_map.transform(X), L)
        bound = kernel_map.error_bound(X)
    except (ValueError, TypeError) as refusal:
        found.refused += 1
        return "" if len(str(refusal)) > 20 else f"unclear: {refusal!r}"
    truth = value_of_lists(kernel, X, X)
    error = np.abs(Phi @ Phi.T - truth)
    found.pairs += error.size
    found.useless += int((bound >= np.abs(truth)).sum())
    if not np.all(error <= bound):
        worst = float(np.max(error / np.maximum(bound, 1e-300)))
        return f"{worst:.3g} x bound: {kernel!r} {options} lists"
    return ""


def fit(kernel_map, X, source, rng):
    """The coordinates that the fit returns, where it does."""
    if source == "sparse":
        return kernel_map.fit_transform(scipy.sparse.csr_array(X))
    if source == "array":
        return kernel_map.fit_transform(X)
    size = int(rng.integers(1, 40))
    chunks = [X[a : a + size] for a in range(0, len(X), size)]
    if source == "stream":
        kernel_map.fit(Chunks(lambda: iter(chunks)))
    else:
        for chunk in chunks:
            kernel_map.partial_fit(chunk)
    return None


def centred(kernel, X, A, B):
    a, b = value(kernel, A, X).mean(axis=1), value(kernel, B, X).mean(axis=1)
    return value(kernel, A, B) - a[:, None] - b[None, :] + value(kernel, X, X).mean()


if __name__ == "__main__":
    sys.exit(search.command(one, Found, 100_000, __doc__))
