import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from every_kernel import doubled, product_matrix
from mercer import (
    RBF,
    Constant,
    FromFeatures,
    FromFunction,
    KernelMap,
    Linear,
    Matern,
    OnFeatures,
    Polynomial,
    Precomputed,
    Rescaled,
)
from mercer.engine.memory import MemoryLimitError
from mercer.kernels import Exp, PolynomialOf, Power, Product, Scaled, Sum

X = np.random.default_rng(0).normal(size=(6, 3))


def first_column(X):
    return X[:, 0]


def test_operators_build_binary_nodes():
    a, b, c = Linear(), RBF(0.5), Matern()
    assert a + b * c == Sum(a, Product(b, c))
    assert (a + b) + c == Sum(Sum(a, b), c) != a + (b + c)
    assert 2 * a == a * 2 == Scaled(a, 2)
    assert a / 4 == Scaled(a, 0.25)
    assert a**2 == Power(a, 2)
    assert a.exp() == Exp(a)
    assert a.polynomial([1, 2]) == PolynomialOf(a, [1, 2])
    assert a + 1 == Sum(a, Constant(1))
    assert 1 + a == Sum(Constant(1), a)


@pytest.mark.parametrize(
    "text",
    [
        "Linear() + RBF() * Matern()",
        "(Linear() + RBF()) * Matern()",
        "Linear() + (RBF() + Matern())",
        "2 * (Linear() + RBF()) ** 3",
        "(2 * Linear()) ** 3",
        "2 * (3 * Linear())",
        "Linear() * (2 * RBF())",
        "(Linear() ** 2) ** 3",
        "(Linear() + RBF()).exp()",
        "(Linear() * 0.5).polynomial([1, 0, 2])",
    ],
)
def test_nesting_survives_printing(text):
    import mercer

    kernel = eval(text, vars(mercer))
    assert eval(repr(kernel), vars(mercer)) == kernel


def test_numbers_of_numpy_count_as_numbers():
    assert np.float64(2.0) * Linear() == 2.0 * Linear()
    assert Linear() * np.float32(0.5) == Linear() * 0.5
    assert Linear() ** np.int64(2) == Linear() ** 2
    assert repr(np.float64(2.0) * Linear()) == "2.0 * Linear()"


@pytest.mark.parametrize("array", [np.ones(3), np.ones((2, 2)), [1.0, 2.0]])
@pytest.mark.parametrize("swap", [False, True])
def test_arrays_are_refused(array, swap):
    with pytest.raises(TypeError, match="cannot multiply a kernel and"):
        _ = array * Linear() if swap else Linear() * array
    with pytest.raises(TypeError, match="cannot add a kernel and"):
        _ = array + Linear() if swap else Linear() + array


def test_torch_tensors_are_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    with pytest.raises(TypeError):
        _ = torch.ones(3) * Linear()
    with pytest.raises(TypeError, match="cannot multiply"):
        _ = Linear() * torch.ones(3)


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        (lambda k: k - k, TypeError, "a difference of kernels need not be a kernel"),
        (lambda k: k - 1, TypeError, "a difference of kernels"),
        (lambda k: 1 - k, TypeError, "a difference of kernels"),
        (lambda k: -k, TypeError, "-k is not a kernel"),
        (lambda k: -2 * k, ValueError, "must be a finite number >= 0, got -2"),
        (lambda k: k * math.nan, ValueError, "must be a finite number >= 0, got nan"),
        (lambda k: k * math.inf, ValueError, "must be a finite number >= 0, got inf"),
        (lambda k: k + -1, ValueError, r"Constant\(c\) must be a finite number >= 0, got -1"),
        (lambda k: k * True, TypeError, "cannot multiply a kernel and bool"),
        (lambda k: k * "2", TypeError, "cannot multiply a kernel and str '2'"),
        (lambda k: k / 0, TypeError, "divided by positive numbers only, got 0"),
        (lambda k: k / k, TypeError, "divided by positive numbers only"),
        (lambda k: 1 / k, TypeError, "a quotient of kernels need not be a kernel"),
        (lambda k: k**0.5, ValueError, "must be an integer >= 0, got 0.5"),
        (lambda k: k**-1, ValueError, "must be an integer >= 0, got -1"),
        (lambda k: k**math.inf, ValueError, "must be an integer >= 0, got inf"),
        (lambda k: k**math.nan, ValueError, "must be an integer >= 0, got nan"),
        (lambda k: k**k, ValueError, "must be an integer >= 0, got Linear"),
        (lambda k: k.polynomial([1, -2]), ValueError, r"finite and >= 0, got \[-2\]"),
        (lambda k: k.polynomial([]), ValueError, "non-empty list of numbers"),
        (lambda k: k.polynomial(3), ValueError, "non-empty list of numbers, got 3"),
        (lambda k: k.polynomial("12"), ValueError, "non-empty list of numbers, got '12'"),
        (lambda k: k + Precomputed(), ValueError, r"mixes Precomputed\(\) with a kernel on data"),
    ],
)
def test_what_need_not_be_a_kernel_is_refused(expression, error, message):
    with pytest.raises(error, match=message):
        expression(Linear())


