"""The size and the order of the source tree, counted: `make house`.

`python -m benchmarks.house` prints lines, files and annotations per folder, names that cross
folders (`--names` lists them), public names that are defined twice, and how many functions and
files of the library five typical calls run through (`--way "on an array"` lists those of one, in
the order of the calls). tests/test_house.py holds the static counts to limits that only fall.
"""

import ast
import io
import re
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Set
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "mercer"
PASSED_ON = re.compile(r"\b(?:n_jobs|verbose|memory_limit)\b")
GRAM_QUESTIONS = re.compile(r'[=!]= "gram"|\.on_data\b|\.is_gram\b')
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# A docstring's subject is a noun: these begin a clause.
CLAUSES = ("What", "Whatever", "Where", "Of")


@dataclass(frozen=True)
class Module:
    """One file of the library: its name below the package, its text and its syntax tree."""

    name: str
    text: str
    tree: ast.Module

    @property
    def folder(self) -> str:
        return self.name.partition("/")[0] if "/" in self.name else "."

    def public(self) -> list[str]:
        """Functions, classes and constants that the file defines without an underscore."""
        found: list[str] = []
        for node in self.tree.body:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                found.append(node.name)
            elif isinstance(node, ast.Assign):
                found += [target.id for target in node.targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.append(node.target.id)
        return [name for name in dict.fromkeys(found) if not name.startswith("_")]

    def exported(self) -> list[str]:
        """Names in the `__all__` of the file."""
        return [
            name
            for node in self.tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
            for name in ast.literal_eval(node.value)
        ]

    def imported(self) -> Iterator[tuple[str, str]]:
        """(module, name) of every name that comes from elsewhere in the library."""
        package = self.name.split("/")[:-1]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = package[: len(package) - node.level + 1]
                module = "/".join([*base, *(node.module or "").split(".")]).strip("/")
                yield from ((module, alias.name) for alias in node.names)

    def read_from(self, modules: dict[str, str]) -> Iterator[tuple[str, str]]:
        """(module, name) of attributes of modules that are imported as a whole."""
        aliases = {
            alias.asname or alias.name: modules[alias.name]
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and node.level
            for alias in node.names
            if alias.name in modules
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield from [(aliases[node.value.id], node.attr)] if node.value.id in aliases else []

    def arguments(self) -> Iterator[bool]:
        """Whether it is annotated, for every argument of a function without an underscore."""
        for node in ast.walk(self.tree):
            if isinstance(node, FUNCTIONS) and not node.name.startswith("_"):
                given = node.args
                for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
                    if argument.arg not in ("self", "cls"):
                        yield argument.annotation is not None

    def docstrings(self) -> Iterator[tuple[int, str]]:
        """(line, text) of every docstring."""
        for node in ast.walk(self.tree):
            if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)):
                text = ast.get_docstring(node)
                if text:
                    yield node.body[0].lineno, text


def modules(root: Path = SOURCE) -> list[Module]:
    return [
        Module(path.relative_to(root).as_posix(), text, ast.parse(text))
        for path in sorted(root.rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
    ]


def crossing(
    files: list[Module], *, through_modules: bool = True
) -> dict[tuple[str, str], set[str]]:
    """(folder, name) pairs that other folders use, with these folders.

    A module that is imported as a whole counts as the names that are read from it; or as one name,
    without `through_modules`.
    """
    folders = {file.folder for file in files} - {"."}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for file in files:
        if file.folder == ".":
            continue
        uses = [(module.partition("/")[0], name) for module, name in file.imported()]
        theirs = [(folder, name) for folder, name in uses if folder in folders - {file.folder}]
        whole = {name: folder for folder, name in theirs if _is_module(files, folder, name)}
        whole = whole if through_modules else {}
        for folder, name in [*theirs, *file.read_from(whole)]:
            if name not in whole:
                found[folder, name].add(file.folder)
    return found


def _is_module(files: list[Module], folder: str, name: str) -> bool:
    return any(file.name == f"{folder}/{name}.py" for file in files)


def repeated_names(files: list[Module], *, constants: bool = False) -> dict[str, list[str]]:
    """Public functions and classes, or constants, that several modules define, with these."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in files:
        for name in file.public():
            if name.isupper() == constants:
                found[name].append(file.name)
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}


def said_in_code(folder: Path = SOURCE.parent.parent) -> set[str]:
    """Names that CONTRIBUTING.md and the pages of docs/ write as code: people import these."""
    pages = [folder / "CONTRIBUTING.md", *(folder / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages if page.exists())
    code = re.findall(r"```.*?```|`[^`\n]+`", text, flags=re.DOTALL)
    return set(re.findall(r"\w+", " ".join(code)))


def used_at_home(files: list[Module], known: Set[str] = frozenset()) -> list[str]:
    """Names that only their own file uses, and that do not say so by an underscore; without those
    that are `known` outside, and those in the `__all__` of their file."""
    users: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute):
                names = [node.attr]
            elif isinstance(node, ast.Constant) and file.name.endswith("__init__.py"):
                names = str(node.value).split()  # a door that opens late
            else:
                continue
            for name in names:
                users[name].add(file.name)
    return [
        f"{file.name}: {name}"
        for file in files
        for name in file.public()
        if not users[name] - {file.name} and name not in known and name not in file.exported()
    ]


def repeated_files(files: list[Module]) -> dict[str, list[str]]:
    """File names that stand in several folders, with their places."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in files:
        stem = file.name.rpartition("/")[2]
        if stem != "__init__.py":
            found[stem].append(file.name)
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}


