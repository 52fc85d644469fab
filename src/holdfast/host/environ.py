"""The environment of a child, computed from a policy (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.config import EnvironmentLimits
from holdfast.errors import LimitReached
from holdfast.model import EnvironmentPolicy, Inherit, utf8_size
from holdfast.principal import variable_name, wildcards
from holdfast.value import value
from holdfast.wildcards import Wildcards

CORE = frozenset(
    ("PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER")
)
"""The variables that ``Inherit.CORE`` takes over; upper and lower case do not matter."""

DEFAULT_EXCLUDES = ("*KEY*", "*SECRET*", "*TOKEN*")
"""Patterns of names that look like secrets.  They are broad on purpose: MONKEY is excluded, too."""

NEVER_INHERITED = frozenset(
    (
        "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
        "NODE_REPL_AUTH_TOKEN",
        "OPENAI_FEDERATION_RULE_ID",
        "OPENAI_IDENTITY_TOKEN_FILE",
        "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
        # Credentials for the collector of the server's telemetry.
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
        "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    )
)
"""Secrets that the surroundings of a server give it, and that no child may see."""

_SERVER_ONLY = frozenset(("CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE",))
"""Variables with which the program that starts the server configures it."""

AT_ONCE = 4096
"""Characters that are compared with patterns on the event loop, in about a millisecond; threads take more."""

size = utf8_size
"""The bytes of an argument or a name, as the kernel counts them."""

_KEPT = 64
"""Selections that are cached for the next start with the same policy."""

_KEPT_CHARACTERS = 1024
"""Characters of all patterns of a policy that is cached: a client must not fill the cache at will."""


def check(
    policy: EnvironmentPolicy | None, overlay: Mapping[str, str | None], limits: EnvironmentLimits
) -> None:
    """Check that a request has no more variables and patterns than it may have.

    Raises:
        LimitReached: The variables or patterns are too many, or too long.
    """
    names = list(overlay)
    if policy is not None:
        names += [name for name, _ in policy.set]
        patterns = (*policy.exclude, *policy.include_only)
        if len(patterns) > limits.patterns:
            raise LimitReached("patterns of variables", limits.patterns, name="environment.patterns")
        if sum(map(size, patterns)) > limits.pattern_bytes:
            raise LimitReached(
                "bytes of patterns of variables", limits.pattern_bytes, name="environment.pattern_bytes"
            )
    if len(names) > limits.variables:
        raise LimitReached("variables of one process", limits.variables, name="environment.variables")
    if sum(map(size, names)) > limits.name_bytes:
        raise LimitReached(
            "bytes of the names of variables", limits.name_bytes, name="environment.name_bytes"
        )


@value
class _Selection:
    """The result of applying a policy to the server's own variables."""

    inherited: dict[str, str]
    wanted: Wildcards | None
    """Patterns of the names that a request may add; None if it may add any."""


class Environment:
    """The server's environment, from which those of children are computed."""

    def __init__(self, own: Mapping[str, str], *, withheld: Iterable[str] = ()) -> None:
        """
        Args:
            own: The variables of the server.
            withheld: Names of further variables that no child may inherit.
        """
        self._own = dict(own)
        self._size = sum(map(len, self._own))
        self._withheld = NEVER_INHERITED | {name.upper() for name in withheld} | _SERVER_ONLY
        # The server's environment is fixed, and clients send the same policy with every start.  Only what
        # comes from the server's own variables is cached, never what a request sets.
        self._kept: dict[object, _Selection] = {}

    def effort(self, policy: EnvironmentPolicy | None, allowed: tuple[str, ...] | None = None) -> int:
        """Return about how many characters ``child`` has to compare with patterns."""
        if policy is None:
            return 0
        given = sum(len(name) for name, _ in policy.set)
        steps = given if policy.include_only else 0
        if allowed is not None:
            steps += given + self._size
        if _key(policy) not in self._kept:
            steps += self._size + sum(map(len, policy.exclude)) + sum(map(len, policy.include_only))
        return steps

    def child(
        self,
        policy: EnvironmentPolicy | None,
        overlay: Mapping[str, str | None],
        allowed: tuple[str, ...] | None = None,
    ) -> dict[str, str]:
        """Return the whole environment of a child.  Takes as long as ``effort`` says; may run in a thread.

        Args:
            policy: Which variables of the server the child inherits; without one, none.
            overlay: Variables that the request sets, or removes by None.
            allowed: Patterns of the names that may be inherited at all, whatever the policy says.
        """
        result: dict[str, str] = {}
        if policy is not None:
            selection = self._selection(policy)
            result.update(selection.inherited)
            wanted = selection.wanted
            result.update((name, text) for name, text in policy.set if wanted is None or wanted.matches(name))
        if allowed is not None:
            allows = wildcards(allowed).matches
            result = {name: text for name, text in result.items() if allows(variable_name(name))}
        for name, text in overlay.items():
            if text is None:
                result.pop(name, None)
            else:
                result[name] = text
        for name in [name for name in result if variable_name(name).upper() in self._withheld]:
            del result[name]
        return result

    def _selection(self, policy: EnvironmentPolicy) -> _Selection:
        key = _key(policy)
        found = self._kept.get(key)
        if found is None:
            found = self._select(policy)
            if sum(map(len, (*policy.exclude, *policy.include_only))) <= _KEPT_CHARACTERS:
                if len(self._kept) >= _KEPT:
                    self._kept.clear()
                self._kept[key] = found
        return found

    def _select(self, policy: EnvironmentPolicy) -> _Selection:
        match policy.inherit:
            case Inherit.ALL:
                names = list(self._own)
            case Inherit.CORE:
                names = [name for name in self._own if name.upper() in CORE]
            case Inherit.NONE:
                names = []
        unwanted = policy.exclude if policy.ignore_default_excludes else DEFAULT_EXCLUDES + policy.exclude
        if names and unwanted:
            excluded = Wildcards(unwanted, ignore_case=True)
            names = [name for name in names if not excluded.matches(name)]
        wanted = Wildcards(policy.include_only, ignore_case=True) if policy.include_only else None
        if wanted is not None:
            names = [name for name in names if wanted.matches(name)]
        return _Selection({name: self._own[name] for name in names}, wanted)


def _key(policy: EnvironmentPolicy) -> object:
    """Return the parts of a policy that decide what is inherited; what it sets is not among them."""
    return policy.inherit, policy.ignore_default_excludes, policy.exclude, policy.include_only
