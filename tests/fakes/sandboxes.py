"""Servers with a sandbox of one kind, a scene to break out of, and what can be seen of it from outside."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.backends import LONG
from tests.fakes.client import PATH, Client, Message
from tests.fakes.server import PATIENCE
from tests.fakes.trees import USERS, Host, knowing

BACKENDS = ("bubblewrap", "landlock")
EVERY_SETUP = [(backend, name) for backend in BACKENDS for name in USERS]
"""Each sandbox backend with the rights of each user: the two keep root and others in by different means."""
SETUPS = [
    (backend, name)
    for at, backend in enumerate(BACKENDS)
    for name in (USERS if LONG else (USERS[at % len(USERS)],))
]
"""For what takes long: each sandbox backend with one user, and each user with one sandbox backend."""
PROTECTED = (".git", ".agents", ".codex", ".aws")

INTRUDER = str(Path(__file__).with_name("intruder.py"))

READ_ALL: Message = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
MINIMAL: Message = {"path": {"type": "special", "value": {"kind": "minimal"}}, "access": "read"}
PROJECT: Message = {"path": {"type": "special", "value": {"kind": "project_roots"}}, "access": "write"}


def uri(path: Path | str) -> str:
    return f"file://{path}"


def entry(path: Path | str, access: str, **more: str) -> Message:
    return {"path": {"type": "path", "path": uri(path)}, "access": access, **more}


def glob(pattern: str) -> Message:
    return {"path": {"type": "glob_pattern", "pattern": pattern}, "access": "deny"}


def policy(*entries: Message, roots: tuple[Path, ...] = (), network: bool = False, **more: Any) -> Message:
    """A sandbox as it is asked for."""
    return {
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": list(entries)},
            "network": "enabled" if network else "restricted",
        },
        "workspaceRoots": [uri(root) for root in roots],
        "windowsSandboxLevel": "disabled",
        **more,
    }


def workspace(*roots: Path, **more: Any) -> Message:
    """Everything can be read, the roots can be written."""
    return policy(READ_ALL, PROJECT, roots=roots, **more)


# Servers.


@dataclass
class ConfiningServer:
    """A server that confines commands with one sandbox backend."""

    backend: str
    """The name of that."""
    host: Host
    info: Message
    """What it says that they are worth."""

    @property
    def url(self) -> str:
        return self.host.url

    @property
    def uid(self) -> int:
        return os.getuid() if self.host.user.uid is None else self.host.user.uid

    @property
    def is_hard(self) -> bool:
        return bool(self.info["protectsSubpaths"] == "hard")

    def python(self, *arguments: str) -> list[str]:
        return [self.host.python, "-I", "-S", "-B", "-W", "ignore", *arguments]

    def admits(self, word: str) -> bool:
        """Whether it says of itself that this is a weakness."""
        return any(word in weakness for weakness in self.info["weaknesses"])


async def confining_server(backend: str, host: Host) -> ConfiningServer:
    """What the server says of itself; skips the test if it has no such sandbox."""
    async with knowing(host.url) as talking:
        info = await talking.call("environment/info")
    found = info["capabilities"]["holdfast"]["sandbox"]
    if found["backend"] != backend:
        pytest.skip(f"no {backend} here: {found['reason']}")
    return ConfiningServer(backend, host, found)


# A scene.


@dataclass(frozen=True)
class Scene:
    """A workspace, and beside it what must not be touched."""

    base: Path
    uid: int

    @property
    def work(self) -> Path:
        return self.base / "work"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def victim(self) -> Path:
        return self.outside / "victim"

    @property
    def config(self) -> Path:
        return self.work / ".git" / "config"

    def give(self) -> None:
        """Everything is the user's."""
        for top, directories, files in os.walk(self.base):
            for found in [top, *(os.path.join(top, name) for name in directories + files)]:
                os.chown(found, self.uid, self.uid, follow_symlinks=False)

    def outside_facts(self) -> dict[str, Any]:
        return facts(self.outside)

    def protected_facts(self) -> dict[str, Any]:
        """What is below the protected names, and whether the workspace is where it was."""
        found: dict[str, Any] = {".": os.stat(self.work).st_ino}
        for name in PROTECTED:
            found |= {f"{name}/{path}": fact for path, fact in facts(self.work / name).items()}
        return found

    def has_masks(self) -> list[str]:
        """Protected names that are there and were not."""
        return [name for name in PROTECTED[1:] if os.path.lexists(self.work / name)]


