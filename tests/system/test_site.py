"""The site in a real browser: it fits a phone, can be read in both modes, and finds what is searched."""

from __future__ import annotations

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import browser

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.skipif(browser.MISSING, reason=browser.WHY),
    pytest.mark.slow,
    # It builds the site and starts a browser.
    pytest.mark.timeout(300),
]

PALE = Path(browser.__file__).with_name("pale.js").read_text(encoding="utf-8")

TYPED = """new Promise((found) => {
    const input = document.getElementById("mkdocs-search-query");
    const results = document.getElementById("mkdocs-search-results");
    const titles = () => [...results.querySelectorAll("article h3")].map((each) => each.textContent);
    new MutationObserver(() => titles().length && found(titles())).observe(results, {childList: true});
    input.value = "WORD";
    input.dispatchEvent(new KeyboardEvent("keyup"));
})"""
"""Types a word as soon as the page is there, and waits for what is found."""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        check=True,
    )
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield folder, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Tab]:
    with browser.tab(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_fits_and_can_be_read(
    site: tuple[Path, str], tab: browser.Tab, width: int, scheme: str
) -> None:
    """390 pixels are a phone.  What is wider has to be moved from side to side with every line."""
    folder, url = site
    tab.show_as(width=width, scheme=scheme)
    pages = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))

    faults = {}
    for page in pages:
        tab.open(f"{url}/{page}")
        wide, room = tab.ask("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        pale = tab.ask(PALE)
        if wide > room or pale:
            faults[page] = (wide - room, pale)

    assert faults == {}
    assert len(pages) > 50


@pytest.mark.parametrize("word", ["timeout", "sandbox"])
def test_what_is_typed_before_the_index_is_there_is_found(
    site: tuple[Path, str], tab: browser.Tab, word: str
) -> None:
    """The index is made after each page was opened, and nobody waits for that before typing."""
    tab.open(f"{site[1]}/howto/install.html")

    titles = tab.ask(TYPED.replace("WORD", word))

    assert any(word in title.lower() for title in titles)
