"""The map of the source: every module with its first line, and the folders with theirs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "holdfast"

NATIVE = "The program in C: the fork server, its shims, and the witness of sandboxed commands."
"""What is in the folder that is no package."""

C_COMMENT = re.compile(r"/\*\s*(.*?)\*/", re.DOTALL)


def first_line(path: Path) -> str:
    """The first sentence of a module's docstring, or of the comment at the top of a C file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        said = ast.get_docstring(ast.parse(text)) or ""
    else:
        comment = C_COMMENT.match(text)
        said = re.sub(r"^\s*\*+ ?", "", comment[1], flags=re.MULTILINE) if comment else ""
    return " ".join(said.partition("\n\n")[0].split())


def folders() -> Iterator[Path]:
    """The package and every folder in it, outer before inner."""
    yield SOURCE
    inner = {path.parent for path in [*SOURCE.rglob("__init__.py"), *SOURCE.rglob("*.c")]}
    yield from sorted(inner - {SOURCE})


def introduction(folder: Path) -> str:
    """What is in a folder."""
    package = folder / "__init__.py"
    return first_line(package) if package.is_file() else NATIVE


def modules(folder: Path) -> list[Path]:
    """The files of a folder that hold code; a header beside its source says the same as that."""
    python = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    headers = [path for path in folder.glob("*.h") if not path.with_suffix(".c").is_file()]
    return sorted([*python, *folder.glob("*.c"), *headers])


def shown(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def page() -> str:
    """A table of modules for each folder."""
    parts = []
    for folder in folders():
        name = "holdfast" if folder == SOURCE else f"{shown(folder)}/"
        rows = ["| module | what is in it |", "|---|---|"]
        rows += [f"| `{shown(path)}` | {first_line(path)} |" for path in modules(folder)]
        parts.append(f"## {name}\n\n{introduction(folder)}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def overview() -> str:
    """One line per folder."""
    rows = ["| folder | files | what is in it |", "|---|---|---|"]
    for folder in folders():
        if folder != SOURCE:
            count = len(modules(folder))
            rows.append(f"| `{shown(folder)}/` | {count} | {introduction(folder)} |")
    return "\n".join(rows) + "\n"
