"""From a file to a saved model with one command, and from there to predictions."""

import itertools
import json
from time import sleep

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="the command is an extra")
from mercer import KernelRegressor, load
from mercer.cli import patience
from mercer.cli.app import _app, run
from mercer.cli.fit_predict import BOOSTING, _Peer
from mercer.tables import BadInput


@pytest.fixture
def houses(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.uniform(20, 200, 120), "town": rng.choice(["Rome", "Oslo"], 120)}
    )
    frame["price"] = 3 * frame["size"] + 100 * (frame["town"] == "Rome") + rng.normal(size=120)
    frame[:100].to_csv(tmp_path / "old.csv", index=False)
    frame[100:].to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def call(*arguments):
    return _app([str(a) for a in arguments], standalone_mode=False)


def run_printed(said):
    """The names that the printed lines of Python define."""
    lines = said.splitlines()
    lines = itertools.takewhile(
        lambda line: line.startswith("  "), lines[lines.index("The same in Python:") + 1 :]
    )
    names = {}
    exec("\n".join(line.strip() for line in lines), names)
    return names


def test_fit_then_predict(houses, capsys):
    call("fit", houses / "old.csv", "--target", "price", "-o", houses / "m.mercer", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["task"] == "regression"
    low, high = facts["interval"]
    assert low < facts["error"] < high < facts["mean_only"] / 5
    assert facts["boosting"] > facts["error"]
    assert set(facts["importances"]) == {"size", "town"}
    call("predict", houses / "m.mercer", houses / "new.csv", "-o", houses / "p.csv")
    assert "not used: price" in " ".join(capsys.readouterr().err.split())
    new, found = pd.read_csv(houses / "new.csv"), pd.read_csv(houses / "p.csv")
    assert np.abs(found["prediction"] - new["price"]).max() < 20
    inside = (found["low 90 %"] <= new["price"]) & (new["price"] <= found["high 90 %"])
    assert inside.mean() > 0.6


def test_classes_get_probabilities(houses, capsys):
    call("fit", houses / "old.csv", "-t", "town", "-o", houses / "m.mercer", "--no-compare")
    said = capsys.readouterr().out
    assert "accuracy" in said
    assert "KernelClassifier" in said
    call("predict", houses / "m.mercer", houses / "new.csv", "-o", houses / "p.csv", "--json")
    found = pd.read_csv(houses / "p.csv")
    assert set(found["prediction"]) <= {"Rome", "Oslo"}
    assert np.allclose(found["probability of Rome"] + found["probability of Oslo"], 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "old.csv", "-t", "prize"], "no column 'prize'"),
        (["fit", "old.csv", "-t", "price", "-o", "no/m.mercer"], "no folder"),
        (["fit", "old.csv", "-t", "price", "--task", "guess"], "--task must be"),
        (["fit", "gone.csv", "-t", "price"], "does not exist"),
        (["predict", "gone.mercer", "new.csv"], "does not exist"),
        (["fit", "flat.csv", "-t", "price"], "the target 'price' is 2.5 in all 20 rows"),
        (["fit", "flat.csv", "-t", "town"], "the target 'town' is 'Oslo' in all 20 rows"),
    ],
)
def test_bad_input_is_one_line(houses, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(houses)
    pd.DataFrame({"size": range(20), "town": "Oslo", "price": 2.5}).to_csv("flat.csv", index=False)
    monkeypatch.setattr("sys.argv", ["mercer", *arguments])
    assert run() == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_missing_columns_are_named(houses, capsys, monkeypatch):
    monkeypatch.chdir(houses)
    call("fit", "old.csv", "-t", "price", "-o", "m.mercer", "--no-compare")
    pd.read_csv("new.csv").drop(columns="town").to_csv("less.csv", index=False)
    monkeypatch.setattr("sys.argv", ["mercer", "predict", "m.mercer", "less.csv"])
    assert run() == 2
    assert "lacks 1 of the 2 columns" in " ".join(capsys.readouterr().err.split())


def test_the_code_that_it_prints_fits_the_same_model(houses, capsys, monkeypatch):
    monkeypatch.chdir(houses)
    pd.read_csv("old.csv")[:40].to_csv("old.tsv", sep="\t", index=False)
    expression = "RBF(0.1) + Linear()"
    call("fit", "old.tsv", "-t", "price", "-k", expression, "-o", "m.mercer", "--no-compare")
    names = run_printed(capsys.readouterr().out)
    new = pd.read_csv("new.csv").drop(columns="price")
    np.testing.assert_allclose(names["model"].predict(new), load("m.mercer").predict(new))


def test_separator_and_encoding_can_be_given(houses, capsys):
    frame = pd.read_csv(houses / "old.csv")[:40].rename(columns={"size": "größe"})
    frame.to_csv(houses / "old.txt", sep="~", index=False, encoding="cp437")
    given = ["--sep", "~", "--encoding", "cp437"]
    call(
        "fit", houses / "old.txt", "-t", "price", "-o", houses / "m.mercer", "--no-compare", *given
    )
    capsys.readouterr()
    call("predict", houses / "m.mercer", houses / "old.txt", "-o", houses / "p.csv", *given)
    assert "not used: price" in " ".join(capsys.readouterr().err.split())
    assert len(pd.read_csv(houses / "p.csv")) == 40
    assert "größe" in load(houses / "m.mercer").feature_names_in_


def test_a_bad_target_is_named_with_the_remedy(tmp_path, rng):
    frame = pd.DataFrame({"x": rng.normal(size=40), "name": [f"n{i}" for i in range(40)]})
    frame.assign(kind="same").to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(BadInput, match="the target 'name': y has 40 classes in 40 rows"):
        call("fit", tmp_path / "bad.csv", "--target", "name", "-o", tmp_path / "m.mercer")
    with pytest.raises(BadInput, match=r"the target 'kind' is 'same' in all 40 rows.*--target"):
        call("fit", tmp_path / "bad.csv", "--target", "kind", "-o", tmp_path / "m.mercer")


def test_a_column_that_is_the_target_is_asked_about(houses, capsys):
    frame = pd.read_csv(houses / "old.csv")
    frame.assign(copy=frame["price"]).to_csv(houses / "leak.csv", index=False)
    call("fit", houses / "leak.csv", "-t", "price", "-o", houses / "m.mercer", "--no-compare")
    said = " ".join(capsys.readouterr().out.split())
    assert "almost exactly, above all from copy: will it be known" in said


def test_peers_do_not_see_copies_of_the_rows_that_they_predict(rng, tmp_path, capsys):
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "y"])
    pd.concat([frame] * 4).to_csv(tmp_path / "t.csv", index=False)
    call("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.mercer", "--json")
    found = json.loads(capsys.readouterr().out)
    assert "copies of a row together" in found["validation"]
    assert found["boosting"] > 0.9 * frame["y"].std()  # noise: copies would tell it


