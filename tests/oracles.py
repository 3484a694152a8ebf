"""Every formula once more, for one pair of points, in 100 digits: slow and obvious.

``matrix(kernel, X, Z)`` is what ``kernel(X, Z)`` must give, rounded once. Kernels are bound: their
parameters are numbers.
"""

import math
from collections import Counter
from functools import cache
from itertools import combinations, combinations_with_replacement, pairwise, product

import mpmath
import numpy as np

from mercer import kernels

mp = mpmath.MPContext()
mp.dps = 100


def matrix(kernel, X, Z):
    """Values in double precision; beyond its range they are infinite."""
    return np.array([[float(value(kernel, x, z)) for z in Z] for x in X])


def value(kernel, x, z):
    """k(x, z) in 100 digits."""
    return FORMULAS[type(kernel)](kernel, x, z)


def exactly(numbers, n):
    """n numbers, or one number for all, as they are."""
    return [mp.mpf(float(v)) for v in np.broadcast_to(np.asarray(numbers, dtype=float), n)]


def point(x):
    """The coordinates of a point as they are; those of an image have more digits already."""
    return [v if isinstance(v, mp.mpf) else mp.mpf(float(v)) for v in x]


def differences(x, z):
    return [a - b for a, b in zip(point(x), point(z))]


def dot(x, z, weights=1.0):
    return mp.fsum(w * a * b for w, a, b in zip(exactly(weights, len(x)), point(x), point(z)))


def distance(x, z, scale=1.0):
    return mp.sqrt(mp.fsum((d / l) ** 2 for d, l in zip(differences(x, z), exactly(scale, len(x)))))


def cosine(k, x, z):
    lengths = mp.sqrt(dot(x, x) * dot(z, z))
    return dot(x, z) / lengths if lengths else mp.mpf(0)


def quadratic_form(k, x, z):
    A = [exactly(row, len(x)) for row in np.asarray(k.A)]
    x, z = point(x), point(z)
    return mp.fsum(x[i] * A[i][j] * z[j] for i in range(len(x)) for j in range(len(z)))


def rbf(k, x, z):
    return mp.exp(-mp.fsum(g * d**2 for g, d in zip(exactly(k.gamma, len(x)), differences(x, z))))


def laplacian(k, x, z):
    return mp.exp(-mp.fsum(g * abs(d) for g, d in zip(exactly(k.gamma, len(x)), differences(x, z))))


def matern(k, x, z):
    d, nu = distance(x, z, k.length_scale), mp.mpf(k.nu)
    if d == 0:
        return mp.mpf(1)
    if nu == mp.inf:
        return mp.exp(-(d**2) / 2)
    t = mp.sqrt(2 * nu) * d
    return 2 ** (1 - nu) / mp.gamma(nu) * t**nu * mp.besselk(nu, t)


def rational_quadratic(k, x, z):
    a = mp.mpf(k.alpha)
    return (1 + distance(x, z, k.length_scale) ** 2 / (2 * a)) ** -a


def periodic(k, x, z):
    l, p = exactly(k.length_scale, len(x)), exactly(k.period, len(x))
    turns = (mp.sin(mp.pi * d / b) / a for d, a, b in zip(differences(x, z), l, p))
    return mp.exp(-2 * mp.fsum(t**2 for t in turns))


def chi2(k, x, z):
    terms = zip(exactly(k.gamma, len(x)), point(x), point(z))
    return mp.exp(-mp.fsum(g * (a - b) ** 2 / (a + b) for g, a, b in terms if a + b > 0))


def normalized(k, x, z):
    lengths = mp.sqrt(value(k.kernel, x, x) * value(k.kernel, z, z))
    return value(k.kernel, x, z) / lengths if lengths else mp.mpf(0)


def on_columns(k, x, z):
    columns = k.positions(len(x))
    return value(k.kernel, [x[c] for c in columns], [z[c] for c in columns])


def projected(k, x, z):
    A = np.asarray(k.A)
    A = np.diag(A) if A.ndim == 1 else A
    columns = [exactly(column, len(x)) for column in A.T]
    x, z = ([mp.fdot(point(v), column) for column in columns] for v in (x, z))
    return value(k.kernel, x, z)


def one(function, x):
    """A function of batches, at one point: what it returns is what was meant."""
    batch = [x] if isinstance(x, str) else np.asarray(x, dtype=getattr(x, "dtype", float))[None, :]
    return function(batch)[0]


def from_function(k, x, z):
    return mp.mpf(float(k.f(x[None, :], z[None, :])[0, 0] if k.vectorized else k.f(x, z)))


def rescaled(k, x, z):
    return mp.mpf(float(one(k.f, x))) * value(k.kernel, x, z) * mp.mpf(float(one(k.f, z)))


# --- objects --------------------------------------------------------------------------------------


