"""The base of kernels made of kernels: points, and capabilities that follow from the parts'."""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

from ..engine.arrays import is_symbolic, namespace
from ..engine.checks import require
from ..engine.forms import Form
from .accuracy import above_underflow
from .base import ALL, Kernel
from .capabilities import Slopes
from .monomials import require_dense
from .operands import Operand, Private, operand
from .printing import bracketed
from .spectral import FourierForm
from .types import Array, Tile


def finite_values(kernel, compute, *arguments):
    """Kernel values as `compute` gives them, refused where they overflowed."""
    with np.errstate(over="ignore", invalid="ignore"):  # the error says more
        values = compute(*arguments)
    if is_symbolic(values):
        return values
    numbers = values.data if issparse(values) else values
    xp = namespace(numbers)
    require(
        bool(xp.all(xp.isfinite(numbers))),
        f"{kernel!r} overflows {values.dtype} on this data: some k(x, z) is infinite or NaN. Scale "
        "the data (sklearn.preprocessing.StandardScaler) or what the functions return.",
    )
    return values


def checked_if_needed(kernel: Kernel, compute: Callable[..., Any]) -> Callable[..., Any]:
    """`compute` as it is, or refused where it overflows: `check_range` asks no user's function."""
    if not kernel.runs_user_code:
        return compute
    return lambda *arguments: finite_values(kernel, compute, *arguments)


