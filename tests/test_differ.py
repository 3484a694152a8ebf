"""mercer differ: answers, exit codes, pages."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="typer is not installed: mercer[cli]")
pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")


FEW = ["--permutations", "99"]


@pytest.fixture
def run(run):
    return partial(run, "differ")


@pytest.fixture
def files(tmp_path, rng):
    def table(n, rise):
        return pd.DataFrame(
            {
                "id": np.arange(n),
                "age": rng.normal(40, 10, n).round(),
                "income": (rng.lognormal(10, 0.4, n) * rise).round(),
                "town": rng.choice(["Rome", "<b>Oslo</b>"], n),
            }
        )

    table(150, 1.0).to_csv(tmp_path / "old.csv", index=False)
    table(120, 1.8).to_csv(tmp_path / "new.csv", index=False)
    table(120, 1.0).to_csv(tmp_path / "same.csv", index=False)
    return tmp_path


def test_files_that_differ(run, files):
    code, out, err = run("old.csv", "new.csv", *FEW)
    assert code == 1
    assert "The files differ" in out
    assert "income" in out.split("Columns")[1].splitlines()[1]
    assert "one value per row were left out: id" in err
    page = (files / "differ.html").read_text()
    assert "Where they differ" in page
    assert "<b>Oslo</b>" not in page


def test_files_that_do_not(run, files):
    code, out, _ = run("old.csv", "same.csv", "--no-page", *FEW)
    assert code == 0
    assert "No difference found between the files" in out
    assert not (files / "differ.html").exists()


def test_names_of_files_are_written_as_they_are(run, files):
    for name in ("old", "same"):
        text = (files / f"{name}.csv").read_text().replace(",", ";")
        (files / f"{name}.csv").write_text(text)
    _, _, err = run("old.csv", "same.csv", "--no-page", *FEW)
    assert "In old.csv: columns are separated by semicolons" in " ".join(err.split())


def test_separator_and_encoding_of_both_files(run, files):
    for name in ("old", "new"):
        text = (files / f"{name}.csv").read_text().replace(",", "|").replace("Rome", "Zürich")
        (files / f"{name}.csv").write_bytes(text.encode("latin-1"))
    options = ("--sep", "|", "--encoding", "latin-1", "--no-page", "--json", *FEW)
    code, out, _ = run("old.csv", "new.csv", *options)
    assert code == 1
    assert set(json.loads(out)["columns"]) == {"age", "income", "town"}


def test_for_scripts(run, files):
    code, out, err = run("old.csv", "new.csv", "--json", "--no-page", "--ignore", "town", *FEW)
    assert code == 1
    assert err == ""
    answer = json.loads(out)
    assert answer["differs"] is True
    assert answer["p_value"] == 0.01
    assert answer["rows"] == {"old": 150, "new": 120}
    assert max(answer["columns"], key=answer["columns"].get) == "income"
    assert len(answer["examples"]["new"]) == 5


def test_bad_input_is_one_line_and_exit_code_2(run, files):
    (files / "other.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    for arguments, message in (
        (["old.csv", "missing.csv"], "does not exist"),
        (["old.csv", "other.csv"], "no column in common"),
        (
            ["old.csv", "new.csv", "--ignore", "x"],
            "no column 'x'; the columns are: id",
        ),
        (["old.csv", "new.csv", "-o", "nowhere/p.html"], "no folder"),
        (["old.csv", "new.csv", "--level", "3"], "level must be"),
    ):
        code, _, err = run(*arguments)
        assert code == 2
        assert message in err


def test_a_column_of_another_kind_is_a_difference(run, files, rng):
    """Names of towns in one file, codes in the other."""
    old = pd.read_csv(files / "old.csv")
    codes = [f"T{i:04d}" for i in rng.choice(9000, 120, replace=False)]
    old.iloc[:120].assign(town=codes).to_csv(files / "codes.csv", index=False)
    code, out, err = run("old.csv", "codes.csv", "--no-page", *FEW)
    assert code == 1
    assert "town" in out.split("Columns")[1].splitlines()[1]
    assert "kind of town changed: category in old.csv, identifier in codes.csv" in " ".join(
        err.split()
    )
