"""``debiaspl audit``: how biased are these predictions?"""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

from debiaspl.cli.options import AsJson, OverwriteFiles, argument, columns_of, option
from debiaspl.cli.terminal import print_table, say

MOST_CLASSES, ENDS = 12, 6
"""The table shows up to 12 classes; of more, the six most and the six least predicted."""
ROLES = "label", "truth", "confidence", "file", "probabilities", "logits"


def audit_command(
    source: Annotated[Path, argument("FILE", "A .csv, .jsonl, .npz or .parquet, or the folder of a run.")],
    column: Annotated[
        list[str] | None,
        option(
            f"A column or array of another name; may be repeated. Roles: {', '.join(ROLES)}. Of probabilities "
            "and logits also the beginning of its columns' names.",
            "the usual names",
            metavar="ROLE=NAME",
        ),
    ] = None,
    classes: Annotated[
        str | None, option("How many classes, or their names: 'a,b,c' or a file, one a line.", "those in FILE")
    ] = None,
    strength: Annotated[float, option("Strength of the debiasing that is tried.", min=0)] = 0.5,
    images: Annotated[Path | None, option("Folder of the images, to show them on the page.", "no images")] = None,
    out: Annotated[Path | None, option("Write one self-contained HTML page.", "no page", metavar="PAGE")] = None,
    overwrite: OverwriteFiles = False,
    json_: AsJson = False,
) -> None:
    """Measure how imbalanced any model's predictions are, and what debiasing them would change."""
    from debiaspl.files import refuse_existing, write_text
    from debiaspl.predictions import parse_classes, read_predictions
    from debiaspl.report.audit import audit, audit_page
    from debiaspl.report.audit.findings import findings
    from debiaspl.report.pages import images_in

    if images is not None and not images.is_dir():
        raise ValueError(f"--images is {str(images)!r}, expected the folder that holds the images of the table.")
    if out is not None:
        refuse_existing(out, overwrite, source)
    chosen = None if classes is None else parse_classes(classes)
    found = audit(read_predictions(source, columns_of(column, ROLES), chosen), strength)
    said = findings(found)
    if json_:
        told = [{"fact": one.fact, "todo": one.todo, "chance": one.chance} for one in said]
        # A line for each name: a matrix of a thousand classes, indented, would have a million lines.
        numbers = (found.to_json() | {"findings": told}).items()
        lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in numbers]
        say("{\n" + ",\n".join(lines) + "\n}", as_is=True)
    else:
        _print(found, said)
        if out is None:
            say("Charts and images: --out PAGE")
    if out is not None:
        find = None if images is None else images_in(images)
        write_text(out, audit_page(found, shlex.join(["debiaspl", *sys.argv[1:]]), find))
        say(f"The page is {out}", err=json_)


def _print(found: Any, findings: list[Any]) -> None:
    shares = found.shares
    facts = [
        f"{len(found.predictions):,} predictions of {len(found.classes):,} classes",
        f"{100 * shares.distance:.1f} % off the {shares.reference}",
        f"effective classes {shares.effective_classes:,.1f}",
        f"never predicted {len(shares.never):,}, almost never {shares.almost_none:,}",
    ]
    if found.cells is not None:
        low, high = found.cells.interval
        facts.append(f"accuracy {100 * found.cells.accuracy:.1f} % ({100 * low:.1f} to {100 * high:.1f})")
    say("; ".join(facts) + ".")
    _print_classes(found)
    for number, finding in enumerate(findings, 1):
        say(f"{number}. {finding.fact} {finding.todo}")


def _print_classes(found: Any) -> None:
    """A table of all classes, or of those predicted most and least."""
    columns = {
        "class": [*found.classes],
        "predicted": [f"{count:,}" for count in found.shares.counts],
        "x even": [f"{times:.2f}" for times in found.shares.times_even],
    }
    if found.cells is not None:
        columns["true"] = [f"{count:,}" for count in found.cells.of_true]
        for name, values in (("precision", found.cells.precision), ("recall", found.cells.recall)):
            columns[name] = ["-" if value is None else f"{100 * value:.1f} %" for value in values]
    if found.change is not None:
        columns["debiased"] = [f"{count:,}" for count in found.change.shares.counts]
    rows = list(zip(*columns.values(), strict=True))
    order = (-found.shares.counts).argsort(kind="stable").tolist()
    shown = [rows[number] for number in order]
    if len(shown) > MOST_CLASSES:
        shown = [*shown[:ENDS], (f"({len(order) - 2 * ENDS:,} more)",), *shown[-ENDS:]]
    print_table(columns, shown, numbers=True)