def boosting(Z, y, task):
    """(score, folds, why there is none)."""
    peer = _Peer.of(BOOSTING, Z, y, task)
    return peer.score(task), peer.folds, peer.why


def test_boosting_is_not_compared_on_very_many_classes(rng):
    y = np.repeat([f"c{i}" for i in range(40)], 3)
    score, _, why = boosting(rng.normal(size=(120, 2)), y, "classification")
    assert score is None
    assert why.startswith("40 classes")


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_boosting_of_very_many_columns_has_those_that_tell_most(rng, task):
    Z = rng.normal(size=(80, 700))
    Z[:, 5] = 1.0
    y = Z[:, 640] if task == "regression" else np.where(Z[:, 640] > 0, "a", "b")
    score, folds, why = boosting(Z, y, task)
    assert folds == 5
    assert why is None
    assert score < 0.8 * Z[:, 640].std() if task == "regression" else score > 0.9


def test_boosting_says_how_many_folds_the_rows_allowed(rng):
    Z = rng.normal(size=(40, 2))
    assert boosting(Z, rng.normal(size=40), "regression")[1] == 5
    assert boosting(Z[:3], np.array([1.0, 2.0, 4.0]), "regression")[1] == 3
    assert boosting(Z, np.arange(40) % 13, "classification")[1] == 4


