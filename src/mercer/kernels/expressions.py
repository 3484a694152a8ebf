"""Kernels from text, read by a grammar and never evaluated as Python.

What Python's own parser makes of the text is walked node by node; only kernel names, literals, the
operators of the algebra and its two methods have a meaning here. Errors point at the place.
"""

from __future__ import annotations

import ast
import difflib
import operator
import warnings
from typing import Any, NoReturn

from ..engine import is_number, require
from . import KERNELS, Kernel, as_kernel
from .composite import Unary

__all__ = ["KernelExpressionError", "parse_kernel"]

_LONGEST = 2000  # characters: Python's own parser ends the process where texts nest too deeply
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


class KernelExpressionError(ValueError):
    """A text that is not a kernel; the message shows where."""

    def __init__(self, problem, text="", start=0, stop=None):
        self.problem, self.text, self.start = problem, text, start
        width = max(1, (start + 1 if stop is None else stop) - start)
        shown = f"\n  {text}\n  {' ' * start}{'^' * width}" if text else ""
        super().__init__(problem + shown)


def parse_kernel(text: str) -> Kernel:
    """A kernel from an expression such as ``"RBF(0.1) + 2 * Polynomial(2)"``.

    Known are the kernels by name with numbers, lists and (for gamma) the words "scale" and
    "median" as parameters, ``+``, ``*``, ``**``, ``.exp()`` and ``.polynomial([...])``; a bare name
    as in scikit-learn ("rbf") is a kernel too. Nothing is ever executed.

    Parameters
    ----------
    text : str
        The expression, as `repr` of a kernel prints it.

    Examples
    --------
    >>> from mercer import parse_kernel
    >>> parse_kernel("0.5 * RBF(gamma=0.1) + Polynomial(2)")
    0.5 * RBF(gamma=0.1) + Polynomial(degree=2)
    >>> parse_kernel("RBF(0.1) + Lineer()")
    Traceback (most recent call last):
        ...
    mercer.kernels.expressions.KernelExpressionError: unknown kernel 'Lineer'. Did you mean Linear?
      RBF(0.1) + Lineer()
                 ^^^^^^
    """
    if not isinstance(text, str):
        raise TypeError(f"a kernel expression is a text, got {type(text).__name__}.")
    text = text.strip()
    if not text:
        raise KernelExpressionError("an empty kernel expression; write for example RBF(0.1).")
    if len(text) > _LONGEST or not text.isprintable():
        raise KernelExpressionError(
            f"a kernel expression is one line of at most {_LONGEST} printable characters, got "
            f"{len(text)}."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about style: "1or 2"
            return _Reader(text).kernel(ast.parse(text, mode="eval").body)
    except SyntaxError as error:
        # Columns count from 1, and errors at the end of the text lie behind it.
        start = min(max((error.offset or 1) - 1, 0), len(text))
        raise KernelExpressionError(f"not an expression: {error.msg}", text, start) from None
    except (RecursionError, MemoryError):
        raise KernelExpressionError("a kernel expression nested too deeply.") from None


class _Reader:
    """Walks a syntax tree; the text is kept for pointing at places."""

    def __init__(self, text):
        self.text = text

    def refuse(self, problem: str, node: Any) -> NoReturn:
        # Python counts columns in bytes of UTF-8; people count characters.
        encoded = self.text.encode()
        start = len(encoded[: node.col_offset].decode(errors="ignore"))
        stop = len(encoded[: node.end_col_offset].decode(errors="ignore"))
        raise KernelExpressionError(problem, self.text, start, stop)

    def made(self, node: Any, make: Any, *arguments, **named) -> Any:
        """make(...), with its own complaints pointing at the place."""
        try:
            result = make(*arguments, **named)
            if isinstance(result, Kernel):
                result.check_parameters()
            return result
        except (TypeError, ValueError, ArithmeticError) as error:
            problem = str(error).replace(".__init__()", "").replace("Kernel.", "")
            self.refuse(problem.rstrip("."), node)

    def kernel(self, node: Any) -> Kernel:
        value = self.value(node)
        if isinstance(value, str):  # in scikit-learn's manner: "rbf"
            value = self.made(node, as_kernel, value)
        if isinstance(value, Kernel):
            return value
        if is_number(value):
            self.refuse("a number is not a kernel; Constant(c) is one", node)
        self.refuse("expected a kernel, such as RBF(0.1)", node)

    def value(self, node: Any) -> Any:
        """A kernel, a number, a text or a list of these."""
        match node:
            case ast.Call():
                return self.call(node, node.func)
            case ast.BinOp():
                return self.operation(node)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                value = self.value(node.operand)
                if isinstance(value, Kernel):
                    self.refuse("-k is not a kernel: scales must be non-negative", node)
                if not is_number(value):
                    self.refuse("a sign belongs to a number", node)
                return -value if isinstance(node.op, ast.USub) else value
            case ast.List() | ast.Tuple():
                return [self.value(item) for item in node.elts]
            case ast.Constant(value=None | int() | float() | str() | bytes()):
                return node.value
            case ast.Name(id=name) if name in KERNELS:
                self.refuse(f"{name} needs parentheses: {name}()", node)
            case ast.Name(id=name):
                return self.made(node, as_kernel, name)
        self.refuse("this has no meaning in a kernel expression", node)

    def call(self, node: Any, function: Any) -> Any:
        match function:
            case ast.Attribute(attr="exp" | "polynomial"):
                method = getattr(self.kernel(function.value), function.attr)
                return self.made(node, method, *self.positional(node), **self.named(node))
            case ast.Attribute():
                known = "known are .exp() and .polynomial([...])"
                self.refuse(f"unknown method {function.attr!r}; {known}", node)
            case ast.Name(id="slice" | "range" as name):  # columns, or lengths
                bounds = self.positional(node)
                whole = all(b is None or type(b) is int for b in bounds)
                if node.keywords or not whole or not 1 <= len(bounds) <= 3:
                    self.refuse(
                        f"{name} takes one to three whole numbers, as in {name}(0, 3)", node
                    )
                return slice(*bounds) if name == "slice" else self.made(node, _range, *bounds)
            case ast.Name(id=name) if name in KERNELS:
                arguments = self.positional(node)
                if issubclass(KERNELS[name], Unary) and arguments:
                    arguments[0] = self.kernel(node.args[0])
                return self.made(node, KERNELS[name], *arguments, **self.named(node))
            case ast.Name(id=name):
                self.refuse(f"unknown kernel {name!r}.{_hint(name, KERNELS)}", function)
        self.refuse("only kernels are called by name, as in RBF(0.1)", function)

    def positional(self, node: Any) -> list[Any]:
        for argument in [*node.args, *node.keywords]:
            if isinstance(argument, ast.Starred) or getattr(argument, "arg", "") is None:
                self.refuse("* and ** have no meaning in arguments here", argument)
        return [self.value(argument) for argument in node.args]

    def named(self, node: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg in found:  # Python's parser takes both, and only its compiler refuses
                self.refuse(f"{keyword.arg} is given twice", keyword)
            found[keyword.arg] = self.value(keyword.value)
        return found

    def operation(self, node: Any) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        numbers = is_number(left) and is_number(right)
        if not numbers and not isinstance(left, Kernel) and not isinstance(right, Kernel):
            self.refuse("operators combine kernels and numbers", node)
        # Numbers have no powers: 9**9**9 would take for ever.
        if type(node.op) not in _OPERATORS or (numbers and isinstance(node.op, ast.Pow)):
            self.refuse("kernels combine with +, * and **", node)
        return self.made(node, _OPERATORS[type(node.op)], left, right)


def _range(*bounds):
    numbers = range(*bounds)
    require(len(numbers) <= _LONGEST, f"a range has at most {_LONGEST} numbers here")
    return numbers


def _hint(name, known):
    lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f" Did you mean {lower[near[0]]}?" if near else f" Known: {', '.join(known)}."
