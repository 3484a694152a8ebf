"""Kernel: what similarity means, and how kernels are described, compared and combined.

A kernel is a formula with parameters. Subclasses say how the formula is evaluated from rows
against fixed points (``against``) and on the diagonal (``diagonal``); this class owns checks,
binding, equality, printing and the operators of the algebra.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, ClassVar, NoReturn, Self, overload

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ..engine import (
    Domain,
    Form,
    is_array,
    is_integer,
    is_number,
    is_symbolic,
    namespace,
    same_kind,
    short,
    tiles,
)
from . import points as pts
from .capabilities import Capabilities, said
from .gram_rows import DATA, GRAM, DataRows
from .parameters import gamma_from_data, rules_in
from .parametrized import Parametrized, frozen, parameters_of, printed
from .spectral import FourierForm
from .types import Array, Data, Tile

ALL = slice(None)


class Kernel(Parametrized, Capabilities):
    """Measure the similarity k(x, z) of points; the base class of all kernels.

    Kernels combine with ``+``, ``*``, ``**``, multiplication by a number, :meth:`exp` and
    :meth:`polynomial`; every combination of valid kernels is valid again ([KERNELS], ten rules).

    Examples
    --------
    >>> from mercer import RBF, Polynomial
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]
    >>> kernel = RBF("scale").bind(X) + 2 * Polynomial(2).exp().polynomial([0, 1])
    >>> kernel(X).shape, kernel.diag(X).shape, kernel.is_psd
    ((3, 3), (3,), True)
    >>> Polynomial(2).explicit_dim(2), Polynomial(2).explicit(X).shape
    (6, (3, 6))
    """

    # numpy hands `array * kernel` to __rmul__, which refuses it, instead of an object array.
    __array_ufunc__ = None

    def __init_subclass__(cls):
        """Check n_features before a subclass computes its dimension from it."""
        super().__init_subclass__()
        if "explicit_dim" in vars(cls):
            cls.explicit_dim = _of_columns(cls.explicit_dim)  # type: ignore[method-assign]

    # --- what a subclass provides ---------------------------------------------------------------

    kind = said(
        "vectors",
        'The kind of its points: "vectors", "table" (vectors, or columns of several types), '
        '"objects", "gram" (rows of kernel values) or "any".',
    )
    symmetric = said(
        True, "Whether k(x, z) = k(z, x) by its formula; a user's function may break it."
    )
    runs_user_code = said(
        False, "Whether evaluation calls functions of the user, which threads might disturb."
    )
    one_call_per_value = said(
        False, "Whether every value is a call of a user's function: few are then worth waiting for."
    )
    against_checks = said(
        False, "Whether ``against(S)`` refuses by itself whatever `check_range` would refuse in S."
    )

    @property
    def layout(self) -> DataRows:
        """The layout of its points: those of a Gram matrix are cut by rows and columns."""
        return GRAM if self.kind == "gram" else DATA

    def against(self, S: Array) -> Tile:
        """A function ``tile(rows, columns=slice(None)) -> k(rows, S[columns])``.

        Values that depend on S alone are computed here, once.
        """
        raise NotImplementedError(f"{type(self).__name__} must define against(S).")

    def diagonal(self, X: Array) -> Array:
        """k(x, x) for every row, without forming the matrix."""
        raise NotImplementedError(f"{type(self).__name__} must define diagonal(X).")

    def features(self, X: Array) -> Array:
        """The kernel's own finite feature map, where it has one."""
        raise ValueError(
            f"{self!r} has no finite feature map of its own: use KernelMap({self!r}), which finds "
            "the exact one on your data."
        )

    def explicit_dim(self, n_features: int | None) -> int | None:
        """Dimension of :meth:`explicit` for points with n_features columns; None without one."""
        return None

    def single_sums(self, S: Array) -> Callable[..., tuple[Array, Array]] | None:
        """(X, c, some rows) -> sums of c_j k(x, s_j) in single precision, and bounds of their
        errors; None where no bound is known."""
        return None

    def fused_form(self) -> Form | None:
        """The formula as a sum of products of simple functions (engine/forms.py); None without."""
        return None

    def fourier_form(self) -> FourierForm | None:
        """Description of its Fourier series on a box (spectral.py); None where it has none."""
        return None

    # Checks of parameters by their names: a Domain, or per_column of parameters.py.
    domains: ClassVar[dict[str, Callable[[str, Any, str], None]]] = {}

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for parameters that make no sense."""
        Domain.check(self, type(self).__name__)

    @property
    def is_psd(self) -> bool | None:
        """True by construction, False where known not to be, None where only data can tell."""
        return None

    @property
    def is_proven(self) -> bool:
        """Whether validity follows from this library's own parts; else it is tested on the data.

        A class defined elsewhere may say is_psd = True: it is believed once the data agree.
        """
        modules = (type(part).__module__ for part in self.parts())
        own = __name__.split(".")[0]
        return self.is_psd is True and all(name.split(".")[0] == own for name in modules)

    # --- what users call ------------------------------------------------------------------------

    @overload
    def __call__(self, X: Data, Y: None = None) -> np.ndarray: ...

    @overload
    def __call__(self, X: Data, Y: Data) -> Any: ...

    def __call__(self, X, Y=None):
        """The kernel matrix k(X, Y), or k(X, X) when Y is left out; one number for two vectors.

        Data-dependent parameters ("scale", "median", column names) are taken from Y when it is
        given, as a map takes them from its training points; bind first to fix them.
        """
        if Y is not None and pts.is_vector(X, self.kind) and pts.is_vector(Y, self.kind):
            return self._of_pair(X, Y)
        if Y is None:
            kernel, X = self.bind(X), self.points(X)
        else:
            message = f"{self!r} holds kernel values already: call it with one matrix."
            self.layout.require_data(message, TypeError)
            left, right = pts.column_names(X), pts.column_names(Y)
            if left is not None and right is not None and left != right:
                raise ValueError(
                    f"X has the columns {left} and Y has {right}: put them in one order, "
                    "X[list(Y.columns)]."
                )
            X, Y = alike(self.points(X), self.points(Y, name="Y"))
            kernel = self.bind_points(Y, right)
        if Y is not None or not kernel.against_checks:
            kernel.check_range(X, Y)
        return tiles.evaluate(kernel, X, Y)

    def _of_pair(self, x, z):
        """k(x, z) for two vectors, without the work that pays for many rows alone."""
        x, z = (v if is_array(v) else np.asarray(v) for v in (x, z))
        if not same_kind(x, z) or x.shape != z.shape:
            return float(self(x[None, :], z[None, :])[0, 0])  # which says what is wrong
        points = self.points(namespace(x, z).stack([x, z]))
        for name, rule in rules_in(self):
            raise ValueError(
                f"{self!r} takes {name}={rule!r} from data, and two vectors do not say how the "
                "data are spread. Give a number, or take it from the data first: kernel = "
                "kernel.bind(X)."
            )
        self.check_parameters()
        with np.errstate(over="ignore", invalid="ignore"):  # then check_range says what to do
            value = float(self.against(self.landmarks(points[1:, ...]))(points[:1, ...])[0, 0])
        if not math.isfinite(value):
            self.check_range(points)
        return value

    def diag(self, X: Data) -> np.ndarray:
        """k(x, x) for every row of X, without forming the matrix."""
        kernel = self.bind(X)
        X = kernel.points(X)
        kernel.check_range(X)
        values: Any = kernel.diagonal(X)
        return values

    def explicit(self, X: Data) -> np.ndarray:
        """The kernel's own feature map: ``explicit(X) @ explicit(Y).T == k(X, Y)``.

        Kernels that count things (strings, graphs) return sparse rows with up to 2^61 hashed
        columns, for such products alone. ``KernelMap(kernel, basis="closed").fit_transform(X)``
        numbers the columns in use, and every estimator takes those.
        """
        kernel = self.bind(X)
        return kernel.finite(kernel.features, kernel.points(X))

    def finite(self, compute: Callable[..., Any], *arguments: object) -> np.ndarray:
        """compute(...), refused where values, features or k(x, x) overflowed."""
        with np.errstate(over="ignore", invalid="ignore"):  # the error says more
            values = compute(*arguments)
        if is_symbolic(values):
            return values
        numbers = values.data if scipy.sparse.issparse(values) else values
        xp = namespace(numbers)
        if bool(xp.all(xp.isfinite(numbers))):
            return values
        raise ValueError(
            f"{self!r} overflows {values.dtype} on this data: some k(x, z) is infinite or NaN. "
            "Scale the data (sklearn.preprocessing.MaxAbsScaler), the parameters, or what "
            "functions return."
        )

    def bind(self, X: Data, sample_weight: ArrayLike | None = None) -> Self:
        """A copy with data-dependent parameters and column names turned into numbers.

        A row of weight w counts as w rows of weight one.
        """
        points = self.points(X)
        weights = pts.row_weights(sample_weight, points.shape[0])
        return self.bind_points(points, pts.column_names(X), weights)

    def bind_points(self, X: Array, names: list[str] | None, weights: Array | None = None) -> Self:
        """As bind, on points already checked. Nodes bind their operands."""
        self.check_parameters()
        bound = self.with_operands(lambda operand: operand.bind_points(X, names, weights))
        found = {
            name: gamma_from_data(rule, X, weights, absolute=self.length_powers[name] == -1)
            for name, rule in self.length_parameters().items()
            if isinstance(rule, str)
        }
        return bound.with_parameters(**found) if found else bound

    def with_operands(self, change: Callable[[Kernel], Kernel]) -> Self:
        """The same node with `change` applied to every kernel among its parameters."""
        given = self.get_params(deep=False).items()
        return self.with_parameters(**{k: change(v) for k, v in given if isinstance(v, Kernel)})

    def copied(self) -> Self:
        """A copy whose parameters can be changed without changing this kernel."""
        return self.with_operands(lambda operand: operand.copied())

    def parts(self) -> Iterator[Kernel]:
        """This kernel and all kernels inside it, each before those that it holds."""
        todo: list[Any] = [self]
        while todo:
            part = todo.pop()
            if isinstance(part, Kernel):
                todo.extend(part.get_params(deep=False).values())
                yield part
            elif hasattr(part, "get_params") and not isinstance(part, type):
                todo.extend(v for v in part.get_params().values() if isinstance(v, Kernel))

    # --- points ---------------------------------------------------------------------------------

    def points(self, X: Data, name: str = "X") -> Array:
        """User input as points that this kernel can slice and evaluate."""
        return self.layout.points(X, self.kind, name)

    def landmarks(self, X: Array, indices: Array | None = None) -> Array:
        """The points (all, or those at `indices`) in the form that ``against`` takes."""
        return X if indices is None else pts.take(X, indices)

    def check_range(self, *samples: Array | None) -> None:
        """Refuse points on which k overflows: then |k(x, z)|^2 <= k(x, x) k(z, z) is infinite."""
        for X in samples:
            if X is not None and not self.runs_user_code:
                self.finite(self._largest_terms, X)

    def _largest_terms(self, X: Array) -> Array:
        """k(x, x), or what overflows before it does: for Gram matrices the sum of a row."""
        return self.layout.largest_terms(self, X)

    # --- the algebra: [KERNELS] rules 1, 3, 4, 5, 6 -----------------------------------------------

    def __add__(self, other: Kernel | float) -> Kernel:
        return _combine("Sum", self, other)

    def __radd__(self, other: Kernel | float) -> Kernel:
        return _combine("Sum", other, self)

    def __mul__(self, other: Kernel | float) -> Kernel:
        return _combine("Product", self, other)

    def __rmul__(self, other: Kernel | float) -> Kernel:
        return _combine("Product", other, self)

    def __pow__(self, exponent: int) -> Kernel:
        return _node("Power", [self], exponent)

    def exp(self) -> Kernel:
        """exp(k): rule 4."""
        return _node("Exp", [self])

    def polynomial(self, coefficients: Sequence[float]) -> Kernel:
        """c0 + c1 k + c2 k^2 + ... with non-negative coefficients: rule 3."""
        return _node("PolynomialOf", [self], coefficients)

    def __sub__(self, other: object) -> NoReturn:
        raise TypeError(
            "a difference of kernels need not be a kernel (k - k' can have negative eigenvalues); "
            "use sums, products and non-negative scales."
        )

    __rsub__ = __sub__

    def __neg__(self) -> NoReturn:
        raise TypeError("-k is not a kernel: -k(x, x) < 0. Scales must be non-negative.")

    def __truediv__(self, other: float) -> Kernel:
        if is_number(other) and other > 0:
            return self * (1 / other)
        raise TypeError(f"kernels are divided by positive numbers only, got {other!r}.")

    def __rtruediv__(self, other: object) -> NoReturn:
        raise TypeError("a quotient of kernels need not be a kernel; use sums and products.")

    # --- identity ---------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _identity(self) == _identity(other)

    def __hash__(self) -> int:
        return hash(_identity(self))

    # Binding strength of the printed form: + 1, * 2, ** 3, a call 4.
    precedence = 4

    def __repr__(self) -> str:
        defaults = parameters_of(type(self).__init__)
        shown = [
            f"{name}={printed(value)}"
            for name, value in self.get_params(deep=False).items()
            if frozen(value) != frozen(defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """The expression, in notebooks."""
        return f"<code>{html.escape(repr(self))}</code>"


def _identity(kernel):
    """The identity of a kernel: its class and parameters, and those of every part.

    One flat list, in which classes say how it is nested: a nested one would be hashed again at
    every level.
    """
    said: list[Any] = []
    for part in kernel.parts():
        given = part.get_params(deep=False)
        said.append(type(part))
        said.extend(
            (name, isinstance(given[name], Kernel) or frozen(given[name])) for name in sorted(given)
        )
    return tuple(said)


def alike(X: Any, Y: Any, kernel: Kernel | None = None):
    """X and Y in one dtype, after checking that one can be compared with the other."""
    pts.require_same_storage(X, Y)
    if X.ndim != 2 or Y.ndim != 2:
        return X, Y
    (DATA if kernel is None else kernel.layout).check_same_columns(X, Y)
    if not same_kind(X, Y):
        raise TypeError(
            f"X is {type(X).__module__}.{type(X).__name__} and Y is "
            f"{type(Y).__module__}.{type(Y).__name__}: inputs must share one array namespace and "
            "device."
        )
    if scipy.sparse.issparse(X):
        dtype = np.result_type(X.dtype, Y.dtype)
        return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)
    xp = namespace(X, Y)
    objects = any(getattr(points.dtype, "kind", "f") == "O" for points in (X, Y))
    if X.dtype != Y.dtype and not objects:
        dtype = xp.result_type(X, Y)
        X, Y = xp.astype(X, dtype, copy=False), xp.astype(Y, dtype, copy=False)
    return X, Y


def _node(name, operands, *parameters):
    """Build a node of the algebra on copies of its operands (k * k + k must not share leaves)."""
    from . import algebra  # which is built on this file

    try:
        made = getattr(algebra, name)(*(operand.copied() for operand in operands), *parameters)
    except RecursionError:
        raise ValueError(
            "an expression of so many kernels within each other is too deep for Python: use fewer "
            "terms, or one FromFeatures of their features side by side."
        ) from None
    made.check_parameters()
    return made


def _combine(name, left, right):
    """left + right or left * right, numbers allowed on either side."""
    if isinstance(left, Kernel) and isinstance(right, Kernel):
        return _node(name, [left, right])
    kernel, other = (left, right) if isinstance(left, Kernel) else (right, left)
    if not is_number(other):
        verb = "add" if name == "Sum" else "multiply"
        raise TypeError(
            f"cannot {verb} a kernel and {type(other).__name__} {short(other)}: kernels "
            "combine with kernels and non-negative numbers (to weight rows use Rescaled(k, f))."
        )
    if name == "Product":
        return _node("Scaled", [kernel], other)
    constant = _node("Constant", [], other)
    return _node("Sum", [left, constant] if kernel is left else [constant, right])


def _of_columns(explicit_dim):
    @wraps(explicit_dim)
    def checked(self, n_features):
        # None: the points are not vectors.
        if n_features is not None and (not is_integer(n_features) or n_features < 0):
            raise ValueError(f"n_features must be a number of columns, got {n_features!r}.")
        return explicit_dim(self, None if n_features is None else int(n_features))

    return checked
