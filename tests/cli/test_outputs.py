"""What the command writes and prints: files whole or as before, no control characters."""

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="the command is not installed: mercer[cli]")
pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mercer import RBF, KernelRidge, load, save
from mercer.cli import file_data, options
from mercer.export import atomic

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "y"])
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_csv(tmp_path / "e.csv", index=False)
    model = KernelRidge(1.0, RBF(0.5)).fit(frame[["a", "b"]], frame["y"])
    save(model, tmp_path / "m.mercer")
    return frame


# --- written whole, or not at all -----------------------------------------------------------------

FAST = ["--cv", "2", "--max-points", "30"]
OUTPUTS = {
    "predict": (["predict", "m.mercer", "d.csv", "-o", "out.csv"], "out.csv"),
    "predict parquet": (["predict", "m.mercer", "d.csv", "-o", "out.parquet"], "out.parquet"),
    "map": (["map", "d.csv", "-o", "out.tsv"], "out.tsv"),
    "fit": (["fit", "d.csv", "-t", "y", "-o", "out.mercer", "--no-compare"], "out.mercer"),
    "compare": (["compare", "d.csv", "-k", "Linear()", *FAST, "-o", "out.html"], "out.html"),
    "compare picture": (
        ["compare", "d.csv", "-k", "Linear()", *FAST, "-o", os.devnull, "--png", "out.png"],
        "out.png",
    ),
    "compare table": (
        ["compare", "d.csv", "-k", "Linear()", *FAST, "-o", os.devnull, "--table", "out.csv"],
        "out.csv",
    ),
    "differ": (["differ", "d.csv", "e.csv", "--permutations", "20", "-o", "out.html"], "out.html"),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_a_full_disk_leaves_the_old_file(kind, run, table, tmp_path, monkeypatch):
    """The disk is full at the last moment: when the bytes are to reach it."""
    arguments, name = OUTPUTS[kind]
    (tmp_path / name).write_bytes(b"what was there before")
    before = sorted(os.listdir(tmp_path))

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    code, _, err = run(*arguments)
    assert code == 2
    assert "No space left" in err
    assert (tmp_path / name).read_bytes() == b"what was there before"
    # What a long search has found stays, so that the next run goes on from there.
    assert [f for f in sorted(os.listdir(tmp_path)) if not f.endswith(".parts")] == before
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert run(*arguments)[0] in (0, 1)
    assert (tmp_path / name).read_bytes() != b"what was there before"


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_devices_and_pipes_are_written_to_not_replaced(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    file_data.write(pd.DataFrame({"a": [1]}), pipe)
    assert os.read(reader, 100) == b"a\n1\n"
    os.close(reader)


# --- never over what is read ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "d.csv", "-t", "y", "-o", "d.csv"],
        ["fit", "d.csv", "-t", "y", "-o", "./d.csv"],
        ["fit", "d.csv", "-t", "y", "-o", "link.csv"],
        ["predict", "m.mercer", "d.csv", "-o", "d.csv"],
        ["predict", "m.mercer", "d.csv", "-o", "m.mercer"],
        ["map", "d.csv", "-o", "d.csv"],
        ["compare", "d.csv", "-o", "d.csv"],
        ["compare", "d.csv", "--table", "d.csv"],
        ["compare", "d.csv", "--png", "d.csv"],
        ["compare", "d.csv", "-t", "y", "--save", "d.csv"],
        ["compare", "d.csv", "-t", "y", "--save", "x", "-o", "x"],
        ["compare", "d.csv", "-o", "x.html", "--png", "./x.html"],
        ["differ", "d.csv", "e.csv", "-o", "e.csv"],
        ["differ", "d.csv", "e.csv", "-o", "d.csv"],
    ],
    ids=" ".join,
)
def test_equal_paths_are_refused(arguments, run, table, tmp_path):
    if os.name == "posix":
        os.symlink("d.csv", tmp_path / "link.csv")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    code, _, err = run(*arguments)
    assert code == 2
    assert "another name" in err
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "m.mercer", "nothing.csv", "-o", "p.xlsx"],
        ["map", "nothing.csv", "-o", "c.json"],
        ["compare", "nothing.csv", "--table", "t"],
    ],
    ids=" ".join,
)
def test_a_kind_of_table_that_is_not_written_is_refused_before_the_work(arguments, run, table):
    code, _, err = run(*arguments)
    assert code == 2
    assert f"cannot write {arguments[-1]}: use .csv, .tsv or .parquet" in err


def test_notes_say_where_copied_classes_were_changed(run, tmp_path):
    table = pd.DataFrame({"x": [1.0, 2.0, 4.0, 7.0], "c": ["=a", "b", "=a", "b"]})
    table.to_csv(tmp_path / "f.csv", index=False)
    code, out, _ = run("map", "f.csv", "-t", "c", "-o", "F.CSV", "--json")
    assert code == 0
    assert "have an apostrophe in front" in out
    assert pd.read_csv(tmp_path / "F.CSV")["c"].tolist() == ["'=a", "b", "'=a", "b"]


