"""Windows and macOS, as far as Linux can play them (docs/stability.md says what was not tried)."""

import multiprocessing
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, KernelRidge, read_table

X = np.random.default_rng(0).normal(size=(30, 2))


def run(code, cwd, **environment):
    """A fresh Python that runs `code`; what it prints."""
    paths = os.pathsep.join([path for path in sys.path if path])
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", textwrap.dedent(code)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": paths} | environment,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout


def test_spawned_processes_fit_and_predict():
    model = KernelRidge(0.1, RBF(0.5))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        fitted = pool.apply(model.fit, (X, X[:, 0]))
        there = pool.apply(fitted.predict, (X,))
    assert_allclose(there, model.fit(X, X[:, 0]).predict(X), rtol=1e-12)


# Names that Python has on Linux, and not on Windows.
NOT_ON_WINDOWS = [
    *("fork", "register_at_fork", "sysconf", "getuid", "geteuid", "fchown", "chown"),
    *("sched_getaffinity", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"),
]


def test_without_fork(tmp_path):
    printed = run(
        f"""
        import os
        import joblib, numpy as np, psutil, sklearn, threadpoolctl  # as they are on this system
        for name in {NOT_ON_WINDOWS}:
            if hasattr(os, name):
                delattr(os, name)
        really_open = os.open
        def no_folders(path, *args, **kwargs):  # Windows opens files alone
            if os.path.isdir(path):
                raise PermissionError(13, "Permission denied", path)
            return really_open(path, *args, **kwargs)
        os.open = no_folders
        from mercer import RBF, KernelMap, KernelRidge, load, save
        X = np.random.default_rng(0).normal(size=(300, 2))
        model = KernelRidge(0.1, KernelMap(RBF(0.5), n_jobs=2)).fit(X, X[:, 0])
        for _ in range(2):  # the second replaces the first
            save(model, "model.mercer")
        print((load("model.mercer").predict(X) == model.predict(X)).all(), os.listdir())
        """,
        tmp_path,
    )
    assert printed.split() == [b"True", b"['model.mercer']"]


@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "with a mark of byte order"])
def test_tables_with_lines_of_windows(tmp_path, start):
    pandas = pytest.importorskip("pandas")
    lines = ["town,size,note", "Köln,1.5,one", 'Bonn,2.5,"two, three"', "Ulm,,"]
    unix, windows = tmp_path / "unix.csv", tmp_path / "windows.csv"
    unix.write_bytes("\n".join([*lines, ""]).encode())
    windows.write_bytes((start + "\r\n".join([*lines, ""])).encode())
    found = read_table(windows)[0]
    assert found.columns.tolist() == ["town", "size", "note"]
    pandas.testing.assert_frame_equal(found, read_table(unix)[0])


LOCALES = {
    "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "cp1252": {"PYTHONIOENCODING": "cp1252", "LC_ALL": "C", "PYTHONUTF8": "0"},
}


@pytest.mark.parametrize("encoding", LOCALES)
def test_a_locale_that_is_not_utf_8(tmp_path, encoding):
    """Files are UTF-8 all the same, and what a terminal cannot show is no error."""
    pytest.importorskip("typer")
    rows = [f"{x:.3f},{'Köln' if x > 0 else 'Ulm'},{x + z:.3f}" for x, z in X]
    (tmp_path / "towns.csv").write_bytes("\n".join(["größe,stadt,wert", *rows]).encode())
    printed = run(
        """
        import sys, warnings
        warnings.filterwarnings("error", category=EncodingWarning, module="mercer")
        import mercer.explore.compare.baselines as baselines
        from mercer.cli import main
        baselines._MOST_TREES = 5
        for line in ["fit -t wert -o model.mercer", "compare -t wert --cv 2 -k Linear() -k RBF()"]:
            sys.argv = ["mercer", *line.split()[:1], "towns.csv", *line.split()[1:]]
            assert main() == 0, line
        sys.argv = ["mercer", "predict", "model.mercer", "towns.csv", "-o", "out.csv"]
        assert main() == 0
        """,
        tmp_path,
        **LOCALES[encoding],
    )
    assert b"RMSE" in printed
    assert "größe" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "out.csv").read_bytes().decode("utf-8").count("\n") == len(X) + 1
