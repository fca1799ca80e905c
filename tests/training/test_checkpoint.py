"""A checkpoint is proved whole: its tensors, its step and all that it says beside them."""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from debiaspl.data.tensor_file import tensor_file
from debiaspl.training import Run, RunError, train
from debiaspl.training.checkpoint import Checkpoint, newest, read
from debiaspl.training.checkpoint import save as save_checkpoint
from tests.training.tiny import TINY

TENSORS = {"weights": torch.arange(6.0), "seen": torch.tensor(3)}
FACTS = {"log_length": 100, "seconds": 1.5, "recipe": {"steps": 60}}


@pytest.fixture
def saved(tmp_path) -> Path:
    return save_checkpoint(tmp_path, Checkpoint(50, TENSORS, FACTS))


def write(path: Path, header: object) -> None:
    path.write_bytes(tensor_file(TENSORS, "debiaspl", json.dumps(header)))


def test_what_was_saved_is_read(saved):
    found = read(saved)
    assert (found.step, dict(found.facts)) == (50, FACTS)
    assert {name: value.tolist() for name, value in found.tensors.items()} == {"weights": [*range(6)], "seen": 3}


@pytest.mark.parametrize(("written", "instead"), [(b": 50,", b": 54,"), (b": 100,", b": 104,")])
def test_a_changed_number_in_the_header_is_found(saved, written, instead):
    """One bit makes 54 of 50: the run would go on with other images."""
    content = saved.read_bytes()
    changed = content.replace(written, instead)
    assert changed != content
    saved.write_bytes(changed)
    with pytest.raises(RunError, match="does not match its digest"):
        read(saved)


def test_a_flipped_bit_is_found_or_changes_nothing(saved):
    content = saved.read_bytes()
    for place in range(0, 8 * len(content), 5):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        saved.write_bytes(bytes(flipped))
        try:
            found = read(saved)
        except RunError:
            continue
        assert (found.step, dict(found.facts)) == (50, FACTS)
        assert all(torch.equal(found.tensors[name], TENSORS[name]) for name in TENSORS)


def test_a_checkpoint_renamed_to_another_step_is_refused(tmp_path, saved):
    saved.rename(tmp_path / "step-000000060.safetensors")
    with pytest.raises(
        RunError, match=r"step-000000060\.safetensors contains the checkpoint of step 50.* Delete that file"
    ):
        newest(tmp_path)


@pytest.mark.parametrize("step", [-4, 50.0, "50", None, True])
def test_a_step_that_is_no_number_of_steps_is_refused(tmp_path, step):
    write(tmp_path / "step-000000050.safetensors", {"format": 2, "step": step, "facts": FACTS})
    with pytest.raises(RunError, match=re.escape(f"checkpoint of step {step!r}")):
        read(tmp_path / "step-000000050.safetensors")


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"log_length": None}, "'log_length'"), ({"recipe": []}, "'recipe'"), ({"skipped": 3}, "'skipped'")],
)
def test_facts_of_another_kind_are_refused(tmp_path, changes, message):
    train(TINY, tmp_path)
    found = newest(tmp_path / "checkpoint")
    save_checkpoint(tmp_path / "checkpoint", Checkpoint(found.step, found.tensors, {**found.facts, **changes}))
    with pytest.raises(RunError, match=f"step 12 .* is damaged: it does not say {message}"):
        Run(tmp_path).checkpoint()


def test_a_step_after_the_last_one_is_refused(tmp_path):
    train(TINY, tmp_path)
    found = newest(tmp_path / "checkpoint")
    save_checkpoint(tmp_path / "checkpoint", Checkpoint(13, found.tensors, found.facts))
    with pytest.raises(RunError, match="of step 13, but the run has only 12"):
        Run(tmp_path).checkpoint()


def test_a_checkpoint_of_this_version_without_its_digest_is_refused(tmp_path):
    path = tmp_path / "step-000000050.safetensors"
    path.write_bytes(save(TENSORS, metadata={"debiaspl": json.dumps({"format": 2, "step": 50, "facts": FACTS})}))
    with pytest.raises(RunError, match="digest"):
        read(path)


def test_the_same_content_is_the_same_bytes(tmp_path):
    written = {save_checkpoint(tmp_path / str(number), Checkpoint(50, TENSORS, FACTS)) for number in range(8)}
    assert len({path.read_bytes() for path in written}) == 1


@pytest.mark.parametrize("header", ["[]", "{}", "7", "null", '{"format": 2}', "[" * 100_000, '{"format": 3}'])
def test_a_strange_header_is_refused_in_plain_words(tmp_path, header):
    path = tmp_path / "step-000000050.safetensors"
    path.write_bytes(save(TENSORS, metadata={"debiaspl": header}))
    with pytest.raises(RunError, match="damaged"):
        read(path)
