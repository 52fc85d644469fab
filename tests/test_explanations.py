"""Every error has an explanation in every dialect."""

from __future__ import annotations

import ast

import pytest

from tests.test_house import PACKAGE, SOURCES, Function, Module, parse, read


def subclasses(root: str, modules: list[Module]) -> set[str]:
    """Give the names of all classes below one class, wherever they are defined."""
    parents = {
        node.name: {
            base.attr if isinstance(base, ast.Attribute) else ast.unparse(base) for base in node.bases
        }
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    }
    found: set[str] = set()
    family = {root}
    while more := {name for name, bases in parents.items() if bases & family} - found:
        found |= more
        family |= more
    # A name with an underscore is a shape that others share, and is never raised itself.
    return {name for name in found if not name.startswith("_")}


def defines_explain(module: Module) -> bool:
    return any(isinstance(node, Function) and node.name == "explain" for node in module.tree.body)


def used_names(module: Module) -> set[str]:
    """Give every name the module uses; what it only imports does not count."""
    nodes = list(ast.walk(module.tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


EXPLAINERS = [
    path for path in SOURCES if path.startswith(f"{PACKAGE}/dialects/") and defines_explain(read(path))
]


def test_some_dialect_explains_errors() -> None:
    """Without a single `explain` the next test would have nothing to look at."""
    assert EXPLAINERS != []


@pytest.mark.parametrize("path", EXPLAINERS)
def test_a_dialect_explains_every_error(path: str) -> None:
    """An error without a case reaches the client as an internal error that says nothing."""
    home = path.rsplit("/", 1)[0]
    elsewhere = {other.rsplit("/", 1)[0] for other in EXPLAINERS} - {home}
    # A dialect's own errors stay in its folder, and what is above the dialects is out of their sight.
    elsewhere |= {f"{PACKAGE}/api", f"{PACKAGE}/client"}
    sources = [source for source in SOURCES if source.rsplit("/", 1)[0] not in elsewhere]
    errors = subclasses("HoldfastError", [read(source) for source in sources])

    assert errors != set()
    assert sorted(errors - used_names(read(path))) == []


def test_subclasses_are_found_through_generations() -> None:
    """An error below `Refused` is as much a HoldfastError as `Refused` itself."""
    module = parse("x.py", "class A: ...\nclass B(A): ...\nclass C(errors.B): ...\nclass D: ...")

    assert subclasses("A", [module]) == {"B", "C"}
