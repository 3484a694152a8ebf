"""Bad input gets an error that names the value and the remedy."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from mercer import RBF, Linear, OnColumns, Polynomial

GOOD = np.ones((3, 2))
KERNELS = [RBF(), Linear(), Polynomial() + RBF(), 2 * OnColumns(RBF(), [0])]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.array([[1.0, np.nan]]), ValueError, "Input X contains NaN.*drop those rows"),
        (np.array([[1.0, np.inf]]), ValueError, "Input X contains infinity"),
        (np.ones((0, 2)), ValueError, r"0 sample\(s\) \(shape=\(0, 2\)\)"),
        (np.ones((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\)"),
        (np.ones(3), ValueError, r"Expected 2D array, got 1D.*reshape\(-1, 1\)"),
        (np.ones((2, 2, 2)), ValueError, "Expected 2D array, got 3D"),
        ([], ValueError, "Expected 2D array, got 1D"),
        (5.0, TypeError, "2-D array of numbers .*got float"),
        ("text", TypeError, "2-D array of numbers .*got str"),
        (None, TypeError, "got NoneType"),
        ([["a", "b"]], ValueError, "X holds strings.*FromFunction"),
        ([[1.0], [1.0, 2.0]], ValueError, "ragged: its rows differ in length"),
        (np.array([[1 + 1j, 2]]), ValueError, "Complex data not supported.*X.real"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), TypeError, "dtype datetime64"),
        (np.ma.masked_array(GOOD, mask=GOOD > 0), TypeError, "masked array; fill it first"),
        (scipy.sparse.csr_array([[np.nan, 1.0]]), ValueError, "contains NaN"),
        (scipy.sparse.csr_array([[1j, 1.0]]), ValueError, "Complex data not supported"),
        (scipy.sparse.csr_array((0, 2)), ValueError, r"0 sample\(s\)"),
        (pd.DataFrame({"a": [1.0, None]}), ValueError, "contains NaN"),
    ],
)
def test_bad_points(kernel, bad, error, message):
    for call in (kernel, kernel.diag, kernel.bind):
        with pytest.raises(error, match=message):
            call(bad)


def test_objects_that_are_no_numbers():
    bad = np.array([[1.0, {}]], dtype=object)
    with pytest.raises(TypeError, match=r"not numbers.*FromFunction"):
        RBF()(bad)
    with pytest.raises(ValueError, match=r"column .word. holds other values"):
        RBF()(pd.DataFrame({"x": [1.0], "word": ["a"]}))


def test_objects_that_are_numbers_are_fine():
    assert Linear()(np.array([[1, 2.5]], dtype=object))[0, 0] == 7.25


def test_the_second_argument_is_called_y():
    with pytest.raises(ValueError, match="Input Y contains NaN"):
        RBF(1.0)(GOOD, GOOD * np.nan)


def test_columns_must_agree():
    with pytest.raises(ValueError, match="X has 2 columns and Y has 3"):
        RBF()(GOOD, np.ones((4, 3)))
    with pytest.raises(ValueError, match="X has 2 columns and Y has 3"):
        RBF()(scipy.sparse.csr_array(GOOD), scipy.sparse.csr_array(np.ones((4, 3))))


@pytest.mark.parametrize("kernel", [RBF(), Linear(), Polynomial() * RBF()], ids=repr)
def test_sparse_and_dense_do_not_mix(kernel):
    sparse = scipy.sparse.csr_array(GOOD)
    for pair in ((GOOD, sparse), (sparse, GOOD)):
        with pytest.raises(TypeError, match=r"one of the two inputs is sparse.*toarray"):
            kernel(*pair)


def test_namespaces_do_not_mix():
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="share one array namespace"):
        RBF()(GOOD, strict.asarray(GOOD))


def test_two_foreign_namespaces_do_not_mix():
    strict = pytest.importorskip("array_api_strict")
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    with pytest.raises(TypeError, match="share one array namespace"):
        RBF()(torch.asarray(GOOD), strict.asarray(GOOD))


def test_torch_input_is_checked_too():
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    with pytest.raises(ValueError, match=r"requires gradients.*detach"):
        RBF()(torch.ones((2, 2), requires_grad=True))
    with pytest.raises(ValueError, match="contains NaN"):
        RBF()(torch.full((2, 2), torch.nan))
    with pytest.raises(ValueError, match="Complex data not supported"):
        RBF()(torch.ones((2, 2), dtype=torch.complex64))
    assert RBF()(torch.ones((2, 2), dtype=torch.int64)).dtype == torch.float64
    assert RBF()(torch.ones((2, 2), dtype=torch.float16)).dtype == torch.float64


@pytest.mark.parametrize(
    ("given", "computed"),
    [("float32", "float32"), ("float64", "float64"), ("float16", "float64"), ("int8", "float64"),
     ("uint64", "float64"), ("bool", "float64"), ("longdouble", "float64"), (">f8", "float64")],
)  # fmt: skip
def test_dtypes(given, computed):
    assert RBF(1.0)(np.ones((2, 2), dtype=given)).dtype == computed


def test_the_wider_of_two_dtypes_counts():
    assert RBF(1.0)(GOOD.astype(np.float32), GOOD).dtype == np.float64


def test_lists_of_lists_are_arrays():
    assert Linear()([[1, 2], [3, 4]]).tolist() == [[5.0, 11.0], [11.0, 25.0]]
