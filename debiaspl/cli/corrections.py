"""``debiaspl corrections``: the paper's Table 1, printed from what each correction declares."""

from typing import Annotated, Any

import typer

# The fields of Traits, as the columns are called.
QUESTIONS = {
    "helps_training": "helps training",
    "needs_no_class_distribution": "no class counts",
    "adapts": "adapts",
    "works_on_balanced": "balanced data too",
    "allows_shift": "shift allowed",
}
CAPTION = (
    "Yes is what one would wish for. Helps training: not the finished classifier alone. No class counts: need not be "
    "told how large the classes are. Adapts: follows the model. Balanced data too: has something to mend where classes "
    "are equally large. Shift allowed: labeled and unlabeled images may be distributed differently."
)


def corrections_command(json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Compare the corrections: what each needs and what it can do."""
    declared = declarations()
    if json_:
        import json

        typer.echo(json.dumps(declared, indent=2))
        return
    from rich.box import MINIMAL
    from rich.console import Console
    from rich.table import Table

    table = Table(box=MINIMAL, pad_edge=False, caption=CAPTION, caption_justify="left")
    table.add_column("correction", no_wrap=True)
    for title in QUESTIONS.values():
        table.add_column(title, justify="center")
    for correction in declared:
        answers = ["[green]yes[/]" if correction["traits"][field] else "[red]no[/]" for field in QUESTIONS]
        table.add_row(correction["name"], *answers)
    Console().print(table)


def declarations() -> list[dict[str, Any]]:
    """Every correction that declares traits: its name, what it does in a line, and they."""
    import inspect
    from dataclasses import asdict

    from debiaspl.debias import CORRECTIONS

    declared = []
    for name, made in CORRECTIONS.items():
        traits = getattr(made, "traits", None)
        if traits is not None:
            about = (inspect.getdoc(made) or "").partition("\n")[0]
            declared.append({"name": name, "about": about, "traits": asdict(traits)})
    return declared
