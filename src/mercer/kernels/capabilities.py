"""Capabilities of kernels, said on the class: the rest of the library asks, and lists none."""

from typing import TYPE_CHECKING, Any, ClassVar

from .types import Array, Tensor

if TYPE_CHECKING:
    from .base import Kernel

# Kernels by the names that stand for them; every class adds its own.
NAMED: dict[str, type[Any]] = {}


class NoOnnxForm(ValueError):
    """A kernel, perhaps deep inside another, has no form in ONNX operators."""

    def __init__(self, kernel: Any, what: str) -> None:
        self.kernel, self.what = kernel, what
        super().__init__(f"{type(kernel).__name__} cannot be written as {what} of ONNX operators.")


class Capabilities:
    """Declarations with their defaults. A kernel made of kernels asks its operands."""

    # Names that stand for the kernel with its defaults, as scikit-learn writes them: "rbf".
    sklearn_names: ClassVar[tuple[str, ...]] = ()
    # Whether plain text can describe it (expressions.py): not if it takes functions, nor if it is
    # written with an operator.
    in_expressions: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in vars(cls).get("sklearn_names", ()):
            owner = NAMED.setdefault(name, cls)
            # The same class again is one that a notebook or a reload defined anew.
            if (owner.__module__, owner.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ValueError(f"{cls.__name__}: the name {name!r} belongs to {owner.__name__}.")
            NAMED[name] = cls

    @property
    def takes_sparse(self) -> bool:
        """Whether rows may be sparse."""
        return True

    @property
    def non_negative_only(self) -> bool:
        """Whether values below zero are refused: counts, shares."""
        return False

    @property
    def is_linear(self) -> bool:
        """Whether images are a linear function of points: then pre-images are the same sums."""
        return False

    def slope(self) -> "Kernel | None":
        """-dk/d(d^2) up to a factor, for a smooth kernel of the Euclidean distance d; else None.

        It is a kernel of d again.
        """
        return None

    # --- the formula in ONNX operators, on the tensors of export/onnx/graph.py --------------------

    def onnx_values(self, X: Tensor, S: Array) -> Tensor:
        """k(X, S) for rows X of the graph and fixed points S."""
        raise NoOnnxForm(self, "a graph")

    def onnx_diagonal(self, X: Tensor) -> Tensor:
        """k(x, x) as a column."""
        raise NoOnnxForm(self, "a graph with k(x, x)")

    def onnx_features(self, X: Tensor) -> Tensor:
        """The kernel's own finite feature map."""
        raise NoOnnxForm(self, "a finite feature map")
