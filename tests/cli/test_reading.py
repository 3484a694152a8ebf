"""The same file gives the same model from Python and from the command, and nothing is misread."""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="the command is an extra")
import typer

from mercer import KernelRegressor, load, read_table
from mercer.cli.app import _app
from mercer.tables import BadInput, encoder_tools

N = 60


def call(*arguments):
    return _app([str(a) for a in arguments], standalone_mode=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def euros(values):
    return [f"{v:,.0f} €".replace(",", ".") for v in values]


def tables():
    """Name -> (frame of texts, target, how it is written, options of the command)."""
    rng = np.random.default_rng(0)
    x, z = rng.uniform(1, 9, N), rng.uniform(800, 9000, N)
    y = x + z / 1000 + rng.normal(0, 0.1, N)
    plain = pd.DataFrame({"x": x.round(3), "z": z.round(), "y": y.round(3)})
    commas = pd.DataFrame(
        {
            "x": [f"{v:.3f}".replace(".", ",") for v in x],
            "z": euros(z),
            "y": [f"{v:.2f}".replace(".", ",") for v in y],
        }
    )
    mixed = plain.assign(
        zip=rng.choice(["02139", "94110"], N),
        when=pd.date_range("2012-01-01", periods=N, freq="9D").strftime("%d/%m/%Y"),
        weight=[f"{v:.1f} kg" for v in z / 100],
        code=rng.choice([3, 7], N),
        name=[f"N{i}" for i in range(N)],
    )
    times = plain.assign(y=[f"1:{int(3 * v):02d}:{int(v):02d}" for v in y])
    classes = plain.assign(y=np.where(y > np.median(y), "None", "-"))
    gaps = plain.assign(y=np.where(np.arange(N) % 9, plain["y"], np.nan))
    options = ["--category", "code", "--id", "name", "--ignore", "x", "--number", "z"]
    return {
        "plain": (plain, "y", {}, []),
        "semicolons": (commas, "y", {"sep": ";"}, []),
        "tabs": (commas, "y", {"sep": "\t"}, []),
        "mixed": (mixed, "y", {}, []),
        "options": (mixed, "y", {}, options),
        "dates": (mixed[["x", "when", "y"]], "y", {}, ["--monthfirst"]),
        "decimal": (commas, "y", {"sep": "|"}, ["--decimal", ",", "--sep", "|"]),
        "times": (times, "y", {}, []),
        "classes": (classes, "y", {}, []),
        "gaps": (gaps, "y", {}, []),
    }


@pytest.mark.parametrize("name", tables())
def test_the_same_file_gives_the_same_model_from_python_and_from_the_command(folder, capsys, name):
    frame, target, written, options = tables()[name]
    frame.to_csv("t.csv", index=False, **written)
    call("fit", "t.csv", "-t", target, "-o", "m.mercer", "--no-compare", *options)
    lines = capsys.readouterr().out.splitlines()
    lines = lines[lines.index("The same in Python:") + 1 :]
    names: dict = {}
    exec("\n".join(line.strip() for line in itertools.takewhile(is_code, lines)), names)
    model, fitted = names["model"], load("m.mercer")
    # New rows as they are written, through both doors.
    frame.drop(columns=target)[:7].to_csv("new.csv", index=False, **written)
    call("predict", "m.mercer", "new.csv", "-o", "p.csv", *given(options))
    predicted = pd.read_csv("p.csv", keep_default_na=False)["prediction"].to_numpy()
    new = names["frame"].drop(columns=target)[:7] if name != "gaps" else None
    if new is None:
        new, _ = read_table("new.csv", like=model.encoder_)
    texts = pd.read_csv("new.csv", dtype=str, sep=written.get("sep", ","))
    for rows in (new, texts):
        here = model.predict(rows)
        if here.dtype.kind == "f":
            np.testing.assert_allclose(here, fitted.predict(rows), rtol=1e-9)
            np.testing.assert_allclose(here, predicted, rtol=1e-9)
        else:
            assert here.tolist() == fitted.predict(rows).tolist() == predicted.tolist()


def is_code(line):
    return line.startswith("  ")


def given(options):
    """The options of the fit that also say how a new file is written."""
    return [
        o
        for i, o in enumerate(options)
        if {o, *options[max(i - 1, 0) : i]} & {"--sep", "--decimal"}
    ]


def test_plain_files_give_the_same_model_through_pandas(folder):
    frame, target, _, _ = tables()["plain"]
    frame.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", target, "-o", "m.mercer", "--no-compare")
    fitted, read = load("m.mercer"), pd.read_csv("t.csv")
    model = type(fitted)().fit(read.drop(columns=target), read[target])
    X = read.drop(columns=target)
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("target", "decimals"),
    [("1,5 EUR", ","), ("1.500 EUR", ","), ("1:05:30", None), ("1.234", ",")],
)
def test_a_target_of_texts_gives_the_model_of_the_command(folder, target, decimals):
    """Read by the evidence of its table: "1.234" are thousands beside decimal commas."""
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 9, N)
    y = 1000 + 100 * x + rng.normal(0, 5, N)
    write = {
        "1,5 EUR": lambda v: f"{v:.2f} EUR".replace(".", ","),
        "1.500 EUR": lambda v: f"{v:,.0f} EUR".replace(",", "."),
        "1:05:30": lambda v: f"{int(v // 3600)}:{int(v // 60 % 60):02d}:{int(v % 60):02d}",
        "1.234": lambda v: f"{v:,.0f}".replace(",", "."),
    }[target]
    frame = pd.DataFrame({"x": [f"{v:.2f}".replace(".", decimals or ".") for v in x]})
    frame["y"] = [write(v) for v in y]
    frame.to_csv("t.csv", index=False, sep=";")
    call("fit", "t.csv", "-t", "y", "-o", "m.mercer", "--no-compare")
    fitted, texts = load("m.mercer"), pd.read_csv("t.csv", sep=";", dtype=str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelRegressor().fit(texts[["x"]], texts["y"])
    np.testing.assert_allclose(model.predict(texts[["x"]]), fitted.predict(texts[["x"]]), rtol=1e-9)
    np.testing.assert_allclose(model.predict(texts[["x"]]), y, rtol=0.1)
    assert model.score(texts[["x"]], texts["y"]) > 0.9


def test_texts_of_a_target_tell_how_its_table_is_written(folder):
    x = np.arange(1000, 1000 + N)
    frame = pd.DataFrame({"x": [f"{v / 1000:.3f}" for v in x], "y": [f"{v},5" for v in x]})
    model = KernelRegressor().fit(frame[["x"]], frame["y"])
    assert encoder_tools.column_as_numbers(model.encoder_, frame[["x"]], "x").tolist() == x.tolist()


def test_a_target_of_other_texts_is_refused(folder):
    X = pd.DataFrame({"x": np.arange(40.0)})
    with pytest.raises(ValueError, match="Use KernelClassifier"):
        KernelRegressor().fit(X, ["red", "blue"] * 20)
    with pytest.raises(ValueError, match="y: 'abc' is not a number"):
        KernelRegressor().fit(X, [*map(str, range(39)), "abc"])
    with pytest.raises(ValueError, match=r"1 of 40"):
        KernelRegressor().fit(X, [*map(str, range(39)), ""])
    with pytest.warns(UserWarning, match=r"'1\.234' can be read in two ways"):
        KernelRegressor().fit(X, [f"1.{i}" for i in range(234, 274)])


def test_texts_are_parsed_once(folder, monkeypatch):
    from mercer.tables import parse_numbers

    parsed = []
    parse = parse_numbers.NumberFormat.parse

    def counted(self, text):
        parsed.append(text)
        return parse(self, text)

    monkeypatch.setattr(parse_numbers.NumberFormat, "parse", counted)
    frame = pd.DataFrame({"z": [f"{i + 1},5 kg" for i in range(N)], "y": np.arange(N) ** 2})
    frame.to_csv("t.csv", index=False, sep=";")
    call("fit", "t.csv", "-t", "y", "-o", "m.mercer", "--no-compare")
    weights = [text for text in parsed if "kg" in text and text != "1,5 kg"]
    assert len(weights) == len(set(weights)) == N - 1


def test_classes_that_look_missing_are_predicted(folder, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    labels = np.where(x > 1, "+/-", np.where(x > -0.5, "-", "+"))
    frame = pd.DataFrame({"x": x, "y": labels})
    frame.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "y", "-o", "m.mercer", "--no-compare")
    assert "'-' is a class of the target 'y'" in " ".join(capsys.readouterr().err.split())
    call("predict", "m.mercer", "t.csv", "-o", "p.csv")
    found = pd.read_csv("p.csv", keep_default_na=False)["prediction"]
    assert set(found) == {"+", "-", "+/-"}
    assert (found == labels).mean() > 0.9
    assert "apostrophe" not in capsys.readouterr().err


def test_texts_that_a_spreadsheet_would_run_are_noted(folder, capsys):
    x = np.random.default_rng(0).normal(size=60)
    frame = pd.DataFrame({"x": x, "y": np.where(x > 0, "+ve", "other")})
    frame.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "y", "-o", "m.mercer", "--no-compare")
    capsys.readouterr()
    call("predict", "m.mercer", "t.csv", "-o", "p.csv")
    assert 'have an apostrophe in front, such as "\'+ve"' in " ".join(
        capsys.readouterr().err.split()
    )
    call("predict", "m.mercer", "t.csv", "-o", "p.parquet")
    assert set(pd.read_parquet("p.parquet")["prediction"]) == {"+ve", "other"}


