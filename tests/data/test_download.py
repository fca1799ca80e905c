"""Sets are fetched from a server on this machine that can do what servers do wrong."""

import hashlib
import io
import random
import re
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

import pytest
from typer.testing import CliRunner

from debiaspl.cli.data import data_app
from debiaspl.data.download import fetch, get
from debiaspl.data.errors import DataError
from debiaspl.data.formats.archive import read_members, unpack
from debiaspl.data.formats.definition import Source
from debiaspl.data.known import SETS, find

CONTENT = random.Random(0).randbytes(300_000)


@dataclass
class Site:
    """What the server holds and how it behaves."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    knows_range: bool = True
    shifted: int = 0
    """A server that begins elsewhere than asked."""
    cut_after: list[int] = field(default_factory=list)
    """So many bytes are sent over each of the next connections, which then end."""
    status: int = 0
    stall: float = 0.0
    asked: list[str | None] = field(default_factory=list)
    """The Range of each request."""

    def source(self, name: str, content: bytes | None = None) -> Source:
        body = self.files[name] if content is None else content
        return Source(f"{self.address}/{name}", hashlib.md5(body, usedforsecurity=False).hexdigest())


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site, name = self.site, self.path.lstrip("/")
        site.asked.append(self.headers["Range"])
        if site.status or name not in site.files:
            return self.send_error(site.status or 404)
        body = site.files[name]
        start = int(self.headers["Range"][6:-1]) if self.headers["Range"] and site.knows_range else 0
        if start >= len(body):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(body)}")
            return self.end_headers()
        self.send_response(206 if start else 200)
        if start:
            start -= site.shifted
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        end = start + site.cut_after.pop(0) if site.cut_after else len(body)
        self.wfile.write(body[start:end])
        if site.stall:
            self.wfile.flush()
            time.sleep(site.stall)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def site(monkeypatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site(files={"file.bin": CONTENT})
    handler = type("SiteHandler", (Handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        site.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBIASPL_DATA", str(tmp_path / "data"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def test_a_file_is_fetched_once(site, tmp_path):
    target, seen = tmp_path / "new" / "file.bin", []
    assert fetch(site.source("file.bin"), target, lambda *told: seen.append(told))
    assert target.read_bytes() == CONTENT
    assert seen[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert not fetch(site.source("file.bin"), target)
    assert site.asked == [None]
    assert names(tmp_path / "new") == ["file.bin"]


def test_a_connection_that_is_cut_is_taken_up_again(site, tmp_path):
    site.cut_after = [100_000, 50_000]
    fetch(site.source("file.bin"), tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert site.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_connections_that_bring_nothing_more_end_in_an_error_and_the_next_call_goes_on(site, tmp_path):
    site.cut_after = [100_000, 0]
    with pytest.raises(DataError, match=r"stopped after 100,000 bytes: .*file.bin.partial"):
        fetch(site.source("file.bin"), tmp_path / "file.bin")
    assert (tmp_path / "file.bin.partial").read_bytes() == CONTENT[:100_000]
    fetch(site.source("file.bin"), tmp_path / "file.bin")
    assert site.asked[-1] == "bytes=100000-"
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == ["file.bin"]


def test_a_server_that_falls_silent_is_left(site, tmp_path):
    site.cut_after, site.stall = [1000, 0], 1.0
    with pytest.raises(DataError, match=r"stopped after 1,000 bytes: .*timed out"):
        fetch(site.source("file.bin"), tmp_path / "file.bin", timeout=0.1)
    site.cut_after = [0]
    with pytest.raises(DataError, match=r"stopped after 0 bytes: .*timed out"):
        fetch(site.source("file.bin"), tmp_path / "other.bin", timeout=0.1)
    assert names(tmp_path) == ["file.bin.partial"]


@pytest.mark.parametrize(
    ("behaviour", "partial"),
    [
        ({"knows_range": False}, CONTENT[:1000]),
        ({"knows_range": False}, CONTENT + b"more"),
        ({"shifted": 10}, CONTENT[:1000]),
        ({}, CONTENT + b"more"),
        ({}, CONTENT[:-1]),
        ({}, CONTENT),
        ({}, b""),
    ],
    ids=["ignores Range", "ignores Range, too long", "begins elsewhere", "too long", "nearly", "whole", "empty"],
)
def test_a_partial_file_is_completed_or_begun_anew(site, tmp_path, behaviour, partial):
    for name, value in behaviour.items():
        setattr(site, name, value)
    (tmp_path / "file.bin.partial").write_bytes(partial)
    fetch(site.source("file.bin"), tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == ["file.bin"]


def test_wrong_content_is_deleted_and_told(site, tmp_path):
    with pytest.raises(DataError, match=r"md5 \w{32}, expected \w{32}. It was deleted: run the same command again"):
        fetch(site.source("file.bin", b"other"), tmp_path / "file.bin")
    assert names(tmp_path) == []


def test_a_file_that_somebody_put_there_is_checked_and_kept(site, tmp_path):
    (tmp_path / "file.bin").write_bytes(b"mine")
    with pytest.raises(DataError, match=r"file.bin has the md5 \w{32}, expected \w{32}. Move it away"):
        fetch(site.source("file.bin"), tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == b"mine"
    assert site.asked == []


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, r"answered 404 \(Not Found\). If you have file.bin from another source, put it at .*file.bin and run"),
        (503, r"answered 503 \(Service Unavailable\). Try again later"),
    ],
)
def test_answers_that_are_errors_leave_nothing(site, tmp_path, status, message):
    site.status = status
    with pytest.raises(DataError, match=message):
        fetch(site.source("file.bin"), tmp_path / "file.bin")
    assert names(tmp_path) == []


def test_no_network(site, tmp_path):
    nobody = replace(site.source("file.bin"), url="http://127.0.0.1:9/file.bin")
    with pytest.raises(
        DataError, match=r"could not be reached: .*refused. Check the network connection\. If you have file.bin"
    ):
        fetch(nobody, tmp_path / "file.bin")
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk without room")
def test_a_full_disk(site, tmp_path, monkeypatch):
    def full(path: Path) -> BinaryIO:
        path.touch()
        return Path("/dev/full").open("ab")

    monkeypatch.setattr("debiaspl.data.download.open_locked", full)
    with pytest.raises(DataError, match=r"No space left on device. [\d,]+ MB are free: free some space"):
        fetch(site.source("file.bin"), tmp_path / "file.bin")


def test_a_folder_that_cannot_be_written(site, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DataError, match=r"could not write to .*taken: .*Choose another folder with --root"):
        fetch(site.source("file.bin"), tmp_path / "taken" / "file.bin")


def test_two_processes_do_not_write_one_file(site, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / "file.bin.partial").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="another process is writing"):
            fetch(site.source("file.bin"), tmp_path / "file.bin")
        assert (tmp_path / "file.bin.partial").exists()  # the other's, although nothing is in it yet


def tar_of(*members: tuple[str, bytes] | tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size, info.mode = len(member[1]), 0o4777
                tar.addfile(info, io.BytesIO(member[1]))
    return out.getvalue()


def zip_of(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as pack:
        for member in members:
            pack.writestr(*member)
    return out.getvalue()


def tar_info(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


HARMLESS = "set/a", b"a"


@pytest.mark.parametrize(
    "content", [tar_of(HARMLESS, ("set/b/c", b"c")), zip_of(HARMLESS, ("set/b/c", b"c"))], ids=["tar", "zip"]
)
def test_archives_are_unpacked_and_read_in_place(tmp_path, content):
    (tmp_path / "archive").write_bytes(content)
    unpack(tmp_path / "archive", tmp_path / "out")
    assert (tmp_path / "out" / "set" / "b" / "c").read_bytes() == b"c"
    assert not (tmp_path / "out" / "set" / "a").stat().st_mode & 0o4111  # not the archive's permissions
    assert list(read_members(tmp_path / "archive", {"c"})) == [("c", b"c")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tar_of(HARMLESS, ("set/../../evil", b"x")), "'set/../../evil' leads out"),
        (tar_of(HARMLESS, ("/debiaspl-evil/x", b"x")), "'/debiaspl-evil/x' leads out"),
        (tar_of(HARMLESS, ("C:\\evil", b"x")), "leads out"),
        (tar_of(HARMLESS, tar_info("link", tarfile.SYMTYPE, "/tmp"), ("link/evil", b"x")), "'link' is a link"),
        (tar_of(HARMLESS, tar_info("hard", tarfile.LNKTYPE, "set/a")), "'hard' is a link"),
        (tar_of(HARMLESS, tar_info("pipe", tarfile.FIFOTYPE)), "'pipe' is a link or a device"),
        (tar_of(HARMLESS, HARMLESS), "exists"),
        (zip_of(HARMLESS, ("../evil", b"x")), "'../evil' leads out"),
        (zip_of(HARMLESS, ("/debiaspl-evil/x", b"x")), "'/debiaspl-evil/x' leads out"),
        (tar_of(("set/a", CONTENT))[:-70_000], "damaged"),
        (zip_of(("set/a", CONTENT)).replace(CONTENT, CONTENT[::-1]), "damaged"),
        (b"<html>not found</html>", "damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_harmful_and_damaged_archives_write_nothing_outside(site, tmp_path, content, message):
    with pytest.raises(DataError, match=re.escape(message)):
        fetch_set(site, content, tmp_path / "in" / "root")
    # The archive itself has the md5 that was asked for, so it stays; of its content nothing does.
    assert names(tmp_path) == ["archive", "in", "root"]
    assert not Path("/debiaspl-evil").exists()


def fetch_set(site: Site, content: bytes, root: Path | None) -> Path:
    site.files["archive"] = content
    known = replace(SETS["cifar10"], sources=(site.source("archive"),), inside="set", target="EuroSAT/2750")
    return get(known, root).place


@pytest.mark.parametrize("content", [tar_of(HARMLESS), zip_of(HARMLESS)], ids=["tar", "zip"])
def test_a_fetched_archive_becomes_the_folder_of_the_set(site, tmp_path, content):
    place = fetch_set(site, content, None)
    assert place == tmp_path / "data" / "EuroSAT" / "2750"
    assert names(tmp_path / "data") == ["2750", "EuroSAT", "a"]


def test_an_archive_without_the_set_is_told(site, tmp_path):
    with pytest.raises(DataError, match=r"archive contains no folder set, expected the authors' archive"):
        fetch_set(site, tar_of(("other/a", b"a")), tmp_path)


def test_an_archive_that_somebody_put_there_is_unpacked_and_kept(site, tmp_path):
    (tmp_path / "archive").write_bytes(content := tar_of(HARMLESS))
    fetch_set(site, content, tmp_path)
    assert site.asked == []
    assert names(tmp_path) == ["2750", "EuroSAT", "a", "archive"]


def test_a_folder_that_is_in_the_way_is_left_alone(site, tmp_path):
    (tmp_path / "EuroSAT" / "2750" / "mine").mkdir(parents=True)
    with pytest.raises(DataError, match=r"2750 exists, but does not contain the set cifar10. Move it away."):
        fetch_set(site, tar_of(HARMLESS), tmp_path)
    assert site.asked == []


def test_a_set_of_files_is_there_when_the_last_file_is(site, tmp_path):
    files = [source.name for source in SETS["mnist"].sources]
    site.files |= {name: name.encode() * 100 for name in files}
    known = replace(SETS["mnist"], sources=tuple(site.source(name) for name in files))
    last = site.files.pop(files[-1])
    with pytest.raises(DataError, match=f"404.*put it at .*mnist.partial/{files[-1]}"):
        get(known, tmp_path)
    assert find(known, [tmp_path]) is None
    site.files[files[-1]] = last
    assert get(known, tmp_path) == (tmp_path / "mnist", True)
    assert names(tmp_path) == sorted([*files, "mnist"])
    assert len(site.asked) == 5  # the three that had arrived were not asked for again
    assert get(known, tmp_path) == (tmp_path / "mnist", False)


def test_the_command(site, tmp_path, monkeypatch):
    site.files["archive"] = tar_of(("cifar-10-batches-py/batches.meta", b"x"))
    monkeypatch.setitem(SETS, "cifar10", replace(SETS["cifar10"], sources=(site.source("archive"),)))
    run = CliRunner().invoke
    first, again = (run(data_app, ["get", "cifar10", "--root", str(tmp_path)]) for _ in range(2))
    assert first.output == f"cifar10 is in {tmp_path}/cifar-10-batches-py\n"  # and no progress where nobody looks
    assert again.output == f"cifar10 is already in {tmp_path}/cifar-10-batches-py\n"
    assert len(site.asked) == 1
    assert "nothing to download" in run(data_app, ["get", "digits"]).output
    for name, message in (
        ("cifar11", "no image set named 'cifar11'. Did you mean cifar10?"),
        ("imagenet", "image-net.org"),
    ):
        wrong = run(data_app, ["get", name])
        assert wrong.exit_code == 1
        assert wrong.stderr.startswith("error: ")
        assert message in wrong.stderr


@pytest.mark.slow
def test_the_command_line_is_light():
    program = "import sys, debiaspl.cli.data; print('torch' in sys.modules or 'rich.progress' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_the_official_addresses_are_well_formed():
    for known in SETS.values():
        for source in known.sources:
            assert re.fullmatch(r"https?://[\w.-]+/[\w./~-]+", source.url)
            assert re.fullmatch(r"[0-9a-f]{32}", source.md5)
            assert source.name
        if known.sources:
            assert any(known.target == place for place in known.places)
        else:
            assert "https://" in known.elsewhere
