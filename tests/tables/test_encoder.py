"""TableEncoder: what becomes of the columns that people really have."""

import pickle
from copy import copy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from mercer import KernelRegressor, TableEncoder, load, save
from mercer.tables import columns, encoder_tools, reading
from mercer.tables.parse_dates import read_dates
from mercer.tables.parse_numbers import TextColumn, read_numbers
from mercer.tables.parse_text import as_texts

N = 120


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "customer_id": np.arange(1000, 1000 + N),
            "code": [f"Order no. {i}" for i in range(N)],
            "age": rng.normal(40, 10, N),
            "price": [f"${v:,.0f}" for v in rng.uniform(500, 5000, N)],
            "town": rng.choice(["Rome", "Oslo", "Lima"], N),
            "when": pd.date_range("2020-01-01", periods=N, freq="5D").astype(str),
            "review": [" ".join(rng.choice(["good", "bad", "film", "plot"], 7)) for _ in range(N)],
            "income": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "member": rng.random(N) < 0.5,
            "constant": 3.0,
            "empty": np.nan,
        }
    )


def kinds(encoder):
    return {record["name"]: record["kind"] for record in encoder.columns_}


def test_every_column_is_recognised(table):
    encoder = TableEncoder().fit(table)
    assert kinds(encoder) == {
        "customer_id": "identifier",
        "code": "identifier",
        "age": "number",
        "price": "number",
        "town": "category",
        "when": "date",
        "review": "text",
        "income": "number",
        "member": "boolean",
        "constant": "constant",
        "empty": "empty",
    }
    Z = encoder.transform(table)
    assert Z.dtype == float
    assert np.isfinite(Z).all()
    assert Z.shape == (N, len(encoder.get_feature_names_out()))
    left_out = {r["name"] for r in encoder.columns_ if not r["outputs"]}
    assert left_out == {"customer_id", "code", "constant", "empty"}


def test_every_kind_weighs_about_the_same(table):
    """Total variance of the outputs of a column (a cycle counts on its own)."""
    encoder = TableEncoder().fit(table)
    variance = dict(zip(encoder.get_feature_names_out(), encoder.transform(table).var(axis=0)))
    for record in encoder.columns_:
        if record["outputs"] and record["kind"] != "date":
            assert 0.2 < sum(variance[name] for name in record["outputs"]) < 1.3, record["name"]


def test_polars_gives_what_pandas_gives(table):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    assert_allclose(
        TableEncoder().fit_transform(pl.from_pandas(table)), TableEncoder().fit_transform(table)
    )


def test_numbers_are_standardised_and_gaps_marked(table):
    encoder = TableEncoder().fit(table[["age", "income"]])
    Z = encoder.transform(table[["age", "income"]])
    assert_allclose(Z[:, 0], (table["age"] - table["age"].mean()) / table["age"].std(ddof=0))
    gap = table["income"].isna().to_numpy()
    assert list(encoder.get_feature_names_out()) == ["age", "income", "income is missing"]
    assert_allclose(Z[:, 2], gap)
    median = (table["income"].median() - table["income"].mean()) / table["income"].std(ddof=0)
    assert_allclose(Z[gap, 1], median)


def test_huge_numbers_do_not_overflow():
    Z = TableEncoder().fit_transform(np.array([[1e300], [-1e300], [0.0]]))
    assert_allclose(Z.std(axis=0), 1.0)


def test_rare_and_unseen_categories_share_a_column():
    values = ["a"] * 50 + ["b"] * 40 + [f"rare{i}" for i in range(5)]
    table = pd.DataFrame({"c": values})
    encoder = TableEncoder().fit(table)
    assert list(encoder.get_feature_names_out()) == ["c=a", "c=b", "c=(other)"]
    new = encoder.transform(pd.DataFrame({"c": ["a", "Mars", None]}))
    assert_allclose(new, [[1, 0, 0], [0, 0, 1], [0, 0, 1]])


