"""The law of rounding: every kernel's values against 100 digits, within what the kernel states.

|computed - true| <= u rounding(S) sqrt(magnitude(x) magnitude(z)), u the unit roundoff: all
certificates rest on it (space/certificate.py). At the origin and far from it, where terms cancel,
and at both ends of the range of numbers. A kernel may refuse points, in words.
"""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import mercer
import oracles
from every_kernel import (
    EVERY_KERNEL,
    GRAM_KERNELS,
    GRAPH_KERNELS,
    HISTOGRAM_KERNELS,
    N_COLUMNS,
    PATH_KERNELS,
    PROJECTION,
    SET_KERNELS,
    STRING_KERNELS,
    VECTOR_KERNELS,
    damping,
    doubled,
    points_for,
)
from mercer import (
    RBF,
    Constant,
    Cosine,
    ForestKernel,
    FromFeatures,
    FromFunction,
    GlobalAlignment,
    Kernel,
    KernelMap,
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
    Signature,
)
from mercer.space.certificate import _omega

RANK_ONE = [[1.0], [2.0], [-1.0], [0.5]]
CANCELLING = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1e-9], [-1.0, 1e-9]]
CANCELLING_4 = np.hstack([CANCELLING, [[1.0, 0.0], [2.0, 1.0], [-3.0, 0.0], [0.0, -1.0]]])
# Positive definite, with eigenvalues from 1 to 1e-12.
ILL = np.linalg.qr(np.random.default_rng(5).normal(size=(4, 4)))[0] * 10.0 ** -np.arange(0, 8, 2)
ILL = ((ILL @ ILL.T) + (ILL @ ILL.T).T) / 2

HARD_VECTORS = [
    QuadraticForm(ILL),
    Rescaled(QuadraticForm(ILL), damping),
    OnFeatures(QuadraticForm(ILL), doubled),
    OnColumns(QuadraticForm(ILL), [3, 2, 1, 0]),
    Normalized(QuadraticForm(ILL)),
    QuadraticForm(ILL).exp(),
    (QuadraticForm(ILL) + 1) ** 2,
    Polynomial(3, coef0=-1.0),
    1e30 * Linear(),
    1e-30 * (Linear() * Constant(1e30)),
    1e30 * Polynomial(2, coef0=0.0),
    Projected(RBF(0.3), RANK_ONE),
    Projected(Matern(0.3), RANK_ONE),
    Projected(Laplacian(0.5), CANCELLING),
    Projected(Periodic(), PROJECTION),
    Projected(Periodic(0.01, 0.7), RANK_ONE),
    Projected(Linear(), CANCELLING),
    Projected(Cosine(), CANCELLING),
    Projected(Normalized(Polynomial(2)) + RBF(0.1), CANCELLING),
    Projected(2.0 * RBF(0.3) * Linear() + Constant(3.0), CANCELLING),
    Projected(Projected(RBF(0.1), PROJECTION), CANCELLING_4),
    Projected(Projected(Matern(0.5) + Linear(), CANCELLING), CANCELLING_4),
    Projected(Projected(Cosine(), CANCELLING), [1.0, 2.0, 3.0, 4.0]),
    Projected(OnColumns(Matern(2.5), [0, 2]) * Linear(), CANCELLING_4),
    Projected(OnColumns(RBF(0.3), [3]), [1.0, 2.0, 3.0, 4.0]),
    Projected(OnFeatures(Matern(1.5), doubled), CANCELLING_4),
    Projected(OnFeatures(Matern(1.5) * Linear() + Cosine(), doubled), CANCELLING),
    Projected(Rescaled(RBF(0.3), damping), CANCELLING_4),
    Projected(Rescaled(Linear(), damping), CANCELLING),
    Projected(FromFeatures(doubled), CANCELLING),
    Periodic(6e-5, 1.0),
    Periodic(1e-3, [1.0, 0.1, 7.0, 1e4]),
    *(Matern(nu) for nu in (0.05, 0.3, 0.99, 1.01, 1.9, 3.3, 17.0, 40.0)),
]
HARD_LISTS = [
    SetOf(Linear()),
    SetOf(Polynomial(3, coef0=0.0)),
    SetOf(Projected(Linear(), [[1.0], [-1.0]])),
    Signature(4, time=False),
    Signature(3, length_scale=0.3),
]

# --- points -------------------------------------------------------------------------------------


def orthogonal(X, rng):
    """Rows whose inner products are 0 but for rounding."""
    Q = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    return np.concatenate([Q, X[:2] - (X[:2] @ Q[0])[:, None] * Q[0]])


