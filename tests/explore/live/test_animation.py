"""Pictures that follow a knob: some rows first, all of them at rest, and no jumps in between."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, Linear
from mercer.explore.data import Explored
from mercer.explore.live import animation, pictures
from mercer.explore.live.session import REST, Session
from mercer.explore.live.space import explored_space

PCA = "kernel PCA"


def _sorted(Q, spreads):
    """Scores of kernel PCA: uncorrelated columns of these spreads, largest first."""
    order = np.argsort(-np.asarray(spreads), kind="stable")
    return (Q * spreads)[:, order]


@pytest.fixture
def directions(rng):
    Q, _ = np.linalg.qr(rng.normal(size=(300, 4)))
    Q, _ = np.linalg.qr(Q - Q.mean(axis=0))
    return Q


def test_components_that_change_places_leave_the_picture_alone(directions):
    """First and second: the same plane, so that nothing moves."""
    before = pictures._steady(PCA, _sorted(directions, [3.0, 2.9, 0.5, 0.1]), None)
    after = pictures._steady(PCA, _sorted(directions, [2.95, 2.96, 0.5, 0.1]), before)
    assert after.arrived
    assert np.abs(after.points - before.points).max() < 0.06
    assert not np.allclose(np.abs(after.turn[:2]), np.eye(2), atol=0.5)  # though they did


@pytest.mark.parametrize("drop", [0.91, 0.6], ids=["a tie", "far behind"])
def test_a_new_second_component_is_approached_in_small_turns(directions, drop):
    """Second and third: another plane, which a picture may not jump to."""
    last = pictures._steady(PCA, _sorted(directions, [1.5, 1.1, 1.0, 0.1]), None)
    scores = _sorted(directions, [1.5, 1.1 * drop, 1.1, 0.1])
    # Turned within its plane alone, as a picture of two columns is, it would jump.
    jump = pictures._steady(PCA, scores[:, :2], last)
    leap = np.abs(jump.points - last.points).max()
    assert leap > 0.8
    turns = 0
    while not (turns and last.arrived):
        plane = pictures._steady(PCA, scores, last)
        assert_allclose(plane.turn.T @ plane.turn, np.eye(2), atol=1e-12)
        assert np.abs(plane.points - last.points).max() < 0.35 * leap
        x, y = plane.points[5]  # a place is still a point of the space, also on the way
        assert_allclose(plane.scores_at(x, y) @ plane.turn / plane.size, [x, y], atol=1e-12)
        last, turns = plane, turns + 1
    assert 6 <= turns <= 10  # a right angle in steps of 10 degrees
    # It ends with the truth: the two leading components, turned.
    assert_allclose(last.turn[2:], 0, atol=1e-12)
    expected = scores[:, :2] @ last.turn[:2]
    assert_allclose(last.points, expected / np.abs(expected).max(), atol=1e-12)


def test_rows_that_moved_themselves_are_shown_where_they_are(directions, rng):
    last = pictures._steady(PCA, _sorted(directions, [3.0, 2.0, 1.0, 0.5]), None)
    other = np.linalg.qr(rng.normal(size=(300, 4)))[0] * [3.0, 2.0, 1.0, 0.5]
    plane = pictures._steady(PCA, other, last)
    assert plane.arrived
    assert_allclose(plane.turn[2:], 0)


def test_some_rows_lie_where_the_picture_of_all_rows_has_them(directions):
    scores = _sorted(directions, [3.0, 2.0, 1.0, 0.5])
    rows = np.arange(0, 300, 3)
    whole = pictures._steady(PCA, -scores, None)
    some = pictures._steady(PCA, scores[rows], whole, rows)
    assert_allclose(some.points, whole.points[rows], atol=1e-12)
    assert some.point(3) == pytest.approx(tuple(whole.points[3]))
    assert some.point(4) is None
    again = pictures._steady(PCA, scores, some)
    assert_allclose(again.points, whole.points, atol=1e-12)


# --- a first look, then all rows ------------------------------------------------------------------


@pytest.fixture
def many(monkeypatch, rng):
    """More rows than are drawn at once, with landmarks fewer than rows."""
    monkeypatch.setattr(animation, "_DRAWN", 120)
    X = rng.normal(size=(600, 3)) * [3.0, 2.0, 0.2]
    return Session(Explored.of(X, np.where(X[:, 0] > 0, "r", "l"), RBF()), RBF(0.05))


def _told(session, **request):
    return list(session.answer(request))


def test_the_first_look_is_at_some_rows_and_the_last_at_all(many):
    _told(many, do="hello")
    updates = _told(many, do="turn", knob="gamma", value=0.06, id=3)
    resting = next(i for i, u in enumerate(updates) if u == REST)
    first, *_ = updates
    rows = many.animation.drawn
    assert len(rows) == 120
    assert first["answers"] == 3
    assert first["sketch"]["x"].shape == (120,)
    assert first["sketch"]["x"].dtype == np.float32
    assert "points" not in first
    numbers = next(u["numbers"] for u in updates[:resting] if "numbers" in u)
    assert numbers["rows"] == 120
    assert abs(numbers["score"] - 1) < 0.1
    whole = [u for u in updates[resting:] if u and "points" in u]
    assert len(whole) == 1
    assert whole[0]["points"]["x"].shape == (600,)
    # Those rows stay about where the first look had them.
    assert np.abs(whole[0]["points"]["x"][rows] - first["sketch"]["x"]).max() < 0.15
    space = explored_space(RBF(0.06), many.data)
    found = pictures.projected(PCA, space, many.animation.plane)
    assert_allclose(found.points, many.animation.plane.points, atol=1e-8)


def test_what_needs_all_rows_gets_them_while_a_knob_moves(many):
    _told(many, do="hello")
    looking = many.answer({"do": "turn", "knob": "gamma", "value": 0.3})
    next(looking)
    assert not many.animation.is_whole
    kept = _told(many, do="keep")[-1]
    assert kept["saved_points"]["x0"].shape == (600,)
    assert many.saved_views[0].name == "RBF(gamma=0.3)"
    expected = explored_space(RBF(0.3), many.data)
    assert_allclose(many.animation.space.values[:5], expected.values[:5], rtol=1e-6)
    next(many.answer({"do": "turn", "knob": "gamma", "value": 0.31}))
    about = _told(many, do="row", index=7)[-1]["about_point"]
    assert about["row"] == 7
    assert many.animation.is_whole


def test_rings_are_drawn_around_the_rows_that_are_there(many):
    _told(many, do="hello")
    drawn, hidden = (
        many.animation.drawn[5],
        int(np.setdiff1d(np.arange(600), many.animation.drawn)[0]),
    )
    for row in (int(drawn), hidden):
        _told(many, do="row", index=row)
        first = next(many.answer({"do": "turn", "knob": "gamma", "value": 0.05}))
        sizes = first["marks"]["size"]
        assert (18.0 in sizes) == (row == drawn)
    _told(many, do="forget")
    assert next(many.answer({"do": "turn", "knob": "gamma", "value": 0.05}))["marks"]["x"] == []


def test_a_knob_is_answered_without_the_curve_of_another_metric(rng):
    X = rng.normal(size=(80, 3))
    session = Session(Explored.of(X, np.where(X[:, 1] > 0, "a", "b"), RBF()), RBF())
    _told(session, do="hello")
    requests = ({"do": "type", "expression": "RBF()"}, {"do": "metric", "on": True})
    curves = [
        next(u["curves"]["gamma"] for u in session.answer(request) if u and "curves" in u)
        for request in requests
    ]
    assert curves[0] != curves[1]


def test_a_line_of_points_is_a_picture_too():
    session = Session(Explored.of(np.arange(30.0)[:, None], None, Linear()), Linear())
    _told(session, do="hello")
    x, y = session.animation.plane.points.T
    assert_allclose(np.abs(x).max(), 1)
    assert_allclose(y, 0, atol=1e-12)
