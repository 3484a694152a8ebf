"""Kernel expressions: what they mean, what they refuse, and that nothing is ever executed."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_kernel import VECTOR_KERNELS
from mercer import (
    RBF,
    Constant,
    FromFeatures,
    FromFunction,
    Kernel,
    Linear,
    OnColumns,
    OnFeatures,
    Polynomial,
    Rescaled,
    Spectrum,
)
from mercer.kernels.expressions import (
    _LONGEST,
    KernelExpressionError,
    parse_kernel,
)


def _takes_functions(kernel):
    parts = [kernel, *kernel.get_params(deep=True).values()]
    return any(isinstance(p, (FromFunction, FromFeatures, OnFeatures, Rescaled)) for p in parts)


PRINTABLE = [kernel for kernel in VECTOR_KERNELS if not _takes_functions(kernel)]


@pytest.mark.parametrize("kernel", PRINTABLE, ids=repr)
def test_what_prints_parses(kernel):
    assert parse_kernel(repr(kernel)) == kernel


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("rbf", RBF()),
        ("'linear'", Linear()),
        (" RBF( 0.1 )\t".replace("\t", " "), RBF(0.1)),
        ("RBF('median')", RBF("median")),
        ("RBF([1, 2.5])", RBF([1, 2.5])),
        ("Polynomial(2) + Linear()", Polynomial(2) + Linear()),
        ("2 * RBF(0.1) ** 3", 2 * RBF(0.1) ** 3),
        ("RBF(1) + 1", RBF(1) + Constant(1)),
        ("RBF(1) / 2", 0.5 * RBF(1)),
        ("RBF(1/64)", RBF(1 / 64)),
        ("Polynomial(2, coef0=-1)", Polynomial(2, coef0=-1)),
        ("(0.5 * linear).exp()", (0.5 * Linear()).exp()),
        ("Linear().polynomial([1, 0, 2])", Linear().polynomial([1, 0, 2])),
        ("OnColumns(rbf, ['a', 'b'])", OnColumns(RBF(), ["a", "b"])),
        ("Linear() + RBF(1) * RBF(2)", Linear() + RBF(1) * RBF(2)),
    ],
)
def test_meaning(text, kernel):
    assert parse_kernel(text) == kernel


@pytest.mark.parametrize(
    ("text", "problem", "pointed_at"),
    [
        ("RBF(0.1) + Lineer()", "Did you mean Linear", "Lineer"),
        ("RBF(0.1) + rbff", "Did you mean 'rbf'", "rbff"),
        ("RBF", "parentheses", "RBF"),
        ("Linear() + -RBF(1)", "-k is not a kernel", "-RBF(1)"),
        ("RBF(1) - Linear()", "difference", "RBF(1) - Linear()"),
        ("RBF(gamma=-1) * Linear()", "positive", "RBF(gamma=-1)"),
        ("Linear() + RBF(bandwidth=1)", "bandwidth", "RBF(bandwidth=1)"),
        ("Linear() ** 1.5", "must be an integer", "Linear() ** 1.5"),
        ("Linear() * [1, 2]", "cannot multiply", "Linear() * [1, 2]"),
        ("Linear().fit()", "unknown method 'fit'", "Linear().fit()"),
        ("Linear().polynomial([1, -1])", "coefficients", "Linear().polynomial([1, -1])"),
        ("3.5", "a number is not a kernel", "3.5"),
        ("OnColumns(3, [1])", "a number is not a kernel", "3"),
        ("RBF(9**9)", "combine with", "9**9"),
        ("RBF(1/0)", "division by zero", "1/0"),
        ("RBF(1e308 * 10)", "finite", "RBF(1e308 * 10)"),
        ("é + RBF()", "unknown kernel", "é"),
        ("RBF(*[1])", "no meaning in arguments", "*[1]"),
        ("RBF(**{})", "no meaning in arguments", "**{}"),
        ("RBF(gamma=1, gamma=2)", "gamma is given twice", "gamma=2"),
    ],
)
def test_errors_point_at_the_place(text, problem, pointed_at):
    with pytest.raises(KernelExpressionError) as caught:
        parse_kernel(text)
    first, shown, carets = str(caught.value).split("\n")
    assert problem in first
    assert shown == f"  {text}"
    marked = "".join(c for c, mark in zip(shown, carets.ljust(len(shown))) if mark == "^")
    assert marked == pointed_at


@pytest.mark.parametrize("text", ["RBF(0.1", "RBF(0.1))", "RBF 0.1", "RBF(0.1) +", "1 = 2", "a b"])
def test_broken_syntax_is_pointed_at(text):
    with pytest.raises(KernelExpressionError, match=r"(?s)not an expression.*\^"):
        parse_kernel(text)


@pytest.mark.parametrize("text", ["", "   ", "RBF(1)\n+RBF(1)", "RBF()" + " + RBF()" * _LONGEST])
def test_what_is_not_one_short_line(text):
    with pytest.raises(KernelExpressionError, match="kernel expression"):
        parse_kernel(text)


def test_not_a_text():
    with pytest.raises(TypeError, match="got int"):
        parse_kernel(3)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__.__bases__[0].__subclasses__()",
        "RBF.__init__.__globals__",
        "open('/etc/passwd').read()",
        "[k for k in (1, 2)]",
        "(lambda: RBF())()",
        "RBF() if True else Linear()",
        "f'{RBF()}'",
        "(k := RBF())",
        "exec('1')",
        "FromFunction(max)",
        "OnFeatures(RBF(), len)",
        "RBF(True and 1)",
        "{}",
        "b'x'",
        "...",
        "1j",
    ],
)
def test_code_is_refused(text, monkeypatch):
    def never(*arguments, **named):
        raise AssertionError("code was executed")

    for name in ("eval", "exec", "__import__"):
        monkeypatch.setattr(f"builtins.{name}", never)
    with pytest.raises(KernelExpressionError):
        parse_kernel(text)


@pytest.mark.parametrize("opening", ["(", "-", "[", "Normalized(", "RBF().exp("])
def test_depth_is_bounded(opening):
    with pytest.raises(KernelExpressionError):
        parse_kernel((opening * _LONGEST)[:_LONGEST])


@given(st.text(alphabet="RBFLinear()+*.-,0123 'exp[]=gm", max_size=40))
def test_any_text_is_a_kernel_or_a_refusal(text):
    try:
        kernel = parse_kernel(text)
    except KernelExpressionError:
        return
    assert isinstance(kernel, Kernel)
    ast.parse(repr(kernel))


# --- limits ---------------------------------------------------------------------------------------


def test_what_is_read_may_have_many_terms():
    text = " + ".join(["RBF(0.1)"] * 65)
    assert repr(parse_kernel(text)).count("RBF") == 65


def test_columns_by_a_slice():
    assert parse_kernel("OnColumns(RBF(), slice(0, 3))") == OnColumns(RBF(), slice(0, 3))
    with pytest.raises(KernelExpressionError, match="one to three whole numbers"):
        parse_kernel("OnColumns(RBF(), slice())")


def test_large_whole_numbers_are_refused():
    large = "9" * 299
    with pytest.raises(KernelExpressionError, match="too large to convert to float"):
        parse_kernel(f"RBF({large} * {large})")


def test_lengths_by_a_range_and_an_alphabet_of_bytes():
    for kernel in (Spectrum(range(1, 4)), Spectrum(2, alphabet=b"ACGT")):
        assert parse_kernel(repr(kernel)) == kernel
    with pytest.raises(KernelExpressionError, match="a range has at most 2000 numbers here"):
        parse_kernel("RBF(range(0, 999999999999))")
