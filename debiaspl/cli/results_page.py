"""``debiaspl results --page``: all results as one file."""

from pathlib import Path

from debiaspl.cli.terminal import plain_errors, say


def write_page(page: Path, folder: Path | None, protocol: str | None, json_: bool) -> None:
    """An HTML page, or Markdown where the name ends in .md."""
    with plain_errors():
        from debiaspl.files import FileError, refuse_missing_folder, write_text
        from debiaspl.recipes import results_page
        from debiaspl.recipes.all_results import all_lines, standard_folder
        from debiaspl.recipes.results import home
        from debiaspl.report.pages import refuse_replacing
        from debiaspl.training import RunError

        if protocol is not None or json_:
            raise ValueError("--page holds all results; leave out --protocol and --json.")
        as_text = page.suffix == ".md"
        refuse_missing_folder(page)
        if not as_text:
            refuse_replacing(page)
        elif page.exists() and not page.read_bytes().startswith(results_page.MARK.encode()):
            raise FileError(
                f"{page} was not written by debiaspl results, so it is not overwritten. Give another name, or remove "
                "the file."
            )
        places = home() if folder is None else (folder,)
        if folder is not None and not folder.is_dir():
            raise RunError(f"{folder} is not a folder. Expected one with files that benchmarks/gain.py wrote.")
        lines = all_lines(places, standard_folder(places))
        write_text(page, results_page.text(lines) if as_text else results_page.page(lines))
        say(f"The page is {page}: {sum(bool(line.accuracy) for line in lines)} measured rows of {len(lines)}.")
