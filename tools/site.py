"""Links of the pages that lead out of docs/, such as ../results/gain: the site has no such pages.

With ``repo_url`` in mkdocs.yml they lead to that repository; without it the path is shown as text. A path that does not
exist is an error. mkdocs calls ``on_page_markdown`` for every page.
"""

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((\.\./[^)#\s]*)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    docs = Path(config["docs_dir"]).resolve()
    here = (docs / page.file.src_uri).parent

    def replaced(match: re.Match[str]) -> str:
        text, target, anchor = match[1], (here / match[2]).resolve(), match[3] or ""
        if target.is_relative_to(docs):
            return match[0]
        if not target.exists():
            raise FileNotFoundError(f"docs/{page.file.src_uri} links to {match[2]}, which does not exist")
        path = target.relative_to(docs.parent).as_posix()
        if config["repo_url"]:
            return f"[{text}]({config['repo_url'].rstrip('/')}/blob/HEAD/{path}{anchor})"
        return f"`{path}`" if text == path else f"{text} (`{path}`)"

    return LINK.sub(replaced, markdown)
