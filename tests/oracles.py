"""Every formula once more, for one pair of points, in plain Python: slow and obvious.

``matrix(kernel, X, Z)`` is what ``kernel(X, Z)`` must give. Kernels are bound: their parameters are
numbers.
"""

import math
from collections import Counter
from itertools import combinations, combinations_with_replacement, product

import numpy as np
from scipy.special import gamma, kv

from mercer import kernels


def matrix(kernel, X, Z):
    return np.array([[value(kernel, x, z) for z in Z] for x in X])


def value(kernel, x, z):
    return FORMULAS[type(kernel)](kernel, x, z)


def dot(x, z, weights=1.0):
    w = np.broadcast_to(weights, len(x))
    return math.fsum(float(w[c]) * float(x[c]) * float(z[c]) for c in range(len(x)))


def distance(x, z, scale=1.0):
    l = np.broadcast_to(scale, len(x))
    return math.sqrt(
        math.fsum(((float(x[c]) - float(z[c])) / float(l[c])) ** 2 for c in range(len(x)))
    )


def cosine(k, x, z):
    lengths = math.sqrt(dot(x, x) * dot(z, z))
    return dot(x, z) / lengths if lengths else 0.0


def quadratic_form(k, x, z):
    A = np.asarray(k.A)
    A = np.diag(A) if A.ndim == 1 else A
    return math.fsum(
        float(x[i]) * float(A[i, j]) * float(z[j]) for i in range(len(x)) for j in range(len(z))
    )


def rbf(k, x, z):
    g = np.broadcast_to(k.gamma, len(x))
    return math.exp(
        -math.fsum(float(g[c]) * (float(x[c]) - float(z[c])) ** 2 for c in range(len(x)))
    )


def laplacian(k, x, z):
    g = np.broadcast_to(k.gamma, len(x))
    return math.exp(-math.fsum(float(g[c]) * abs(float(x[c]) - float(z[c])) for c in range(len(x))))


def matern(k, x, z):
    d = distance(x, z, k.length_scale)
    if d == 0:
        return 1.0
    t = math.sqrt(2 * k.nu) * d
    return 2 ** (1 - k.nu) / gamma(k.nu) * t**k.nu * kv(k.nu, t)


def rational_quadratic(k, x, z):
    return (1 + distance(x, z, k.length_scale) ** 2 / (2 * k.alpha)) ** -k.alpha


def periodic(k, x, z):
    l, p = np.broadcast_to(k.length_scale, len(x)), np.broadcast_to(k.period, len(x))
    return math.exp(
        -2
        * math.fsum(
            (math.sin(math.pi * (float(x[c]) - float(z[c])) / p[c]) / l[c]) ** 2
            for c in range(len(x))
        )
    )


def chi2(k, x, z):
    g = np.broadcast_to(k.gamma, len(x))
    return math.exp(
        -math.fsum(
            float(g[c]) * (float(x[c]) - float(z[c])) ** 2 / (float(x[c]) + float(z[c]))
            for c in range(len(x))
            if x[c] + z[c] > 0
        )
    )


def normalized(k, x, z):
    lengths = math.sqrt(value(k.kernel, x, x) * value(k.kernel, z, z))
    return value(k.kernel, x, z) / lengths if lengths else 0.0


def on_columns(k, x, z):
    columns = k.positions(len(x))
    return value(k.kernel, x[columns], z[columns])


def projected(k, x, z):
    A = np.asarray(k.A)
    A = np.diag(A) if A.ndim == 1 else A
    x, z = (
        [math.fsum(float(v[c]) * float(A[c, j]) for c in range(len(v))) for j in range(A.shape[1])]
        for v in (x, z)
    )
    return value(k.kernel, x, z)


def one(function, x):
    """A function of batches, at one point."""
    batch = [x] if isinstance(x, str) else np.asarray(x)[None, :]
    return function(batch)[0]


def from_function(k, x, z):
    return k.f(x[None, :], z[None, :])[0, 0] if k.vectorized else k.f(x, z)


# --- objects --------------------------------------------------------------------------------------


def shared(a, b):
    """Inner product of two Counters."""
    return math.fsum(count * b[thing] for thing, count in a.items())


def substrings(k, x):
    counts = Counter()
    lengths = [k.length] if isinstance(k.length, int) else k.length
    for n in lengths:
        for i in range(len(x) - n - k.gaps + 1):
            window = x[i : i + n + k.gaps]
            found = {"".join(letters) for letters in combinations(window, n)}
            if k.mismatches:
                found = {
                    "".join(word)
                    for word in product(k.alphabet, repeat=n)
                    if sum(a != b for a, b in zip(word, window)) <= k.mismatches
                }
            counts.update(found)
    return counts


def spectrum(k, x, z):
    a, b = substrings(k, x), substrings(k, z)
    length = math.sqrt(shared(a, a) * shared(b, b)) if k.normalize else 1.0
    return shared(a, b) / length if length else 0.0


def neighbours(graph):
    """Of every node: {neighbour: label of the edge}."""
    edges, labels, *marks = graph
    found = {node: {} for node in range(len(labels))}
    for i, (u, v) in enumerate(edges):
        mark = marks[0][i] if marks else None
        found[int(u)][int(v)] = found[int(v)][int(u)] = mark
    return found


def refined_labels(k, graph):
    """Labels of all rounds, written out in full instead of hashed."""
    around, labels = neighbours(graph), list(graph[1])
    counts = Counter((0, label) for label in labels)
    for r in range(1, k.rounds + 1):
        labels = [
            (labels[v], tuple(sorted((str(mark), repr(labels[u])) for u, mark in near.items())))
            for v, near in around.items()
        ]
        counts.update((r, label) for label in labels)
    return counts


