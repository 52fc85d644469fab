"""The options of ``Host.start``, and the spec and routes that are made of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE, STDOUT
from typing import TYPE_CHECKING, TypedDict

from holdfast.model import PLAIN, EnvironmentPolicy, Inherit, Limits, ProcessTerms, Size, Spec, Stream
from holdfast.place import Naming
from holdfast.users import User
from holdfast.value import replace

if TYPE_CHECKING:
    from holdfast.recordings import HostRecording
    from holdfast.sandbox import Sandbox

Text = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""Types that stand for text of the operating system: arguments, paths, variables."""

INHERIT = EnvironmentPolicy(Inherit.ALL, ignore_default_excludes=True, exclude=(), set=(), include_only=())
"""Inherit all variables of the host, as with ``subprocess``."""


class Options(TypedDict, total=False):
    """The keyword arguments of ``Host.start``, which documents them."""

    name: str | None
    keep: bool
    cwd: Text | None
    env: Mapping[str, str] | None
    extra_env: Mapping[str, str | None] | None
    stdin: int | None
    stdout: int | None
    stderr: int | None
    terminal: Size | bool | None
    timeout: float | None
    idle_timeout: float | None
    grace: float
    output_limit: int | None
    truncate_output: bool
    drain: float | None
    retain: int | None
    limits: Limits | None
    env_policy: EnvironmentPolicy | None
    sandbox: Sandbox | None
    arg0: str | None
    idempotent: bool
    auto_remove: bool
    notify: str | None
    shell: bool
    record: str | HostRecording | None
    user: str | int | None


def arguments(argv: Sequence[Text] | Text, *, shell: str | None = None) -> list[str]:
    """Return the program and its arguments as ``str``.

    Args:
        shell: The program of the shell, if ``argv`` is a command line for one.

    Raises:
        TypeError: It is a single text and not a sequence; or for a shell the other way round.
    """
    if shell is not None:
        if not isinstance(argv, (str, bytes, os.PathLike)):
            raise TypeError("with shell=True a command is one text, like 'make test | tail'")
        return [shell, "-c", os.fsdecode(argv)]
    if isinstance(argv, (str, bytes, os.PathLike)):
        raise TypeError(
            "a command is a sequence, like ['ls', '-l']; for a text that a shell reads: shell=True"
        )
    return [os.fsdecode(argument) for argument in argv]


def terms_of(options: Options) -> ProcessTerms:
    """Return the terms on which the process is ended without a request.

    Raises:
        ValueError: Output is to be truncated, and there is no limit.
    """
    truncate = options.get("truncate_output", False)
    if truncate and options.get("output_limit") is None:
        raise ValueError("truncate_output needs output_limit: the bytes of output to keep")
    terms = ProcessTerms(
        timeout=options.get("timeout"),
        idle_timeout=options.get("idle_timeout"),
        grace=options.get("grace", 0.0),
        output=options.get("output_limit"),
        drain=options.get("drain"),
        limits=options.get("limits") or PLAIN.limits,
        truncate=truncate,
    )
    return PLAIN if terms == PLAIN else terms  # The engine compares it by identity.


def spec_of(argv: Sequence[str], options: Options, *, cwd: str) -> Spec:
    """Return what to start.

    Args:
        cwd: The directory of the host, to which the option ``cwd`` is relative.
    """
    env, policy = _variables(options)
    terminal, sandbox = options.get("terminal"), options.get("sandbox")
    directory = os.path.join(cwd, os.fsdecode(options.get("cwd") or cwd))
    return Spec(
        argv=argv,
        cwd=directory,
        env=env,
        env_policy=policy,
        terminal=Size() if terminal is True else terminal or None,
        stdin=_one_of("stdin", options.get("stdin"), (None, PIPE, DEVNULL)) == PIPE,
        arg0=options.get("arg0"),
        terms=terms_of(options),
        # One that forbids nothing is none, also where none can be kept.
        sandbox=sandbox.at(directory) if sandbox is not None and sandbox.confines else None,
        record=None if options.get("record") is None else _recording(options, directory),
        user=None if (user := options.get("user")) is None else User(str(user)),
    )


def _recording(options: Options, directory: str) -> HostRecording:
    """Return what is to be recorded; a path is relative to the directory of the process."""
    from holdfast.recordings import HostRecording

    asked = options["record"]
    assert asked is not None
    if not options.get("terminal"):
        raise ValueError("record needs terminal=True: what a terminal shows is recorded")
    terms = HostRecording(os.fspath(asked)) if isinstance(asked, (str, os.PathLike)) else asked
    return replace(terms, path=os.path.normpath(os.path.join(directory, terms.path)))


def naming_of(options: Options) -> Naming:
    """Return how the process can be found.

    Raises:
        ValueError: An option needs another one.
    """
    naming = Naming(
        name=options.get("name"),
        keep=options.get("keep", False),
        retain=options.get("retain"),
        idempotent=options.get("idempotent", False),
        auto_remove=options.get("auto_remove", False),
        notify=options.get("notify"),
    )
    if naming.idempotent and not (naming.name and naming.keep):
        raise ValueError("idempotent=True needs a name, and keep=True")
    if naming.auto_remove and not naming.keep:
        raise ValueError("auto_remove=True needs keep=True: other processes are forgotten anyway")
    return naming


def _variables(options: Options) -> tuple[Mapping[str, str | None], EnvironmentPolicy | None]:
    """Return the variables that are set, and which of the host's they are laid over."""
    env, policy, extra = options.get("env"), options.get("env_policy"), options.get("extra_env")
    if extra is None:
        return dict(env or {}), INHERIT if env is None and policy is None else policy
    if env is not None or policy is not None:
        raise ValueError(
            "extra_env is laid over all variables of the host: use it without env and env_policy"
        )
    return extra, INHERIT


def routes_of(options: Options) -> dict[Stream, Stream | None]:
    """Return for each stream where it is read; None if it is dropped."""
    stdout = _one_of("stdout", options.get("stdout", PIPE), (PIPE, DEVNULL))
    stderr = _one_of("stderr", options.get("stderr", PIPE), (PIPE, DEVNULL, STDOUT))
    to = Stream.STDOUT if stdout == PIPE else None
    if options.get("terminal"):
        return {Stream.PTY: to}
    return {Stream.STDOUT: to, Stream.STDERR: {PIPE: Stream.STDERR, DEVNULL: None, STDOUT: to}[stderr]}


_NAMES = {None: "None", PIPE: "PIPE", DEVNULL: "DEVNULL", STDOUT: "STDOUT"}


def _one_of(what: str, value: int | None, allowed: tuple[int | None, ...]) -> int:
    if value not in allowed:
        raise ValueError(f"{what} is one of {', '.join(_NAMES[each] for each in allowed)}, not {value!r}")
    return DEVNULL if value is None else value
