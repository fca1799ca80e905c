"""The page, served on this machine only: images are asked for by number, everything else by one of a few names."""

import json
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, TypeGuard

from debiaspl.data.decode import BadImage
from debiaspl.data.errors import DataError
from debiaspl.files import FileError
from debiaspl.label.serve import LocalHandler, LocalServer, Refused
from debiaspl.label.session import Session, Stale
from debiaspl.training.errors import RunError

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


class LabelServer(LocalServer):
    """One session, for everyone who has the address."""

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session = session
        super().__init__(_Handler, port)


class _Handler(LocalHandler):
    server: LabelServer

    def answer(self, method: str) -> None:
        ways = {"GET": self._get, "POST": self._post}
        status = HTTPStatus.OK
        try:
            if method not in ways:
                raise Refused(HTTPStatus.NOT_IMPLEMENTED, "GET and POST are answered")
            kind, body = ways[method](self.asked())
        except Refused as refused:
            # The rest of an unread body must not be read as the next request.
            self.close_connection = True
            status, (kind, body) = refused.status, _said(refused)
        except Stale as error:
            status, (kind, body) = HTTPStatus.CONFLICT, _said(error)
        except BadImage as error:
            status, (kind, body) = HTTPStatus.UNSUPPORTED_MEDIA_TYPE, _said(error)
        except (DataError, FileError, RunError) as error:
            status, (kind, body) = HTTPStatus.SERVICE_UNAVAILABLE, _said(error)
        more = {"Cache-Control": "no-store", "Content-Security-Policy": POLICY}
        self.send(status, kind, body, more, bare=method == "HEAD")

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
        raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")

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
                raise Refused(HTTPStatus.BAD_REQUEST, "expected the number of an image, and of a class or null")
            return _json(session.answer(image, place))
        raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal() and len(length) < 9 and int(length) <= LONGEST_BODY):
            raise Refused(HTTPStatus.BAD_REQUEST, f"expected a body of up to {LONGEST_BODY} bytes")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            body = None
        if self.headers.get("Content-Type") != JSON or not isinstance(body, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "expected a JSON object")
        return body


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
