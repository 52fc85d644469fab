"""Writes those parts of the documents, and of the C source, that can be read off the Python source.

``python docs/generate.py`` writes them between their marks, the examples of all pages
too, and the schemas and the C header of messages as whole files; with ``--check`` it
writes nothing and exits 1 if something is not what it would write.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

from holdfast import config
from holdfast.cli.overview import parser_of_all
from holdfast.cli.schema import CATALOGS, WRITERS

if TYPE_CHECKING:
    from docs.bounds import Bound
    from docs.message_tables import Reference

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
SOURCE = Path(config.__file__).resolve().parent

END = "<!-- End of what docs/generate.py writes. -->\n"
PART = re.compile(
    r"(<!-- From here to the next mark: (?:(\S+), )?written by docs/generate\.py\. -->\n).*?"
    + re.escape(END),
    re.DOTALL,
)
"""A part of a page that is written here.  It has a name if the page has several."""

WIDTH = "80"
"""Columns of help texts, whatever terminal this runs in."""

NOTES = {
    "EngineLimits": "Per server, or per process where the text says so.",
    "EnvironmentLimits": "Per request.",
    "SandboxLimits": "Per request.",
    "HttpLimits": "Per server, or per connection or request where the text says so.",
    "ConnectionLimits": "Per connection, unless the text says otherwise.",
}


# Limits.


def limits() -> str:
    """The tables of limits."""
    sys.path.insert(0, str(ROOT))  # This is run as a program, which knows its own folder only.
    from docs.bounds import BOUNDS

    texts = {name: (docstring, reasons) for name, docstring, reasons in limit_classes()}
    parts = []
    for part, kind in get_type_hints(config.ServerLimits).items():
        docstring, reasons = texts[kind.__name__]
        parts.append(f"## {part}\n")
        parts.append(f"`{kind.__name__}`: {docstring} {NOTES.get(kind.__name__, '')}".strip() + "\n")
        rows = ["| limit | default | reason | at the bound | metrics |", "|---|---|---|---|---|"]
        for field in signature(kind).parameters.values():
            name = f"{part}.{field.name}"
            default = spell(field.name, field.default)
            bound = BOUNDS.get(name)
            happens = "No bound, and no `--limit`." if bound is None else " ".join(bound.happens.split())
            rows.append(f"| `{name}` | {default} | {reasons[field.name]} | {happens} | {shown(bound)} |")
        parts.append("\n".join(rows) + "\n")
    parts.append(fixed_limits())
    return "\n".join(parts)


def shown(bound: Bound | None) -> str:
    """Which metrics say something about a limit."""
    if bound is None:
        return ""
    return ", ".join(["used"] * bound.used + ["refusals"] * bound.counted)


def limit_classes() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Name, docstring and the text below each field of the classes in ``config``."""
    tree = ast.parse(Path(config.__file__).read_text(encoding="utf-8"))
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        reasons: dict[str, str] = {}
        name = ""
        for statement in node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name)):
                    continue
                case ast.Expr(value=ast.Constant(value=str(text))) if name:
                    reasons[name] = " ".join(text.split())
        yield node.name, " ".join((ast.get_docstring(node) or "").split()), reasons


