"""What a class says of itself and of its members, read off its source (pure)."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache

from holdfast.value import value

_NONE: Mapping[str, str] = {}


@value
class ClassDocs:
    """Texts on one line each, in Markdown."""

    own: str = ""
    members: Mapping[str, str] = _NONE
    """The string below each member; members without one are missing."""


def words(cls: type) -> ClassDocs:
    """The docstring of a class at the top of a module, and the strings below its members.

    The interpreter does not keep those of members, hence the source; where it is
    not installed there are no words.
    """
    node = _classes(cls.__module__).get(cls.__qualname__)
    if node is None:
        return ClassDocs()
    members: dict[str, str] = {}
    name = ""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                continue
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                members[name] = plain(text)
        name = ""
    return ClassDocs(plain(ast.get_docstring(node) or ""), members)


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:
        return {}
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def plain(text: str) -> str:
    """A docstring on one line, with code marked as in Markdown."""
    return " ".join(text.split()).replace("``", "`")
