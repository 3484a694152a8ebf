"""The base of kernels made of kernels: points, and capabilities that follow from the parts'."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

from scipy.sparse import csr_array, issparse

from ..engine import Form, namespace, short
from .capabilities import NAMED, OfOneNumber, Slopes, above_underflow
from .kernel import ALL, Kernel
from .monomials import require_dense
from .parametrized import printed, printed_in
from .spectral import FourierForm
from .types import Array, Tile


def _checked_if_needed(kernel: Kernel, compute: Callable[..., Any]) -> Callable[..., Any]:
    """`compute` as it is, or refused where it overflows: `check_range` asks no user's function."""
    if not kernel.runs_user_code:
        return compute
    return lambda *arguments: kernel.finite(compute, *arguments)


class _Operand:
    """A kernel that a node is built on. A name becomes its kernel as it is set, so that nothing
    else has to know of names; what is not a kernel is kept, and refused when used."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, owner: Any = None) -> Any:
        if node is None:
            return self
        value = vars(node).get(self.name)
        if not isinstance(value, Kernel):
            raise TypeError(
                f"{type(node).__name__}: {self.name} must be a kernel, got {type(value).__name__} "
                f"{short(value)}; as_kernel makes one from a name or a function."
            )
        return value

    def __set__(self, node: Any, value: Any) -> None:
        known = isinstance(value, str) and value.lower() in NAMED
        vars(node)[self.name] = NAMED[value.lower()]() if known else value


def asked(name: str, combine: Callable[[Any], Any]) -> Any:
    """A property that follows from what all operands say."""
    return property(lambda self: combine(getattr(part, name) for part in self._terms))


class Composite(Kernel):
    """A kernel made of kernels on the same points: its capabilities follow from theirs."""

    # Whether it looks at points itself, which a Gram matrix does not have.
    _needs_points: ClassVar[bool] = False

    @property
    def _terms(self) -> list[Kernel]:
        """The kernels that it is made of."""
        raise NotImplementedError(f"{type(self).__name__} must define terms.")

    symmetric = asked("symmetric", lambda said: next((s for s in said if not s), True))
    runs_user_code = asked("runs_user_code", any)
    one_call_per_value = asked("one_call_per_value", any)
    has_magnitude = asked("has_magnitude", any)
    takes_sparse = asked("takes_sparse", all)
    non_negative_only = asked("non_negative_only", any)
    is_psd = asked("is_psd", lambda said: True if all(said) else None)

    @property
    def kind(self) -> str:
        kinds = {term.kind for term in self._terms} - {"any"}
        if "gram" in kinds and len(kinds) > 1:
            raise ValueError(
                f"{self!r} mixes Precomputed() with a kernel on data: one sees kernel values, the "
                "other points. Evaluate both kernels to matrices and combine those."
            )
        # The stricter demand wins: what suits vectors suits a function of objects too.
        return next((k for k in ("vectors", "table", "objects", "gram") if k in kinds), "any")

    def check_parameters(self) -> None:
        super().check_parameters()
        _ = self.kind
        for term in self._terms:
            term.check_parameters()
            if self._needs_points:
                term.layout.require_data(
                    f"{type(self).__name__}({term!r}) has no meaning: it needs points, and a Gram "
                    "matrix has none. Change the matrix itself."
                )

    def landmarks(self, X: Array, indices: Array | None = None) -> Array:
        terms = self._terms
        chosen = next((term for term in terms if term.kind != "any"), terms[-1])
        return chosen.landmarks(X, indices)


class Binary(Composite):
    """Two operands, evaluated on the same points."""

    in_expressions = False  # text has operators
    left: Any = _Operand()
    right: Any = _Operand()
    # The sign between the operands, and what it means for two values, arrays, forms or slopes.
    _symbol: ClassVar[str]
    _operation: ClassVar[Any]
    _in_place: ClassVar[Any]
    _series: ClassVar[Any]  # of Fourier forms
    _dimension: ClassVar[Any]  # of the feature space, from those of the operands

    def __init__(self, left: Kernel | str, right: Kernel | str) -> None:
        self.left = left
        self.right = right

    @property
    def _terms(self) -> list[Kernel]:
        """The operands, those of operands of the same class among them, from left to right."""
        return self._fold(lambda term: [term], operator.add)

    def _fold(self, of_term: Callable[[Kernel], Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Combine the terms, two at a time, in the order of the nodes."""

        def folded(node: Any):
            if type(node) is not type(self):
                return of_term(node)
            return combine(folded(node.left), folded(node.right))

        return folded(self)

    def with_operands(self, change: Callable[[Kernel], Kernel]) -> Self:
        return self._fold(change, type(self))

    def __repr__(self) -> str:
        left = printed_in(self.left, self.precedence)
        return f"{left} {self._symbol} {printed_in(self.right, self.precedence + 1)}"

    def against(self, S: Array) -> Tile:
        first, *others = [term.against(S) for term in self._terms]

        def tile(rows: Any, columns: slice = ALL):
            t = first(rows, columns)
            for other in others:
                t = self._in_place(t, other(rows, columns))
            return t

        return _checked_if_needed(self, tile)

    def diagonal(self, X: Array) -> Array:
        own = (term.diagonal(X) for term in self._terms)
        return _checked_if_needed(self, combined)(own, self._operation)

    def magnitude(self, X: Array) -> Array:
        return combined((term.magnitude(X) for term in self._terms), self._operation)

    def fused_form(self) -> Form | None:
        return combined((term.fused_form() for term in self._terms), self._operation)

    has_slope = asked("has_slope", all)

    def slopes(self, Z: Array, S: Array) -> Slopes:
        return self._fold(lambda term: term.slopes(Z, S), self._operation)

    def fourier_form(self) -> FourierForm | None:
        forms = [term.fourier_form() for term in self._terms]
        return None if None in forms else self._series(forms)

    def _maps(self, X):
        """All feature maps: sparse if one of them is made sparse of other points, else dense.

        Sparse rows of X itself would fill up in most maps; there the user decides.
        """
        maps = [term.features(X) for term in self._terms]
        if issparse(X) or not any(map(issparse, maps)):
            return [require_dense(F) for F in maps]
        return [F if issparse(F) else csr_array(F) for F in maps]

    def explicit_dim(self, n_features: int | None) -> int | None:
        return combined((term.explicit_dim(n_features) for term in self._terms), self._dimension)


