"""Imports go one way: the layout is the flow (docs/contribute)."""

import ast
import importlib
from pathlib import Path

import pytest

import mercer
from mercer.kernels.composite import Composite

ROOT = Path(mercer.__file__).parent
# A part may import what stands before it: what stands first may be used by all.
LAYERS = [
    {"doors"},
    {"engine"},
    {"kernels"},
    {"rows"},
    {"space"},
    {"expansion"},
    {"feature_map"},
    {"fit"},
    {"solve"},
    {"learn"},
    {"tables"},
    {"estimators"},
    {"statistics"},
    {"export"},
    {"explore"},
    {"cli", "onnx"},
    {"__main__"},
]
LAYER = {part: i for i, parts in enumerate(LAYERS) for part in parts}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
# The only files that may name an array library.
BACKENDS = {"torch", "cupy", "cupyx", "array_api_compat", "jax"}
KNOW_BACKENDS = {"engine/arrays.py", "engine/fused.py"}
# The only files that may use private names: of scikit-learn, and of Dask.
KNOW_PRIVATE_NAMES = {"engine/sklearn_compat.py", "rows/dask_compat.py"}


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    """Absolute names of all modules that a file imports, wherever it does."""
    return imported_by(path, ast.walk(ast.parse(path.read_text())))


def top_imports(path):
    """The same for the statements that run when the file is imported."""
    return imported_by(path, ast.parse(path.read_text()).body)


def imported_by(path, nodes):
    package = ["mercer", *path.relative_to(ROOT).parent.parts]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def parts_imported(path):
    for name in imports(path):
        pieces = name.split(".")
        if pieces[0] == "mercer" and len(pieces) > 1 and pieces[1] in LAYER:
            yield pieces[1]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_part_has_a_layer(path):
    assert part_of(path) in LAYER, "add the new part to LAYERS"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_one_way(path):
    own = part_of(path)
    wrong = {p for p in parts_imported(path) if p != own and LAYER[p] >= LAYER[own]}
    assert not wrong, f"{name_of(path)} imports {wrong}, which stand after or beside {own}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_the_engine_knows_array_libraries(path):
    if name_of(path) not in KNOW_BACKENDS:
        assert not {name.split(".")[0] for name in imports(path)} & BACKENDS


# Which of the three sources X is, is asked in the folder of rows.
ASK_FOR_SOURCES = {"is_dask", "is_dask_frame", "is_stream", "Partitions"}
ASK_FOR_SOURCES |= {"StreamedRows", "PartitionedRows"}


@pytest.mark.parametrize("path", [p for p in FILES if part_of(p) != "rows"], ids=name_of)
def test_only_rows_know_where_rows_come_from(path):
    assert not {name.split(".")[-1] for name in imports(path)} & ASK_FOR_SOURCES


# Kernels that are formulas, not made of other kernels: other folders ask what they can do.
FORMULAS = {
    name
    for name, kernel in vars(mercer.kernels).items()
    if isinstance(kernel, type)
    and issubclass(kernel, mercer.Kernel)
    and kernel is not mercer.Kernel
    if not issubclass(kernel, Composite)
}


def classes_asked_for(source):
    """Names of the classes in every isinstance(...) of a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            yield from (part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name))


@pytest.mark.parametrize("path", [p for p in FILES if part_of(p) != "kernels"], ids=name_of)
def test_no_other_folder_knows_a_formula_by_its_class(path):
    assert not set(classes_asked_for(path.read_text())) & FORMULAS


def test_classes_that_are_asked_for_are_found():
    assert [*classes_asked_for("isinstance(k, (RBF, Sum)) or isinstance(k, Linear | int)")] == [
        "RBF", "Sum", "Linear", "int",
    ]  # fmt: skip
    assert {"RBF", "Spectrum", "Tanimoto"} < FORMULAS


# Folders with a door: their `__init__` offers what others may use.
WITH_DOORS = {"engine", "kernels", "rows", "space", "solve", "learn", "tables", "estimators"}
WITH_DOORS |= {"statistics", "export"}


def past_doors(path):
    """Names that a file imports from inside another folder."""
    for name in imports(path):
        library, *place = name.split(".")
        if library == "mercer" and len(place) > 2 and place[0] in WITH_DOORS - {part_of(path)}:
            yield name


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_other_folders_import_from_the_door(path):
    assert not [*past_doors(path)], "offer the name in the folder's __init__, and import it there"


def offered(folder):
    """Names that the `__init__` of a folder imports from its files."""
    tree = ast.parse((ROOT / folder / "__init__.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("folder", sorted(WITH_DOORS))
def test_a_door_offers_what_others_use(folder):
    """Or what is public: a name that nobody imports any more leaves the door."""
    door = importlib.import_module(f"mercer.{folder}")
    others = [path for path in [*FILES, ROOT / "__init__.py"] if part_of(path) != folder]
    used = {name.split(".")[-1] for path in others for name in imports(path)}
    assert set(offered(folder)) <= used | set(getattr(door, "__all__", ())) | set(mercer.__all__)


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if part_of(p) in ("statistics", "export", "explore", "cli")],
    ids=name_of,
)
def test_the_outermost_folders_import_public_names_as_users_do(path):
    """From the package itself: what they import from a folder is what they know of its inside."""
    places = [name.split(".") for name in imports(path)]
    others = WITH_DOORS - {part_of(path)}
    inside = {place[-1] for place in places if len(place) > 2 and place[1] in others}
    assert not inside & set(mercer.__all__)


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def private_names_of_others(source):
    """Lines that import `_name`, or read it from something that is not self, cls or super()."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if ast.unparse(node.value) not in ("self", "cls", "super()"):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            if any(map(is_private, names)):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            owner, name = node.args[:2]
            constant = isinstance(name, ast.Constant) and isinstance(name.value, str)
            if constant and is_private(name.value) and ast.unparse(owner) != "self":
                yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_module_uses_private_names_of_others(path):
    if name_of(path) not in KNOW_PRIVATE_NAMES:
        assert not list(private_names_of_others(path.read_text()))


@pytest.mark.parametrize(
    "line",
    [
        "other._cached",
        "other._cached = 1",
        "self.map_._cached",
        "type(self)._cached",
        "getattr(model, '_cached', None)",
        "from .algebra import _cached",
        "from sklearn.utils._array_api import device",
    ],
)
def test_private_names_are_found(line):
    assert len(list(private_names_of_others(line))) == 1


@pytest.mark.parametrize(
    "line", ["self._cached", "super()._cached", "model.__dict__", "getattr(self, '_cached')"]
)
def test_own_names_are_not(line):
    assert not list(private_names_of_others(line))


@pytest.mark.parametrize("path", [p for p in FILES if part_of(p) == "space"], ids=name_of)
def test_a_space_knows_no_scikit_learn(path):
    assert "sklearn" not in {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize(
    "path", [p for p in FILES if part_of(p) in ("kernels", "engine")], ids=name_of
)
def test_files_fit_in_the_head(path):
    assert len(path.read_text().splitlines()) <= 450


def test_kernels_import_each_other_one_way():
    """At the top of the files; inside functions an import may go back."""
    own = {path: f"mercer.kernels.{path.stem}" for path in FILES if part_of(path) == "kernels"}
    own = {path: name for path, name in own.items() if path.stem != "__init__"}
    left = {name: set(top_imports(path)) & set(own.values()) for path, name in own.items()}
    while left:
        free = {name for name, needs in left.items() if not needs & set(left)}
        assert free, f"these import each other: {sorted(left)}"
        left = {name: needs for name, needs in left.items() if name not in free}
