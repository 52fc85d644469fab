"""What people call a process, beside the identifier that it has for ever (pure).

An identifier means one process and is never used again.  An alias (on the wire and for users: its name)
means the process that got it last: once that has ended, another may have it.
"""

from __future__ import annotations

import secrets

LONGEST = 200
"""Characters of an alias.  Nobody types a longer one, and it would fill every list."""

LEAST_PREFIX = 4
"""Characters of an identifier from which on its beginning means it: fewer are typed by mistake."""


class Aliases:
    """The aliases of processes, all in one scope.

    What must hold: an alias leads to the process that is starting under it; if there is none, to the one that
    was started last, running or ended, for as long as that is known.
    """

    __slots__ = ("_aliases", "_held", "_reserved")

    def __init__(self) -> None:
        self._held: dict[str, str] = {}  # Identifiers by alias.
        self._reserved: dict[str, str] = {}  # Of processes that are starting, likewise.
        self._aliases: dict[str, str] = {}  # Aliases by identifier.

    def reserve(self, alias: str, identifier: str) -> None:
        """Take an alias for a process that is starting."""
        self._reserved[alias] = identifier
        self._aliases[identifier] = alias

    def settle(self, identifier: str) -> None:
        """The process runs: its alias means it from now on, and no longer one that has ended."""
        alias = self._aliases.get(identifier)
        if alias is not None and self._reserved.get(alias) == identifier:
            del self._reserved[alias]
            self._held[alias] = identifier

    def release(self, identifier: str) -> None:
        """The process is forgotten, or was never started."""
        alias = self._aliases.pop(identifier, None)
        if alias is None:
            return
        for table in (self._reserved, self._held):
            if table.get(alias) == identifier:
                del table[alias]

    def find(self, alias: str) -> str | None:
        """Return the identifier of the process that the alias means; None if there is none."""
        return self._reserved.get(alias) or self._held.get(alias)


def complaint(alias: str) -> str | None:
    """Return what is wrong with an alias; None if nothing is."""
    if not 0 < len(alias) <= LONGEST:
        return f"a name has 1 to {LONGEST} characters"
    if not alias.isprintable():
        return "a name has characters that can be typed only"
    return None


# Names that nobody has chosen.


def coin() -> str:
    """Return a name that can be said and typed, such as ``brisk-otter``.  The next one may be the same."""
    return f"{secrets.choice(_ADJECTIVES)}-{secrets.choice(_ANIMALS)}"


def coin_identifier() -> str:
    """Return an identifier for a process.  No two are ever the same, and nobody can guess one."""
    return secrets.token_hex(16)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ADJECTIVES = _words(
    "able agile airy alert amber ample apt arctic azure balmy bold brave breezy brief bright brisk calm "
    "candid careful cheery civil clean clear clever coastal cool copper coral cosy crisp curious daring "
    "deft early eager earnest easy even fair fast fine firm fleet fond frank free fresh frosty gentle "
    "glad golden grand green handy happy hardy hazel honest humble ideal ivory jolly keen kind lively "
    "loyal lucid lucky lunar mellow merry mild misty modest neat nimble noble novel open patient placid "
    "plain polite prime prompt proud pure quick quiet rapid ready robust rosy round royal rustic sage "
    "sandy serene sharp silent silver simple sleek smooth snowy sober solar solid spry stable steady "
    "still stout sturdy subtle sunny sure swift tender tidy true upbeat urban vast vivid warm wary wise "
    "witty young zesty "
)

_ANIMALS = _words(
    "adder badger bat bear beaver bee bison boar bream buck camel carp cat cicada civet cobra cod colt "
    "condor coot crab crane cricket crow deer dingo dog dolphin dove duck eagle eel egret eland elk emu "
    "falcon fawn ferret finch fox frog gannet gecko gibbon goat goose grouse gull hare hawk hen heron "
    "hippo hornet horse hyena ibex ibis iguana impala jackal jaguar jay kestrel kite kiwi koala krill "
    "lark lemur leopard linnet lion lizard llama lobster lynx magpie marlin marmot marten mink mole moose "
    "moth mule newt ocelot okapi orca oriole osprey otter owl ox oyster panda parrot pelican perch pigeon "
    "pike pony puffin puma quail rabbit raven robin rook salmon seal shrew skate sloth snail snipe "
    "sparrow squid stag stork swan swift tapir tern thrush tiger toad trout tuna turtle viper vole walrus "
    "wasp weasel whale wolf wombat wren yak zebra "
)
