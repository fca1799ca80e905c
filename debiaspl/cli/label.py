"""``debiaspl label``: label photos in the browser."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from debiaspl.cli import options
from debiaspl.cli.options import Encoder, Features, Photos, Port, RunNetwork, TableColumns, file, option, table_columns
from debiaspl.cli.terminal import say

if TYPE_CHECKING:
    from debiaspl.label import LabelServer


def label_command(
    photos: Photos,
    classes: Annotated[
        str | None, option("Class names: 'owl,heron,\"other, or none\"', or a file, one a line.", "those in --out")
    ] = None,
    out: Annotated[
        Path | None, file("Write answers to this table; answers are added to one that exists.", "PHOTOS/labels.csv")
    ] = None,
    column: TableColumns = None,
    run: Annotated[
        Path | None, option("A run that has ended: show first what it is least sure of.", "no run", metavar="RUN")
    ] = None,
    encoder: Encoder = None,
    features: Features = None,
    network: RunNetwork = None,
    port: Port = 0,
    browser: Annotated[bool, option("Open the page in the browser.", None, "--browser/--no-browser")] = True,
) -> None:
    """Label photos in the browser, on this machine only (127.0.0.1); every answer is saved at once."""
    from debiaspl.data.text import read_class_names
    from debiaspl.encoders import lite0_is_installed
    from debiaspl.encoders.efficientnet import NAME
    from debiaspl.files import refuse_missing_folder
    from debiaspl.label import LabelServer, open_session
    from debiaspl.photos.encoding import FOLDER, about_kept
    from debiaspl.training import RunError

    if run is not None:
        useless = {"--encoder": encoder != "none" and encoder, "--features": features}
        options.refuse_useless(useless, f"--run {run} computes features of its own")
    if out is not None:
        refuse_missing_folder(out)
    named = read_class_names(classes) if classes is not None else None
    if encoder is None and lite0_is_installed():
        encoder = NAME
    chosen, kept = None if run is not None or encoder == "none" else encoder, features or FOLDER
    with open_session(photos, named, out, run, table_columns(column), chosen, kept, network) as session:
        try:
            server = LabelServer(session, port)
        except OSError as error:
            raise RunError(f"port {port} cannot be used: {error.strerror}. Choose another --port.") from error
        with server:
            if chosen is not None:
                say(f"Meanwhile {chosen} encodes the images; features are kept in {kept}, for training too")
            _serve(server, browser)
    if chosen is not None and features is None and kept.exists():
        say(about_kept(kept), err=True)


def _serve(server: "LabelServer", browser: bool) -> None:
    state = server.session.state()
    counts = f"{state['images']:,} images, {state['labeled']:,} labels, {len(server.session.classes):,} classes"
    say(f"{counts}; answers go into {server.session.table.path}")
    for note in state["notes"]:
        say(f"note: {note}", err=True)
    try:
        say(f"Label at {server.url} (Ctrl-C to stop)")
        # Without a screen, Python would start a text browser in this terminal.
        screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if browser and screen:
            import webbrowser

            webbrowser.open(server.url)
        server.serve_forever()
    except KeyboardInterrupt:
        labeled = sum(label is not None for label in server.session.table.answers.values())
        say(f"ended; {labeled:,} labels are in {server.session.table.path}", err=True)
