"""What holds for every kernel, and for every kernel made of kernels."""

import pickle
from functools import cache

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import every_kernel
import mercer
import oracles
from every_kernel import (
    EVERY_KERNEL,
    GRAM_KERNELS,
    HISTOGRAM_KERNELS,
    N_COLUMNS,
    OBJECT_KERNELS,
    PORTABLE_KERNELS,
    VECTOR_KERNELS,
    points_for,
)
from mercer import (
    RBF,
    Chi2,
    Constant,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    OnColumns,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Rescaled,
    Tanimoto,
    check_mercer,
)
from mercer.engine.arrays import as_numpy, on_device_of

POINT_KERNELS = [k for k in EVERY_KERNEL if k not in GRAM_KERNELS]
EXPLICIT_KERNELS = [k for k in VECTOR_KERNELS if k.explicit_dim(N_COLUMNS) is not None]

every_kernel_law = pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
point_kernel_law = pytest.mark.parametrize("kernel", POINT_KERNELS, ids=repr)


def close(kernel, K, expected, X, Z=None, eps=1e-13):
    """Equal relative to sqrt(k(x, x) k(z, z)), the natural size of a kernel value."""
    size = np.abs(as_numpy(kernel.diag(X)))
    other = size if Z is None else np.abs(as_numpy(kernel.diag(Z)))
    limit = eps * np.sqrt(size[:, None] * other[None, :]) + 1e-300
    assert (np.abs(as_numpy(K) - expected) <= limit).all(), np.max(np.abs(K - expected) / limit)


# --- laws of evaluation ---------------------------------------------------------------------------


@cache
def by_the_oracle(kernel):
    """A kernel bound to points, the points, and its values by the plain formula: slow, and the
    same for every backend."""
    X, Z = points_for(kernel), points_for(kernel, n=7, seed=1)
    bound = kernel.bind(X)
    return bound, X, Z, oracles.matrix(bound, Z, X)


@point_kernel_law
def test_the_formula_is_the_oracle(kernel, there):
    bound, X, Z, expected = by_the_oracle(kernel)
    close(bound, there(bound)(Z, X), expected, Z, X, eps=1e-12)


@every_kernel_law
def test_symmetric_to_the_bit(kernel, there):
    K = there(kernel)(points_for(kernel))
    assert_array_equal(K, K.T)


@every_kernel_law
def test_psd_to_rounding(kernel):
    report = check_mercer(kernel, points_for(kernel))
    assert kernel.is_psd in (True, False, None)
    if kernel.is_psd:
        assert report.min_eigenvalue >= -1e-13 * max(report.max_eigenvalue, 1e-300) * 13


@every_kernel_law
def test_diag_is_the_diagonal(kernel, there):
    X = points_for(kernel)
    assert_allclose(there(kernel).diag(X), np.diagonal(kernel(X)), rtol=1e-13)


@point_kernel_law
def test_one_argument_means_both(kernel, there):
    X = points_for(kernel)
    close(kernel, there(kernel)(X), there(kernel)(X, X), X)


@point_kernel_law
def test_blocks_agree_with_the_whole(kernel, there):
    X = points_for(kernel)
    bound = kernel.bind(X)
    close(bound, there(bound)(X[:4], X[4:]), bound(X)[:4, 4:], X[:4], X[4:])


@point_kernel_law
def test_one_point(kernel):
    X = points_for(kernel)[:1]
    assert kernel(X).shape == (1, 1)
    assert_allclose(kernel(X)[0], kernel.diag(X), rtol=1e-13)


@every_kernel_law
def test_binding_twice_is_binding_once(kernel):
    X = points_for(kernel)
    bound = kernel.bind(X)
    assert bound.bind(X[:5] if kernel not in GRAM_KERNELS else X) == bound
    assert_array_equal(bound(X), kernel(X))


@every_kernel_law
def test_data_are_never_changed(kernel):
    X = points_for(kernel)
    if not isinstance(X, list):
        X = X.copy()
        X.flags.writeable = False
    before = pickle.dumps(X)
    kernel(X)
    kernel.diag(X)
    assert pickle.dumps(X) == before


