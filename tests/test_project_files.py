"""The files that everyone knows where to find say what is so: workflows, policies, versions."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import mercer

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: mercer[test]")

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
VARIABLES = set(re.findall(r"^([A-Z_]+) \?=", MAKEFILE, re.MULTILINE))
LINE = re.compile(r'make ([a-z-]+)((?: [A-Z_]+=(?:"[^"]*"|[^\s"]+))*)')


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def steps(workflow):
    for job in yaml.safe_load(read(workflow))["jobs"].values():
        yield from job["steps"]


def unknown_command(line):
    """Why a `run:` line of a workflow would fail, or None."""
    match = LINE.fullmatch(line)
    if match is None:
        return "not one call of make"
    if match[1] not in TARGETS:
        return f"no target {match[1]}"
    unknown = set(re.findall(r"([A-Z_]+)=", match[2])) - VARIABLES
    return f"no variable {unknown}" if unknown else None


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_make(workflow):
    lines = [step["run"] for step in steps(workflow) if "run" in step]
    assert lines
    assert {line: why for line in lines if (why := unknown_command(line))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "pip install mercer",
        "make tests",
        "make test && echo done",
        "make test\nmake lint",
        "make test PYTHONS=python",
    ],
)
def test_other_commands_are_found(line):
    assert unknown_command(line)


def test_workflows_cover_systems_and_both_ends_of_versions():
    jobs = yaml.safe_load(read(".github/workflows/check.yml"))["jobs"]
    systems = {name.split("-")[0] for name in jobs["test"]["strategy"]["matrix"]["os"]}
    assert systems == {"ubuntu", "macos", "windows"}
    lines = " ".join(step.get("run", "") for step in steps(".github/workflows/check.yml"))
    assert {"lint", "test", "test-oldest", "test-newest", "docs", "release"} <= set(
        re.findall(r"make ([a-z-]+)", lines)
    )


def test_the_whole_suite_has_a_floor_for_the_lines_it_runs():
    (line,) = re.findall(r"^COVERAGE := (.*)$", MAKEFILE, re.MULTILINE)
    assert "--cov" in line
    assert "$(PYTEST_ARGS) $(COVERAGE)" in MAKEFILE.split("\ntest:")[1].split("\n\n")[0]
    assert tomllib.loads(read("pyproject.toml"))["tool"]["coverage"]["report"]["fail_under"] >= 90


def test_a_tag_publishes_without_a_password():
    jobs = yaml.safe_load(read(".github/workflows/release.yml"))["jobs"]
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in read(".github/workflows/release.yml")


def test_hooks_before_a_commit_are_those_of_lint():
    (local,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    hooks = {hook["id"]: hook["entry"] for hook in local["hooks"]}
    assert hooks.keys() == {"ruff", "ruff-format", "docstrings"}
    assert hooks["docstrings"].removeprefix("python ") in MAKEFILE


@pytest.mark.parametrize("template", sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.md")), ids=str)
def test_templates_have_a_head(template):
    head = yaml.safe_load(template.read_text(encoding="utf-8").split("---")[1])
    assert {"name", "about"} <= head.keys()


def test_the_pull_request_template_names_pages_that_exist():
    named = re.findall(r"(docs/[\w/.]+\.md), \"(.+?)\"", read(".github/pull_request_template.md"))
    assert named
    for page, heading in named:
        assert f"## {heading}\n" in read(page)


# --- policies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/contribute/index.md", "docs/stability.md"])
def test_tests_that_pages_name_exist(page):
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", read(page))
    assert named
    for path, test in named:
        assert f"def {test}(" in read(path) if test else (ROOT / path).exists(), (path, test)


# --- versions -------------------------------------------------------------------------------------


def test_the_version_is_written_once():
    version = PROJECT["version"]
    assert mercer.__version__ == version
    assert yaml.safe_load(read("CITATION.cff"))["version"] == version
    headings = re.findall(r"^## \[(.+)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]
    code = [p for p in (ROOT / "src").rglob("*.py") if f'"{version}"' in p.read_text("utf-8")]
    assert code == []


def test_the_citation_is_complete():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["license"] == PROJECT["license"]
    assert {"cff-version", "message", "title", "authors", "abstract", "references"} <= set(citation)
    for work in citation["references"]:
        assert {"type", "title", "authors"} <= set(work)


def test_what_is_missing_is_said_before_anything_is_published(tmp_path):
    unfinished = runpy.run_path(str(ROOT / "tools/release.py"))["unfinished"]
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nversion = "0.2.0"\n[project.urls]\nSource = ""'
    )
    (tmp_path / "CITATION.cff").write_text("version: 0.2.0\n# date-released\nrepository-code:\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/start.md").write_text("pip install mercer")
    (tmp_path / "README.md").write_text("0.2.0 is not on PyPI yet")
    said = list(unfinished("v0.1.0", tmp_path))
    named = ["v0.2.0", "project.urls", "repository-code", "date-released", "not on PyPI"]
    assert [word for word, line in zip(named, said, strict=True) if word not in line] == []
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nversion = "0.2.0"\n[project.urls]\nSource = "https://example.org"'
    )
    (tmp_path / "CITATION.cff").write_text(
        "repository-code: https://example.org\ndate-released: 2026-01-31\n"
    )
    (tmp_path / "README.md").write_text("pip install mercer")
    assert list(unfinished("v0.2.0", tmp_path)) == []
    assert "--tag ${{ github.ref_name }}" in read(".github/workflows/release.yml")


def constraints(name):
    lines = [line.split("#")[0].strip() for line in read(f"constraints/{name}").splitlines()]
    return dict(re.fullmatch(r"([\w.-]+)((?:==|<).+)", line).groups() for line in lines if line)


def test_oldest_versions_are_the_lower_ends():
    oldest = constraints("oldest.txt")
    lower = dict(re.findall(r"^([\w-]+)>=([\d.]+)$", "\n".join(PROJECT["dependencies"]), re.M))
    assert lower
    assert {name: oldest[name] for name in lower} == {n: f"=={v}.*" for n, v in lower.items()}
    assert "constraints/oldest.txt" in MAKEFILE


def test_every_direct_dependency_has_a_tested_version():
    parts = ("plots", "tsne", "report", "frames", "dask", "onnx", "fourier", "alignment", "cli")
    listed = [*PROJECT["dependencies"], *(line for part in parts for line in EXTRAS[part])]
    names = {re.match(r"[\w.-]+", line)[0] for line in listed} - {"mercer"}
    tested = constraints("tested.txt")
    assert names <= tested.keys()
    assert f"torch{tested['torch']}" in MAKEFILE


def test_classifiers_name_the_pythons_that_are_tested():
    named = {c.split(" :: ")[-1] for c in PROJECT["classifiers"] if "Python :: 3." in c}
    used = {
        step["with"]["python-version"]
        for step in steps(".github/workflows/check.yml")
        if "setup-python" in step.get("uses", "")
    }
    assert named == used
    assert PROJECT["requires-python"] == f">={min(named)}"
