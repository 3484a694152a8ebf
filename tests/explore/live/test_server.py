"""The worker keeps to the newest request; the server shows nothing without its token."""

import json
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import psutil
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")

from mercer import RBF
from mercer.explore import explore
from mercer.explore.live.live_page import _PAUSE, _packed, _Worker
from mercer.explore.live.session import REST


class _Slow:
    """A session that takes as long as it is told, and remembers what it was asked."""

    def __init__(self):
        self.begun, self.rested, self.go = [], [], threading.Event()

    def answer(self, request):
        self.begun.append(request)
        if request["do"] == "fail":
            raise AssertionError("a fault")
        if request["do"] == "turn":
            self.go.wait(5)
            yield {"frame": request["value"]}
            yield REST
            self.rested.append(request["value"])
            yield None
            yield {"refined": request["value"]}
            yield {"curves": request["value"]}
        else:
            yield {request["do"]: True}


@pytest.fixture
def told():
    session = _Slow()
    worker = _Worker(session)
    updates, quiet = [], threading.Event()

    def listen(update):
        updates.append(update)
        if update == {"busy": False}:
            quiet.set()

    worker.listeners.add(listen)
    yield session, worker, updates, quiet
    session.go.set()
    worker.stop()


def test_only_the_newest_position_of_a_knob_is_computed(told):
    session, worker, updates, quiet = told
    for value in range(50):
        worker.ask({"do": "turn", "knob": "gamma", "value": value})
    quiet.clear()
    session.go.set()
    worker.ask({"do": "turn", "knob": "gamma", "value": 50})
    assert quiet.wait(5)
    assert len(session.begun) <= 3
    assert updates[-2] == {"curves": 50, "busy": True}


def test_refinement_waits_until_the_hand_rests(told):
    session, worker, updates, quiet = told
    session.go.set()
    for value in range(4):
        worker.ask({"do": "turn", "knob": "gamma", "value": value})
        while {"frame": value, "busy": True} not in updates:
            time.sleep(_PAUSE / 100)
    assert session.rested == []  # each move came within the pause of the last
    quiet.clear()
    assert quiet.wait(5)
    assert session.rested == [3]
    assert None not in updates
    assert REST not in updates


def test_arrays_travel_as_they_are_and_everything_else_as_json():
    x = np.arange(3, dtype=np.float32)
    text, arrays = _packed({"points": {"x": x}, "score": np.float64("nan"), "name": "<b>"})
    assert json.loads(text) == {"points": {"x": {"array": 0}}, "score": None, "name": "<b>"}
    assert arrays[0] is x


def test_small_requests_do_not_stop_refinement(told):
    session, worker, updates, quiet = told
    worker.ask({"do": "turn", "knob": "gamma", "value": 1})
    worker.ask({"do": "select", "indices": []})
    quiet.clear()
    session.go.set()
    assert quiet.wait(5)
    found = [key for update in updates for key in update if key != "busy"]
    assert sorted(found) == ["curves", "frame", "refined", "select"]


def test_a_fault_is_told_and_the_next_request_answered(told):
    _, worker, updates, quiet = told
    quiet.clear()
    worker.ask({"do": "fail"})
    worker.ask({"do": "keep"})
    assert quiet.wait(5)
    assert {"error": "AssertionError: a fault"} in updates
    assert {"keep": True} in updates


@pytest.fixture(scope="module")
def explorer():
    X = np.random.default_rng(0).normal(size=(40, 3))
    with explore(X, X[:, 0] > 0, RBF()) as running:
        yield running


def _status(url, headers=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {})) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def test_the_page_needs_its_token(explorer):
    bare = explorer.url.split("?")[0]
    assert bare.startswith("http://127.0.0.1:")
    assert _status(bare)[0] == 403
    assert _status(bare + "?bokeh-session-id=guess")[0] == 403
    assert _status(explorer.url[:-2] + "xx")[0] == 403
    status, page = _status(explorer.url)
    assert status == 200
    assert "mercer" in page
    # Scripts come from this server: the page works offline.
    assert "cdn." not in page


def test_it_listens_on_this_machine_alone(explorer):
    port = int(explorer.url.split(":")[2].split("/")[0])
    process = psutil.Process()
    # psutil before 6 calls it otherwise.
    listed = getattr(process, "net_connections", None) or process.connections
    listening = [
        connection.laddr.ip
        for connection in listed(kind="inet")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
    ]
    assert listening == ["127.0.0.1"]


@pytest.mark.parametrize("path", ["", "static/js/bokeh.min.js", "ws"])
def test_other_names_of_this_machine_are_refused(explorer, path):
    """A stranger's page whose name is made to lead here (DNS rebinding) sends its own Host."""
    base, query = explorer.url.split("?")
    port = base.split(":")[2].rstrip("/")
    url = f"{base}{path}?{query}"
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "[::2]", "."):
        assert _status(url, {"Host": host})[0] == 403, host
    if path != "ws":
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", "LOCALHOST"):
            assert _status(url, {"Host": host})[0] == 200, host


def test_it_shows_itself_in_a_notebook(explorer):
    assert "<iframe" in explorer._repr_html_()
    assert explorer.kernel == RBF()
    assert explorer.selection.size == 0
    assert repr(explorer).startswith("<Explorer of 40 rows")


def test_a_port_in_use_is_told(explorer):
    port = int(explorer.url.split(":")[2].split("/")[0])
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(OSError, match="port"):
        explore(X, port=port)


def test_stopping_closes_the_address():
    X = np.random.default_rng(0).normal(size=(20, 2))
    running = explore(X)
    running.stop()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(running.url)