def test_names_with_a_single_row_have_a_column_among_names_with_few_rows():
    values = [name for name, rows in zip("abcdefg", (3, 3, 2, 2, 2, 1, 1)) for _ in range(rows)]
    names = TableEncoder().fit(pd.DataFrame({"c": values})).get_feature_names_out()
    assert list(names) == [f"c={name}" for name in "abcdefg"]


def test_as_many_categories_as_columns_are_not_pooled():
    encoder = TableEncoder(max_categories=3).fit(pd.DataFrame({"c": list("abc") * 40 + ["a"]}))
    assert list(encoder.get_feature_names_out()) == ["c=a", "c=b", "c=c"]


@pytest.mark.parametrize(("size", "rows"), [(20, 3), (30, 6), (40, 4)])
def test_names_with_few_rows_are_as_good_as_the_errors_of_rows_left_out_say(rng, size, rows):
    name = np.repeat(np.arange(size), rows)
    x, effect = rng.normal(size=len(name)), 2 * rng.normal(size=size)
    y = effect[name] + x + 0.3 * rng.normal(size=len(name))
    table = pd.DataFrame({"name": [f"{chr(97 + v % 26)}{v}" for v in name], "x": x})
    order = rng.permutation(len(name))
    known, new = np.split(order, [int(0.7 * len(name))])
    new = new[np.isin(name[new], name[known])]
    model = KernelRegressor(n_rounds=2).fit(table.iloc[known], y[known])
    error = np.sqrt(np.mean((model.predict(table.iloc[new]) - y[new]) ** 2))
    assert error < 1.2 * model.leave_one_out_rmse_
    assert error < 0.7


def test_unseen_category_where_none_is_rare_is_zero():
    encoder = TableEncoder().fit(pd.DataFrame({"c": ["a", "b"] * 10}))
    assert_allclose(encoder.transform(pd.DataFrame({"c": ["Mars"]})), [[0, 0]])


def test_sequences_are_texts_and_codes_are_identifiers(rng):
    n = 30
    letters = ["".join(rng.choice(list("ACGT"), size=rng.integers(20, 40))) for _ in range(n)]
    smiles = [f"CC(=O)N{'C' * i}c1ccccc1O" for i in range(n)]
    codes = ["-".join(f"{v:04x}" for v in rng.integers(2**16, size=6)) for _ in range(n)]
    pages = [f"https://example.org/pages?name={'a' * i}" for i in range(n)]
    table = pd.DataFrame({"dna": letters, "smiles": smiles, "code": codes, "page": pages})
    kinds = {r["name"]: r["kind"] for r in TableEncoder().fit(table).columns_}
    assert kinds == {"dna": "text", "smiles": "text", "code": "identifier", "page": "identifier"}


def test_columns_that_are_kept_make_a_frame(rng):
    table = pd.DataFrame(
        {"word": ["a", None, "b"] * 4, "size": rng.normal(size=12)}, index=range(5, 17)
    )
    encoded = TableEncoder(keep=["word"]).fit_transform(table)
    assert list(encoded.columns) == ["word", "size"]
    assert encoded["word"].tolist() == ["a", "", "b"] * 4
    assert encoded["size"].dtype == float
    assert list(encoded.index) == list(table.index)
    assert isinstance(TableEncoder(keep=[]).fit_transform(table), pd.DataFrame)
    with pytest.raises(ValueError, match="keep names the column 'wrd'"):
        TableEncoder(keep=["wrd"]).fit(table)
    with pytest.raises(ValueError, match="keep must be a list"):
        TableEncoder(keep="word").fit(table)


def test_thousands_of_values_never_become_thousands_of_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"street": [f"Street {i}" for i in rng.integers(0, 900, 2000)]})
    assert TableEncoder().fit_transform(table).shape[1] <= 20
    with pytest.raises(ValueError, match="free text"):
        TableEncoder(text="drop").fit(table)


