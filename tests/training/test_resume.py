"""Stopped, killed, damaged: a run resumes to the same bits, or says why it cannot."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from debiaspl import files
from debiaspl.training import Interrupted, Run, RunError, train
from tests.data.photos import write_folder
from tests.processes import started
from tests.training.tiny import EAGER, TINY, changed, check_resume, outcome
from tests.training.torchrun import logged, wait_for

SLOW = changed(EAGER, "steps=400", "checkpoint_every=20", "log_every=15")


PROGRAM = """
import sys, torch
from debiaspl.training import Interrupted, train
from tests.training.test_resume import SLOW, changed
if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, *settings = sys.argv[1:]
    try:
        train(changed(SLOW, *settings), folder, resume=True, workers=1)
    except Interrupted as stop:
        print(stop)
        sys.exit(128 + stop.signal)
"""


@pytest.fixture
def command(tmp_path):
    """What starts a run in a process of its own: its folder and settings."""
    (tmp_path / "program.py").write_text(PROGRAM)
    return lambda *typed: [sys.executable, str(tmp_path / "program.py"), *map(str, typed)]


def test_an_estimated_target_goes_on_where_it_was(tmp_path):
    check_resume(changed(EAGER, "target=estimated", "count_threshold=0.1"), tmp_path, 7, workers=0)


@pytest.mark.slow
def test_a_run_that_is_stopped_and_killed_resumes_to_the_same_bits(tmp_path, command):
    """Defect 3: signals, and kill -9 of a real process, at several moments of one run; each resumes the one before."""
    folder = tmp_path / "run"
    for step, number in ((45, signal.SIGINT), (105, signal.SIGKILL), (180, signal.SIGTERM)):
        with started(command(folder), stdout=subprocess.PIPE) as process:
            wait_for(lambda step=step: logged(folder) >= step, process, f"step {step}")
            process.send_signal(number)
            said, _ = process.communicate(timeout=60)
        assert not (folder / "results.json").exists()
        if number == signal.SIGKILL:
            continue
        assert process.returncode == 128 + number
        assert "Resume with:" in said
        saved = Run(folder).checkpoint()
        assert saved is not None
        assert f"Stopped and saved at step {saved.step} of 400" in said
    train(SLOW, folder, resume=True)
    train(SLOW, tmp_path / "undisturbed")
    assert outcome(folder) == outcome(tmp_path / "undisturbed")


def test_a_run_of_adamw_resumes_to_the_same_bits(tmp_path):
    adamw = changed(EAGER, "optimizer=adamw", "learning_rate=0.01", "layer_decay=0.7", "clip=0.5", "warm_up=0.2")
    check_resume(adamw, tmp_path, 6)


def test_a_run_killed_before_its_first_checkpoint_says_that_it_starts_again(tmp_path, capsys):
    train(TINY, tmp_path / "run")
    (tmp_path / "run" / "results.json").unlink()
    train(TINY, tmp_path / "run", resume=True)
    assert "checkpoint" not in capsys.readouterr().err
    (tmp_path / "run" / "results.json").unlink()
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    train(TINY, tmp_path / "run", resume=True)
    assert "first checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize("moment", range(7))
def test_a_run_cut_at_any_file_it_writes_resumes_to_the_same_bits(tmp_path, monkeypatch, moment):
    """As if killed between two writes: the nth file never gets its name."""
    train(TINY, tmp_path / "whole")
    writes = iter(range(100))
    original = files.whole.write_whole

    def cut(path, write):
        if next(writes) == moment:
            raise KeyboardInterrupt
        original(path, write)

    monkeypatch.setattr(files.whole, "write_whole", cut)
    with pytest.raises(KeyboardInterrupt):
        train(TINY, tmp_path / "run")
    monkeypatch.undo()
    train(TINY, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_a_finished_run_is_not_repeated(tmp_path):
    first = train(TINY, tmp_path / "run")
    changed_at = (tmp_path / "run" / "results.json").stat().st_mtime_ns
    assert train(TINY, tmp_path / "run", resume=True) == first
    assert (tmp_path / "run" / "results.json").stat().st_mtime_ns == changed_at


def test_an_existing_run_is_not_overwritten(tmp_path):
    train(TINY, tmp_path / "run")
    before = outcome(tmp_path / "run")
    with pytest.raises(RunError, match="already contains"):
        train(TINY, tmp_path / "run")
    assert outcome(tmp_path / "run") == before


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    for place in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(RunError, match="--out"):
            train(TINY, place)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_another_recipe_is_refused_by_name_of_what_differs(tmp_path):
    train(TINY, tmp_path / "run")
    with pytest.raises(RunError, match="learning_rate"):
        train(changed(TINY, "learning_rate=0.1"), tmp_path / "run", resume=True)


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_is_kept(tmp_path):
    """tests/training/test_run_files.py has other damages."""
    train(TINY, tmp_path / "whole")
    train(TINY, tmp_path / "run")
    for name in ("results.json", "model.safetensors"):
        (tmp_path / "run" / name).unlink()
    newest = tmp_path / "run" / "checkpoint" / "step-000000012.safetensors"
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.raises(RunError, match=r"step-000000012.*step 8"):
        train(TINY, tmp_path / "run", resume=True)
    newest.unlink()
    train(TINY, tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path):
    train(TINY, tmp_path / "run")
    train(changed(TINY, "width=8"), tmp_path / "other")
    (tmp_path / "run" / "results.json").unlink()
    source = tmp_path / "other" / "checkpoint" / "step-000000012.safetensors"
    source.replace(tmp_path / "run" / "checkpoint" / "step-000000012.safetensors")
    with pytest.raises(RunError, match="belongs to another recipe"):
        train(TINY, tmp_path / "run", resume=True)


def test_two_processes_do_not_train_in_one_folder(tmp_path):
    run = Run.at(tmp_path / "run", TINY, resume=False)
    with run.begin(TINY), pytest.raises(RunError, match="another process"):
        train(TINY, tmp_path / "run", resume=True)
    train(TINY, tmp_path / "run", resume=True)


@pytest.mark.slow
def test_a_streamed_run_in_a_terminal_saves_on_ctrl_c(tmp_path, command):
    """Ctrl-C reaches the whole process group, the reading workers too."""
    data, folder = write_folder(tmp_path / "photos", per_class=30), tmp_path / "run"
    typed = command(folder, f"data={data}", "stream=true", "image_size=16", "per_class=2")
    with started(typed, stdout=subprocess.PIPE, start_new_session=True) as process:
        wait_for(lambda: logged(folder) >= 15, process, "step 15")
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "Stopped and saved at step" in said


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def forbidden(self, *arguments, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", forbidden)
    with pytest.raises(RunError, match="Permission denied"):
        train(TINY, tmp_path / "locked" / "run")


def test_interrupted_survives_the_way_between_processes():
    import pickle

    copy = pickle.loads(pickle.dumps(Interrupted("words", 15)))
    assert (str(copy), copy.signal) == ("words", 15)
