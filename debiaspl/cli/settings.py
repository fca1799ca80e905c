"""``debiaspl settings``: what can be set, what it is in a recipe, and what it does."""

from typing import Annotated, Any

import typer

from debiaspl.cli.terminal import plain_errors, print_table

WIDEST = 32
"""Columns of a value in the table; a list of operations goes over several lines."""


def settings_command(
    recipe: Annotated[
        str | None, typer.Argument(metavar="RECIPE", help="A recipe, see: debiaspl recipes. The defaults otherwise.")
    ] = None,
    algorithm: Annotated[str | None, typer.Option(metavar="NAME", help="With this algorithm instead.")] = None,
    correction: Annotated[str | None, typer.Option(metavar="NAME", help="With this correction.")] = None,
    network: Annotated[str | None, typer.Option(metavar="NAME", help="With this network.")] = None,
    protocol: Annotated[str | None, typer.Option(metavar="NAME", help="With this protocol.")] = None,
    strong: Annotated[str | None, typer.Option(metavar="NAME", help="With these strong views.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the settings of a recipe and of its parts: value, default and what each does. Change one with --set."""
    named = {
        "protocol": protocol,
        "network": network,
        "algorithm": algorithm,
        "correction": correction,
        "strong": strong,
    }
    with plain_errors():
        from debiaspl.recipes import recipe as find
        from debiaspl.training import Recipe
        from debiaspl.training.settings import settings

        base = Recipe("default") if recipe is None else find(recipe)
        changes = [f"{part}={name}" for part, name in named.items() if name is not None]
        chosen = base.with_settings(changes, load_files=True)
        listed = settings(chosen)
    if json_:
        import json
        from dataclasses import asdict

        typer.echo(json.dumps([asdict(setting) for setting in listed], indent=2))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("setting", "value", "default", "what it does", box=None, pad_edge=False)
    for column in table.columns[1:3]:
        column.max_width = WIDEST
    part = "recipe"
    for setting in listed:
        if setting.part != part:
            part = setting.part
            table.add_row()
            table.add_row(Text(f"{part} {getattr(chosen, part).name}", "bold"))
        value, default = as_typed(setting.value), as_typed(setting.default)
        table.add_row(setting.name, Text(value, "" if value == default else "bold"), Text(default), Text(setting.help))
    print_table(table)


def as_typed(value: Any) -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, tuple | list):
        return ", ".join(map(as_typed, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
