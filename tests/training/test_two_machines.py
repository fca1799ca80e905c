"""Two hosts with addresses of their own and a link that can be cut, as a user starts a job on two machines.

The hosts are network namespaces: of this machine, but with nothing in common that travels through a network. The second
one has a working directory of its own, and nothing of the run may appear there.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from debiaspl.training import RunError, group
from debiaspl.training.run import Run
from tests.processes import started
from tests.training.tiny import outcome
from tests.training.torchrun import ENVIRONMENT, SETTINGS, logged, ranks_of, wait_for

FIRST, SECOND = "10.99.0.1", "10.99.0.2"
JOIN = 20
"""Seconds that a torchrun waits for the other one."""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@dataclass(frozen=True)
class Hosts:
    names: tuple[str, str]

    def link(self, state: str) -> None:
        ip("-n", self.names[0], "link", "set", "eth0", state)

    def node(self, number: int, folder: Path, *options: str, restarts: int = 0) -> list[str]:
        """What is typed on one of them; docs/cluster.md prints the same, without a limit of the wait for the other."""
        host = ["ip", "netns", "exec", self.names[number]]
        run = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
        meet = ["--rdzv-backend=c10d", f"--rdzv-endpoint={FIRST}:29400", "--rdzv-id=digits"]
        own = [f"--rdzv-conf=is_host={str(number == 0).lower()},join_timeout={JOIN}"]
        own += [f"--local-addr={(FIRST, SECOND)[number]}"]
        typed = ["-m", "debiaspl", "train", "--recipe", "digits-10", *SETTINGS, "--out", str(folder), *options]
        return [*host, *run, *meet, *own, f"--max-restarts={restarts}", *typed]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    if shutil.which("ip") is None:
        pytest.skip("no command ip for two hosts on one machine: apt-get install iproute2")
    names = f"debiaspl-{os.getpid()}-a", f"debiaspl-{os.getpid()}-b"
    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
            for name, address in zip(names, (FIRST, SECOND), strict=True):
                ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
                for interface in ("lo", "eth0"):
                    ip("-n", name, "link", "set", interface, "up")
            # Else torchrun waits a quarter of an hour for the kernel to give a cut link up.
            setting = "echo 3 > /proc/sys/net/ipv4/tcp_retries2"
            ip("netns", "exec", names[1], "sh", "-c", setting)
        except subprocess.CalledProcessError:
            pytest.skip("no right to make network namespaces, for two hosts on one machine")
        yield Hosts(names)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@dataclass(frozen=True)
class Job:
    nodes: tuple["subprocess.Popen[str]", "subprocess.Popen[str]"]
    said: tuple[Path, Path]

    def wait(self, seconds: float) -> tuple[int, int]:
        until = time.monotonic() + seconds
        first, second = (node.wait(max(0.1, until - time.monotonic())) for node in self.nodes)
        return first, second


@contextmanager
def job(hosts: Hosts, place: Path, *options: str, restarts: int = 0) -> Iterator[Job]:
    """Both machines at work, each in a folder of its own; the run is ``run`` in the first one's.

    A restart of one restarts the other. Both need the right to it: which of them sees a dead rank first is chance.
    """
    environment = {**ENVIRONMENT, "GLOO_SOCKET_IFNAME": "eth0"}
    nodes, said = [], (place / "said-first", place / "said-second")
    with ExitStack() as stack:
        for number in (0, 1):
            folder = place / f"machine-{number}"
            folder.mkdir(exist_ok=True)
            file = stack.enter_context(said[number].open("w"))
            typed = hosts.node(number, Path("run"), *options, restarts=restarts)
            nodes.append(stack.enter_context(started(typed, env=environment, cwd=folder, stdout=file, stderr=file)))
        yield Job((nodes[0], nodes[1]), said)


def kill_second(both: Job) -> None:
    os.kill(ranks_of(both.nodes[1].pid)[0], signal.SIGKILL)


@pytest.mark.slow(seconds=50)
def test_a_job_survives_a_killed_rank_and_a_cut_link_and_ends_with_the_bits_of_one_host(tmp_path, hosts, undisturbed):
    run = tmp_path / "machine-0" / "run"
    with job(hosts, tmp_path, "--timeout", "8", "--resume", restarts=1) as cut:
        wait_for(lambda: logged(run) >= 30, cut.nodes[0], "step 30")
        kill_second(cut)
        wait_for(lambda: logged(run) >= 60, cut.nodes[0], "step 60")
        hosts.link("down")
        began = time.monotonic()
        try:
            first, second = cut.wait(30 + 2 * JOIN)
            seconds = time.monotonic() - began
        finally:
            hosts.link("up")
    assert first != 0
    assert second != 0
    assert seconds >= 8
    said = [file.read_text() for file in cut.said]
    # At the beginning of a line: torchrun says it again, in the list that it ends with.
    assert re.search("^error on rank 0: another rank has", said[0], re.MULTILINE)
    # On a busy machine torchrun may miss the other one first, and end the rank before it can say so.
    told = re.findall("^error on rank.*rank has", said[1], re.MULTILINE)
    assert told == ["error on rank 1: another rank has"] or (not told and "RendezvousConnectionError" in said[1])
    assert Run(run).checkpoint() is not None
    assert not (run / "results.json").exists()

    with job(hosts, tmp_path, "--resume") as again:
        assert again.wait(90) == (0, 0), again.said[0].read_text()
    assert outcome(run) == outcome(undisturbed)
    assert not list((tmp_path / "machine-1").iterdir()), "the run is the first machine's alone"


@pytest.mark.slow
def test_a_machine_that_cannot_be_reached_is_told_in_words(monkeypatch):
    # A port that nobody listens at.
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with mock.patch.object(group, "STARTING", 1.0), pytest.raises(RunError) as caught:
        group._connect("gloo", 1.0)
    assert re.match(r"the ranks cannot reach each other \(.*127\.0\.0\.1.*\)\. Each machine", str(caught.value))
    assert "\n" not in str(caught.value)
