"""The report of one run, served on this machine only while the run trains.

There are two addresses, the page and its values, and both are made here: nothing but the report of this run can be
asked for.
"""

import hashlib
import json
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from threading import Lock

from debiaspl.report.pages.serve import LocalHandler, LocalServer, Refused
from debiaspl.report.runs.page import runs_page, runs_values
from debiaspl.report.runs.record import read_run
from debiaspl.training import Recipe, RunError

PAGE, VALUES = "", "values.json"
TEXT = "text/plain; charset=utf-8"
KINDS = {PAGE: "text/html; charset=utf-8", VALUES: "application/json"}


class WatchServer(LocalServer):
    """Reads the run again when its files have changed; writes nothing."""

    def __init__(self, folder: Path, known: Mapping[str, Recipe], port: int = 0) -> None:
        self.folder, self.known = folder, known
        self._lock, self._values = Lock(), b""
        self._seen: tuple[tuple[int, int] | None, ...] = ()
        read_run(folder)  # what is no run is refused before anything is served
        super().__init__(_Handler, port)

    def page(self) -> bytes:
        return runs_page([read_run(self.folder)], self.known, live=True).encode()

    def values(self) -> bytes:
        """The values of the page, computed again only if the run has continued."""
        with self._lock:
            state = tuple(_state(self.folder / name) for name in ("config.json", "log.jsonl", "results.json"))
            if state != self._seen:
                self._values = json.dumps(runs_values([read_run(self.folder)], self.known)).encode()
                self._seen = state
            return self._values


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


class _Handler(LocalHandler):
    server: WatchServer

    def answer(self, method: str) -> None:
        bare = method == "HEAD"
        try:
            if method == "POST":
                raise Refused(HTTPStatus.NOT_IMPLEMENTED, "nothing can be changed here")
            asked = self.asked()
            if asked not in KINDS:
                raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")
            body = self.server.page() if asked == PAGE else self.server.values()
        except Refused as refused:
            self.close_connection = True
            self.send(refused.status, TEXT, str(refused).encode(), bare=bare)
            return
        except RunError as error:
            self.send(HTTPStatus.SERVICE_UNAVAILABLE, TEXT, str(error).encode(errors="replace"), bare=bare)
            return
        mark = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        status = HTTPStatus.NOT_MODIFIED if self.headers.get("If-None-Match") == mark else HTTPStatus.OK
        self.send(status, KINDS[asked], body, {"ETag": mark, "Cache-Control": "no-cache"}, bare)
