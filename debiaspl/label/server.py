"""The page, served on this machine only.

Every request needs the token of the address. Images are asked for by number, everything else by one of a few names: no
part of an address is ever used as a path.
"""

import json
import re
import secrets
import sys
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, TypeGuard

from debiaspl.data.decode import BadImage
from debiaspl.data.text import DataError
from debiaspl.files import FileError, parse_json
from debiaspl.label.session import Session, Stale
from debiaspl.training.process import RunError

HOST = "127.0.0.1"
SECONDS = 60.0
"""Seconds until a silent connection is closed."""
LONGEST_BODY = 1000
JSON = "application/json"
PARTS = {
    "": ("page.html", "text/html; charset=utf-8"),
    "style.css": ("style.css", "text/css; charset=utf-8"),
    **{name: (name, "text/javascript; charset=utf-8") for name in ("kit.js", "panel.js", "page.js")},
}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Refused(Exception):  # noqa: N818 - it is the answer
    """A request that is refused; the message says why."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class LabelServer(ThreadingHTTPServer):
    """One session, for everyone who has the address."""

    daemon_threads = True

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session, self.token = session, secrets.token_urlsafe(18)
        super().__init__((HOST, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that the browser has closed: it may do so at any time."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    server_version, sys_version = "debiaspl", ""
    protocol_version = "HTTP/1.1"
    timeout = SECONDS

    def _answer(self) -> None:
        status = HTTPStatus.OK
        try:
            answer = (self._get if self.command == "GET" else self._post)(self._asked())
        except Refused as refused:
            # The rest of an unread body must not be read as the next request.
            self.close_connection = True
            status, answer = refused.status, {"error": str(refused)}
        except (BadImage, DataError, FileError, RunError) as error:
            codes: dict[type, HTTPStatus] = {Stale: HTTPStatus.CONFLICT, BadImage: HTTPStatus.UNSUPPORTED_MEDIA_TYPE}
            status, answer = codes.get(type(error), HTTPStatus.SERVICE_UNAVAILABLE), {"error": str(error)}
        kind, body = answer if isinstance(answer, tuple) else (JSON, json.dumps(answer).encode())
        self.send_response(status)
        close = {"Connection": "close"} if self.close_connection else {}
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body)), **close}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815 - the names that http.server looks for

    def _asked(self) -> str:
        """The path of an allowed request, without the token. Raises Refused."""
        # A page of another site may point its own name at this machine; it must not get anywhere by that.
        own = {f"{name}:{self.server.port}" for name in (HOST, "localhost")}
        if self.headers.get("Host", "") not in own:
            raise Refused(HTTPStatus.FORBIDDEN, "ask for 127.0.0.1 or localhost")
        if self.headers.get("Origin", "") not in {"", *(f"http://{name}" for name in own)}:
            raise Refused(HTTPStatus.FORBIDDEN, "requests from other sites are refused")
        token, _, asked = self.path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, "use the whole address that debiaspl printed")
        return asked

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: the terminal shows only the address."""

    def _get(self, asked: str) -> dict[str, Any] | tuple[str, bytes]:
        """An object, or a content type and content."""
        session = self.server.session
        if asked in PARTS:
            name, kind = PARTS[asked]
            return kind, files("debiaspl.label.page").joinpath(name).read_bytes()
        if asked == "about":
            return session.about() | {"state": session.state()}
        if asked == "state":
            return session.state()
        image = re.fullmatch(r"image/([0-9]{1,8})", asked)
        if image and int(image[1]) < len(session.files):
            return session.picture(int(image[1]))
        raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _post(self, asked: str) -> dict[str, Any]:
        session, body = self.server.session, self._body()
        if asked == "undo":
            return session.undo()
        if asked == "again":
            return session.again()
        image, place = body.get("image"), body.get("class")
        if asked == "look" and _is_place(image, len(session.files)):
            return session.look(image)
        if asked != "answer":
            raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")
        if _is_place(image, len(session.files)) and (place is None or _is_place(place, len(session.classes))):
            return session.answer(image, place)
        raise Refused(HTTPStatus.BAD_REQUEST, "expected the number of an image, and of a class or null")

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,8}", length) or int(length) > LONGEST_BODY:
            raise Refused(HTTPStatus.BAD_REQUEST, f"expected a body of up to {LONGEST_BODY} bytes")
        body = None
        with suppress(ValueError):
            body = parse_json(self.rfile.read(int(length)))
        if self.headers.get("Content-Type") != JSON or not isinstance(body, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "expected a JSON object")
        return body


def _is_place(value: Any, length: int) -> TypeGuard[int]:
    # True is a number in Python, and a mistake here.
    return type(value) is int and 0 <= value < length
