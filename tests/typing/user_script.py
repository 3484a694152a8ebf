"""What a user writes, checked in strict mode by `make lint`; run by tests/test_typing.py too."""

import numpy as np

from mercer import (
    RBF,
    Constant,
    FromFunction,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    OnColumns,
    Periodic,
    Polynomial,
    Precomputed,
    check_mercer,
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
