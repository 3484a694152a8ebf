"""two_sample_test: against the textbook form, from every source, and with bad input."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from mercer import (
    RBF,
    Chunks,
    FromFunction,
    KernelMap,
    Linear,
    Matern,
    Precomputed,
    independence_test,
    two_sample_test,
)
from mercer.statistics.permutations import RandomUnits, UnitSums, add_rows, judge, unit_size

FEW = {"n_permutations": 99, "random_state": 0}


def mmd(kernel, X, Y):
    """The textbook: three means of kernel values."""
    return np.sqrt(kernel(X).mean() + kernel(Y).mean() - 2 * kernel(X, Y).mean())


@pytest.fixture
def samples(rng):
    Y = rng.normal(size=(60, 3))
    Y[:, 1] += 1.2
    return rng.normal(size=(80, 3)), Y


def test_the_distance_is_the_textbook_mmd(samples):
    result = two_sample_test(*samples, KernelMap(RBF(0.3)), scales=[1.0], **FEW)
    assert_allclose(result.distance, mmd(RBF(0.3), *samples), rtol=1e-6)
    assert result.kernel == RBF(0.3)


def test_permuted_sums_are_permuted_samples(rng):
    """Every permuted statistic is the statistic of samples that exchanged whole units."""
    Phi = rng.normal(size=(24, 4))
    x, y = Phi[:14], Phi[14:]
    divisions = [RandomUnits(len(part), 2, rng) for part in (x, y)]
    units = [division.units(len(part)) for division, part in zip(divisions, (x, y))]
    sums = [np.zeros((division.count + 1, 4)) for division in divisions]
    for total, unit, part in zip(sums, units, (x, y)):
        add_rows(total, unit, part)
    squared = UnitSums(*sums, len(x), len(y)).permuted([slice(0, 3), slice(3, 4)], 50, rng)
    delta = x.mean(axis=0) - y.mean(axis=0)
    assert_allclose(squared[0], [(delta[:3] ** 2).sum(), delta[3] ** 2])
    # The slow form: all ways to choose 5 of the 12 units for Y.
    from itertools import combinations

    everyone = [np.flatnonzero(units[0] == u) for u in range(7)]
    everyone += [14 + np.flatnonzero(units[1] == u) for u in range(5)]
    possible = set()
    for chosen in combinations(range(12), 5):
        in_y = np.concatenate([everyone[u] for u in chosen])
        in_x = np.setdiff1d(np.arange(24), in_y)
        d = Phi[in_x].mean(axis=0) - Phi[in_y].mean(axis=0)
        possible.add(round((d[:3] ** 2).sum(), 9))
    assert all(round(value, 9) in possible for value in squared[:, 0])


def test_dealing_uses_every_row_once_and_fills_units(rng):
    division = RandomUnits(1000, 4, rng)
    units = np.concatenate([division.units(n) for n in (300, 1, 699)])
    assert (np.bincount(units)[: division.count] == 4).all()
    division = RandomUnits(10_000, 2, rng)  # more rows than units: the others stay
    assert (np.bincount(division.units(10_000)) == [2] * 4096 + [10_000 - 2 * 4096]).all()
    assert [unit_size(n) for n in (2, 1024, 1025, 2049, 10**6)] == [1, 1, 2, 4, 1024]


def test_p_value_and_threshold_agree(rng):
    for seed in range(40):
        squared = np.random.default_rng(seed).chisquare(3, size=(100, 2))
        squared[0] *= 2.0
        verdict = judge(squared, 0.05, (1.0, 2.0))
        assert (verdict.p_value <= 0.05) == (verdict.statistic > verdict.threshold)
        assert 0.01 <= verdict.p_value <= 1


def test_the_same_labels_in_another_order_count_as_ties(rng):
    """Rows exchanged within a sample: the statistic is the true one, up to rounding."""
    squared = rng.chisquare(3, size=(100, 2))
    squared[0] = 10 * squared.max()
    for factor in (1.0, 1 - 1e-14, 1 + 1e-14):
        squared[[3, 50]] = factor * squared[0]
        assert judge(squared, 0.05, (1.0, 2.0)).p_value == pytest.approx(0.03)


@pytest.mark.parametrize("n", [(60, 50), (7, 80)])
def test_rounding_is_no_difference(rng, n):
    """Where all rows are equally far apart, every permutation gives the same statistic."""
    X, Y = (rng.normal(size=(m, 3)) * 1e6 for m in n)
    for seed in range(5):
        options = {"kernel": Matern(), "random_state": seed, "n_permutations": 99}
        assert two_sample_test(X, Y, **options).p_value == 1
        assert independence_test(X[:7], Y[:7], **options).p_value == 1
    sums = UnitSums(np.full((n[0] + 1, 1), 0.1), np.full((n[1] + 1, 1), 0.1), *(m + 1 for m in n))
    assert (sums.permuted([slice(0, 1)], 20, rng) == 0).all()


@pytest.mark.parametrize(("kernel", "scale"), [(Linear(), 1e-170), (Matern(), 1e-100)])
def test_rows_that_a_kernel_cannot_tell_apart_are_refused(rng, kernel, scale):
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"sees no difference between any rows.* Scale the data"):
        two_sample_test(scale * X, scale * (X + 5), kernel)
    assert two_sample_test(X, X + 5, kernel, random_state=0).differs


def test_the_difference_without_some_rows(rng):
    X, Y = rng.normal(size=(9, 2)), rng.normal(size=(7, 2)) + 1
    sums = UnitSums(np.vstack([X[:5], X[5:].sum(axis=0)]), np.vstack([Y, np.zeros(2)]), 9, 7)
    assert_allclose(sums.difference(), X.mean(axis=0) - Y.mean(axis=0))
    without = sums.difference(X[:2], Y[3:])
    assert_allclose(without, X[2:].mean(axis=0) - Y[:3].mean(axis=0))


def test_ranks_are_uniform_whichever_row_is_the_true_one(rng):
    """All rows are treated alike: taking another row for the true one only exchanges ranks."""
    squared = rng.chisquare(2, size=(50, 3))
    ranks = []
    for i in range(50):
        moved = np.vstack([squared[i : i + 1], np.delete(squared, i, axis=0)])
        ranks.append(round(50 * judge(moved, 0.05, (0.5, 1.0, 2.0)).p_value))
    assert sorted(ranks) == list(range(1, 51))


def test_level_by_a_small_simulation():
    """benchmarks.levels_of_tests has the long one."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(20, 2)), rng.normal(size=(15, 2))
        options = {"scales": [0.5, 2.0], "n_permutations": 39, "level": 0.2}
        alarms += two_sample_test(X, Y, random_state=seed, **options).differs
    assert 20 <= alarms <= 62  # 40 are expected; 4 standard deviations


