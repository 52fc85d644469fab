"""Who a client is, and what it may do: the values (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from .value import value
from .wildcards import STAR, Wildcards


@value
class Grant:
    """What a token allows.  None stands for no bound: all of it."""

    methods: tuple[str, ...] | None = None
    """Patterns of methods: ``*`` is any run of characters."""
    roots: tuple[str, ...] | None = None
    """Absolute paths: where processes may be started, and files be reached."""
    variables: tuple[str, ...] | None = None
    """Patterns of the variables that processes may have, inherited or set."""
    processes: int | None = None
    """Processes at once, over all connections."""
    retained_bytes: int | None = None
    """Output kept for them together.  Over it, whoever adds drops its own oldest."""
    connections: int | None = None
    """Connections at once."""
    sessions: int | None = None
    """Sessions at once, attached or not."""
    users: tuple[str, ...] = ()
    """Patterns of the users that processes may be started as, beside that of the server: by default none."""

    def allows_method(self, name: str) -> bool:
        return self.methods is None or matches(name, self.methods)

    def allows_variable(self, name: str) -> bool:
        """Whether a program may have a variable that is given to it under this name."""
        return self.variables is None or matches(variable_name(name), self.variables)

    def first_forbidden(self, names: Iterable[str]) -> str | None:
        """The first of these names under which no program may be given a variable, if there is one."""
        if self.variables is None:
            return None
        allowed = wildcards(self.variables)
        return next((name for name in names if not allowed.matches(variable_name(name))), None)

    def allows_path(self, path: str) -> bool:
        """Whether an absolute path without dots is at or below one of the roots, by its text alone."""
        return self.roots is None or any(is_below(path, root) for root in self.roots)


EVERYTHING = Grant()

Identity = tuple[str, str, bool]


@value
class Principal:
    """The person or program that a token was made for.

    Two tokens may mean the same one and allow different things.
    """

    name: str
    issuer: str = ""
    grant: Grant = EVERYTHING
    asked: bool = True
    """Whether it had to show a token.  No token names those who had not, not even one without a name."""

    def allows_user(self, name: str) -> bool:
        """Whether it may start processes as this user; its server's own is allowed to everybody.

        Whoever needs no token is the operator, or somebody whom the operator lets do everything.
        """
        return not self.asked or matches(name, self.grant.users)

    @property
    def identity(self) -> Identity:
        """What stays the same when the token is renewed."""
        return self.issuer, self.name, self.asked


ANYBODY = Principal("", asked=False)
"""The client of a listener that asks nobody for a token: whoever can reach it."""


def principal_of(identity: Identity) -> Principal:
    """The principal of that identity, of whom no token is at hand."""
    issuer, name, asked = identity
    return Principal(name, issuer, asked=asked) if asked else ANYBODY


def is_below(path: str, root: str) -> bool:
    """Whether a path is a directory, or in it; both absolute and without dots."""
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")


def variable_name(name: str) -> str:
    """What a program takes for the name of a variable that was given under this name.

    It is handed ``NAME=VALUE`` and looks for the first ``=``: the rest of a name that
    has one in it is part of the value.
    """
    return name.partition("=")[0]


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns is about this name, as it is spelled."""
    return wildcards(patterns).matches(name)


@lru_cache(maxsize=256)
def wildcards(patterns: tuple[str, ...]) -> Wildcards:
    """The patterns of a token, ready to be asked about many names."""
    return Wildcards(patterns, special=STAR)