# --- laws of feature maps -------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", EXPLICIT_KERNELS, ids=repr)
def test_the_feature_map_is_explicit(kernel, there):
    X, Z = points_for(kernel), points_for(kernel, n=6, seed=1)
    bound = kernel.bind(X)
    F, G = there(bound).explicit(X), there(bound).explicit(Z)
    assert F.shape == (len(X), kernel.explicit_dim(N_COLUMNS))
    close(bound, F @ G.T, bound(X, Z), X, Z, eps=1e-12)


@pytest.mark.parametrize("kernel", VECTOR_KERNELS, ids=repr)
def test_explicit_and_explicit_dim_agree_on_whether_there_is_a_map(kernel):
    if kernel in EXPLICIT_KERNELS:
        kernel.explicit(points_for(kernel))
    else:
        with pytest.raises(ValueError, match="no finite feature map of its own"):
            kernel.explicit(points_for(kernel))


NO_MAP = ("FromFunction", "RBF", "Cosine", "GlobalAlignment")


@pytest.mark.parametrize(
    "kernel",
    [k for k in OBJECT_KERNELS if not any(name in repr(k) for name in NO_MAP)],
    ids=repr,
)
def test_kernels_on_objects_have_feature_maps_too(kernel):
    X, Z = points_for(kernel), points_for(kernel, n=6, seed=1)
    F, G = kernel.explicit(X), kernel.explicit(Z)
    product = F @ G.T
    product = product.toarray() if scipy.sparse.issparse(product) else product
    close(kernel, product, kernel(X, Z), X, Z, eps=1e-12)


# --- laws of objects ------------------------------------------------------------------------------

NAMES = {**vars(mercer), **vars(every_kernel)}


@every_kernel_law
def test_repr_evaluates_to_an_equal_kernel(kernel):
    again = eval(repr(kernel), NAMES)
    assert again == kernel
    assert hash(again) == hash(kernel)


@every_kernel_law
def test_clone_is_equal_and_separate(kernel):
    copy = clone(kernel)
    assert copy == kernel
    assert copy is not kernel
    assert not {id(k) for k in _nodes(copy)} & {id(k) for k in _nodes(kernel)}


@every_kernel_law
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickling(kernel, protocol):
    again = pickle.loads(pickle.dumps(kernel, protocol))
    assert again == kernel
    X = points_for(kernel)
    assert_array_equal(again(X), kernel(X))


@every_kernel_law
def test_every_nested_parameter_can_be_set_to_itself(kernel):
    copy = clone(kernel)
    copy.set_params(**copy.get_params())
    assert copy == kernel


@every_kernel_law
def test_different_kernels_differ(kernel):
    assert [other for other in EVERY_KERNEL if other == kernel] == [kernel]
    assert kernel != "rbf"


def _nodes(kernel):
    return [
        kernel,
        *(v for v in kernel.get_params(deep=True).values() if isinstance(v, Kernel)),
    ]


# --- laws on every kind of array ------------------------------------------------------------------


