"""The site of the documentation: it builds without a warning, and asks for nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools.site import on_page_markdown

ROOT = Path(__file__).parent.parent


@pytest.mark.slow(seconds=30)
def test_it_builds_strictly_and_works_offline(tmp_path):
    pytest.importorskip("material", reason="needs mkdocs-material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    for page in (ROOT / "docs").rglob("*.md"):
        made = tmp_path / "site" / page.relative_to(ROOT / "docs").with_suffix(".html")
        asked = re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"?(https?://[^\s\">]+)", made.read_text())
        assert asked == [], made.name


@pytest.mark.parametrize(
    ("repository", "shown"),
    [
        (None, "gain (`results/gain`)"),
        ("https://git.example/x/", "[gain](https://git.example/x/blob/HEAD/results/gain)"),
    ],
)
def test_links_that_leave_the_pages(repository, shown):
    config = {"docs_dir": str(ROOT / "docs"), "repo_url": repository}
    page = SimpleNamespace(file=SimpleNamespace(src_uri="lab/debiasing.md"))
    assert on_page_markdown("[gain](../../results/gain)", page, config) == shown
    assert on_page_markdown("[data](../data.md)", page, config) == "[data](../data.md)"
    with pytest.raises(FileNotFoundError, match=r"docs/lab/debiasing.md links to ../../results/none"):
        on_page_markdown("[gain](../../results/none)", page, config)
