"""What MkDocs is told besides ``mkdocs.yml``: pages outside of ``docs``, links to them, the colours of code.

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

CODE_STYLES = {"light": "xcode", "dark": "github-dark"}
"""What Pygments calls the colours of code, by the mode of the page, on whose ground they can be read."""

LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the parts of the navigation that are lists of files, and choose the names of anchors."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = anchor
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


def anchor(title: str, separator: str) -> str:
    """Return the name of a heading's anchor: that of GitHub, unless it begins with a digit.

    A script of the theme looks for anchors with a selector, in which such a name is an error that stops the
    script, and with it the keys of the site.
    """
    from markdown.extensions.toc import slugify  # type: ignore[import-untyped]

    name: str = slugify(title, separator)
    return f"n{name}" if name[:1].isdigit() else name


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside, and the colours of code."""
    from mkdocs.structure.files import File
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
    from pygments.styles import get_style_by_name  # type: ignore[import-untyped]

    for mode, style in CODE_STYLES.items():
        rules = HtmlFormatter(style=get_style_by_name(style)).get_style_defs(".codehilite")
        files.append(File.generated(config, f"code-{mode}.css", content=rules))

    for path, page in PROJECT.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Link the colours of code where the theme expects those of a script that is not used here.

    Its switch between light and dark turns one of the two links off.
    """
    up = "../" * page.url.count("/")
    return with_code_styles(output, up)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    """The same for pages that are no documents."""
    return with_code_styles(output, "/") if template_name.endswith(".html") else output


def with_code_styles(output: str, root: str) -> str:
    """Add the links to a page; ``root`` leads to the first page of the site."""
    links = "".join(
        f'<link id="hljs-{mode}" rel="stylesheet" href="{root}code-{mode}.css">' for mode in CODE_STYLES
    )
    return output.replace("</head>", f"{links}</head>", 1)


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
