"""Image runs keep their bits through changes of the code: short runs end with weights that were noted down before.

Another processor, or another version of torch, rounds otherwise; so the digests belong to machines, and elsewhere there
is nothing to compare with. To note a machine's down, at a commit that is known to be right:
``python -m tests.training.test_bits``.
"""

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from debiaspl.data import Task, load
from debiaspl.training import Recipe, train
from debiaspl.training.step import Step
from tests.ranks import on_ranks
from tests.training.tiny import EAGER, changed

NOTED = Path(__file__).with_name("bits.json")
RUNS = {
    "fixmatch, Debiaser": changed(EAGER),
    "fixmatch, two views, joint, CLD, alignment": changed(
        EAGER, "joint=true", "views=2", "cld_weight=0.2", "correction=alignment"
    ),
    "flexmatch, logit adjustment": changed(EAGER, "algorithm=flexmatch", "correction=logit-adjustment"),
    "comatch, none": changed(EAGER, "algorithm=comatch", "correction=none"),
    "remixmatch, causal norm": changed(EAGER, "algorithm=remixmatch", "correction=causal-norm"),
    "contrastmatch, averaged teacher": changed(
        EAGER, "algorithm=contrastmatch", "memory=32", "teacher=average", "average_statistics=true"
    ),
    "crest, two generations": changed(EAGER, "algorithm=crest", "generations=2", "adopt_corrected=true"),
    "fixmatch on two ranks": changed(EAGER),
}
TWO_RANKS = "fixmatch on two ranks"


def machine() -> str:
    """The processor, its instructions, torch and its threads: what decides how numbers are rounded."""
    told = Path("/proc/cpuinfo")
    lines = sorted(set(told.read_text().splitlines())) if told.exists() else []
    named = "\n".join(line for line in lines if line.split("\t")[0] in ("cpu family", "model", "stepping", "flags"))
    own = hashlib.sha256(named.encode()).hexdigest()[:12]
    capability, threads = torch.backends.cpu.get_cpu_capability(), torch.get_num_threads()
    return f"{own}, {capability}, torch {torch.__version__}, threads {threads}"


def trained(name: str, folder: Path) -> str:
    """A digest of the weights that a run ends with."""
    if name == TWO_RANKS:
        first, second = on_ranks(2, stepped, RUNS[name])
        assert first == second
        return str(first)
    train(RUNS[name], folder)
    return digest(load_file(folder / "model.safetensors"))


def stepped(recipe: Recipe) -> str:
    """The same on one of several ranks, which are in a group already."""
    whole = load("digits")
    step = Step(recipe, Task.of(whole, recipe.protocol.build("protocol"), recipe.seed), torch.device("cpu"))
    for number in range(recipe.steps):
        step(number)
    return digest(step.finished().state_dict())


def digest(weights: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name, value in sorted(weights.items()):
        found.update(name.encode() + value.numpy().tobytes())
    return found.hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_keeps_its_bits(name, tmp_path):
    noted = json.loads(NOTED.read_text()).get(machine())
    if noted is None:
        pytest.skip("no bits are noted down for this processor and version of torch")
    assert trained(name, tmp_path / "run") == noted[name]


if __name__ == "__main__":
    torch.set_num_threads(1)
    noted = json.loads(NOTED.read_text()) if NOTED.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        noted[machine()] = {name: trained(name, Path(folder) / str(place)) for place, name in enumerate(RUNS)}
    NOTED.write_text(json.dumps(noted, indent=1) + "\n")
