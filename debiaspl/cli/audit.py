"""``debiaspl audit``: how biased are these predictions?"""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl.cli.terminal import plain_errors

FEW, ENDS = 12, 6
SHOWN = "on the page of --out"
MATRIX = "array, or how its columns begin"


def audit_command(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .csv, .jsonl, .npz or .parquet, or the folder of a run.")
    ],
    truth: Annotated[str | None, typer.Option(metavar="COLUMN", help="The true class; 'truth' unless given.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The predicted class; 'label'.")] = None,
    confidence: Annotated[str | None, typer.Option(metavar="COLUMN", help="Its probability; 'confidence'.")] = None,
    name: Annotated[str | None, typer.Option(metavar="COLUMN", help="The image; 'file_name'.")] = None,
    probabilities: Annotated[str | None, typer.Option(metavar="NAME", help=f"Of every class: {MATRIX}.")] = None,
    logits: Annotated[str | None, typer.Option(metavar="NAME", help=f"Of every class: {MATRIX}.")] = None,
    embeddings: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"{MATRIX.capitalize()}; or a .npy file.")
    ] = None,
    classes: Annotated[str | None, typer.Option(help="How many, or their names: 'a,b,c' or a file of lines.")] = None,
    strength: Annotated[float, typer.Option(min=0, help="Of the correction that is tried.")] = 0.5,
    images: Annotated[Path | None, typer.Option(help="Folder of the images, for small pictures on the page.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write one self-contained HTML page.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")] = False,
) -> None:
    """Show how imbalanced predictions are, of whatever origin, and what debiasing them would change."""
    with plain_errors():
        from debiaspl.files import refuse_missing_folder
        from debiaspl.predictions import Names, parse_classes, read_predictions
        from debiaspl.report.audit import audit
        from debiaspl.report.pages import refuse_replacing

        names = Names(label, truth, confidence, name, probabilities, logits, embeddings)
        _check_images(images)
        if out is not None:
            refuse_missing_folder(out)
            refuse_replacing(out)
        named = None if classes is None else parse_classes(classes)
        found = audit(read_predictions(source, names, named), strength)
        if json_:
            from debiaspl.report.audit.findings import findings

            said = [{"fact": one.fact, "todo": one.todo, "chance": one.chance} for one in findings(found, SHOWN)]
            _print_json(found.to_json() | {"findings": said})
        else:
            _print(found)
        if out is not None:
            _write_page(found, source, images, out)
            typer.echo(f"The page is {out}", err=json_)


def _print_json(numbers: dict[str, Any]) -> None:
    """A line for each name: a matrix of a thousand classes, indented, would have a million lines."""
    import json

    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in numbers.items()]
    typer.echo("{\n" + ",\n".join(lines) + "\n}")


def _check_images(folder: Path | None) -> None:
    if folder is not None and not folder.is_dir():
        raise ValueError(
            f"--images is {str(folder)!r}, expected a folder: file names in the table are looked for in it."
        )


def _write_page(found: Any, source: Path, images: Path | None, out: Path) -> None:
    from debiaspl.files import write_text
    from debiaspl.report.audit import audit_page
    from debiaspl.report.audit.thumbnails import images_in, images_of_run

    find = images_in(images) if images is not None else images_of_run(source) if source.is_dir() else None
    write_text(out, audit_page(found, shlex.join(["debiaspl", *sys.argv[1:]]), find))


def _print(found: Any) -> None:
    from rich.console import Console
    from rich.text import Text

    from debiaspl.report.audit.findings import findings

    console = Console(highlight=False)
    shares = found.shares
    facts = [
        f"{len(found.predictions):,} predictions of {len(found.classes):,} classes",
        f"imbalance ratio {shares.imbalance_ratio:,.1f}",
        f"effective classes {shares.effective_classes:,.1f}",
        f"never predicted {len(shares.never):,}",
    ]
    if found.agreement is not None:
        low, high = found.agreement.interval
        facts.append(f"accuracy {100 * found.agreement.accuracy:.1f} % ({100 * low:.1f} to {100 * high:.1f})")
    console.print(Text(_printable("; ".join(facts) + ".")))
    console.print(_class_table(found))
    for number, finding in enumerate(findings(found, SHOWN), 1):
        console.print(Text(_printable(f"{number}. {finding.fact} {finding.todo}")))


def _class_table(found: Any) -> Any:
    """Few classes whole; of many, those predicted most and least."""
    from rich.table import Table
    from rich.text import Text

    columns = ["class", "predicted", "x even", *(["true", "precision", "recall"] if found.agreement else [])]
    columns += ["debiased"] if found.change else []
    table = Table(*columns, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    order = (-found.shares.counts).argsort(kind="stable").tolist()
    shown = order if len(order) <= FEW else [*order[:ENDS], None, *order[-ENDS:]]
    for number in shown:
        if number is None:
            table.add_row(f"({len(order) - 2 * ENDS:,} more)")
        else:
            table.add_row(Text(_printable(found.classes[number])), *_cells(found, number))
    return table


def _cells(found: Any, number: int) -> list[str]:
    cells = [f"{found.shares.counts[number]:,}", f"{found.shares.times_even[number]:.2f}"]
    if found.agreement is not None:
        cells.append(f"{found.agreement.cells.of_true[number]:,}")
        for value in (found.agreement.precision[number], found.agreement.recall[number]):
            cells.append("-" if value is None else f"{100 * value:.1f} %")
    if found.change is not None:
        cells.append(f"{found.change.shares.counts[number]:,}")
    return cells


def _printable(text: str) -> str:
    """Names come from strangers: what would move the cursor or cannot be encoded is shown as a mark."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
