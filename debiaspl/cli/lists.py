"""``debiaspl recipes``, ``settings``, ``algorithms`` and ``corrections``: what there is, as tables."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from debiaspl.cli.columns import WIDTH, chosen_by, columns, paragraph
from debiaspl.cli.options import AsJson, Settings
from debiaspl.cli.terminal import filled_table, plain, plain_errors, print_json, print_table, say

if TYPE_CHECKING:
    from debiaspl.training import Recipe

WIDEST = 32
"""Columns of a value in the table of settings; a list of operations goes over several lines."""

NUMBERS = 5, 4, 6
"""Columns of the paper's number, of ours and of the cost, in the list of recipes."""
RECIPES_CAPTION = (
    "paper, ours: top-1 % on the test set; ours is the mean of the folds in results/. cost: time of one run, on an "
    "H200; digits on one core. -: none, or not measured.",
    "A name without an ending has the paper's settings. -fast: the same in less time. -minutes: our own settings. "
    "-pretrain: features without labels, which -start begins with. -margins: the Debiaser's margins and aligned "
    "labels, not the paper's method.",
    "One recipe: debiaspl settings RECIPE. Train it: debiaspl train --recipe RECIPE.",
)
KINDS = (", minutes", ", from a start", ", fast", " without labels")
"""In the descriptions of recipes; their names say the same."""

GROUPS = {
    "ALGORITHMS": "Need labels and images without labels:",
    "HINTED": "Need labels, images, and labels of a graph, of another model or of a trained run:",
    "STARTS": "Need images alone, and learn features without labels (debiaspl pretrain):",
}
ALGORITHMS_CAPTION = (
    "views: weak + strong views that it needs of each unlabeled image; more views take more time. frozen: whether it "
    "works with a frozen encoder.",
    "Settings of one: debiaspl algorithms NAME. Train with it: --set algorithm=NAME.",
)

# The fields of Traits, as the columns are called.
QUESTIONS = {
    "helps_training": "helps training",
    "needs_no_class_distribution": "no class counts",
    "adapts": "adapts",
    "works_on_balanced": "balanced data too",
    "allows_shift": "shift allowed",
}
QUESTIONS_CAPTION = (
    "Yes is an advantage. Helps training: acts during training, not on the finished classifier only. No class counts: "
    "the sizes of the classes need not be known. Adapts: follows the model as it learns. Balanced data too: has an "
    "effect where classes are equally large. Shift allowed: labeled and unlabeled images may be distributed "
    "differently. Settings of one: debiaspl corrections NAME."
)


def recipes_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD...", help="Only recipes whose name or description has these words.", show_default="all"
        ),
    ] = None,
    measured: Annotated[bool, typer.Option("--measured", help="Only recipes that were measured here.")] = False,
    json_: AsJson = False,
) -> None:
    """List the recipes: the experiments of the paper and ours, with their accuracy and cost."""
    with plain_errors():
        from debiaspl.recipes import RECIPES
        from debiaspl.recipes.results import accuracy_by_recipe

        ours = accuracy_by_recipe()
        found = [
            recipe
            for recipe in RECIPES.values()
            if chosen_by(words or (), recipe.name, recipe.about) and (recipe.name in ours or not measured)
        ]
        if not found:
            raise ValueError(f"no recipe has {' and '.join(words or ['results'])} in its name or description.")
    if json_:
        print_json([recipe.to_json() for recipe in found])
        return
    wide = WIDTH - sum(NUMBERS) - 3
    say(
        "\n".join(columns(["recipe and method", "paper", "ours", "cost"], [wide, *NUMBERS], right=(1, 2), gap=1)),
        as_is=True,
    )
    groups: dict[str, list[Recipe]] = {}
    for recipe in found:
        groups.setdefault(recipe.about.rpartition(": ")[0] or recipe.about, []).append(recipe)
    for title, group in groups.items():
        say("")
        say("\n".join(paragraph(title)))
        name = max(len(recipe.name) for recipe in group)
        widths = name, wide - name - 1, *NUMBERS
        for recipe in group:
            say("\n".join(columns(_recipe_cells(recipe, ours), widths, right=(2, 3), gap=1)), as_is=True)
    for note in RECIPES_CAPTION:
        say("")
        say("\n".join(paragraph(note)))


