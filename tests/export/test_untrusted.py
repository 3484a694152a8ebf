"""Text from strangers: kernel expressions run nothing, reports and tables carry no live code."""

import csv
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest

from mercer import RBF, Linear, compare_kernels
from mercer.kernels.expressions import KernelExpressionError, parse_kernel

EXPRESSIONS = [
    "__import__('os').system('touch loot')",
    "eval('1')",
    "exec('import os')",
    "open('loot', 'w')",
    "().__class__.__bases__[0].__subclasses__()",
    "RBF.__init__.__globals__['os']",
    "RBF(1).__class__.__mro__",
    "RBF(1).set_params(gamma=2)",
    "RBF(gamma=__import__('os'))",
    "RBF(gamma=(lambda: 1)())",
    "RBF(gamma=[x for x in (1, 2)])",
    "RBF(*[1])",
    "RBF(**{'gamma': 1})",
    "FromFunction(print)",
    "FromFunction(eval)",
    "FromFeatures(open)",
    "OnFeatures(RBF(), exec)",
    "Rescaled(RBF(), print)",
    "Precomputed.__subclasses__()",
    "Linear().polynomial.__globals__",
    "Linear().exp.__self__",
    "(RBF() if open('loot') else RBF())",
    "RBF() or eval('1')",
    "[RBF()][0]",
    "{'a': RBF()}['a']",
    "f'{open(0)}'",
    "RBF(f'{1}')",
    "RBF(1) @ RBF(2)",
    "(k := RBF())",
    "yield RBF()",
    "await RBF()",
    "lambda: RBF()",
    "import os",
    "RBF(); import os",
    "RBF() # \n import os",
    "RBF('scale'.join(['a']))",
    "RBF('%s' % open)",
    "OnColumns(RBF(), __builtins__)",
    "globals()",
    "RBF(10 ** 10 ** 10)",
    "2 ** 2 ** 2 ** 2 ** 2 ** 2 * RBF()",
    "Polynomial(" + "(" * 300 + "2" + ")" * 300 + ")",
    "-" * 1500 + "RBF()",
    "RBF(1)" + " + RBF(1)" * 1000,
    "RBF(\x00)",
    "RBF(" + "9" * 299 + " * " + "9" * 299 + ")",
    "RBF(1 / 1e-308 * 1e10)",
    "OnColumns(RBF(), slice())",
    "OnColumns(RBF(), slice(1, 2, 3, 4))",
    "OnColumns(RBF(), slice('a'))",
    "OnColumns(RBF(), slice(stop=2))",
    "\uff32\uff22\uff26().__class__",
]


@pytest.mark.parametrize("text", EXPRESSIONS, ids=lambda t: t[:40])
def test_expressions_are_refused(text):
    with pytest.raises(KernelExpressionError) as refused:
        parse_kernel(text)
    assert len(str(refused.value)) > 20


def test_expressions_cause_no_event_that_python_audits():
    """Python itself reports imports, opened files, started processes and executed code."""
    code = (
        "import sys\n"
        "from mercer.kernels.expressions import parse_kernel\n"
        "seen = []\n"
        "watching = False\n"
        "def hook(event, args):\n"
        "    if watching and event.split('.')[0] in\\\n"
        "       ('exec', 'import', 'open', 'os', 'subprocess', 'socket', 'ctypes', 'shutil'):\n"
        "        seen.append((event, str(args)[:80]))\n"
        "def attempt(text):\n"
        "    try: parse_kernel(text)\n"
        "    except ValueError: return\n"
        "    raise AssertionError(text)\n"
        "texts = eval(sys.stdin.read())\n"
        "for text in texts: attempt(text)\n"  # what is imported lazily is imported now
        "sys.addaudithook(hook)\n"
        "watching = True\n"
        "for text in texts: attempt(text)\n"
        "watching = False\n"
        "assert not seen, seen\n"
    )
    subprocess.run([sys.executable, "-c", code], input=repr(EXPRESSIONS), text=True, check=True)