def test_dates_carry_their_cycles():
    hours = pd.DataFrame({"t": pd.date_range("2021-01-01", "2022-06-01", freq="7h")})
    encoder = TableEncoder().fit(hours)
    Z = dict(zip(encoder.get_feature_names_out(), encoder.transform(hours).T))
    angle = 2 * np.pi * (hours["t"].dt.hour / 24)
    assert_allclose(Z["t (time of day, sine)"], np.sin(angle), atol=1e-6)
    same_weekday = hours["t"].dt.day_of_week == 0
    noon = hours["t"].dt.hour == 12
    assert np.ptp(Z["t (weekday, cosine)"][same_weekday & noon]) < 1e-6
    assert "t (day of year, sine)" in Z
    days = pd.DataFrame({"t": pd.date_range("2021-01-01", periods=5)})
    assert list(TableEncoder().fit(days).get_feature_names_out()) == ["t"]


def test_texts_of_the_same_topic_are_near():
    rng = np.random.default_rng(0)
    film = ["film", "actor", "scene", "plot", "camera", "director", "comedy"]
    bank = ["loan", "interest", "credit", "account", "mortgage", "savings", "deposit"]
    texts = [" ".join(rng.choice(words, 6)) for words in (film, bank) for _ in range(40)]
    Z = TableEncoder().fit_transform(pd.DataFrame({"t": texts}))
    film = np.arange(80) < 40
    D = ((Z[:, None] - Z[None]) ** 2).sum(-1)
    assert D[film][:, film].mean() < 0.5 * D[film][:, ~film].mean()


def test_a_single_counting_column_is_kept():
    Z = TableEncoder().fit_transform(pd.DataFrame({"x": np.arange(50)}))
    assert Z.shape == (50, 1)


def test_numbers_by_rows_are_not_identifiers():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"population": rng.permutation(10**6)[:60], "day": np.arange(60)})
    assert kinds(TableEncoder().fit(table)) == {"population": "number", "day": "number"}


def test_notes_are_grouped():
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 57)))
    wide.columns = [f"c{j}" for j in range(57)]
    encoder = TableEncoder().fit(wide.assign(**{f"k{j}": 1 for j in range(40)}))
    assert len(encoder.notes()) == 2
    assert "and 51 more" in encoder.notes()[0]


def test_values_unlike_the_rest_count_as_missing():
    table = pd.DataFrame({"x": [str(i * 1.5) for i in range(40)] + ["out of range"]})
    encoder = TableEncoder().fit(table)
    assert kinds(encoder) == {"x": "number"}
    assert any("'out of range' in x" in note for note in encoder.notes())


def test_text_where_numbers_were_is_missing_at_predict(table):
    encoder = TableEncoder().fit(table)
    new = table.head(3).assign(price="call us", age=["x", "y", "z"])
    with pytest.warns(
        UserWarning, match=r"count as missing: 'x' in age \(3 rows\), 'call us' in price"
    ):
        assert np.isfinite(encoder.transform(new)).all()


def test_half_precision():
    X = np.random.default_rng(0).normal(size=(30, 2)).astype("f2")
    assert_allclose(TableEncoder().fit_transform(X), TableEncoder().fit_transform(X.astype(float)))


def test_nothing_to_see_is_an_error_that_says_why():
    with pytest.raises(ValueError, match="the same in all rows"):
        TableEncoder().fit(pd.DataFrame({"a": [1, 1, 1], "b": ["x", "x", "x"]}))
    with pytest.raises(ValueError, match="column 'a' holds infinity"):
        TableEncoder().fit(pd.DataFrame({"a": [1.0, np.inf]}))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scale": "big"}, "scale must be"),
        ({"text": "kernel"}, "text must be"),
        ({"max_categories": 1}, "max_categories must be"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**parameters).fit(np.eye(3))


def test_it_is_cloned_and_saved_within_a_pipeline(table, tmp_path):
    from mercer import load, save

    y = np.arange(N) % 2
    pipeline = make_pipeline(TableEncoder(), LogisticRegression(max_iter=500))
    model = clone(pipeline).fit(table, y)
    save(model, tmp_path / "model.mercer")
    assert_allclose(
        load(tmp_path / "model.mercer").predict_proba(table), model.predict_proba(table)
    )


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,200", "950"], [1200, 950]),
        (["$1,200.50", "-$3", "(12)"], [1200.5, -3, -12]),
        (["12%", "0.5 %"], [0.12, 0.005]),
        (["3,5", "1.200,25"], [3.5, 1200.25]),
        (["1e-3", "2E5", ".5", "5."], [1e-3, 2e5, 0.5, 5]),
        (["7 €", "?"], [7, np.nan]),
    ],
)
def test_written_numbers(texts, numbers):
    read = read_numbers(TextColumn(as_texts(texts)))
    assert_allclose(read.values, numbers)
    assert read.wrong == []