def test_boosting_is_compared_where_a_class_is_rare_or_rows_are_few(rng):
    Z = rng.normal(size=(90, 2))
    y = np.where(Z[:, 0] > 0, "a", "b").astype(object)
    y[3] = "once"
    score, folds, why = boosting(Z, y, "classification")
    assert (folds, why) == (5, None)
    assert score > 0.9
    few = Z[:32, 0]  # leaves of 20 rows could not split these at all
    assert boosting(Z[:32], few, "regression")[0] < 0.7 * few.std()
    assert boosting(Z[:2], np.array(["a", "b"]), "classification")[2] == (
        "every row has a class of its own"
    )


@pytest.fixture(scope="module")
def three_targets(tmp_path_factory):
    """One that no column tells, one that is linear, and one that is not."""
    rng, folder = np.random.default_rng(1), tmp_path_factory.mktemp("targets")
    X = rng.normal(size=(100, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["noise"] = rng.normal(size=100)
    frame["line"] = X @ [1.0, 2.0, -1.0] + 0.5 * rng.normal(size=100)
    frame["curve"] = np.where(X[:, 0] ** 2 > 0.6, "far", "near")
    for target in ("noise", "line", "curve"):
        frame[["a", "b", "c", target]].to_csv(folder / f"{target}.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("target", "first"),
    [
        ("noise", "Nothing was learned: rows left out are predicted no better than by the mean"),
        ("line", "A linear model is as good"),
        ("curve", "accuracy 0.9"),
    ],
)
def test_the_first_line_says_what_matters(three_targets, capsys, target, first):
    path = three_targets / f"{target}.csv"
    call("fit", path, "-t", target, "-o", three_targets / "m.mercer")
    said = capsys.readouterr().out
    assert said.startswith(first), said
    assert "  linear model, 5 folds: " in said


def test_an_accuracy_is_not_called_an_error(houses, capsys):
    arguments = ("fit", houses / "old.csv", "-t", "town", "-o", houses / "m.mercer", "--no-compare")
    call(*arguments, "--json")
    facts = json.loads(capsys.readouterr().out)
    low, high = facts["interval"]
    assert low <= facts["accuracy"] <= high
    assert facts["error"] == pytest.approx(1 - facts["accuracy"])
    call(*arguments)
    assert f"accuracy {facts['accuracy']:.4g} on rows left out" in capsys.readouterr().out


def test_the_python_code_runs_where_the_target_has_gaps(houses, capsys, monkeypatch):
    frame = pd.read_csv(houses / "old.csv")
    frame.loc[::9, "price"] = np.nan
    frame.to_csv(houses / "gaps.csv", index=False)
    call("fit", houses / "gaps.csv", "-t", "price", "-o", houses / "m.mercer", "--no-compare")
    said = capsys.readouterr().out
    code = said.split("The same in Python")[1].split("\n", 1)[1].split("Next:")[0]
    monkeypatch.chdir(houses)
    made: dict = {}
    exec("\n".join(line.strip() for line in code.splitlines()), made)
    X = frame.drop(columns="price").head(5)
    expected = load(houses / "m.mercer").predict(X)
    np.testing.assert_allclose(made["model"].predict(X), expected, rtol=1e-6)


def test_new_rows_are_read_as_the_training_table(tmp_path, rng, capsys):
    v = np.round(rng.uniform(0.5, 3, size=60), 3)
    table = pd.DataFrame({"v": [f"{x:.3f}".replace(".", ",") for x in v], "id": range(60), "y": v})
    table.loc[0, "v"] = "1,5"
    table["code"] = ["1", "2", "x"] * 20
    table.to_csv(tmp_path / "old.csv", index=False)
    table.iloc[[3]][["code", "v"]].to_csv(tmp_path / "new.csv", index=False)
    call("fit", tmp_path / "old.csv", "-t", "y", "-o", tmp_path / "m.mercer", "--no-compare")
    call("predict", tmp_path / "m.mercer", tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert abs(found[0] - table["y"][3]) < 0.1
    assert "does not use are not there: id" in " ".join(capsys.readouterr().err.split())
    table.iloc[[3]].assign(code="z").to_csv(tmp_path / "new.csv", index=False)
    call("predict", tmp_path / "m.mercer", tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    assert "'z' in code (1 row)" in " ".join(capsys.readouterr().err.split())


def test_all_errors_are_of_the_same_rows(tmp_path, rng, capsys):
    """Only some rows of a larger table are left out: one outlier must count for all or none."""
    X = rng.normal(size=(1500, 2))
    y = rng.normal(size=1500)
    y[::150] += 100.0
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    call("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.mercer", "--json")
    facts = json.loads(capsys.readouterr().out)
    rows = load(tmp_path / "m.mercer").left_out_
    assert facts["rows_left_out"] == len(rows) < 1500
    assert abs(facts["mean_only"] - np.sqrt(np.mean((y[rows] - y.mean()) ** 2))) < 1e-9
    # Nothing can be predicted: all three see the same outliers.
    assert abs(facts["error"] / facts["mean_only"] - 1) < 0.1
    assert abs(facts["boosting"] / facts["mean_only"] - 1) < 0.2


def test_a_target_that_is_not_there(tmp_path):
    (tmp_path / "t.csv").write_text("size,Price\n" + "1.5,2.5\n" * 20)
    with pytest.raises(BadInput, match="Did you mean 'Price'"):
        call("fit", tmp_path / "t.csv", "-t", "price", "-o", tmp_path / "m.mercer")
    (tmp_path / "t.csv").write_text("1.5,2.5\n" * 20)
    with pytest.raises(BadInput, match="first line was read as a row"):
        call("fit", tmp_path / "t.csv", "-t", "price", "-o", tmp_path / "m.mercer")


@pytest.fixture
def clinics(tmp_path, rng):
    """Rows of 30 clinics, each with a level of its own."""
    clinic = np.repeat([f"clinic {j:02}" for j in range(30)], 10)
    x = rng.normal(size=300)
    y = np.repeat(rng.normal(scale=8, size=30), 10) + x + 0.5 * rng.normal(size=300)
    table = pd.DataFrame({"clinic": clinic, "x": x, "y": y, "n": rng.integers(1, 4, 300)})
    table.to_csv(tmp_path / "all.csv", index=False)
    return tmp_path, table


def fitted(*arguments):
    call("fit", *arguments, "--no-compare")


def test_errors_of_new_groups(clinics, capsys, monkeypatch):
    folder, table = clinics
    where = (folder / "all.csv", "-t", "y", "-o", folder / "m.mercer")
    fitted(*where)
    said = capsys.readouterr().out
    assert "for new ones: --group clinic" in said
    plain = float(said.split("RMSE ")[1].split()[0])
    fitted(*where, "--group", "clinic", "--json")
    honest = json.loads(capsys.readouterr().out)
    assert honest["validation"] == "5 folds of 30 groups"
    assert honest["error"] > 3 * plain
    assert "clinic" not in honest["importances"]
    assert any("clinic that the table does not have" in note for note in honest["notes"])
    assert "count as one group" not in " ".join(honest["notes"])
    table.assign(clinic=table["clinic"].where(table.index > 4)).to_csv(folder / "some.csv")
    fitted(folder / "some.csv", *where[1:], "--group", "clinic", "--json", "-k", "Linear()")
    found = json.loads(capsys.readouterr().out)
    assert "rows without a clinic count as one group: 5 of 300" in found["notes"]
    fitted(*where, "--group", "clinic", "--weights", "n")
    code = capsys.readouterr().out.split("The same in Python")[1].split("\n", 1)[1]
    monkeypatch.chdir(folder)
    made: dict = {}
    exec("\n".join(line.strip() for line in code.split("Next:")[0].splitlines()), made)
    rows = table[["x"]].head()
    expected = load(folder / "m.mercer").predict(rows)
    np.testing.assert_allclose(made["model"].predict(rows), expected, rtol=1e-6)


def test_new_values_of_a_category_are_noted(clinics, capsys):
    folder, table = clinics
    fitted(folder / "all.csv", "-t", "y", "-o", folder / "m.mercer")
    new = table.head(4).assign(clinic="elsewhere")
    new.to_csv(folder / "new.csv", index=False)
    capsys.readouterr()
    call("predict", folder / "m.mercer", folder / "new.csv", "-o", folder / "p.csv")
    said = " ".join(capsys.readouterr().err.split())
    assert "does not have: 'elsewhere' in clinic (4 rows)" in said
    assert pd.read_csv(folder / "p.csv")["std"].min() > 4


def test_weights_say_how_much_rows_count(clinics, capsys):
    folder, table = clinics
    where = ("-t", "y", "-o", folder / "m.mercer", "--json", "-k", "RBF()")
    fitted(folder / "all.csv", *where, "--weights", "n")
    weighted = json.loads(capsys.readouterr().out)
    repeated = table.loc[table.index.repeat(table["n"])].drop(columns="n")
    repeated.to_csv(folder / "repeated.csv", index=False)
    fitted(folder / "repeated.csv", *where)
    twice = json.loads(capsys.readouterr().out)
    assert "n" not in weighted["importances"]
    assert any(note.startswith("the column n says") for note in weighted["notes"])  # not "N says"
    assert weighted["mean_only"] == pytest.approx(twice["mean_only"], rel=1e-9)
    assert weighted["error"] == pytest.approx(twice["error"], rel=0.15)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--group", "y"), "--group y is the target itself"),
        (("--weights", "clinic"), "--weights clinic: 300 rows have no number"),
        (("--weights", "x"), "the first is row [0-9]+ with '-[0-9.]+'"),
        (("--time", "clinic"), "neither dates nor numbers"),
        (("--group", "clinics"), "clinics"),
    ],
)
def test_columns_that_cannot_have_a_part_are_refused(option, words, clinics):
    folder, _ = clinics
    with pytest.raises(BadInput, match=words):
        fitted(folder / "all.csv", "-t", "y", "-o", folder / "m.mercer", *option)


def test_the_last_fifth_by_columns_that_are_not_learned_from(tmp_path, rng, capsys):
    """Groups and weights may be years, and dates need not be columns of the model."""
    table = pd.DataFrame({"x": rng.normal(size=60), "year": np.repeat(range(2001, 2013), 5)})
    table["day"] = pd.date_range("2001-01-01", periods=60, freq="31D").strftime("%Y-%m-%d")
    table["y"] = table["x"] + 0.1 * rng.normal(size=60) + 5 * (table["year"] > 2010)
    table.to_csv(tmp_path / "t.csv", index=False)
    where = (tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.mercer", "--json", "-k", "Linear()")
    found = []
    for options in (
        ("--group", "year", "--time", "year", "--ignore", "day", "--id", "year"),
        ("--weights", "year", "--time", "year", "--ignore", "day"),
        ("--ignore", "year", "--time", "day", "--ignore", "day"),
        ("--ignore", "year", "--time", "day", "--id", "day"),
    ):
        fitted(*where, *options)
        found.append(json.loads(capsys.readouterr().out)["last_fifth"]["RMSE"])
    assert max(found) == pytest.approx(min(found), rel=0.02)
    new = table[48:]
    rows = table.drop(columns="y")
    model = load(tmp_path / "m.mercer").fit(rows[:48], table["y"][:48])
    errors = new["y"] - model.predict(rows[48:])
    assert found[-1] == pytest.approx((errors**2).mean() ** 0.5, rel=1e-6)


def test_rows_before_the_last_fifth_with_one_class(tmp_path, rng, capsys):
    table = pd.DataFrame({"x": rng.normal(size=60), "n": range(60), "w": [1] * 59 + [100]})
    table["y"] = np.where(table["n"] < 50, "no", "yes")
    table.to_csv(tmp_path / "t.csv", index=False)
    where = (tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.mercer", "-k", "Linear()")
    fitted(*where, "--time", "n")
    said = capsys.readouterr().out
    assert "accuracy" in said
    assert "the last fifth by n was not predicted from the rows before: y holds 1 class" in said
    table["y"] = np.where(np.arange(60) % 59 < 1, "yes", "no")  # the first row and the last one
    table.to_csv(tmp_path / "t.csv", index=False)
    fitted(*where, "--time", "n", "--weights", "w", "--json")
    assert json.loads(capsys.readouterr().out)["last_fifth"]["accuracy"] == pytest.approx(11 / 111)


def test_a_series_that_drifts_gets_the_error_of_its_last_fifth(tmp_path, rng, capsys):
    days = pd.date_range("2001-01-01", periods=150, freq="MS")
    level = np.linspace(0, 1, 150) ** 3 * 100
    table = pd.DataFrame({"date": days.strftime("%Y-%m-%d"), "rate": rng.normal(size=150)})
    table["y"] = level + table["rate"] + 0.3 * rng.normal(size=150)
    where = ("-t", "y", "-o", tmp_path / "m.mercer")
    table.to_csv(tmp_path / "series.csv", index=False)
    fitted(tmp_path / "series.csv", *where, "--json")
    facts = json.loads(capsys.readouterr().out)
    last = facts["last_fifth"]
    assert last["column"] == "date"
    assert last["rows"] == 30
    assert last["RMSE"] > 5 * facts["error"]
    fitted(tmp_path / "series.csv", *where)
    assert "on the last fifth by date, from the rows before" in capsys.readouterr().out
    # Without drift, or in no order, nothing is added; but it is on request.
    table["y"] -= level
    table.to_csv(tmp_path / "flat.csv", index=False)
    fitted(tmp_path / "flat.csv", *where, "--json")
    assert "last_fifth" not in json.loads(capsys.readouterr().out)
    fitted(tmp_path / "flat.csv", *where, "--json", "--time", "date")
    assert json.loads(capsys.readouterr().out)["last_fifth"]["RMSE"] < 1


def test_a_long_fit_is_announced_with_a_faster_way(monkeypatch, capsys):
    monkeypatch.setattr(patience, "_machine_pace", lambda: 0.9)
    model = KernelRegressor(memory_limit="16GB")
    found = patience.announce(model, 200_000)
    said = capsys.readouterr().err
    assert 120 < found < 900
    assert "through landmarks" in said
    assert "Faster: --max-rows 10000" in said
    direct = KernelRegressor(solver="direct", memory_limit="16GB")
    seconds, work = patience.estimate(direct, 20_000)
    assert 20_000**3 / 3 / 2e10 < seconds < 400
    assert "exact fit of 20000 rows (6.4 GB" in work
    assert patience.announce(model, 200_000, 6) == pytest.approx(6 * found)
    # Measured on a busy machine about as fast as one core of a common one: 193 s.
    slow, _ = patience.estimate(KernelRegressor(memory_limit="12GB"), 50_000)
    assert 193 / 2 < slow < 193 * 2
    capsys.readouterr()
    assert patience.announce(model, 500) == 0  # nobody waits for that
    assert capsys.readouterr().err == ""


def test_signs_of_life_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(patience, "_BETWEEN", 0.01)
    with patience.signs_of_life(600.0):
        sleep(0.2)
    assert "of about 10 min" in capsys.readouterr().err
    with patience.signs_of_life(5.0):
        sleep(0.05)
    assert capsys.readouterr().err == ""


def test_fewer_rows_are_drawn_at_random(houses, capsys, monkeypatch):
    call(
        *("fit", houses / "old.csv", "-t", "price", "-o", houses / "m.mercer", "--no-compare"),
        *("--max-rows", "60"),
    )
    said = capsys.readouterr()
    assert "60 of 100 rows, drawn at random" in " ".join(said.err.split())
    code = said.out.split("The same in Python")[1].split("\n", 1)[1].split("Next:")[0]
    monkeypatch.chdir(houses)
    made: dict = {}
    exec("\n".join(line.strip() for line in code.splitlines()), made)
    rows = pd.read_csv(houses / "new.csv").drop(columns="price")
    expected = load(houses / "m.mercer").predict(rows)
    np.testing.assert_allclose(made["model"].predict(rows), expected, rtol=1e-6)
