"""What a user writes, checked in strict mode by `make lint`; run by tests/test_typing.py too."""

import numpy as np

from mercer import (
    RBF,
    Constant,
    DriftDetector,
    FromFunction,
    KernelClassifier,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
    KernelSVC,
    Laplacian,
    LearnedKernel,
    Linear,
    Matern,
    MercerReport,
    Normalized,
    OnColumns,
    Periodic,
    Polynomial,
    Precomputed,
    RKHSFunction,
    TableEncoder,
    TestResult,
    check_mercer,
    two_sample_test,
)
from mercer.kernels import Kernel, as_kernel


def common_letters(a: str, b: str) -> float:
    return float(len(set(a) & set(b)))


X = np.random.default_rng(0).normal(size=(20, 3))

numbers: list[Kernel] = [RBF(gamma=0.1), RBF(gamma="scale"), RBF(gamma=[0.1, 0.2, 0.3]), RBF()]
others: list[Kernel] = [Laplacian("median"), Matern(2.5, length_scale=[1.0, 2.0, 3.0]), Periodic()]
kernel: Kernel = 2 * RBF(0.5) + Linear() * Polynomial(degree=2, coef0=1.0) + 1
kernel = (kernel**2 + Constant(1.0)).polynomial([1.0, 0.5]) / 2
kernel = Normalized(kernel) + OnColumns(RBF(0.1), [0, 1]) + OnColumns("rbf", 2)

K: np.ndarray = kernel(X)
cross: np.ndarray = kernel(X, X[:5])
diagonal: np.ndarray = kernel.diag(X)
from_lists: np.ndarray = RBF(1.0)([[0.0, 1.0], [1.0, 0.0]])
bound: RBF = RBF("scale").bind(X)
valid: bool | None = kernel.is_psd
dimension: int | None = Polynomial(2).explicit_dim(3)
coordinates: np.ndarray = Polynomial(2).explicit(X)
words: np.ndarray = FromFunction(common_letters)(["night", "light"])
named: Kernel = as_kernel("rbf")
verdict: str = check_mercer(kernel, X).verdict
refuted: bool = check_mercer(Precomputed(), [[1.0, 2.0], [2.0, 1.0]]).psd
changed: RBF = RBF().set_params(gamma=0.3)
parameters: dict[str, object] = kernel.get_params()

print(K.shape, cross.shape, diagonal.shape, verdict, valid, dimension, refuted)

# What fits return, what they learn, and the types of answers.
y = X[:, 0]
kernel_map: KernelMap = KernelMap(kernel, basis="eigen", tol=1e-6).fit(X)
rank: int = kernel_map.rank_ + kernel_map.n_features_in_
error: float = kernel_map.max_residual_
f: RKHSFunction = kernel_map.function(np.ones(kernel_map.rank_))
ridge = KernelRidge(0.1, "rbf").fit(X, y, sample_weight=np.ones(20))
values, std = ridge.predict(X, return_std=True)
alpha: float = KernelRidgeCV([0.1, 1.0]).fit(X, y).alpha_
certain: np.ndarray = KernelSVC(C=1.0).fit(X, y > 0).certain(X)
low, high = KernelRegressor("rbf", n_rounds=0).fit(X, y).predict_interval(X)
learned: LearnedKernel = KernelClassifier("rbf", n_rounds=0).fit(X, y > 0).learn_report_
mapped: np.ndarray = Kernelized(KernelPCA(2)).fit(X).transform(X)
notes: list[str] = TableEncoder(scale="unit").fit(X).notes()
outcome: TestResult = two_sample_test(X, X + 1, random_state=0)
drift: float = DriftDetector(random_state=0).fit(X).p_value(X)
report: MercerReport = check_mercer(kernel, X)
