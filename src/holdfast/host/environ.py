"""The environment of a child, computed from a policy (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from holdfast.model import EnvPolicy, Inherit
from holdfast.principal import matches

CORE = frozenset(
    ("PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER")
)
"""What ``Inherit.CORE`` takes over, in whatever case it is spelled."""

DEFAULT_EXCLUDES = ("*KEY*", "*SECRET*", "*TOKEN*")
"""Names that look like secrets.  Broad on purpose: MONKEY goes too."""

NEVER_INHERITED = frozenset(
    (
        "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
        "NODE_REPL_AUTH_TOKEN",
        "OPENAI_FEDERATION_RULE_ID",
        "OPENAI_IDENTITY_TOKEN_FILE",
        "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
        # What the server shows to whoever collects its telemetry.
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
        "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    )
)
"""Secrets of a server's own surroundings, which no child may see."""

_SERVER_ONLY = frozenset(("CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE",))
"""Removed at the very end only, as the protocol has it."""


class Environment:
    """The server's environment, and what children get of it."""

    def __init__(self, own: Mapping[str, str], *, withheld: Iterable[str] = ()) -> None:
        """``withheld`` names further variables that no child may inherit."""
        self._own = dict(own)
        self._withheld = NEVER_INHERITED | {name.upper() for name in withheld}
        # The server's environment is fixed, so equal policies have equal results.
        # Clients send the same policy with every start.
        self._inherited = lru_cache(maxsize=64)(self._inherit)

    def child(
        self,
        policy: EnvPolicy | None,
        overlay: Mapping[str, str | None],
        allowed: tuple[str, ...] | None = None,
    ) -> dict[str, str]:
        """The whole environment of a child; without a policy it is ``overlay`` alone.

        ``allowed`` are patterns of what may be inherited at all, whatever the policy says.
        """
        result = dict(self._inherited(policy)) if policy is not None else {}
        if allowed is not None:
            result = {name: value for name, value in result.items() if matches(name, allowed)}
        for name, value in overlay.items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = value
        return self._strip(result, self._withheld | _SERVER_ONLY)

    def _inherit(self, policy: EnvPolicy) -> dict[str, str]:
        match policy.inherit:
            case Inherit.ALL:
                result = dict(self._own)
            case Inherit.CORE:
                result = {name: value for name, value in self._own.items() if name.upper() in CORE}
            case Inherit.NONE:
                result = {}
        if not policy.ignore_default_excludes:
            result = _without(result, DEFAULT_EXCLUDES)
        result = _without(result, policy.exclude)
        result.update(policy.set)
        if policy.include_only:
            wanted = _matcher(policy.include_only)
            result = {name: value for name, value in result.items() if wanted.fullmatch(name)}
        return self._strip(result, self._withheld)

    @staticmethod
    def _strip(variables: dict[str, str], names: frozenset[str]) -> dict[str, str]:
        for name in [name for name in variables if name.upper() in names]:
            del variables[name]
        return variables


def _without(variables: dict[str, str], patterns: tuple[str, ...]) -> dict[str, str]:
    if not patterns:
        return variables
    unwanted = _matcher(patterns)
    return {name: value for name, value in variables.items() if not unwanted.fullmatch(name)}


def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for several patterns: ``*`` any run, ``?`` one character, the rest literal."""
    alternatives = (
        "".join({"*": ".*", "?": "."}.get(char) or re.escape(char) for char in pattern)
        for pattern in patterns
    )
    return re.compile("|".join(alternatives), re.IGNORECASE | re.DOTALL)
