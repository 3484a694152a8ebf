"""The explorer without a browser: every number against its definition, every request answered."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, make_circles
from sklearn.linear_model import Ridge, RidgeClassifier

from mercer import RBF, KernelMap, KernelPCA, Linear, Polynomial, Sigmoid, Signature, Spectrum, load
from mercer.explore.compare import comparing
from mercer.explore.data import Explored
from mercer.explore.live import pictures, readings
from mercer.explore.live.knobs import knobs_of, turned
from mercer.explore.live.row_facts import _nearest_rows, label_of
from mercer.explore.live.saved_views import MOST_KEPT
from mercer.explore.live.session import REST, Session
from mercer.explore.live.space import FINE, explored_space


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return Explored.of(X, np.array(["setosa", "versicolor", "virginica"])[y], RBF())


@pytest.fixture(autouse=True)
def without_ordinary_models(monkeypatch):
    """Boosted trees are the comparison's own business, and slow."""
    monkeypatch.setattr(comparing, "ordinary_models", lambda sample: [])


@pytest.fixture
def session(iris, tmp_path):
    return Session(iris, RBF(), tmp_path / "out")


def answers(session, **request):
    """All updates of one request, merged: the last word on everything."""
    merged = {}
    for update in session.answer(request):
        merged |= update or {}
    return merged


def refused(session, **request):
    found = answers(session, **request)
    assert "error" in found, found
    return found["error"]


# --- numbers --------------------------------------------------------------------------------------


def test_leave_one_out_of_classes_is_a_refit_without_the_row(rng):
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.6, "in", "out")
    y[:4] = "third"
    data = Explored.of(X, y, RBF())
    space = explored_space(RBF(0.7), data)
    found = space.judged
    F = KernelMap(RBF(0.7)).fit_transform(X)
    for i in range(30):
        rest = np.arange(30) != i
        model = RidgeClassifier(alpha=space.alpha).fit(F[rest], y[rest])
        assert data.classes[found.predicted[i]] == model.predict(F[[i]])[0]
    right = found.predicted == data.codes
    assert_allclose(found.score, np.mean(right))
    assert_allclose(found.wrong, ~right)


def test_leave_one_out_of_numbers_is_a_refit_without_the_row(rng):
    X = rng.normal(size=(25, 3))
    y = np.sin(X[:, 0]) + 3
    data = Explored.of(X, y, RBF())
    space = explored_space(RBF(0.2), data)
    found = space.judged
    F = KernelMap(RBF(0.2)).fit_transform(X)
    for i in range(25):
        rest = np.arange(25) != i
        refit = Ridge(alpha=space.alpha).fit(F[rest], y[rest]).predict(F[[i]])[0]
        assert_allclose(found.predicted[i], refit, rtol=1e-5, atol=1e-7)
    assert_allclose(found.score, 1 - np.mean((y - found.predicted) ** 2) / y.var(), rtol=1e-10)


def test_spectrum_and_components_are_those_of_the_centred_matrix(iris):
    space = explored_space(RBF(0.4), iris)
    K = RBF(0.4)(iris.X)
    H = np.eye(150) - 1 / 150
    values = np.linalg.eigvalsh(H @ K @ H)[::-1]
    assert_allclose(space.values[:20], values[:20], rtol=1e-8)
    assert_allclose(space.effective_dimension, values.sum() ** 2 / (values**2).sum(), rtol=1e-8)
    Z = KernelPCA(3, RBF(0.4)).fit_transform(iris.X)
    assert_allclose(np.abs(space.components[:, :3]), np.abs(Z), atol=1e-8)
    assert space.exact
    axes = space.directions[:, :3]
    seen = space.placed(space.components) @ axes
    assert_allclose(seen, space.components[:, :3] + space.mean @ axes, atol=1e-8)


def test_discriminant_axes_solve_the_generalised_problem(iris):
    space = explored_space(RBF(0.4), iris)
    Q = space.components
    total = Q.T @ Q
    means = iris.targets.T @ Q / iris.targets.sum(axis=0)[:, None]
    between = (means * iris.targets.sum(axis=0)[:, None]).T @ means
    shift = pictures._SHRINKAGE * np.trace(total) / 150
    _, axes = scipy.linalg.eigh(between, total + shift * np.eye(len(total)))
    expected = Q @ axes[:, ::-1][:, :2]
    found = pictures._discriminant_scores(space)
    for j in range(2):
        assert abs(np.corrcoef(found[:, j], expected[:, j])[0, 1]) > 1 - 1e-8