# --- reports --------------------------------------------------------------------------------------

MARKUP = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</title></head><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' onfocus='alert(1)' autofocus='",
    "<svg/onload=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<!--<script>",
    "]]><script>alert(1)</script>",
    "{{7*7}}{% raw %}",
    "${alert(1)}",
    "@{safe}",
    "\u2028alert(1)",
    "<style>*{background:url(//evil)}</style>",
    "<base href=//evil>",
    "<meta http-equiv=refresh content=0;url=//evil>",
]


class Live(HTMLParser):
    """Counts what a browser would act on."""

    def __init__(self):
        super().__init__()
        self.found = Counter()

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "iframe", "object", "embed", "base", "meta", "link", "svg", "style"):
            self.found[tag] += 1
        for name, value in attributes:
            if name.startswith("on") or name == "srcdoc":
                self.found[name] += 1
            if value and value.strip().lower().startswith(("javascript:", "http:", "https:", "//")):
                self.found[value] += 1


def live_parts(html):
    parser = Live()
    parser.feed(html)
    return parser.found


def report(label, column, kernel, title):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(24, 2)), columns=[column, "plain"])
    texts = frame.assign(text=[f"{label} {i}" for i in range(24)])
    y = np.where(frame["plain"] > 0, label, "other")
    found = compare_kernels(
        frame.to_numpy(),
        y,
        {kernel: RBF(0.5), "linear": Linear()},
        samples=texts,
        cv=2,
        repeats=1,
        embeddings=["kernel PCA"],
    )
    return found.to_html(title=title)


@pytest.mark.usefixtures("few_trees")
def test_reports_carry_no_markup_of_the_data():
    """The live parts of a page are the same for harmless and for hostile text."""
    pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")
    harmless = live_parts(report("label", "column", "kernel", "title"))
    assert harmless["script"] > 0
    for i in range(0, len(MARKUP), 4):
        chosen = (MARKUP[i : i + 4] + MARKUP)[:4]
        html = report(*chosen)
        assert live_parts(html) == harmless, chosen
        for text in chosen:
            if "<" in text:
                assert text not in html
        assert "49" not in html.split("<title>")[1].split("</title>")[0]  # {{7*7}} stays text


# --- tables ---------------------------------------------------------------------------------------

FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(1+1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    '  =HYPERLINK("http://evil")',
    "=1+1,=2+2",
    '"=1+1',
    "\ufeff=1+1",
    "\u200b=1+1",
    "\ufeff \t+1+1",
    "\uff1d1+1",
    "\uff0b1+1",
    "\uff0d1+1",
    "\uff20SUM(1)",
    "\u22121+1",
    "\u00a0=1+1",
]


def test_tables_hold_no_formulas(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("typer", reason="typer is not installed: mercer[cli]")
    from mercer.cli.file_data import write

    frame = pd.DataFrame({name: [name, -1.5] for name in FORMULAS})
    frame["number"] = [-2.5, 3.0]
    for ending in (".csv", ".tsv"):
        path = tmp_path / f"table{ending}"
        write(frame, path)
        with open(path, newline="") as file:
            cells = [
                c
                for row in csv.reader(file, delimiter="," if ending == ".csv" else "\t")
                for c in row
            ]
        live = [c for c in cells if _first_shown(c) in "=+@-\u2212" and not _is_number(c)]
        assert live == []
        assert "-2.5" in cells  # numbers stay numbers


def _first_shown(text):
    """The first character that a spreadsheet shows, in its ordinary width."""
    hidden = "\ufeff\u200b\u00a0 \t\n\r"
    wide = {"\uff1d": "=", "\uff0b": "+", "\uff0d": "-", "\uff20": "@"}
    first = next((c for c in text if c not in hidden), "x")
    return wide.get(first, first)


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