SCENES = {
    "at the origin": lambda X, rng: X,
    "offset 1e3": lambda X, rng: X + 1e3,
    "offset 1e6": lambda X, rng: X + 1e6 * rng.normal(size=X.shape[1]),
    "close": lambda X, rng: X[:1] + 1e-7 * X,
    "close, offset 1e6": lambda X, rng: 1e6 + 1e-6 * X,
    "opposite": lambda X, rng: np.concatenate([X[:3], -X[:3] * (1 + 1e-9 * X[1:4])]),
    "orthogonal": orthogonal,
    "a pair among far points": lambda X, rng: np.concatenate(
        [100 * X[:1], 100 * X[:1] + X[1:2], 1e4 * X[2:5], -1e4 * X[2:5]]
    ),
    "one point": lambda X, rng: X[:1] + 1e4,
    "tiny": lambda X, rng: 1e-80 * X,
    "from 1 to tiny": lambda X, rng: X * 10.0 ** (-25.0 * np.arange(len(X)))[:, None],
    "huge": lambda X, rng: 1e60 * X,
}


def there_and_back(path, times):
    return np.concatenate([path, path[::-1][1:]] * times)


LISTS = {
    "at the origin": lambda arrays: arrays,
    "offset 1e3": lambda arrays: [a + 1e3 for a in arrays],
    "offset 1e6": lambda arrays: [a + 1e6 for a in arrays],
    "centred": lambda arrays: [a - a.mean(axis=0) for a in arrays],
    "in opposite pairs": lambda arrays: [np.concatenate([a, -a * (1 + 1e-12)]) for a in arrays],
    "there and back": lambda arrays: [there_and_back(10 * a, 2) for a in arrays],
    "long strokes": lambda arrays: [1e3 * np.concatenate([a, a[::-1]]) for a in arrays],
    "tiny": lambda arrays: [1e-70 * a for a in arrays],
    "huge": lambda arrays: [1e30 * a for a in arrays],
}


# --- the law ------------------------------------------------------------------------------------


def refused(error):
    """Points beyond the range of numbers may be refused, in words."""
    assert "overflow" in str(error) or "underflow" in str(error), error


def true_values(kernel, X):
    return [[oracles.value(kernel, x, z) for z in X[: i + 1]] for i, x in enumerate(X)]


def most_of_it(found, true, allowed):
    """The largest error as a share of what is allowed; found is a symmetric matrix."""
    share = 0.0
    for i, row in enumerate(true):
        for j, value in enumerate(row):
            for a, b in {(i, j), (j, i)}:
                error = abs(oracles.mp.mpf(float(found[a, b])) - value)
                share = max(share, float(error / oracles.mp.mpf(float(allowed[a, b]))))
    return share


def stated(kernel, X, diagonal):
    """u rounding(S) l(x) l(z) for all pairs, and what underflow hides."""
    lengths = kernel.layout.lengths(kernel, X, diagonal)
    unit = float(np.finfo(lengths.dtype).eps) / 2
    least = np.sqrt(_omega(lengths, np)).astype(float)
    lengths = np.hypot(lengths.astype(float), least)
    with np.errstate(over="ignore"):
        units = unit * kernel.rounding(kernel.landmarks(X)) * np.outer(lengths, lengths)
    return units + np.outer(least, least)


def check(kernel, X):
    """Values, the diagonal and a map's certificate; what was found, or None where it refuses."""
    try:
        kernel = kernel.bind(X)
        K, diagonal = kernel(X), kernel.diag(X)
    except ValueError as error:
        return refused(error)
    points = kernel.points(X)
    true, allowed = true_values(kernel, points), stated(kernel, points, diagonal)
    values = most_of_it(K, true, allowed)
    own = most_of_it(np.diag(diagonal), [[0] * i + [r[i]] for i, r in enumerate(true)], allowed)
    assert (values <= 1, own <= 1) == (True, True), (values, own)
    if not kernel.is_psd:
        return None
    try:
        kernel_map = KernelMap(kernel).fit(X)
        Phi = kernel_map.transform(X).astype(np.longdouble)
        certificate = kernel_map.error_bound(X)
    except ValueError as error:
        return refused(error)
    assert most_of_it(Phi @ Phi.T, true, certificate) <= 1
    return None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("kernel", VECTOR_KERNELS + HISTOGRAM_KERNELS + HARD_VECTORS, ids=repr)
def test_vectors(kernel, scene, dtype):
    rng = np.random.default_rng(0)
    X = SCENES[scene](rng.normal(size=(5, N_COLUMNS)), rng)
    X = np.abs(X) if kernel.non_negative_only else X
    X = X[np.abs(X).max(axis=1) < np.finfo(dtype).max].astype(dtype)
    if len(X):
        check(kernel, X)


@pytest.mark.parametrize("scene", LISTS)
@pytest.mark.parametrize("kernel", SET_KERNELS + PATH_KERNELS + HARD_LISTS, ids=repr)
def test_sets_and_paths(kernel, scene):
    rng = np.random.default_rng(0)
    check(kernel, LISTS[scene]([rng.normal(size=(rng.integers(1, 5), 2)) for _ in range(4)]))


@pytest.mark.parametrize("kernel", STRING_KERNELS + GRAPH_KERNELS, ids=repr)
def test_objects(kernel):
    check(kernel, points_for(kernel, n=7))


