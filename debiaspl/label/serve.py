"""A small server on this machine only, for one page and its requests.

Every request needs the token of the address. No part of an address is ever used as a path.
"""

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "127.0.0.1"
SECONDS = 60.0
"""Seconds until a silent connection is closed."""


class Refused(Exception):  # noqa: N818 - it is the answer
    """A request that is refused; the message says why."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class LocalServer(ThreadingHTTPServer):
    """A server for everyone who has the address."""

    daemon_threads = True

    def __init__(self, handler: type["LocalHandler"], port: int = 0) -> None:
        self.token = secrets.token_urlsafe(18)
        super().__init__((HOST, port), handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"


class LocalHandler(BaseHTTPRequestHandler):
    """Shared by all pages: which requests are allowed, and how an answer is sent."""

    server: LocalServer
    server_version, sys_version = "debiaspl", ""
    protocol_version = "HTTP/1.1"
    timeout = SECONDS

    def answer(self, method: str) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.answer("GET")

    def do_HEAD(self) -> None:
        self.answer("HEAD")

    def do_POST(self) -> None:
        self.answer("POST")

    def asked(self) -> str:
        """The path of an allowed request, without the token. Raises Refused."""
        # A page of another site may point its own name at this machine; it must not get anywhere by that.
        own = {f"{name}:{self.server.port}" for name in (HOST, "localhost")}
        if self.headers.get("Host", "") not in own:
            raise Refused(HTTPStatus.FORBIDDEN, "ask for 127.0.0.1 or localhost")
        if self.headers.get("Origin", "") not in {"", *(f"http://{name}" for name in own)}:
            raise Refused(HTTPStatus.FORBIDDEN, "requests from other sites are refused")
        _, _, path = self.path.partition("/")
        token, _, asked = path.partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, "use the whole address that debiaspl printed")
        return asked

    def send(
        self, status: HTTPStatus, kind: str, body: bytes, headers: Mapping[str, str] | None = None, bare: bool = False
    ) -> None:
        """Send an answer; a ``bare`` one has headers only."""
        self.send_response(status)
        always = {
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        if status != HTTPStatus.NOT_MODIFIED:
            always |= {"Content-Type": kind, "Content-Length": str(len(body))}
        for name, value in (always | dict(headers or {})).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if not bare and status != HTTPStatus.NOT_MODIFIED:
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: the terminal shows only the address."""