class Binary(Kernel):
    """Two operands, evaluated on the same points.

    Loops build sums of a thousand terms, one inside the other: whatever is asked of them goes
    through their `terms` or through `fold`, and never calls itself.
    """

    left: Any = Operand()
    right: Any = Operand()
    # The sign between the operands, and what it means for two values, arrays, forms or tensors.
    symbol: ClassVar[str]
    operation: ClassVar[Any]
    in_place: ClassVar[Any]

    def __init__(self, left: Kernel | str, right: Kernel | str) -> None:
        self.left = left
        self.right = right

    @property
    def terms(self) -> list[Kernel]:
        """The operands, those of operands of the same class among them, from left to right."""
        return list(self._operands())

    def _operands(self, checked=True):
        """The terms; without `checked`, private operands stay as they are."""
        todo: list[Any] = [self]
        while todo:
            node = todo.pop()
            if type(node) is not type(self):
                yield node
                continue
            for name in ("right", "left"):
                raw = vars(node)[name]
                keep = isinstance(raw, Private) and not checked
                todo.append(raw if keep else operand(node, name))

    def fold(self, of_term: Callable[[Kernel], Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Combine the terms, two at a time, in the order of the nodes."""
        results: list[Any] = []
        todo: list[Any] = [self]
        while todo:
            node = todo.pop()
            if node is None:
                right = results.pop()
                results.append(combine(results.pop(), right))
            elif type(node) is type(self):
                todo += [None, operand(node, "right"), operand(node, "left")]
            else:
                results.append(of_term(node))
        return results[0]

    # --- copies ---------------------------------------------------------------------------------

    def with_operands(self, change: Callable[[Kernel], Kernel]) -> Self:
        return self.fold(change, type(self))

    def copied(self) -> Self:
        left, right = vars(self)["left"], vars(self)["right"]
        if isinstance(left, Private) and isinstance(right, Private):
            return type(self)(left, right)  # type: ignore[arg-type]
        node: Any = type(self)
        return self.fold(lambda term: term.copied(), lambda l, r: node(Private(l), Private(r)))

    def __sklearn_clone__(self) -> Self:
        return self.fold(clone, type(self))

    def __reduce__(self) -> tuple[Any, ...]:
        def combine(left, right):
            left.extend(right)
            left.append(None)
            return left

        return _from_terms, (type(self), self.fold(lambda term: [term], combine))

    def __getstate__(self) -> dict[str, Any]:
        return {"left": self.left, "right": self.right}

    def __repr__(self) -> str:
        def combine(left, right):
            parts = bracketed(left, self.precedence)
            parts.append(f" {self.symbol} ")
            parts.extend(bracketed(right, self.precedence + 1))
            return parts, self.precedence

        parts, _ = self.fold(lambda term: ([repr(term)], term.precedence), combine)
        return "".join(parts)

    # --- values -----------------------------------------------------------------------------------

    def _of_terms(self, answers):
        """Combine the terms' answers, none of which is kept longer than needed."""
        return combined(answers, self.operation)

    def against(self, S: Array) -> Tile:
        first, *others = [term.against(S) for term in self.terms]

        def tile(rows, columns=ALL):
            t = first(rows, columns)
            for other in others:
                t = self.in_place(t, other(rows, columns))
            return t

        return checked_if_needed(self, tile)

    def diagonal(self, X: Array) -> Array:
        terms = self.terms
        diagonal = checked_if_needed(self, lambda: self._of_terms(t.diagonal(X) for t in terms))
        return diagonal()

    def magnitude(self, X: Array) -> Array:
        return self._of_terms(term.magnitude(X) for term in self.terms)

    @property
    def has_magnitude(self) -> bool:
        return any(term.has_magnitude for term in self.terms)

    def fused_form(self) -> Form | None:
        return self._of_terms(term.fused_form() for term in self.terms)

    @property
    def has_slope(self) -> bool:
        return all(term.has_slope for term in self.terms)

    def slopes(self, Z: Array, S: Array) -> Slopes:
        return self.fold(lambda term: term.slopes(Z, S), self._slopes)

    def _slopes(self, l, r):
        """Those of a node, from its operands'."""
        raise NotImplementedError

    def fourier_form(self) -> FourierForm | None:
        return self._of_terms(term.fourier_form() for term in self.terms)

    # --- what follows from the terms --------------------------------------------------------------

    @property
    def kind(self) -> str:
        kinds = {term.kind for term in self._operands(checked=False)} - {"any"}
        if "gram" in kinds and len(kinds) > 1:
            raise ValueError(
                f"{self!r} mixes Precomputed() with a kernel on data: one sees kernel values, the "
                "other points. Evaluate both kernels to matrices and combine those."
            )
        # The stricter demand wins: what suits vectors suits a function of objects too.
        return next((k for k in ("vectors", "table", "objects", "gram") if k in kinds), "any")

    def check_parameters(self) -> None:
        _ = self.kind
        for term in self._operands(checked=False):
            if not isinstance(term, Private):
                term.check_parameters()

    @property
    def symmetric(self) -> bool | None:
        said = [term.symmetric for term in self.terms]
        return next((s for s in said if not s), True)

    @property
    def runs_user_code(self) -> bool:
        return any(term.runs_user_code for term in self.terms)

    @property
    def one_call_per_value(self) -> bool:
        return any(term.one_call_per_value for term in self.terms)

    @property
    def takes_sparse(self) -> bool:
        return all(term.takes_sparse for term in self.terms)

    @property
    def non_negative_only(self) -> bool:
        return any(term.non_negative_only for term in self.terms)

    @property
    def is_psd(self) -> bool | None:
        return True if all(term.is_psd for term in self.terms) else None

    def landmarks(self, X: Array, indices: Array | None = None) -> Array:
        terms = self.terms
        chosen = next((term for term in terms if term.kind != "any"), terms[-1])
        return chosen.landmarks(X, indices)

    def _maps(self, X):
        """All feature maps: sparse if one of them is made sparse of other points, else dense.

        Sparse rows of X itself would fill up in most maps; there the user decides.
        """
        maps = [term.features(X) for term in self.terms]
        if issparse(X) or not any(map(issparse, maps)):
            return [require_dense(F) for F in maps]
        return [F if issparse(F) else csr_array(F) for F in maps]

    def _dimension(self, left, right):
        """Dimension of the feature space, from those of the operands."""
        raise NotImplementedError

    def explicit_dim(self, n_features: int | None) -> int | None:
        return combined((term.explicit_dim(n_features) for term in self.terms), self._dimension)


def combined(answers: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """As functools.reduce, with None as soon as there is one."""
    rest = iter(answers)
    total = next(rest)
    for answer in rest:
        if total is None or answer is None:
            return None
        total = combine(total, answer)
    return total


def _from_terms(node, items):
    """A tree from its terms in postfix order; None combines the last two."""
    made: list[Any] = []
    for item in items:
        if item is None:
            right = made.pop()
            made.append(node(made.pop(), right))
        else:
            made.append(item)
    return made[0]


class Unary(Kernel):
    """One operand; the points are its points."""

    kernel: Any = Operand()

    def copied(self) -> Self:
        raw = vars(self)["kernel"]
        given = self.get_params(deep=False) | {"kernel": raw}
        if isinstance(raw, Kernel):
            given["kernel"] = Private(raw.copied())
        return type(self)(**given)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"kernel": self.kernel}

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
    def has_magnitude(self) -> bool:
        return self.kernel.has_magnitude

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
        if not isinstance(vars(self)["kernel"], Private):
            operand(self, "kernel").check_parameters()

    def landmarks(self, X: Array, indices: Array | None = None) -> Array:
        return self.kernel.landmarks(X, indices)


class FunctionOf(Unary):
    """A function of the operand's values."""

    def against(self, S: Array) -> Tile:
        inner = self.kernel.against(S)
        return checked_if_needed(self, lambda rows, columns=ALL: self._of(inner(rows, columns)))

    def diagonal(self, X: Array) -> Array:
        return checked_if_needed(self, self._of)(self.kernel.diagonal(X))

    def magnitude(self, X: Array) -> Array:
        return above_underflow(self._of(self.kernel.magnitude(X)))

    def formula(self, t: Array, xp: ModuleType) -> Array:
        """k from values t of the operand, which may be overwritten."""
        raise NotImplementedError(f"{type(self).__name__} must define formula(t, xp).")

    def slope(self, t: Array, xp: ModuleType) -> Array:
        """dk / dt; t is not overwritten."""
        raise NotImplementedError(f"{type(self).__name__} has no slope(t, xp).")

    def _of(self, t):
        return self.formula(t, namespace(t))

    @property
    def has_slope(self) -> bool:
        return self.kernel.has_slope and type(self).slope is not FunctionOf.slope

    def slopes(self, Z: Array, S: Array) -> Slopes:
        inner = self.kernel.slopes(Z, S)
        t, xp = inner.value, namespace(inner.value)
        slope = self.slope(t, xp)
        return inner.chained(self.formula(t, xp), slope)
