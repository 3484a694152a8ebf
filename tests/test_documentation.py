"""Every Python block of README.md and docs/ runs, in order, one namespace a page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [p for p in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] if p.exists()]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages may write files
    text = page.read_text()
    names = {"__name__": "page"}
    for match in BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 1
        exec(compile("\n" * line + match.group(1), str(page), "exec"), names)
