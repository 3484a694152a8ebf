"""Numbers, dates and codes as people write them, read by the evidence of the whole table."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import KernelRegressor, TableEncoder, load, read_table, save
from mercer.tables.parse_numbers import TextColumn, read_numbers
from mercer.tables.parse_text import as_texts
from mercer.tables.reading import Notation


def numbers(texts, **options):
    read = read_numbers(TextColumn(as_texts(texts)), **options)
    return None if read is None else read.values.tolist()


@pytest.fixture
def read(tmp_path):
    def read(content, **options):
        path = tmp_path / "table.csv"
        path.write_text(content, encoding="utf-8")
        return read_table(path, **options)

    return read


def records(table, **options):
    return {r["name"]: r for r in TableEncoder(**options).fit(table).columns_}


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1,234", "0,567"], [1.234, 0.567]),
        (["1,234", "1,5"], [1.234, 1.5]),
        (["1,234", "2,345,678"], [1234, 2345678]),
        (["836", "1.167", "1.250.000"], [836, 1167, 1250000]),
        (["1\u00a0234", "12\u202f345,5", "7"], [1234, 12345.5, 7]),
        (["1 234", "12 345"], [1234, 12345]),
        (["1'234.50", "2\u2019000"], [1234.5, 2000]),
        (["1,00,000", "12,34,567", "5,000"], [100000, 1234567, 5000]),
        (["12 kg", "3.5 kg", "7"], [12, 3.5, 7]),
        (["12 °C", "-3 °C"], [12, -3]),
        (["<0.1", "0.5", "2"], [0.1, 0.5, 2]),
        (["10K", "1.2M", "900"], [10000, 1.2e6, 900]),
        (["59.222 EUR", "1.000.000 EUR"], [59222, 1000000]),
        (["500k€", "1.2M€", "3 M EUR"], [500e3, 1.2e6, 3e6]),
        (["7,5 Mio. €", "800 k€"], [7.5e6, 800e3]),
        (["R$ 1.200,50", "199 kr", "1 299,90 zł", "12 Kč"], [1200.5, 199, 1299.9, 12]),
        (["08:30", "17:45"], [30600, 63900]),
        (["5:30 pm", "12:15 AM"], [63000, 900]),
        (["1:02:33", "2:00:01.5"], [3753, 7201.5]),
        (["1:02:33", "59:30"], [3753, 3570]),  # minutes and seconds, beside hours
        (["08:30:15", "17:45"], [30615, 63900]),  # a clock, which leaves seconds out
        (["75:10", "9:05"], [4510, 545]),
        (["1 h 30 min", "45 min", "2h"], [5400, 2700, 7200]),
        (["PT1H30M", "PT5M"], [5400, 300]),
        (["2 days 03:04:05", "0 days 00:00:01"], [183845, 1]),
        (["5 stars", "4 stars", "1 star", "2 stars", "3 stars"], [5, 4, 1, 2, 3]),
    ],
)
def test_numbers_of_other_countries_and_with_units(texts, values):
    assert_allclose(numbers(texts), values)


@pytest.mark.parametrize(
    "texts",
    [
        ["<=50K", ">50K"],  # names of ranges
        ["5 kg", "300 g", "2 lb"],  # units that differ
        ["12 Main St", "14 High St"],
        ["2. Middle Atlantic"] * 9,  # a numbered name
        ["1A", "2B", "3C"],
        ["18-25", "<18", ">65"],
        ["5'11", "6'02"],
        ["1.2.3", "1.2.4"],
        ["3:2", "1:0"],
    ],
)
def test_texts_that_are_not_numbers(texts):
    assert numbers(texts) is None


def test_one_odd_value_does_not_flip_a_column():
    found = numbers(["1.5", "2.25", "3.125"] * 20 + ["1.250.000"])
    assert_allclose(found[:3], [1.5, 2.25, 3.125])


def test_a_semicolon_file_is_read_by_all_its_columns(read):
    frame, notes = read("a;b;c\n1,0;836;59.222 EUR\n2,5;1.167;1.000 EUR\n0,1;12;300 EUR\n")
    assert frame["a"].tolist() == [1, 2.5, 0.1]
    assert frame["b"].tolist() == [836, 1167, 12]
    assert frame["c"].tolist() == [59222, 1000, 300]
    assert any("'1.167' in b as 1167" in note and "decimal" in note for note in notes)
    assert frame.attrs["formats"]["b"]["decimal"] == ","


def test_columns_with_points_decide_for_the_others(read):
    frame, _ = read("a;b\n1.05;1.167\n2.5;2.250\n")
    assert frame["b"].tolist() == [1.167, 2.25]
    frame, _ = read("a;b\n1.05;1.167\n2.5;2.250\n", decimal=",")
    assert frame["b"].tolist() == [1167, 2250]


def test_a_semicolon_alone_speaks_for_a_comma(read):
    assert read("a;b\nx;1.167\ny;2.250\n")[0]["b"].tolist() == [1167, 2250]
    assert read("a,b\nx,1.167\ny,2.250\n")[0]["b"].tolist() == [1.167, 2.25]
    assert read("a;b\nx;1.167\ny;2.250\n", decimal=".")[0]["b"].tolist() == [1.167, 2.25]
    with pytest.raises(ValueError, match="decimal must be"):
        read("a;b\nx;1\n", decimal="!")


def test_the_encoder_reads_frames_by_the_same_evidence():
    table = pd.DataFrame({"a": ["1,5", "0,25", "3,0"], "b": ["1.167", "836", "2.000"]})
    encoder = TableEncoder().fit(table)
    assert_allclose(encoder.encoders_[1].median_, 1167)
    new = encoder.transform(pd.DataFrame({"a": ["1,125"], "b": ["1.200"]}))
    same = encoder.transform(pd.DataFrame({"a": [1.125], "b": [1200.0]}))
    assert_allclose(new, same)
    assert_allclose(TableEncoder(decimal=".").fit(table).encoders_[1].median_, 2.0)
    assert any("'1.167' in b as 1167" in note for note in encoder.notes())
    with pytest.raises(ValueError, match="decimal must be"):
        TableEncoder(decimal=":").fit(table)


def test_a_model_of_a_file_keeps_how_the_file_was_written(read, tmp_path):
    lines = [f"{i},5;{1 + i % 9}.{100 + 7 * i}" for i in range(40)]
    frame, _ = read("a;b\n" + "\n".join(lines) + "\n")
    encoder = TableEncoder().fit(frame)
    save(encoder, tmp_path / "encoder.mercer")
    kept = load(tmp_path / "encoder.mercer")
    new = pd.DataFrame({"a": ["1,125"], "b": ["1.200"]})
    numbers = pd.DataFrame({"a": [1.125], "b": [1200.0]})
    assert_allclose(kept.transform(new), encoder.transform(numbers))


def test_new_files_without_evidence_are_read_as_the_training_file(read):
    frame, _ = read("a\tb\n" + "".join(f"{i},5\t{1 + i}.{100 + i}\n" for i in range(20)))
    encoder = TableEncoder().fit(frame)
    new, _ = read("a\tb\n1\t1.200\n", like=encoder)
    assert_allclose(
        encoder.transform(new), encoder.transform(pd.DataFrame({"a": [1], "b": [1200]}))
    )
    given, _ = read("a\tb\n1\t1.200\n", like=encoder, decimal=".")
    one = pd.DataFrame({"a": [1], "b": [1.2]})
    assert_allclose(encoder.transform(given), encoder.transform(one))


def test_new_files_of_another_country_are_noted(read):
    frame, _ = read("a,b\n" + "".join(f"{i},{1000 + 7 * i}\n" for i in range(20)))
    encoder = TableEncoder().fit(frame)
    new, notes = read("a;b\n1;1.234\n", like=encoder)  # whole numbers: a model without a mark
    assert_allclose(
        encoder.transform(new), encoder.transform(pd.DataFrame({"a": [1], "b": [1234]}))
    )
    assert any("'1.234' in b as 1234" in note for note in notes)
    frame, _ = read("a,b\n" + "".join(f"{i},{i / 7:.3f}\n" for i in range(20)))
    encoder = TableEncoder().fit(frame)
    new, _ = read("a;b\n1;1.234\n", like=encoder)  # 1234 would be far from all others
    assert_allclose(
        encoder.transform(new), encoder.transform(pd.DataFrame({"a": [1], "b": [1.234]}))
    )
    encoder = TableEncoder().fit(pd.DataFrame({"a": range(20), "b": [f"{i},5" for i in range(20)]}))
    _, notes = read("a,c,b\n1,0.5,1.234\n2,0.25,1.200\n", like=encoder)
    assert any("'1.234' in b was read with the decimal mark ','" in note for note in notes)


@pytest.mark.parametrize("text", ["1.5", "1.50", "0.125", "12.3456", "1234.5", "3"])
def test_numbers_that_need_no_interpretation_are_read_by_pandas_alone(read, monkeypatch, text):
    monkeypatch.setattr("mercer.tables.typed.TextColumn", None)
    frame, _ = read(f"a,b\n{text},x\n{text},y\n", category=["b"])
    assert frame["a"].tolist() == [float(text)] * 2


def test_thousands_that_pandas_takes_for_decimals(read):
    frame, _ = read("a;b\n1,5;1.000\n2,5;2.000\n")  # whole floats, to pandas
    assert frame["b"].tolist() == [1000, 2000]
    frame, _ = read("a;b\n1,5;1.500\n2,5;\n")
    assert frame["b"][0] == 1500


def test_plain_files_have_no_notes_on_numbers(read):
    """Points with three digits behind them, in a file whose columns are separated by commas."""
    assert read("a,b\n23.110,x\n24.200,y\n")[1] == []
    assert read("a\tb\n23.110\t0.5\n24.200\t1.5\n")[1] == ["columns are separated by tabs"]
    frame, _ = read("a,b\n" + "".join(f"{i}.5,{i}.25\n" for i in range(20)))
    encoder = TableEncoder().fit(frame)
    new, notes = read("a,b\n1.234,1\n", like=encoder)
    assert notes == []
    assert_allclose(
        encoder.transform(new), encoder.transform(pd.DataFrame({"a": [1.234], "b": [1]}))
    )


def test_codes_with_letters_are_not_numbers(read):
    stations = "".join(f"{100 + i},{i}.5\n" for i in range(60))
    frame, _ = read("station,x\n" + stations + "c118,7.5\n")
    assert frame["station"].tolist()[-1] == "c118"
    assert frame["station"].tolist()[0] == "100"
    families, _ = read("family\n" + "".join(f"{i:03d}\n" for i in range(60)) + "136A\n")
    assert families["family"].tolist()[0] == "000"
    with_a_word, notes = read("n,x\n" + "4,1\n6,2\n" * 20 + "rotary,3\n")
    assert with_a_word["n"].isna().sum() == 1
    assert any("'rotary'" in note for note in notes)


def test_control_characters_belong_to_no_value(read):
    frame, _ = read("x\n1.5\n6.2\x1a\n")
    assert frame["x"].tolist() == [1.5, 6.2]


def test_years_of_two_digits_are_those_of_spreadsheets(read):
    frame, _ = read("day\n25/11/63\n13/01/73\n14/02/21\n")
    assert frame["day"].dt.year.tolist() == [1963, 1973, 2021]


def test_any_name_of_a_column(read):
    frame, _ = read("self;columns\n1,5;x\n2,5;y\n")
    assert frame["self"].tolist() == [1.5, 2.5]


# --- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dates",
    [
        [f"{d:02d}/{m:02d}/2012" for m in range(1, 13) for d in range(1, 13)],  # in order
        [f"01/{m:02d}/{y}" for y in (2011, 2010, 2012) for m in range(1, 13)],  # firsts of months
        [f"{d:02d}/{m:02d}/2012" for d in (5, 2, 9, 12, 1, 7) for m in (3, 4)],  # a season
        ["03.02.2012", "05.07.2011"],
    ],
)
def test_days_are_found_where_none_is_above_twelve(dates):
    found = Notation().columns({"day": as_texts(dates)})["day"]
    assert found.format.day_first
    assert found.values[0] == np.datetime64(f"2012-{dates[0][3:5]}-{dates[0][:2]}") or (
        found.values[0].astype(str)[:4] != "2012"
    )


def test_dates_that_nothing_tells_are_noted_and_can_be_said(read):
    content = "day,x\n01/02/2012,1\n05/06/2011,2\n11/03/2012,3\n"
    frame, notes = read(content)
    assert frame["day"][0] == pd.Timestamp("2012-01-02")
    assert any("'01/02/2012' in day as 2012-01-02" in n and "dayfirst" in n for n in notes)
    frame, notes = read(content, dayfirst=True)
    assert frame["day"][0] == pd.Timestamp("2012-02-01")
    assert any("('01/02/2012' is 2012-02-01)" in note for note in notes)


def test_other_columns_tell_where_the_day_stands():
    table = {
        "a": as_texts(["25/12/2012", "03/02/2012", "05/06/2012"]),
        "b": as_texts(["01/02/2012", "05/06/2012", "03/02/2012"]),
    }
    assert Notation().columns(table)["b"].values[0] == np.datetime64("2012-02-01")


def test_the_encoder_keeps_where_the_day_stands():
    table = pd.DataFrame({"day": ["01/02/2012", "05/06/2011", "11/03/2012"] * 4})
    encoder = TableEncoder(dayfirst=True).fit(table)
    same = encoder.transform(pd.DataFrame({"day": pd.to_datetime(["2012-02-01"])}))
    assert_allclose(encoder.transform(table[:1]), same)
    assert any("'01/02/2012' is 2012-02-01" in note for note in encoder.notes())
    assert any("2012-01-02" in note for note in TableEncoder().fit(table).notes())


# --- what the user says ---------------------------------------------------------------------------


def test_declared_categories_are_categories(rng):
    values = rng.choice([1224, 1225, 1301], 60)
    table = pd.DataFrame({"x": rng.normal(size=60), "zip": values})
    assert records(table)["zip"]["kind"] == "number"
    for declared in (values, values.astype(str), [f"0{v}" for v in values]):
        frame = table.assign(zip=pd.Categorical(declared))
        encoder = TableEncoder().fit(frame)
        assert encoder.columns_[1]["kind"] == "category"
        assert len(encoder.columns_[1]["outputs"]) == 3
        again = encoder.transform(frame.assign(zip=frame["zip"].astype(object)))
        assert_array_equal(encoder.transform(frame), again)


def test_polars_categories_are_categories():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    codes = pl.Series("zip", ["1224", "1225"] * 20, dtype=pl.Categorical)
    table = pl.DataFrame({"x": np.arange(40.0) ** 2}).with_columns(codes)
    assert records(table)["zip"]["kind"] == "category"


def test_leading_zeros_are_kept(read, rng):
    codes = rng.choice(["02139", "10001", "94110"], 40)
    frame, _ = read("zip,x\n" + "".join(f"{c},{i}.5\n" for i, c in enumerate(codes)))
    assert frame["zip"].tolist() == codes.tolist()
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_[0]["outputs"] == ["zip=02139", "zip=10001", "zip=94110"]
    new, _ = read("zip,x\n02139,1\n", like=encoder)
    assert encoder.transform(new)[0, 0] == 1
    months, _ = read("m\n01\n02\n11\n")
    assert months["m"].tolist() == [1, 2, 11]
    states, _ = read("s\n01\n02\n72\n")
    assert states["s"].tolist() == ["01", "02", "72"]


def test_columns_can_be_said(rng):
    table = pd.DataFrame(
        {
            "code": rng.choice([3, 7], 40),
            "id": rng.permutation(40),
            "key": [f"K{i}" for i in range(40)],
            "size": ["12", "many", "few", "7.5"] * 10,
            "x": rng.normal(size=40),
        }
    )
    options = {"category": ["code"], "number": ["size", "id"], "ignore": ["x"], "id": ["key"]}
    found = records(table, **options)
    kinds = {name: record["kind"] for name, record in found.items()}
    assert kinds == {
        "code": "category",
        "id": "number",
        "key": "identifier",
        "size": "number",
        "x": "ignored",
    }
    assert found["size"]["not_read"] == ["few", "many"]
    notes = TableEncoder(**options).fit(table).notes()
    assert "1 column was left out (as you say): x." in notes
    with pytest.raises(ValueError, match="id names the column 'name'"):
        TableEncoder(id=["name"]).fit(table)
    with pytest.raises(ValueError, match="number and ignore both name the column 'x'"):
        TableEncoder(number=["x"], ignore=["x"]).fit(table)
    with pytest.raises(ValueError, match="none of its values can be read as a number: 'K0'"):
        TableEncoder(number=["key"]).fit(table)
    with pytest.raises(ValueError, match="ignore must be a list"):
        TableEncoder(ignore="x").fit(table)


def test_a_model_takes_an_encoder(rng):
    table = pd.DataFrame({"code": rng.integers(1, 4, 80), "x": rng.normal(size=80)})
    y = np.array([0.0, 5.0, -3.0])[table["code"] - 1] + table["x"]
    model = KernelRegressor(n_rounds=1, encoder=TableEncoder(category=["code"])).fit(table, y)
    assert model.encoder_.columns_[0]["kind"] == "category"
    assert model.encoder.category == ["code"]
    with pytest.raises(ValueError, match="encoder must be a TableEncoder"):
        KernelRegressor(encoder=TableEncoder(keep=[])).fit(table, y)


# --- new rows and strange rows --------------------------------------------------------------------


def test_predictions_warn_of_values_that_cannot_be_read(rng):
    table = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60)})
    model = KernelRegressor(n_rounds=1).fit(table, table["x"])
    new = pd.DataFrame({"x": ["abc", "0.5"], "z": [0.1, 0.2]})
    with pytest.warns(UserWarning, match=r"cannot be read count as missing: 'abc' in x \(1 row\)"):
        model.predict(new)


def test_values_that_the_training_table_could_not_read_do_not_warn(rng):
    x = [*map(str, rng.normal(size=59)), "abc"]
    model = KernelRegressor(n_rounds=1).fit(pd.DataFrame({"x": x}), rng.normal(size=60))
    assert any("'abc' in x" in note for note in model.encoder_.notes())


def test_codes_for_missing_values_are_noted(rng):
    x = rng.normal(20, 5, size=60)
    x[:7] = -999
    notes = " ".join(TableEncoder().fit(pd.DataFrame({"x": x, "y": -x})).notes())
    assert "-999 in x (7 rows), 999 in y (7 rows)" in notes
    spread = pd.DataFrame({"x": np.linspace(-999, 999, 50), "y": np.arange(50.0) * 99})
    assert "codes" not in " ".join(TableEncoder().fit(spread).notes())


@pytest.mark.parametrize("place", [0, 30])
def test_rows_of_totals_are_noted(rng, place):
    names = [f"town {i}" for i in range(30)]
    x = rng.uniform(size=30).tolist()
    names.insert(place, "Total")
    x.insert(place, sum(x))
    notes = " ".join(TableEncoder().fit(pd.DataFrame({"town": names, "x": x})).notes())
    assert "Sums of other rows, it seems: 'Total' in town (1 row)" in notes


def test_rows_of_totals_by_group_are_noted(rng):
    table = pd.DataFrame({"region": np.repeat(["north", "south", "west"], 20)})
    table["x"], table["y"] = rng.uniform(size=(2, 60))
    sums = table.groupby("region").sum().reset_index().assign(region="Total")
    notes = " ".join(TableEncoder().fit(pd.concat([table, sums])).notes())
    assert "Sums of other rows, it seems: 'Total' in region (3 rows)" in notes
    plain = sums.assign(x=0.5, y=0.5)  # "all" may also be a value like others
    assert "Sums" not in " ".join(TableEncoder().fit(pd.concat([table, plain])).notes())


def test_a_name_that_means_total_is_not_a_total(rng):
    names = [f"company {i}" for i in range(30)]
    names[7] = "Total"  # oil
    x = rng.uniform(size=30)
    x[7] = 0.5
    notes = " ".join(TableEncoder().fit(pd.DataFrame({"name": names, "x": x})).notes())
    assert "Sums" not in notes


def test_digits_of_dates_are_dates(read, rng):
    """192607 is a month, and 20120131 a day: as numbers, December is far from January."""
    months = [100 * year + month for year in (1999, 2000) for month in range(1, 13)]
    frame, _ = read("month,x\n" + "".join(f"{m},{i}.5\n" for i, m in enumerate(months)))
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_[0]["kind"] == "date"
    assert any("'199901' is 1999-01-01" in note for note in encoder.notes())
    whole = encoder.transform(frame)
    gaps = frame.astype({"month": float})
    assert_allclose(encoder.transform(gaps), whole)
    texts = encoder.transform(frame.astype({"month": str}))
    assert_allclose(texts, whole)
    steps = np.diff(whole[:, list(encoder.feature_names_out_).index("month")])
    assert steps.max() < 1.2 * steps.min()  # 31 days and 28: December is next to January
    gaps.loc[3, "month"] = np.nan
    assert_allclose(encoder.transform(gaps)[0], whole[0])
    days = pd.DataFrame({"day": pd.date_range("2011-12-20", periods=40).strftime("%Y%m%d")})
    assert TableEncoder().fit(days).columns_[0]["kind"] == "date"
    assert TableEncoder().fit(days.astype(int)).columns_[0]["kind"] == "date"
    said = TableEncoder(number=["day"]).fit(days.astype(int))
    assert said.columns_[0]["kind"] == "number"


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(200001, 200013),  # one year: may be the numbers of twelve rows
        np.arange(200001, 200061),  # a month 13
        np.array([20120131, 20120230] * 10) + np.arange(20) * 10000,  # the 30th of February
        np.arange(20) * 100 + 150001,
    ],
)
def test_other_numbers_stay_numbers(numbers, rng):
    table = pd.DataFrame({"code": numbers.astype(float), "x": rng.normal(size=len(numbers))})
    assert TableEncoder().fit(table).columns_[0]["kind"] == "number"


def test_headers_of_several_lines(read):
    """Kinds of columns as Orange writes them, and units."""
    rows = "".join(f"{20 + i}\t{'mf'[i % 2]}\t{1.5 * i}\t{i % 2}\n" for i in range(30))
    plain, _ = read("age\tsex\tdose\till\n" + rows)
    orange, notes = read("age\tsex\tdose\till\nc\td\tc\td\n\t\t\tclass\n" + rows)
    pd.testing.assert_frame_equal(orange, plain, check_dtype=False)
    assert any("2 rows below the header were left out: 'c' in age" in note for note in notes)
    units, notes = read("age\tsex\tdose\till\nyears\t\tmg\t\n" + rows)
    pd.testing.assert_frame_equal(units, plain, check_dtype=False)
    assert any("1 row below the header was left out: 'years' in age" in note for note in notes)


def test_a_first_row_with_a_strange_value_is_a_row(read):
    rows = "".join(f"{i},{2 * i},{3 * i}\n" for i in range(30))
    frame, _ = read("a,b,c\nunknown,unknown,7\n" + rows)
    assert len(frame) == 31
    words = "".join(f"{i},{2 * i},w{i % 3}\n" for i in range(30))
    frame, _ = read("a,b,c\nunknown,unknown,w1\n" + words)
    assert len(frame) == 31
    frame, _ = read("a,b\nunknown,x\n" + "".join(f"{i},w{i % 3}\n" for i in range(30)))
    assert len(frame) == 31


# --- targets --------------------------------------------------------------------------------------


def test_frequent_labels_of_a_target_are_labels(read):
    rows = [f"{i},{'None' if i % 10 else 'severe'}" for i in range(100)]
    frame, notes = read("x,y\n" + "\n".join(rows) + "\n", target="y")
    assert frame["y"].value_counts().to_dict() == {"None": 90, "severe": 10}
    assert any("'None' is a class of the target 'y' (90 rows)" in note for note in notes)
    signs, _ = read("x,y\n" + "1,+\n2,-\n3,+/-\n" * 10, target="y")
    assert set(signs["y"]) == {"+", "-", "+/-"}
    other, _ = read("x,y\n" + "1,+\n2,-\n3,+/-\n" * 10)
    assert other["y"].isna().sum() == 10


def test_rare_gaps_of_a_target_are_named_with_their_count(read):
    rows = ["1,a", "2,b"] * 50 + ["3,?", "4,NA", "5,"]
    frame, notes = read("x,y\n" + "\n".join(rows) + "\n", target="y")
    assert frame["y"].isna().sum() == 3
    assert any("for no value: '?' (1 row), 'NA' (1 row)" in note for note in notes)
    frame, _ = read("x,y\n" + "1,a\n2,b\n3,NA\n" * 10, target="y")
    assert frame["y"].isna().sum() == 10
    frame, _ = read("x,y\n" + "1,1.5\n2,2.5\n3,-\n" * 10, target="y")
    assert frame["y"].isna().sum() == 10  # a gap among numbers
    frame, notes = read("x,y\n" + "1,1.5\n2,2.5\n3,NA\n" * 10, target="y")
    assert "texts of the target 'y' for no value: 'NA' (10 rows)" in notes


def test_formats_are_plain_values(read):
    """pandas writes attrs into parquet files as JSON."""
    frame, _ = read("a;d\n1,5;01/02/2012\n2,5;13/02/2012\n")
    assert json.loads(json.dumps(frame.attrs))["formats"]["d"] == {"day_first": True}


# --- new rows -------------------------------------------------------------------------------------


def test_days_of_new_rows_where_training_rows_name_no_order(read):
    """2023-06-05 does not say how the next file is written: that file does, or the points in it."""
    days = pd.date_range("2023-01-01", periods=60, freq="5D")
    encoder = TableEncoder().fit(pd.DataFrame({"day": days.strftime("%Y-%m-%d"), "x": range(60)}))
    days = {
        "25/06/2023\n05/06/2023\noops": ["2023-06-25", "2023-06-05", "NaT"],
        "06/25/2023\n06/05/2023\noops": ["2023-06-25", "2023-06-05", "NaT"],
        "05.06.2023": ["2023-06-05"],
        "06/05/2023": ["2023-06-05"],
    }
    for texts, expected in days.items():
        frame, notes = read(f"day,y\n{texts}\n", like=encoder)
        found = encoder.encoders_[0].read(frame["day"].to_numpy(dtype=object))
        assert found.astype("M8[D]").astype(str).tolist() == expected
        is_open = "two ways" in " ".join(notes)
        assert is_open == (len(expected) == 1)  # one row alone may be read otherwise


def test_days_of_new_rows_that_contradict_the_training_rows_are_told(read):
    days = pd.date_range("2023-01-01", periods=60, freq="5D")
    table = pd.DataFrame({"day": days.strftime("%m/%d/%Y"), "x": range(60)})
    encoder = TableEncoder().fit(table)
    for texts, told in (("25/06/2023\n05/06/2023", True), ("06/05/2023\n06/25/2023", False)):
        notes = read(f"day,y\n{texts}\n", like=encoder)[1]
        assert ("month first, as in the training table" in " ".join(notes)) == told


def test_dates_without_an_order_do_not_decide_for_others(read):
    """A decimal comma says more about 05/06/2023 than a column of 2023-06-05 does."""
    rows = [(5, 6), (9, 7), (2, 8), (11, 3), (8, 2), (1, 12)]
    lines = [f"2020-01-{a:02d};{a:02d}/{b:02d}/2023;{a},5" for a, b in rows]
    frame, _ = read("\n".join(["made;day;x", *lines]))
    assert frame["day"].dt.month.tolist() == [b for _, b in rows]


def test_whole_numbers_beyond_floats_are_names(read):
    """Neighbours of 17 digits would be one group, and one category."""
    names = [str(10**17 + i) for i in range(12)]
    frame, _ = read("account,n,y\n" + "".join(f"{a},{a}0,1\n" for a in names) + ",2,1\n")
    assert frame["account"].tolist()[:12] == names
    assert frame["account"].isna()[12]
    assert numbers(["100000000000000000", "2.5"]) == [1e17, 2.5]


@pytest.mark.parametrize("mark", [".", "/", "-"])
def test_months_before_years_are_dates(read, mark):
    """07.2019 is also how a number may begin; new rows may be without such a zero."""
    months = pd.date_range("2019-01-01", periods=36, freq="MS").strftime(f"%m{mark}%Y").tolist()
    frame, notes = read("m,x\n" + "".join(f"{m},{i % 5}\n" for i, m in enumerate(months)))
    assert frame["m"].dt.month.tolist() == [*range(1, 13)] * 3
    assert f"'{months[0]}' is 2019-01-01" in " ".join(notes)
    encoder = TableEncoder().fit(frame)
    for texts in (["10 2020", "11 2022"], ["10 2020"], ["03 2022"]):
        rows = [text.replace(" ", mark) for text in texts]
        new, _ = read("m,x\n" + "".join(f"{m},1\n" for m in rows), like=encoder)
        found = encoder.encoders_[0].read(new["m"].to_numpy(dtype=object)).astype("M8[M]")
        assert found.astype(str).tolist() == [f"{text[3:]}-{text[:2]}" for text in texts]
    plain = read("m,x\n" + "".join(f"{i / 7:.4f},1\n" for i in range(99)))[0]
    assert plain["m"].dtype == float
