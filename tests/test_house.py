"""The rules of the house as code: what a reviewer should not have to look for.

A rule is a function from a module to complaints.  Each rule is run on every file it applies to, and once on
a piece of code that breaks it, because a rule that cannot complain is not a rule.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from docs.measure_house import repeated_classes

# The first rule that is asked reads every file, which takes long where others want the processor too.
pytestmark = pytest.mark.timeout(120)

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/holdfast"

# Beyond these a reader loses the thread; a comment may argue that splitting would lose it sooner.
MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60
LONG_BECAUSE = re.compile(r"#\s*house: long because \w+")

# Names that say nothing about what is inside; the plural is meant too.
EMPTY_NAMES = {"util", "helper", "common", "misc", "manager", "handler", "base"}

# A task ends before its owner does.  These modules own tasks; all others ask them.
TASK_OWNERS = {
    f"{PACKAGE}/server/connection.py",
    f"{PACKAGE}/server/app.py",
    f"{PACKAGE}/dialects/exec/notifying.py",
    f"{PACKAGE}/client/link.py",
    f"{PACKAGE}/api/mapping.py",
    f"{PACKAGE}/api/stdin.py",
    f"{PACKAGE}/api/thread.py",
    f"{PACKAGE}/cli/follow.py",
    f"{PACKAGE}/cli/spool.py",
    f"{PACKAGE}/cli/top.py",
}

# Between two awaits nobody else runs, so most code needs no lock.  These modules share something with a
# thread, or keep one long answer or list of a client whole.
LOCK_OWNERS = {
    f"{PACKAGE}/api/sync.py",
    f"{PACKAGE}/dialects/exec/conversation.py",
    f"{PACKAGE}/engine/file_trees.py",
    f"{PACKAGE}/engine/workers.py",
    f"{PACKAGE}/host/sandbox/bubblewrap.py",
    f"{PACKAGE}/host/sandbox/confinement.py",
    f"{PACKAGE}/server/connection.py",
}
LOCKS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"}

# Where classes of values are still declared in other ways than by ``value.py``.
OTHER_VALUES = {f"{PACKAGE}/engine/"}
OTHER_MAKERS = {"dataclasses.dataclass", "typing.NamedTuple", "collections.namedtuple"}

BROAD_EXCEPT_MARK = re.compile(r"#\s*noqa:\s*BLE001\b")

# Modules whose tests are not in the mirrored file under tests/unit: module -> the file that covers it, both
# as paths from the root of the repository.
COVERED_BY: dict[str, str] = {
    f"{PACKAGE}/faults.py": "tests/unit/test_errors.py",
    f"{PACKAGE}/api/embedded_process.py": "tests/unit/api/test_embedded.py",
    f"{PACKAGE}/dialects/exec/shell_snapshots.py": "tests/system/test_shell_snapshots.py",
    f"{PACKAGE}/cli/interrupts.py": "tests/system/test_cli_fetch.py",
    f"{PACKAGE}/api/files.py": "tests/contract/test_host_files.py",
    f"{PACKAGE}/api/walking.py": "tests/contract/test_host_files.py",
    f"{PACKAGE}/client/verbs.py": "tests/contract/test_handle_verbs.py",
    f"{PACKAGE}/api/embedded_events.py": "tests/contract/test_host_events.py",
    f"{PACKAGE}/api/verbs.py": "tests/contract/test_handle_verbs.py",
    f"{PACKAGE}/inspecting.py": "tests/unit/engine/test_inspecting.py",
    f"{PACKAGE}/ranges.py": "tests/contract/test_ranges.py",
    f"{PACKAGE}/inspection.py": "tests/unit/engine/test_inspecting.py",
    f"{PACKAGE}/engine/durable/index.py": "tests/unit/engine/durable/test_ring.py",
    f"{PACKAGE}/engine/durable/intake.py": "tests/unit/engine/durable/test_ring.py",
    f"{PACKAGE}/engine/durable/journal.py": "tests/unit/engine/durable/test_stdin.py",
}


@dataclass(frozen=True)
class Module:
    """A Python file, read once: its path from the root, its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    def comments(self) -> list[tuple[int, int, str]]:
        """Line, column and text of each comment."""
        return comments(self.text)


