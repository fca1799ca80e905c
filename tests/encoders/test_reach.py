"""Whether the hub answers is found out at once; what is kept, offline or behind a proxy is not asked for."""

import socket
import time
from unittest.mock import Mock

import pytest
import torch

pytest.importorskip("transformers")

import huggingface_hub as hub

from debiaspl.encoders import hub as encoders_hub, load_encoder
from debiaspl.encoders.hub import require_hub
from debiaspl.zeroshot.teacher import ClipTeacher


@pytest.fixture
def server():
    """A port of this machine at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """The hub is a port of this machine at which nobody listens, and nothing of it is kept."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    monkeypatch.setattr(hub.constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(encoders_hub, "getproxies", lambda: {"no": "localhost"})
    return port


def test_a_hub_that_cannot_be_reached_is_told_within_seconds(nobody, tmp_path):
    started = time.monotonic()
    for load in (load_encoder, lambda name: ClipTeacher(name, tmp_path, torch.device("cpu"))):
        with pytest.raises(ValueError, match="not cached on this machine"):
            load("some/name")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(("asked", "seconds"), [("", 5), ("2", 5), ("60", 60)])
def test_a_slow_network_gets_the_time_that_is_asked_for(asked, seconds, nobody, monkeypatch):
    waited = []
    monkeypatch.setattr(encoders_hub.socket, "create_connection", lambda _, timeout: waited.append(timeout) or Mock())
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", asked)
    require_hub("some/name")
    assert waited == [seconds]


def test_a_hub_that_answers_or_need_not_be_asked_is_left_to_its_client(nobody, server, tmp_path, monkeypatch):
    def refused():
        with pytest.raises(ConnectionError, match="cannot be reached"):
            require_hub("some/name")

    refused()
    require_hub(str(tmp_path))  # a folder
    require_hub("some/name/more")  # the client knows better what is wrong with it
    with monkeypatch.context() as changed:
        changed.setattr(hub.constants, "HF_HUB_OFFLINE", True)
        require_hub("some/name")
    with monkeypatch.context() as changed:
        changed.setattr(encoders_hub, "getproxies", lambda: {"https": "http://proxy"})
        require_hub("some/name")
    with monkeypatch.context() as changed:
        changed.setattr(hub.constants, "ENDPOINT", f"http://127.0.0.1:{server}/mirror")
        require_hub("some/name")
    kept = tmp_path / "kept" / "models--some--name"
    for file, text in {"refs/main": "a" * 40, f"snapshots/{'a' * 40}/config.json": "{}"}.items():
        (kept / file).parent.mkdir(parents=True)
        (kept / file).write_text(text)
    require_hub("some/name")
    (kept / "refs" / "main").unlink()
    refused()