def path_lengths(graph):
    around, labels = neighbours(graph), graph[1]
    counts = Counter()
    for start in around:
        distance, waiting = {start: 0}, [start]
        for node in waiting:
            for near in around[node]:
                if near not in distance:
                    distance[near] = distance[node] + 1
                    waiting.append(near)
        for end, d in distance.items():
            if end > start:
                counts[(*sorted([labels[start], labels[end]]), d)] += 1
    return counts


def set_of(k, x, z):
    pairs = [value(k.kernel, a, b) for a in x for b in z]
    return math.fsum(pairs) / len(pairs) if pairs else 0.0


def tanimoto(k, x, z):
    union = math.fsum(max(a, b) for a, b in zip(x, z))
    return math.fsum(min(a, b) for a, b in zip(x, z)) / union if union else 1.0


def iterated_integrals(k, path):
    """Coordinate (c1, ..., cm): the sum over steps i1 <= ... <= im of their products, steps that
    are taken j times divided by j!."""
    points = np.asarray(path, dtype=float)
    points = (points.reshape(len(points), -1)) / np.asarray(k.length_scale)
    if k.time:
        points = np.column_stack([points, np.linspace(0, 1, len(points))])
    steps = np.diff(points, axis=0).tolist()
    found = [1.0]
    for level in range(1, k.depth + 1):
        for channels in product(range(points.shape[1]), repeat=level):
            terms = []
            for chosen in combinations_with_replacement(range(len(steps)), level):
                repeats = math.prod(math.factorial(chosen.count(i)) for i in set(chosen))
                terms.append(math.prod(steps[i][c] for i, c in zip(chosen, channels)) / repeats)
            found.append(math.fsum(terms))
    return found


def signature(k, x, z):
    return math.fsum(a * b for a, b in zip(iterated_integrals(k, x), iterated_integrals(k, z)))


def alignments(local, i, j):
    """Sum over the alignments of the first i and the first j points, one by one."""
    if i < 0 or j < 0:
        return 0.0
    if i == j == 0:
        return local(0, 0)
    steps = ((i - 1, j), (i, j - 1), (i - 1, j - 1))
    return local(i, j) * math.fsum(alignments(local, *step) for step in steps)


def global_alignment(k, x, z):
    def total(a, b):
        def local(i, j):
            g = rbf(k, np.atleast_1d(a[i]), np.atleast_1d(b[j]))
            return g / (2 - g)

        return alignments(local, len(a) - 1, len(b) - 1)

    return total(x, z) / math.sqrt(total(x, x) * total(z, z))


FORMULAS = {
    kernels.Spectrum: spectrum,
    kernels.WeisfeilerLehman: lambda k, x, z: shared(refined_labels(k, x), refined_labels(k, z)),
    kernels.ShortestPaths: lambda k, x, z: shared(path_lengths(x), path_lengths(z)),
    kernels.SetOf: set_of,
    kernels.Tanimoto: tanimoto,
    kernels.Signature: signature,
    kernels.GlobalAlignment: global_alignment,
    kernels.Linear: lambda k, x, z: dot(x, z),
    kernels.Polynomial: lambda k, x, z: (dot(x, z, k.gamma) + k.coef0) ** k.degree,
    kernels.Cosine: cosine,
    kernels.QuadraticForm: quadratic_form,
    kernels.Sigmoid: lambda k, x, z: math.tanh(dot(x, z, k.gamma) + k.coef0),
    kernels.RBF: rbf,
    kernels.Laplacian: laplacian,
    kernels.Matern: matern,
    kernels.RationalQuadratic: rational_quadratic,
    kernels.Periodic: periodic,
    kernels.Chi2: chi2,
    kernels.Intersection: lambda k, x, z: math.fsum(min(a, b) for a, b in zip(x, z)),
    kernels.Constant: lambda k, x, z: k.c,
    kernels.Sum: lambda k, x, z: value(k.left, x, z) + value(k.right, x, z),
    kernels.Product: lambda k, x, z: value(k.left, x, z) * value(k.right, x, z),
    kernels.Scaled: lambda k, x, z: k.scale * value(k.kernel, x, z),
    kernels.Power: lambda k, x, z: value(k.kernel, x, z) ** k.exponent,
    kernels.Exp: lambda k, x, z: math.exp(value(k.kernel, x, z)),
    kernels.PolynomialOf: lambda k, x, z: math.fsum(
        c * value(k.kernel, x, z) ** p for p, c in enumerate(k.coefficients)
    ),
    kernels.Normalized: normalized,
    kernels.Rescaled: lambda k, x, z: one(k.f, x) * value(k.kernel, x, z) * one(k.f, z),
    kernels.OnFeatures: lambda k, x, z: value(k.kernel, one(k.g, x), one(k.g, z)),
    kernels.OnColumns: on_columns,
    kernels.Projected: projected,
    kernels.FromFunction: from_function,
    kernels.FromFeatures: lambda k, x, z: dot(one(k.g, x), one(k.g, z)),
}


def ridge_without_each_row(F, T, alpha, weights=None):
    """t_i minus the prediction of ridge with an intercept that is fitted to all other rows."""
    n, errors = len(F), np.empty_like(T)
    w = np.ones(n) if weights is None else weights / weights.mean()
    for i in range(n):
        others = np.arange(n) != i
        mean, offset = np.average(F[others], 0, w[others]), np.average(T[others], 0, w[others])
        f, t, root = F[others] - mean, T[others] - offset, np.sqrt(w[others])[:, None]
        stacked = np.vstack([f * root, alpha**0.5 * np.eye(F.shape[1])])
        targets = np.vstack([t * root, np.zeros((F.shape[1], T.shape[1]))])
        errors[i] = T[i] - offset - (F[i] - mean) @ np.linalg.lstsq(stacked, targets)[0]
    return errors
