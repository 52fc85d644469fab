"""The public Python API as Markdown, from its signatures and docstrings."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import holdfast
from holdfast import errors, files
from holdfast.api.events import ProcessEvents
from holdfast.api.files import HostFiles
from holdfast.api.http import HttpClient, WebResponse
from holdfast.api.stdin import StdinWriter

SECTIONS: dict[str, tuple[str, ...]] = {
    "Where processes run": ("connect", "local", "Host"),
    "A process": ("Handle",),
    "Commands": ("run", "Completed", "Omitted", "HeadTail"),
    "Files": (),
    "HTTP": (),
    "Sandboxes": ("Sandbox", "Denial"),
    "Values": (
        "Outcome",
        "Kind",
        "LinkFault",
        "Usage",
        "CurrentUsage",
        "Ended",
        "Limits",
        "Size",
        "Chunk",
        "Stream",
        "Listing",
        "Inspection",
        "OutputRange",
        "HostRecording",
        "Waited",
        "WaitEnd",
        "ProcessEvent",
        "EventKind",
    ),
    "Errors": ("HoldfastError",),
    "Without an event loop": ("sync",),
}
"""Names of ``holdfast``, in the order of the page.  Errors are all that is left of them."""

CONSTANTS = {"PIPE", "DEVNULL", "STDOUT", "__version__"}
"""Those of ``subprocess``, and what needs no section."""

SYNTAX = {
    "__aiter__": "async for data in {}",
    "__iter__": "for data in {}",
    "__aexit__": "async with {}",
    "__exit__": "with {}",
}
"""Methods that nobody calls by their names."""

ARGUMENTS = re.compile(r"^(Args|Raises|Raises, [^:\n]*):\n((?:[ ]{4}.*\n?|\n)+)", re.MULTILINE)


def python() -> str:
    """The page.

    Raises:
        ValueError: Something in ``holdfast.__all__`` is not in the page.
    """
    named = {name for names in SECTIONS.values() for name in names} | CONSTANTS
    raised = [name for name in holdfast.__all__ if name not in named and is_error(getattr(holdfast, name))]
    missing = set(holdfast.__all__) - named - set(raised)
    if missing:
        raise ValueError(f"has no section for {sorted(missing)}")
    parts = []
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += described(name, getattr(holdfast, name))
        if title == "A process":
            parts += described("StdinWriter", StdinWriter)
        if title == "Where processes run":
            parts += described("ProcessEvents", ProcessEvents)
        if title == "Files":
            for cls in (
                HostFiles,
                files.OpenFile,
                files.OpenTree,
                files.FileMetadata,
                files.DirEntry,
                files.TreeCount,
            ):
                parts += described(cls.__name__, cls)
        if title == "HTTP":
            parts += described("HttpClient", HttpClient)
            parts += described("WebResponse", WebResponse)
        if title == "Errors":
            parts.append(error_table(["HoldfastError", *raised]))
    return "\n".join(parts)


def is_value(cls: type) -> bool:
    """Whether it is a class whose objects are what is in their fields."""
    return "__match_args__" in vars(cls)


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def described(name: str, value: object) -> Iterator[str]:
    """The section of one name."""
    if isinstance(value, ModuleType):
        yield text_of(value)
        for inner in value.__all__:
            if getattr(value, inner).__module__.startswith("holdfast.api.sync"):
                yield from described(f"{name}.{inner}", getattr(value, inner))
    elif is_error(value):
        return
    elif isinstance(value, type) and issubclass(value, enum.Enum):
        yield f"### {name}\n"
        yield text_of(value)
        yield table(
            ("member", "value", ""),
            [(each.name, f'"{each.value}"', notes(value)[each.name]) for each in value],
        )
    elif isinstance(value, type) and is_value(value):
        yield f"### {name}\n"
        yield text_of(value)
        kinds = kinds_of(value)
        fields = [
            (field, f"`{kinds[field]}`", notes(value)[field]) for field in vars(value)["__match_args__"]
        ]
        yield table(("member", "type", ""), fields)
        yield from members(name, value)
    elif isinstance(value, type):
        yield f"### {name}\n"
        yield text_of(value)
        yield from members(name, value)
    else:
        assert callable(value)
        yield f"### {name}\n"
        yield block(signature(name.rpartition(".")[2], value))
        yield text_of(value)


def members(name: str, cls: type) -> Iterator[str]:
    """The public methods and properties of a class, in the order in which they are written."""
    attributes = [
        (own, text)
        for own, text in notes(cls).items()
        # A method that was made elsewhere is assigned, too.
        if not own.startswith("_") and not callable(vars(cls).get(own))
    ]
    if not is_value(cls) and attributes:
        yield table(("attribute", ""), attributes)
    properties = [
        (own, f"`{kind_of(inspect.signature(member.fget).return_annotation)}`", sentence(member.__doc__))
        for own, member in vars(cls).items()
        if isinstance(member, property) and member.fget is not None and not own.startswith("_")
    ]
    if properties:
        yield table(("property", "type", ""), properties)
    mixed_in = [vars(base) for base in cls.__bases__ if base.__module__.endswith("verbs")]
    for own, attribute in [pair for each in (vars(cls), *mixed_in) for pair in each.items()]:
        member = attribute.__func__ if isinstance(attribute, classmethod) else attribute
        if own in SYNTAX and member.__doc__:
            yield f"#### {SYNTAX[own].format(name.rpartition('.')[2].lower())}\n"
            yield text_of(member)
        if inspect.isfunction(member) and not own.startswith("_"):
            yield f"#### {name}.{own}\n"
            yield block(signature(own, member))
            yield text_of(member)


def signature(name: str, function: Callable[..., object]) -> str:
    """As one would write it; in several lines, if one is too long."""
    found = inspect.signature(function)
    found = found.replace(
        parameters=[each for each in found.parameters.values() if each.name not in ("self", "cls")]
    )
    word = "async def" if inspect.iscoroutinefunction(function) else "def"
    words = [plain(str(each)) for each in found.parameters.values()]
    kinds = [each.kind for each in found.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        words.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    result = f" -> {plain(str(found.return_annotation))}"
    line = f"{word} {name}({', '.join(words)}){result}"
    if len(line) <= 100:
        return line
    return f"{word} {name}(\n" + "".join(f"    {each},\n" for each in words) + f"){result}"


def plain(text: str) -> str:
    """An annotation without quotes, and constants of ``subprocess`` by their names."""
    text = re.sub(r": '([^']*)'", r": \1", text)
    text = re.sub(r"^'([^']*)'$", r"\1", text)
    return text.replace("= -1", "= PIPE").replace("asynchronous.", "holdfast.")


def kind_of(annotation: object) -> str:
    return plain(
        annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    )


# Docstrings.


def text_of(value: object) -> str:
    """The docstring as Markdown."""
    text = inspect.cleandoc(value.__doc__ or "") + "\n"

    def listed(found: re.Match[str]) -> str:
        lines = textwrap.dedent(found[2]).splitlines()
        entries: list[str] = []
        for line in lines:
            if line.startswith(" ") and entries:
                entries[-1] += " " + line.strip()
            elif line:
                key, _, words = line.partition(": ")
                entries.append(f"- `{key}`: {words}")
        title = "Arguments" if found[1] == "Args" else found[1]
        return f"{title}:\n\n" + "\n".join(entries) + "\n\n"

    return ARGUMENTS.sub(listed, text).replace("``", "`").rstrip() + "\n"


def sentence(docstring: str | None) -> str:
    """A docstring in one line, up to its list of errors."""
    text = inspect.cleandoc(docstring or "").partition("\n\nRaises:")[0]
    return " ".join(text.split()).replace("``", "`")


def notes(cls: type) -> dict[str, str]:
    """The text below each attribute, in the class or in its ``__init__``; empty if there is none."""
    body = body_of(cls)
    found = noted(body)
    for member in body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            found |= noted(member.body)
    return found


def kinds_of(cls: type) -> dict[str, str]:
    """The annotations of a class, as they are written."""
    return {
        statement.target.id: ast.unparse(statement.annotation)
        for statement in body_of(cls)
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def body_of(cls: type) -> list[ast.stmt]:
    module = importlib.import_module(cls.__module__)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (body,) = (
        node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    )
    return body


def noted(body: list[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for statement in body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = ""
            case (
                ast.Assign(targets=[ast.Attribute(attr=name)])
                | ast.AnnAssign(target=ast.Attribute(attr=name))
            ):
                found[name] = ""
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                found[name] = " ".join(text.split()).replace("``", "`")
            case _:
                name = ""
    return found


# Markdown.


def error_table(names: list[str]) -> str:
    """Those of ``holdfast``, then what else a call may raise."""
    rows = []
    others = [name for name, cls in vars(errors).items() if is_error(cls) and name not in names]
    for name in [*names, *(name for name in others if not name.startswith("_"))]:
        home = holdfast if name in names else errors
        cls = getattr(home, name)
        bases = ", ".join(dict.fromkeys(f"`{base.__name__}`" for base in public(cls.__bases__)))
        rows.append((name, f"`{home.__name__}`", bases, sentence(cls.__doc__), ", ".join(facts(cls))))
    return table(("error", "in", "is a", "when", "attributes"), rows)


def public(bases: tuple[type, ...]) -> Iterator[type]:
    """The classes above; of those that nobody else knows, the ones above them."""
    for base in bases:
        if base.__name__.startswith("_"):
            yield from public(base.__bases__)
        else:
            yield base


def facts(cls: type) -> list[str]:
    own = [f"`{fact}`" for fact in notes(cls) if not fact.startswith("_")]
    hidden = [base for base in cls.__bases__ if base.__name__.startswith("_")]
    return [fact for base in hidden for fact in facts(base)] + own


def table(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for own, *rest in rows:
        lines.append("| " + " | ".join([f"`{own}`", *(cell.replace("|", "\\|") for cell in rest)]) + " |")
    return "\n".join(lines) + "\n"


def block(code: str) -> str:
    return f"```python\n{code}\n```\n"