@pytest.mark.parametrize("texts", [["12 apples"], ["1,2,3"], ["", "NA"], ["-", "."], ["12-13"]])
def test_what_is_not_a_number(texts):
    assert read_numbers(TextColumn(as_texts(texts))) is None


@pytest.mark.parametrize(
    ("texts", "dates"),
    [
        (["2024-02-29", "2023-01-01T12:30"], ["2024-02-29", "2023-01-01T12:30"]),
        (["24/12/2024", "01/02/2024"], ["2024-12-24", "2024-02-01"]),
        (["12/24/2024", "01/02/2024"], ["2024-12-24", "2024-01-02"]),
        (["01.02.24", "?"], ["2024-02-01", "NaT"]),
        (["2024-03-30T23:00:00+01:00"], ["2024-03-30T22:00"]),
        (["2024-03-31 03:30:00.25 +0200", "2024-03-30Z"], ["2024-03-31T01:30:00.25", "2024-03-30"]),
        (["3/14/2024 5:30 PM", "3/14/2024, 12:15:00 am"], ["2024-03-14T17:30", "2024-03-14T00:15"]),
        (["5-Jan-21", "14 February 2022 08:00"], ["2021-01-05", "2022-02-14T08:00"]),
        (["Sept 5, 2021", "May 6 2021"], ["2021-09-05", "2021-05-06"]),
        (["Apr-1-1995", "Jan-1-2001"], ["1995-04-01", "2001-01-01"]),
        (["1949-02", "1950-12"], ["1949-02-01", "1950-12-01"]),
        (["1974Q1", "1975q4", "1976-Q2"], ["1974-01-01", "1975-10-01", "1976-04-01"]),
        (["Q12011", "Q4 2010", "q2-1976"], ["2011-01-01", "2010-10-01", "1976-04-01"]),
        (["Jan 2020", "March 2021"], ["2020-01-01", "2021-03-01"]),
        (["1991 Jul", "1992-Sept"], ["1991-07-01", "1992-09-01"]),
        (["Jan-80", "Feb-80", "Jan'05"], ["1980-01-01", "1980-02-01", "2005-01-01"]),
        (["Q1-92", "Q4 01"], ["1992-01-01", "2001-10-01"]),
    ],
)
def test_written_dates(texts, dates):
    read = read_dates(as_texts(texts))
    np.testing.assert_array_equal(read.values, np.array(dates, dtype="datetime64[us]"))
    assert read.wrong == []


def test_impossible_dates_are_not_dates():
    assert read_dates(as_texts(["2023-02-30", "31/31/2020"])) is None
    assert read_dates(as_texts(["Jan-01", "Jan-02", "Jan-03", "Feb-01"])) is None  # perhaps days
    assert read_dates(as_texts(["5 Janvier 2020", "30 Feb 2020", "2020-01-01 13:00 PM"])) is None


@pytest.mark.parametrize("name", ["ID#", "Row Id.", "Trans. No."])
def test_names_of_rows_may_end_with_a_mark(name, rng):
    table = pd.DataFrame({name: rng.permutation(40) * 7 + 100, "x": rng.normal(size=40)})
    assert TableEncoder().fit(table).columns_[0]["kind"] == "identifier"


def test_words_that_end_as_id_does_are_no_names(rng):
    table = pd.DataFrame({"paid": rng.permutation(40) * 7 + 100, "x": rng.normal(size=40)})
    assert TableEncoder().fit(table).columns_[0]["kind"] == "number"


@pytest.mark.parametrize("name", ["Quarter", "period"])
def test_counted_quarters_are_time(name, rng):
    table = pd.DataFrame({name: np.arange(1, 25), "x": rng.normal(size=24)})
    assert TableEncoder().fit(table).columns_[0]["kind"] == "number"


