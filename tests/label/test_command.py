"""The command: what it prints, what it refuses, and what a kill leaves."""

import signal
import socket
import sys
import threading
import webbrowser
from http.client import HTTPException

import pytest

from debiaspl.label import LabelServer
from tests.label.made import Client, write_photos
from tests.label.process import Labelling
from tests.typed import debiaspl, refused


@pytest.mark.slow
def test_a_kill_at_any_time_loses_nothing_that_was_answered(tmp_path):
    photos, table = write_photos(tmp_path / "photos", 200), tmp_path / "labels.csv"
    acknowledged: list[str] = []
    killed = threading.Event()
    with Labelling(photos, "--classes", 'owl,"a, b"', "--out", str(table), "--encoder", "none") as labelling:
        assert "200 images, 0 labels, 2 classes" in labelling.said
        client = Client(labelling.url)

        def answer() -> None:
            try:
                for number in range(200):
                    before = client.first()["name"]
                    client.answer(number % 2)
                    acknowledged.append(f"{before},{('owl', chr(34) + 'a, b' + chr(34))[number % 2]}")
            except (OSError, HTTPException, ValueError):  # an answer may have been cut anywhere
                if not killed.is_set():
                    raise

        thread = threading.Thread(target=answer)
        thread.start()
        while len(acknowledged) < 25:
            assert thread.is_alive()
            thread.join(0.01)
        said = refused("label", photos, "--classes", "a,b", "--out", table)
        assert "labels.csv is being labelled already" in said
        assert "Traceback" not in said
        killed.set()
        labelling.end(signal.SIGKILL)
        thread.join()
    header, *rows = table.read_text().splitlines()
    assert header == "file_name,label,asked"
    assert all(row.endswith(",random") for row in rows)
    rows = [row.removesuffix(",random") for row in rows]
    assert rows[: len(acknowledged)] == acknowledged
    assert len(rows) <= len(acknowledged) + 1  # the one on its way may have been saved
    assert table.read_text().endswith("\n")
    (tmp_path / ".labels.csv.0123456789abcdef.partial").write_text("what a kill in the middle of writing leaves")
    with Labelling(photos, "--classes", 'owl,"a, b"', "--out", str(table), "--encoder", "none") as again:
        assert f"200 images, {len(rows)} labels, 2 classes" in again.said
        code, errors = again.end(signal.SIGINT)
    assert (code, errors) == (0, f"ended; {len(rows)} labels are in {table}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "photos"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--classes", "owl"], "--classes has one class, 'owl'. Expected two or more"),
        (["--classes", 'a,"b'], "Expected names separated by commas"),
        ([], "does not say which classes there are"),
        (["--classes", "a,b", "--out", "nowhere/labels.csv"], "there is no folder nowhere. Fix the name"),
        (["--classes", "a,b", "--run", "norun"], "norun does not exist. Expected the folder of a run"),
        (["--run", "run", "--encoder", "efficientnet-lite0", "--features", "f"], "leave out --encoder and --features"),
        (["--classes", "a,b", "--out", "bad.csv"], "bad.csv has the columns x, y"),
    ],
)
def test_what_cannot_be_begun_is_one_message(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path / "photos", 2)
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n")
    before = sorted(tmp_path.rglob("*"))
    ran = refused("label", "photos", "--no-browser", "--encoder", "none", *options)
    assert message in ran.replace("\n", " ")
    assert ran.startswith("error: ")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_port_that_is_taken_is_told(tmp_path):
    photos = write_photos(tmp_path / "photos", 2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = debiaspl("label", photos, "--classes", "a,b", "--port", port, "--encoder", "none")
    assert ran.exit_code == 1
    assert f"port {port} cannot be used" in ran.stderr


@pytest.mark.parametrize("screen", [True, False])
def test_the_browser_is_opened_where_there_is_a_screen(tmp_path, monkeypatch, screen):
    def ended(server: LabelServer) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    monkeypatch.setattr(LabelServer, "serve_forever", ended)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0" if screen else "")
    ran = debiaspl("label", write_photos(tmp_path, 2), "--classes", "a,b", "--encoder", "none")
    assert (ran.exit_code, ran.stderr) == (0, f"ended; 0 labels are in {tmp_path / 'labels.csv'}\n")
    assert [url in ran.stdout for url in opened] == [True] * screen
    assert not (tmp_path / "labels.csv").exists()