def test_a_folder_is_refused_before_the_work(run, table, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("mercer.cli.options.read_table", None)  # nothing is read
    code, _, err = run("fit", "d.csv", "-t", "y", "-o", "folder")
    assert code == 2
    assert "folder is a folder" in err


# --- the terminal ---------------------------------------------------------------------------------

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202egnp\u2066"


def controls(text):
    return [c for c in text if c in ESCAPES and not c.isprintable() and c != "\n"]


@pytest.mark.parametrize("json_too", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "d.csv", "-t", "y", "--no-compare"],
        ["fit", "d.csv", "-t", f"{ESCAPES}?"],
        ["compare", "d.csv", "-t", "y", "-k", "Linear()", *FAST],
        ["differ", "d.csv", "e.csv", "--permutations", "20"],
        ["check", "d.csv"],
        ["map", "d.csv", "-o", "out.csv", "-t", f"a{ESCAPES}"],
        ["predict", "m.mercer", "d.csv"],
    ],
    ids=lambda a: a[0],
)
def test_control_characters_stay_in_the_file(arguments, json_too, run, table, tmp_path):
    """A terminal would obey them: move, clear, rename its window, write backwards."""
    rng = np.random.default_rng(0)
    names = {"a": f"a{ESCAPES}", "b": f"{ESCAPES}b"}
    frame = table.assign(**{new: table[old] for old, new in names.items()})
    frame["word"] = rng.choice([f"{ESCAPES} red", f"green {ESCAPES}", "x\x0by"], len(frame))
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.assign(**{names["a"]: frame[names["a"]] + 5}).to_csv(tmp_path / "e.csv", index=False)
    _, out, err = run(*arguments, *(["--json"] if json_too else []))
    assert controls(out) == controls(err) == []
    assert "owned" in out + err  # the name itself was said
    if json_too and out:
        assert "owned\x07\x1b[2J\x9b31m\x7f" in str(_texts(json.loads(out)))


def _texts(value):
    if isinstance(value, dict):
        return "".join(_texts(k) + _texts(v) for k, v in value.items())
    if isinstance(value, list):
        return "".join(map(_texts, value))
    return str(value)


def test_scripts_that_need_joiners_are_printed_as_they_are():
    from mercer.cli.output import shown

    for text in (
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\U0001f469\u200d\U0001f52c",
        "a\tb\nc",
    ):
        assert shown(text) == text
    assert shown("a\r\nb") == "a\nb"
    assert shown("\x1b[2J") == "\\x1b[2J"


def test_warnings_are_printed_without_control_characters(run, tmp_path, monkeypatch):
    import warnings

    from mercer.cli import check

    def warned(*_, **__):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(f"the column {ESCAPES}", stacklevel=1)
        raise ValueError(f"and the column {ESCAPES}")

    monkeypatch.setattr(check.file_data, "read_data", warned)
    _, out, err = run("check", "d.csv")
    assert controls(out) == controls(err) == []
    assert err.count("owned") == 2


# --- models that need trust -----------------------------------------------------------------------


def test_predict_takes_names_to_trust(run, table, tmp_path):
    model = make_pipeline(FunctionTransformer(np.tanh), KernelRidge(1.0, RBF(0.5)))
    needed = ["numpy.tanh", "sklearn.preprocessing.FunctionTransformer"]
    model.fit(table[["a", "b"]], table["y"])
    save(model, tmp_path / "m.mercer", trusted=needed)
    code, _, err = run("predict", "m.mercer", "d.csv")
    assert code == 2
    assert "numpy.tanh" in err
    assert not (tmp_path / "predictions.csv").exists()
    options = [word for name in needed for word in ("--trusted", name)]
    assert run("predict", "m.mercer", "d.csv", *options)[0] == 0
    written = pd.read_csv(tmp_path / "predictions.csv")["prediction"]
    np.testing.assert_allclose(written, model.predict(table[["a", "b"]]))


def test_compare_says_what_its_model_needs(run, tmp_path):
    """A model of n-grams can be the best one, and its vectorizer needs trust."""
    from mercer.cli.compare import _save

    class Comparison:
        best, notes = "n-grams", []

        def best_model(self, name):
            texts = [f"{word} {i}" for i, word in enumerate(["red", "blue"] * 20)]
            return make_pipeline(TfidfVectorizer(), Ridge()).fit(texts, np.arange(40) % 2)

    comparison = Comparison()
    _save(comparison, tmp_path / "words.mercer")
    name = "sklearn.feature_extraction.text.TfidfVectorizer"
    assert f"mercer predict needs --trusted {name}" in comparison.notes[0]
    assert load(tmp_path / "words.mercer", trusted=[name]).predict(["red 3"]).shape == (1,)


# --- what unpacks to far more than it is ----------------------------------------------------------


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(_reader(), "UNPACKED", 1 << 20)


