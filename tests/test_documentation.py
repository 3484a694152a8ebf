"""Every block of README.md and docs/ runs, in order, in one namespace per page.

A ```text block right after a ```python block is its expected output (doctest's ELLIPSIS allowed).
Numbers may differ by 2 %, and numbers below 1e-6 are rounding errors of any size below that: both
depend on the BLAS library, and pages should show values instead of comparisons.
Values printed by scikit-learn's own models change between its versions: before 1.9 pages only run.
Lines of ```sh blocks that call mercer are run. A page that says <!-- needs: torch --> is skipped
where that package is missing. Gallery pages run in `make docs`.
"""

import contextlib
import doctest
import io
import re
import shlex
import sys
from pathlib import Path

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

ROOT = Path(__file__).parent.parent
BUILT = ("_build", "auto_examples", "auto_ideas", "generated")
PAGES = [
    page
    for page in [*sorted(ROOT.glob("[!.]*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
    if not set(page.parts) & set(BUILT)
]
BLOCK = re.compile(
    r"^```(python|sh)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
NEEDS = re.compile(r"<!-- needs: ([\w, ]+) -->")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?(?![\w])")

CURRENT = parse_version(sklearn.__version__) >= parse_version("1.9")

by_path = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())


@by_path
def test_blocks_run(page, tmp_path, monkeypatch, request):
    text = page.read_text()
    for needed in NEEDS.findall(text):
        for package in needed.split(","):
            pytest.importorskip(package.strip())
    if "LocalCluster" in text:
        request.getfixturevalue("quick_workers")
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
        if expected is not None and CURRENT:
            assert same_output(expected, printed.getvalue()), (
                f"line {line} prints\n{printed.getvalue()}\ninstead of\n{expected}"
            )
    close_figures()


def same_output(expected, printed):
    """Equal texts, or texts that differ in the last digits of their numbers."""
    if doctest.OutputChecker().check_output(expected, printed, FLAGS):
        return True
    shown, found = NUMBER.findall(expected), NUMBER.findall(printed)
    words = [NUMBER.sub("", text).split() for text in (expected, printed)]
    return (
        words[0] == words[1]
        and len(shown) == len(found)
        and all(close(float(a), float(b)) for a, b in zip(shown, found, strict=True))
    )


def close(a, b):
    rounding_errors = max(abs(a), abs(b)) < 1e-6
    return rounding_errors or abs(a - b) <= 0.02 * max(abs(a), abs(b))


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("rank 131 error 3e-14", "rank 132 error 8e-15", True),
        ("rank 131 error 3e-14", "rank 141 error 8e-15", False),
        ("error 3e-14", "error 2e-5", False),
        ("0.97 good", "0.98  good", True),
        ("0.97 good", "0.98 bad", False),
        ("0.97", "0.97 0.97", False),
        ("True ...", "True 12", True),
    ],
)
def test_numbers_are_compared_with_a_tolerance(expected, printed, same):
    assert same_output(expected, printed) is same


def run_commands(code):
    for command in code.splitlines():
        if command.startswith("mercer "):
            pytest.importorskip("typer")
            from mercer.cli import main

            # In this process: starting another one takes longer than most commands. What they
            # print is not compared, and so a few of gradient boosting's trees will do.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("mercer.explore.compare.baselines._MOST_TREES", 20)
                patch.setattr(sys, "argv", shlex.split(command, comments=True))
                with contextlib.redirect_stdout(io.StringIO()):
                    assert main() == 0, command


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


def test_pages_install_what_can_be_installed():
    """From a clone, until there is a release on the package index: docs/start.md says so."""
    published = "not on PyPI yet" not in (ROOT / "README.md").read_text()
    named = [path.name for path in PAGES if re.search(r"pip install .?mercer", path.read_text())]
    assert published or named == []


def test_front_page_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


@pytest.mark.parametrize("name", ["tables", "check_links"])
def test_scripts_of_the_documentation_import(name):
    source = (ROOT / f"docs/{name}.py").read_text()
    compile(source, name, "exec")


# "one a column" for "one per column", "is no kernel" for "is not a kernel".
PUZZLES = re.compile(
    r"\b(one|number|coefficient|value) a (column|row|class|kernel|sample|partition|worker)\b"
    r"|(?<![Tt]here )\b(is|are) no (kernels?|files?|vectors?|tensors?|landmarks?)\b"
)


def test_texts_are_in_plain_english():
    code = [
        *ROOT.glob("src/mercer/**/*.py"),
        *ROOT.glob("examples/*.py"),
        *ROOT.glob("docs/*/*.py"),
    ]
    sources = [path for path in code if not set(path.parts) & set(BUILT)]
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in [*PAGES, *sources]
        for match in PUZZLES.finditer(path.read_text())
    ]
    assert found == []


@by_path
def test_pages_show_values_instead_of_true(page):
    outputs = [match[3] or "" for match in BLOCK.finditer(page.read_text())]
    bare = [text for text in outputs if re.search(r"^(True|False)( (True|False))*$", text, re.M)]
    assert bare == []
