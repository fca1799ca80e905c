"""Commands as classes of typer: help in groups, one form of error, and hints for what people type."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from debiaspl.cli.terminal import fail, plain_errors

EXAMPLE = "Example: "
INDENT = 12
"""Columns of the names in the list of commands."""

OPTIONS = {
    "--seed": "A run takes its seed as a setting: --set seed=1. Several seeds: debiaspl compare --seeds 3.",
    "--epochs": "Training is counted in steps: --set steps=2000.",
    "--steps": "Write it as a setting: --set steps=2000.",
    "--lr": "Write it as a setting: --set learning_rate=0.03.",
    "--batch-size": "Write it as settings: --set labeled_batch=64 --set unlabeled_batch=448.",
    "--data": "Write it as a setting: --set data=FOLDER.",
    "--algorithm": "Write --method NAME. For a list: debiaspl list algorithms.",
    "--follow-links": "Write it before the command: debiaspl --follow-links train photos.",
}
SETTINGS = {
    "lr": "learning_rate",
    "epochs": "steps",
    "batch_size": "labeled_batch and unlabeled_batch",
    "model": "network",
    "class_weight": "correction=ldam-drw, begin=0, beta=0.9999999, max_margin=0 and scale=1: balanced class weights",
}
"""What other libraries call a setting -> ours."""


def checked_settings(settings: list[str] | None) -> list[str] | None:
    """The values of ``--set``; a name from elsewhere is an error that names ours."""
    for text in settings or ():
        key = text.partition("=")[0].strip()
        if key in SETTINGS:
            raise typer.BadParameter(f"there is no setting {key}. Write {SETTINGS[key]}.")
    return settings


def checked_method(name: str | None) -> str | None:
    """The value of ``--method``; papers write FixMatch and DebiasPL."""
    return name if name is None or ":" in name else name.lower()


def _hint(typed: Sequence[str], command: Any, error: str) -> str | None:
    """What was probably meant, where the arguments of this command could not be read."""
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    for argument in typed:
        name = argument.partition("=")[0]
        if name in OPTIONS and name not in known:
            return OPTIONS[name]
    if "extra argument" not in error:
        return None
    if "--classes" in typed and any("," in text for text in typed):
        return "Put class names in quotes: --classes 'rose,petunia'."
    # Not the value of an option.
    files = [Path(text) for before, text in pairwise(typed) if before[:1] != "-" and Path(text).is_file()]
    folders = {file.parent for file in files} - {Path()}
    first = [text for text in typed[:1] if Path(text).is_dir() and Path(text) not in folders]  # a run
    instead = " ".join([command.name, *first, *map(str, folders)])
    return f"Give the folder, not its files: debiaspl {instead}." if len(folders) == 1 else None


class _OneForm:
    """Prints errors in what was typed as all other errors, with a hint."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # that of the class beside it
        for option in params:
            if getattr(option, "is_flag", False) and option.metavar is None:
                option.metavar = ""  # some versions of typer print --json <bool>
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        typed = list(args)
        if sum(argument.partition("=")[0] == "--labels" for argument in typed) > 1:  # only the last one would be read
            fail("--labels is given twice. Expected one table; put their rows into one.")
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]  # as above
        except Exception as error:
            if not hasattr(error, "format_message") or not typed:
                raise  # typer exits, or shows the help
            message = _hint(typed, self, error.format_message()) or error.format_message()
            fail(f"{message}{'' if message[-1] in '.?' else '.'} See: {ctx.command_path} --help", 2)


class PlainCommand(_OneForm, TyperCommand):
    def invoke(self, ctx: Any) -> Any:
        with plain_errors():
            return super().invoke(ctx)


class PlainGroup(_OneForm, TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            fail(f"{error.format_message()} See: {ctx.command_path} --help", 2)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of all commands: in groups, each with an example."""
        if ctx.parent is not None:
            return super().format_help(ctx, formatter)
        lines = [
            *wrap(self.help or "", 80),
            "",
            "Usage: debiaspl COMMAND [OPTIONS], debiaspl COMMAND --help, debiaspl --version",
            "       debiaspl --follow-links COMMAND also reads links out of a photo folder",
        ]
        shown: list[Any] = [command for command in self.commands.values() if not command.hidden]
        for group, commands in groupby(shown, lambda command: command.rich_help_panel):
            lines += ["", typer.style(group, bold=True)]
            for command in commands:
                about = (command.help or "").strip().partition("\n")[0]
                first, *rest = wrap(about, 80 - INDENT)
                lines += [f"  {command.name:<{INDENT - 2}}{first}", *(" " * INDENT + line for line in rest)]
                lines.append(" " * INDENT + typer.style(command.epilog.removeprefix(EXAMPLE), fg="green"))
        formatter.write("\n".join(lines) + "\n")
