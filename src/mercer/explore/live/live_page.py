"""The page, and a server of it on this machine alone, behind an address that cannot be guessed.

Pictures of points are Bokeh's; everything else is plain HTML that is filled as text. One thread
answers requests: the newest position of a knob counts, and refinement can wait.
"""

import asyncio
import json
import logging
import secrets
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.document.events import MessageSentEvent
from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.util.token import generate_session_id
from jinja2 import Environment, FileSystemLoader
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, RequestHandler

from ..plots.style import MOST_IN_LEGEND, SHAPES, looks
from ..report.figures import WRONG, add_points, point_columns
from ..report.thumbnails import described
from .animation import Update
from .row_facts import label_of
from .saved_views import MOST_KEPT
from .session import REST, Session

log = logging.getLogger(__name__)

_HERE = Path(__file__).parent
# The kind of message by which the server tells the page what is new.
_MESSAGE = "mercer"
# Shapes of the legend as characters.
_SIGNS = dict(zip(SHAPES, "●▲■◆▼✚✖★"))
# Points lie between -1 and 1; the tools stand on the right, inside the picture.
REACH, TOOLS = 1.15, 0.08


def _picture(name: str, source: ColumnDataSource, size: float, *, tools: bool = True) -> Any:
    shift = TOOLS if tools else 0.0
    panel = figure(
        name=name, aspect_ratio=1, sizing_mode="stretch_width", min_border=2,
        x_range=Range1d(start=shift - REACH, end=shift + REACH),
        y_range=Range1d(start=-REACH, end=REACH),
        tools="pan,wheel_zoom,lasso_select,box_select,reset", active_drag="lasso_select",
        toolbar_location="right" if tools else None,
        toolbar_inner=True,  # so that the picture is square
        output_backend="canvas",  # where there is no GPU, WebGL is several times slower
    )  # fmt: skip
    add_points(
        panel, source, "x", "y", size=size, fill_alpha=0.75, line_color=WRONG, line_alpha="wrong",
        selection_line_color=WRONG, nonselection_fill_alpha=0.14, nonselection_line_alpha=0.05,
    )  # fmt: skip
    panel.toolbar.stylesheets = [":host(.bk-inner) { background-color: transparent; }"]
    panel.axis.visible = False
    return panel


def build(doc: Document, session: Session, worker: "_Worker") -> None:
    """Fill a new document, and connect it with the session."""
    data, n = session.data, len(session.data)
    nowhere = np.full(n, np.nan, dtype=np.float32)  # the page's script adds where points lie
    columns = point_columns(data, *described(data)) | {
        "x": nowhere,
        "y": nowhere,
        "label": [label_of(data, i) for i in range(n)],
        "wrong": np.zeros(n, dtype=np.float32),
    }
    source = ColumnDataSource(columns, name="points")
    size = float(np.clip(8 * (800 / n) ** 0.4, 3, 8))
    marks = ColumnDataSource({"x": [], "y": [], "size": []}, name="marks")
    ask = ColumnDataSource({"request": [""]}, name="ask")
    space = _picture("space", source, size)
    space.scatter(
        "x", "y", size="size", source=marks, fill_color=None, line_color="#888888", line_width=2.2
    )
    space.tags = [ask, marks, {"size": size, "wrong": WRONG}]
    doc.add_root(space)
    for place in range(MOST_KEPT):
        # A source of its own, filled when a space is kept: what moves beside it costs it nothing.
        still = ColumnDataSource({key: [] for key in source.data}, selected=source.selected)
        small = max(3.0, 0.7 * size)
        doc.add_root(_picture(f"kept{place}", still, small, tools=False))

    def show(update: Update) -> None:
        """In the server's own thread: a message, its arrays as they lie in memory."""
        text, arrays = _packed(update)
        doc.callbacks.trigger_on_change(MessageSentEvent(doc, _MESSAGE, [text, *arrays]))

    def listen(update: Update) -> None:
        doc.add_next_tick_callback(partial(show, update))

    def asked(attr: str, old: Any, new: Any) -> None:
        try:
            request = json.loads(new["request"][0])
        except (ValueError, LookupError, TypeError):
            return
        if isinstance(request, dict):
            worker.ask(request)

    def selected(attr: str, old: Any, new: Any) -> None:
        worker.ask({"do": "select", "indices": list(new)})

    ask.on_change("data", asked)
    source.selected.on_change("indices", selected)
    worker.listeners.add(listen)
    doc.on_session_destroyed(lambda _: worker.listeners.discard(listen))
    styles = zip(data.classes, looks(len(data.classes)))
    legend = [(name, colour, _SIGNS[shape]) for name, (colour, shape) in styles]
    doc.title = "mercer explore"
    doc.template = Environment(loader=FileSystemLoader(_HERE), autoescape=True).get_template(
        "page.html"
    )
    doc.template_variables.update(
        css=(_HERE / "page.css").read_text(encoding="utf-8"),
        javascript="\n".join(
            (_HERE / name).read_text(encoding="utf-8") for name in ("sketch.js", "page.js")
        ),
        colours=legend[:MOST_IN_LEGEND],
        n_kept=MOST_KEPT,
    )


