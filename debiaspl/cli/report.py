"""``debiaspl report`` and ``debiaspl watch``: what runs show."""

from pathlib import Path
from typing import Annotated

import typer

from debiaspl.cli.options import Port
from debiaspl.cli.terminal import plain_errors, say


def report_command(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or one that holds runs.")],
    out: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="RUN/report.html unless given; ./report.html for several.")
    ] = None,
) -> None:
    """Write the report of a run, or of several beside each other, as one self-contained page."""
    with plain_errors():
        from debiaspl.files import refuse_missing_folder, write_text
        from debiaspl.recipes import RECIPES
        from debiaspl.report.pages import refuse_replacing
        from debiaspl.report.runs import read_run, runs_in, runs_page
        from debiaspl.report.runs.fairness import differences
        from debiaspl.report.runs.methods import methods_of

        if out is not None:
            refuse_missing_folder(out)
        page = out or (runs[0] if len(runs) == 1 else Path()) / "report.html"
        refuse_replacing(page)
        found = [read_run(folder) for given in runs for folder in runs_in(given)]
        write_text(page, runs_page(found, RECIPES))
        say(f"The report is {page}")
        unfair = differences(methods_of(found))
        if unfair:
            say("warning: these runs differ in more than the method:", err=True)
        for one in unfair:
            say(f"  {one}", err=True)


def watch_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, going on or ended.")],
    port: Port = 0,
) -> None:
    """Serve the report of a run on this machine (127.0.0.1), following the run while it goes on."""
    with plain_errors():
        from debiaspl.recipes import RECIPES
        from debiaspl.report.runs import WatchServer
        from debiaspl.training import RunError

        try:
            server = WatchServer(run, RECIPES, port)
        except OSError as error:
            raise RunError(f"port {port} cannot be used: {error.strerror}. Choose another --port, or none.") from error
        with server:
            try:
                say(f"Watching {run} at {server.url} (Ctrl-C ends it)")
                server.serve_forever()
            except KeyboardInterrupt:
                say("ended", err=True)
