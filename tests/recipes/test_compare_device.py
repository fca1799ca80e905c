"""On which device the runs of a comparison train, and that all of them train on the same."""

import json
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from debiaspl.cli import app
from debiaspl.cli.compare import _for_runs
from debiaspl.recipes import compare as compare_module
from debiaspl.recipes.compare import compare, plan
from debiaspl.recipes.lengths import DIGITS as ONE_LABEL
from debiaspl.training import RunError, parallel
from tests.recipes.test_compare import SMALL


@pytest.mark.parametrize(("gpu", "typed", "device"), [(True, (), "cuda"), (True, ("cpu",), "cpu"), (False, (), "cpu")])
def test_the_runs_are_on_the_chosen_device_or_on_a_gpu_if_there_is_one(gpu, typed, device, tmp_path, monkeypatch):
    jobs = []

    def stop(planned, *rest):
        jobs.extend(planned.jobs(tmp_path).values())
        raise NotImplementedError("no training")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(compare_module, "compare", stop)
    options = [part for one in typed for part in ("--device", one)]
    arguments = ["compare", "--methods", "fixmatch,debiaspl", "--seeds", "1", "--out", str(tmp_path / "out"), *options]
    with pytest.raises(NotImplementedError):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert [job.device for job in jobs] == [device] * 2
    monkeypatch.setattr(parallel, "usable_cores", lambda: 2)
    assert [parallel.at_a_time(jobs, workers) for workers in (None, 2, 9)] == [2 if device == "cpu" else 1, 2, 2]
    monkeypatch.setattr(parallel, "train_as", lambda options, recipe, out: options)
    options = parallel._work(jobs[0])
    assert (options.device, options.shown) == (device, False)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_comparison_on_a_gpu(tmp_path):
    typed = ["compare", "--methods", "fixmatch,debiaspl", "--seeds", "1", "--set", "steps=20", "--device", "cuda"]
    ran = CliRunner().invoke(app, [*typed, "--out", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    runs = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("*-seed0/results.json")]
    assert [run["timing"]["device"] for run in runs] == [torch.cuda.get_device_name()] * 2


@pytest.mark.parametrize(("frozen", "device"), [(True, "cpu"), (False, "cuda")])
def test_what_is_planned_decides_whether_features_are_frozen(frozen, device, monkeypatch):
    """And not the recipe before --set, which may freeze an encoder or train it."""
    planned = plan(ONE_LABEL, ["fixmatch"], ["none"], [0], [])
    monkeypatch.setattr("debiaspl.features.run.is_frozen", lambda recipe: frozen and recipe != ONE_LABEL)
    assert _for_runs(planned, "cuda", None) == device
    if frozen:
        with pytest.raises(ValueError, match=r"--device is cuda, .*Use --device cpu"):
            _for_runs(planned, "cuda", "cuda")


def test_a_comparison_keeps_to_its_device(tmp_path, monkeypatch):
    def stop(*rest):
        raise NotImplementedError("no training")

    monkeypatch.setattr(compare_module, "train_all", stop)
    planned = plan(ONE_LABEL, ["supervised"], ["none"], [0], SMALL)
    for resume in (False, True):
        with pytest.raises(NotImplementedError):
            compare(planned, tmp_path / "out", resume=resume)
    with pytest.raises(RunError, match="Use --device cpu"):
        compare(replace(planned, device="cuda"), tmp_path / "out", resume=True)


def test_a_device_that_is_not_there_is_refused_as_in_train():
    commands = ["compare"], ["train", "--recipe", "digits-10"]
    refused = [CliRunner().invoke(app, [*typed, "--device", "gpu"]) for typed in commands]
    assert {one.exit_code for one in refused} == {1}
    assert len({one.stderr for one in refused}) == 1
