"""scikit-learn's spelling is answered with the one used here, and with the right one."""

import functools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import decomposition, kernel_approximation, kernel_ridge, svm
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import pairwise_kernels

import mercer
from mercer import (
    RBF,
    ClassicalMDS,
    KernelClassifier,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
)

ESTIMATORS = [
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRidge,
    KernelRidgeCV,
    KernelDiscriminant,
    functools.partial(Kernelized, Ridge()),
]
X = np.random.default_rng(0).uniform(0.1, 1.0, size=(12, 4))


def answer(make, *args, **kwargs):
    with pytest.raises(TypeError) as caught:
        make(*args, **kwargs)
    return str(caught.value)


def suggested(text):
    """The kernel that a message says to write."""
    expression = re.search(r"Write \w+\(kernel=(.*?)\)\.(?: |$)", text)[1]
    return eval(expression, {**vars(mercer), "X": X})


@pytest.mark.parametrize("make", ESTIMATORS, ids=lambda e: getattr(e, "__name__", "Kernelized"))
@pytest.mark.parametrize(
    ("name", "loose"),
    [
        ("rbf", {"gamma": 0.3}),
        ("rbf", {"gamma": None}),
        ("rbf", {"degree": 2}),
        ("laplacian", {"gamma": 0.3}),
        ("laplacian", {"coef0": 1}),
        ("poly", {"degree": 2}),
        ("poly", {"degree": 2, "coef0": 0}),
        ("polynomial", {"gamma": 0.5, "coef0": 2.0}),
        ("sigmoid", {"coef0": 0.5}),
        ("sigmoid", {"gamma": 0.5}),
        ("chi2", {"gamma": 0.7}),
        ("chi2", {"degree": 2}),
        ("linear", {"gamma": 0.7}),
        ("cosine", {"gamma": 0.7}),
    ],
    ids=str,
)
def test_the_suggestion_is_what_scikit_learn_computes(make, name, loose):
    """Defaults included: gamma is 1 / n_features there, and coef0 is 1."""
    kernel = suggested(answer(make, kernel=name, **loose))
    given = {k: v for k, v in loose.items() if v is not None}
    there = pairwise_kernels(X, metric=name, filter_params=True, **given)
    assert_allclose(kernel(X), there, rtol=1e-10)


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid"])
def test_the_words_of_svc(name, gamma):
    kernel = suggested(answer(Kernelized, svm.SVC(), name, gamma=gamma, coef0=0.0))
    y = np.arange(12) % 2
    ours = svm.SVC(kernel=lambda A, B: kernel.bind(X)(A, B)).fit(X, y).decision_function(X)
    theirs = svm.SVC(kernel=name, gamma=gamma, coef0=0.0).fit(X, y).decision_function(X)
    assert_allclose(ours, theirs, rtol=1e-6)


def test_what_was_left_out_is_said():
    text = answer(KernelRidge, kernel="poly", degree=2)
    assert "scikit-learn's default: gamma=1 / X.shape[1], coef0=1." in text
    assert "default" not in answer(KernelRidge, kernel="rbf", gamma=2)


@pytest.mark.parametrize("make", [KernelPCA, KernelRidge])
def test_namesakes_are_linear_without_a_kernel(make):
    assert "kernel=Linear()" in answer(make, gamma=0.1)
    assert "Write " + make.__name__ + "(kernel=RBF(gamma=0.1))" in answer(make, gamma=0.1)
    assert "Linear" not in answer(make, kernel="rbf", gamma=0.1)
    assert "Linear" not in answer(KernelMap, gamma=0.1)
    theirs = {"KernelPCA": decomposition.KernelPCA, "KernelRidge": kernel_ridge.KernelRidge}
    assert theirs[make.__name__]().kernel == "linear"
    assert kernel_approximation.Nystroem().kernel == "rbf"


def test_a_kernel_given_by_position_counts():
    assert "Polynomial(degree=2" in answer(KernelPCA, 5, "poly", degree=2)
    assert "Polynomial(degree=2" in answer(KernelMap, "poly", degree=2)
    assert "Polynomial(degree=2" in answer(Kernelized, Ridge(), "poly", degree=2)


