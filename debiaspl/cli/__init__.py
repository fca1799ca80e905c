"""The command line. Each command imports what it needs itself, so that ``--help`` is fast."""

import os
from collections.abc import Callable
from typing import Annotated

import typer

from debiaspl._processes import rank
from debiaspl.cli.audit import audit_command
from debiaspl.cli.compare import compare_command, demo_command
from debiaspl.cli.data import data_app
from debiaspl.cli.encode import encode_command
from debiaspl.cli.evaluate import evaluate_command
from debiaspl.cli.export import export_command
from debiaspl.cli.label import label_command
from debiaspl.cli.lists import list_command
from debiaspl.cli.next import next_command
from debiaspl.cli.options import flag
from debiaspl.cli.predict import predict_command
from debiaspl.cli.report import report_command
from debiaspl.cli.terminal import break_warnings, fail, say
from debiaspl.cli.train import train_command
from debiaspl.cli.usage import EXAMPLE, PlainCommand, PlainGroup
from debiaspl.cli.zeroshot import zeroshot_command

app = typer.Typer(
    name="debiaspl",
    cls=PlainGroup,
    help="Train image classifiers from a few labels, with debiased pseudo-labels (DebiasPL).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from debiaspl import __version__

        say(__version__)
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    follow_links: Annotated[
        bool, flag("--follow-links", "Also read photos through links that leave their folder.")
    ] = False,
    version: Annotated[bool, flag("--version", "Print the version.", callback=_print_version, is_eager=True)] = False,
) -> None:
    break_warnings()
    if follow_links:
        os.environ["DEBIASPL_FOLLOW_LINKS"] = "1"
    if rank() is not None and context.invoked_subcommand not in ("train", "encode", "predict"):
        fail(f"debiaspl {context.invoked_subcommand} runs in one process. Start it without torchrun.")


GROUPS: dict[str, dict[str, tuple[Callable[..., None], str]]] = {
    "Start here": {
        "demo": (demo_command, "debiaspl demo"),
        "label": (label_command, "debiaspl label photos --classes 'owl,heron'"),
        "train": (train_command, "debiaspl train photos"),
    },
    "Photos": {
        "encode": (encode_command, "debiaspl encode photos --out features --part 1/4"),
        "predict": (predict_command, "debiaspl predict runs/photos photos --out predicted.csv"),
        "evaluate": (evaluate_command, "debiaspl evaluate runs/photos photos --labels truth.csv"),
        "next": (next_command, "debiaspl next runs/photos photos --count 20"),
        "zeroshot": (zeroshot_command, "debiaspl zeroshot photos --classes 'river,forest'"),
        "export": (export_command, "debiaspl export runs/photos model.onnx"),
    },
    "Research": {
        "compare": (compare_command, "debiaspl compare --recipe digits-10 --seeds 3"),
        "list": (list_command, "debiaspl list recipes"),
    },
    "Look": {
        "audit": (audit_command, "debiaspl audit predictions.csv --out audit.html"),
        "report": (report_command, "debiaspl report runs/photos"),
    },
}
"""Title -> name -> the command and an example."""

for _title, _commands in GROUPS.items():
    for _name, (_command, _example) in _commands.items():
        app.command(_name, cls=PlainCommand, rich_help_panel=_title, epilog=EXAMPLE + _example)(_command)
app.add_typer(data_app, rich_help_panel="Look", epilog=f"{EXAMPLE}debiaspl data get cifar10")
