"""Files as people have them: separators, encodings, packings and mistakes."""

import gzip
import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from mercer.tables import BadInput, TableEncoder, read_table


@pytest.fixture
def read(tmp_path):
    def read(content, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return read


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_the_separator_is_found(read, sep):
    frame, _ = read(f"a{sep}b\n1{sep}x\n2{sep}y\n")
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_long_lines_and_long_texts(read, sep):
    """csv's own limit is 131 072 characters for what stands between two separators."""
    wide = "\n".join(sep.join(f"{name}{j}" for j in range(20_000)) for name in ("column ", 1, 2))
    assert read(wide)[0].shape == (2, 20_000)
    long = "a word " * 30_000
    frame, _ = read(f"text{sep}y\n{long}{sep}1\n{long}{sep}2\n")
    assert frame["text"].str.len().tolist() == [len(long.strip())] * 2


def test_continental_numbers_with_semicolons(read):
    frame, notes = read("a;b\n1,5;2\n2,25;3\n")
    assert frame["a"].tolist() == [1.5, 2.25]
    assert any("semicolons" in note for note in notes)


def test_one_column_of_continental_numbers(read):
    assert read("x\n1,5\n2,25\n3\n")[0].to_dict("list") == {"x": [1.5, 2.25, 3.0]}
    assert read("x\n1.200,5\n2,5\n")[0].to_dict("list") == {"x": [1200.5, 2.5]}
    assert read('x\n"1",5\n"2",6\n')[0].to_dict("list") == {"row name": [1, 2], "x": [5, 6]}
    with pytest.raises(BadInput, match="line 2 has 2 values for 1 columns"):
        read("x\n1,5\n2,5,3\n")


def test_the_separator_is_given(read):
    assert read("a:b\n1:2\n", sep=":")[0].columns.tolist() == ["a", "b"]
    with pytest.raises(BadInput, match="one character"):
        read("a:b\n", sep="::")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-le"])
def test_the_encoding_is_found(read, encoding):
    frame, _ = read("naïve,größe\né,1\nü,2\n".encode(encoding))
    assert frame.columns.tolist() == ["naïve", "größe"]
    assert frame["naïve"].tolist() == ["é", "ü"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark(tmp_path, encoding):
    text = "名前,町\n太郎,東京\n花子,大阪\n" * 5
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    assert read_table(tmp_path / "t.csv")[0]["町"][0] == "東京"


def test_a_wrong_encoding_is_named(read):
    with pytest.raises(BadInput, match="not ascii"):
        read("é\n1\n".encode(), encoding="ascii")
    with pytest.raises(BadInput, match="not known"):
        read("a\n1\n", encoding="klingon")


def test_packed_files(read):
    assert len(read(gzip.compress(b"a,b\n1,2\n"), "t.csv.gz")[0]) == 1
    with pytest.raises(BadInput, match="cannot unpack"):
        read(b"a,b\n", "t.csv.gz")


def test_a_packed_file_from_a_mac(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as archive:
        archive.writestr("t.csv", "a,b\n1,2\n")
        archive.writestr("__MACOSX/._t.csv", b"\x00\x05\x16\x07")
    assert read_table(tmp_path / "t.csv.zip")[0].to_dict("list") == {"a": [1], "b": [2]}


def test_categories_of_a_parquet_file_stay_categories(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"code": pd.Categorical(["1", "2", None] * 4), "x": np.arange(12) / 8})
    frame.to_parquet(tmp_path / "t.parquet")
    table, _ = read_table(tmp_path / "t.parquet")
    encoder = TableEncoder().fit(table)
    assert [record["kind"] for record in encoder.columns_] == ["category", "number"]
    new, _ = read_table(tmp_path / "t.parquet", like=encoder)
    assert np.array_equal(encoder.transform(new), encoder.transform(frame))
    assert read_table(tmp_path / "t.parquet", target="code")[0]["code"].dtype == float


def test_other_formats(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    frame.to_json(tmp_path / "t.json", orient="records")
    frame.to_parquet(tmp_path / "t.parquet")
    names = ["t.jsonl", "t.json", "t.parquet"]
    try:
        frame.to_excel(tmp_path / "t.xlsx", index=False)
        names.append("t.xlsx")
    except ImportError:
        pass
    for name in names:
        read, _ = read_table(tmp_path / name)
        assert read["a"].tolist() == [1, 2], name
        assert read["b"].isna().tolist() == [False, True], name


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"a;b\n1;2\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert read_table("-")[0].to_dict("list") == {"a": [1], "b": [2]}


def test_names_that_look_the_same_are_the_same(read):
    """A Mac may write é as e and an accent."""
    assert read("cafe\u0301,b\n1,2\n", number=["caf\u00e9"])[0].columns[0] == "caf\u00e9"


def test_duplicate_and_empty_names(read):
    frame, notes = read("a,a,\n1,2,3\n")
    assert frame.columns.tolist() == ["a", "a.1", "column_3"]
    assert any("same name" in note for note in notes)


@pytest.mark.parametrize("header", ["a,b,c", "a,b,c,"])
def test_trailing_commas_shift_nothing(read, header):
    frame, _ = read(f"{header}\n1,2,3,\n4,5,6,\n")
    assert frame[["a", "b", "c"]].to_numpy().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_header_that_is_one_short_names_the_rows(read):
    frame, notes = read("a,b\nx,1,2\ny,3,4\n")
    assert frame["a"].tolist() == [1, 3]
    assert any("row names" in note for note in notes)


@pytest.mark.parametrize("before", [0, 500])
def test_a_line_that_is_too_long_is_an_error(read, before):
    with pytest.raises(BadInput, match=f"line {before + 2}"):
        read("a,b,c\n" + "1,2,3\n" * before + "4,5,6,7\n" + "1,2,3\n" * 3)


def test_a_value_after_the_last_separator_far_down_is_an_error(read):
    rows = "1,2,\n" * 300
    with pytest.raises(BadInput, match="line 302 has 3 values for 2 columns"):
        read(f"a,b\n{rows}Smith, John,3\n")


def test_a_row_is_not_cut_where_looking_ends(read):
    """The 200 lines that are looked at may end between quotes."""
    rows = '1,"two\nlines",3\n' * 150
    frame, notes = read(f"a,b,c\n{rows}")
    assert frame.shape == (150, 3)
    assert notes == []


@pytest.mark.parametrize("line", ["sep=;\n", '"sep=;"\r\n', "SEP=;\n\n"])
def test_the_first_line_of_spreadsheets_names_the_separator(read, line):
    frame, _ = read(f"{line}a;b\n1;x, y\n2;z, u\n")
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x, y", "z, u"]}


def test_no_header(read):
    frame, notes = read("1,0,0.995,g\n1,0,1,b\n")
    assert frame.columns[0] == "column_1"
    assert len(frame) == 2
    assert any("no header" in note for note in notes)
    assert read("country,2001,2002\nA,1,2\n")[0].columns.tolist() == ["country", "2001", "2002"]
    assert read("0,1\n0.5,2\n")[0].columns.tolist() == ["0", "1"]
    assert read("?,3,0.7\n4,5,1\n")[0].columns[0] == "column_1"


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("0,1,2,3,y", "0.5,0.1,2,3,a"),  # pandas numbers the columns of an array
        ("y,1,2,3", "a,0.1,2,3"),
        ("900,902.5,905,907.5,910,kind", "1,2,3,4,5,wheat"),  # a spectrum
        ("12.5,3,8,dose", "1,2,3,4"),
        ("142.24,144.78,147.32,149.86,152.4", "9.4,0,0,1,0"),  # steps that are not exact
    ],
)
def test_a_header_of_numbers_and_names(read, header, row):
    frame, _ = read(f"{header}\n{row}\n{row}\n")
    assert ",".join(frame.columns) == header


def test_a_first_line_without_a_first_value_is_a_header(read):
    """R writes names of rows without a name."""
    frame, _ = read('"","16.5","16.75","17.25"\n"71",0,0,3\n"70",1,3,4\n')
    assert frame.columns.tolist() == ["column_1", "16.5", "16.75", "17.25"]
    assert len(frame) == 2


def test_values_are_read_as_people_mean_them(read):
    frame, notes = read(
        'price,share,when,gap,town\n"$1,200",12%,2020-01-05,?,Rome\n$950,5%,2021-02-03,-,NA\n'
    )
    assert frame["price"].tolist() == [1200, 950]
    assert frame["share"].tolist() == [0.12, 0.05]
    assert frame["when"].dtype.kind == "M"
    assert frame["gap"].isna().all()
    assert frame["town"].isna().tolist() == [False, True]
    assert sum("read as numbers" in note for note in notes) == 1


def test_quoted_separators_and_line_breaks(read):
    frame, _ = read('a,b\n"x, y",1\n"two\nlines",2\n')
    assert frame["a"].tolist() == ["x, y", "two\nlines"]


def test_spaces_as_separators(read):
    assert read("a b  c\n1 2 3\n", "t.txt")[0].to_numpy().tolist() == [[1, 2, 3]]


def test_spaces_and_tabs_between_columns(read):
    """As in Auto.data: a header with tabs, rows with spaces, names in quotes behind a tab."""
    rows = "".join(f'{i}.0   8   130.0\t"chevrolet {i} malibu"\n' for i in range(12))
    frame, notes = read("mpg\tcylinders\tpower\tname\n" + rows)
    assert frame["power"].tolist() == [130.0] * 12
    assert frame["name"][3] == "chevrolet 3 malibu"
    assert any("spaces" in note for note in notes)
    # Spaces inside of values separate nothing.
    frame, _ = read("town,size\n" + "New York,1\nLos Angeles,2\n" * 5)
    assert list(frame.columns) == ["town", "size"]


def test_one_column(read):
    assert read("a\n1\n2\n")[0].shape == (2, 1)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "t.csv", "empty"),
        ("a,b\n", "t.csv", "no rows"),
        ("x", "t.doc", "unknown kind"),
        ("x", "t.npz", r"known: [^.]*zip\)\.$"),
        (b"\x00\x01\xff\xfe" * 50 + b"\x81", "t.csv", "cannot read|not a text"),
        ('{"a": {"b": 1}}\n', "t.jsonl", "holds objects"),
    ],
)
def test_what_cannot_be_read(read, content, name, message):
    with pytest.raises(BadInput, match=message):
        read(content, name)


def test_missing_values_of_numbers_stay_numbers(read):
    frame, _ = read("a\n1\n?\n3\n")
    assert frame["a"].dtype == float
    assert np.isnan(frame["a"][1])


def test_a_header_further_down_is_asked_about(tmp_path):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed: mercer[cli]")
    rows = [["Deaths of 2016", None, None], ["name", "age", "kind"], ["Bowie", 69, "music"]]
    pd.DataFrame(rows).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    assert any("further down" in note for note in read_table(tmp_path / "t.xlsx")[1])


def test_one_column_of_texts_with_spaces_is_one_column(read):
    frame, _ = read("Day\n" + "".join(f"{i + 1} Nov 2003\n" for i in range(12)))
    assert frame["Day"].dt.day.tolist() == list(range(1, 13))


def test_lines_of_many_columns_are_read(read):
    width = 30_000  # a line is longer than a field of Python's csv module may be
    header = ",".join(f"gene_{j}" for j in range(width))
    frame, _ = read(f"{header};\n" + f"{','.join(['0.25'] * width)};\n" * 3)
    assert frame.shape == (3, width)
    assert frame.columns[-2] == f"gene_{width - 2}"
