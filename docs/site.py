"""What MkDocs is told besides ``mkdocs.yml``: pages outside of ``docs``, and links to them.

The README and its neighbours stay where people look for them.  In the site they are
below ``project/``; links from and to them are turned, so that both readers of files
and readers of the site arrive.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

PROJECT = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "bench/README.md": "project/bench.md",
    "LICENSE": "project/license.txt",
}
"""From the root of the repository to the site."""

BACK = {page: path for path, page in PROJECT.items()}

LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the parts of the navigation that are lists of files."""
    folders = {
        "decisions/": sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("decisions/*.md")),
        "project/": [page for page in PROJECT.values() if page.endswith(".md")],
    }
    assert config.nav is not None
    for entry in config.nav:
        for title, content in entry.items():
            if isinstance(content, str) and content in folders:
                entry[title] = folders[content]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside."""
    from mkdocs.structure.files import File

    for path, page in PROJECT.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links that lead from or to pages outside."""
    own = page.file.src_uri
    folder = (ROOT / BACK[own] if own in BACK else DOCS / own).parent

    def turn(link: re.Match[str]) -> str:
        before, target, after = link.groups()
        there = (folder / target).resolve()
        if re.match(r"[a-z]+:", target) or not there.is_relative_to(ROOT):
            return link[0]
        return f"{before}{os.path.relpath(in_site(there), os.path.dirname(own) or '.')}{after}"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(turn, part) for part in parts)


def in_site(path: Path) -> str:
    """The page that a file becomes; a file that becomes none is left for MkDocs to complain of."""
    inside = path.relative_to(ROOT).as_posix()
    return PROJECT.get(inside, inside.removeprefix("docs/"))