def facts(top: Path) -> dict[str, Any]:
    """Everything that can be seen of a directory and what is below it, but for when it was read."""
    found = {}
    paths = [top] if os.path.lexists(top) else []
    while paths:
        path = paths.pop()
        info = os.lstat(path)
        content = ""
        if stat.S_ISREG(info.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        elif stat.S_ISLNK(info.st_mode):
            content = os.readlink(path)
        elif stat.S_ISDIR(info.st_mode):
            paths += path.iterdir()
        attributes = {
            name: os.getxattr(path, name, follow_symlinks=False)
            for name in os.listxattr(path, follow_symlinks=False)
        }
        found[str(path.relative_to(top))] = (
            info.st_ino, info.st_mode, info.st_uid, info.st_gid, info.st_nlink, info.st_mtime_ns, content,
            attributes,
        )  # fmt: skip
    return found


@contextlib.contextmanager
def scene(uid: int, *, git: bool = True) -> Iterator[Scene]:
    """A workspace of a user's, taken away at the end."""
    made = Scene(Path(tempfile.mkdtemp(prefix="scene-")), uid)
    try:
        made.base.chmod(0o755)
        made.work.mkdir()
        made.outside.mkdir()
        made.victim.write_text("whole\n")
        (made.outside / "empty").mkdir()
        (made.work / "file").write_text("of the command\n")
        (made.work / "sub").mkdir()
        (made.work / "out").symlink_to("../outside")
        (made.work / "out-file").symlink_to("../outside/victim")
        if git:
            (made.work / ".git" / "hooks").mkdir(parents=True)
            made.config.write_text("[core]\n")
            (made.work / ".git" / "empty").mkdir()
        made.give()
        yield made
    finally:
        _remove(made.base)


def _remove(top: Path) -> None:
    def passed_over(_: object, path: str, raised: tuple[type[BaseException], BaseException, object]) -> None:
        # What a sandbox takes away itself is gone a moment later.
        if raised[0] is not FileNotFoundError:
            raise raised[1]

    shutil.rmtree(top, onerror=passed_over)


# Commands.


@dataclass(frozen=True)
class Told:
    """What is known of a command at its end."""

    exit: Message
    output: bytes
    errors: bytes

    @property
    def code(self) -> int:
        code: int = self.exit["exitCode"]
        return code

    @property
    def denied(self) -> bool:
        denied: bool = self.exit["sandboxDenied"]
        return denied

    @property
    def denials(self) -> list[tuple[str, str, int]]:
        return [(one["op"], one["path"], one["count"]) for one in self.exit.get("denials", [])]

    @property
    def ops(self) -> set[tuple[str, str]]:
        return {(op, path) for op, path, _ in self.denials}

    @property
    def kind(self) -> str:
        kind: str = self.exit["outcome"]["kind"]
        return kind


async def told_of(talking: Client, name: str, *, within: float = PATIENCE) -> Told:
    """Wait until a process has closed."""
    tale = await talking.closed(name, within=within)
    (end,) = (params for kind, params in tale.events if kind == "exited")
    return Told(end, tale.data("stdout", "pty"), tale.data("stderr"))


async def run(
    talking: Client,
    sandbox: Message | None,
    *argv: str,
    name: str = "p",
    within: float = PATIENCE,
    **options: Any,
) -> Told:
    """Start a command and wait for its end."""
    if sandbox is not None:
        options["sandbox"] = sandbox
    await talking.start(name, *argv, **options)
    return await told_of(talking, name, within=within)


async def sh(talking: Client, sandbox: Message | None, script: str, **options: Any) -> Told:
    return await run(talking, sandbox, "/bin/sh", "-c", script, **options)


def json_of(told: Told) -> Any:
    """The last line of the output, which is JSON."""
    lines = told.output.splitlines()
    assert lines, f"it said nothing; exit {told.code}: {told.errors.decode()}"
    return json.loads(lines[-1])


async def intrude(
    talking: Client,
    confining: ConfiningServer,
    sandbox: Message | None,
    way: str,
    about: Message,
    **options: Any,
) -> Message:
    """Try one way out; gives what the intruder says of it."""
    argv = confining.python(INTRUDER, way, json.dumps(about))
    told = await run(talking, sandbox, *argv, env={"PATH": PATH}, **options)
    said = json_of(told)
    assert isinstance(said, dict)
    return said


async def intrude_all(
    talking: Client,
    confining: ConfiningServer,
    sandbox: Message | None,
    jobs: list[tuple[str, Message]],
    **options: Any,
) -> dict[str, Message]:
    """Try several ways, one after the other; gives what the intruder says of each."""
    argv = confining.python(INTRUDER, "all", json.dumps(jobs))
    said = json_of(await run(talking, sandbox, *argv, within=19, **options))
    return dict(zip((way for way, _ in jobs), said, strict=True))


@contextlib.contextmanager
def scenes(uid: int, names: Iterable[str], *, git: bool = True) -> Iterator[dict[str, Scene]]:
    """One for each name."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(scene(uid, git=git)) for name in names}


@contextlib.asynccontextmanager
async def talk(url: str) -> AsyncIterator[Client]:
    async with knowing(url) as talking:
        yield talking