def test_few_landmarks_say_what_they_miss(rng):
    X = rng.normal(size=(FINE + 100, 4))
    data = Explored.of(X, None, RBF())
    coarse = explored_space(RBF(0.5), data, X[:50])
    assert coarse.kernel_map.rank_ == 50
    assert not coarse.exact
    F = coarse.kernel_map.transform(X)
    assert_allclose(coarse.residuals, 1 - (F**2).sum(axis=1), atol=1e-10)
    fine = explored_space(RBF(0.5), data)
    assert fine.residuals.sum() < coarse.residuals.sum()
    assert fine.kernel_map.rank_ <= FINE


def test_what_is_not_a_kernel_is_called_so(rng):
    session = Session(Explored.of(rng.normal(size=(60, 3)), None, RBF()), Sigmoid(1.0, -1.0))
    found = answers(session, do="hello")
    assert found["numbers"]["validity"] == "refuted"
    assert found["certificate"]["bound"] is None
    assert any("not a kernel" in text for text in found["findings"])


def test_the_certificate_holds(session):
    found = answers(session, do="hello")["certificate"]
    some = np.linspace(0, 149, 60).astype(int)
    X = session.data.X[some]
    F = session.animation.space.kernel_map.transform(X)
    assert np.abs(F @ F.T - session.animation.space.kernel_map.kernel_(X)).max() <= found["bound"]
    assert found["bound"] < 1e-6


# --- pictures -------------------------------------------------------------------------------------


def test_pictures_do_not_turn_or_flip(rng):
    raw = rng.normal(size=(40, 2)) * [3.0, 1.0]
    first = pictures._steady("kernel PCA", raw, None)
    angle = 2.1
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for change in (turn, turn @ np.diag([1.0, -1.0]), np.diag([-1.0, -1.0])):
        second = pictures._steady("kernel PCA", raw @ change, first)
        assert_allclose(second.points, first.points, atol=1e-12)
        assert_allclose(second.scores_at(*second.points[7]), (raw @ change)[7], atol=1e-12)
    other = pictures._steady("discriminant", -raw, first)
    assert_allclose(other.points, -first.points, atol=1e-12)  # another view starts anew


def test_points_move_little_when_a_knob_moves_little(iris):
    last = None
    for value in np.geomspace(0.02, 0.6, 25):
        plane = pictures.projected("kernel PCA", explored_space(RBF(value), iris), last)
        if last is not None:
            assert np.abs(plane.points - last.points).max() < 0.2
        last = plane


def test_tsne_goes_on_from_its_last_state(session):
    pytest.importorskip("openTSNE", reason="openTSNE is not installed: mercer[tsne]")
    answers(session, do="hello")
    answers(session, do="view", view="t-SNE")
    before = session.animation.plane.points
    first = next(
        u for u in session.answer({"do": "turn", "knob": "gamma", "value": 0.3}) if "sketch" in u
    )
    moved = np.column_stack([first["sketch"]["x"], first["sketch"]["y"]])
    assert np.abs(moved - before).max() < 0.5
    assert np.corrcoef(moved[:, 0], before[:, 0])[0, 1] > 0.95


def test_rows_that_tsne_does_not_move_follow_their_neighbours(monkeypatch, iris):
    pytest.importorskip("openTSNE", reason="openTSNE is not installed: mercer[tsne]")
    monkeypatch.setattr(pictures, "MOVED", 60)
    moving = pictures.MovingTSNE(np.arange(150))
    *_, plane = moving.frames(explored_space(RBF(), iris))
    assert plane.points.shape == (150, 2)
    setosa = plane.points[iris.codes == 0]
    others = plane.points[iris.codes != 0]
    gap = np.linalg.norm(setosa.mean(axis=0) - others.mean(axis=0))
    assert gap > 2 * setosa.std()


# --- the kernel panel -----------------------------------------------------------------------------


def test_knobs_stand_at_the_bound_value_and_mark_what_the_data_suggest(iris):
    (knob,) = knobs_of(RBF("scale"), iris)
    suggested = 1 / (4 * iris.X.var())
    assert_allclose([knob.value, knob.mark], suggested)
    assert knob.low < suggested / 100
    assert knob.high > 100 * suggested
    assert knob.mark_label == "from the data"
    (moved,) = knobs_of(turned(RBF("scale"), knob, 0.5), iris)
    assert moved.value == 0.5
    assert_allclose(moved.mark, suggested)
    names = {k.name: k for k in knobs_of(2.0 * Polynomial(3) + RBF([1.0, 2.0, 3.0, 4.0]), iris)}
    assert names["left__kernel__degree"].whole
    assert names["left__scale"].label == "weight"
    lists = turned(RBF([1.0, 4.0]), knobs_of(RBF([1.0, 4.0]), _two(iris))[0], 4.0)
    assert_allclose(lists.gamma, [2.0, 8.0])
    with pytest.raises(ValueError, match="positive number"):
        turned(RBF(), knob, -1.0)


