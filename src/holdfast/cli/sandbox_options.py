"""The options of ``run`` and ``exec`` that choose a sandbox, and the sandbox that they describe.

``--sandbox`` alone means ``workspace-write``.  That leaves no doubt: the value is one of three words, so that
a program behind the bare option is refused and never taken for a sandbox, nor run without one.
"""

from __future__ import annotations

import argparse

from holdfast.sandbox import Sandbox

from .report import Failure

_READ_ONLY, _WORKSPACE, _FULL_ACCESS = PRESETS = ("read-only", "workspace-write", "danger-full-access")
"""The words that clients of the reference know."""


def add_sandbox(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--sandbox",
        metavar="PRESET",
        nargs="?",
        const=_WORKSPACE,
        type=preset,
        help=(
            "what it may do: read-only (write nothing), workspace-write (write in its directory, /tmp and"
            " TMPDIR; .git stays as it is) or danger-full-access; alone, before another option or --, it"
            " means workspace-write"
        ),
    )
    parser.add_argument(
        "--writable",
        metavar="DIR",
        action="append",
        default=[],
        help="with workspace-write, a further directory to write in; relative to its own directory",
    )
    parser.add_argument(
        "--deny",
        metavar="GLOB",
        action="append",
        default=[],
        help="with a sandbox, what it cannot even read, such as '**/*.pem'; relative to its own directory",
    )
    parser.add_argument(
        "--network",
        action=argparse.BooleanOptionalAction,
        help="whether a sandbox has the network (default: only danger-full-access)",
    )
    parser.add_argument(
        "--no-tmp", action="store_true", help="with workspace-write, keep it out of /tmp and TMPDIR"
    )


def preset(text: str) -> str:
    """Check the name of a sandbox; an argparse ``type``."""
    if text not in PRESETS:
        words = f"{', '.join(PRESETS[:-1])} or {PRESETS[-1]}"
        raise argparse.ArgumentTypeError(
            f"{text!r} is no sandbox: take {words}; for a program of that name write '--sandbox -- {text}'"
        )
    return text


def sandbox_of(arguments: argparse.Namespace) -> Sandbox | None:
    """Return the sandbox that the options describe; None if there is none.

    Raises:
        Failure: They contradict each other.
    """
    chosen, network = arguments.sandbox, arguments.network
    _check(arguments)
    if chosen == _READ_ONLY:
        return Sandbox.read_only(network=bool(network), deny=arguments.deny)
    if chosen == _WORKSPACE:
        return Sandbox.workspace(
            write=arguments.writable, network=bool(network), deny=arguments.deny, tmp=not arguments.no_tmp
        )
    if chosen == _FULL_ACCESS and network is False:
        return Sandbox.full_access(network=False)
    return None


def _check(arguments: argparse.Namespace) -> None:
    chosen = arguments.sandbox
    given = {
        "--writable": bool(arguments.writable),
        "--no-tmp": arguments.no_tmp,
        "--deny": bool(arguments.deny),
        "--network": arguments.network is True,
        "--no-network": arguments.network is False,
    }
    for option in (name for name, is_given in given.items() if is_given):
        if chosen is None:
            raise Failure(f"{option} belongs to a sandbox: add --sandbox, or leave it out")
        if option in ("--writable", "--no-tmp") and chosen != _WORKSPACE:
            raise Failure(f"{option} means nothing with {chosen}: take --sandbox {_WORKSPACE}")
        if option == "--deny" and chosen == _FULL_ACCESS:
            raise Failure(f"--deny means nothing with {chosen}: take another --sandbox")
    if "" in (*arguments.writable, *arguments.deny):
        raise Failure("--writable and --deny name a path; one of them is empty")
