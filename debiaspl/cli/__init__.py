"""The command line. Each command imports what it needs itself, so that ``--help`` is fast."""

from typing import Annotated

import typer

from debiaspl._torchrun import rank
from debiaspl.cli.audit import audit_command
from debiaspl.cli.compare import compare_command, demo_command
from debiaspl.cli.data import data_app
from debiaspl.cli.deploy import export_command, next_command, predict_command
from debiaspl.cli.evaluate import evaluate_command
from debiaspl.cli.flags import PlainCommand, PlainGroup
from debiaspl.cli.label import label_command
from debiaspl.cli.lists import algorithms_command, corrections_command, recipes_command, settings_command
from debiaspl.cli.pretrain import pretrain_command
from debiaspl.cli.repeat import repeat_command
from debiaspl.cli.report import report_command, watch_command
from debiaspl.cli.results import results_command
from debiaspl.cli.terminal import break_warnings, plain_errors, say
from debiaspl.cli.train import train_command
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
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    break_warnings()
    if rank() is not None and context.invoked_subcommand not in ("train", "pretrain"):
        with plain_errors():
            raise ValueError(f"debiaspl {context.invoked_subcommand} runs in one process. Start it without torchrun.")


app.command("demo", cls=PlainCommand)(demo_command)
app.command("compare", cls=PlainCommand)(compare_command)
app.command("label", cls=PlainCommand)(label_command)
app.command("pretrain", cls=PlainCommand)(pretrain_command)
app.command("train", cls=PlainCommand)(train_command)
app.command("recipes", cls=PlainCommand)(recipes_command)
app.command("settings", cls=PlainCommand)(settings_command)
app.command("algorithms", cls=PlainCommand)(algorithms_command)
app.command("corrections", cls=PlainCommand)(corrections_command)
app.command("audit", cls=PlainCommand)(audit_command)
app.command("report", cls=PlainCommand)(report_command)
app.command("watch", cls=PlainCommand)(watch_command)
app.command("results", cls=PlainCommand)(results_command)
app.command("repeat", cls=PlainCommand)(repeat_command)
app.command("zeroshot", cls=PlainCommand)(zeroshot_command)
app.command("predict", cls=PlainCommand)(predict_command)
app.command("evaluate", cls=PlainCommand)(evaluate_command)
app.command("export", cls=PlainCommand)(export_command)
app.command("next", cls=PlainCommand)(next_command)
app.add_typer(data_app)
