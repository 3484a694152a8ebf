"""A server on this machine alone, behind an address that cannot be guessed."""

import asyncio
import secrets
import socket
import threading

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
            self._socket = socket.create_server((ADDRESS, port))
        except OSError as error:
            raise OSError(
                f"the explorer cannot listen on port {port} ({error.strerror}): choose another "
                "port, or 0 for any that is free."
            ) from None
        self._socket.setblocking(False)  # as Tornado wants it
        self.port = self._socket.getsockname()[1]
        self.worker = Worker(session)
        self._secret = secrets.token_urlsafe(32).encode()
        token = generate_session_id(secret_key=self._secret, signed=True)
        self.url = f"http://{ADDRESS}:{self.port}/?bokeh-session-id={token}"
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
            extra_websocket_origins=[f"{ADDRESS}:{self.port}", f"localhost:{self.port}"],
            sign_sessions=True,
            secret_key=self._secret,
            generate_session_ids=False,
        )
        pages.add_handlers(OTHER_HOSTS, [(r".*", _Refused)])  # asked before all others
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