def _two(data):
    return Explored.of(data.X[:, :2], data.target, RBF())


def test_a_turned_knob_is_answered_coarse_first_with_its_number(session):
    answers(session, do="hello")
    updates = list(session.answer({"do": "turn", "knob": "gamma", "value": 0.25, "id": 7}))
    stages = [u["stage"] for u in updates if "stage" in (u or ())]
    assert stages[0] == "coarse"
    assert set(stages[1:]) == {"fine"}  # the picture may turn in several steps
    assert updates[0]["answers"] == 7
    assert session.kernel == RBF(0.25)
    assert updates[0]["sketch"]["x"].shape == (150,)
    # What takes longer waits until the hand rests.
    resting = [bool(u == REST) for u in updates].index(True)
    assert "numbers" in {key for u in updates[:resting] for key in u or ()}
    assert not any("points" in (u or ()) for u in updates[:resting])


def test_curves_are_scores_along_the_knob(session):
    found = answers(session, do="hello")["curves"]["gamma"]
    values, along = np.array(found).T
    assert len(values) > 5
    assert along.max() > 0.9
    data = session.data
    middle = len(values) // 2
    space = explored_space(RBF(values[middle]), data)  # 150 rows: the curve's part is all of them
    assert_allclose(along[middle], space.judged.score, atol=1e-12)


def test_kernels_are_typed_built_and_refused(session):
    answers(session, do="hello")
    assert answers(session, do="type", expression="RBF(0.5) + Linear()")["expression"] == (
        "RBF(gamma=0.5) + Linear()"
    )
    for evil in ("__import__('os').system('x')", "RBF(0.5", "open('x')", "Precomputed()", "'a'*9"):
        refused(session, do="type", expression=evil)
        assert session.kernel == RBF(0.5) + Linear()
    found = answers(session, do="build", kernel="Matern", how="multiply", columns=["x1", "x2"])
    assert found["expression"] == "(RBF(gamma=0.5) + Linear()) * OnColumns(Matern(), ['x1', 'x2'])"
    assert {k["name"] for k in found["knobs"]} == {
        "left__left__gamma",
        "right__kernel__length_scale",
    }
    unknown = {"kernel": "RBF", "how": "add", "columns": ["q"]}
    assert "no column named" in refused(session, do="build", **unknown)
    assert "unknown kernel" in refused(session, do="build", kernel="os", how="add")
    assert "unknown request" in refused(session, do="explode")
    assert "no knob" in refused(session, do="turn", knob="gamma", value=1.0)


def test_a_refused_value_changes_nothing(rng):
    X = 1e100 * rng.normal(size=(30, 2))
    session = Session(Explored.of(X, None, RBF()), Polynomial(2, gamma=1e-100))
    answers(session, do="hello")
    before = session.kernel
    assert "overflows" in refused(session, do="turn", knob="degree", value=12.0)
    assert session.kernel == before


def test_a_metric_is_learned_and_given_back(rng):
    X = rng.normal(size=(150, 5))
    y = np.where(X[:, 3] > 0, "a", "b")
    session = Session(Explored.of(X, y, RBF()), RBF())
    plain = answers(session, do="hello")["numbers"]["score"]
    found = answers(session, do="metric", on=True)
    assert found["metric"]["importances"][0][0] == "x3"
    assert found["numbers"]["score"] > plain - 0.01
    assert "learn_kernel" in session.code()
    (knob,) = found["knobs"]
    turned_once = answers(session, do="turn", knob="gamma", value=2 * knob["value"])
    assert turned_once["numbers"]["score"] > 0.5
    assert not answers(session, do="metric", on=False)["metric"]["on"]
    assert session.kernel == RBF()
    answers(session, do="type", expression="OnColumns(RBF(), [0])")
    assert "cannot be learned" in refused(session, do="metric", on=True)


def test_functions_are_draws_of_the_kernel(iris):
    assert readings.prior_draws(RBF(), iris, []) is None
    line = readings.prior_draws(Linear(), iris, [2])
    for curve in line["curves"]:
        assert_allclose(np.diff(curve, 2), 0, atol=3e-3)  # straight lines, three digits sent
    smooth = readings.prior_draws(RBF(0.5), iris, [2])
    points = np.tile(np.median(iris.X, axis=0), (readings.ALONG, 1))
    points[:, 2] = np.linspace(*smooth["ends"][0], readings.ALONG)
    root = scipy.linalg.sqrtm(RBF(0.5)(points) + 1e-12 * np.eye(readings.ALONG)).real
    noise = np.random.default_rng(4).normal(size=(readings.ALONG, readings.DRAWN))
    assert_allclose(np.array(smooth["curves"]).T * smooth["most"], root @ noise, atol=5e-3)
    surface = readings.prior_draws(RBF(0.5), iris, [0, 2])["surface"]
    assert np.shape(surface) == (readings.ACROSS, readings.ACROSS)


