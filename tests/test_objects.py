"""Kernels on objects through the library: sparse maps, models, files, comparisons, expressions."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from every_kernel import PATH_KERNELS, random_graph
from mercer import (
    RBF,
    GlobalAlignment,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelRidge,
    Linear,
    Normalized,
    OnColumns,
    SetOf,
    Signature,
    Spectrum,
    Tanimoto,
    WeisfeilerLehman,
    check_mercer,
    compare_kernels,
    load,
    save,
)
from mercer.engine.memory import MemoryLimitError
from mercer.kernels.expressions import parse_kernel


@pytest.fixture
def dna(rng):
    X = ["".join(rng.choice(list("ACGT"), size=rng.integers(15, 40))) for _ in range(60)]
    return X, np.array(["AC" in x[:10] for x in X])


SPARSE = [
    Spectrum(5),
    Spectrum(3, alphabet="ACGT"),
    Normalized(Spectrum(4)),
    Spectrum(range(2, 5)) + 2 * Spectrum(3, gaps=2),
    Spectrum(1) * Spectrum(3),
    Spectrum(2) + 1,
]


@pytest.mark.parametrize("kernel", SPARSE, ids=repr)
def test_closed_maps_stay_sparse_and_are_exact(kernel, dna):
    X, _ = dna
    own = KernelMap(kernel, basis="closed")
    Phi = own.fit_transform(X[:40])
    assert scipy.sparse.issparse(Phi)
    assert Phi.shape == (40, own.rank_)
    assert Phi.indices.dtype == np.int32
    new = own.transform(X[40:])
    assert_allclose((Phi @ new.T).toarray(), kernel(X[:40], X[40:]), rtol=1e-13)
    assert_array_equal(own.transform(X[:40]).toarray(), Phi.toarray())
    assert own.max_residual_ == 0
    assert own.residual(X[:40]).max() <= 1e-13 * kernel.diag(X[:40]).max()
    # What new points have in columns of their own is their residual, and the bound knows it.
    missing = np.abs((new @ new.T).toarray() - kernel(X[40:]))
    assert (missing <= own.error_bound(X[40:])).all()
    assert_allclose(own.residual(X[40:]), np.diagonal(missing), atol=1e-12)


def test_the_residual_column_completes_the_length(dna):
    X, _ = dna
    own = KernelMap(Spectrum(5), basis="closed", append_residual=True).fit(X[:40])
    Phi = own.transform(X)
    assert scipy.sparse.issparse(Phi)
    assert_allclose(np.asarray(Phi.power(2).sum(axis=1)).ravel(), Spectrum(5).diag(X), rtol=1e-13)


def test_centring_fills_the_coordinates_where_they_fit(dna):
    X, _ = dna
    Phi = KernelMap(Spectrum(3), basis="closed", center=True).fit_transform(X)
    assert isinstance(Phi, np.ndarray)
    assert_allclose(Phi.mean(axis=0), 0, atol=1e-12)
    with pytest.raises(MemoryLimitError, match="centring fills the sparse coordinates"):
        KernelMap(Spectrum(3), basis="closed", center=True, memory_limit="20kB").fit(X)
    with pytest.raises(MemoryLimitError, match="memory_limit allows 20 kB"):
        KernelMap(Spectrum(3), basis="closed", memory_limit="20kB").fit(X)


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(max_iter=1000), LinearSVC(), SVC(kernel="linear"), Ridge()]
)
def test_linear_models_on_sparse_coordinates_are_kernel_models(estimator, dna):
    X, y = dna
    y = y.astype(float) if isinstance(estimator, Ridge) else y
    own = Kernelized(estimator, KernelMap(Spectrum(4), basis="closed")).fit(X[:40], y[:40])
    assert own.estimator_.n_features_in_ == own.kernel_map_.rank_
    other = Kernelized(estimator, Spectrum(4)).fit(X[:40], y[:40])
    if isinstance(estimator, LinearSVC):  # its penalty on the intercept is the same in both bases
        assert_array_equal(own.predict(X[40:]), other.predict(X[40:]))
    else:
        name = "predict" if isinstance(estimator, Ridge) else "decision_function"
        assert_allclose(getattr(own, name)(X), getattr(other, name)(X), atol=2e-3)


@pytest.mark.parametrize("method", [KernelPCA(2), KernelRidge(), KernelDiscriminant()], ids=repr)
def test_other_methods_take_the_same_map(method, dna):
    X, y = dna
    own = method.set_params(kernel=KernelMap(Spectrum(3), basis="closed")).fit(X[:40], y[:40])
    results = []
    for kernel in (KernelMap(Spectrum(3), basis="closed"), Spectrum(3)):
        own = type(method)(**method.get_params(deep=False) | {"kernel": kernel}).fit(X[:40], y[:40])
        results.append(own.transform(X) if hasattr(own, "transform") else own.predict(X))
    assert_allclose(np.abs(results[0]), np.abs(results[1]), atol=1e-9)


def test_pipelines_searches_and_folds(dna):
    X, y = dna
    pipe = make_pipeline(KernelMap(Spectrum(2), basis="closed"), LogisticRegression(max_iter=1000))
    grid = GridSearchCV(pipe, {"kernelmap__kernel__length": [1, 2, [1, 2]]}, cv=3).fit(X, y)
    assert grid.best_params_["kernelmap__kernel__length"] in (1, 2, [1, 2])
    assert len(cross_val_score(pipe, X, y, cv=3)) == 3


# --- files, comparisons, text ---------------------------------------------------------------------


def examples(rng):
    graphs = [random_graph(rng) for _ in range(24)]
    arrays = [rng.normal(size=(rng.integers(1, 6), 2)) for _ in range(24)]
    return {
        Spectrum(2): ["".join(rng.choice(list("abc"), size=9)) for _ in range(24)],
        WeisfeilerLehman(2): graphs,
        SetOf(RBF(0.5)): arrays,
        Signature(2): arrays,
        **{k: arrays for k in PATH_KERNELS if isinstance(k, GlobalAlignment)},
        Tanimoto(): rng.integers(0, 3, size=(24, 7)).astype(float),
    }


def test_models_on_objects_go_through_files(rng, tmp_path):
    for kernel, X in examples(rng).items():
        has_map = kernel.explicit_dim(2) is not None
        for basis in ["cholesky", "closed"] if has_map else ["cholesky"]:
            model = KernelMap(kernel, basis=basis).fit(X)
            save(model, tmp_path / "map.mercer")
            again = load(tmp_path / "map.mercer")
            assert again.kernel_ == kernel
            difference = model.transform(X) - again.transform(X)
            assert abs(difference).max() == 0


def test_checks_and_comparisons_on_objects(rng):
    y = np.arange(24) % 2
    for kernel, X in examples(rng).items():
        assert check_mercer(kernel, X).verdict == "valid by construction; the data agree"
        comparison = compare_kernels(X, y, [kernel, Normalized(kernel)], cv=2, embeddings=[])
        assert {space.validity for space in comparison.spaces} == {"by construction"}


@pytest.mark.parametrize(
    "text",
    [
        "Spectrum(3)",
        "Spectrum(length=[1, 2], gaps=1) + 0.5 * Spectrum(2, alphabet='ACGT')",
        "Normalized(WeisfeilerLehman(5, node_label='element'))",
        "OnColumns(WeisfeilerLehman(3), 'molecule') * OnColumns(RBF(0.1), ['weight'])",
        "SetOf(RBF(0.5))",
        "SetOf('rbf')",
        "Tanimoto() ** 2",
        "Signature(2, length_scale=[1.0, 2.0])",
        "ShortestPaths()",
        "GlobalAlignment(gamma=[0.5, 2.0])",
    ],
)
def test_kernels_on_objects_from_text(text):
    kernel = parse_kernel(text)
    assert parse_kernel(repr(kernel)) == kernel


def test_a_column_of_texts_in_a_frame(dna):
    X, y = dna
    frame = pd.DataFrame({"sequence": X, "weight": np.arange(60.0)})
    kernel = OnColumns(Spectrum(3), "sequence") + OnColumns(Linear(), ["weight"])
    own = KernelMap(kernel, basis="closed").fit(frame)
    assert own.rank_ == KernelMap(Spectrum(3), basis="closed").fit(X).rank_ + 1
    Phi = own.transform(frame)
    assert_allclose((Phi @ Phi.T).toarray(), kernel(frame), rtol=1e-13)
    assert Kernelized(LinearSVC(), Spectrum(2)).fit(frame[["sequence"]], y).score(
        frame[["sequence"]], y
    ) == Kernelized(LinearSVC(), Spectrum(2)).fit(X, y).score(X, y)
