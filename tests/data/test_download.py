"""Sets are fetched from a server on this machine that can do what servers do wrong."""

import hashlib
import io
import random
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debiaspl.cli.data import data_app
from debiaspl.data.formats import Source
from debiaspl.data.known import SETS, find, get
from debiaspl.data.text import DataError

CONTENT = random.Random(0).randbytes(300_000)


@dataclass
class Site:
    """What the server holds and how it behaves."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: int | None = None
    """So many bytes are sent before the connection ends."""
    status: int = 0
    stall: float = 0.0
    asked: int = 0
    """The number of requests."""

    def source(self, name: str, content: bytes | None = None) -> Source:
        body = self.files[name] if content is None else content
        return Source(f"{self.address}/{name}", hashlib.md5(body, usedforsecurity=False).hexdigest())


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site, name = self.site, self.path.lstrip("/")
        site.asked += 1
        if site.status or name not in site.files:
            return self.send_error(site.status or 404)
        body = site.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: site.cut_after])
        if site.stall:
            self.wfile.flush()
            time.sleep(site.stall)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def site(monkeypatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site()
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


@pytest.mark.parametrize(
    ("behaviour", "noun"),
    [
        ({"cut_after": 100_000}, "100,000 of 300,000 bytes"),
        ({"cut_after": 1000, "stall": 1.0}, "timed out"),
        ({"files": {"archive": b"other"}}, "md5"),
        ({"status": 404}, "404"),
        ({"status": 503}, "503"),
        ({"address": "http://127.0.0.1:9"}, "refused"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_set_that_does_not_arrive_leaves_nothing(site, tmp_path, behaviour, noun, monkeypatch):
    monkeypatch.setattr("debiaspl.data.known.TIMEOUT", 0.3)
    site.files["archive"] = CONTENT
    for name, value in behaviour.items():
        setattr(site, name, value)
    known = replace(SETS["cifar10"], sources=(site.source("archive", CONTENT),))
    with pytest.raises(DataError, match=noun):
        get(known, tmp_path)
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk without room")
def test_a_full_disk(site, tmp_path, monkeypatch):
    site.files["archive"] = CONTENT
    known = replace(SETS["cifar10"], sources=(site.source("archive"),))
    path_open = Path.open
    monkeypatch.setattr(Path, "open", lambda path, mode="r": path_open(Path("/dev/full"), "wb"))
    with pytest.raises(DataError, match=r"No space left on device.* MB are free"):
        get(known, tmp_path)


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
    "content",
    [
        tar_of(HARMLESS, ("set/../../evil", b"x")),
        tar_of(HARMLESS, ("/debiaspl-evil/x", b"x")),
        tar_of(HARMLESS, tar_info("link", tarfile.SYMTYPE, "/tmp"), ("link/evil", b"x")),
        tar_of(HARMLESS, tar_info("hard", tarfile.LNKTYPE, "/etc/passwd")),
        tar_of(HARMLESS, tar_info("pipe", tarfile.FIFOTYPE)),
        zip_of(HARMLESS, ("../evil", b"x")),
        zip_of(HARMLESS, ("/debiaspl-evil/x", b"x")),
    ],
)
def test_harmful_archives_write_nothing_outside(site, tmp_path, content):
    with suppress(DataError):
        fetch_set(site, content, tmp_path / "in" / "root")
    assert set(names(tmp_path)) <= {"in", "root", "EuroSAT", "2750", "a"}
    assert not Path("/debiaspl-evil").exists()


@pytest.mark.parametrize(
    "content",
    [
        tar_of(("set/a", CONTENT))[:-70_000],
        zip_of(("set/a", CONTENT)).replace(CONTENT, CONTENT[::-1]),
        b"<html>not found</html>",
    ],
)
def test_damaged_archives_are_named(site, tmp_path, content):
    with pytest.raises(DataError, match="damaged"):
        fetch_set(site, content, tmp_path / "in" / "root")
    assert set(names(tmp_path)) <= {"in", "root", "EuroSAT"}


def fetch_set(site: Site, content: bytes, root: Path | None) -> Path:
    site.files["archive"] = content
    known = replace(SETS["cifar10"], sources=(site.source("archive"),), inside="set", target="EuroSAT/2750")
    return get(known, root)[0]


@pytest.mark.parametrize("archive", [tar_of, zip_of])
def test_a_fetched_archive_becomes_the_folder_of_the_set(site, tmp_path, archive):
    place = fetch_set(site, archive(HARMLESS, ("set/b/c", b"c")), None)
    assert place == tmp_path / "data" / "EuroSAT" / "2750"
    assert names(tmp_path / "data") == ["2750", "EuroSAT", "a", "b", "c"]
    assert (place / "b" / "c").read_bytes() == b"c"
    assert not (place / "a").stat().st_mode & 0o4022  # not all of the archive's permissions
    with pytest.raises(DataError, match="no folder set"):
        fetch_set(site, archive(("other/a", b"a")), tmp_path)


def test_a_folder_that_is_in_the_way_is_left_alone(site, tmp_path):
    (tmp_path / "EuroSAT" / "2750" / "mine").mkdir(parents=True)
    with pytest.raises(DataError, match=r"2750 exists, but does not contain the set cifar10. Move it away."):
        fetch_set(site, tar_of(HARMLESS), tmp_path)
    assert site.asked == 0


def test_a_set_of_files_is_there_when_the_last_file_is(site, tmp_path):
    files = [source.name for source in SETS["mnist"].sources]
    site.files |= {name: name.encode() * 100 for name in files}
    known, seen = replace(SETS["mnist"], sources=tuple(site.source(name) for name in files)), []
    last = site.files.pop(files[-1])
    with pytest.raises(DataError, match="404"):
        get(known, tmp_path)
    assert find(known, [tmp_path]) is None
    assert names(tmp_path) == []
    site.files[files[-1]] = last
    assert get(known, tmp_path, lambda *told: seen.append(told)) == (tmp_path / "mnist", True)
    assert seen[-1] == (files[-1], len(last), len(last))
    assert (tmp_path / "mnist" / files[-1]).read_bytes() == last
    assert names(tmp_path) == sorted([*files, "mnist"])
    assert get(known, tmp_path) == (tmp_path / "mnist", False)


def test_the_command(site, tmp_path, monkeypatch):
    site.files["archive"] = tar_of(("cifar-10-batches-py/batches.meta", b"x"))
    monkeypatch.setitem(SETS, "cifar10", replace(SETS["cifar10"], sources=(site.source("archive"),)))
    run = CliRunner().invoke
    first, again = (run(data_app, ["get", "cifar10", "--root", str(tmp_path)]) for _ in range(2))
    assert first.output == f"cifar10 is in {tmp_path}/cifar-10-batches-py\n"  # and no progress where nobody looks
    assert again.output == f"cifar10 is already in {tmp_path}/cifar-10-batches-py\n"
    assert site.asked == 1
    assert "nothing to download" in run(data_app, ["get", "digits"]).output
    for name, message in (
        ("cifar11", "no image set named 'cifar11'. Did you mean cifar10?"),
        ("imagenet", "image-net.org"),
    ):
        wrong = run(data_app, ["get", name])
        assert wrong.exit_code == 1
        assert wrong.stderr.startswith("error: ")
        assert message in wrong.stderr


def test_sets_are_found_where_they_are_put():
    assert all(known.target in known.places for known in SETS.values() if known.sources)
