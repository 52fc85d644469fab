"""The layers: what modules and pages promise about imports is what the import contracts keep."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_house import PACKAGE, ROOT, SOURCES, Module, read

# The first test reads every file, which takes long where others want the processor too.
pytestmark = pytest.mark.timeout(120)


# Pure modules.


def says_pure(module: Module) -> bool:
    """Whether the first sentence of a module promises that it knows neither a loop nor a clock."""
    first = (ast.get_docstring(module.tree) or "").partition("\n\n")[0]
    return re.search(r"\((\w[^()]*; )?pure\b", first) is not None


def dotted(path: str) -> str:
    """The name under which a source file is imported."""
    inside = Path(path).relative_to("src").with_suffix("").parts
    return ".".join(inside).removesuffix(".__init__")


def test_a_module_that_is_called_pure_is_in_the_contract_and_the_reverse() -> None:
    """A promise that nothing checks is broken one day, and nobody notices."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (listed,) = [
        contract["source_modules"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"].startswith("the pure modules")
    ]
    promised = {dotted(path) for path in SOURCES if says_pure(read(path))}
    kept = {
        name for name in map(dotted, SOURCES) if any(f"{name}.".startswith(f"{each}.") for each in listed)
    }

    assert sorted(promised ^ kept) == []


# The arrows of the architecture.

ARROW = re.compile(r"^(\w+) +-> +(\w[\w, ]*?)(?:  .*)?$", re.MULTILINE)
TOP = re.compile(r"^top +=(.*)$", re.MULTILINE)


def run_time_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports in a tree, but for those that only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        yield from run_time_imports(child)


def imported(module: Module) -> set[str]:
    """The parts of the package, folders and modules, that a module imports from."""
    inside = Path(module.path).relative_to(PACKAGE)
    found = set()
    for node in run_time_imports(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            home = ["holdfast", *inside.parts[: len(inside.parts) - node.level]] if node.level else []
            home += [node.module] if node.module else []
            names = [".".join([*home, alias.name]) for alias in node.names]
        found |= {parts[1] for parts in (name.split(".") for name in names) if parts[0] == "holdfast"}
    return found & PARTS


PARTS = {Path(path).relative_to(PACKAGE).with_suffix("").parts[0] for path in SOURCES}


def test_the_arrows_of_the_architecture_are_the_imports() -> None:
    """A reader takes them for the plan of the house.  One wrong arrow spoils the plan."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (line,) = TOP.findall(page)
    top = set(re.findall(r"\w+", line))
    shown = {name: set(targets.split(", ")) for name, targets in ARROW.findall(page)}
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        inside = Path(path).relative_to(PACKAGE)
        if len(inside.parts) > 1 and path != f"{PACKAGE}/api/embedded.py":
            targets = {"top" if name in top else name for name in imported(read(path))}
            found.setdefault(inside.parts[0], set()).update(targets - {inside.parts[0]})

    assert found.pop("cli") <= PARTS | {"top"}
    assert shown.pop("cli") == {"everything"}
    assert {name: sorted(targets) for name, targets in shown.items()} == {
        name: sorted(targets) or ["nothing"] for name, targets in found.items()
    }
    modules = {Path(path).stem for path in SOURCES if Path(path).parent.as_posix() == PACKAGE}
    assert top == modules - {"__init__", "__main__", "sync"}