def combined(answers: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """As functools.reduce, with None as soon as there is one; none is kept longer than needed."""
    rest = iter(answers)
    total = next(rest)
    for answer in rest:
        if total is None or answer is None:
            return None
        total = combine(total, answer)
    return total


class Unary(Composite):
    """One operand; the points are its points."""

    kernel: Any = _Operand()

    def __init__(self, kernel: Kernel | str) -> None:
        self.kernel = kernel

    @property
    def _terms(self) -> list[Kernel]:
        return [self.kernel]

    def rounding(self, S: Array) -> float:
        return self.kernel.rounding(S)

    def explicit_dim(self, n_features: int | None) -> int | None:
        return self.kernel.explicit_dim(n_features)


class FunctionOf(OfOneNumber, Unary):
    """A formula of the operand's values."""

    in_expressions = False  # text has operators and methods

    def against(self, S: Array) -> Tile:
        inner = self.kernel.against(S)
        return _checked_if_needed(self, lambda rows, columns=ALL: self._of(inner(rows, columns)))

    def diagonal(self, X: Array) -> Array:
        return _checked_if_needed(self, self._of)(self.kernel.diagonal(X))

    def magnitude(self, X: Array) -> Array:
        return above_underflow(self._of(self.kernel.magnitude(X)))

    @property
    def has_slope(self) -> bool:
        return self.kernel.has_slope and self._knows_slope

    def slopes(self, Z: Array, S: Array) -> Slopes:
        inner = self.kernel.slopes(Z, S)
        slope = self.slope(inner.value, namespace(inner.value))
        return inner.inside(self._of(inner.value), slope)


class OnImages(Unary):
    """k(g(x), g(z)): a subclass gives g as `image`."""

    _needs_points = True

    def image(self, X: Array) -> Array:
        """The points that the kernel sees, one for each point."""
        raise NotImplementedError(f"{type(self).__name__} must define image(X).")

    def __repr__(self) -> str:
        given = self.get_params(deep=False)
        first = [given.pop("kernel")] if "kernel" in given else []
        return f"{type(self).__name__}({', '.join(map(printed, [*first, *given.values()]))})"

    is_psd = asked("is_psd", next)
    landmarks = Kernel.landmarks

    def bind_points(self, X: Array, names: list[str] | None, weights: Array | None = None) -> Self:
        self.check_parameters()
        bound = self.kernel.bind_points(self.image(X), None, weights)
        return self.with_parameters(kernel=bound)

    def against(self, S: Array) -> Tile:
        inner = self.kernel.against(self.kernel.landmarks(self.image(S)))
        return _checked_if_needed(self, lambda rows, columns=ALL: inner(self.image(rows), columns))

    def diagonal(self, X: Array) -> Array:
        return _checked_if_needed(self, self.kernel.diagonal)(self.image(X))

    def magnitude(self, X: Array) -> Array:
        return self.kernel.magnitude(self.image(X))

    def features(self, X: Array) -> Array:
        return self.kernel.features(self.image(X))

    def rounding(self, S: Array) -> float:
        return self.kernel.rounding(self.image(S))
