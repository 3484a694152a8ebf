"""A fit that was killed goes on from what its search had found."""

import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from mercer import KernelClassifier, KernelRegressor
from mercer.estimators import learned_model
from mercer.export.checkpoint import Checkpoint

QUICK = {"n_rounds": 1, "max_landmarks": 60}


@pytest.fixture
def table(rng):
    table = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    table["town"] = rng.choice(["Rome", "Oslo"], 120)
    return table, np.sin(table["a"]) + (table["town"] == "Rome")


@pytest.mark.parametrize("groups", [None, np.arange(120) % 6], ids=["plain", "groups"])
def test_the_search_is_not_repeated(table, groups, tmp_path, monkeypatch):
    X, y = table
    parts = Checkpoint(tmp_path / "parts")
    expected = KernelRegressor(**QUICK).fit(X, y, groups=groups, checkpoint=parts)
    assert len(parts) == (1 if groups is None else 6)

    def never(*_, **__):
        raise AssertionError("searched again")

    monkeypatch.setattr(learned_model, "learn_from", never)
    again = KernelRegressor(**QUICK).fit(X, y, groups=groups, checkpoint=parts)
    for one, other in zip(*(m.predict(X, return_std=True) for m in (expected, again))):
        assert_array_equal(one, other)
    assert again.leave_one_out_rmse_ == expected.leave_one_out_rmse_
    assert again.encoder_.columns_ == expected.encoder_.columns_
    parts.clear()
    assert not (tmp_path / "parts").exists()


def test_a_checkpoint_changes_nothing(table):
    X, y = table
    models = (KernelRegressor(**QUICK).fit(X, y, checkpoint=parts) for parts in (None, {}))
    assert_array_equal(*(model.predict(X) for model in models))


def test_other_rows_and_parameters_do_not_find_it(table):
    X, y = table
    parts: dict = {}
    KernelRegressor(**QUICK).fit(X, y, checkpoint=parts)
    KernelRegressor(**QUICK).fit(X, y + 1e-9, checkpoint=parts)
    KernelRegressor(**QUICK).fit(X, y, np.full(120, 2.0), checkpoint=parts)
    KernelRegressor(**QUICK | {"n_rounds": 2}).fit(X, y, checkpoint=parts)
    KernelClassifier(**QUICK).fit(X, y > 0.5, checkpoint=parts)
    assert len(parts) == 5
    KernelRegressor(**QUICK, verbose=True).fit(X, y, checkpoint=parts)
    assert len(parts) == 5


def test_a_damaged_part_is_found_again(table, tmp_path):
    X, y = table
    parts = Checkpoint(tmp_path / "parts")
    KernelRegressor(**QUICK).fit(X, y, checkpoint=parts)
    (only,) = (tmp_path / "parts").iterdir()
    only.write_bytes(only.read_bytes()[:100])
    KernelRegressor(**QUICK).fit(X, y, checkpoint=parts)
    assert len(only.read_bytes()) > 100


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_command_goes_on_after_a_kill(table, tmp_path):
    """Killed in its last fit, without a chance to clean up; the next run does not search."""
    X, y = table
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    script = """
        import os, sys
        from mercer.cli.app import _app
        from mercer.estimators import learned_model
        def stop(*_, **__):
            os.kill(os.getpid(), 9)
        setattr(learned_model, sys.argv.pop(1), stop)
        _app(sys.argv[1:], standalone_mode=False)
    """
    command = ["fit", "t.csv", "-t", "y", "-o", "m.mercer", "--no-compare"]

    def run(where):
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), where, *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("solve_ridge").returncode == -9
    assert len(Checkpoint(tmp_path / "m.mercer.parts")) == 1
    second = run("learn_from")
    assert second.returncode == 0, second.stderr
    assert "goes on from there" in " ".join(second.stderr.split())
    assert not (tmp_path / "m.mercer.parts").exists()
