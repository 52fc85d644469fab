"""The documents say what the code does: snippets run, names exist, links resolve, pages are up to date."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgspec
import pytest

from docs.bounds import BOUNDS
from docs.site import anchor
from holdfast.cli.serve_options import limit_names
from holdfast.dialects.exec.explain import explain
from holdfast.dialects.exec.methods import METHODS
from holdfast.protocol.errors import error_of
from holdfast.protocol.sandbox import PermissionEntry, SandboxContext
from holdfast.protocol.shapes import decoded

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "holdfast"

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])
MODULES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
STEP = re.compile(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \|", re.MULTILINE)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


# Pages that are written from the source.


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_the_generated_pages_are_up_to_date() -> None:
    """A table of limits that is older than the limits is worse than none."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )

    assert (done.stderr, done.returncode) == ("", 0)


def test_every_limit_says_what_happens_there() -> None:
    """Whoever adds one decides that, too; and one that has gone is not told any more."""
    assert set(BOUNDS) == set(limit_names())


# The site.


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_the_site_can_be_built_and_needs_no_other_host(tmp_path: Path) -> None:
    """Warnings are errors: dead links, dead anchors, pages in no menu.

    A page that loads from elsewhere is not whole where there is no network.
    """
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    loaded = re.compile(r"<(?:script|img|iframe|source)[^>]*src=\W?https?:|<link[^>]*href=\W?https?:")
    assert len(pages) > 50
    assert [page.name for page in pages if loaded.search(page.read_text(encoding="utf-8"))] == []
    assert list(tmp_path.rglob("*.py")) == []
    # Code has other colours on a dark page: those of a light one cannot be read there.
    texts = {page: page.read_text(encoding="utf-8") for page in pages if page.name != "404.html"}
    for mode in ("light", "dark"):
        link = re.compile(rf'id="hljs-{mode}" rel="stylesheet" href="([^"]+)"')
        linked = {page: link.findall(text) for page, text in texts.items()}
        assert [page.name for page, found in linked.items() if len(found) != 1] == []
        assert all((page.parent / found[0]).is_file() for page, found in linked.items())
    assert [page.name for page, text in texts.items() if re.search(r'<span style="', text)] == []


@pytest.mark.parametrize(
    ("title", "name"), [("How it compares", "how-it-compares"), ("1. A first server", "n1-a-first-server")]
)
def test_an_anchor_is_one_that_a_selector_can_name(title: str, name: str) -> None:
    """A script of the theme looks for anchors with a selector, and stops at one that begins with a digit."""
    assert anchor(title, "-") == name


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[x](nowhere.md)", "nowhere.md"),
        ("[x](../SECURITY.md#no-such-thing)", "no-such-thing"),
        ("[x](../src/holdfast/errors.py)", "errors.py"),
    ],
)
def test_the_site_is_not_built_with_a_dead_link(text: str, complaint: str, tmp_path: Path) -> None:
    """If warnings stopped being errors, nobody would notice."""
    for name in ("mkdocs.yml", "README.md", "SECURITY.md", "docs/site.py", "docs/site.css", "docs/site.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "bench/README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "README.md").write_text("")
    (tmp_path / "docs" / "README.md").write_text(text)

    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", tmp_path / "mkdocs.yml"],
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )

    assert done.returncode == 1
    assert complaint in done.stderr


# The architecture.


def test_the_map_of_the_source_has_every_module() -> None:
    """A newcomer looks for a room by this map."""
    mapped = set(re.findall(r"^\| `([\w/]+\.py)` \| \S", text_of("docs/reference/source.md"), re.MULTILINE))

    assert sorted(mapped) == [module for module in MODULES if not module.endswith("__init__.py")]


def test_every_part_in_c_that_the_architecture_names_exists() -> None:
    named = set(re.findall(r"`(?:host/native/)?(\w+\.[ch])`", text_of("ARCHITECTURE.md")))

    assert sorted(named - {path.name for path in (SOURCE / "host" / "native").iterdir()}) == []


def test_every_module_the_architecture_names_exists() -> None:
    """Outside the tree too: a name that leads nowhere costs a reader more than none."""
    named = set(re.findall(r"`([\w/]+\.py)`", text_of("ARCHITECTURE.md")))

    assert sorted(named - set(MODULES)) == []


