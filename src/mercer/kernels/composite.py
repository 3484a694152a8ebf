"""What kernels made of kernels share: their points, and what follows from what the parts can do."""

from typing import Any

from scipy.sparse import csr_array, issparse

from .base import ALL, Kernel
from .capabilities import NoOnnxForm
from .monomials import require_dense
from .operands import Operand, operand
from .types import Array, Tensor, Tile


class Binary(Kernel):
    """Two operands, evaluated on the same points."""

    left: Any = Operand()
    right: Any = Operand()

    def __init__(self, left: Kernel | str, right: Kernel | str) -> None:
        self.left = left
        self.right = right

    @property
    def kind(self) -> str:
        kinds = {operand(self, "left").kind, operand(self, "right").kind} - {"any"}
        if "gram" in kinds and len(kinds) > 1:
            raise ValueError(
                f"{self!r} mixes Precomputed() with a kernel on data: one sees kernel values, the "
                "other points. Evaluate both kernels to matrices and combine those."
            )
        # The stricter demand wins: what suits vectors suits a function of objects too.
        return next((k for k in ("vectors", "table", "objects", "gram") if k in kinds), "any")

    @property
    def symmetric(self) -> bool | None:
        return self.left.symmetric and self.right.symmetric

    @property
    def runs_user_code(self) -> bool:
        return self.left.runs_user_code or self.right.runs_user_code

    @property
    def one_call_per_value(self) -> bool:
        return self.left.one_call_per_value or self.right.one_call_per_value

    @property
    def takes_sparse(self) -> bool:
        return self.left.takes_sparse and self.right.takes_sparse

    @property
    def non_negative_only(self) -> bool:
        return self.left.non_negative_only or self.right.non_negative_only

    @property
    def is_psd(self) -> bool | None:
        return True if self.left.is_psd and self.right.is_psd else None

    def _maps(self, X):
        """Both feature maps: sparse if one of them is made sparse of other points, else dense.

        Sparse rows of X itself would fill up in most maps; there the user decides.
        """
        F, G = self.left.features(X), self.right.features(X)
        if issparse(X) or not (issparse(F) or issparse(G)):
            return require_dense(F), require_dense(G)
        return (A if issparse(A) else csr_array(A) for A in (F, G))

    def _dimension(self, left, right):
        """Of the feature space, from those of the operands."""
        raise NotImplementedError

    def _forms(self):
        """Those of both operands; None where one has none."""
        forms = self.left.fused_form(), self.right.fused_form()
        return None if None in forms else forms

    def check_parameters(self) -> None:
        _ = self.kind
        self.left.check_parameters()
        self.right.check_parameters()

    def landmarks(self, X: Array, indices: Array | None = None) -> Array:
        operand = self.right if self.left.kind == "any" else self.left
        return operand.landmarks(X, indices)

    def explicit_dim(self, n_features: int | None) -> int | None:
        left, right = self.left.explicit_dim(n_features), self.right.explicit_dim(n_features)
        return None if left is None or right is None else self._dimension(left, right)


class Unary(Kernel):
    """One operand; the points are its points."""

    kernel: Any = Operand()

    @property
    def kind(self) -> str:
        return operand(self, "kernel").kind

    @property
    def symmetric(self) -> bool | None:
        return self.kernel.symmetric

    @property
    def runs_user_code(self) -> bool:
        return self.kernel.runs_user_code

    @property
    def one_call_per_value(self) -> bool:
        return self.kernel.one_call_per_value

    @property
    def takes_sparse(self) -> bool:
        return operand(self, "kernel").takes_sparse

    @property
    def non_negative_only(self) -> bool:
        return operand(self, "kernel").non_negative_only

    @property
    def is_psd(self) -> bool | None:
        return True if self.kernel.is_psd else None

    def check_parameters(self) -> None:
        operand(self, "kernel").check_parameters()

    def landmarks(self, X: Array, indices: Array | None = None) -> Array:
        return self.kernel.landmarks(X, indices)


class FunctionOf(Unary):
    """A function of the operand's values."""

    def against(self, S: Array) -> Tile:
        inner = self.kernel.against(S)
        return lambda rows, columns=ALL: self.of_kernel(inner(rows, columns))

    def diagonal(self, X: Array) -> Array:
        return self.of_kernel(self.kernel.diagonal(X))

    def magnitude(self, X: Array) -> Array:
        return self.of_kernel(self.kernel.magnitude(X))

    def of_kernel(self, t: Array) -> Array:
        """The formula, on values of the operand that may be overwritten."""
        raise NotImplementedError

    def onnx_of_kernel(self, t: Tensor) -> Tensor:
        """The same on a tensor of a graph."""
        raise NoOnnxForm(self, "a graph")

    def onnx_values(self, X: Tensor, S: Array) -> Tensor:
        return self.onnx_of_kernel(self.kernel.onnx_values(X, S))

    def onnx_diagonal(self, X: Tensor) -> Tensor:
        return self.onnx_of_kernel(self.kernel.onnx_diagonal(X))
