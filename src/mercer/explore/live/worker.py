"""A thread that answers requests: the newest position of a knob counts, and refinement can wait."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .animation import Update
from .session import REST, Session

log = logging.getLogger(__name__)

# Requests that change the picture: they end the refinement of an older one.
CHANGING = ("hello", "type", "build", "turn", "view", "metric")
# Requests of which only the newest is answered.
MERGED = ("turn", "select", "columns")
# Seconds without a request after which the hand rests.
PAUSE = 0.25


class Worker:
    """Answers the requests of one session, one at a time, and tells every listener.

    A request that changes the picture ends the refinement of the last one; other requests are
    answered in between.
    """

    def __init__(self, session: Session):
        self.session = session
        self.listeners: list[Callable[[Update], None]] = []
        self._waiting: deque[dict[str, Any]] = deque()
        self._wake = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="mercer-explore", daemon=True)
        self._thread.start()

    def ask(self, request: dict[str, Any]) -> None:
        """Put a request into the queue; one that is merged takes the place of an older one."""
        with self._wake:
            if request.get("do") in MERGED:
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
                if request is not None and request.get("do") in CHANGING:
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
                        self._wake.wait_for(lambda: self._waiting or self._stopped, PAUSE)
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