def test_precomputed_scales_and_multiplies_with_itself():
    K = Linear()(X)
    assert_allclose((3 * Precomputed())(K), 3 * K)
    assert_allclose((Precomputed() * Precomputed() + 1)(K), K**2 + 1)


def test_exp_refuses_to_overflow():
    kernel = (1000.0 * Linear()).exp()
    with pytest.raises(ValueError, match=r"overflows float64: k reaches .*, the limit is 709\.8"):
        kernel(X)
    with pytest.raises(ValueError, match=r"exp\(k\) overflows"):
        kernel.diag(X)
    with pytest.raises(ValueError, match=r"overflows float32: .*, the limit is 88\.7"):
        (100.0 * Linear()).exp()(X.astype(np.float32))


def test_exp_of_hugely_negative_values_is_zero():
    with np.errstate(all="raise", under="ignore"):
        K = (Constant(1.0) + 300.0 * Linear()).exp()(np.array([[1.0], [-1.0]]))
    assert K[0, 1] == pytest.approx(math.exp(-299))


@pytest.mark.parametrize("big", [Linear(), Polynomial(3), Linear() ** 2, Linear() * Linear()])
def test_other_kernels_refuse_to_overflow(big):
    with pytest.raises(ValueError, match=r"overflows float64 on this data.*MaxAbsScaler"):
        big(np.array([[1e200], [1.0]]))


@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(6) + OnFeatures(Constant(1.0), doubled),
        Polynomial(6) * OnFeatures(Constant(1.0), doubled),
        1e38 * OnFeatures(Linear(), doubled),
        Rescaled(Linear(), first_column) ** 3,
        FromFeatures(doubled).polynomial([0.0, 0.0, 0.0, 1.0]),
        Polynomial(6) + FromFunction(product_matrix, vectorized=True),
    ],
    ids=repr,
)
def test_overflow_beside_a_function_is_refused(kernel):
    """`check_range` asks no user's function, and gave up on all that stood beside one: NaN."""
    big = (1e7 * X).astype(np.float32)
    for ask in (
        lambda: kernel(big),
        lambda: kernel(big[:2], big),
        lambda: kernel.diag(big),
        lambda: KernelMap(kernel).fit(big),
        lambda: KernelMap(kernel).fit(X.astype(np.float32)).transform(1e7 * big),
    ):
        with pytest.raises(ValueError, match=r"overflows float32 on this data"):
            ask()
    assert np.isfinite(kernel(X)).all()


def test_own_features_that_overflow_are_refused():
    kernel = Polynomial(6) + OnFeatures(Constant(1.0), doubled)
    with pytest.raises(ValueError, match="overflows"):
        kernel.explicit((1e7 * X).astype(np.float32))
    with pytest.raises(ValueError, match="overflows"):
        Polynomial(6).explicit(1e60 * X)
    with pytest.raises(ValueError, match="overflows"):
        KernelMap(kernel, basis="closed").fit_transform((1e7 * X).astype(np.float32))


