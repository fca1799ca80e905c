"""Commands as a user types them, in this process, and what they leave."""

import csv
import json
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from debiaspl.cli import app


def debiaspl(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def done(*arguments: object) -> str:
    """What a command says that must succeed."""
    ran = debiaspl(*arguments)
    assert ran.exit_code == 0, ran.output
    return ran.output


def refused(*arguments: object) -> str:
    """What a command says that must fail."""
    ran = debiaspl(*arguments)
    assert ran.exit_code == 1, ran.output
    return ran.output


def rows_of(table: Path | str) -> list[dict[str, str]]:
    with open(table, newline="", encoding="utf-8", errors="surrogateescape") as file:
        return list(csv.DictReader(file))


def results_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "results.json").read_text())
