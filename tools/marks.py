"""Generated tables of a page: a line ``<!-- table NAME -->``, an empty line, and the table."""

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent


def filled(page: str, tables: Mapping[str, str]) -> str:
    """The page with each table below the line that names it; a table without such a line is an error."""
    for name, text in tables.items():
        mark = f"<!-- table {name} -->\n\n"
        if page.count(mark) != 1:
            raise ValueError(f"found {page.count(mark)} lines '<!-- table {name} -->', expected one")
        page = re.sub(re.escape(mark) + r"(?:\|.*\n)*\n*", lambda _, new=f"{mark}{text}\n": new, page)
    return page