def test_is_psd_follows_the_current_parameters():
    kernel = Polynomial(2) + RBF()
    assert kernel.is_psd is True
    kernel.set_params(left__coef0=-1.0)
    assert kernel.is_psd is None
    assert (0 * kernel).is_psd is True


def test_powers_do_not_square_the_operand_twice():
    for p in range(9):
        assert_allclose((Linear() ** p)(X), (X @ X.T) ** p, rtol=1e-12)


def test_integer_powers_may_be_floats():
    assert_array_equal((Linear() ** 2.0)(X), (Linear() ** 2)(X))


def test_set_params_reaches_leaves_one_at_a_time():
    k = RBF(1.0)
    kernel = k * k + k
    kernel.set_params(left__left__gamma=5.0)
    assert kernel == RBF(5.0) * RBF(1.0) + RBF(1.0)
    assert k == RBF(1.0)
    kernel.set_params(right=Linear())
    assert kernel == RBF(5.0) * RBF(1.0) + Linear()


def test_parameters_set_badly_are_reported_at_use():
    kernel = 2 * RBF(1.0)
    kernel.set_params(scale=-1.0)
    with pytest.raises(ValueError, match=r"must be a finite number >= 0, got -1\.0"):
        kernel(X)


def test_an_operand_that_is_no_kernel_is_named():
    with pytest.raises(TypeError, match="left must be a kernel, got str 'nonsense'"):
        (RBF() + RBF()).set_params(left="nonsense")(X)


def test_float32_stays_float32_beside_a_constant():
    x = X.astype(np.float32)
    for kernel in (Linear() + 1, Constant(2) * RBF(), Constant(3), (Linear() + np.float64(1)) ** 2):
        assert kernel(x).dtype == kernel.diag(x).dtype == kernel.explicit(x).dtype == np.float32 \
            if kernel.explicit_dim(3) else kernel(x).dtype == np.float32  # fmt: skip


@pytest.mark.parametrize(
    "kernel", [Polynomial(5), Linear() ** 9, Linear() ** 3 * Linear() ** 3], ids=repr
)
def test_feature_maps_that_do_not_fit_are_refused_at_once(kernel, monkeypatch):
    from mercer.kernels import monomials

    monkeypatch.setattr(monomials, "free_memory", lambda F: 10**6)
    with pytest.raises(MemoryError, match=r"dimensions and would take .* free: use KernelMap"):
        kernel.explicit(np.ones((2, 20)))


# --- feature maps that nobody could compute -------------------------------------------------------


def test_dimensions_of_nested_powers_are_bounded():
    """Exact dimensions would have thousands of digits, and take as long."""
    k = Linear()
    for _ in range(6):
        k = k.polynomial([1.0] * 40)
    assert k.explicit_dim(10) >= 2**61
    assert (k + k).explicit_dim(10) >= 2**61
    assert (k * k).explicit_dim(10) >= 2**61


@pytest.mark.parametrize("d", range(1, 6))
@pytest.mark.parametrize("p", range(7))
def test_dimensions_of_powers_are_exact(d, p):
    assert (Linear() ** p).explicit_dim(d) == math.comb(d + p - 1, p)


@pytest.mark.parametrize(
    "kernel",
    [
        Linear().polynomial([1.0] * 200),
        Linear().polynomial([1.0, 1.0, 1.0]).polynomial([1.0] * 12).polynomial([1.0] * 12),
        Linear() ** 40,
    ],
    ids=lambda k: repr(k)[:40],
)
def test_feature_maps_of_too_many_monomials_are_refused_at_once(kernel):
    rows = 0.1 * X[:, [0, 1, 2] * 4]
    with pytest.raises(MemoryLimitError, match="KernelMap"):
        kernel.explicit(rows)
    assert KernelMap(kernel, basis="auto").fit(rows).rank_ <= len(rows)
