"""A checkpoint is proved whole: its tensors, its step and all that it says beside them."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from debiaspl.data.tensor_file import tensor_file
from debiaspl.training import Run, RunError, train
from debiaspl.training.run import Checkpoint, newest_checkpoint, read_checkpoint, save_checkpoint
from tests.training.tiny import TINY

TENSORS = {"weights": torch.arange(6.0), "seen": torch.tensor(3)}
FACTS = {"log_length": 100, "seconds": 1.5, "recipe": {"steps": 60}}


@pytest.fixture
def saved(tmp_path) -> Path:
    return save_checkpoint(tmp_path, Checkpoint(50, TENSORS, FACTS))


def write(path: Path, header: object) -> None:
    path.write_bytes(tensor_file(TENSORS, "debiaspl", json.dumps(header)))


def test_what_was_saved_is_read(saved):
    found = read_checkpoint(saved)
    assert (found.step, dict(found.facts)) == (50, FACTS)
    assert {name: value.tolist() for name, value in found.tensors.items()} == {"weights": [*range(6)], "seen": 3}


def test_a_flipped_bit_is_found_or_changes_nothing(saved):
    content = saved.read_bytes()
    for place in range(0, 8 * len(content), 5):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        saved.write_bytes(bytes(flipped))
        try:
            found = read_checkpoint(saved)
        except RunError:
            continue
        assert (found.step, dict(found.facts)) == (50, FACTS)
        assert all(torch.equal(found.tensors[name], TENSORS[name]) for name in TENSORS)


def test_a_checkpoint_renamed_to_another_step_is_refused(tmp_path, saved):
    saved.rename(tmp_path / "step-000000060.safetensors")
    with pytest.raises(RunError, match="step 50"):
        newest_checkpoint(tmp_path)


@pytest.mark.parametrize("step", [-4, 50.0, "50", True])
def test_a_step_that_is_no_number_of_steps_is_refused(tmp_path, step):
    write(tmp_path / "step-000000050.safetensors", {"format": 2, "step": step, "facts": FACTS})
    with pytest.raises(RunError, match="step"):
        read_checkpoint(tmp_path / "step-000000050.safetensors")


@pytest.mark.parametrize(
    ("step", "changes", "noun"),
    [(12, {"log_length": None}, "log_length"), (12, {"recipe": []}, "recipe"), (13, {}, "only 12")],
)
def test_a_checkpoint_that_is_not_of_its_run_is_refused(tmp_path, step, changes, noun):
    train(TINY, tmp_path)
    found = newest_checkpoint(tmp_path / "checkpoint")
    save_checkpoint(tmp_path / "checkpoint", Checkpoint(step, found.tensors, {**found.facts, **changes}))
    with pytest.raises(RunError, match=noun):
        Run(tmp_path).checkpoint()


def test_the_same_content_is_the_same_bytes(tmp_path):
    written = {save_checkpoint(tmp_path / str(number), Checkpoint(50, TENSORS, FACTS)) for number in range(8)}
    assert len({path.read_bytes() for path in written}) == 1


@pytest.mark.parametrize(
    "header", ["[]", "{}", '{"format": 2}', "[" * 100_000, '{"format": 3, "step": 50, "facts": {}}', None]
)
def test_another_header_is_refused(tmp_path, header):
    """The last one has only lost its digest."""
    path = tmp_path / "step-000000050.safetensors"
    whole = json.dumps({"format": 2, "step": 50, "facts": FACTS})
    path.write_bytes(save(TENSORS, metadata={"debiaspl": header or whole}))
    with pytest.raises(RunError, match="damaged"):
        read_checkpoint(path)
