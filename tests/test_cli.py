"""The command: answers, files, exit codes, and one short line where the input is bad."""

import io
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

pytest.importorskip("typer", reason="typer is not installed: mercer[cli]")
pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")

from mercer import (
    RBF,
    KernelMap,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    compare_kernels,
)
from mercer.cli import file_data, main
from mercer.cli.file_data import BadInput

pytestmark = pytest.mark.usefixtures("few_trees")

FORMULA = "=HYPERLINK(1)"


@pytest.fixture
def frame():
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["species"] = np.array(["setosa", "versicolor", FORMULA])[y]
    return frame


@pytest.fixture
def table(frame, tmp_path):
    frame.to_csv(tmp_path / "iris.csv", index=False)
    return "iris.csv"


SMALL = ["--kernel", "Linear()", "--max-points", "60", "--cv", "3"]


@pytest.fixture(scope="module")
def iris_and_a_sigmoid():
    X, y = load_iris(return_X_y=True)
    kernels = {
        "Polynomial(2) + 0.5 * Laplacian()": Polynomial(2) + 0.5 * Laplacian(),
        "Sigmoid(1, -1)": Sigmoid(1.0, -1.0),
    }
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return compare_kernels(X[::3], y[::3], kernels, cv=2, repeats=1, embeddings=[])


# --- compare --------------------------------------------------------------------------------------


def test_compare_prints_a_table_and_writes_a_page(run, table, tmp_path):
    kernels = ["-k", "RBF(0.1)", "-k", "Linear() * 2", "--cv", "3"]
    also = ["--png", "p.png", "--table", "t.csv"]
    code, out, err = run("compare", table, "--target", "species", *kernels, *also)
    assert code == 0
    assert "RBF(0.1)" in out
    assert "Linear() * 2" in out
    assert "these" in out
    assert "gradient boosting" in out
    assert "from mercer import" in out
    assert "standardised" in err
    assert (tmp_path / "report.html").stat().st_size > 500_000
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(tmp_path / "t.csv")) == 2 + 3  # kernels and ordinary models


def test_the_table_fits_eighty_columns(iris_and_a_sigmoid):
    from rich.console import Console

    from mercer.cli.output import _comparison_table

    for width in (80, 120):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(_comparison_table(iris_and_a_sigmoid, width))
        lines = console.export_text().splitlines()
        assert max(map(len, lines)) <= width
        text = "\n".join(lines)
        for whole in (
            "accuracy",
            "(not a kernel)",
            "shrinkage=",
            "logistic regression",
            "± 0.",
        ):
            assert whole in text
        assert text.count("not a kernel") == 1


def test_compare_ranks_by_the_score_that_is_asked_for(run, table):
    asked = ["compare", table, "-t", "species", "--json", *SMALL]
    assert json.loads(run(*asked)[1])["score"] == "accuracy"  # as in mercer fit
    assert json.loads(run(*asked, "--scoring", "balanced_accuracy")[1])["score"] == (
        "balanced accuracy"
    )
    code, _, err = run(*asked, "--scoring", "luck")
    assert code != 0
    assert "luck" in err
    assert "balanced_accuracy" in err


def test_compare_for_scripts(run, table):
    code, out, err = run("compare", table, "-t", "species", "--json", *SMALL)
    assert code == 0
    assert err == ""
    answer = json.loads(out)
    assert "Linear()" in [kernel["kernel"] for kernel in answer["kernels"]]
    assert len(answer["baselines"]) == 3
    assert answer["score"] == "accuracy"
    assert answer["target"] == "species"
    assert "fit(X, y)" in answer["code"]
    assert 0.5 < answer["kernels"][0]["score"] <= 1
    assert answer["task"] == "classification"
    assert answer["n_points"] == 60
    assert any("60 of 150 rows" in note for note in answer["notes"])
    assert answer["files"]["page"].endswith("report.html")


