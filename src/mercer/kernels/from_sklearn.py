"""FromSklearn: kernels of scikit-learn's Gaussian processes."""

from typing import Any

import numpy as np

from ..engine import is_numpy, require
from .kernel import ALL, Kernel
from .types import Array, Tile

GP_KERNELS = "sklearn.gaussian_process.kernels"
# Valid for every number of columns. ExpSineSquared is valid for one alone: it takes the sine of the
# distance over all columns. Others depend on their parameters, and a class defined elsewhere is
# tested on the data.
VALID_THERE = (
    "ConstantKernel",
    "DotProduct",
    "Matern",
    "Product",
    "RBF",
    "RationalQuadratic",
    "Sum",
)


class FromSklearn(Kernel):
    """A scikit-learn Gaussian-process kernel, hyperparameters as they are."""

    in_expressions = False
    takes_sparse = False

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __repr__(self) -> str:
        return f"FromSklearn({self.kernel!r})"

    def _parts(self):
        nested = self.kernel.get_params(deep=True).values()
        return [self.kernel, *(p for p in nested if hasattr(p, "is_stationary"))]

    def check_parameters(self) -> None:
        require(
            not any(type(p).__name__ == "WhiteKernel" for p in self._parts()),
            "WhiteKernel is noise, not similarity (it is zero between different arrays): leave it "
            "out and give its level to KernelRidge(alpha=...).",
        )
        require(
            not any(type(p).__name__ == "CompoundKernel" for p in self._parts()),
            "CompoundKernel holds several kernels side by side and has no single value: add or "
            "multiply them instead.",
        )

    @property
    def is_psd(self) -> bool | None:
        known = all(
            type(p).__module__ == GP_KERNELS and type(p).__name__ in VALID_THERE
            for p in self._parts()
        )
        return True if known and self._no_parameter_is_negative() else None

    def _no_parameter_is_negative(self):
        """ConstantKernel(-1) and RationalQuadratic(alpha=-1) can be made, and are not valid."""
        named = self.kernel.get_params(deep=True).items()
        values = [v for name, v in named if not (name.endswith("bounds") or hasattr(v, "diag"))]
        return all(np.all(np.asarray(v) >= 0) for v in values)

    def against(self, S: Array) -> Tile:
        def tile(rows: Any, columns: slice = ALL):
            return np.asarray(self.kernel(_numpy_only(rows, self), S[columns])).astype(S.dtype)

        return tile

    def diagonal(self, X: Array) -> Array:
        return np.asarray(self.kernel.diag(_numpy_only(X, self))).astype(X.dtype)


def _numpy_only(X: Array, kernel: Kernel) -> Array:
    """X, where it is a dense array of NumPy; else a refusal that names the kernel."""
    if not is_numpy(X):
        raise TypeError(f"{kernel!r} runs on dense NumPy arrays only, got {type(X).__name__}.")
    return X