def shared(a, b):
    """Inner product of two Counters."""
    return mp.mpf(sum(count * b[thing] for thing, count in a.items()))


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
    length = mp.sqrt(shared(a, a) * shared(b, b)) if k.normalize else 1
    return shared(a, b) / length if length else mp.mpf(0)


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
    return mp.fsum(pairs) / len(pairs) if pairs else mp.mpf(0)


def tanimoto(k, x, z):
    union = mp.fsum(max(a, b) for a, b in zip(point(x), point(z)))
    return intersection(k, x, z) / union if union else mp.mpf(1)


def intersection(k, x, z):
    return mp.fsum(min(a, b) for a, b in zip(point(x), point(z)))


def iterated_integrals(k, path):
    """Coordinate (c1, ..., cm): the sum over steps i1 <= ... <= im of their products, steps that
    are taken j times divided by j!."""
    points = np.asarray(path, dtype=float)
    points = points.reshape(len(points), -1)
    scales = exactly(k.length_scale, points.shape[1])
    steps = [
        [d / scale for d, scale in zip(differences(b, a), scales)] for a, b in pairwise(points)
    ]
    if k.time:
        steps = [[*step, mp.mpf(1) / len(steps)] for step in steps]
    found = [mp.mpf(1)]
    for level in range(1, k.depth + 1):
        for channels in product(range(points.shape[1] + bool(k.time)), repeat=level):
            terms = []
            for chosen in combinations_with_replacement(range(len(steps)), level):
                repeats = math.prod(math.factorial(chosen.count(i)) for i in set(chosen))
                terms.append(math.prod(steps[i][c] for i, c in zip(chosen, channels)) / repeats)
            found.append(mp.fsum(terms))
    return found


def signature(k, x, z):
    return mp.fdot(iterated_integrals(k, x), iterated_integrals(k, z))


def global_alignment(k, x, z):
    def total(a, b):
        @cache
        def alignments(i, j):
            """Sum over the alignments of the first points of both, up to i and j."""
            if i < 0 or j < 0:
                return mp.mpf(0)
            g = rbf(k, np.atleast_1d(a[i]), np.atleast_1d(b[j]))
            steps = ((i - 1, j), (i, j - 1), (i - 1, j - 1))
            before = mp.fsum(alignments(*step) for step in steps) if i + j else 1
            return g / (2 - g) * before

        return alignments(len(a) - 1, len(b) - 1)

    return total(x, z) / mp.sqrt(total(x, x) * total(z, z))


def forest(k, x, z):
    """The share of trees that put both rows into the same leaf."""
    leaves = [np.ravel(k.estimator.apply(np.atleast_2d(row))) for row in (x, z)]
    return mp.mpf(int(np.sum(leaves[0] == leaves[1]))) / len(leaves[0])


FORMULAS = {
    kernels.ForestKernel: forest,
    kernels.Spectrum: spectrum,
    kernels.WeisfeilerLehman: lambda k, x, z: shared(refined_labels(k, x), refined_labels(k, z)),
    kernels.ShortestPaths: lambda k, x, z: shared(path_lengths(x), path_lengths(z)),
    kernels.SetOf: set_of,
    kernels.Tanimoto: tanimoto,
    kernels.Signature: signature,
    kernels.GlobalAlignment: global_alignment,
    kernels.Linear: lambda k, x, z: dot(x, z),
    kernels.Polynomial: lambda k, x, z: (dot(x, z, k.gamma) + mp.mpf(k.coef0)) ** int(k.degree),
    kernels.Cosine: cosine,
    kernels.QuadraticForm: quadratic_form,
    kernels.Sigmoid: lambda k, x, z: mp.tanh(dot(x, z, k.gamma) + mp.mpf(k.coef0)),
    kernels.RBF: rbf,
    kernels.Laplacian: laplacian,
    kernels.Matern: matern,
    kernels.RationalQuadratic: rational_quadratic,
    kernels.Periodic: periodic,
    kernels.Chi2: chi2,
    kernels.Intersection: intersection,
    kernels.Constant: lambda k, x, z: mp.mpf(k.c),
    kernels.Sum: lambda k, x, z: value(k.left, x, z) + value(k.right, x, z),
    kernels.Product: lambda k, x, z: value(k.left, x, z) * value(k.right, x, z),
    kernels.Scaled: lambda k, x, z: mp.mpf(k.scale) * value(k.kernel, x, z),
    kernels.Power: lambda k, x, z: value(k.kernel, x, z) ** int(k.exponent),
    kernels.Exp: lambda k, x, z: mp.exp(value(k.kernel, x, z)),
    kernels.PolynomialOf: lambda k, x, z: mp.fsum(
        mp.mpf(c) * value(k.kernel, x, z) ** p for p, c in enumerate(k.coefficients)
    ),
    kernels.Normalized: normalized,
    kernels.Rescaled: rescaled,
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