# --- points ---------------------------------------------------------------------------------------


def test_neighbours_are_nearest_in_feature_space(iris):
    kernel = Polynomial(3, gamma=0.1)
    space = explored_space(kernel, iris)
    K = kernel(iris.X)
    distances = np.sqrt(np.maximum(K[7, 7] + np.diag(K) - 2 * K[7], 0))
    distances[7] = np.inf
    found = _nearest_rows(space, 7)
    assert_allclose(distances[found], np.sort(distances)[:5], rtol=1e-6, atol=1e-6)


def test_a_click_finds_the_row_or_asks_what_would_be_there(rng):
    X = rng.normal(size=(60, 2))
    session = Session(Explored.of(X, np.where(X[:, 0] > 0, "r", "l"), Linear()), Linear())
    answers(session, do="hello")
    x, y = session.animation.plane.points[11]
    on = answers(session, do="tap", x=float(x), y=float(y), reach=0.01)
    assert on["about_point"]["row"] == 11
    assert on["about_point"]["label"] == label_of(session.data, 11)
    assert len(on["marks"]["x"]) == 6
    # Of two columns a linear kernel's plane is the data: the pre-image of a place is exact.
    off = answers(session, do="tap", x=float(x), y=float(y), reach=-1.0)
    seen = {name: float(value) for name, value in off["about_point"]["seen"]["values"]}
    assert_allclose([seen["x0"], seen["x1"]], X[11], atol=6e-3)
    assert off["about_point"]["predicted"] in ("r", "l")
    assert answers(session, do="forget")["about_point"] is None
    assert "not one of" in refused(session, do="row", index=99)


def test_a_selection_is_described_and_exported(tmp_path):
    frame = pd.DataFrame({"length": np.r_[np.zeros(20), np.ones(20)], "=cmd": np.arange(40.0)})
    y = np.repeat(["=a", "\ufeff\uff1db"], 20)  # a formula behind a mark, with a full-width sign
    session = Session(Explored.of(frame, y, RBF(), target_name="kind"), RBF())
    found = answers(session, do="select", indices=[0, 1, 2, 39])["selection"]
    assert found["size"] == 4
    assert found["classes"] == [["=a", 3], [y[-1], 1]]
    assert {name for name, *_ in found["telling"]} == {"length", "=cmd"}
    lines = answers(session, do="export")["csv"].splitlines()
    assert lines[0] == "row,kind,length,'=cmd"
    assert lines[1] == "0,'=a,0.0,0.0"
    assert lines[4] == f"39,'{y[-1]},1.0,39.0"
    assert len(lines) == 5
    assert answers(session, do="select", indices=[])["selection"] is None
    assert "not one of" in refused(session, do="select", indices=[400])


# --- keeping, comparing, saving -------------------------------------------------------------------


def test_spaces_are_kept_and_compared_by_the_rules_of_the_comparison(session):
    answers(session, do="hello")
    answers(session, do="keep")
    assert "kept already" in refused(session, do="keep")
    answers(session, do="type", expression="Linear()")
    kept = answers(session, do="keep")
    assert [k["name"] for k in kept["saved_views"]] == ["RBF()", "Linear()"]
    assert kept["saved_points"]["x1"].any()
    found = answers(session, do="compare")["comparison"]
    assert {row["name"] for row in found["rows"] if row["kernel"]} == {"RBF()", "Linear()"}
    assert "150 rows" in found["headline"]
    answers(session, do="drop", place=0)
    assert [k.name for k in session.saved_views] == ["Linear()"]
    for gamma in range(1, MOST_KEPT):
        answers(session, do="type", expression=f"RBF({gamma})")
        answers(session, do="keep")
    answers(session, do="type", expression="Cosine()")
    assert "let one go" in refused(session, do="keep")


def test_the_code_makes_the_model_that_was_judged(session):
    answers(session, do="hello")
    answers(session, do="turn", knob="gamma", value=0.3)
    names = {"X": session.data.X, "y": session.data.target}
    exec(session.code(), names)  # the page's own lines
    space = session.animation.space
    components = (space.kernel_map.transform(session.data.X) - space.mean) @ space.directions
    decided = space.ridge(components).argmax(axis=1)
    assert (names["model"].predict(session.data.X) == np.array(session.data.classes)[decided]).all()


