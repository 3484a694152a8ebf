"""What kernels say about themselves is true, and reaches those who ask."""

import numpy as np
import pytest
import scipy.sparse

from every_kernel import HISTOGRAM_KERNELS, VECTOR_KERNELS, points_for
from mercer import (
    RBF,
    Chi2,
    Intersection,
    KernelMap,
    Laplacian,
    Linear,
    OnColumns,
    OnFeatures,
    Tanimoto,
)
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.capabilities import NAMED

KERNELS = VECTOR_KERNELS + HISTOGRAM_KERNELS


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sparse_rows_are_taken_or_refused_as_declared(kernel):
    X = points_for(kernel)
    if kernel.runs_user_code:
        pytest.skip("what the user's function takes is not known")
    sparse = scipy.sparse.csr_array(X)
    if kernel.takes_sparse:
        np.testing.assert_allclose(kernel(sparse), kernel(X), atol=1e-10)
    else:
        with pytest.raises(TypeError, match="dense"):
            kernel(sparse)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_negative_values_are_refused_as_declared(kernel):
    X = -np.abs(points_for(kernel)) - 1.0
    if not kernel.non_negative_only:
        assert np.all(np.isfinite(kernel(X)))
    else:
        with pytest.raises(ValueError, match="Negative values in data"):
            kernel(X)


@pytest.mark.parametrize("kernel", [Chi2(), Intersection(), Tanimoto(), 2 * Chi2() + RBF()])
def test_estimators_say_what_their_kernel_says(kernel):
    tags = KernelMap(kernel).__sklearn_tags__().input_tags
    assert tags.positive_only
    assert tags.sparse == (kernel == Tanimoto())


def test_parts_decide_for_the_whole():
    assert (RBF() * OnColumns(Linear(), [0])).takes_sparse
    assert not (RBF() * OnColumns(Laplacian(), [0])).takes_sparse
    assert not (RBF() + Linear()).non_negative_only
    assert not OnFeatures(Chi2(), np.abs).non_negative_only


def test_an_operand_that_is_not_a_kernel_is_left_to_fit():
    tags = KernelMap(OnColumns("unknown", [0])).__sklearn_tags__()
    assert tags.input_tags.sparse


def test_a_name_belongs_to_one_kernel():
    assert {name: type(as_kernel(name)) for name in NAMED} == NAMED
    with pytest.raises(ValueError, match="Mine: the name 'rbf' belongs to RBF"):

        class Mine(Kernel):
            sklearn_names = ("rbf",)

    assert NAMED["rbf"] is RBF