@pytest.mark.parametrize("option", [[], ["--id", "key"]])
def test_names_of_rows_go_along(folder, option):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"key": [f"00{i}" for i in range(100, 160)], "x": rng.normal(size=N)})
    frame.assign(y=frame["x"]).to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "y", "-o", "m.mercer", "--no-compare", *option)
    frame[5:9].to_csv("new.csv", index=False)
    call("predict", "m.mercer", "new.csv", "-o", "p.csv")
    found = pd.read_csv("p.csv", dtype=str)
    assert found.columns[0] == "key"
    assert found["key"].tolist() == frame["key"][5:9].tolist()
    frame[5:9].drop(columns="key").to_csv("new.csv", index=False)
    call("predict", "m.mercer", "new.csv", "-o", "p.csv")
    assert pd.read_csv("p.csv").columns[0] == "prediction"


def test_many_ordered_whole_numbers_are_numbers(folder, capsys):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 15, 80)
    frame = pd.DataFrame(
        {"x": x, "many": x.round().astype(int), "few": (x / 5).round().astype(int)}
    )
    frame.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "many", "-o", "m.mercer", "--no-compare", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["task"] == "regression"
    assert any("--task classification" in note for note in facts["notes"])
    call("fit", "t.csv", "-t", "few", "-o", "m.mercer", "--no-compare", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["task"] == "classification"
    assert any("--task regression" in note for note in facts["notes"])


def test_durations_are_targets(folder, capsys):
    x = np.random.default_rng(0).uniform(10, 50, N)
    frame = pd.DataFrame({"x": x, "time": [f"1:{int(v):02d}:{int(60 * (v % 1)):02d}" for v in x]})
    frame.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "time", "-o", "m.mercer", "--no-compare", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["task"] == "regression"
    assert facts["error"] < 60
    assert any("seconds)" in note and "time (" in note for note in facts["notes"])


def test_parts_of_a_sum_are_asked_about(folder, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"repair": rng.uniform(0, 9, 80), "other": rng.uniform(0, 9, 80)})
    frame["noise"] = rng.normal(size=80)
    frame["cost"] = frame["repair"] + frame["other"]
    frame.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "cost", "-o", "m.mercer", "--no-compare")
    said = " ".join(capsys.readouterr().out.split())
    question = said.split("almost exactly, above all from ")[1][:50]
    assert ": will they be known for new rows?" in question
    assert "repair" in question
    assert "other" in question


