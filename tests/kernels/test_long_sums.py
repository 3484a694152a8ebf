"""Sums and products that loops build, and kernels that were built from one another."""

import copy
import pickle
import sys
from functools import reduce
from operator import add, mul

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import mercer
from mercer import RBF, Constant, KernelMap, Linear, Precomputed, load, save
from mercer.kernels import Product, Sum
from mercer.kernels.kernel import Kernel

X = np.random.default_rng(0).normal(size=(4, 2))
MANY = 200


def scales(n):
    return [RBF(0.1 + i / 7) for i in range(n)]


def swapped(left, right):
    return right + left


def work(function, *arguments):
    """How many functions of Python and of C a call runs."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return calls


THINGS_TO_DO = {
    "repr": repr,
    "hash": hash,
    "equality": lambda kernel: kernel == clone(kernel),
    "validity": lambda kernel: (kernel.is_psd, kernel.is_proven, kernel.kind),
    "parameters": lambda kernel: kernel.get_params(),
    "clone": clone,
    "bind": lambda kernel: kernel.bind(X),
    "evaluate": lambda kernel: kernel(X),
    "map": lambda kernel: KernelMap(kernel, max_rank=1).fit(X[:2]).transform(X[:1]),
    "pickle": lambda kernel: pickle.loads(pickle.dumps(kernel)),
    "copy": copy.deepcopy,
    "one more term": lambda kernel: kernel + Linear(),
}


@pytest.mark.parametrize("what", THINGS_TO_DO)
def test_hundreds_of_terms_are_no_problem(what):
    """From the left and from the right."""
    for combine in (add, swapped):
        THINGS_TO_DO[what](reduce(combine, scales(MANY)))


def test_many_terms(tmp_path):
    kernel = reduce(add, scales(MANY))
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    expected = sum(np.exp(-k.gamma * squares) for k in scales(MANY))
    assert_allclose(kernel(X), expected, rtol=1e-13)
    fitted = KernelMap(kernel).fit(X)
    Phi = fitted.transform(X)
    assert np.all(np.abs(Phi @ Phi.T - expected) <= fitted.error_bound(X))
    save(fitted, tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.transform(X), Phi)
    assert again.kernel == kernel == clone(kernel) == pickle.loads(pickle.dumps(kernel))
    assert hash(again.kernel) == hash(kernel)


def test_many_factors():
    kernel = reduce(mul, [RBF(1 / MANY)] * MANY)
    assert_allclose(kernel(X), RBF(1.0)(X), rtol=1e-10)
    assert clone(kernel) == kernel


def test_a_product_of_sums_is_not_multiplied_out():
    """It would have 2^40 terms."""
    kernel = reduce(mul, [RBF(0.1) + Linear()] * 40)
    assert kernel.fused_form() is None
    assert work(kernel, X) < 100_000


def test_rounding_of_many_terms_is_in_the_certificate():
    """Single precision, and many additions of one sign."""
    x = X.astype(np.float32)
    fitted = KernelMap(reduce(add, scales(MANY))).fit(x)
    squares = ((X[:, None].astype(np.float32) - x[None]).astype(float) ** 2).sum(axis=2)
    expected = sum(np.exp(-k.gamma * squares) for k in scales(MANY))
    Phi = fitted.transform(x).astype(float)
    assert np.all(np.abs(Phi @ Phi.T - expected) <= fitted.error_bound(x))
    assert sum(scales(MANY)).rounding(X) >= MANY / 2


def test_the_sum_of_python_starts_at_zero():
    assert sum([Linear(), RBF(1.0)]) == Constant(0) + Linear() + RBF(1.0)
    assert_allclose(sum([Linear(), RBF(1.0)])(X), (Linear() + RBF(1.0))(X))


def test_nesting_is_kept():
    a, b, c = Linear(), RBF(0.5), RBF(2.0)
    assert a + (b + c) != (a + b) + c
    assert hash(a + (b + c)) != hash((a + b) + c)
    for kernel in (a + (b + c), a + b + c, a * (b * c), a * (b + c) * c, (a + b) * (b + c)):
        assert eval(repr(kernel), vars(mercer)) == kernel
        assert pickle.loads(pickle.dumps(kernel)) == kernel == copy.deepcopy(kernel)
        assert clone(kernel) == kernel


# --- kernels made of one another ------------------------------------------------------------------


def test_a_change_reaches_no_kernel_that_was_built_from_it():
    leaf = RBF(1.0)
    pair = leaf + leaf
    four = pair * pair
    more = four + pair
    before = {name: repr(k) for name, k in {"four": four, "more": more}.items()}
    leaf.gamma = 9.0
    pair.left.gamma = 5.0
    pair.set_params(right__gamma=6.0)
    assert repr(pair) == "RBF(gamma=5.0) + RBF(gamma=6.0)"
    assert before == {"four": repr(four), "more": repr(more)}
    four.left.left.gamma = 3.0
    assert repr(four).count("3.0") == 1
    assert before["more"] == repr(more)


def test_a_part_that_somebody_holds_stays_that_part():
    pair = Linear() + RBF(1.0)
    part = pair.right
    _ = pair + pair, repr(pair), hash(pair), pair.is_psd, pair(X)
    assert pair.right is part
    part.gamma = 2.0
    assert pair == Linear() + RBF(2.0)
    assert_allclose(pair(X), Linear()(X) + RBF(2.0)(X))


@pytest.mark.parametrize("change", [lambda k: k.set_params(left__gamma=-1.0)])
def test_what_was_changed_is_checked_again(change):
    pair = RBF(1.0) + Linear()
    change(pair)
    with pytest.raises(ValueError, match="gamma"):
        _ = pair + Linear()
    with pytest.raises(ValueError, match="gamma"):
        pair(X)


def test_mixed_points_are_found_in_long_sums():
    with pytest.raises(ValueError, match=r"mixes Precomputed\(\) with a kernel on data"):
        _ = sum(scales(50)) + Precomputed()
    with pytest.raises(ValueError, match=r"mixes Precomputed\(\)"):
        Sum(Sum(Linear(), Constant(1.0)), Precomputed())(X)


def test_nodes_made_by_hand_hold_what_they_were_given():
    """As scikit-learn's objects do: only operators copy."""
    leaf = RBF(1.0)
    kernel = Product(leaf, Sum(leaf, "linear"))
    assert kernel.left is leaf is kernel.right.left
    assert isinstance(kernel.right.right, Kernel)
    with pytest.raises(TypeError, match="right must be a kernel, got int 3"):
        _ = Sum(leaf, 3)(X)


def test_parameters_are_set_at_any_depth():
    kernel = reduce(add, scales(MANY))
    deepest = "left__" * (MANY - 1) + "gamma"
    assert kernel.set_params(**{deepest: 7.0, "right__gamma": 8.0}).get_params()[deepest] == 7.0
    assert kernel.right == RBF(8.0)
    with pytest.raises(ValueError, match="Invalid parameter 'width' for estimator RBF"):
        kernel.set_params(**{"left__" * (MANY - 1) + "width": 1.0})


def test_too_many_terms_are_refused_in_words():
    with pytest.raises(ValueError, match="too deep for Python: use fewer terms"):
        reduce(add, scales(1000))
