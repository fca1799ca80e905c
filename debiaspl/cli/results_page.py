"""``debiaspl results --page``: all results as one file."""

from pathlib import Path

from debiaspl.cli.terminal import plain_errors, say


def write_page(page: Path, folder: Path | None, protocol: str | None, json_: bool) -> None:
    """An HTML page, or Markdown where the name ends in .md."""
    with plain_errors():
        from debiaspl.files import refuse_missing_folder, write_text
        from debiaspl.recipes.all_results import all_lines, standard_folder
        from debiaspl.recipes.results import home
        from debiaspl.recipes.results_figure import minutes_figure
        from debiaspl.recipes.results_page import page as html_page
        from debiaspl.recipes.results_text import MARK, text
        from debiaspl.report.pages import refuse_replacing
        from debiaspl.training import RunError

        if protocol is not None or json_:
            raise ValueError("--page holds all results; leave out --protocol and --json.")
        as_text = page.suffix == ".md"
        refuse_missing_folder(page)
        if not as_text:
            refuse_replacing(page)
        else:
            _refuse_others(page, MARK)
        places = home() if folder is None else (folder,)
        if folder is not None and not folder.is_dir():
            raise RunError(f"{folder} is not a folder. Expected one with files that benchmarks/gain.py wrote.")
        lines = all_lines(places, standard_folder(places))
        if as_text:
            figure = page.with_suffix(".svg")
            write_text(figure, minutes_figure(lines))
            write_text(page, text(lines, figure.name))
        else:
            write_text(page, html_page(lines))
        say(f"The page is {page}: {sum(bool(line.accuracy) for line in lines)} measured rows of {len(lines)}.")


def _refuse_others(page: Path, mark: str) -> None:
    """Raise where the Markdown, or the figure beside it, would take the place of somebody's own file."""
    from debiaspl.files import FileError

    if page.is_dir():
        raise FileError(
            f"{page} is a folder, expected the name of a file to be written, such as {page / 'results.md'}."
        )
    own = page.exists() and page.read_bytes().startswith(mark.encode())
    for file in (page, page.with_suffix(".svg")):
        if file.exists() and not own:
            raise FileError(
                f"{file} was not written by debiaspl results, so it is not overwritten. Give another name, or remove "
                "the file."
            )