@cache
def comments(text: str) -> list[tuple[int, int, str]]:
    # Kept, because a rule may ask for them at every function.
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(*token.start, token.string) for token in tokens if token.type == tokenize.COMMENT]


Rule = Callable[[Module], Iterator[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def parse(path: str, text: str) -> Module:
    return Module(path, text, ast.parse(text, path))


@cache
def read(path: str) -> Module:
    return parse(path, (ROOT / path).read_text(encoding="utf-8"))


def python_files(folder: str) -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py"))


SOURCES = python_files(PACKAGE)
TESTS = python_files("tests")


# Rules for every file.


def too_long(module: Module) -> Iterator[str]:
    """A file over the limit, unless a comment at the left margin argues for it."""
    lines = len(module.text.splitlines())
    if lines <= MAX_FILE_LINES:
        return
    if not any(column == 0 and LONG_BECAUSE.match(text) for _, column, text in module.comments()):
        yield f"{lines} lines, more than {MAX_FILE_LINES}"


def long_function(module: Module) -> Iterator[str]:
    """A function over the limit, its docstring apart, unless a comment inside it argues for it."""
    for node in ast.walk(module.tree):
        if not isinstance(node, Function):
            continue
        last = node.end_lineno or node.lineno
        lines = last - node.lineno + 1 - docstring_lines(node)
        if lines <= MAX_FUNCTION_LINES:
            continue
        if not any(
            node.lineno <= line <= last and LONG_BECAUSE.match(text) for line, _, text in module.comments()
        ):
            yield f"{node.lineno}: {node.name} has {lines} lines, more than {MAX_FUNCTION_LINES}"


def docstring_lines(node: Function) -> int:
    if ast.get_docstring(node) is None:
        return 0
    docstring = node.body[0]
    return (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1


def no_docstring(module: Module) -> Iterator[str]:
    """A module that does not say what it is for."""
    if not ast.get_docstring(module.tree):
        yield "the module has no docstring"


def empty_name(module: Module) -> Iterator[str]:
    """A file or folder with a name that fits anything."""
    for part in Path(module.path).with_suffix("").parts:
        for word in part.split("_"):
            if word.removesuffix("s") in EMPTY_NAMES:
                yield f"{part!r} does not say what is in it"


# Rules for the source.


def prints(module: Module) -> Iterator[str]:
    """Output to the terminal from anything but the command line."""
    if module.path.startswith(f"{PACKAGE}/cli/"):
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and node.id == "print":
            yield f"{node.lineno}: print belongs to the command line"


def makes_tasks(module: Module) -> Iterator[str]:
    """A task made by a module that does not own tasks."""
    if module.path in TASK_OWNERS:
        return
    for line, name in mentions(module.tree):
        if name.rpartition(".")[2] in {"create_task", "ensure_future"}:
            yield f"{line}: {name} outside the owners of tasks"


def makes_locks(module: Module) -> Iterator[str]:
    """A lock in a module that shares nothing."""
    if module.path in LOCK_OWNERS:
        return
    for line, name in mentions(module.tree):
        owner, _, what = name.rpartition(".")
        if what in LOCKS and owner in {"asyncio", "threading", "multiprocessing"}:
            yield f"{line}: {name} outside the modules that share something"


def sleeps(module: Module) -> Iterator[str]:
    """A pause where an event or a deadline is meant."""
    for line, name in mentions(module.tree):
        if name in {"time.sleep", "asyncio.sleep"}:
            yield f"{line}: {name}"


def late_import(module: Module) -> Iterator[str]:
    """An import inside a function of the command line, where one table loads what is needed late."""
    if not module.path.startswith(f"{PACKAGE}/cli/"):
        return
    for function in ast.walk(module.tree):
        if isinstance(function, Function):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield f"{node.lineno}: an import inside of {function.name}"


def other_value(module: Module) -> Iterator[str]:
    """A class of values that is made neither by ``value.py`` nor by msgspec."""
    if module.path.startswith(tuple(OTHER_VALUES)):
        return
    for line, name in mentions(module.tree):
        if name in OTHER_MAKERS:
            yield f"{line}: {name}; use holdfast.value"


def broad_except(module: Module) -> Iterator[str]:
    """An except that swallows any exception and is not marked as meant."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ExceptHandler) or not is_broad(node) or raises_again(node):
            continue
        if not any(
            line == node.lineno and BROAD_EXCEPT_MARK.search(text) for line, _, text in module.comments()
        ):
            yield f"{node.lineno}: broad except without a `noqa: BLE001`"


def is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in {"Exception", "BaseException"})
        for kind in kinds
    )


def raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def mentions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Give line and name, as far as it can be read off, of what is used from a module or an object."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                for alias in names:
                    yield node.lineno, f"{module}.{alias.name}"
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                yield node.lineno, f"{owner}.{name}"
            case ast.Attribute(attr=name):
                yield node.lineno, f"(...).{name}"


FILE_RULES: list[Rule] = [too_long, long_function, no_docstring, empty_name]
SOURCE_RULES: list[Rule] = [
    prints,
    makes_tasks,
    makes_locks,
    sleeps,
    late_import,
    other_value,
    broad_except,
]


def complaints(rule: Rule, paths: list[str]) -> list[str]:
    """Give what a rule says about these files; one test for all, because a test costs more than a look."""
    return [f"{path}: {complaint}" for path in paths for complaint in rule(read(path))]


@pytest.mark.parametrize("rule", FILE_RULES, ids=lambda rule: rule.__name__)
def test_every_file_keeps(rule: Rule) -> None:
    """Size, docstring and name are what a newcomer meets first."""
    assert complaints(rule, SOURCES + TESTS) == []


@pytest.mark.parametrize("rule", SOURCE_RULES, ids=lambda rule: rule.__name__)
def test_the_source_keeps(rule: Rule) -> None:
    """Each of these was once the beginning of a lost exception, a race or a noise on a protocol stream."""
    assert complaints(rule, SOURCES) == []


def test_a_class_name_means_one_thing() -> None:
    """Whoever reads it in a log, a traceback or a review should not have to ask which one."""
    assert repeated_classes() == []


# The mirror of the source.


def test_there_is_a_source_to_look_at() -> None:
    """With a wrong path every rule above would be kept by nobody."""
    assert f"{PACKAGE}/__init__.py" in SOURCES


def is_public(path: str) -> bool:
    return not any(part.startswith("_") for part in Path(path).parts)


def mirror(path: str) -> str:
    """Give the test module that a source module has by default."""
    inside = Path(path).relative_to(PACKAGE)
    return (Path("tests/unit") / inside.with_name(f"test_{inside.name}")).as_posix()


def has_behaviour(module: Module) -> bool:
    """Whether there is a function that does something.  Values, enums and Protocols do nothing."""
    functions = [node for node in ast.walk(module.tree) if isinstance(node, Function)]
    return any(not is_empty(statement) for function in functions for statement in function.body)


def is_empty(statement: ast.stmt) -> bool:
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass)


def test_a_public_module_with_behaviour_has_its_test_module() -> None:
    """Who changes a module finds its tests from the path alone, or from one table."""
    modules = [path for path in SOURCES if is_public(path) and has_behaviour(read(path))]
    expected = [COVERED_BY.get(path, mirror(path)) for path in modules]

    assert [path for path in expected if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class C(Enum):\n    A = 1", False),
        ("class C(Protocol):\n    def f(self):\n        'Say.'\n    def g(self): ...", False),
        ("class C:\n    def f(self):\n        'Say.'\n        return 1", True),
        ("def f():\n    raise ValueError", True),
    ],
)
def test_behaviour_is_a_function_that_does_something(text: str, expected: bool) -> None:  # noqa: FBT001
    """A test of an enum repeats the enum, and a test of an interface has nothing to call."""
    assert has_behaviour(parse(f"{PACKAGE}/x.py", text)) is expected


def test_the_table_of_covered_modules_is_not_stale() -> None:
    """An entry for a module that has gone, or that has its own test module, misleads."""
    stale = [path for path in COVERED_BY if path not in SOURCES or (ROOT / mirror(path)).is_file()]

    assert stale == []


# The rules themselves.

LONG_BODY = "\n".join(["    pass"] * MAX_FUNCTION_LINES)
LONG_DOCSTRING = '    """Say.\n' + "\n" * MAX_FUNCTION_LINES + '    """'


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (too_long, "pass\n" * (MAX_FILE_LINES + 1)),
        (long_function, f"def f():\n{LONG_BODY}"),
        (long_function, f"class C:\n    async def f():\n{textwrap.indent(LONG_BODY, '    ')}"),
        (no_docstring, "x = 1"),
        (prints, "print('x')"),
        (makes_tasks, "asyncio.create_task(f())"),
        (makes_tasks, "asyncio.get_running_loop().create_task(f())"),
        (makes_tasks, "from asyncio import ensure_future"),
        (makes_locks, "lock = asyncio.Lock()"),
        (makes_locks, "from threading import Condition"),
        (sleeps, "await_ = asyncio.sleep(1)"),
        (sleeps, "from time import sleep"),
        (broad_except, "try: f()\nexcept Exception: g()"),
        (broad_except, "try: f()\nexcept (OSError, BaseException) as e: g()"),
        (broad_except, "try: f()\nexcept: g()"),
    ],
)
def test_a_rule_sees_what_breaks_it(rule: Rule, text: str) -> None:
    """A rule that stopped complaining would look like a house in order."""
    assert len(list(rule(parse(f"{PACKAGE}/engine/x.py", text)))) == 1


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (too_long, "# house: long because it is one table\n" + "pass\n" * MAX_FILE_LINES),
        (long_function, f"def f():\n    # house: long because it is one match\n{LONG_BODY}"),
        (long_function, f"def f():\n{LONG_DOCSTRING}\n    pass"),
        (makes_locks, "news = self.Lock()"),
        (sleeps, "self.sleep(1)"),
        (broad_except, "try: f()\nexcept Exception:  # noqa: BLE001\n    g()"),
        (broad_except, "try: f()\nexcept BaseException:\n    g()\n    raise"),
        (broad_except, "try: f()\nexcept OSError: g()"),
    ],
)
def test_a_rule_lets_pass_what_is_argued_or_meant(rule: Rule, text: str) -> None:
    """A rule that complains about good code teaches people to silence it."""
    assert list(rule(parse(f"{PACKAGE}/engine/x.py", text))) == []


@pytest.mark.parametrize("name", ["utils.py", "process_manager.py", "helpers/ring.py", "base.py"])
def test_a_name_that_says_nothing_is_seen(name: str) -> None:
    """Such a module takes in whatever has no place, and grows."""
    assert len(list(empty_name(parse(f"{PACKAGE}/{name}", "")))) == 1


def test_the_command_line_imports_at_the_top_of_its_modules() -> None:
    """Who imports late there has put something costly into the wrong module."""
    text = "if TYPE_CHECKING:\n    import a\ndef f():\n    import b\n    from c import d"

    assert len(list(late_import(parse(f"{PACKAGE}/cli/x.py", text)))) == 2
    assert list(late_import(parse(f"{PACKAGE}/engine/x.py", text))) == []


def test_values_are_declared_in_one_way_where_that_is_done() -> None:
    """A folder that has come so far stays there; the others are listed until they have."""
    text = "from dataclasses import dataclass\nfrom typing import NamedTuple"

    assert len(list(other_value(parse(f"{PACKAGE}/api/x.py", text)))) == 2
    assert list(other_value(parse(f"{PACKAGE}/engine/x.py", text))) == []


def test_only_the_command_line_prints_and_only_owners_make_tasks() -> None:
    """The exceptions are places, so that they need no mark in the code."""
    assert list(prints(parse(f"{PACKAGE}/cli/commands.py", "print('x')"))) == []
    assert list(makes_tasks(parse(f"{PACKAGE}/server/app.py", "asyncio.create_task(f())"))) == []
