"""``debiaspl report``: reports of runs."""

from pathlib import Path
from typing import Annotated

from debiaspl.cli.options import OverwriteFiles, argument, option
from debiaspl.cli.terminal import say


def report_command(
    runs: Annotated[list[Path], argument("RUN...", "Folders of runs, or one that holds runs.")],
    out: Annotated[
        Path | None, option("The page to write.", "RUN/report.html; of several runs report.html", metavar="PAGE")
    ] = None,
    images: Annotated[Path | None, option("Folder of the photos, to show some of them.", "no photos")] = None,
    overwrite: OverwriteFiles = False,
) -> None:
    """Write a report of one run, or of several side by side, as one self-contained HTML page."""
    from debiaspl.files import refuse_existing, write_text
    from debiaspl.report.pages import refuse_other_page
    from debiaspl.report.runs import read_run, runs_in, runs_page
    from debiaspl.report.runs.methods import differences, methods_of
    from debiaspl.report.runs.photos import is_of_photos

    page = out or (runs[0] if len(runs) == 1 else Path()) / "report.html"
    if out is not None:
        refuse_existing(page, overwrite)
    else:  # a run writes its report when it ends, and it is written again without asking
        refuse_other_page(page, overwrite)
    found = [read_run(folder) for given in runs for folder in runs_in(given)]
    write_text(page, runs_page(found, images))
    shown = images or len(found) > 1 or not is_of_photos(found[0])
    say(f"The report is {page}{'' if shown else f'; to show photos in it: --images {found[0].recipe.data}'}")
    unfair = differences(methods_of(found))
    if unfair:
        say("warning: these runs differ in more than the method:", err=True)
    for one in unfair:
        say(f"  {one}", err=True)
