"""The server of ``debiaspl watch``: this machine alone, read-only, and nothing but the report."""

import http.client
import json
import socket
import threading

import pytest

from debiaspl.recipes import RECIPES
from debiaspl.report.pages import serve
from debiaspl.report.runs import WatchServer
from debiaspl.training import RunError
from tests.report.test_runs import LOG, begun


@pytest.fixture
def server(tmp_path):
    folder = begun(tmp_path / "run", LOG[:2])
    (tmp_path / "secret.txt").write_text("nobody may read this")
    with WatchServer(folder, RECIPES) as served:
        thread = threading.Thread(target=served.serve_forever, args=(0.02,))
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def ask(served: WatchServer, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """With the token."""
    return ask_without(served, f"/{served.token}{path}", method, **headers)


def ask_without(
    served: WatchServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", served.server_address[1], timeout=20)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def test_it_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.port}/{server.token}/"
    assert len(server.token) >= 24


@pytest.mark.parametrize("path", ["/", "/values.json", "/x/values.json", "//values.json", "/favicon.ico"])
def test_nothing_is_answered_without_the_token(server, path):
    """Other users of this machine can reach the port as well."""
    status, body, _ = ask_without(server, path)
    assert status == 403
    assert b"step" not in body


def test_another_site_may_not_ask(server):
    assert ask(server, "/", Origin="http://evil.example")[0] == 403


def test_a_connection_that_says_nothing_is_closed(server, monkeypatch):
    monkeypatch.setattr(serve.LocalHandler, "timeout", 0.2)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"GET /")
        assert connection.recv(100) == b""


def test_the_page_and_its_values_follow_the_run(server):
    status, page, headers = ask(server, "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert b'data-live="true"' in page
    status, body, headers = ask(server, "/values.json")
    assert json.loads(body)["runs"][0]["step"] == 20
    assert ask(server, "/values.json", **{"If-None-Match": headers["ETag"]})[:2] == (304, b"")
    with (server.folder / "log.jsonl").open("a") as log:
        log.write(json.dumps(LOG[2]) + "\n")
    status, body, _ = ask(server, "/values.json", **{"If-None-Match": headers["ETag"]})
    assert status == 200
    assert json.loads(body)["runs"][0]["step"] == 30


@pytest.mark.parametrize(
    "path",
    [
        "/config.json",
        "/log.jsonl",
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "//etc/passwd",
        "/values.json/../../secret.txt",
        "/?x=../secret.txt",
        "/http://127.0.0.1/../secret.txt",
    ],
)
def test_no_path_is_served(server, path):
    status, body, _ = ask(server, path)
    assert status == 404
    assert b"nobody may read this" not in body
    assert b"root:" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(server, method):
    before = sorted((path.name, path.stat().st_mtime_ns) for path in server.folder.iterdir())
    assert ask(server, "/", method)[0] == 501
    assert sorted((path.name, path.stat().st_mtime_ns) for path in server.folder.iterdir()) == before


def test_other_host_names_are_refused(server):
    assert ask(server, "/", Host="evil.example:80")[0] == 403
    assert ask(server, "/", Host=f"localhost:{server.server_address[1]}")[0] == 200
    status, body, _ = ask(server, "/", "HEAD")
    assert (status, body) == (200, b"")


def test_a_run_that_breaks_is_told_and_mends(server):
    config = (server.folder / "config.json").read_text()
    (server.folder / "config.json").write_text("{")
    status, body, _ = ask(server, "/values.json")
    assert status == 503
    assert b"damaged" in body
    (server.folder / "config.json").write_text(config)
    assert ask(server, "/values.json")[0] == 200


def test_what_is_no_run_is_not_served(tmp_path):
    with pytest.raises(RunError, match=r"it has no config\.json"):
        WatchServer(tmp_path, RECIPES)
