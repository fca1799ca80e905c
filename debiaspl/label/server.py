"""The page, served on this machine alone.

Nothing is answered without the token that the address holds. No part of an address is a path: images are asked for by
number, and all else is one of a few names.
"""

import json
import secrets
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, TypeGuard

from debiaspl.data.decode import BadImage
from debiaspl.data.errors import DataError
from debiaspl.files import FileError
from debiaspl.label.session import Session, Stale
from debiaspl.training.errors import RunError

HOST = "127.0.0.1"
PARTS = {
    "": ("page.html", "text/html; charset=utf-8"),
    "style.css": ("style.css", "text/css; charset=utf-8"),
    "kit.js": ("kit.js", "text/javascript; charset=utf-8"),
    "panel.js": ("panel.js", "text/javascript; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
LONGEST_BODY = 1000
JSON = "application/json"


class LabelServer(ThreadingHTTPServer):
    """One session for whoever has the address."""

    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session, self.token = session, secrets.token_urlsafe(18)
        super().__init__((HOST, port), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"


class _Refused(Exception):  # noqa: N818 - it is the answer
    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    server_version, sys_version = "debiaspl", ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        self._reply(self._get)

    def do_POST(self) -> None:
        self._reply(self._post)

    def _reply(self, answer: Callable[[str], tuple[str, bytes]]) -> None:
        status = HTTPStatus.OK
        try:
            kind, body = answer(self._asked())
        except _Refused as refused:
            # The rest of a body that nobody read must not be taken for the next request.
            self.close_connection = True
            status, (kind, body) = refused.status, _said(refused)
        except Stale as error:
            status, (kind, body) = HTTPStatus.CONFLICT, _said(error)
        except BadImage as error:
            status, (kind, body) = HTTPStatus.UNSUPPORTED_MEDIA_TYPE, _said(error)
        except (DataError, FileError, RunError) as error:
            status, (kind, body) = HTTPStatus.SERVICE_UNAVAILABLE, _said(error)
        self._send(status, kind, body)

    def _asked(self) -> str:
        """What is asked for, by somebody who may."""
        # A page of another site may point its own name at this machine; it must not get anywhere by that.
        own = {f"{name}:{self.server.port}" for name in (HOST, "localhost")}
        if self.headers.get("Host", "") not in own:
            raise _Refused(HTTPStatus.FORBIDDEN, "ask for 127.0.0.1 or localhost")
        if self.headers.get("Origin", "") not in {"", *(f"http://{name}" for name in own)}:
            raise _Refused(HTTPStatus.FORBIDDEN, "another site may not ask")
        _, _, path = self.path.partition("/")
        token, _, asked = path.partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise _Refused(HTTPStatus.FORBIDDEN, "use the whole address that debiaspl label has printed")
        return asked

    def _get(self, asked: str) -> tuple[str, bytes]:
        session = self.server.session
        if asked in PARTS:
            name, kind = PARTS[asked]
            return kind, _part(name)
        if asked == "about":
            return _json(session.about() | {"state": session.state()})
        if asked == "state":
            return _json(session.state())
        kind, _, number = asked.partition("/")
        if kind == "image" and number.isascii() and number.isdecimal() and int(number[:9]) < len(session.files):
            return session.picture(int(number[:9]))
        raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _post(self, asked: str) -> tuple[str, bytes]:
        session, body = self.server.session, self._body()
        if asked == "undo":
            return _json(session.undo())
        if asked == "again":
            return _json(session.again())
        if asked == "answer":
            image, place = body.get("image"), body.get("class")
            if not _is_place(image, len(session.files)) or not (
                place is None or _is_place(place, len(session.classes))
            ):
                raise _Refused(HTTPStatus.BAD_REQUEST, "expected the number of an image, and of a class or null")
            return _json(session.answer(image, place))
        raise _Refused(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal() and len(length) < 9 and int(length) <= LONGEST_BODY):
            raise _Refused(HTTPStatus.BAD_REQUEST, f"expected a body of up to {LONGEST_BODY} bytes")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            body = None
        if self.headers.get("Content-Type") != JSON or not isinstance(body, dict):
            raise _Refused(HTTPStatus.BAD_REQUEST, "expected a JSON object")
        return body

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Silent: the terminal shows the address, not every question of the page."""


def _json(value: Any) -> tuple[str, bytes]:
    return JSON, json.dumps(value).encode()


def _said(error: Exception) -> tuple[str, bytes]:
    return _json({"error": str(error)})


def _is_place(value: Any, length: int) -> TypeGuard[int]:
    # True is a number in Python, and a mistake here.
    return type(value) is int and 0 <= value < length


@cache
def _part(name: str) -> bytes:
    return files("debiaspl.label.page").joinpath(name).read_bytes()
