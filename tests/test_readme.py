"""The README's own commands and code, executed; and its numbers, compared with what was measured."""

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DOCS = sorted((ROOT / "docs").glob("*.md"))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
MARGIN = 0.02
COMMANDS = [line for language, text in BLOCKS if language == "bash" for line in text.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_code_runs_as_printed(number, tmp_path):
    subprocess.run([sys.executable, "-W", "error", "-c", PYTHON[number]], check=True, cwd=tmp_path)


def test_the_two_commands_are_printed():
    assert {"make demo", "make check", "make test"} <= set(COMMANDS)


@pytest.mark.slow(seconds=90)
def test_commands_run_as_printed(tmp_path):
    """`make check` and `make test` are what runs this; `make demo` is followed to the command behind it, in a folder of
    its own. What trains one recipe does so for fewer steps."""
    demo = re.search(r"^demo:.*\n\t\$\(BIN\)/(debiaspl .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert demo is not None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "120"}
    said = {}
    for command in COMMANDS:
        if command not in ("make check", "make test"):
            typed = demo[1] if command == "make demo" else command
            if "debiaspl train" in command:
                typed += " --set steps=60"
            ran = subprocess.run(
                typed, shell=True, check=True, cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE
            )
            said[command] = ran.stdout
    for method in ("supervised", "FixMatch", "DebiasPL"):
        assert method in said["make demo"]
    assert "digits-10" in said["debiaspl recipes"]
    written = json.loads((tmp_path / "runs" / "demo" / "results.json").read_text())
    assert_the_effect(written)


def assert_the_effect(written: dict) -> None:
    """The demo's point, with the margin that any four of the ten recorded seeds keep: other processors round
    otherwise, so that single seeds move by points. The demo's own four have 6.1."""
    recorded = json.loads((ROOT / "results" / "demo-10-seeds" / "results.json").read_text())["methods"]
    pairs = zip(*(recorded[name]["accuracy"]["per_seed"] for name in ("DebiasPL", "FixMatch")), strict=True)
    assert sum(sorted(ours - theirs for ours, theirs in pairs)[:4]) / 4 > MARGIN
    accuracy = {name: numbers["accuracy"]["mean"] for name, numbers in written["methods"].items()}
    assert accuracy["DebiasPL"] > accuracy["FixMatch"] + MARGIN
    assert accuracy["FixMatch"] > accuracy["supervised"]


def test_the_table_is_what_was_measured():
    for folder in ("demo", "demo-10-seeds", "demo-long-tail"):
        measured = json.loads((ROOT / "results" / folder / "results.json").read_text())
        assert (ROOT / "results" / folder / "table.md").read_text() in README
        accuracy = measured["methods"]["DebiasPL"]["accuracy"]
        assert f"| DebiasPL | {100 * accuracy['mean']:.1f} ± {100 * accuracy['deviation']:.1f} |" in README


def test_what_two_processes_bring_is_what_was_measured():
    measured = json.loads((ROOT / "results" / "scaling" / "cpu.json").read_text())
    one, two = (statistics.median(measured["images_per_second"][processes]) for processes in ("1", "2"))
    words = " ".join(README.split())
    assert f"{one:.1f} images/s with one process, {two:.1f} with two, an efficiency of {50 * two / one:.1f} %" in words
    assert two / (2 * one) >= 0.85


def test_the_matrix_is_what_was_measured():
    assert (ROOT / "results" / "digits-matrix" / "table.md").read_text() in (ROOT / "docs" / "add-on.md").read_text()
    measured = json.loads((ROOT / "results" / "digits-matrix" / "results.json").read_text())["algorithms"]
    shown = re.findall(r"^\| (\S+) \| (\S+) \| (\S+) \| ([+-]\d\S*) \|$", README, re.MULTILINE)
    assert len(shown) >= 5
    for name, *numbers in shown:
        cells = measured[name]["corrections"]
        none, debiaser = (100 * cells[key]["accuracy"]["mean"] for key in ("none", "debiaser"))
        assert numbers == [f"{none:.1f}", f"{debiaser:.1f}", f"{debiaser - none:+.1f}"], name


def test_the_speed_is_what_was_measured():
    measured = json.loads((ROOT / "results" / "speed" / "h200.json").read_text())
    page = (ROOT / "docs" / "performance.md").read_text()
    for mode in ("joint", "faithful", "fast"):
        ms, ratio = measured[f"{mode}_ms"], measured[f"{mode}_ratio"]
        assert f"{ms:.1f} ms" in README, mode
        assert f"{ratio} times" in README or f"({ratio}" in README.replace("\n", " "), mode
        assert f"| {ms} |" in page, mode
    assert f"{round(measured['baseline_ms'])} ms" in README


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in DOCS)])
def test_linked_files_exist(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / page).read_text()):
        assert (ROOT / page).parent.joinpath(target).exists(), target
