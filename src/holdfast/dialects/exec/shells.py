"""What a login shell's profiles set up: how a shell writes it down, and how another one takes it over (pure).

A shell that has read its profiles writes one text: its options, the mask of its files, its functions, its
aliases and its variables.  Another shell, which reads no profile, evaluates that text before its command.

What must hold: a value that a request gave to the first shell reaches no other command, and what a request
gives to its own command is never overlaid.
"""

from __future__ import annotations

import re
import shlex
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from holdfast.dialects.scope import Room
from holdfast.errors import LimitReached
from holdfast.model import to_bytes, to_text
from holdfast.value import value

MOST = 512 * 1024
"""Bytes that a shell may write, and that another one may be given."""

_PIECE = 100_000
"""Bytes of one variable that carries a part of the text: the kernel takes 128 KiB of each."""

_CARRIER = "HOLDFAST_SHELL_STATE_"

_OWN = frozenset(("_", "SHLVL", "PWD", "OLDPWD", "SHELLOPTS", "BASHOPTS", "UID", "EUID", "PPID"))
"""Variables that a shell sets by itself, some of which nobody else may set."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class ShellKind(Enum):
    """Shells that can write down what they have read."""

    BASH = "bash"
    ZSH = "zsh"
    SH = "sh"


SHELLS = frozenset(kind.value for kind in ShellKind)
"""Their names on the wire."""

# Options come first, before they are changed so that the rest is surely written; variables come last, because
# nobody knows how many there are.  A backslash keeps an alias from taking the place of a command.
_BASH = r"""
\builtin printf '%s\0' "$0"; \set +o; \set +efux
\builtin printf '\0umask '; \umask
\builtin printf '\0'; \shopt -p
\builtin printf '\0'; \declare -f; \declare -Fx
\builtin printf '\0'; \alias -p
\builtin printf '\0'; \command -p env -0
\builtin printf '\0%s' "$0"
"""

_ZSH = r"""
\builtin printf '%s\0' "$0"; \set +o; \set +efux
\builtin printf '\0umask '; \umask
\builtin printf '\0\0'; \typeset -f
\builtin printf '\0'; \alias -L
\builtin printf '\0'; \command -p env -0
\builtin printf '\0%s' "$0"
"""

_SH = r"""
\command printf '%s\0' "$0"; \set +o; \set +efux
\command printf '\0umask '; \umask
\command printf '\0\0'; \command -v typeset >/dev/null && \typeset -f
\command printf '\0'; \alias
\command printf '\0'; \command -p env -0
\command printf '\0%s' "$0"
"""

_WRITE = {ShellKind.BASH: _BASH, ShellKind.ZSH: _ZSH, ShellKind.SH: _SH}

_PLAIN = {
    # Privileged until it has begun: otherwise it would read the file that BASH_ENV names.
    ShellKind.BASH: ("-pc", "set +o privileged; "),
    ShellKind.ZSH: ("-fc", ""),
    ShellKind.SH: ("-c", ""),
}
"""How a shell is started that reads no profile, and what it does first."""

_FIXED = re.compile(
    r"^set [-+]o (privileged|interactive|login\w*|monitor|restricted|shinstdin|singlecommand|stdin|zle|rcs"
    r"|globalrcs|norcs|noglobalrcs|nozle|nointeractive|nologin|nomonitor|noprivileged|nosinglecommand"
    r"|noshinstdin|norestricted)\n",
    re.MULTILINE,
)
"""Options that say how a shell was started, and that cannot be changed or must not."""


@value
class ShellState:
    """What the profiles of a login shell have set up."""

    variables: Mapping[str, str]
    """Those that commands inherit."""
    rest: str
    """The commands that restore everything else."""

    @property
    def size(self) -> int:
        return len(self.rest) + sum(len(name) + len(text) for name, text in self.variables.items())


class ShellSnapshots:
    """What the login shells of one session have read, by the conditions under which they did."""

    __slots__ = ("_kept", "_most", "_room", "ended", "pending")

    def __init__(self, room: Room, most: int) -> None:
        """``most`` are the states at once; ``room`` is what all sessions share."""
        self.pending: dict[bytes, Any] = {}
        """What tells of the end of a shell that is reading its profiles now."""
        self.ended = False
        """Whether the session is over."""
        self._room = room
        self._most = most
        # None where a shell has written nothing of use: it is not asked again.
        self._kept: OrderedDict[bytes, ShellState | None] = OrderedDict()

    def __contains__(self, key: bytes) -> bool:
        return key in self._kept

    def find(self, key: bytes) -> ShellState | None:
        """Return a state that is here."""
        self._kept.move_to_end(key)
        return self._kept[key]

    def keep(self, key: bytes, state: ShellState | None) -> None:
        """Remember a state for as long as there is room."""
        if self.ended:
            return
        try:
            self._room.take(_size(state))
        except LimitReached:
            return  # The next command reads the profiles again.
        self._kept[key] = state
        if len(self._kept) > self._most:
            self._room.give(_size(self._kept.popitem(last=False)[1]))

    def end(self) -> None:
        """Forget everything: the session is over."""
        self.ended = True
        self._room.give(sum(map(_size, self._kept.values())))
        self._kept.clear()


def _size(state: ShellState | None) -> int:
    return 256 + (0 if state is None else state.size)


def writing(shell: str, kind: ShellKind, marker: str) -> list[str]:
    """Return the arguments of a login shell that writes down its state, between two markers."""
    return [shell, "-lc", _WRITE[kind], marker]


def is_written(output: bytes | bytearray, marker: str) -> bool:
    """Whether the shell has written all of it; what else it says does not matter."""
    return b"\0" + marker.encode() in output


def read_state(
    kind: ShellKind, output: bytes, marker: str, given: Mapping[str, str | None]
) -> ShellState | None:
    """Return what a shell has written; None if it is not whole.

    Args:
        given: The variables of the request that started it.  They are its own: unless the profiles have
            changed one of them, it is left out.
    """
    _, found, text = output.partition(marker.encode() + b"\0")
    text, end, _ = text.rpartition(b"\0" + marker.encode())
    parts = text.split(b"\0", 5)
    if not found or not end or len(parts) < 6 or not parts[5]:
        return None
    options, mask, shopts, functions, aliases = map(to_text, parts[:5])
    variables = {
        name: text
        for name, is_one, text in (to_text(line).partition("=") for line in parts[5].split(b"\0"))
        if is_one and _NAME.fullmatch(name) and name not in _OWN and given.get(name) != text
    }
    if kind is ShellKind.SH:
        aliases = _aliases(aliases)
    # Functions are read with the options of patterns that they need, and before there are any aliases.  Last
    # come the options that show what is done from then on.
    settings = [f"\\{line}" for line in _FIXED.sub("", options).splitlines()]
    settings.sort(key=lambda line: (line.endswith(" xtrace"), line.endswith(" verbose")))
    return ShellState(variables, "\n".join((shopts, functions, mask, aliases, *settings)))


def _aliases(listed: str) -> str:
    """Return commands that define what a shell has listed, which need not be commands."""
    try:
        words = shlex.split(listed)
    except ValueError:
        return ""
    return "\n".join(f"alias {shlex.quote(word)}" for word in words if "=" in word and word[0] != "-")


def restoring(
    kind: ShellKind, state: ShellState, argv: Sequence[str], env: Mapping[str, str | None]
) -> tuple[list[str], dict[str, str | None]] | None:
    """Return arguments and variables for a command that takes over a state, and reads no profile.

    Args:
        argv: Shell, ``-lc``, command, and the command's own arguments.
        env: The variables of the request: they stay as they are.

    Returns:
        None if the state is too long to be handed over.
    """
    exports = (
        f"export {name}={shlex.quote(text)}" for name, text in state.variables.items() if name not in env
    )
    data = to_bytes("\n".join((*exports, state.rest)))
    if len(data) > MOST:
        return None
    # A character may be cut in two; the shell joins its bytes again.
    pieces = [to_text(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE)]
    carriers = {f"{_CARRIER}{number}": piece for number, piece in enumerate(pieces)}
    text = "".join(f"${{{name}}}" for name in carriers)
    option, first = _PLAIN[kind]
    command = (
        f'{first}if ! eval "unset {" ".join(carriers)};{text}" >/dev/null; then'
        " echo 'failed to restore the shell snapshot' >&2; fi\n"
        f"{argv[2]}"
    )
    return [argv[0], option, command, *argv[3:]], {**env, **carriers}