def spell(name: str, value: object) -> str:
    """A default with its unit."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g} s"
    if isinstance(value, str):
        return f"`{value}`"
    assert isinstance(value, int)
    if name.endswith(("_bytes", "buffered_total")):
        for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if value % size == 0:
                return f"{value // size} {unit}"
    return f"{value:,}"


def fixed_limits() -> str:
    """Bounds that the protocol or the implementation fixes."""
    from holdfast.dialects.exec import control, starting
    from holdfast.engine import looking, watchdog
    from holdfast.engine.output import READ_SIZE
    from holdfast.files import MOST_MISSING, MOST_MISSING_BYTES
    from holdfast.host import holding, orders, tree
    from holdfast.host.files import watch
    from holdfast.host.sandbox import confinement
    from holdfast.protocol.paths import LONGEST
    from holdfast.wire.http import HEAD_LIMIT
    from holdfast.wire.serde import _MOST_CHECKED, _MOST_QUOTED, _MOST_VISITED
    from holdfast.wire.serde_json import MOST_NESTED, MOST_VALUES

    rows = (
        (
            "JSON values per message",
            f"{MOST_VALUES:,}",
            "Each scalar, array and object counts 1; keys do not.",
        ),
        ("Nesting of JSON", f"{MOST_NESTED}", "Arrays and objects inside each other."),
        (
            "One path",
            f"{LONGEST // 1024} KiB",
            "As it is sent; the kernel takes 4 KiB, which is up to three times as long in a URI.",
        ),
        (
            "Words for a mistake in params",
            f"{_MOST_VISITED:,} elements, {_MOST_CHECKED // 1024} KiB",
            "A misfit further on is told in the decoder's words instead of the reference's;"
            f" of a text {_MOST_QUOTED:,} characters are repeated.",
        ),
        ("HTTP request head", f"{HEAD_LIMIT // 1024} KiB", "Of an upgrade or a health check."),
        (
            "One chunk of output",
            f"{READ_SIZE // 1024} KiB",
            "What one read of a pipe gives; terminals are gathered up to it.",
        ),
        (
            "Survivors told",
            f"{orders.SURVIVORS_MOST}",
            f"Pids of one tree that were killed and live {native('PATIENCE_MS') / 1000:g} s later.",
        ),
        (
            "Numbers kept after a kill",
            f"{native('HELD_MOST')}",
            f"Pids of one tree kept from reuse for {native('HOLD_MS') / 1000:g} s:"
            " those who had left the group.",
        ),
        (
            "Processes looked at in a tree",
            f"{tree._MOST:,}",
            "For signals, holders and sampled limits, not for a kill.",
        ),
        ("Holders named", f"{holding._MOST_HOLDERS}", "Pids in `heldBy`."),
        (
            "Looks at trees at once",
            f"{looking._THREADS}",
            f"Threads, for trees of which a glance shows too little. A look ends after {tree._SECONDS:g} s.",
        ),
        (
            "Looks at a tree with sampled limits",
            f"every {watchdog._GLANCE * 1000:g} ms",
            f"Less often if a look takes more than one part in {watchdog._SHARE} of the time.",
        ),
        (
            "Longest grace of a terminate",
            f"{control.LONGEST_GRACE / 3600:g} hours",
            "A longer `graceMs` means the same.",
        ),
        (
            "Arguments in a list",
            f"{starting._ABOUT_MOST:,}",
            "Characters of `argv` that `process/list` repeats, about.",
        ),
        (
            "Paths of one `fs/watchMissing`",
            f"{MOST_MISSING}, {MOST_MISSING_BYTES // 1024} KiB",
            "The directories that have to be watched for them are bounded in this way, too.",
        ),
        (
            "Denials told",
            f"{orders.DENIALS_MOST}",
            "Of one command, if they differ; one more line counts the rest.",
        ),
        (
            "Sandboxes kept ready",
            f"{confinement._KEPT}",
            "Rulesets, and lists of arguments, for the next command with the same rules."
            f" One above {confinement._KEPT_BYTES // 1024} KiB is not kept.",
        ),
        (
            "Missing paths of a watch",
            f"{MOST_MISSING}",
            f"With {watch.MOST_NAMES} names each; beyond that nothing is watched.",
        ),
    )
    lines = ["## Fixed\n", "Not configurable.\n", "| limit | value | note |", "|---|---|---|"]
    lines += [f"| {name} | {value} | {note} |" for name, value, note in rows]
    return "\n".join(lines) + "\n"


def native(name: str) -> int:
    """A bound of the fork server or of its shims, which are in C."""
    files = sorted((SOURCE / "host" / "native").glob("*.[ch]"))
    (found,) = [
        int(number)
        for file in files
        for number in re.findall(rf"\b{name} = (\d+)", file.read_text(encoding="utf-8"))
    ]
    return found


def messages() -> tuple[str, str]:
    """The C header of what the server and its shims say to each other."""
    sys.path.insert(0, str(ROOT))  # This is run as a program, which knows its own folder only.
    from docs import native_header

    return native_header.HEADER, native_header.header()


# The command line.


def cli() -> str:
    """The help texts of all commands."""
    parser = parser_of_all()
    parts = [block(parser.format_help())]
    for name, command in commands(parser):
        parts.append(f"## holdfast {name}\n")
        parts.append(block(command.format_help()))
    return "\n".join(parts)


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


# The library.


def python() -> str:
    """The public API."""
    sys.path.insert(0, str(ROOT))  # This is run as a program, which knows its own folder only.
    from docs import signatures

    return signatures.python()


# Errors.


def error_kinds() -> str:
    """The kinds of errors and their facts."""
    from holdfast import errors
    from holdfast.protocol.errors import kinds

    rows = ["| `data.kind` | facts | when |", "|---|---|---|"]
    for kind, facts in kinds().items():
        found = getattr(errors, kind[0].upper() + kind[1:])
        meaning = " ".join((found.__doc__ or "").partition("\n\n")[0].split())
        rows.append(f"| `{kind}` | {', '.join(f'`{fact}`' for fact in facts)} | {meaning} |")
    return "\n".join(rows) + "\n"


# Telemetry.


def telemetry() -> str:
    """The table of figures."""
    from holdfast.cli.serve_observation import ARENA_CELLS, LIMIT, LIMIT_USED, RESTARTS
    from holdfast.observe.prometheus import OWN
    from holdfast.telemetry import METRICS

    rows = ["| figure | kind | labels | meaning |", "|---|---|---|---|"]
    for metric in (*METRICS, LIMIT, LIMIT_USED, ARENA_CELLS, RESTARTS, *(metric for metric, _ in OWN)):
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.help} |")
    return "\n".join(rows) + "\n"


# Examples.


def example(name: str) -> str:
    """A file below ``docs``, as it is, without the line that says what it is for."""
    text = (DOCS / name).read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree) is not None
    rest = text.splitlines(keepends=True)[tree.body[0].end_lineno or 0 :]
    return f"```python\n{''.join(rest).strip()}\n```\n"


# The source.


def source() -> str:
    """Every module with its first line."""
    sys.path.insert(0, str(ROOT))  # This is run as a program, which knows its own folder only.
    from docs import source_map

    return source_map.page()


def words() -> str:
    """The glossary."""
    sys.path.insert(0, str(ROOT))
    from docs import glossary

    return glossary.table()


def overview() -> str:
    """The folders of the source."""
    sys.path.insert(0, str(ROOT))
    from docs import source_map

    return source_map.overview()


def message_tables(endpoint: str) -> Reference:
    """The methods, notifications and types of an endpoint."""
    sys.path.insert(0, str(ROOT))  # This is run as a program, which knows its own folder only.
    from docs.message_tables import Reference

    return Reference(CATALOGS[endpoint])


# Writing.

PAGES: dict[str, Callable[[], dict[str, str]]] = {
    "docs/reference/limits.md": lambda: {"": limits()},
    "docs/reference/errors.md": lambda: {"": error_kinds()},
    "docs/reference/telemetry.md": lambda: {"": telemetry()},
    "docs/reference/cli.md": lambda: {"": cli()},
    "docs/reference/python.md": lambda: {"": python()},
    "docs/reference/exec.md": lambda: message_tables("exec").parts(),
    "docs/reference/source.md": lambda: {"": source()},
    "ARCHITECTURE.md": lambda: {"words": words(), "folders": overview()},
    "docs/reference/app.md": lambda: {"": message_tables("app").page()},
}
"""The parts of each page, by name.  Examples are parts of any page, and go by their paths."""

ENDINGS = {"json-schema": "schema.json", "typescript": "d.ts", "openrpc": "openrpc.json"}


def fill(page: str, parts: dict[str, str]) -> str:
    """The page with its parts written anew.

    Raises:
        ValueError: Its marks are not those of the parts.
    """
    marks = [part[2] or "" for part in PART.finditer(page)]
    shown = {mark: example(mark) for mark in marks if mark.startswith("examples/")}
    if sorted(marks) != sorted([*parts, *shown]):
        raise ValueError(f"has the marks {marks}, not {list(parts)}")
    every = parts | shown
    return PART.sub(lambda part: f"{part[1]}\n{every[part[2] or '']}\n{END}", page)


def texts() -> Iterator[tuple[str, str]]:
    """Path from the root, and what should be there."""
    for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(DOCS.rglob("*.md"))]:
        name = page.relative_to(ROOT).as_posix()
        try:
            yield name, fill(page.read_text(encoding="utf-8"), PAGES.get(name, dict)())
        except ValueError as error:
            raise SystemExit(f"{name} {error}") from None
    yield messages()
    for endpoint, catalog in CATALOGS.items():
        for kind, ending in ENDINGS.items():
            yield f"docs/reference/schema/{endpoint}.{ending}", WRITERS[kind]([catalog])


def main() -> int:
    parser = argparse.ArgumentParser(description="Write what is generated in docs.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something is stale")
    arguments = parser.parse_args()
    os.environ["COLUMNS"] = WIDTH
    stale = 0
    for name, text in texts():
        path = ROOT / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if arguments.check:
            print(f"{name} is stale: run python docs/generate.py", file=sys.stderr)
            stale = 1
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
