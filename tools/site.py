"""The documentation as a site, in build/site: python -m tools.site

The pages of docs/, those that are made from the code (settings, algorithms, command line, Python), and links out of
docs/, such as ../results/gain: with ``repo_url`` in mkdocs.yml they lead to that repository; without it the path is
shown as text. A link to nothing is an error.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.marks import ROOT
from tools.reference import PAGES

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((\.\./[^)#\s]*)(#[^)]*)?\)")


def inside(markdown: str, page: Path, docs: Path, repository: str = "") -> str:
    """The text of a page with its links out of docs/ replaced."""

    def replaced(match: re.Match[str]) -> str:
        text, target, anchor = match[1], (page.parent / match[2]).resolve(), match[3] or ""
        if target.is_relative_to(docs):
            return match[0]
        if not target.exists():
            raise FileNotFoundError(f"{page} links to {match[2]}, which does not exist")
        path = target.relative_to(docs.parent).as_posix()
        if repository:
            return f"[{text}]({repository.rstrip('/')}/blob/HEAD/{path}{anchor})"
        return f"`{path}`" if text == path else f"{text} (`{path}`)"

    return LINK.sub(replaced, markdown)


def build(folder: Path) -> None:
    """Write the pages to FOLDER/docs and the site to FOLDER/site."""
    docs, pages, config = ROOT / "docs", folder / "docs", (ROOT / "mkdocs.yml").read_text()
    for made in (pages, folder / "site"):
        shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(docs, pages)
    repository = re.search(r"^repo_url: *(\S+)", config, re.MULTILINE)
    for page in docs.rglob("*.md"):
        text = inside(page.read_text(), page, docs, repository[1] if repository else "")
        (pages / page.relative_to(docs)).write_text(text)
    for name, text_of in PAGES.items():
        (pages / "reference" / name).write_text(text_of())
    (folder / "mkdocs.yml").write_text(config)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=True)


if __name__ == "__main__":
    build(ROOT / "build")
