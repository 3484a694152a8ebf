"""Other folders import from a folder's `__init__` only: this script rewrites the imports so.

`python tools/doors.py` says what it would do; `--write` does it, after which `make format` sorts
the imports. Folders import one way, so that a door makes no cycle. It can be run again: names that
nobody needs any more leave the door. Names that two files of a folder define, or that another file
of the folder has, stay as they are and are listed: tests/test_architecture.py refuses them.
"""

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "mercer"
FOLDERS = ("engine", "kernels", "rows", "space", "solve", "learn", "tables")
FOLDERS += ("estimators", "statistics", "export")
# Folders of which most calls need a part only: their names are imported when first asked for.
LAZY = ("estimators", "export", "statistics")
BEGIN, END = "# --- the door: written by tools/doors.py", "# --- end of the door"


def imports(path):
    """(node, folder, file within it) of the imports that go past the door of another folder."""
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            parts = [*base, *(node.module or "").split(".")]
            if len(parts) >= 2 and parts[0] in FOLDERS and parts[0] != (*package, "")[0]:
                yield node, parts[0], ".".join(parts[1:])


def files():
    return [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def eager(folder):
    """Names that the folder's `__init__` imports by itself."""
    text = without_door((ROOT / folder / "__init__.py").read_text())
    tree = ast.parse(text)
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in nodes for alias in node.names}


def without_door(text):
    return re.sub(rf"\n*{BEGIN}.*?{END}\n", "\n", text, flags=re.S)


def wanted():
    """{folder: {name: files that it is imported from}}, old doors included."""
    found = defaultdict(lambda: defaultdict(set))
    found["engine"]["door"].add("doors")  # of which lazy doors are made
    for path in files():
        for node, folder, file in imports(path):
            for alias in node.names:
                found[folder][alias.name].add(file)
    for folder in FOLDERS:
        text = (ROOT / folder / "__init__.py").read_text()
        door = re.search(rf"{BEGIN}.*?{END}", text, flags=re.S)
        for node in ast.walk(ast.parse(door[0])) if door else ():
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                for alias in node.names:
                    if still_used(folder, alias.name):
                        found[folder][alias.name].add(node.module)
    return found


def still_used(folder, name):
    pattern = re.compile(rf"from \.+{folder} import [^\n]*?(\([^)]*?)?\b{name}\b", re.S)
    return any(pattern.search(path.read_text()) for path in files())


def plan():
    """{folder: {name: file}} of the names that go through doors, and those that cannot."""
    through, not_through = {}, []
    for folder, names in wanted().items():
        stems = {path.stem for path in (ROOT / folder).glob("*")}
        own = eager(folder)
        through[folder] = {}
        for name, homes in sorted(names.items()):
            # A file that is imported later would take the place of the name in its folder.
            own_file = homes == {name} and folder not in LAZY
            if len(homes) > 1 or (name in stems and not own_file):
                not_through.append(f"{folder}: {name} ({', '.join(sorted(homes))})")
            else:
                through[folder][name] = None if name in own else next(iter(homes))
    return through, not_through


def rewrite(path, through):
    lines = path.read_text().splitlines(keepends=True)
    edits = []
    for node, folder, _ in imports(path):
        go = [alias for alias in node.names if alias.name in through.get(folder, {})]
        if not go:
            continue
        indent = " " * node.col_offset
        dots = "." * node.level
        head = [part for part in (node.module or "").split(".")]
        shared = "" if node.level > len(path.relative_to(ROOT).parts) - 1 else folder
        assert head[0] == folder, (path, node.lineno)
        text = f"{indent}from {dots}{shared or folder} import {', '.join(map(ast.unparse, go))}\n"
        stay = [alias for alias in node.names if alias not in go]
        if stay:
            listed = ", ".join(map(ast.unparse, stay))
            text += f"{indent}from {dots}{node.module} import {listed}\n"
        edits.append((node.lineno - 1, node.end_lineno, text))
    for start, stop, text in sorted(edits, reverse=True):
        lines[start:stop] = [text]
    path.write_text("".join(lines))


def write_door(folder, names):
    homes = defaultdict(list)
    for name, file in names.items():
        if file is not None:
            homes[file].append(name)
    path = ROOT / folder / "__init__.py"
    text = without_door(path.read_text()).rstrip() + "\n"
    shown = "".join(f"from .{f} import {', '.join(n)}\n" for f, n in sorted(homes.items()))
    if homes and folder in LAZY:
        listed = "".join(f'"{f}": "{" ".join(n)}",\n' for f, n in sorted(homes.items()))
        shown = (
            "from typing import TYPE_CHECKING as _TYPE_CHECKING\n\n"
            "from ..engine import door as _door\n\n"
            "if _TYPE_CHECKING:\n" + "".join(f"    {line}\n" for line in shown.splitlines()) + "\n"
            f"__getattr__ = _door(__name__, {{{listed}}})\n"
        )
    path.write_text(text + (f"\n{BEGIN}\n{shown}{END}\n" if homes else ""))


def main():
    through, not_through = plan()
    n = {folder: len(names) for folder, names in through.items()}
    print(f"{sum(n.values())} names go through doors: {n}")
    print("\n".join(["as they are:", *not_through]))
    if "--write" in sys.argv:
        for path in files():
            rewrite(path, through)
        for folder, names in through.items():
            write_door(folder, names)


if __name__ == "__main__":
    main()