def _reader():
    return sys.modules[options.read_table.__module__]


def packed(kind, text):
    if kind in ("zip", "xlsx"):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/worksheets/sheet1.xml" if kind == "xlsx" else "t.csv", text)
        return buffer.getvalue()
    return {"gz": gzip, "bz2": bz2, "xz": lzma}[kind].compress(text)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("kind", ["csv.gz", "csv.bz2", "csv.xz", "csv.zip", "xlsx"])
def test_a_small_file_that_unpacks_to_much_is_refused(kind, run, tmp_path):
    text = b"a,b\n" + b"0,0\n" * 500_000
    (tmp_path / f"t.{kind}").write_bytes(packed(kind.split(".")[-1], text))
    code, _, err = run("check", f"t.{kind}")
    assert code == 2
    assert err.startswith(f"mercer: t.{kind} has")
    assert "unpack" in err


@pytest.mark.usefixtures("small_limit")
def test_a_small_parquet_or_npz_that_unpacks_to_much_is_refused(run, tmp_path):
    pd.DataFrame({"a": np.zeros(500_000), "b": np.zeros(500_000)}).to_parquet(tmp_path / "t.pq")
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((500_000, 2)))
    for command in (["check", "t.pq"], ["check", "t.npz"], ["demo", "--data", "t.npz"]):
        code, _, err = run(*command)
        assert code == 2
        assert "unpack" in err


def shared_text(path, rows):
    """A sheet of cells that all show the same long text, which stands in the file once."""
    spreadsheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    buffer = io.BytesIO()
    pd.DataFrame({"a": ["?"] * rows, "b": np.arange(rows)}).to_excel(buffer, index=False)
    with zipfile.ZipFile(buffer) as plain, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in plain.namelist():
            text = plain.read(name).decode()
            text = text.replace(f'<dimension ref="A1:B{rows + 1}" />', '<dimension ref="A1:B1" />')
            text = text.replace('t="inlineStr"><is><t>?</t></is>', 't="s"><v>0</v>')
            part = f'<Override PartName="/xl/shared.xml" ContentType="{kind}"/></Types>'
            made.writestr(name, text.replace("</Types>", part))
        text = f"<si><t>{'x' * 10_000}</t></si>"
        made.writestr("xl/shared.xml", f'<sst xmlns="{spreadsheet}">{text}</sst>')


@pytest.mark.usefixtures("small_limit")
def test_a_long_text_in_every_row_is_stored_once_and_refused(run, tmp_path):
    """By the reader's own size check, before the texts of all rows are made."""
    pd.DataFrame({"a": ["x" * 10_000] * 3000, "b": 1.0}).to_parquet(tmp_path / "t.parquet")
    shared_text(tmp_path / "t.xlsx", 3000)
    for name in ("t.parquet", "t.xlsx"):
        code, _, err = run("check", name)
        assert (code, "unpacks to 30" in err) == (2, True), err
    shared_text(tmp_path / "few.xlsx", 3)
    assert options.read_table(tmp_path / "few.xlsx")[0]["a"].str.len().tolist() == [10_000] * 3


def test_lists_in_a_parquet_file_are_refused_as_those_of_json(run, tmp_path):
    pd.DataFrame({"a": [[1, 2]] * 30, "b": 1.0}).to_parquet(tmp_path / "t.parquet")
    code, _, err = run("check", "t.parquet")
    assert (code, "column 'a' holds objects" in err) == (2, True)


@pytest.mark.usefixtures("small_limit")
def test_standard_input_is_limited_too(run, monkeypatch):
    content = gzip.compress(b"a,b\n" + b"0,0\n" * 500_000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, _, err = run("check", "-")
    assert code == 2
    assert "unpack" in err


@pytest.mark.usefixtures("small_limit")
def test_ordinary_files_of_any_size_are_unpacked(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40_000, 2)), columns=["a", "b"])
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    assert run("check", "t.csv.gz", "--max-points", "50")[0] == 0


def test_the_limit_is_far_above_what_tables_need():
    assert _reader().UNPACKED >= 1 << 28


# --- line breaks that are none --------------------------------------------------------------------


@pytest.mark.parametrize(
    "break_", ["\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\x1c", "\x1d", "\x1e"]
)
@pytest.mark.parametrize("sep", [",", ";", " "])
def test_only_line_breaks_end_a_line(break_, sep, tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"a{sep}b{sep}c", *(f"{i}{sep}x{break_}y{sep}2" for i in range(20))]
    path.write_bytes("\n".join(lines).encode())
    frame, notes = options.read_table(path)
    assert frame.columns.tolist() == ["a", "b", "c"]
    assert frame["b"].tolist() == [f"x{break_}y"] * 20
    assert not [note for note in notes if "fewer" in note]


def test_only_line_breaks_end_a_line_of_json(tmp_path):
    rows = [{"a": i, "b": "x\u2028y\x85z"} for i in range(5)]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
    assert options.read_table(path)[0].to_dict("records") == rows
