"""Several processes under torchrun, as a user starts them: killed, hung, stopped, and gone on with."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from debiaspl.data import load
from debiaspl.deploy import load_model
from debiaspl.training.evaluate import BATCH, evaluate
from debiaspl.training.run import Run
from tests.processes import started
from tests.training.tiny import outcome

SIZES = {"steps": 160, "width": 4, "labeled_batch": 12, "unlabeled_batch": 24, "log_every": 10, "checkpoint_every": 10}
TESTED = {"per_class": 2, "validation": 0.5, "evaluate_every": 80}
SETTINGS = [part for name, value in (SIZES | TESTED).items() for part in ("--set", f"{name}={value}")]
pytestmark = pytest.mark.slow
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
COUNTING = """
import os
from pathlib import Path
from debiaspl.__main__ import main
from debiaspl.training import group

def counted(leave=group._leave):
    leave()
    threads = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    os.write(2, f"threads of gloo: {sum('gloo' in name for name in threads)}\\n".encode())

group._leave = counted
main()
"""
"""The command. When it has left the group, is anybody there of those that talked to the other ranks?"""


def command(
    out: Path, ranks: int, *options: str, restarts: int = 0, program: tuple[str, ...] = ("-m", "debiaspl")
) -> list[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    typed = [*program, "train", "--recipe", "digits-10", *SETTINGS, "--out", str(out), *options]
    return [*run, f"--max-restarts={restarts}", *typed]


def counting(folder: Path) -> tuple[str, ...]:
    (folder / "counting.py").write_text(COUNTING)
    return (str(folder / "counting.py"),)


def ranks_of(torchrun: int) -> list[int]:
    """The processes of the ranks; none while they are being started."""
    children = Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()
    return [int(child) for child in children]


def wait_for(condition: Callable[[], bool], process: "subprocess.Popen[str]", what: str) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert process.poll() is None, f"ended before {what}"
        assert time.monotonic() < deadline, f"not within 90 s: {what}"
        time.sleep(0.02)


def logged(folder: Path) -> int:
    log = Run(folder).log() if folder.exists() else []
    return int(log[-1]["step"]) if log else 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    place = tmp_path_factory.mktemp("undisturbed")
    folder, typed = place / "run", command(place / "run", 2, program=counting(place))
    said = subprocess.run(typed, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    # One that is left when Python ends, and holds a tensor, aborts the process.
    assert said.stderr.count("threads of gloo: 0") == 2, said.stderr
    assert said.stdout.count("accuracy") == 1, "the first rank speaks for all"
    assert json.loads((folder / "results.json").read_text())["timing"]["processes"] == 2
    return folder


def test_ranks_predict_together_what_one_process_predicts(undisturbed):
    """One batch of test images, and one of images to validate with: the second rank has none to predict."""
    test, results = load("digits").test, json.loads((undisturbed / "results.json").read_text())
    assert len(test) <= BATCH
    assert evaluate(load_model(undisturbed).network, test).to_csv() == (undisturbed / "predictions.csv").read_text()
    assert results["validation"]["labels"] == 10
    measured = {record["step"]: record["accuracy"] for record in Run(undisturbed).log() if "accuracy" in record}
    assert list(measured) == [80, 160]
    assert measured[160] == pytest.approx(results["accuracy"], rel=1e-12)


def test_ranks_that_are_killed_are_started_again_and_end_with_the_same_bits(tmp_path, undisturbed):
    folder, chance = tmp_path / "run", random.Random(7)
    with started(command(folder, 2, restarts=2), env=ENVIRONMENT, stderr=subprocess.PIPE) as process:
        for earliest in (30, 80):
            step = earliest + chance.randrange(20)
            wait_for(lambda step=step: logged(folder) >= step, process, f"step {step}")
            before = ranks_of(process.pid)
            os.kill(chance.choice(before), signal.SIGKILL)
            wait_for(lambda before=before: not set(before) & set(ranks_of(process.pid)), process, "the restart")
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert outcome(folder) == outcome(undisturbed)


def test_a_folder_that_is_refused_is_refused_after_a_restart_too(undisturbed):
    """One process, which has no group to ask: the one that once took the folder for its own."""
    again = command(undisturbed, 1, restarts=1)
    said = subprocess.run(again, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert said.returncode != 0
    assert said.stderr.count("already contains a run") == 2
    assert "accuracy" not in said.stdout


def test_a_rank_that_hangs_is_named_and_ends_the_run(tmp_path):
    folder, said = tmp_path / "run", tmp_path / "said"
    with said.open("w") as file, started(command(folder, 2, "--timeout", "3"), env=ENVIRONMENT, stderr=file) as process:
        wait_for(lambda: logged(folder) >= 30, process, "step 30")
        hung = ranks_of(process.pid)[1]
        os.kill(hung, signal.SIGSTOP)
        began = time.monotonic()
        wait_for(lambda: "error on rank 0" in said.read_text(), process, "the error")
        assert 3 <= time.monotonic() - began < 30
        os.kill(hung, signal.SIGCONT)  # torchrun would wait half a minute for it
        process.wait(60)
    assert process.returncode != 0
    pattern = rf"error on rank 0: rank 1 \(process {hung} on .*; last seen at step \d+\) has not answered for 3 s\."
    assert re.search(pattern, said.read_text())
    assert Run(folder).checkpoint() is not None
    assert not (folder / "results.json").exists()


@pytest.mark.slow(seconds=30)
def test_a_run_of_three_is_stopped_and_goes_on_with_fewer(tmp_path):
    folder = tmp_path / "run"
    typed = command(folder, 3, program=counting(tmp_path))
    with started(typed, env=ENVIRONMENT, stderr=subprocess.PIPE) as process:
        wait_for(lambda: logged(folder) >= 40, process, "step 40")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert errors.count("threads of gloo: 0") == 3, errors
    saved = Run(folder).checkpoint()
    assert saved is not None
    assert f"Stopped and saved at step {saved.step} of 160. Resume with: the same torchrun command" in errors
    shutil.copytree(folder, tmp_path / "copy")
    for later, place in ((2, folder), (1, tmp_path / "copy")):
        again = subprocess.run(
            command(place, later, "--resume"), env=ENVIRONMENT, capture_output=True, text=True, timeout=120
        )
        assert again.returncode == 0, again.stderr
        assert [record["step"] for record in Run(place).log()] == list(range(10, 161, 10))
        assert json.loads((place / "results.json").read_text())["timing"]["processes"] == later


def test_a_batch_that_cannot_be_divided_is_refused_by_all(tmp_path):
    """cli/test_torchrun.py has a command that is one process."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "debiaspl"]
    arguments = ["train", "--recipe", "digits-10", "--set", "labeled_batch=9"]
    said = subprocess.run([*run, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert said.returncode != 0
    assert "--set labeled_batch=10." in said.stderr
    assert "error on rank " in said.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="no second CUDA device")
def test_two_gpus_replay_what_they_compute(tmp_path):
    for name, options in (("recorded", []), ("eager", ["--eager"])):
        said = subprocess.run(
            command(tmp_path / name, 2, *options), env=ENVIRONMENT, capture_output=True, text=True, timeout=240
        )
        assert said.returncode == 0, said.stderr
    assert outcome(tmp_path / "recorded") == outcome(tmp_path / "eager")