def test_model_and_report_are_written(session):
    answers(session, do="hello")
    paths = answers(session, do="save")["saved"]
    model = load(paths[0])
    assert (model.predict(session.data.X) == session.data.target).mean() > 0.95
    assert_allclose(model.predict_proba(session.data.X).sum(axis=1), 1.0)
    text = (session.folder / "report.html").read_text(encoding="utf-8")
    assert "RBF()" in text


def test_tables_numbers_and_objects_are_explored(rng, tmp_path):
    table = pd.DataFrame({"age": rng.normal(size=80), "town": rng.choice(["Rome", "Oslo"], 80)})
    price = 3 * table["age"] + (table["town"] == "Rome") + rng.normal(size=80) / 10
    session = Session(Explored.of(table, price.rename("price"), RBF()), RBF(), tmp_path / "out")
    found = answers(session, do="hello")
    assert found["about"]["target"] == "price"
    assert found["numbers"]["score_name"] == "R²"
    assert found["numbers"]["score"] > 0.9
    assert "TableEncoder" in session.code()
    assert answers(session, do="row", index=3)["about_point"]["values"][1][0] == "town"
    model = load(answers(session, do="save")["saved"][0])
    assert np.corrcoef(model.predict(table), price)[0, 1] > 0.95
    words = ["abab", "abba", "baba", "xyxy", "yxyx", "xxyy"]
    texts = Session(Explored.of(words, list("aaabbb"), Spectrum(2)), Spectrum(2))
    found = answers(texts, do="hello")
    assert found["numbers"]["score"] is not None
    assert answers(texts, do="row", index=0)["about_point"]["neighbours"]
    gapped = knobs_of(Spectrum(2, gaps=1), texts.data)
    assert [(knob.name, knob.whole) for knob in gapped] == [
        ("gaps", True),
        ("length", True),
    ]
    assert "metric is learned" in refused(texts, do="metric", on=True)


def test_without_a_target_there_is_a_space_and_no_score():
    X, _ = make_circles(60, random_state=0)
    session = Session(Explored.of(X, None, RBF()), RBF())
    found = answers(session, do="hello")
    assert found["numbers"]["score"] is None
    assert "discriminant" not in found["views"]
    assert session.code().endswith(".fit(X)")
    assert re.search(r"KernelPCA\(", session.code())
    assert "Without a target" in answers(session, do="compare")["comparison"]["headline"]


def test_large_data_are_sampled_and_gram_matrices_refused(rng):
    from mercer import Precomputed

    data = Explored.of(rng.normal(size=(500, 2)), None, RBF(), max_points=100)
    assert len(data) == 100
    assert "100 of 500 rows" in data.notes[0]
    with pytest.raises(ValueError, match="Gram matrix"):
        Explored.of(np.eye(5), None, Precomputed())


def test_rows_that_are_all_one_point_can_be_turned(tmp_path):
    session = Session(
        Explored.of(np.ones((30, 2)), np.arange(30) % 2, RBF(1.0)), RBF(1.0), tmp_path
    )
    list(session.answer({"do": "hello"}))
    for value in (0.1, 0.05, 0.02):
        for update in session.answer({"do": "turn", "knob": "gamma", "value": value}):
            assert "error" not in update
            if "numbers" in update:
                break  # the hand moves on


def test_the_depth_of_a_signature_turns_where_its_map_is_small():
    paths = [np.cumsum(np.ones((n, 2)), axis=0) for n in (3, 4, 5, 6)]
    (knob, *_) = knobs_of(Signature(2), Explored.of(paths, None, Signature(2)))
    assert (knob.name, knob.low, knob.high) == ("depth", 1, 4)


@pytest.mark.parametrize("target", [None, np.arange(20) % 2, np.arange(20) / 2])
def test_an_empty_place_of_a_line_can_be_clicked(target, rng, tmp_path):
    data = Explored.of(rng.normal(size=(20, 1)), target, Linear())
    session = Session(data, Linear(), tmp_path)
    list(session.answer({"do": "hello"}))
    (update,) = [u for u in session.answer({"do": "tap", "x": 0.1, "y": 0.2}) if u]
    assert "about_point" in update


def test_a_kernel_on_numbers_typed_for_texts_is_refused_by_name(tmp_path):
    session = Session(Explored.of(["ab", "b", "a"] * 4, None, Spectrum(1)), Spectrum(1), tmp_path)
    (update,) = session.answer({"do": "type", "expression": "RBF()"})
    assert "X holds strings, and this kernel needs numbers" in update["error"]
