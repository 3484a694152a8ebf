import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import (
    RBF,
    Constant,
    FromFeatures,
    FromFunction,
    KernelMap,
    KernelPCA,
    KernelRidge,
    Linear,
    Normalized,
    OnColumns,
    OnFeatures,
    Polynomial,
    Precomputed,
    Rescaled,
    Spectrum,
)

X = np.random.default_rng(0).normal(size=(8, 3))
try:
    import polars
except ImportError:  # the machines with a GPU that tests run on need not have it
    FRAMES = [pd.DataFrame]
else:
    FRAMES = [pd.DataFrame, polars.DataFrame]


def frame_of(kind, X=X, names=("a", "b", "c")):
    return kind({name: X[:, i] for i, name in enumerate(names)})


def same_word(a, b):
    return float(a == b)


# --- OnColumns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        [0, 2],
        (0, 2),
        np.array([0, 2]),
        [-3, -1],
        slice(None, None, 2),
        [True, False, True],
        np.array([True, False, True]),
    ],
    ids=repr,
)
def test_columns_are_selected(columns):
    kernel = OnColumns(RBF(0.5), columns)
    assert_array_equal(kernel(X), RBF(0.5)(X[:, [0, 2]]))
    assert kernel.bind(X) == OnColumns(RBF(0.5), [0, 2])
    assert_array_equal(
        kernel(scipy.sparse.csr_array(X)), RBF(0.5)(scipy.sparse.csr_array(X[:, [0, 2]]))
    )


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_are_named(kind):
    kernel = OnColumns(RBF(), ["a", "b"]) * OnColumns(Linear(), ["c"])
    frame = frame_of(kind)
    expected = RBF()(X[:, :2]) * Linear()(X[:, 2:])
    assert_array_equal(kernel(frame), expected)
    assert_array_equal(kernel(frame, frame[:3]), kernel.bind(frame[:3])(X, X[:3]))
    bound = kernel.bind(frame)
    assert_array_equal(bound(X), expected)
    assert bound.left.columns == [0, 1]
    assert_array_equal(kernel.diag(frame), bound.diag(X))


@pytest.mark.parametrize("kind", FRAMES)
def test_nested_groups_keep_their_names(kind):
    kernel = OnColumns(OnColumns(Linear(), ["c"]) + 1, ["b", "c"])
    assert_allclose(kernel(frame_of(kind)), X[:, 2:] @ X[:, 2:].T + 1)


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_of_several_types(kind):
    words = ["red", "blue", "red"]
    frame = kind({"x": [1.0, 2.0, 4.0], "word": words, "n": [1, 2, 3]})
    same = np.array([[float(a == b) for b in words] for a in words])
    numbers = OnColumns(Linear(), ["x", "n"])
    V = np.array([[1.0, 1], [2, 2], [4, 3]])
    assert_allclose(numbers(frame), V @ V.T)
    mixed = numbers * OnColumns(FromFunction(same_word), "word") + 1
    assert_allclose(mixed(frame), (V @ V.T) * same + 1)
    assert_allclose(mixed(frame[:2], frame), ((V @ V.T) * same + 1)[:2])
    assert_allclose(mixed.diag(frame), np.diagonal(mixed(frame)))
    rows = OnColumns(FromFunction(lambda x, z: same_word(x[0], z[0])), ["word"])
    assert_allclose(rows(frame), same)
    with pytest.raises(ValueError, match=r"column .word. holds other values.*OnColumns"):
        (RBF() + numbers)(frame)
    with pytest.raises(ValueError, match="not numbers"):
        OnColumns(RBF(), ["x", "word"])(frame)


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_numeric_types_are_numbers(kind):
    frame = kind({"x": [0.5, 2.0], "flag": [True, False], "n": [1, 2]})
    assert_allclose(Linear()(frame), [[0.25 + 1 + 1, 1 + 0 + 2], [3, 4 + 0 + 4]])


def test_columns_of_texts_beside_numbers():
    kernel = OnColumns(Spectrum(1), 0) * OnColumns(RBF(1.0), [1])
    for X in ([["ab", 1.0], ["b", 2.0]], np.array([["ab", "1"], ["b", "2"]])):
        assert_allclose(kernel(X), [[2, np.exp(-1)], [np.exp(-1), 1]])
    with pytest.raises(TypeError, match=r"X\[1\] is float nan"):
        kernel([["ab", 1.0], [np.nan, 2.0]])
    assert_allclose(Spectrum(1)(np.array([["12"], ["2"]])), [[2, 1], [1, 1]])