def _packed(update: Update) -> tuple[str, list[np.ndarray]]:
    """(JSON, arrays): in the JSON an array is {"array": its position}."""
    arrays: list[np.ndarray] = []

    def placed(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value.item() if isinstance(value, np.generic) else str(value)
        arrays.append(value)
        return {"array": len(arrays) - 1}

    text = json.dumps(update, default=placed)
    return json.dumps(json.loads(text, parse_constant=lambda _: None)), arrays  # null for NaN


# --- the thread that answers ----------------------------------------------------------------------

# Requests that change the picture: they end the refinement of an older one.
_CHANGING = ("hello", "type", "build", "turn", "view", "metric")
# Requests of which only the newest is answered.
_MERGED = ("turn", "select", "columns")
# Seconds without a request after which the hand rests.
_PAUSE = 0.25


class _Worker:
    """Answers the requests of one session, one at a time, and tells every listener.

    A request that changes the picture ends the refinement of the last one; other requests are
    answered in between.
    """

    def __init__(self, session: Session):
        self.session = session
        self.listeners: set[Callable[[Update], None]] = set()
        self._waiting: deque[dict[str, Any]] = deque()
        self._wake = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="mercer-explore", daemon=True)
        self._thread.start()

    def ask(self, request: dict[str, Any]) -> None:
        """Put a request into the queue; one that is merged takes the place of an older one."""
        with self._wake:
            if request.get("do") in _MERGED:
                what = (request["do"], request.get("knob"))
                for old in [r for r in self._waiting if (r.get("do"), r.get("knob")) == what]:
                    self._waiting.remove(old)
            self._waiting.append(request)
            self._wake.notify()

    def stop(self) -> None:
        with self._wake:
            self._stopped = True
            self._waiting.clear()
            self._wake.notify()
        self._thread.join(timeout=5)

    def _run(self):
        refining: Iterator[Update | None] | None = None
        while True:
            with self._wake:
                while not self._waiting and refining is None and not self._stopped:
                    self._tell({"busy": False})
                    self._wake.wait()
                if self._stopped:
                    return
                request = self._waiting.popleft() if self._waiting else None
            try:
                if request is not None and request.get("do") in _CHANGING:
                    refining = self.session.answer(request)
                elif request is not None:
                    for update in self.session.answer(request):
                        if update:
                            self._tell(update)
                    continue
                assert refining is not None
                update = next(refining)
                if update is REST:
                    with self._wake:
                        self._wake.wait_for(lambda: self._waiting or self._stopped, _PAUSE)
                elif update is not None:
                    self._tell(update | {"busy": True})
            except StopIteration:
                refining = None
            except Exception as error:  # a fault here must not leave the page waiting for ever
                log.exception("the explorer could not answer %r", request)
                refining = None
                self._tell({"error": f"{type(error).__name__}: {error}"})

    def _tell(self, update):
        for listener in list(self.listeners):
            listener(update)


# --- the server -----------------------------------------------------------------------------------

_ADDRESS = "127.0.0.1"
# Every name but those of this machine. A stranger's page can make its own name lead to 127.0.0.1
# (DNS rebinding) and would then be of the same origin; its requests still carry that name.
_OTHER_HOSTS = r"(?i)(?!(127\.0\.0\.1|localhost)$).*$"


class _Refused(RequestHandler):
    def prepare(self) -> None:
        raise HTTPError(403, "this name is not the explorer's")


class LiveServer:
    """Serves one session, in a thread, until it is stopped.

    Pages and their sockets need the signed session id of the address; without it there is nothing
    to see, and requests to another host name are refused. Scripts come from Bokeh on this machine.
    """

    def __init__(self, session: Session, port: int = 0):
        self.session = session
        try:  # before anything is started
            self._socket = socket.create_server((_ADDRESS, port))
        except OSError as error:
            raise OSError(
                f"the explorer cannot listen on port {port} ({error.strerror}): choose another "
                "port, or 0 for any that is free."
            ) from None
        self._socket.setblocking(False)  # as Tornado wants it
        self.port = self._socket.getsockname()[1]
        self.worker = _Worker(session)
        self._secret = secrets.token_urlsafe(32).encode()
        token = generate_session_id(secret_key=self._secret, signed=True)
        self.url = f"http://{_ADDRESS}:{self.port}/?bokeh-session-id={token}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._serve, name="mercer-explore-server", daemon=True
        )
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        handler = FunctionHandler(lambda doc: build(doc, self.session, self.worker))
        pages = BokehTornado(
            {"/": Application(handler)},
            extra_websocket_origins=[f"{_ADDRESS}:{self.port}", f"localhost:{self.port}"],
            sign_sessions=True,
            secret_key=self._secret,
            generate_session_ids=False,
        )
        pages.add_handlers(_OTHER_HOSTS, [(r".*", _Refused)])  # asked before all others
        http = HTTPServer(pages)
        http.add_socket(self._socket)
        server = BaseServer(IOLoop.current(), pages, http)
        server.start()
        self._loop.run_forever()
        server.stop()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def stop(self) -> None:
        """Close the address; pages that are open say so."""
        self.worker.stop()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5)