def test_it_finds_the_column_and_the_rows(samples):
    X, Y = samples
    result = two_sample_test(X, Y, **FEW)
    assert result.differs
    assert result.p_value == pytest.approx(0.01)
    shares = result.columns
    assert next(iter(shares)) == "x1"
    assert shares["x1"] > 0.7
    assert sum(shares.values()) == pytest.approx(1)
    of_x, of_y = result.rows(4)
    assert of_x.shape == of_y.shape == (4, 3)
    assert of_x[:, 1].mean() < 0 < of_y[:, 1].mean()
    values = result.witness(X)
    assert_allclose(result.witness(of_x), np.sort(values)[::-1][:4])
    assert "differ" in str(result)
    assert "x1" in str(result)
    assert "<table>" in result._repr_html_()


def test_the_witness_is_the_difference_of_mean_similarities(samples):
    X, Y = samples
    result = two_sample_test(X, Y, KernelMap(RBF(0.3)), scales=[1.0], **FEW)
    Z = X[:5] + 0.1
    expected = RBF(0.3)(Z, X).mean(axis=1) - RBF(0.3)(Z, Y).mean(axis=1)
    assert_allclose(result.witness(Z), expected, atol=1e-6)


def test_one_seed_one_answer(samples):
    first, second = (two_sample_test(*samples, **FEW) for _ in range(2))
    assert first.p_value == second.p_value
    assert_allclose(first.permuted, second.permuted)


# --- sources --------------------------------------------------------------------------------------


def test_frames_with_categories_match_columns_by_name(rng):
    def table(n, shares):
        return pd.DataFrame(
            {
                "size": rng.normal(1000, 300, n),
                "town": rng.choice(["Rome", "Oslo", "Lima"], n, p=shares),
                "id": np.arange(n),
            }
        )

    X, Y = table(150, [0.6, 0.3, 0.1]), table(120, [0.2, 0.3, 0.5])
    result = two_sample_test(X, Y[["town", "id", "size"]], **FEW)
    assert result.differs
    assert next(iter(result.columns)) == "town"
    assert "id" not in result.columns  # unique in each sample, repeated in both
    of_x, of_y = result.rows(3)
    assert list(of_x["town"]) == ["Rome"] * 3
    assert set(of_y["town"]) == {"Lima"}
    assert not two_sample_test(X, table(120, [0.6, 0.3, 0.1]), **FEW).differs


def test_streams_dask_and_sparse_rows_are_compared_too(samples):
    X, Y = samples
    held = two_sample_test(X, Y, RBF(0.3), **FEW)
    streams = [Chunks(lambda A=A: iter(np.array_split(A, 3))) for A in (X, Y)]
    streamed = two_sample_test(*streams, RBF(0.3), **FEW)
    assert_allclose(streamed.distance, held.distance, rtol=1e-9)
    assert streamed.p_value == held.p_value
    assert_allclose(streamed.rows(2)[0], held.rows(2)[0])
    sparse = two_sample_test(*(scipy.sparse.csr_array(A) for A in (X, Y)), RBF(0.3), **FEW)
    assert_allclose(sparse.distance, held.distance, rtol=1e-9)


