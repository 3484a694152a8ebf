"""Every public name, every parameter of it, any value."""

import inspect
from pathlib import Path

import pytest

import mercer
from fuzz import public
from fuzz.cases import ROUNDS, generator, not_tried, try_all
from fuzz.hostile import PARAMETERS
from fuzz.subjects import EXAMPLES
from mercer import KernelMap

# A picture or a comparison takes as long as a hundred refusals: some of the values at each run,
# others for each parameter and seed; all of them in `make fuzz`.
SLOW = (
    "Display",
    "compare_kernels",
    "KernelComparison",
    "write_report",
    "to_onnx",
    "save",
    "rates",
)
# Files are the operating system's to refuse.
OF_FILES = {"path": (OSError,)}
# They hand points to a function of the user, which may fail as it likes.
OF_USERS = ("FromFunction.__call__", "FromFunction.diag")
NAMES = sorted(public.names())
# Twelve rows are few for a detector of drift, which says so.
pytestmark = pytest.mark.filterwarnings("ignore:no row is marked")


def values_for(label, parameter):
    if ROUNDS > 1 or not any(word in label for word in SLOW):
        return PARAMETERS
    return [PARAMETERS[i] for i in generator(label, parameter).permutation(len(PARAMETERS))[:5]]


def test_every_public_name_is_driven():
    """Also tells who adds a name what to say: which value of a required parameter is a good one."""
    driven = {label.split(".")[0] for label, _, _ in public.calls(EXAMPLES)}
    driven |= {cls.__name__ for cls in EXAMPLES} | public.HANDED_OUT | set(BY_HAND)
    assert set(NAMES) <= driven


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in public.HANDED_OUT - {"KernelComparison"}]
)
def test_any_value_for_any_argument(name, tally):
    from matplotlib import pyplot as plt

    def drive(label, function, given, parameter, value):
        try:
            answer = function(**{**given, parameter: value})
            if "Display" in type(answer).__name__:
                answer.plot()  # a display is checked when it is drawn
            public.check_answer(label, answer)
        finally:
            plt.close("all")

    def cases():
        for label, function, given in BY_HAND.get(name, lambda: calls_of(name))():
            function(**given)  # good arguments are good
            for parameter in public.parameters(function):
                for value in values_for(label, parameter):
                    if not_tried(parameter, value) or callable(value) or label in OF_USERS:
                        continue
                    case = f"{label}({parameter}={value!r})"
                    work = lambda p=parameter, v=value: drive(label, function, given, p, v)  # noqa: B023, E731
                    also = OF_FILES.get(parameter, ())
                    yield case, work, [public.X, public.Y], [parameter, name], *also

    try_all(tally, cases())


def calls_of(name):
    thing = public.names()[name]
    if inspect.isclass(thing):
        return public.calls_of_class(name, thing, EXAMPLES)
    return [(name, thing, public.arguments(name, thing))]


def a_file(tmp="saved.mercer"):
    mercer.save(KernelMap().fit(public.X), tmp)
    return [("load", mercer.load, {"path": tmp})]


def a_table(tmp="table.csv"):
    Path(tmp).write_text("x,y\n1,2\n3,4\n")
    return [("read_table", mercer.read_table, {"path": tmp})]


BY_HAND = {
    "load": a_file,
    "read_table": a_table,
    "register": lambda: [("register", mercer.onnx.register, {})],
}