@cache
def functions(module: str) -> frozenset[str]:
    """The functions of a module, those of classes with their class."""
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inner = [
                member for member in node.body if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            found |= {f"{node.name}.{member.name}" for member in inner}
    return frozenset(found)


STEPS = [
    step
    for page in ("ARCHITECTURE.md", "docs/explanation/more-walks.md")
    for step in STEP.findall(text_of(page))
]


def test_the_architecture_shows_ways() -> None:
    """If the tables changed their form, the next test would look at nothing."""
    assert len(STEPS) > 20


@pytest.mark.parametrize(("module", "function"), STEPS)
def test_every_step_of_a_way_exists(module: str, function: str) -> None:
    """Who follows a request or an output byte must find each function where the page says it is."""
    assert function in functions(module)


RECORDS = sorted(ROOT.glob("docs/decisions/*.md"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_decision_says_where_the_files_are_now_that_it_names(record: Path) -> None:
    """A record is not rewritten, so its head has to say what has moved, or that it no longer counts."""
    head, _, body = record.read_text(encoding="utf-8").partition("\n## Context")
    named = set(re.findall(r"`([\w/]+\.(?:py|c|h))`", body))
    gone = {
        name for name in named if not any((base / name).exists() for base in (ROOT, SOURCE, SOURCE / "host"))
    }

    assert "Superseded by" in head or sorted(name for name in gone if f"`{name}`" not in head) == []


# Links.


def anchors(text: str) -> set[str]:
    """The names by which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_relative_link_resolves(page: Path) -> None:
    """A dead link is found by a reader, at the worst moment, or here."""
    text = page.read_text(encoding="utf-8")
    dead = []
    for link in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            dead.append(link)

    assert dead == []


def test_every_document_can_be_reached_from_the_index() -> None:
    """A page that nothing links to is not read."""
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(index.read_text("utf-8"))
    }

    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs") and page != index}
    assert sorted(pages - linked) == []


# The reference.


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_has_its_section_and_an_example(method: str) -> None:
    """Whoever adds a method writes down how it is used."""
    page = text_of("docs/reference/exec.md")
    section = re.search(rf"^## {method}$(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)

    assert section is not None
    assert f'"method":"{method}"' in section[1]
    assert "Errors: " in section[1]


def test_every_error_is_in_the_reference() -> None:
    """An error without a line leaves its reader to guess whose move it is."""
    tree = ast.parse((SOURCE / "errors.py").read_text(encoding="utf-8"))
    public = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    errors = {node.name for node in public if node.bases and ast.unparse(node.bases[0]) not in {"Enum"}}
    page = text_of("docs/reference/errors.md")

    assert sorted(name for name in errors if f"| `{name}` |" not in page) == []


ERROR = re.compile(r'^(?:S )?(\{(?:"error":\{)?"code":.*\})$', re.MULTILINE)


def shown_errors() -> list[dict[str, object]]:
    """The errors in examples: whole answers, and what stands in their ``error``."""
    found = [json.loads(text) for page in PAGES for text in ERROR.findall(page.read_text(encoding="utf-8"))]
    return [each.get("error", each) for each in found]


def test_there_are_errors_by_example() -> None:
    """If their form changed, the next test would look at nothing.  A line that hides one is in no test."""
    answers = sum(page.read_text(encoding="utf-8").count('"error":{') for page in PAGES)

    assert len(shown_errors()) > answers > 10


@pytest.mark.parametrize("shown", shown_errors(), ids=lambda shown: shown["message"])
def test_every_error_by_example_is_what_the_server_answers(shown: dict[str, object]) -> None:
    """Programs are written from these examples: code, words, kind and facts have to be true."""
    error = error_of(shown["data"])
    assert error is not None
    answered = explain(error)

    assert {"code": answered.code, "message": answered.message, "data": answered.data} == shown


# Policies.


def blocks(text: str, language: str) -> list[str]:
    """All blocks of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def policies() -> list[str]:
    """The examples that are JSON alone, and not a conversation."""
    page = text_of("docs/howto/sandbox-commands.md")
    return [block for block in blocks(page, "json") if not block.startswith(("C ", "S "))]


def test_there_are_policies_by_example() -> None:
    """If their form changed, the next test would look at nothing."""
    assert len(policies()) > 3


@pytest.mark.parametrize("text", policies())
def test_every_policy_of_the_guide_is_understood(text: str) -> None:
    """They are there to be copied, by somebody whose next command relies on them."""
    value = json.loads(text)

    if isinstance(value, dict) and "permissions" in value:
        decoded(value, SandboxContext)
    else:
        for entry in value if isinstance(value, list) else [value]:
            msgspec.convert(entry, PermissionEntry)
