"""The report of one run, served on this machine alone while the run goes on.

There are two addresses, the page and its values, and both are made here: no part of an address is ever a path, so
nothing but the report of this run can be asked for.
"""

import hashlib
import json
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from debiaspl.report.runs.page import runs_page, runs_values
from debiaspl.report.runs.record import read_run
from debiaspl.training import Recipe, RunError

HOST = "127.0.0.1"
PAGE, VALUES = "/", "/values.json"


class WatchServer(ThreadingHTTPServer):
    """Reads the run anew when its files have changed; writes nothing."""

    daemon_threads = True

    def __init__(self, folder: Path, known: Mapping[str, Recipe], port: int = 0) -> None:
        self.folder, self.known = folder, known
        self._lock, self._values = Lock(), b""
        self._seen: tuple[tuple[int, int] | None, ...] = ()
        read_run(folder)  # what is no run is refused before anything is served
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}{PAGE}"

    def page(self) -> bytes:
        return runs_page([read_run(self.folder)], self.known, live=True).encode()

    def values(self) -> bytes:
        """What the page shows, made again only if the run has gone on."""
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


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer
    server_version, sys_version = "debiaspl", ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        # A page of another site may point its own name at this machine; it must not read the run by that.
        if self.headers.get("Host", "").partition(":")[0] not in (HOST, "localhost"):
            self.send_error(HTTPStatus.FORBIDDEN, "ask for 127.0.0.1 or localhost")
            return
        if self.path not in (PAGE, VALUES):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            body = self.server.page() if self.path == PAGE else self.server.values()
        except RunError as error:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=str(error))
            return
        self._send(body, with_body)

    def _send(self, body: bytes, with_body: bool) -> None:
        mark = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        same = self.headers.get("If-None-Match") == mark
        self.send_response(HTTPStatus.NOT_MODIFIED if same else HTTPStatus.OK)
        self.send_header("ETag", mark)
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        if not same:
            kind = "text/html; charset=utf-8" if self.path == PAGE else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body and not same:
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Silent: the terminal shows the address, not every question of the page."""
