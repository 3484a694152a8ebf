"""py.typed is a promise: public names are annotated, and strict checkers help the user."""

import inspect
import runpy
import typing
from pathlib import Path

import pytest

import mercer
from mercer.kernels import Kernel

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tests" / "typing" / "user_script.py"

KERNELS = [
    name
    for name in mercer.__all__
    if (inspect.isclass(getattr(mercer, name)) and issubclass(getattr(mercer, name), Kernel))
    or name in ("as_kernel", "check_mercer", "MercerReport", "NotPSDError")
]
# Held to the promise group by group, so that the many methods of kernels hide nothing.
GROUPS = {
    "kernels": KERNELS,
    "all else": [name for name in mercer.__all__ if name not in KERNELS],
}
LEAST = 0.95


def public_functions(name):
    """(label, function) of a public function, or of a class's __init__ and public methods."""
    thing = getattr(mercer, name)
    if not inspect.isclass(thing):
        yield name, thing
        return
    for method, found in inspect.getmembers(thing):
        public = not method.startswith("_") or method in ("__init__", "__call__")
        found = found.fget if isinstance(found, property) else found
        found = found.__func__ if inspect.ismethod(found) else found  # of the class itself
        if public and inspect.isfunction(found) and found.__module__.startswith("mercer"):
            yield f"{name}.{method}", found


def is_annotated(annotation):
    return annotation not in (inspect.Parameter.empty, typing.Any, "Any")


def annotations(names):
    """{place: whether it says more than Any} for all arguments and returns."""
    found = {}
    for name in names:
        for label, function in public_functions(name):
            if typing.get_overloads(function):
                function = typing.get_overloads(function)[0]
            signature = inspect.signature(function)
            for parameter in list(signature.parameters.values()):
                if parameter.name not in ("self", "cls"):
                    found[f"{label}({parameter.name})"] = is_annotated(parameter.annotation)
            found[f"{label} ->"] = is_annotated(signature.return_annotation)
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_public_arguments_and_returns_are_annotated(group):
    found = annotations(GROUPS[group])
    missing = [place for place, annotated in found.items() if not annotated]
    assert len(found) > 100
    assert 1 - len(missing) / len(found) >= LEAST, f"{len(missing)} of {len(found)}: {missing}"


def test_the_measure_sees_what_is_missing(monkeypatch):
    class Bare(Kernel):
        def __init__(self, a, b: typing.Any, c: int):
            self.a, self.b, self.c = a, b, c

    monkeypatch.setattr(mercer, "Bare", Bare, raising=False)
    Bare.__module__ = Bare.__init__.__module__ = "mercer.kernels.bare"
    found = annotations(["Bare"])
    assert [found[f"Bare.__init__({name})"] for name in "abc"] == [False, False, True]
    assert not found["Bare.__init__ ->"]


def test_the_user_script_runs():
    assert isinstance(runpy.run_path(str(SCRIPT))["K"].shape, tuple)


def test_make_lint_checks_what_users_write_and_get_wrong():
    scripts = "tests/typing/user_script.py tests/typing/mistakes.py"
    assert f"mypy --strict --follow-imports=silent {scripts}\n" in (ROOT / "Makefile").read_text()