def test_a_column_that_is_the_class_in_other_words_is_asked_about(folder, capsys):
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 120)
    frame = pd.DataFrame({"x": rng.normal(size=120), "copy": np.char.add("kind ", kind)})
    frame.assign(kind=kind).to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "kind", "-o", "m.mercer", "--no-compare")
    said = " ".join(capsys.readouterr().out.split())
    assert "almost exactly, above all from copy: will it be known for new rows?" in said


def test_columns_that_matter_little_are_not_denied(folder, capsys):
    """Nearly all of the metric is of "size", and yet "town" is needed: neither tells the target."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.uniform(20, 200, 300), "town": rng.choice(["a", "b"], 300)})
    frame["price"] = 3 * frame["size"] * np.where(frame["town"] == "a", 1.5, 1.0)
    frame.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "price", "-o", "m.mercer", "--no-compare")
    said = " ".join(capsys.readouterr().out.split())
    assert "predicted almost exactly, above all from size" in said
    assert "tells the target" not in said


def test_day_first_can_be_said(folder, capsys):
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2012-01-01") + pd.to_timedelta(rng.integers(0, 700, 200), unit="D")
    days = days[days.day <= 12][:N]
    frame = pd.DataFrame({"day": days.strftime("%d/%m/%Y"), "y": np.sin(days.day_of_year / 58)})
    frame.to_csv("t.csv", index=False)
    errors = {}
    for option in ("--dayfirst", "--monthfirst"):
        call("fit", "t.csv", "-t", "y", "-o", "m.mercer", "--no-compare", "--json", option)
        errors[option] = json.loads(capsys.readouterr().out)["error"]
    assert errors["--dayfirst"] < 0.5 * errors["--monthfirst"]


def test_columns_that_options_name_are_checked(folder):
    pd.DataFrame({"size": [1.5, 2.5] * 20, "y": [1, 2] * 20}).to_csv("t.csv", index=False)
    with pytest.raises(BadInput, match=r"no column 'siz'.*Did you mean 'size'"):
        call("fit", "t.csv", "-t", "y", "-o", "m.mercer", "--category", "siz")
    with pytest.raises(BadInput, match="there is no column 'z'"):
        call("fit", "t.csv", "-t", "y", "-o", "m.mercer", "--ignore", "z")


READING = ["--decimal", "--dayfirst", "--sep", "--encoding"]
KINDS = ["--number", "--category", "--ignore", "--id"]


@pytest.mark.parametrize(
    "command", ["fit", "predict", "compare", "explore", "differ", "check", "map"]
)
def test_every_command_that_reads_a_table_has_the_options_of_reading(command):
    group = typer.main.get_command(_app)
    options = {o for p in group.commands[command].params for o in getattr(p, "opts", ())}
    assert {*READING} <= options
    assert ({*KINDS} <= options) == (command != "predict")  # a model knows its columns


def test_every_command_reads_as_it_is_told(folder, capsys):
    """One column of euros, one of days, and codes that look like numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "price": [f"{v:.3f}" for v in rng.uniform(1, 9, N)],
            "day": [f"{a:02d}/{b:02d}/2012" for a, b in rng.integers(1, 13, (N, 2))],
            "code": rng.choice([3, 7], N),
            "row": [f"{i}x" for i in range(N)],
            "y": rng.normal(size=N).round(2),
        }
    )
    frame.to_csv("t.csv", index=False)
    told = ["--decimal", ",", "--dayfirst", "--category", "code", "--id", "row"]
    call("compare", "t.csv", "-t", "y", "-k", "RBF()", "--save", "m.mercer", *told)
    encoder = load("m.mercer").steps[0][1]
    kinds = {record["name"]: record["kind"] for record in encoder.columns_}
    assert kinds == {"price": "number", "day": "date", "code": "category", "row": "identifier"}
    assert encoder_tools.column_as_numbers(encoder, frame.drop(columns="y"), "price").min() > 999
    assert encoder.encoders_[1].day_first_ is True
    capsys.readouterr()
    call("map", "t.csv", "-o", "c.csv", "-t", "y", "--json", *told)
    notes = " ".join(json.loads(capsys.readouterr().out)["notes"])
    assert "of categories became 2 columns of 0 and 1: code" in notes
    assert f"{frame['price'][0]!r} is {frame['price'][0].replace('.', '')}" in notes
    code = call("differ", "t.csv", "t.csv", "--no-page", "--json", "--permutations", "20", *told)
    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert set(found["columns"]) == {"price", "day", "code", "y"}
    assert "of categories became 2 columns of 0 and 1: code" in " ".join(found["notes"])


def test_new_rows_are_read_as_the_user_says(folder):
    days = pd.date_range("2012-01-01", periods=200, freq="D")
    frame = pd.DataFrame({"day": days.strftime("%d/%m/%Y"), "y": np.arange(200.0)})
    frame.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "y", "-o", "m.mercer", "--no-compare")
    pd.DataFrame({"day": ["02/01/2012", "01/02/2012", "oops"]}).to_csv("new.csv", index=False)
    for option, first in (("--dayfirst", 1), ("--monthfirst", 31)):
        call("predict", "m.mercer", "new.csv", "-o", "p.csv", option)
        assert abs(pd.read_csv("p.csv")["prediction"][0] - first) < 2
