"""docs/cluster.md: its job files parse, its options and settings exist, its messages are those of the code."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from torch.distributed.run import get_args_parser

from debiaspl.cli import app
from debiaspl.data import open_data
from debiaspl.recipes import recipe as find_recipe
from debiaspl.training import Recipe, RunError
from debiaspl.training.exchange import check_parts
from debiaspl.training.missing import GO_ON, Missing
from debiaspl.training.settings import parse_settings
from tests.data.photos import write_folder
from tests.training.test_two_machines import Hosts

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "cluster.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHELL = [text for language, text in BLOCKS if language == "bash"]
(YAML,) = [text for language, text in BLOCKS if language == "yaml"]
(SHARDS,) = [text for language, text in BLOCKS if language == "python"]
IN_SLURM = [inner for text in SHELL for inner in re.findall(r"bash -c '(.*?)'$", text, re.MULTILINE | re.DOTALL)]
IN_A_POD = [re.sub("^ {14}", "", text, flags=re.MULTILINE) for text in re.findall(r"- \|\n((?: {14}.*\n)+)", YAML)]
TRAIN: Any = typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]  # it is a group


def commands() -> list[str]:
    """Every line of the page that starts a training."""
    scripts = "\n".join([*(text for text in SHELL if "bash -c" not in text), *IN_SLURM, *IN_A_POD])
    lines = scripts.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if "debiaspl train" in line]


def torchrun_options(words: list[str]) -> list[str]:
    """What lies between torchrun and the module that it starts."""
    return words[words.index("torchrun") + 1 : words.index("-m")]


def test_the_page_has_a_command_for_each_place():
    assert len(IN_SLURM) == len(IN_A_POD) == 1
    assert len(commands()) == 7


@pytest.mark.slow
@pytest.mark.parametrize("script", [*SHELL, *IN_SLURM, *IN_A_POD])
def test_shell_can_be_parsed(script):
    said = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("command", commands())
def test_every_option_and_every_setting_exists(command):
    words = shlex.split(command)
    torchrun = get_args_parser().parse_args([*torchrun_options(words), "-m", "debiaspl"])
    assert torchrun.training_script == "debiaspl"
    typed = TRAIN.make_context("train", words[words.index("train") + 1 :], resilient_parsing=False).params
    recipe = parse_settings(find_recipe(typed["recipe"]), typed["settings"] or [])
    assert recipe.labeled_batch % int(torchrun.nproc_per_node) == 0


def test_the_commands_for_two_machines_are_those_that_are_tested():
    printed = [shlex.split(command) for command in commands() if "--rdzv-conf=is_host" in command]
    assert len(printed) == 2
    for number, words in enumerate(printed):
        tested = Hosts(("a", "b")).node(number, Path("run"))
        module = tested.index("-m") + 1
        options = tested[module + 1 : tested.index("-m", module)]
        assert words[0] == "GLOO_SOCKET_IFNAME=eth0"
        same = {"--nnodes", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-conf", "--local-addr"}
        own = {option.partition("=")[0]: option for option in torchrun_options(words)}
        theirs = {option.partition("=")[0]: option for option in options}
        assert own.keys() == theirs.keys()
        assert {name: own[name] for name in same} == {name: theirs[name] for name in same}


def test_what_the_text_names_exists():
    recipe: Recipe = find_recipe("imagenet-1pct")
    for name in re.findall(r"--set (\w+)=", PAGE):
        assert recipe.owner(name) is not None, name
    known = {option for parameter in TRAIN.params for option in parameter.opts}
    known |= set(get_args_parser()._option_string_actions)
    (table,) = re.findall(r"\| setting \| why \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    for cell in re.findall(r"^\| `(--[\w-]+)", table, re.MULTILINE):
        assert cell in known, cell
    (counts,) = re.findall(r"for 64 \+ 320 that is (.*?) \|", table)
    divide = [n for n in range(1, 321) if recipe.labeled_batch % n == recipe.unlabeled_batch % n == 0]
    assert [int(n) for n in re.findall(r"\d+", counts)] == divide


def test_the_job_for_kubernetes_fits_together():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML to read the job")
    service, job = yaml.safe_load_all(YAML)
    pod = job["spec"]["template"]["spec"]
    assert service["kind"] == "Service"
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2
    (container,) = pod["containers"]
    (script,) = container["args"]
    assert script.strip() == IN_A_POD[0].strip()
    assert f"--rdzv-endpoint={job['metadata']['name']}-0.{service['metadata']['name']}:29400" in script
    assert f"--nnodes={job['spec']['completions']}" in script
    assert f"--nproc-per-node={container['resources']['limits']['nvidia.com/gpu']}" in script
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert all(isinstance(variable["value"], str) for variable in container["env"])


def test_messages_are_those_of_the_code():
    assert f"error on rank 1: {Missing(None, 1, 2, 5)._lost()}\n" in PAGE
    assert PAGE.count(GO_ON) == 3
    with pytest.raises(RunError) as caught:
        check_parts(64, 320, 3, 1)
    assert f"error on rank 0: {caught.value}\n" in PAGE


@pytest.mark.slow
def test_the_script_makes_shards_that_can_be_trained_from(tmp_path):
    write_folder(tmp_path / "photos", 6, ("heron", "owl"))
    script = tmp_path / "shards.py"
    script.write_text(SHARDS.replace("10_000", "5"))
    subprocess.run([sys.executable, str(script), str(tmp_path / "photos"), str(tmp_path / "shards")], check=True)
    assert len(list((tmp_path / "shards").iterdir())) == 3
    whole = open_data(str(tmp_path / "shards"), image_size=8)
    assert whole.train.classes == ("heron", "owl")
    assert len(whole.train) + len(whole.test) == 12


def test_linked_files_exist():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
