"""mercer explore: it serves a page until it is interrupted, and refuses what it cannot show."""

import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="typer is not installed: mercer[cli]")
pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")

from mercer.cli import main

# Processes that a shell starts in the background ignore Ctrl-C, and so would their children.
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from mercer.cli import main; sys.exit(main())"
)


def _refused(monkeypatch, capfd, *arguments):
    monkeypatch.setattr(sys, "argv", ["mercer", "explore", *map(str, arguments)])
    assert main() == 2
    return capfd.readouterr().err


def test_bad_input_is_told_in_one_line(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": [0, 1, 0, 1, 0]}).to_csv("t.csv", index=False)
    assert "--demo" in _refused(monkeypatch, capfd)
    assert "--demo" in _refused(monkeypatch, capfd, "t.csv", "--demo")
    assert "no column 'c'" in _refused(monkeypatch, capfd, "t.csv", "-t", "c")
    assert "Did you mean RBF" in _refused(monkeypatch, capfd, "t.csv", "-k", "RBG()")
    assert "Gram matrix" in _refused(monkeypatch, capfd, "t.csv", "-k", "Precomputed()")


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_a_file_is_served_until_ctrl_c(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "town": rng.choice(["Rome", "Oslo"], 60)})
    frame["y"] = np.where(frame["x"] > 0, "up", "down")
    frame.to_csv(tmp_path / "data.csv", index=False)
    command = [sys.executable, "-c", START, "explore", "data.csv", "-t", "y", "--no-open"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        url = running.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url) as answer:
            assert answer.status == 200
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "Traceback" not in errors
