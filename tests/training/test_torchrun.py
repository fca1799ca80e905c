"""Several processes under torchrun, as a user starts them: killed, hung, stopped, and gone on with."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch

from debiaspl.data import load
from debiaspl.deploy import load_model
from debiaspl.training import train
from debiaspl.training.evaluate import BATCH, evaluate
from debiaspl.training.run import Run
from tests import forked
from tests.processes import started
from tests.training.tiny import outcome
from tests.training.torchrun import ENVIRONMENT, command, counting, logged, ranks_of, wait_for

pytestmark = pytest.mark.slow


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
    with started(command(folder, 2, "--resume", restarts=2), env=ENVIRONMENT, stderr=subprocess.PIPE) as process:
        for earliest in (30, 80):
            step = earliest + chance.randrange(20)
            wait_for(lambda step=step: logged(folder) >= step, process, f"step {step}")
            before = ranks_of(process.pid)
            os.kill(chance.choice(before), signal.SIGKILL)
            wait_for(lambda before=before: not set(before) & set(ranks_of(process.pid)), process, "the restart")
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert outcome(folder) == outcome(undisturbed)


def test_a_rank_that_hangs_ends_the_run(tmp_path):
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
    assert "error on rank 0: another rank has not answered for 3 s" in said.read_text()
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
    train(Run(folder).recipe(), tmp_path / "copy", resume=True)  # this process alone
    again = forked.torchrun(command(folder, 2, "--resume"), environment=ENVIRONMENT)
    assert again.returncode == 0, again.stderr
    for later, place in ((2, folder), (1, tmp_path / "copy")):
        assert [record["step"] for record in Run(place).log()] == list(range(10, 161, 10))
        assert json.loads((place / "results.json").read_text())["timing"]["processes"] == later


def test_a_batch_that_cannot_be_divided_is_refused_by_all(tmp_path):
    """cli/test_torchrun.py has a command that is one process."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "debiaspl"]
    arguments = ["train", "--recipe", "digits-10", "--set", "labeled_batch=9"]
    said = forked.torchrun([*run, *arguments], tmp_path, ENVIRONMENT)
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