def test_nullable_pandas_columns():
    frame = pd.DataFrame({"n": pd.array([1, 2], dtype="Int64"), "x": [0.5, 1.0]})
    assert_allclose(Linear()(frame), [[1.25, 2.5], [2.5, 5.0]])
    frame.loc[0, "n"] = pd.NA
    with pytest.raises(ValueError, match="contains NaN"):
        Linear()(frame)


@pytest.mark.parametrize("kind", FRAMES)
def test_float32_frames_stay_float32(kind):
    assert RBF()(frame_of(kind, X.astype(np.float32))).dtype == np.float32


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (["a"], ValueError, r"names the columns \['a'\], and the data are a plain array"),
        ("a", ValueError, "pass a DataFrame where nothing encodes it, or give positions"),
        ([3], ValueError, r"column \[3\] of data with 3 columns"),
        ([-4], ValueError, r"column \[-4\] of data with 3 columns"),
        ([], ValueError, "at least one column, got none"),
        (slice(5, 9), ValueError, r"slice\(5, 9, None\) selects no column"),
        (slice("a", "b"), TypeError, "slices of positions.*list the names"),
        ([True, False], ValueError, "mask of 2 values for data with 3 columns"),
        ([False] * 3, ValueError, "selects no column"),
        ([0.5], ValueError, r"positions, a mask, a slice or names, got \[0.5\]"),
        ([0, "a"], ValueError, r"got \['a'\]"),
        (None, TypeError, "positions, a mask, a slice or names, got None"),
        (1.5, TypeError, "got 1.5"),
    ],
)
def test_bad_columns_are_named(columns, error, message):
    with pytest.raises(error, match=message):
        OnColumns(RBF(), columns)(X)


@pytest.mark.parametrize("kind", FRAMES)
def test_missing_names_are_listed(kind):
    with pytest.raises(ValueError, match=r"no column named \['z'\] in \['a', 'b', 'c'\]"):
        OnColumns(RBF(), ["a", "z"])(frame_of(kind))


def test_gram_matrices_have_no_columns():
    for wrapped in (
        OnColumns(Precomputed(), [0]),
        Rescaled(Precomputed(), lambda X: X[:, 0]),
        Normalized(Precomputed()),
    ):
        with pytest.raises(ValueError, match="Gram matrix"):
            wrapped(np.eye(3))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda k: OnColumns(k, [0]),
        Normalized,
        lambda k: Rescaled(k, len),
        lambda k: OnFeatures(k, len),
    ],
)
def test_a_word_that_names_no_kernel(wrap):
    with pytest.raises(TypeError, match="kernel must be a kernel, got str 'nonsense'"):
        wrap("nonsense")(X)


# --- OnFeatures, Rescaled, Normalized -------------------------------------------------------------


def test_on_features_composes():
    kernel = OnFeatures(Linear(), np.exp)
    assert_allclose(kernel(X), np.exp(X) @ np.exp(X).T)
    assert kernel.explicit_dim(3) == 3
    assert OnFeatures(Polynomial(2), lambda X: X[:, :1]).explicit_dim(3) == 3
    assert (
        OnFeatures(Linear(), lambda words: [[w.count("a")] for w in words]).explicit_dim(3) is None
    )


def test_on_features_binds_on_the_image():
    kernel = OnFeatures(RBF(), lambda X: 10 * X)
    assert kernel.bind(X).kernel == RBF().bind(10 * X)
    assert_allclose(kernel(X), RBF()(10 * X))


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (
            OnFeatures(Linear(), lambda X: X[:2]),
            ValueError,
            "g returned 2 points for 8; it must keep",
        ),
        (OnFeatures(Linear(), lambda X: X[:, 0]), ValueError, r"g\(X\) has shape \(8,\)"),
        (OnFeatures(Linear(), lambda X: X * np.nan), ValueError, r"g\(X\) contains NaN"),
        (OnFeatures(Linear(), 3), TypeError, r"OnFeatures\(g\) must be a function, got 3"),
        (Rescaled(Linear(), lambda X: X), ValueError, r"one number for each of the 8.*\(8, 3\)"),
        (Rescaled(Linear(), lambda X: X[:, 0] * np.inf), ValueError, "f returned NaN or infinity"),
        (Rescaled(Linear(), lambda X: X[:, 0] * 1j), ValueError, "f returned complex numbers"),
        (Rescaled(Linear(), lambda X: ["a"] * len(X)), ValueError, "f must return numbers"),
        (Rescaled(Linear(), None), TypeError, r"Rescaled\(f\) must be a function, got None"),
    ],
)
def test_functions_are_checked(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda g: Rescaled(RBF(1.0), lambda X: g(X)[:, 0]),
        lambda g: Normalized(Rescaled(RBF(1.0), lambda X: g(X)[:, 0])),
        lambda g: Normalized(OnFeatures(Linear(), g)),
        lambda g: OnFeatures(Linear(), g),
        lambda g: FromFeatures(g),
        lambda g: FromFeatures(g) + RBF(1.0),
    ],
)
def test_overflow_behind_a_function_is_refused(wrap, dtype):
    """It gave coordinates that were NaN, or a map of rank 0 with a bound of 1e-31."""
    huge = np.sqrt(np.finfo(dtype).max) * 10
    kernel, rows = wrap(lambda X: X * huge), X.astype(dtype)
    for work in (kernel, kernel.diag, KernelMap(kernel).fit, KernelPCA(1, kernel).fit):
        with pytest.raises(ValueError, match=r"overflows float\d\d on this data"):
            work(rows)
    with pytest.raises(ValueError, match="overflows"):
        KernelRidge(1.0, kernel).fit(rows, rows[:, 0])