@pytest.mark.parametrize("scene", [name for name in SCENES if name != "huge"])
@pytest.mark.parametrize("compose", [lambda k: k, lambda k: (k + RBF(0.5)) ** 2, Normalized])
def test_forests(compose, scene):
    """Trees are learned from the points; beyond single precision scikit-learn refuses them."""
    rng = np.random.default_rng(1)
    X = SCENES[scene](rng.normal(size=(7, N_COLUMNS)), rng)
    forest = RandomForestRegressor(7, random_state=0).fit(X, np.arange(len(X)))
    check(compose(ForestKernel(forest)), X)


def test_functions_that_nobody_can_measure_have_bounds_that_say_nothing():
    """A function of two rounded points, and one that has no value beside the points it is given."""
    X = np.random.default_rng(0).normal(size=(6, 4)) + 1e6
    products = Projected(FromFunction(lambda x, z: float(x @ z)), CANCELLING)

    def whole(Z):
        assert np.array_equal(Z, np.rint(Z))
        return Z

    given = Projected(OnFeatures(RBF(0.1), whole), np.eye(4))
    for kernel, points in ((products, X), (given, np.rint(X))):
        kernel_map = KernelMap(kernel).fit(points)
        assert np.isfinite(kernel_map.transform(points)).all()
        assert np.all(kernel_map.error_bound(points) > 1e10 * np.abs(kernel(points)).max())


def test_the_law_can_fail(monkeypatch):
    """A kernel that states too little is found out."""
    monkeypatch.setattr(Linear, "rounding", lambda self, S: 1e-3)
    with pytest.raises(AssertionError):
        check(Linear(), np.random.default_rng(0).normal(size=(5, 4)))


def test_no_kernel_is_left_out():
    here = VECTOR_KERNELS + HISTOGRAM_KERNELS + SET_KERNELS + PATH_KERNELS
    here += STRING_KERNELS + GRAPH_KERNELS
    assert set(EVERY_KERNEL) <= {*here, *GRAM_KERNELS}
    public = [getattr(mercer, name) for name in mercer.__all__]
    classes = {c for c in public if isinstance(c, type) and issubclass(c, Kernel)}
    tried = {type(part) for kernel in here + HARD_VECTORS for part in kernel.parts()}
    assert classes - tried - {GlobalAlignment} == {Kernel, Precomputed, ForestKernel}


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0, 1e3])
def test_the_units_are_those_of_the_mathematics(scale):
    """c_k of MATH.md section 7."""
    S = np.random.default_rng(0).normal(size=(50, 3)) * scale
    h, reach = np.linalg.norm(S - S.mean(axis=0), axis=1).max(), 1 + 3**0.5
    rbf, cubic = RBF(0.7), Polynomial(3)
    assert rbf.rounding(S) == pytest.approx(4 + reach * (0.5 + 1.4 * h**2))
    assert cubic.rounding(S) == 4 + 3 * reach
    larger = max(rbf.rounding(S), cubic.rounding(S))
    assert (rbf + cubic).rounding(S) == larger
    assert (rbf + cubic + 1).rounding(S) == larger + 0.5
    assert (rbf * cubic).rounding(S) == pytest.approx(rbf.rounding(S) + cubic.rounding(S))
    most = 4 + reach * (1.5 + 155 * h / 2.0)
    assert Matern(0.5, 2.0).rounding(S) <= most


SINGLE = [RBF(0.1), RBF(3.0), RBF([0.1, 2.0, 0.5]), RationalQuadratic(0.3, 2.0), Matern(1.5)]
SINGLE += [RationalQuadratic(50.0, 0.5), Matern(2.5, 0.5)]


@pytest.mark.parametrize("kernel", SINGLE, ids=repr)
@pytest.mark.parametrize("spread", [1e-3, 1.0, 30.0, 1e18, 1e60])
def test_sums_in_single_precision(kernel, spread):
    """Off by their bound at most, which says so where numbers are too large for them."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(1500, 3)) * spread + 5
    c = rng.normal(size=700) * 10 ** rng.uniform(-3, 3, size=700)
    some = rng.permutation(1500)[:1200]
    values, errors = kernel.single_sums(X[:700])(X, c, some)
    exact = kernel(X[some], X[:700]) @ c
    is_known = np.isfinite(values) & np.isfinite(errors)
    assert np.all(np.abs(values - exact)[is_known] <= errors[is_known] + 1e-12 * np.abs(c).sum())
    if spread <= 30:
        assert is_known.all()
    if spread <= 1:
        assert np.median(errors) <= 1e-3 * np.abs(c).sum()


@pytest.mark.parametrize("kernel", [Matern(0.5), Linear(), RBF(1.0) + Linear()], ids=repr)
def test_no_sums_in_single_precision_without_a_bound(kernel):
    assert kernel.single_sums(np.ones((3, 2))) is None