@pytest.mark.parametrize("kernel", PORTABLE_KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_array_namespace(kernel, dtype, xp):
    X = points_for(kernel).astype(dtype)
    Z = points_for(kernel, n=5, seed=1).astype(dtype)
    bound = kernel.bind(X)
    Xp, Zp = xp.asarray(X.copy()), xp.asarray(Z.copy())
    eps = 1e-12 if dtype == "float64" else 3e-5
    for K, expected, left, right in [
        (kernel(Xp), bound(X.astype(float)), X, X),
        (kernel(Zp, Xp), bound(Z.astype(float), X.astype(float)), Z, X),
    ]:
        assert type(K) is type(Xp)
        assert K.dtype == Xp.dtype
        close(bound, K, expected, left, right, eps=eps)
    d = kernel.diag(Xp)
    assert (type(d), d.dtype, d.shape) == (type(Xp), Xp.dtype, (13,))
    if kernel.explicit_dim(N_COLUMNS) is not None:
        F = kernel.explicit(Xp)
        assert (type(F), F.dtype) == (type(Xp), Xp.dtype)


@pytest.mark.parametrize("kernel", VECTOR_KERNELS + HISTOGRAM_KERNELS, ids=repr)
@pytest.mark.parametrize("layout", ["fortran", "strided", "reversed", "transposed"])
def test_every_memory_layout(kernel, layout):
    X = points_for(kernel)
    wide = np.zeros((26, 2 * N_COLUMNS))
    wide[::2, ::2] = X
    same = {
        "fortran": np.asfortranarray(X),
        "strided": wide[::2, ::2],
        "reversed": X[::-1].copy()[::-1],
        "transposed": X.T.copy().T,
    }[layout]
    close(kernel, kernel(same), kernel(X), X)


SPARSE_KERNELS = [
    Linear(),
    Polynomial(2, gamma=[0.1, 0.2, 0.3, 0.4]),
    Cosine(),
    every_kernel.VECTOR_KERNELS[5],
    RBF(),
    RBF("median"),
    RBF([0.1, 0.2, 0.3, 0.4]),
    Matern(0.5),
    RationalQuadratic(),
    Constant(2.0),
    OnColumns(RBF(0.3), [0, 2]) * Linear() + 1,
    Normalized(Polynomial(2)),
    Rescaled(RBF(0.3), lambda X: 1.0 + (np.ravel(abs(X).sum(axis=1)) > 1)),
    Tanimoto(),
]


@pytest.mark.parametrize("kernel", SPARSE_KERNELS, ids=repr)
@pytest.mark.parametrize("container", ["csr_array", "csr_matrix", "csc_array", "coo_array"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_are_dense_rows(kernel, container, dtype):
    dense = points_for(kernel)
    dense[np.abs(dense) < 0.7] = 0
    dense = dense.astype(dtype)
    sparse = getattr(scipy.sparse, container)(dense)
    eps = 1e-12 if dtype == np.float64 else 3e-5
    K = kernel(sparse)
    assert isinstance(K, np.ndarray)
    assert K.dtype == dtype
    close(kernel, K, kernel(dense), dense, eps=eps)
    close(kernel.bind(dense), kernel(sparse[:5] if container[:3] == "csr" else sparse, sparse),
          kernel(dense[:5] if container[:3] == "csr" else dense, dense),
          dense[:5] if container[:3] == "csr" else dense, dense, eps=eps)  # fmt: skip
    assert_allclose(kernel.diag(sparse), kernel.diag(dense), rtol=1e-5 if eps > 1e-9 else 1e-12)
    # Error bounds take the rounding unit from there.
    assert kernel.bind(dense).diagonal(sparse.tocsr()).dtype == dtype


@pytest.mark.parametrize("kernel", [Laplacian(), Periodic(), Chi2()], ids=repr)
def test_other_kernels_say_what_they_need_of_sparse_rows(kernel):
    with pytest.raises(TypeError, match=r"needs dense rows; pass\s+X.toarray\(\)"):
        kernel(scipy.sparse.csr_array(np.eye(3)))


@pytest.mark.parametrize("kernel", [Linear() + 1, Linear() * Linear(), Linear() ** 2], ids=repr)
def test_feature_maps_that_would_fill_up_ask_for_dense_rows(kernel):
    with pytest.raises(TypeError, match=r"would fill the memory: use KernelMap.* X.toarray\(\)"):
        kernel.explicit(scipy.sparse.csr_array(np.eye(3)))


# --- laws of the algebra, over random expressions -------------------------------------------------

number = st.floats(0.1, 2.0).map(lambda x: round(x, 2))
leaf = st.one_of(
    st.just(Linear()),
    st.just(Cosine()),
    st.builds(Polynomial, st.integers(1, 3), number, st.sampled_from([0.0, 0.5, 1.0])),
    st.builds(RBF, st.one_of(number, st.just("scale"), st.just("median"))),
    st.builds(Laplacian, number),
    st.builds(Matern, st.sampled_from([0.5, 1.5, 2.5]), number),
    st.builds(RationalQuadratic, number, number),
    st.builds(Periodic, number, number),
    st.builds(Constant, number),
)
columns = st.lists(st.integers(0, N_COLUMNS - 1), min_size=1, max_size=3, unique=True)


def _grow(children):
    return st.one_of(
        st.builds(lambda a, b: a + b, children, children),
        st.builds(lambda a, b: a * b, children, children),
        st.builds(lambda c, k: c * k, number, children),
        st.builds(lambda k, c: k + c, children, number),
        st.builds(lambda k, p: k**p, children, st.integers(0, 2)),
        st.builds(lambda k, c: k.polynomial(c), children, st.lists(number, min_size=1, max_size=3)),
        st.builds(lambda k: Normalized(k).exp(), children),
        st.builds(Normalized, children),
    )


# Column groups sit on leaves: inside, the positions would count other columns.
grouped = st.one_of(leaf, st.builds(OnColumns, leaf, columns))
expression = st.recursive(grouped, _grow, max_leaves=5)
seeds = st.integers(0, 2**16)


def gaussian(seed, n=9):
    X = np.random.default_rng(seed).normal(size=(n, N_COLUMNS))
    X[-1] = X[0]
    return X


@given(expression, seeds)
def test_expressions_evaluate_to_their_oracle(kernel, seed):
    X, Z = gaussian(seed), gaussian(seed + 1, n=4)
    bound = kernel.bind(X)
    close(bound, bound(Z, X), oracles.matrix(bound, Z, X), Z, X, eps=1e-11)
    close(bound, bound(X), bound(X, X), X, eps=1e-11)


@given(expression, seeds)
def test_expressions_are_valid_by_construction(kernel, seed):
    X = gaussian(seed)
    assert kernel.is_psd is True
    K = kernel(X)
    assert_array_equal(K, K.T)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-12 * max(values[-1], 1e-300)
    assert_allclose(kernel.diag(X), np.diagonal(K), rtol=1e-11)


@given(expression, seeds)
def test_expressions_carry_their_feature_map(kernel, seed):
    dimension = kernel.explicit_dim(N_COLUMNS)
    if dimension is None or dimension > 20_000:
        return
    X = gaussian(seed)
    bound = kernel.bind(X)
    F = bound.explicit(X)
    assert F.shape == (len(X), dimension)
    close(bound, F @ F.T, bound(X), X, eps=1e-11)


@given(expression)
def test_expressions_print_as_themselves(kernel):
    again = eval(repr(kernel), NAMES)
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert repr(again) == repr(kernel)
    assert clone(kernel) == kernel == pickle.loads(pickle.dumps(kernel))


@given(expression, expression, expression, seeds)
def test_distributivity_and_nesting(a, b, c, seed):
    X = gaussian(seed)
    A, B, C = a(X), b(X), c(X)
    assert_allclose((a + b * c)(X), A + B * C, rtol=1e-13)
    assert_allclose(((a + b) * c)(X), (A + B) * C, rtol=1e-13)
    close((a + b) * c, ((a + b) * c)(X), (a * c + b * c)(X), X)
    close((a + b) ** 2, ((a + b) ** 2)(X), (a**2 + 2 * a * b + b**2)(X), X)


@given(expression, expression)
def test_operators_copy_their_operands(a, b):
    parts = [a * a + a, a + b, 2 * a, a**2, a.exp(), a.polynomial([1, 1])]
    for kernel in parts:
        nodes = [id(node) for node in _all_nodes(kernel)]
        assert len(nodes) == len(set(nodes))
        assert not set(nodes) & {id(node) for node in _all_nodes(a) + _all_nodes(b)}


def _all_nodes(kernel):
    children = [v for v in kernel.get_params(deep=False).values() if isinstance(v, Kernel)]
    return [kernel, *(node for child in children for node in _all_nodes(child))]


@given(expression, seeds)
def test_expressions_on_torch(kernel, seed):
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    X = gaussian(seed)
    bound = kernel.bind(X)
    close(bound, as_numpy(bound(torch.asarray(X))), bound(X), X, eps=1e-11)


def test_device_helper_takes_read_only_arrays(xp):
    values = np.broadcast_to(np.array([2.0]), (3,))
    moved = on_device_of(values, xp.zeros((1, 1), dtype=xp.float64))
    assert_array_equal(as_numpy(moved), values)
