"""Prints the figures by which the shape of the source is judged, and fails where one is beyond its goal.

Run it from anywhere: ``python docs/measure_house.py``.  With ``--names`` it also says where the figures come
from: which class names occur twice, which modules import each other, which files are the longest.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "holdfast"
SOURCES = sorted(PACKAGE.rglob("*.py"))

TWINS = tuple(sorted((PACKAGE / "api").glob("sync*.py")))
"""Modules in which a class has the name of the asynchronous class that it is the synchronous twin of.

Programs say ``holdfast.Host`` and ``holdfast.sync.Host``, so these names repeat on purpose.  They are not
counted as repeated; classes in all other modules are.
"""

COMMENTED = ("engine", "host", "client")
"""Folders whose code is so full of reasons that a reader needs them told."""


@dataclass(frozen=True)
class Figure:
    """One number, whether it is as it should be, and what it was counted from."""

    name: str
    value: float
    goal: str
    good: bool
    names: Sequence[str] = ()


def figures() -> Iterator[Figure]:
    """All of them."""
    lines = {path: len(read(path).splitlines()) for path in SOURCES}
    middle, largest = statistics.median(lines.values()), max(lines.values())
    longest = [f"{shown(path)}: {lines[path]}" for path in sorted(lines, key=lambda path: -lines[path])[:5]]
    yield at_most("Python files", len(SOURCES), 350)
    yield Figure("median lines of a file", middle, "120 to 180", 120 <= middle <= 180)
    yield at_most("lines of the largest file", largest, 450, longest)
    yield none("class names used more than once, but for api/sync*.py", repeated_classes())
    yield none("modules outside a layer", outside_layers())
    yield none("import cycles, types included, in dialects/exec", cycles("holdfast.dialects.exec"))
    yield none("import cycles at run time", cycles("holdfast", types=False))
    functions = sorted(c_functions(), key=lambda each: -each[1])
    names = [f"{name}: {count}" for name, count in functions[:5]]
    yield at_most("lines of the longest C function", functions[0][1] if functions else 0, 60, names)
    for folder in COMMENTED:
        density = comments_per_100(PACKAGE / folder)
        yield Figure(f"comments per 100 lines in {folder}", density, "at least 4", density >= 4)


def at_most(name: str, value: float, most: float, names: Sequence[str] = ()) -> Figure:
    return Figure(name, value, f"at most {most:g}", value <= most, names)


def none(name: str, found: Sequence[str]) -> Figure:
    return Figure(name, len(found), "0", not found, found)


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Names.


def repeated_classes() -> list[str]:
    """Class names that more than one class has, the classes of ``TWINS`` left out."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in SOURCES:
        if path in TWINS:
            continue
        for node in ast.walk(ast.parse(read(path))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(shown(path))
    return [f"{name}: {', '.join(places)}" for name, places in sorted(homes.items()) if len(places) > 1]


# Imports.


def outside_layers() -> list[str]:
    """What is directly in the package and in no layer of the contract."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = [
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    placed = {part.strip() for layer in layers for part in layer.split("|")}
    there = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir() if is_module(path)}
    return sorted(there - placed - {"__init__"})


def is_module(path: Path) -> bool:
    return path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").is_file())


def cycles(within: str, *, types: bool = True) -> list[str]:
    """Groups of modules below ``within`` that need each other."""
    from grimp import build_graph

    graph = build_graph("holdfast", exclude_type_checking_imports=not types)
    inside = {name for name in graph.modules if name == within or name.startswith(f"{within}.")}
    imports = {name: graph.find_modules_directly_imported_by(name) & inside for name in inside}
    return [" ".join(sorted(group)) for group in components(imports) if len(group) > 1]


def components(edges: dict[str, set[str]]) -> Iterator[set[str]]:
    """Groups whose members can all be reached from each other, by the algorithm of Kosaraju."""
    order: list[str] = []
    visit_all(edges, edges, order.append)
    back: dict[str, set[str]] = {name: set() for name in edges}
    for name, targets in edges.items():
        for target in targets:
            back[target].add(name)
    seen: set[str] = set()
    for name in reversed(order):
        group: list[str] = []
        visit(name, back, seen, group.append)
        if group:
            yield set(group)


def visit_all(names: Iterable[str], edges: dict[str, set[str]], leave: Callable[[str], object]) -> None:
    seen: set[str] = set()
    for name in names:
        visit(name, edges, seen, leave)


def visit(name: str, edges: dict[str, set[str]], seen: set[str], leave: Callable[[str], object]) -> None:
    """Go to everything that can be reached and was not seen; leave each behind what is reached from it."""
    way = [(name, iter(edges[name]))] if name not in seen else []
    seen.add(name)
    while way:
        here, rest = way[-1]
        following = next((each for each in rest if each not in seen), None)
        if following is None:
            leave(here)
            way.pop()
        else:
            seen.add(following)
            way.append((following, iter(edges[following])))


# C, and comments.


def c_functions() -> Iterator[tuple[str, int]]:
    """Name and lines of each function: it begins and ends at the left margin, as all of ours do."""
    for path in sorted(PACKAGE.rglob("*.c")):
        begin, name, before = 0, "", ""
        for number, line in enumerate(read(path).splitlines(), 1):
            if line == "{":
                found = re.search(r"(\w+)\(", before)
                begin, name = number, found[1] if found else "?"
            elif line == "}" and begin:
                yield f"{shown(path)} {name}", number - begin - 1
                begin = 0
            before = line


def comments_per_100(folder: Path) -> float:
    """Comments of their own, and texts behind a name that say why it has its value."""
    comments = lines = 0
    for path in folder.rglob("*.py"):
        text = read(path)
        lines += sum(bool(line.strip()) for line in text.splitlines())
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments += sum(token.type == tokenize.COMMENT and "noqa" not in token.string for token in tokens)
        comments += sum(told_reasons(ast.parse(text)))
    return round(100 * comments / lines, 1)


def told_reasons(tree: ast.Module) -> Iterator[bool]:
    """For each statement, whether it is a text behind an assignment."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for before, text in pairwise(body):
                value = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
                yield value and isinstance(before, ast.Assign | ast.AnnAssign)


def main() -> int:
    """Print them; return 1 if one is beyond its goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="say where each figure comes from")
    arguments = parser.parse_args()
    beyond = 0
    for figure in figures():
        beyond += not figure.good
        mark = " " if figure.good else "!"
        sys.stdout.write(f"{mark} {figure.name:54} {figure.value:8g}   {figure.goal}\n")
        if arguments.names:
            sys.stdout.writelines(f"      {name}\n" for name in figure.names)
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
