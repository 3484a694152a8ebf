"""A server on this machine alone, behind an address that cannot be guessed."""

import asyncio
import secrets
import socket
import threading
from typing import Any

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.util.token import generate_session_id
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, RequestHandler

from .live_page import build
from .session import Session
from .worker import Worker

ADDRESS = "127.0.0.1"
# Every name but those of this machine. A stranger's page can make its own name lead to 127.0.0.1
# (DNS rebinding) and would then be of the same origin; its requests still carry that name.
OTHER_HOSTS = r"(?i)(?!(127\.0\.0\.1|localhost)$).*$"


class _Refused(RequestHandler):
    def prepare(self):
        raise HTTPError(403, "this name is not the explorer's")


class LiveServer:
    """Serves one session, in a thread, until it is stopped.

    Pages and their sockets need the signed session id of the address; without it there is nothing
    to see, and requests to another host name are refused. Scripts come from Bokeh on this machine.
    """

    def __init__(self, session: Session, port: int = 0):
        self.session = session
        self.port = _free_port(port)
        self.worker = Worker(session)
        secret = secrets.token_urlsafe(32).encode()
        token = generate_session_id(secret_key=secret, signed=True)
        self.url = f"http://{ADDRESS}:{self.port}/?bokeh-session-id={token}"
        self._secret = secret
        self._loop: Any = None
        self._failure: BaseException | None = None
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._serve, args=(started,), name="mercer-explore-server", daemon=True
        )
        self._thread.start()
        started.wait()
        if self._failure is not None:
            self.worker.stop()
            raise OSError(f"the explorer cannot start on port {self.port}: {self._failure}.")

    def _serve(self, started):
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            self._loop = IOLoop.current()
            handler = FunctionHandler(lambda doc: build(doc, self.session, self.worker))
            pages = BokehTornado(
                {"/": Application(handler)},
                extra_websocket_origins=[f"{ADDRESS}:{self.port}", f"localhost:{self.port}"],
                sign_sessions=True,
                secret_key=self._secret,
                generate_session_ids=False,
            )
            pages.add_handlers(OTHER_HOSTS, [(r".*", _Refused)])  # asked before all others
            http = HTTPServer(pages)
            http.listen(self.port, ADDRESS)
            server = BaseServer(self._loop, pages, http)
            server.start()
        except BaseException as error:  # told by the thread that started this one
            self._failure = error
            started.set()
            return
        started.set()
        self._loop.start()
        server.stop()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def stop(self) -> None:
        """Close the address; pages that are open say so."""
        self.worker.stop()
        if self._thread.is_alive():
            self._loop.add_callback(self._loop.stop)
            self._thread.join(timeout=5)


def _free_port(port):
    """The port asked for, or any free one for 0; refused before anything is started."""
    with socket.socket() as probe:
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            raise OSError(
                f"the explorer cannot listen on port {port} ({error.strerror}): choose another "
                "port, or 0 for any that is free."
            ) from None
        return probe.getsockname()[1]
