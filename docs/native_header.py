"""The C header of the messages between the server and a shim, from their table in ``host/orders.py``."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

from holdfast import reports
from holdfast.host import orders

HEADER = "src/holdfast/host/native/messages.h"

WIDTH = 120
"""Columns of a line of C."""

PREFIXES = {
    orders.OrderKind: "ORDER",
    orders.HeldPlace: "PLACE",
    orders.StartFlag: "START",
    orders.ReleaseFlag: "RELEASE",
    reports.News: "REPORT",
    orders.StateFlag: "STATE",
    reports.ExitFlag: "EXIT",
    orders.StartStage: "STAGE",
}
"""What the names of the members of each class begin with in C, where all names are in one place."""

STRUCTS = {
    "order": "ORDER_FIELDS",
    "limit": "LIMIT_FIELDS",
    "report": "REPORT_FIELDS",
    "state": "STATE_FIELDS",
}
"""The name of each layout in C, and in Python."""

TYPES = {"I": "uint32_t", "i": "int32_t", "Q": "uint64_t"}

TEXTS = ast.parse(Path(orders.__file__).read_text(encoding="utf-8"))
REPORT_TEXTS = ast.parse(Path(reports.__file__).read_text(encoding="utf-8"))


def header() -> str:
    """The whole file."""
    parts = [
        "/* The messages between the server and a shim.\n *\n"
        " * Written by docs/generate.py from the table in host/orders.py: change that, not this. */\n",
        "#ifndef HOLDFAST_MESSAGES_H\n#define HOLDFAST_MESSAGES_H\n\n#include <stdint.h>\n",
        "\n".join(numbers()),
        *(enumeration(kind, prefix) for kind, prefix in PREFIXES.items()),
        *(structure(name, variable) for name, variable in STRUCTS.items()),
        "#endif\n",
    ]
    return "\n".join(parts)


def numbers() -> Iterator[str]:
    texts = dict(described(TEXTS.body))
    for name in ("VERSION", *orders.BOUNDS):
        yield comment(texts[name])
        shown = "MESSAGES_VERSION" if name == "VERSION" else name
        yield f"enum {{ {shown} = {getattr(orders, name)} }};\n"


def enumeration(kind: type, prefix: str) -> str:
    """An enum in C; news whose value is 0 are never sent, and left out."""
    texts_of_both = (*TEXTS.body, *REPORT_TEXTS.body)
    (node,) = [
        each for each in texts_of_both if isinstance(each, ast.ClassDef) and each.name == kind.__name__
    ]
    texts = dict(described(node.body))
    lines = [comment(ast.get_docstring(node) or ""), f"enum {snake(kind.__name__)} {{"]
    for name, number in members(kind):
        if number or kind is not reports.News:
            if name in texts:
                lines.append(comment(texts[name], indent="    "))
            lines.append(f"    {prefix}_{name} = {number},")
    return "\n".join([*lines, "};\n"])


def members(kind: type) -> list[tuple[str, int]]:
    """The names of an enumeration, or of a class that has only numbers, and what they stand for."""
    if issubclass(kind, Enum):
        return [(member.name, member.value) for member in kind]
    return [(name, number) for name, number in vars(kind).items() if name.isupper()]


def structure(name: str, variable: str) -> str:
    fields: Sequence[tuple[str, str, str]] = getattr(orders, variable)
    lines = [comment(dict(described(TEXTS.body))[variable]), f"struct {name} {{"]
    for field, code, meaning in fields:
        told = f" /* {meaning} */" if meaning else ""
        lines.append(f"    {TYPES[code]} {field};{told}")
    size = orders._layout(fields).size
    lines += ["};", f'_Static_assert(sizeof(struct {name}) == {size}, "it is laid out as in Python");\n']
    return "\n".join(lines)


def described(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """The names that are assigned in ``body``, each with the text behind it, if there is one."""
    name = ""
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                continue
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                yield name, " ".join(text.replace("``", "`").split())
        name = ""


def comment(text: str, indent: str = "") -> str:
    """A comment, on as many lines as it takes."""
    lines = textwrap.wrap(text.replace("``", "`"), WIDTH - len(indent) - len("/*  */"))
    return f"{indent}/* " + f"\n{indent} * ".join(lines) + " */"


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
