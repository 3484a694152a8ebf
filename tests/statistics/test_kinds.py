"""Frames whose columns are identifiers, or another kind of thing, in one sample only."""

import numpy as np
import pandas as pd
import pytest

from mercer import Chunks, independence_test, two_sample_test

FEW = {"n_permutations": 99, "random_state": 0}


def towns(rng, n):
    return rng.choice(["Rome", "Oslo", "Lima"], n)


def codes(rng, n):
    return [f"T{i:05d}" for i in rng.choice(90_000, n, replace=False)]


def numbers(rng, n):
    return rng.normal(size=n)


def whole_numbers(rng, n):
    return rng.choice(90_000, n, replace=False)


def row_numbers(rng, n):
    return np.arange(n)


def dates(rng, n):
    return pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")


def table(rng, n, column, width=3):
    frame = pd.DataFrame(rng.normal(size=(n, width))).add_prefix("c")
    return frame.assign(town=column(rng, n))


@pytest.mark.parametrize("width", [3, 60])
@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (towns, codes, ("category", "identifier")),
        (codes, towns, ("identifier", "category")),
        (towns, whole_numbers, ("category", "number")),
        (towns, row_numbers, ("category", "identifier")),
        (numbers, towns, ("number", "category")),
        (dates, towns, ("date", "category")),
    ],
)
def test_a_column_of_another_kind_is_a_difference(rng, old, new, kinds, width):
    X, Y = table(rng, 50, old, width), table(rng, 40, new, width)
    result = two_sample_test(X, Y, **FEW)
    assert result.changed == {"town": kinds}
    assert result.differs
    assert next(iter(result.columns)) == "town"
    assert f"town (X: {kinds[0]}, Y: {kinds[1]})" in str(result)


@pytest.mark.parametrize("sizes", [(12, 2000), (2000, 12)])
def test_few_rows_of_one_kind_among_many_of_the_other(rng, sizes):
    """All rows together look like one column of identifiers."""
    result = two_sample_test(
        pd.DataFrame({"town": towns(rng, sizes[0]) if sizes[0] < 99 else codes(rng, sizes[0])}),
        pd.DataFrame({"town": towns(rng, sizes[1]) if sizes[1] < 99 else codes(rng, sizes[1])}),
        **FEW,
    )
    assert result.differs


def test_identifiers_written_in_another_way(rng):
    assert two_sample_test(table(rng, 60, codes), table(rng, 50, row_numbers), **FEW).differs


@pytest.mark.parametrize("column", [codes, row_numbers])
@pytest.mark.parametrize("n", [40, 8])
def test_what_names_the_rows_of_both_is_left_out(rng, column, n):
    """Eight rows are too few to see an identifier, and could be one."""
    X = table(rng, 60, column)
    result = two_sample_test(X, X.sample(n, random_state=1), **FEW)
    assert result.samples.identifiers == ["town"]
    assert not result.changed
    assert not result.differs


def test_names_that_nearly_all_differ_raise_no_alarm():
    """Chance decides whether such a column looks like identifiers in one sample or in both."""
    alarms = changed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        names = ["".join(rng.choice(list("abcdefg"), 5)) for _ in range(300)]
        X, Y = (
            pd.DataFrame({"a": rng.normal(size=n), "name": rng.choice(names, n)}) for n in (40, 50)
        )
        result = two_sample_test(X, Y, n_permutations=19, level=0.1, random_state=seed)
        alarms += result.differs
        changed += bool(result.changed)
    assert changed > 2
    assert alarms <= 11  # 4 are expected; 4 standard deviations


def test_a_column_may_have_the_name_of_a_mark(rng):
    X, Y = table(rng, 50, towns), table(rng, 40, codes)
    for frame in (X, Y):
        frame["town is repeated"] = rng.normal(size=len(frame))
    assert two_sample_test(X, Y, **FEW).differs


def test_polars_and_streams(rng, monkeypatch):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X, Y = table(rng, 60, towns), table(rng, 50, codes)
    assert two_sample_test(pl.from_pandas(X), pl.from_pandas(Y), **FEW).differs
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 20)
    streams = [Chunks(lambda A=A: iter([A.iloc[:25], A.iloc[25:]])) for A in (X, Y)]
    assert two_sample_test(*streams, **FEW).differs


def test_independence_has_one_sample_on_each_side(rng):
    X = table(rng, 60, towns)
    Y = pd.DataFrame({"rent": (X["town"] == "Rome") + 0.1 * rng.normal(size=60)})
    assert independence_test(X, Y, **FEW).differs
