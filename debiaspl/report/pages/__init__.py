"""Builds one HTML page with its style, script and values inside."""

import base64
import hashlib
import html
import json
import math
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, cast

from debiaspl.files import FileError

SCRIPTS = (
    "kit.js",
    "table.js",
    "charts.js",
    "lines.js",
    "confusion.js",
    "stripes.js",
    "audit.js",
    "audit_change.js",
    "runs.js",
    "runs_training.js",
    "photos.js",
    "next.js",
    "sheet.js",
    "main.js",
)
LONGEST_NAME = 120
MARK = b'<meta name="generator" content="debiaspl">'
"""Near the beginning of every page."""

Value = TypeVar("Value")


def build_page(title: str, values: dict[str, Any]) -> str:
    """The page for these values. It works offline.

    The security policy lets the browser run only this script, by its digest: if the name of a class or a file were ever
    read as HTML, it could still do nothing.
    """
    style, script = _part("style.css"), _script()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
    page = _part("page.html")
    # One pass over the template: what is filled in is never searched for further marks.
    filled = {
        "policy": html.escape(policy),
        "title": html.escape(title.encode(errors="replace").decode()),
        "style": style,
        "script": script,
        "values": embedded(values),
    }
    first, *rest = page.split("{{")
    return first + "".join(filled[name] + text for name, _, text in (part.partition("}}") for part in rest))


def refuse_other_page(out: Path, overwrite: bool) -> None:
    """Raise where a report, which every run writes again, would replace a file that is not a debiaspl page."""
    if not overwrite and out.is_file():
        with out.open("rb") as file:
            beginning = file.read(1000)
        if beginning and MARK not in beginning:
            raise FileError(
                f"{out} exists already and is not a debiaspl page. Use --overwrite to replace it, or choose another "
                "name with --out."
            )


def embedded(values: Any) -> str:
    """JSON for a script element: no character of it can end the element or begin a comment."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def short_name(name: str) -> str:
    """A name, cut if it is long."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def rounded(value: Value) -> Value:
    """Rounded to six digits, to keep the page small. Values that are not finite become None, as JSON has none."""
    if isinstance(value, list):
        return cast(Value, [rounded(item) for item in value])
    if isinstance(value, float):
        return cast(Value, float(f"{value:.6g}") if math.isfinite(value) else None)
    return value


@cache
def _part(name: str) -> str:
    return files("debiaspl.report.pages").joinpath(name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """All scripts inside one function, so that nothing is global."""
    return '"use strict";\n(() => {\n' + "\n".join(_part(name) for name in SCRIPTS) + "\n})();\n"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