# --- ranks ----------------------------------------------------------------------------------------


def test_ranks_are_the_share_of_smaller_values(rng):
    from scipy.stats import rankdata

    x = np.round(rng.lognormal(size=200), 1)  # skewed, with ties
    even = np.linspace(0, 1, 200)
    table = pd.DataFrame({"skewed": x, "even": even, "flag": x > 1})
    encoder = TableEncoder(ranks=True).fit(table)
    # An evenly spread column is its own rank.
    assert list(encoder.get_feature_names_out()) == ["skewed", "skewed (rank)", "even", "flag"]
    assert_allclose(encoder.rank_outputs_, [1])
    ranks = rankdata(x)
    expected = (ranks - ranks.mean()) / ranks.std()
    assert_allclose(encoder.transform(table)[:, 1], expected)
    far = encoder.transform(pd.DataFrame({"skewed": [-9.0, 1e9], "even": [0, 1], "flag": [0, 1]}))
    assert_allclose(far[:, 1], [expected.min(), expected.max()])
    assert "1 column of numbers was standardised, and ranked as well: skewed." in encoder.notes()


def test_ranks_of_many_values_are_interpolated(rng):
    x = rng.lognormal(size=5000)
    Z = TableEncoder(ranks=True).fit_transform(x[:, None])
    exact = x.argsort().argsort()
    assert_allclose(Z[:, 1], (exact - exact.mean()) / exact.std(), atol=0.02)


def test_without_ranks_is_the_plain_encoder(table):
    ranked = TableEncoder(ranks=True).fit(table)
    plain, expected = encoder_tools.keep_outputs(ranked), TableEncoder().fit(table)
    assert len(ranked.rank_outputs_)
    assert_allclose(plain.transform(table), expected.transform(table))
    assert plain.columns_ == expected.columns_
    assert list(plain.get_feature_names_out()) == list(expected.get_feature_names_out())
    values = np.delete(ranked.transform(table), ranked.rank_outputs_, axis=1)
    assert_allclose(values, expected.transform(table))
    with pytest.raises(ValueError, match="ranks must be"):
        TableEncoder(ranks="yes").fit(table)


# --- numbers with few values ----------------------------------------------------------------------


@pytest.fixture
def codes(rng):
    frame = {"code": rng.permutation(np.repeat([1, 2, 7], 40)), "size": rng.lognormal(size=120)}
    return pd.DataFrame(frame | {"flag": np.arange(120) % 2})


def test_numbers_with_few_values_have_a_column_for_each(codes):
    encoder = TableEncoder(levels=True).fit(codes)
    names = ["code", "code=1", "code=2", "code=7", "size", "flag"]
    assert list(encoder.get_feature_names_out()) == names
    assert_array_equal(encoder.level_outputs_, [1, 2, 3])
    Z = encoder.transform(codes)
    assert_array_equal(Z[:, 1:4], codes[["code"]].to_numpy() == [1, 2, 7])
    assert_allclose(Z[:, [0, 4, 5]], TableEncoder().fit_transform(codes))
    unseen = pd.DataFrame({"code": [3], "size": [1.0], "flag": [1]})
    assert_array_equal(encoder.transform(unseen)[0, 1:4], [0, 0, 0])
    assert "1 column of numbers was standardised, and split by value as well: code." in (
        encoder.notes()
    )
    few_rows = TableEncoder(levels=True).fit(codes[:20])
    assert len(few_rows.level_outputs_) == 0
    with pytest.raises(ValueError, match="levels must be"):
        TableEncoder(levels=1).fit(codes)


@pytest.mark.parametrize("ranks", [False, True])
@pytest.mark.parametrize("levels", [False, True])
def test_keeping_some_columns_is_the_encoder_that_makes_only_these(codes, ranks, levels):
    kept = encoder_tools.keep_outputs(
        TableEncoder(ranks=True, levels=True).fit(codes), ranks=ranks, levels=levels
    )
    expected = TableEncoder(ranks=ranks, levels=levels).fit(codes)
    assert_allclose(kept.transform(codes), expected.transform(codes))
    assert kept.columns_ == expected.columns_
    assert kept.get_params() == expected.get_params()
    assert list(kept.get_feature_names_out()) == list(expected.get_feature_names_out())
    for name in ("rank_outputs_", "level_outputs_"):
        assert_array_equal(getattr(kept, name), getattr(expected, name))