def clauses(files: list[Module]) -> list[str]:
    """Places of docstrings whose subject is a clause."""
    return [
        f"{file.name}:{line}: {text.splitlines()[0]}"
        for file in files
        for line, text in file.docstrings()
        if re.match(rf"(?:{'|'.join(CLAUSES)})\b", text)
    ]


def clause_comments(files: list[Module]) -> list[str]:
    """Places of comments whose subject is a clause."""
    clause = re.compile(rf"\s*# (?:{'|'.join(CLAUSES)})\b")
    return [
        f"{file.name}:{i}: {line.strip()}"
        for file in files
        for i, (before, line) in enumerate(pairwise(file.text.splitlines()), 2)
        if clause.match(line) and not before.lstrip().startswith("#")
    ]


def annotated(files: list[Module]) -> float:
    """Percent of the arguments of functions without an underscore."""
    found = [has for file in files for has in file.arguments()]
    return 100 * sum(found) / max(len(found), 1)


def counts(files: list[Module]) -> dict[str, int]:
    """The static measures of which less is better."""
    return {
        "lines": sum(file.text.count("\n") for file in files),
        "files": len(files),
        "names across folders": len(crossing(files, through_modules=False)),
        "names across folders, through modules too": len(crossing(files)),
        "repeated public names": len(repeated_names(files)),
        "repeated public constants": len(repeated_names(files, constants=True)),
        "repeated file names": len(repeated_files(files)),
        "names that only their own file uses": len(used_at_home(files, said_in_code())),
        "mentions of n_jobs, verbose, memory_limit": sum(
            len(PASSED_ON.findall(file.text)) for file in files
        ),
        "questions whether points are a Gram matrix": sum(
            len(GRAM_QUESTIONS.findall(file.text)) for file in files
        ),
        "docstrings that begin with a clause": len(clauses(files)),
        "comments that begin with a clause": len(clause_comments(files)),
    }


def way(call: Callable[[], object]) -> dict[tuple[str, str], int]:
    """(file, function) of the library that a call runs through, in the order of the first calls,
    with how many functions of the library were then going on."""
    import mercer

    seen: dict[tuple[str, str], int] = {}
    place = str(Path(mercer.__file__).parent)

    def is_ours(frame):
        return frame.f_code.co_filename.startswith(place) and "<" not in frame.f_code.co_name

    def note(frame, event, argument):
        if event != "call" or not is_ours(frame):
            return
        code, depth = frame.f_code, 0
        name = code.co_qualname if hasattr(code, "co_qualname") else code.co_name
        if (key := (code.co_filename[len(place) + 1 :], name)) not in seen:
            while (frame := frame.f_back) is not None:
                depth += is_ours(frame)
            seen[key] = depth

    call()  # once before: imports are not on the way
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen


def traced(call: Callable[[], object]) -> tuple[int, int]:
    """How many files and functions of the library a call runs through."""
    seen = way(call)
    return len({file for file, _ in seen}), len(seen)


def walks() -> dict[str, Callable[[], object]]:
    """Five typical calls, small enough to trace."""
    import dask.array as da
    import numpy as np

    import mercer

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(X.sum(axis=1))
    chunked, targets = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)

    def command():
        from mercer.cli.app import _app

        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "table.csv"
            rows = [f"{a},{b},{c},{t}" for (a, b, c), t in zip(X, y)]
            table.write_text("\n".join(["a,b,c,y", *rows]) + "\n")
            arguments = ["fit", str(table), "--target", "y", "--output", f"{folder}/model"]
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                _app(arguments, standalone_mode=False)

    return {
        "KernelPCA(50).fit": lambda: mercer.KernelPCA(50).fit(X),
        "KernelRidge().fit on an array": lambda: mercer.KernelRidge().fit(X, y),
        "KernelRidge().fit on Dask": lambda: mercer.KernelRidge().fit(chunked, targets),
        "KernelRegressor().fit": lambda: mercer.KernelRegressor().fit(X, y),
        "mercer fit": command,
    }


def main() -> None:
    if "--way" in sys.argv:
        asked = sys.argv[sys.argv.index("--way") + 1]
        for what, call in walks().items():
            for (file, name), depth in way(call).items() if asked in what else ():
                print(f"{'  ' * depth}{name}  {file}")
        return
    files = modules()
    if "--docstrings" in sys.argv:
        found = clauses(files)
        print("\n".join([*found, f"{len(found)} docstrings begin with {', '.join(CLAUSES)}"]))
        sys.exit(bool(found))
    if "--names" in sys.argv:
        for (folder, name), users in sorted(crossing(files).items()):
            print(f"{folder}.{name}: {', '.join(sorted(users))}")
        return
    folders = Counter(file.folder for file in files)
    print(f"{'folder':<14}{'files':>6}{'lines':>8}{'annotated':>11}")
    for folder in sorted(folders):
        own = [file for file in files if file.folder == folder]
        lines = sum(file.text.count("\n") for file in own)
        print(f"{folder:<14}{len(own):>6}{lines:>8}{annotated(own):>10.0f}%")
    print(f"{'all':<14}{len(files):>6}{counts(files)['lines']:>8}{annotated(files):>10.0f}%\n")
    for what, count in counts(files).items():
        print(f"{count:>7}  {what}")
    print()
    for found in (repeated_names(files), repeated_files(files)):
        for name, where in found.items():
            print(f"  {name}: {', '.join(where)}")
        print()
    if "--static" in sys.argv:
        return
    for what, call in walks().items():
        n_files, n_functions = traced(call)
        print(f"{what:<32}{n_files:>4} files {n_functions:>5} functions")


if __name__ == "__main__":
    main()