def test_rescaled_accepts_a_column():
    f = lambda X: X[:, 0]  # noqa: E731
    column = Rescaled(RBF(), lambda X: X[:, :1])
    assert_allclose(column(X), Rescaled(RBF(), f)(X))
    assert_allclose(Rescaled(Constant(), f)(X), np.outer(X[:, 0], X[:, 0]))


def test_normalized_is_the_cosine_in_feature_space():
    K = Normalized(Polynomial(3))(X)
    assert_allclose(np.diagonal(K), 1, rtol=1e-14)
    assert (np.abs(K) <= 1 + 1e-14).all()
    F = Polynomial(3).explicit(X)
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    assert_allclose(K, F @ F.T, atol=1e-13)


def test_normalized_zero_rows_stay_at_the_origin():
    Z = np.vstack([X, np.zeros(3)])
    K = Normalized(Linear())(Z)
    assert_array_equal(K[-1], 0)
    assert_array_equal(Normalized(Linear()).diag(Z)[-1], 0)


def test_normalized_refuses_negative_self_similarity():
    with pytest.raises(ValueError, match=r"Normalized needs k\(x, x\) >= 0, and .* reaches -"):
        Normalized(Polynomial(1, coef0=-100.0))(X)


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_must_agree_on_their_columns(kind):
    swapped = frame_of(kind, names=("b", "a", "c"))
    with pytest.raises(ValueError, match=r"X has the columns \['b', 'a', 'c'\] and Y has \['a'"):
        RBF()(swapped, frame_of(kind))


def test_names_are_kernels_inside_wrappers_too():
    X = np.random.default_rng(0).normal(size=(8, 3))
    for named, written in [
        (Normalized("poly"), Normalized(Polynomial())),
        (OnColumns("rbf", [0, 2]), OnColumns(RBF(), [0, 2])),
        (Normalized(OnColumns("rbf", [1])), Normalized(OnColumns(RBF(), [1]))),
    ]:
        assert named == written
        assert repr(named) == repr(written)
        assert clone(named) == written
        np.testing.assert_array_equal(named(X), written(X))
    assert Normalized("rbf").set_params(kernel__gamma=0.3) == Normalized(RBF(0.3))
    with pytest.raises(TypeError, match="kernel must be a kernel, got str 'nonsense'"):
        Normalized("nonsense")(X)


def test_factors_of_sparse_rows_have_the_precision_of_the_rows(rng):
    """In float64 the bound of a map in float32 was a million times too small."""
    X = scipy.sparse.csr_array(rng.normal(size=(30, 3)).astype(np.float32))

    def weights(X):
        return np.where(X.toarray()[:, 0] > 0, 1.0, 0.125)

    model = KernelMap(Rescaled(Constant(362.347), weights))
    Phi = model.fit_transform(X).astype(float)
    error = np.abs(Phi @ Phi.T - 362.347 * np.outer(weights(X), weights(X)))
    assert np.all(error <= model.error_bound(X))


def test_underflow_behind_a_function_of_the_user_is_no_origin(rng):
    """k(x, x) is 0 in single precision and not in double: the cosine would be 0 instead of 1."""
    X = 1e-30 * rng.normal(size=(4, 2))
    kernel = Normalized(Rescaled(Linear(), lambda X: 1 + X[:, 0] ** 2))
    assert_allclose(kernel.diag(X), 1.0)
    with pytest.raises(ValueError, match="underflows to 0 in float32"):
        kernel(X.astype(np.float32))
    # A function that is 0 for some points and not for others is left as it is.
    some = Normalized(Rescaled(Linear(), lambda X: 1.0 * (abs(X[:, 0]) > 1)))
    assert some(np.array([[0.5, 1.0], [2.0, 3.0]], dtype=np.float32)).tolist() == [[0, 0], [0, 1]]