# --- new rows -------------------------------------------------------------------------------------


def as_in_the_whole_table(table, rows):
    """Whether rows asked for alone come out as they do in the whole table."""
    encoder = TableEncoder().fit(table)
    whole = encoder.transform(table)
    for row in rows:
        assert_allclose(encoder.transform(table.iloc[[row]])[0], whole[row])


def test_new_rows_are_read_as_the_table_was_written():
    # "1,200" alone could be 1200, "05/02/2021" the 2nd of May.
    table = pd.DataFrame(
        {"size": ["1,200", "3,5", "2,75", "0,9"], "day": ["05/02/2021", "24/12/2021"] * 2}
    )
    as_in_the_whole_table(table, range(4))


def test_one_bad_value_does_not_spoil_its_column():
    table = pd.DataFrame({"x": np.arange(20.0) ** 2, "day": ["2021-01-05", "2022-03-01"] * 10})
    encoder = TableEncoder().fit(table)
    new = pd.DataFrame({"x": ["4", "many", "16"], "day": ["soon", "2022-03-01", "2021-01-05"]})
    with pytest.warns(UserWarning, match="'many' in x"):
        found = encoder.transform(new)
    good = encoder.transform(table.iloc[[2, 3, 4]])
    assert_allclose(found[[0, 2], 0], good[[0, 2], 0])
    assert_allclose(found[[1, 2], 1], encoder.transform(table.iloc[[1, 0]])[:, 1])
    notes = encoder.unknown_values(new)
    assert notes == [
        "values that cannot be read count as missing: 'many' in x (1 row), 'soon' in day (1 row)"
    ]


def test_codes_and_truths_with_gaps():
    """pandas reads them as 1.0, and as objects, where a file has gaps."""
    table = pd.DataFrame({"code": ["01", "2", "x"] * 10, "paid": [True, False, True] * 10})
    encoder = TableEncoder().fit(table)
    new = pd.DataFrame({"code": [1.0, 2.0, np.nan], "paid": [True, False, None]})
    assert_allclose(encoder.transform(new)[:2], encoder.transform(table[:2]))
    assert encoder.unknown_values(new) == []
    new = pd.DataFrame({"code": ["y", "x", "y"], "paid": [True, False, True]})
    assert encoder.unknown_values(new) == [
        "values that the training table does not have: 'y' in code (2 rows)"
    ]


def test_a_value_is_read_alike_whatever_stands_beside_it():
    """Rows of one file used to decide about each other: "3.5" made 1280 of "1,280"."""
    table = pd.DataFrame(
        {"x": ["3,5", "0,25", "12,75"] * 20, "d": ["25/02/2021", "05/03/2021"] * 30}
    )
    encoder = TableEncoder().fit(table)
    alone = encoder.transform(pd.DataFrame({"x": ["1,280"], "d": ["05/02/2021"]}))
    beside = [["3.5", "02/25/2021"], ["7.5", "02/26/2021"], ["?", "soon"]]
    rows = pd.DataFrame([["1,280", "05/02/2021"], *beside], columns=["x", "d"])
    with pytest.warns(UserWarning, match="'soon' in d"):
        np.testing.assert_array_equal(encoder.transform(rows)[0], alone[0])


def test_names_that_are_all_different_are_not_called_the_same():
    frame = pd.DataFrame({"name": list("abcdefgh"), "x": [1.0, 2, 3, 4, 5, 6, 7, 9]})
    (name, _) = TableEncoder().fit(frame).columns_
    assert name["kind"] == "identifier"
    assert "same" not in " ".join(TableEncoder().fit(frame).notes())