def test_kernel_objects_and_functions():
    assert "RBF(gamma=1.0), with its own parameters" in answer(
        KernelRidge, kernel=mercer.RBF(1.0), gamma=0.1
    )

    def common(a, b, power):
        return float(a @ b) ** power

    text = answer(KernelRidge, kernel=common, kernel_params={"power": 2})
    assert "functools.partial(common, power=2)" in text
    assert "Polynomial(degree=4" in answer(KernelPCA, kernel="poly", kernel_params={"degree": 4})
    assert "'matern', with parameters of its own" in answer(KernelPCA, kernel="matern", gamma=1)


@pytest.mark.parametrize(
    ("make", "old", "message"),
    [
        (KernelMap, {"n_components": 300}, "max_rank"),
        (KernelPCA, {"eigen_solver": "arpack"}, "solver='dense'"),
        (KernelPCA, {"fit_inverse_transform": True}, "always works"),
        (KernelRidgeCV, {"alpha": 1.0}, "alphas"),
        (KernelRidgeCV, {"cv": 5}, "GridSearchCV"),
        (KernelDiscriminant, {"solver": "eigen"}, "shrinkage"),
        (ClassicalMDS, {"dissimilarity": "precomputed"}, "metric="),
        (ClassicalMDS, {"n_init": 4}, "eigenproblem"),
    ],
    ids=lambda value: getattr(value, "__name__", "") or str(value),
)
def test_other_arguments(make, old, message):
    assert message in answer(make, **old)


def test_two_unknown_arguments_are_answered_in_order():
    assert "eigen_solver" in answer(KernelPCA, eigen_solver="arpack", copy_X=True)


@pytest.mark.parametrize(
    "make", [*ESTIMATORS, ClassicalMDS, KernelRegressor, KernelClassifier], ids=str
)
def test_unknown_arguments_are_python_errors(make):
    name = getattr(make, "__name__", "Kernelized")
    assert (
        answer(make, banana=1) == f"{name}.__init__() got an unexpected keyword argument 'banana'"
    )


@pytest.mark.parametrize("make", [KernelRegressor, KernelClassifier])
@pytest.mark.parametrize("old", ["gamma", "degree", "coef0", "kernel_params", "alpha"])
def test_learned_models_have_no_kernel_parameters(make, old):
    text = answer(make, **{old: 1.0})
    assert text.startswith(f"{make.__name__} has no argument {old}: the kernel, its parameters")
    assert "KernelRidge" in text
    with pytest.raises(ValueError, match=f"{make.__name__} has no parameter {old}: the kernel"):
        make().set_params(**{old: 1.0})


# --- set_params, as a search over the old names uses it ---------------------------------------


@pytest.mark.parametrize("make", ESTIMATORS, ids=lambda e: getattr(e, "__name__", "Kernelized"))
@pytest.mark.parametrize("old", ["gamma", "degree", "coef0"])
def test_parameters_of_the_kernel_are_set_on_the_kernel(make, old):
    model = make()
    with pytest.raises(ValueError, match=rf"has no parameter {old}: .* Write kernel__{old}="):
        model.set_params(**{old: 2})
    model.set_params(kernel="poly", **{f"kernel__{old}": 2})
    assert getattr(model.kernel, old) == 2


def test_parameters_inside_a_map_are_set_inside_it():
    model = KernelRidge(kernel=KernelMap(RBF(1.0)))
    with pytest.raises(ValueError, match=r"Write kernel__kernel__gamma=\.\.\."):
        model.set_params(gamma=0.1)
    assert model.set_params(kernel__kernel__gamma=0.1).kernel.kernel == RBF(0.1)


def test_other_names_in_set_params():
    with pytest.raises(ValueError, match="KernelMap has no parameter n_components: write max_rank"):
        KernelMap().set_params(n_components=5)
    with pytest.raises(ValueError, match=r"ClassicalMDS has no parameter dissimilarity: .*metric="):
        ClassicalMDS().set_params(dissimilarity="precomputed")
    with pytest.raises(ValueError, match="Invalid parameter 'banana' for estimator KernelMap"):
        KernelMap().set_params(banana=1)


def test_a_class_of_ones_own_decides_for_itself():
    class Mine(KernelRidge):
        def __init__(self, alpha=1.0, kernel="rbf", *, form="auto", gamma=2.0):
            super().__init__(alpha, kernel, form=form)
            self.gamma = gamma

    class Open(KernelRidge):
        def __init__(self, alpha=1.0, **others):
            super().__init__(alpha)
            self.others = others

    assert Mine(gamma=3.0).gamma == 3.0
    assert Open(gamma=3.0).others == {"gamma": 3.0}
    assert "Mine(kernel=" in answer(Mine, kernel="poly", degree=3)
