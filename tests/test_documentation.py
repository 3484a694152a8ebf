"""Every block of README.md and docs/ runs, in order, one namespace a page.

A ```text block right after a ```python block is its expected output (doctest's ELLIPSIS allowed).
Lines of ```sh blocks that call mercer are run. A page that says <!-- needs: torch --> is skipped
where that package is missing. Gallery pages run in `make docs`.
"""

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUILT = ("_build", "auto_examples", "auto_ideas", "generated")
PAGES = [
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if not set(page.parts) & set(BUILT)
]
BLOCK = re.compile(
    r"^```(python|sh)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
NEEDS = re.compile(r"<!-- needs: ([\w, ]+) -->")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

by_path = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())


@by_path
def test_blocks_run(page, tmp_path, monkeypatch):
    text = page.read_text()
    for needed in NEEDS.findall(text):
        for package in needed.split(","):
            pytest.importorskip(package.strip())
    monkeypatch.chdir(tmp_path)  # pages may write files
    names = {"__name__": "page"}
    for match in BLOCK.finditer(text):
        language, code, expected = match.groups()
        line = text[: match.start()].count("\n") + 1
        if language == "sh":
            run_commands(code)
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, str(page), "exec"), names)
        if expected is not None:
            same = doctest.OutputChecker().check_output(expected, printed.getvalue(), FLAGS)
            assert same, f"line {line} prints\n{printed.getvalue()}\ninstead of\n{expected}"
    close_figures()


def run_commands(code):
    for command in code.splitlines():
        if command.startswith("mercer "):
            pytest.importorskip("typer")
            arguments = shlex.split(command, comments=True)[1:]
            subprocess.run(
                [sys.executable, "-m", "mercer.cli", *arguments], check=True, capture_output=True
            )


def close_figures():
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@by_path
def test_links_to_files_lead_somewhere(page):
    for link in LINK.findall(page.read_text()):
        if "://" in link or link.startswith(("#", "mailto:")):
            continue
        assert (page.parent / link.split("#")[0]).exists(), f"{page.name}: no file for {link}"


def test_every_public_name_has_a_reference_page():
    import types

    import mercer

    listed = (ROOT / "docs/reference.md").read_text().split()
    public = [
        name
        for name, value in vars(mercer).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    ]
    assert [name for name in public if name not in listed] == []


def test_front_page_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


@pytest.mark.parametrize("name", ["tables", "check_links"])
def test_scripts_of_the_documentation_import(name):
    source = (ROOT / f"docs/{name}.py").read_text()
    compile(source, name, "exec")
