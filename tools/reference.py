"""Pages of the site that are made from the code: settings, algorithms, the command line and Python."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import typer

import debiaspl
from debiaspl.algorithms import ALGORITHMS, HINTED, STARTS
from debiaspl.cli import app
from debiaspl.training import Recipe
from debiaspl.training.parts import PARTS, settings_of
from debiaspl.training.settings import as_text, help_texts, settings

Parts = Mapping[str, Callable[..., Any]]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def about(made: Any, with_module: bool) -> str:
    """The first paragraph of the documentation; of the module's where that names the paper."""
    made = getattr(made, "func", made)
    text = inspect.getdoc(inspect.getmodule(made) if with_module else made)
    return (text or "").partition("\n\n")[0].replace("\n", " ").replace("``", "`")


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def defaults(kind: str, name: str, made: Any, before: set[tuple[str, str]]) -> str:
    """The settings of a part as a table. A setting with the text of an earlier part is named after the table."""
    texts, rows, same = help_texts(made), [], []
    for key, value in settings_of(kind, name).items():
        text = texts.get(key, "")
        if (key, text) in before:
            same.append(f"`{key}` ({as_text(value)})")
        else:
            before.add((key, text))
            rows.append((code(key), code(as_text(value)), text))
    shown = table(("setting", "default", "what it does"), rows) if rows else ""
    if same:
        shown += f"{chr(10) if rows else ''}As above: {', '.join(same)}.\n"
    return shown or "It has no settings.\n"


def catalogue(kind: str, groups: Mapping[str, Parts]) -> Iterator[str]:
    before: set[tuple[str, str]] = set()
    for title, parts in groups.items():
        yield f"## {title}\n"
        for name, made in parts.items():
            text = about(made, kind in ("algorithm", "correction"))
            yield f"### `{name}`\n\n{text}\n\n{defaults(kind, name, made, before)}"


def settings_page() -> str:
    listed = [one for one in settings(Recipe("default")) if one.part == "recipe"]
    rows = [(code(one.name), code(as_text(one.default)), one.help) for one in listed]
    groups = {
        "Protocols (`protocol=`): which images are labeled": ("protocol", PARTS["protocol"]),
        "Networks (`network=`)": ("network", PARTS["network"]),
        "Strong views (`strong=`)": ("strong", PARTS["strong"]),
    }
    return "\n".join(
        [
            "# Settings\n",
            "`--set KEY=VALUE` changes a setting of a recipe, in every command that trains. `debiaspl list settings "
            "RECIPE` prints those of one recipe with its own values. If two parts have a setting of the same name, "
            "write the part before it: `correction.strength`. Settings of [algorithms](algorithms.md) and "
            "[corrections](../corrections.md) have pages of their own.\n",
            "## The recipe\n",
            table(("setting", "default", "what it does"), rows),
            *(part for title, (kind, parts) in groups.items() for part in catalogue(kind, {title: parts})),
        ]
    )


def algorithms_page() -> str:
    groups = {
        "Algorithms that learn from labels and pseudo-labels": ALGORITHMS,
        "Algorithms that need a graph, another model's labels, a teacher, or a network of experts": HINTED,
        "Self-supervised algorithms (`debiaspl train --method`)": STARTS,
    }
    intro = (
        "The name is what `--method` takes, alone or as `ALGORITHM+CORRECTION`. Any of them works with any "
        "[correction](../corrections.md). [Add your own](../add-an-algorithm.md); [what was "
        "measured](../lab/notebook.md#sixteen-algorithms).\n"
    )
    return "\n".join(["# Algorithms\n", intro, *catalogue("algorithm", groups)])


def commands(group: Any, before: str = "debiaspl") -> Iterator[tuple[str, Any]]:
    """Every command with its full name; those of a group one after the other."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before} {name}")
        elif not command.hidden:
            yield f"{before} {name}", command


def command_page() -> str:
    links = "`debiaspl --follow-links COMMAND` also reads links out of a photo folder."
    parts = ["# Command line\n", f"`debiaspl COMMAND --help` prints the same on the terminal. {links}\n"]
    for name, command in commands(typer.main.get_command(app)):
        usage = " ".join([name, *command.collect_usage_pieces(command.make_context(name, [], resilient_parsing=True))])
        about = " ".join((command.help or "").split())
        rows = [option_row(one) for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
        parts += [f"## {name}\n", f"{about}\n", f"    {usage}\n", table(("option", "default", "what it does"), rows)]
    return "\n".join(parts)


def option_row(option: Any) -> tuple[str, str, str]:
    if option.param_type_name == "option":
        name = ", ".join([*option.opts, *option.secondary_opts])
    else:
        name = option.metavar or option.name.upper()
    silent = option.default is None or option.default is False or callable(option.default)
    shown = code("" if silent else as_text(option.default))
    if isinstance(option.show_default, str):  # in words, where the default depends on something
        shown = option.show_default
    return code(name), "required" if option.required else shown, " ".join((option.help or "").split())


def python_page() -> str:
    """The public names; mkdocstrings writes their documentation."""
    names = [
        name
        for name in debiaspl.__all__
        if inspect.isclass(getattr(debiaspl, name)) or inspect.isfunction(getattr(debiaspl, name))
    ]
    return "# Python\n\n" + "\n".join(f"::: {getattr(debiaspl, name).__module__}.{name}" for name in names) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "algorithms.md": algorithms_page,
    "command-line.md": command_page,
    "python.md": python_page,
}