def _recipe_cells(recipe: "Recipe", ours: dict[str, float]) -> list[str]:
    method = recipe.about.rpartition(": ")[2]
    for kind in KINDS:
        method = method.removesuffix(kind)
    paper = "-" if recipe.paper is None else f"{recipe.paper:.1f}"
    own = f"{ours[recipe.name]:.1f}" if recipe.name in ours else "-"
    time, on, _ = recipe.cost.partition(" on ")
    return [recipe.name, method, paper, own, time if on else "-"]


def settings_command(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A recipe, see: debiaspl recipes.", show_default="the defaults"),
    ] = None,
    settings: Settings = None,
    json_: AsJson = False,
) -> None:
    """List the settings of a recipe and of its parts: value, default and what each does.

    Settings of another part: --set algorithm=NAME; the same for correction, network, protocol, strong and beside.
    """
    with plain_errors():
        from debiaspl.recipes import recipe as find
        from debiaspl.training import Recipe
        from debiaspl.training.settings import settings as settings_of

        base = Recipe("default") if recipe is None else find(recipe)
        chosen = base.with_settings(settings or [], load_files=True)
        listed = settings_of(chosen)
    _print_settings(chosen, listed, json_)


def _print_settings(chosen: "Recipe", listed: list[Any], json_: bool) -> None:
    if json_:
        from dataclasses import asdict

        print_json([asdict(setting) for setting in listed])
        return
    table = filled_table(("setting", "value", "default", "what it does"), (), box=None, pad_edge=False)
    for column in table.columns[1:3]:
        column.max_width = WIDEST
    part = "recipe"
    for setting in listed:
        if setting.part != part:
            part = setting.part
            table.add_row()
            table.add_row(plain(f"{part} {getattr(chosen, part).name}", "bold"))
        value, default = as_typed(setting.value), as_typed(setting.default)
        table.add_row(
            setting.name, plain(value, "" if value == default else "bold"), plain(default), plain(setting.help)
        )
    print_table(table)


def as_typed(value: Any) -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, tuple | list):
        return ", ".join(map(as_typed, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _print_part(part: str, name: str, json_: bool) -> None:
    """The settings of one algorithm or correction."""
    with plain_errors():
        from debiaspl.training import Recipe
        from debiaspl.training.settings import settings as settings_of

        chosen = Recipe("default").with_settings([f"{part}={name}"], load_files=True)
        listed = [setting for setting in settings_of(chosen) if setting.part == part]
    _print_settings(chosen, listed, json_)


def algorithms_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="List the settings of this algorithm.", show_default="list algorithms"),
    ] = None,
    json_: AsJson = False,
) -> None:
    """List the algorithms: what each does, its paper and what it needs."""
    if name is not None:
        _print_part("algorithm", name, json_)
        return
    from debiaspl.recipes.algorithm_list import algorithm_list

    found = algorithm_list()
    if json_:
        print_json([row._asdict() for row in found])
        return
    widths = 13, 32, 16, 5, 6
    say("\n".join(columns(("algorithm", "what it does", "paper", "views", "frozen"), widths)), as_is=True)
    for group, title in GROUPS.items():
        say("")
        say("\n".join(paragraph(title)))
        for row in found:
            if row.group == group:
                cells = row.name, row.about, row.paper or "-", row.views, "yes" if row.frozen else "no"
                say("\n".join(columns(cells, widths)), as_is=True)
    for note in ALGORITHMS_CAPTION:
        say("")
        say("\n".join(paragraph(note)))


def corrections_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="List the settings of this correction.", show_default="compare all"),
    ] = None,
    json_: AsJson = False,
) -> None:
    """Compare the corrections: what each needs and what it can do."""
    import inspect
    from dataclasses import asdict

    if name is not None:
        _print_part("correction", name, json_)
        return
    from debiaspl.debias import CORRECTIONS

    declared: list[dict[str, Any]] = [
        {"name": name, "about": (inspect.getdoc(made) or "").partition("\n")[0], "traits": asdict(traits)}
        for name, made in CORRECTIONS.items()
        if (traits := getattr(made, "traits", None)) is not None
    ]
    if json_:
        print_json(declared)
        return
    from rich.box import MINIMAL
    from rich.table import Column
    from rich.text import Text

    yes, no = plain("yes", "green"), plain("no", "red")
    titles = (Text(title.replace(" ", "\n")) for title in QUESTIONS.values())
    headings = [Column("correction"), *(Column(title, justify="center") for title in titles)]
    rows = [
        [correction["name"], *(yes if correction["traits"][field] else no for field in QUESTIONS)]
        for correction in declared
    ]
    print_table(filled_table(headings, rows, box=MINIMAL, pad_edge=False))
    say("\n".join(paragraph(QUESTIONS_CAPTION)))