def test_dask_collections(samples):
    da = pytest.importorskip("dask.array", reason="dask is not installed: mercer[dask]")
    X, Y = samples
    held = two_sample_test(X, Y, RBF(0.3), **FEW)
    lazy = [da.from_array(A, chunks=(25, 3)) for A in (X, Y)]
    assert_allclose(two_sample_test(*lazy, RBF(0.3), **FEW).distance, held.distance, rtol=1e-9)


def test_objects(rng):
    def common_letters(a, b):
        return float(len(set(a) & set(b)))

    X = ["".join(rng.choice(list("abcd"), 4)) for _ in range(40)]
    Y = ["".join(rng.choice(list("cdef"), 4)) for _ in range(40)]
    result = two_sample_test(X, Y, FromFunction(common_letters), **FEW)
    assert result.differs
    assert set("".join(result.rows(2)[1])) & set("ef")
    with pytest.raises(ValueError, match="columns are known"):
        _ = result.columns
    assert "differ" in str(result)


def test_many_rows_are_added_up_in_units(rng, monkeypatch):
    """Rows beyond the pool are mapped chunk by chunk; the answer is that of all rows."""
    import mercer.statistics.spaces as spaces

    monkeypatch.setattr(spaces, "POOL", 300)
    monkeypatch.setattr(spaces, "MOST_RANK", 60)
    X, Y = rng.normal(size=(3000, 2)), rng.normal(size=(2500, 2)) + [0.15, 0]
    result = two_sample_test(X, Y, RBF(0.5), scales=[1.0], **FEW)
    assert_allclose(result.distance, mmd(RBF(0.5), X, Y), rtol=0.05)
    assert result.differs
    assert next(iter(result.columns)) == "x0"


# --- bad input ------------------------------------------------------------------------------------


def test_what_cannot_be_compared_is_refused(samples):
    X, Y = samples
    bad = X.copy()
    bad[3, 1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    cases = [
        ((bad, Y), {}, ValueError, "X contains NaN"),
        ((X, Y[:, :2]), {}, ValueError, "3 columns and Y has 2"),
        ((X[:1], Y), {}, ValueError, "at least 2 rows"),
        ((X[:2], Y[:2]), {}, ValueError, "6 ways only"),
        ((np.ones((9, 2)), np.ones((9, 2))), {}, ValueError, "every column is constant"),
        ((frame, Y), {}, TypeError, "named columns"),
        ((frame, frame.rename(columns={"c": "d"})), {}, ValueError, "only X has c; only Y has d"),
        ((X, Y), {"kernel": Precomputed()}, ValueError, "precomputed"),
        ((X, Y), {"kernel": Linear(), "scales": [2.0]}, ValueError, "no length scale"),
        ((X, Y), {"scales": [-1.0]}, ValueError, "scales must be positive"),
        ((X, Y), {"n_permutations": 5}, ValueError, "at least 19"),
        ((X, Y), {"level": 2}, ValueError, "level must be"),
        ((iter([X]), Y), {}, TypeError, "only once"),
    ]
    for arguments, options, error, message in cases:
        with pytest.raises(error, match=message):
            two_sample_test(*arguments, **options)
    with pytest.raises(ValueError, match="k must be"):
        two_sample_test(X, Y, **FEW).rows(0)


def test_the_picture(samples):
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    plt.switch_backend("Agg")
    result = two_sample_test(*samples, **FEW)
    axes = result.plot()
    assert [ax.get_title(loc="left") for ax in axes][1:] == ["Columns", "Where they differ"]
    with pytest.raises(ValueError, match="three matplotlib axes"):
        result.plot(axes[:2])
    plt.close("all")


def test_answers_about_arrays_of_any_library(samples, xp):
    """Columns are shuffled in NumPy, and functions take rows where the sample lives."""
    X, Y = samples
    there = [xp.asarray(rows) for rows in samples]
    result, expected = two_sample_test(*there, **FEW), two_sample_test(X, Y, **FEW)
    assert result.columns == pytest.approx(expected.columns, abs=0.01)
    assert "columns" in result.facts()
    result = independence_test(there[0][:60, :], there[1], **FEW)
    expected = independence_test(X[:60], Y, **FEW)
    assert result.columns == pytest.approx(expected.columns, abs=0.01)


def test_a_lazy_frame_of_polars(samples):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frames = [polars.DataFrame(rows, schema=list("abc")) for rows in samples]
    result = two_sample_test(*(frame.lazy() for frame in frames), **FEW)
    assert result.p_value == two_sample_test(*frames, **FEW).p_value


def test_samples_of_two_libraries(samples):
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, Y = samples
    with pytest.raises(TypeError, match="some rows are of numpy and others of torch: give all"):
        two_sample_test(X, torch.asarray(Y))
    with pytest.raises(TypeError, match="some rows are of pandas and others of polars: give all"):
        two_sample_test(pd.DataFrame(X, columns=list("abc")), polars.DataFrame(Y, list("abc")))
