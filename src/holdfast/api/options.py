"""What may be said of a start besides the command, and what it comes to (pure)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE, STDOUT
from typing import TYPE_CHECKING, TypedDict

from holdfast.model import PLAIN, EnvPolicy, Inherit, Limits, Size, Spec, Stream, Terms

if TYPE_CHECKING:
    from holdfast.sandbox import Sandbox

Text = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""What the operating system takes as text: arguments, paths, variables."""

INHERIT = EnvPolicy(Inherit.ALL, ignore_default_excludes=True, exclude=(), set=(), include_only=())
"""All variables of the host, as with ``subprocess``."""


class Options(TypedDict, total=False):
    """The keywords of ``Host.start``, which are explained there."""

    name: str | None
    keep: bool
    cwd: Text | None
    env: Mapping[str, str] | None
    stdin: int | None
    stdout: int | None
    stderr: int | None
    terminal: Size | bool | None
    timeout: float | None
    idle_timeout: float | None
    grace: float
    output_limit: int | None
    drain: float | None
    retain: int | None
    limits: Limits | None
    env_policy: EnvPolicy | None
    sandbox: Sandbox | None
    arg0: str | None


def arguments(argv: Sequence[Text]) -> list[str]:
    """A command as text.

    Raises:
        TypeError: It is one text, and nobody knows where to cut it.
    """
    if isinstance(argv, (str, bytes, os.PathLike)):
        raise TypeError("a command is a sequence, like ['ls', '-l']; for a shell's: create_subprocess_shell")
    return [os.fsdecode(argument) for argument in argv]


def terms_of(options: Options) -> Terms:
    """When to end it."""
    terms = Terms(
        timeout=options.get("timeout"),
        idle_timeout=options.get("idle_timeout"),
        grace=options.get("grace", 0.0),
        output=options.get("output_limit"),
        drain=options.get("drain"),
        limits=options.get("limits") or PLAIN.limits,
    )
    return PLAIN if terms == PLAIN else terms  # The engine knows it by its identity.


def spec_of(argv: Sequence[str], options: Options, *, cwd: str) -> Spec:
    """What to start.

    Args:
        cwd: The directory of the host, to which that of the command is relative.
    """
    env, policy = options.get("env"), options.get("env_policy")
    terminal = options.get("terminal")
    return Spec(
        argv=argv,
        cwd=os.path.join(cwd, os.fsdecode(options.get("cwd") or cwd)),
        env=env or {},
        env_policy=INHERIT if env is None and policy is None else policy,
        terminal=Size() if terminal is True else terminal or None,
        stdin=_one_of("stdin", options.get("stdin"), (None, PIPE, DEVNULL)) == PIPE,
        arg0=options.get("arg0"),
        terms=terms_of(options),
        sandbox=options.get("sandbox"),
    )


def routes_of(options: Options) -> dict[Stream, Stream | None]:
    """Where each output is to be read; None: nowhere."""
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
