"""The lessons of the course: one layout, and every line runs, solutions of exercises included."""

import ast
import re
import runpy
from pathlib import Path

import pytest

LESSONS = sorted((Path(__file__).parent.parent / "docs/ideas").glob("plot_*.py"))
SECTIONS = [
    "The statement",
    "Ten lines of NumPy",
    "In mercer",
    "The picture",
    "Exercise",
    "Solution",
    "In the sources",
]
HEADING = re.compile(r"^(?:# )?(.+)\n(?:# )?-{4,}$", re.MULTILINE)

every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)


def sections(lesson):
    """The text of each section, by its heading."""
    text = lesson.read_text()
    parts = HEADING.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def statements(section):
    """How many statements a section has, imports not counted."""
    tree = ast.parse(section.rpartition('"""')[2])
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return sum(not isinstance(node, (ast.Import, ast.ImportFrom)) for node in found)


def test_there_are_twelve():
    numbers = [int(lesson.stem.split("_")[1]) for lesson in LESSONS]
    assert numbers == list(range(1, 13))


@every_lesson
def test_the_layout_is_the_same(lesson):
    parts = sections(lesson)
    assert list(parts) == SECTIONS
    assert "∎" in parts["The statement"]
    assert "*Proof.*" in parts["The statement"]
    assert 4 <= statements(parts["Ten lines of NumPy"]) <= 15
    assert "mercer" not in parts["Ten lines of NumPy"].partition('"""')[2]
    assert "from mercer import" in parts["In mercer"]
    assert parts["The picture"].count("plt.show()") == 1
    assert re.search(r"^\s*assert ", parts["Solution"], re.MULTILINE)


@every_lesson
def test_every_line_runs(lesson, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    if "openTSNE" in lesson.read_text():
        pytest.importorskip("openTSNE")
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.get_fignums()))
    runpy.run_path(str(lesson))
    assert [len(figures) for figures in shown] == [1]
    assert any(ax.get_title() for ax in plt.gcf().axes)  # the page's alternative text
    plt.close("all")
    assert capsys.readouterr().out.count("\n") >= 3


@pytest.mark.parametrize("number", [1, 3, 6, 8], ids=["validity", "map", "PCA", "ridge"])
def test_a_kernel_moves_under_a_slider(number):
    assert "# .. slider:: " in LESSONS[number - 1].read_text()