def test_few_sentences_that_all_differ_are_texts(rng):
    words = ["the", "quick", "red", "fox", "jumps", "over", "lazy", "dogs", "and", "sleeps"]
    for n in (12, 20, 21):
        texts = [" ".join(rng.permutation(words)) for _ in range(n)]
        encoder = TableEncoder().fit(pd.DataFrame({"review": texts, "a": rng.normal(size=n)}))
        assert encoder.columns_[0]["kind"] == "text"


def test_many_numbers_at_once_are_those_of_each_column(table):
    numbers = table[["age"]].assign(
        gap=np.where(np.arange(N) < 3, np.nan, table["age"]), whole=np.arange(N) ** 2 % 17
    )
    encoder = TableEncoder().fit(numbers)
    columns = [numbers[name].to_numpy() for name in numbers]
    slow = [made.transform(values) for made, values in zip(encoder.encoders_, columns)]
    assert_array_equal(encoder.transform(numbers), np.hstack(slow))


@pytest.mark.parametrize("model", [KernelRegressor, TableEncoder])
def test_a_fit_reads_each_text_once(table, model, monkeypatch):
    """Reading a column of texts, and parsing what its texts stand for, happen once per fit."""
    read, parsed = [], []
    count_columns(monkeypatch, columns, "as_texts", read)
    count_columns(monkeypatch, reading, "TextColumn", parsed)
    monkeypatch.setattr(columns, "NumberFormat", None)  # no text is parsed again
    monkeypatch.setattr(columns, "DateFormat", None)
    texts = ["code", "price", "town", "when", "review"]
    X, y = table[["age", *texts]], np.arange(N) / 7
    model().fit_transform(X) if model is TableEncoder else model().fit(X, y)
    assert len(read) == len(parsed) == len(texts)


def count_columns(monkeypatch, module, name, calls):
    original = getattr(module, name)

    def counted(values):
        calls.append(name)
        return original(values)

    monkeypatch.setattr(module, name, counted)


@pytest.mark.parametrize("named", [True, False])
def test_files_keep_many_columns_of_numbers_as_arrays(named, rng, tmp_path):
    X = rng.normal(size=(30, 400)) * 10.0 ** rng.integers(-3, 4, size=400)
    X[:9, 7] = np.nan  # a column unlike the others
    if named:
        X = pd.DataFrame(X, columns=[f"gene {j}" for j in range(400)]).assign(town=list("abc") * 10)
    encoder = TableEncoder().fit(X)
    save(encoder, tmp_path / "e.mercer")
    assert (tmp_path / "e.mercer").stat().st_size < 120 * 400  # 580 bytes for each before
    for there in (load(tmp_path / "e.mercer"), pickle.loads(pickle.dumps(encoder)), copy(encoder)):
        assert there.columns_ == encoder.columns_
        assert_allclose(there.transform(X), encoder.transform(X), rtol=0)
        assert vars(there).keys() == vars(encoder).keys()
        for a, b in zip(there.encoders_, encoder.encoders_):
            assert vars(a) == vars(b)


def test_parts_of_seconds_count():
    written = [f"2024-01-01 00:00:00.{i:02d}" for i in range(50)]
    given = pd.DataFrame({"when": pd.to_datetime(written)})
    for table in (given, pd.DataFrame({"when": written})):
        when = encoder_tools.column_as_numbers(TableEncoder(scale="none").fit(table), table, "when")
        assert_allclose(np.diff(when), 0.01, atol=1e-6)


def test_names_that_repeat_are_categories_not_text(rng):
    states = np.array([f"{a}{b}" for a in "abcdef" for b in "mnopqrst"])  # 48 of them
    table = pd.DataFrame({"state": rng.permutation(np.repeat(states, 5)), "x": np.arange(240.0)})
    encoder = TableEncoder().fit(table)
    assert encoder.columns_[0]["kind"] == "category"
    assert len(encoder.columns_[0]["outputs"]) == 48
    assert_array_equal(encoder.transform(table)[:, :48].sum(axis=1), 1)
    # Sentences are text, however often they are repeated.
    said = pd.DataFrame({"state": [f"the state of {s}" for s in table["state"]]})
    assert TableEncoder().fit(said).columns_[0]["kind"] == "text"
