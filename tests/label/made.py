"""A folder of small photographs to be labeled, and a client that asks as the page does."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from debiaspl.label import LabelServer, open_session
from tests.data.photos import jpeg, patch

CLASSES = ("china", "flower", "other")


def write_photos(root: Path, count: int = 12) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (root / f"{number:03d}.jpg").write_bytes(jpeg(patch(number, number)))
    return root


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Table:
    """Answers as the guide reads them."""

    def __init__(self, answers=None, asked=None):
        self.answers, self.asked = answers or {}, asked or {}


class Client:
    """What a browser may send, and what it must not."""

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        self.port, self.base = parts.port, parts.path

    def raw(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, body, _ = self.raw(self.base + path)
        return json.loads(body) if status == 200 else (status, json.loads(body)["error"])

    def post(self, path: str, **values: Any) -> Any:
        status, body, _ = self.raw(
            self.base + path, "POST", json.dumps(values).encode(), Content_Type="application/json"
        )
        return json.loads(body) if status == 200 else (status, json.loads(body)["error"])

    def first(self) -> dict[str, Any]:
        return self.get("state")["upcoming"][0]

    def answer(self, place: int | None) -> Any:
        """Label the image that comes next."""
        return self.post("answer", image=self.first()["image"], **{"class": place})


@contextmanager
def served(photos: Path, classes: tuple[str, ...] | None = CLASSES, **options: Any) -> Iterator[Client]:
    with open_session(photos, classes, **options) as session, LabelServer(session) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield Client(server.url)
        finally:
            server.shutdown()
            thread.join()
