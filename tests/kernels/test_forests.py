"""ForestKernel: shares of trees, counted one pair at a time; its exact map; what it refuses."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomTreesEmbedding,
)
from sklearn.tree import DecisionTreeRegressor

from mercer import (
    RBF,
    Chunks,
    ForestKernel,
    KernelMap,
    KernelRidge,
    Linear,
    check_mercer,
    load,
    save,
)
from mercer.export.model_files import needed_trust

FORESTS = [
    ExtraTreesRegressor(7, max_depth=3, random_state=0),
    RandomForestClassifier(5, random_state=0),
    RandomTreesEmbedding(4, max_depth=2, random_state=0),
    GradientBoostingClassifier(n_estimators=3, random_state=0),  # three classes: trees in rows
    DecisionTreeRegressor(max_depth=2),
]


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 4))


@pytest.fixture
def y(X):
    return np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])


@pytest.fixture(params=FORESTS, ids=lambda forest: type(forest).__name__)
def kernel(request, X, y):
    return ForestKernel(clone(request.param).fit(X, y))


def shared_leaves(forest, x, z):
    """The share of trees in which two rows fall into the same leaf, tree by tree."""
    trees = np.ravel(getattr(forest, "estimators_", [forest]))
    rows = np.stack([x, z]).astype(np.float32)
    return np.mean([len(set(tree.tree_.apply(rows))) == 1 for tree in trees])


def test_the_share_of_trees(kernel, X, rng):
    Z = rng.normal(size=(9, 4))
    slow = [[shared_leaves(kernel.estimator, z, x) for x in X] for z in Z]
    assert_allclose(kernel(Z, X), slow, rtol=1e-15)
    assert_allclose(kernel.diag(X), 1.0)
    assert check_mercer(kernel, X).psd


def test_leaves_are_its_exact_map(kernel, X, rng):
    Z = rng.normal(size=(9, 4))
    F, G = kernel.explicit(X), kernel.explicit(Z)
    assert scipy.sparse.issparse(F)
    assert F.shape[1] == kernel.explicit_dim(4)
    assert_allclose((G @ F.T).toarray(), kernel(Z, X), atol=1e-15)
    for basis in ("closed", "cholesky"):
        kernel_map = KernelMap(kernel, basis=basis).fit(X)
        Phi, Psi = (kernel_map.transform(points) for points in (X, Z))
        product = Psi @ Phi.T
        product = product.toarray() if scipy.sparse.issparse(product) else product
        assert_allclose(product, kernel(Z, X), atol=1e-12)


def test_a_kernel_like_others(kernel, X, y, rng, tmp_path):
    Z, both = rng.normal(size=(9, 4)), kernel * RBF(0.3) + 0.5 * Linear()
    assert_allclose(both(Z, X), kernel(Z, X) * RBF(0.3)(Z, X) + 0.5 * Z @ X.T)
    assert kernel(X.astype(np.float32)).dtype == np.float32
    model = KernelRidge(0.1, kernel).fit(X, y)
    exact = kernel(Z, X) @ np.linalg.solve(kernel(X) + 0.1 * np.eye(60), y)
    assert_allclose(model.predict(Z), exact, atol=1e-10)
    streamed = KernelRidge(0.1, kernel).fit(Chunks(lambda: np.array_split(X, 4)), y)
    assert_allclose(streamed.predict(Z), exact, atol=1e-8)
    for same in (clone(model).fit(X, y), pickle.loads(pickle.dumps(model))):
        assert_allclose(same.predict(Z), exact, atol=1e-10)


def test_clones_keep_the_forest(kernel, X):
    again = clone(kernel + Linear())
    assert_allclose(again(X), (kernel + Linear())(X))
    assert again.left.estimator is kernel.estimator


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ExtraTreesRegressor(), "this ExtraTreesRegressor is not fitted; call its fit first"),
        (ExtraTreesRegressor, "needs a fitted forest.* got type|needs a fitted forest"),
        (HistGradientBoostingRegressor(), "which has `apply`; got HistGradientBoostingRegressor"),
        (None, "got NoneType"),
    ],
)
def test_what_is_no_forest(estimator, message, X):
    with pytest.raises(ValueError, match=message):
        ForestKernel(estimator)(X)


def test_other_columns_are_refused(kernel, X):
    with pytest.raises(ValueError, match="features"):
        kernel(X[:, :3])


def test_tensors_are_refused(kernel, X):
    torch = pytest.importorskip("torch", reason="pip install torch")
    with pytest.raises(TypeError, match="NumPy arrays and sparse rows, got Tensor"):
        kernel(torch.asarray(X))


def test_a_file_with_a_forest_needs_trust(kernel, X, tmp_path):
    fitted, path = KernelMap(kernel, max_rank=5).fit(X), tmp_path / "model"
    with pytest.warns(UserWarning, match=r"will need load\(..., trusted=\[.*Tree"):
        save(fitted, path)
    with pytest.raises(TypeError, match="trusted"):
        load(path)
    trusted = needed_trust(fitted)
    save(fitted, path, trusted=trusted)
    assert_allclose(load(path, trusted=trusted).transform(X), fitted.transform(X))


def test_columns_have_the_names_that_the_forest_knows(X):
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    kernel = ForestKernel(DecisionTreeRegressor(random_state=0).fit(frame, X[:, 0]))
    assert_allclose(kernel(frame), kernel(X))  # without a warning that names are missing
    with pytest.raises(ValueError, match=r"the forest was fitted on .* in this order"):
        kernel(frame[frame.columns[::-1]])