@pytest.mark.parametrize("name", ["iris.csv", "iris.tsv", "iris.parquet", "iris.csv.gz"])
def test_formats_give_the_same_answer(run, frame, tmp_path, name):
    if name.endswith("parquet"):
        frame.to_parquet(tmp_path / name)
    else:
        frame.to_csv(tmp_path / name, index=False, sep="\t" if name.endswith("tsv") else ",")
    data = file_data.read_data(tmp_path / name, target="species", scale="none")
    assert_allclose(data.numbers().to_numpy(), frame.iloc[:, :4].to_numpy())
    assert list(data.y) == list(frame["species"])


def test_npz_with_images(run, tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 5, 4)).astype(np.uint8)
    np.savez(tmp_path / "i.npz", x_train=images, y_train=np.arange(60) % 2)
    data = file_data.read_data(tmp_path / "i.npz")
    assert data.X.shape == (60, 20)
    assert data.X.max() <= 1
    assert data.image_shape == (5, 4)
    code, _, _ = run("compare", "i.npz", "--json", *SMALL)
    assert code == 0


def test_a_million_rows_are_sampled_and_that_is_said(run, tmp_path):
    """The picture of many rows is one of few; 10^5 here, for the time it takes to write them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 3))
    np.savez(tmp_path / "many.npz", X=X, y=(X[:, 0] > 0).astype(int))
    code, _, err = run("compare", "many.npz", "-k", "Linear()", "--max-points", "100", "--cv", "2")
    assert code == 0
    assert "100 of 100000 rows were drawn" in err


def test_distances(run, tmp_path):
    rng = np.random.default_rng(0)
    P = rng.normal(size=(20, 2))
    D = np.linalg.norm(P[:, None] - P[None], axis=2)
    cities = [f"city {i}" for i in range(20)]
    pd.DataFrame(D, columns=cities, index=cities).to_csv(tmp_path / "d.csv")
    data = file_data.read_data(tmp_path / "d.csv", matrix="distance")
    centred = P - P.mean(axis=0)
    assert_allclose(data.X, centred @ centred.T, atol=1e-12)
    assert data.shown == cities
    for names in (range(20), range(100, 120)):  # numbers in the first column are names, too
        frame = pd.DataFrame(D, columns=names, index=names).assign(c="u")
        for label in (None, "city"):
            frame.to_csv(tmp_path / "n.csv", index_label=label)
            found = file_data.read_data(tmp_path / "n.csv", matrix="distance", target="c")
            assert_allclose(found.X, data.X, atol=1e-12)
            assert found.shown == [str(name) for name in names]
    code, out, _ = run("compare", "d.csv", "--matrix", "distance", "--json")
    assert code == 0
    assert json.loads(out)["kernels"][0]["rank"] == 2
    code, out, _ = run("map", "d.csv", "--matrix", "distance", "-o", "c.csv", "--json")
    assert code == 0
    found = pd.read_csv(tmp_path / "c.csv")
    assert_allclose(found[["phi0", "phi1"]] @ found[["phi0", "phi1"]].T, data.X, atol=1e-8)


# --- what is done to tables -----------------------------------------------------------------------


def test_missing_values_text_and_constants_are_told(frame, tmp_path):
    frame.loc[[1, 2], "a"] = np.nan
    frame["colour"] = np.where(np.arange(150) % 2, "red", "blue")
    frame["id"] = [f"row {i}" for i in range(150)]
    frame["same"] = 7
    frame["flag"] = frame["b"] > 3
    frame["empty"] = np.nan
    frame.to_csv(tmp_path / "messy.csv", index=False)
    data = file_data.read_data(tmp_path / "messy.csv", target="species", scale="none")
    X = data.numbers()
    assert list(X.columns) == ["a", "b", "c", "d", "colour=blue", "colour=red", "flag"]
    assert X["a"][1] == frame["a"].median()
    told = "; ".join(data.notes)
    assert "Missing values became the median in a" in told
    assert "1 column of categories became 2 columns of 0 and 1: colour" in told
    assert "1 column of identifiers was left out (unique per row): id" in told
    assert "left out (the same in all rows): same" in told
    assert "left out (without a value): empty" in told


def test_a_messy_table_gets_an_answer_and_a_model_in_one_command(run, tmp_path):
    rng = np.random.default_rng(0)
    n = 80
    age = rng.integers(18, 80, n)
    frame = pd.DataFrame(
        {
            "customer": [f"C{i:04d}" for i in range(n)],
            "age": age,
            "income": [f"${v:,.0f}" for v in rng.uniform(1000, 90000, n)],
            "since": pd.date_range("2020-01-01", periods=n, freq="9D").strftime("%d/%m/%Y"),
            "town": np.where(rng.random(n) < 0.1, "?", rng.choice(["Köln", "Rom"], n)),
            "bought": np.where(age > 45, "yes", "no"),
        }
    )
    frame.to_csv(tmp_path / "messy.csv", index=False, sep=";", encoding="latin-1")
    arguments = ["-t", "bought", "-k", "Linear()", "-k", "RBF()", "--save", "m.mercer", "--json"]
    code, out, _ = run("compare", "messy.csv", *arguments)
    assert code == 0
    answer = json.loads(out)
    assert answer["kernels"][0]["score"] > 0.8
    assert any("semicolons" in note for note in answer["notes"])
    kinds = {column["name"]: column["kind"] for column in answer["columns"]}
    assert kinds["customer"] == "identifier"
    assert kinds["since"] == "date"
    assert kinds["income"] == "number"
    from mercer import load
    from mercer.tables import read_table

    model = load(tmp_path / "m.mercer")
    table, _ = read_table(tmp_path / "messy.csv")
    predicted = model.predict(table.drop(columns="bought"))
    assert np.mean(predicted == frame["bought"].to_numpy()) > 0.8


def test_a_wrong_target_is_answered_with_the_nearest(run, table):
    code, _, err = run("compare", table, "-t", "Species")
    assert code == 2
    assert "Did you mean 'species'?" in err


def test_scaling(frame, tmp_path):
    frame.to_csv(tmp_path / "f.csv", index=False)
    standard = file_data.read_data(tmp_path / "f.csv", target="species").numbers()
    assert_allclose(standard.mean(), 0, atol=1e-12)
    assert_allclose(standard.std(ddof=0), 1)
    unit = file_data.read_data(tmp_path / "f.csv", target="species", scale="unit").numbers()
    assert_allclose([unit.min().min(), unit.max().max()], [0, 1])


@pytest.mark.parametrize("kernel", ["2 * Chi2()", "Tanimoto()"])
def test_counts_stay_counts(run, table, kernel):
    code, _, err = run("check", table, "-t", "species", "-k", kernel)
    assert code == 0
    assert "needs counts" in err


def test_rows_without_a_target_are_left_out(run, frame, tmp_path):
    frame.loc[[0, 5], "species"] = None
    frame.to_csv(tmp_path / "f.csv", index=False)
    code, out, _ = run("compare", "f.csv", "-t", "species", "--json", "-k", "Linear()", "--cv", "2")
    assert code == 0
    assert json.loads(out)["n_points"] == 148


# --- check and map --------------------------------------------------------------------------------


def test_check_says_valid_or_shows_a_witness(run, table):
    code, out, _ = run("check", table, "-t", "species")
    assert code == 0
    assert "valid by construction" in out
    code, out, _ = run("check", table, "-t", "species", "-k", "Sigmoid(1, -1)", "--json")
    assert code == 1
    (report,) = json.loads(out)["kernels"]
    assert report["psd"] is False
    assert report["witness_value"] < 0
    assert len(report["witness"]) == len(report["witness_rows"]) == 150


def test_map_writes_coordinates_of_the_kernel(run, table, tmp_path):
    code, out, _ = run("map", table, "-t", "species", "-k", "RBF(0.1)", "-o", "c.parquet", "--json")
    assert code == 0
    facts = json.loads(out)
    found = pd.read_parquet(tmp_path / "c.parquet")
    X = file_data.read_data(tmp_path / table, target="species").numbers()
    Phi = found.filter(regex="^phi").to_numpy()
    assert Phi.shape == (150, facts["rank"])
    K = RBF(0.1)(X)
    assert np.abs(Phi @ Phi.T - K).max() <= facts["error_bound"]
    assert found["species"][0] == "setosa"


@pytest.mark.parametrize("name", ["phi0", "phi12", "residual"])
def test_map_refuses_a_target_named_like_a_coordinate(run, frame, tmp_path, name, monkeypatch):
    frame.rename(columns={"species": name}).to_csv(tmp_path / "named.csv", index=False)
    monkeypatch.setattr(file_data, "read_data", None)  # before any work
    code, _, err = run("map", "named.csv", "-t", name, "-k", "RBF(0.1)", "-o", "c.csv")
    assert code != 0
    assert "rename it in named.csv" in err


@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
def test_map_does_what_its_message_advises(run, tmp_path, how):
    K = np.array([[1, 0.9, 0], [0.9, 1, 0.9], [0, 0.9, 1]])
    pd.DataFrame(K).to_csv(tmp_path / "k.csv", index=False)
    called = ("map", tmp_path / "k.csv", "--matrix", "gram", "-k", "Precomputed()")
    out = ("-o", tmp_path / "c.csv", "--indefinite", how)
    code, said, err = run(*called, *out)
    assert code == 0, err
    assert f"was changed (--indefinite {how})" in said
    Phi = pd.read_csv(tmp_path / "c.csv").to_numpy()
    expected = KernelMap(Precomputed(), indefinite=how).fit_transform(K)
    assert_allclose(Phi, expected, atol=1e-12)
    code, said, _ = run(*called, *out, "--json")
    assert json.loads(said)["error_bound"] is None


def test_map_names_the_options_of_the_command(run, table, tmp_path):
    """Not the arguments of Python."""
    out = ("-o", tmp_path / "c.csv")
    code, _, err = run("map", table, "-t", "species", "-k", "Sigmoid(1, -1)", *out)
    assert code == 2
    assert "--indefinite clip" in err
    assert "Witness: a'Ka < 0 with a[" in err
    assert "indefinite=" not in err
    X = np.arange(6.0)
    pd.DataFrame(np.abs(X[:, None] - X)).to_csv(tmp_path / "d.csv", index=False)
    code, _, err = run("map", tmp_path / "d.csv", "--matrix", "gram", *out)
    assert code == 2
    assert "--matrix distance" in err


def test_map_of_low_rank_reports_what_it_leaves(run, table, tmp_path):
    arguments = ["-t", "species", "-k", "RBF(0.1)", "-o", "c.csv", "--max-rank", "5"]
    code, out, _ = run("map", table, *arguments)
    assert code == 0
    assert "5 coordinates" in out
    found = pd.read_csv(tmp_path / "c.csv")
    X = file_data.read_data(tmp_path / table, target="species").numbers()
    Phi = found.filter(regex="^phi").to_numpy()
    rho2 = np.diagonal(RBF(0.1)(X)) - (Phi**2).sum(axis=1)
    assert_allclose(found["residual"], rho2, atol=1e-10)


def test_exported_texts_are_harmless_in_a_spreadsheet(run, table, tmp_path):
    code, *_ = run("map", table, "-t", "species", "-k", "Linear()", "-o", "c.csv")
    assert code == 0
    text = (tmp_path / "c.csv").read_text()
    assert f"'{FORMULA}" in text
    assert not any(cell.startswith("=") for line in text.split("\n") for cell in line.split(","))


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", " =1", "\r\n=1"])
def test_formulas_get_an_apostrophe(cell):
    frame = file_data._harmless(pd.DataFrame({cell: [cell, "fine"], "n": [-1.5, 2.0]}))
    assert frame.iloc[0, 0] == "'" + cell.replace("\r\n", "\n")
    assert frame.columns[0] == frame.iloc[0, 0]
    assert frame.iloc[1, 0] == "fine"
    assert frame["n"].tolist() == [-1.5, 2.0]  # numbers are numbers


# --- demo -----------------------------------------------------------------------------------------


def test_demo_shows_that_k1_fails(run, tmp_path):
    code, out, _ = run("demo", "-o", "shown", "--json")
    assert code == 0
    answer = json.loads(out)
    places = [kernel["kernel"] for kernel in answer["kernels"]]
    assert places[-1] == "k1"
    assert answer["kernels"][-1]["within_noise_of_best"] is False
    assert answer["kernels"][0]["score"] > 0.98
    assert (tmp_path / "shown" / "report.html").is_file()
    assert (tmp_path / "shown" / "report.png").is_file()


def test_demo_tells_the_story_of_the_paper_first(run, tmp_path):
    code, out, _ = run("demo", "-o", "shown")
    assert code == 0
    seen, why, picture, empty, *_ = out.splitlines()
    assert re.fullmatch(
        r"k1 recognises 9\d\.\d % .* k2 9\d\.\d %: k1 is worse beyond the noise\.", seen
    )
    assert re.search(r"k1\(x, x\) goes from \de-0[89] to \de-05,", why)
    assert re.search(r"k2\(x, x\) goes from 0\.1\d to 0\.\d\d\.", why)
    assert "shown/report.png" in picture.replace("\\", "/")
    assert empty == ""
    assert out.index(picture) < out.index("model ")


def test_kernels_of_the_demo_are_those_of_the_paper(rng):
    from mercer.cli.demo import kernels

    X, d = rng.uniform(size=(5, 64)), 64
    k1 = (X @ X.T / d) ** 9
    k2 = (((2 * X - 1) @ (2 * X - 1).T / d + 1) / 2) ** 9
    assert_allclose(kernels(64)["k1"](X), k1, rtol=1e-12)
    assert_allclose(kernels(64)["k2"](X), k2, rtol=1e-12)


def test_demo_with_a_local_mnist(tmp_path):
    from mercer.cli.demo import mnist

    rng = np.random.default_rng(0)
    labels = np.arange(100) % 10
    path = tmp_path / "m.npz"
    np.savez(path, x_train=rng.integers(0, 256, (100, 28, 28)).astype(np.uint8), y_train=labels)
    X, y, shape = mnist(str(path))
    assert X.shape == (30, 784)
    assert set(y) == {2, 4, 7}
    assert shape == (28, 28)
    np.savez(path, other=labels)
    with pytest.raises(BadInput, match="x_train"):
        mnist(str(path))


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "none.csv", "-t", "y"], "the file 'none.csv' does not exist"),
        (["compare", ".", "-t", "y"], "is not a file"),
        (["compare", "iris.csv", "-t", "kind"], "no column 'kind'; the columns are: a, b"),
        (["compare", "iris.csv", "-k", "RBF(0.1) + Lineer()"], "Did you mean Linear"),
        (["compare", "iris.csv", "-k", "RBF(0.1"], "never closed"),
        (["compare", "iris.csv", "-k", "Precomputed()"], "--matrix"),
        (["compare", "iris.csv", "-t", "species", "-k", "Chi2()", "--scale", "standard"], "Chi2"),
        (["compare", "iris.csv", "--matrix", "gram"], "is square"),
        (["compare", "iris.csv", "--matrix", "odd"], "'gram' or 'distance'"),
        (["compare", "iris.csv", "--scale", "log"], "--scale must be"),
        (["compare", "iris.csv", "-t", "species", "--task", "guess"], "task must be"),
        (["compare", "iris.csv", "--image-shape", "8by8"], "28x28"),
        (["compare", "iris.csv", "--image-shape", "8x8", *SMALL], "needs 64 values"),
        (["compare", "iris.csv", "-o", "missing/r.html"], "no folder 'missing'"),
        (["compare", "iris.csv", "--bogus"], "No such option"),
        (["compare"], "Missing argument"),
        (["frobnicate"], "No such command"),
        (["compare", "iris.csv", "--cv", "1"], "--cv"),
        (["map", "iris.csv"], "Missing option"),
        (["map", "iris.csv", "-t", "species", "-o", "c.xlsx"], "use .csv, .tsv or .parquet"),
        (["map", "iris.csv", "-t", "species", "-o", "c.csv", "-k", "Sigmoid(1, -1)"], "not pos"),
        (["demo", "--data", "nowhere.npz"], "the file 'nowhere.npz' does not exist"),
        (["compare", "one.csv", "-t", "y"], "one class only"),
        (["compare", "alone.csv", "-t", "y"], "0 rows have a class that another row has"),
        (["compare", "text.csv"], "nothing in this table tells its rows apart"),
        (["compare", "empty.csv"], "empty.csv"),
        (["compare", "rows.csv"], "no rows"),
        (["compare", "broken.parquet"], "cannot read broken.parquet"),
        (["compare", "broken.npz"], "cannot read broken.npz"),
        (["compare", "pickle.npz"], "cannot read pickle.npz"),
        (["compare", "word.docx"], "unknown kind of file"),
        (["compare", "infinite.csv"], "infinity"),
        (["check", "lopsided.csv", "--matrix", "gram"], "not symmetric"),
        (["check", "negative.csv", "--matrix", "distance"], "non-negative"),
    ],
)  # fmt: skip
def test_bad_input_is_one_short_message(run, table, tmp_path, arguments, words):
    (tmp_path / "one.csv").write_text("x,y\n" + "1,a\n2,a\n3,a\n4,a\n5,a\n")
    (tmp_path / "alone.csv").write_text("x,y\n" + "".join(f"{i},c{i}\n" for i in range(9)))
    (tmp_path / "text.csv").write_text("x\n" + "\n".join(f"t{i}" for i in range(50)))
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "rows.csv").write_text("x,y\n")
    (tmp_path / "broken.parquet").write_text("no")
    (tmp_path / "broken.npz").write_text("no")
    np.savez(tmp_path / "pickle.npz", X=np.array([{"a": 1}], dtype=object))
    (tmp_path / "word.docx").write_text("no")
    (tmp_path / "infinite.csv").write_text("x,y\n1,2\ninf,3\n1,2\n1,2\n")
    (tmp_path / "lopsided.csv").write_text("x,y\n1,2\n3,1\n")
    (tmp_path / "negative.csv").write_text("x,y\n0,-1\n-1,0\n")
    code, out, err = run(*arguments)
    assert code == 2
    assert words in err
    assert out == ""
    assert len(err) < 700
    assert not (tmp_path / "report.html").exists()


def test_an_expression_is_pointed_at(run, table):
    _, _, err = run("compare", table, "-k", "RBF(0.1) + Lineer()")
    lines = err.rstrip("\n").split("\n")
    assert lines[-2].index("Lineer") == lines[-1].index("^")


def test_help_has_examples(run):
    for command in ("demo", "compare", "check", "map"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert f"mercer {command}" in out


def test_version_and_no_arguments(run):
    import mercer

    assert run("--version")[1].strip() == f"mercer {mercer.__version__}"
    assert "demo" in "".join(run()[1:])


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "mercer.cli.app", raising=False)
    assert main() == 2
    assert "pip install 'mercer[cli]'" in capsys.readouterr().err


def test_as_a_process(table, tmp_path):
    """The real thing: stdout carries the answer, stderr the rest, the exit code the verdict."""
    command = [sys.executable, "-m", "mercer", "check", table, "-t", "species", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["kernels"][0]["psd"] is True
    assert Linear().is_psd
