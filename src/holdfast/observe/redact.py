"""What must not be written down: secrets in the arguments of commands (pure).

A rule of thumb by nature: a program may be given a secret in a way that nobody can
tell, such as ``-pSECRET`` or ``curl -u name:SECRET``.  Values of variables are never
written, so that is the way to hand one over.

Where it is not clear how far a value goes, too much is hidden rather than too little.
Every text is gone through once, however it is made up: clients choose them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.wildcards import STAR, Wildcards

HIDDEN = "[redacted]"

SECRET_NAMES = (
    "*key*",
    "*secret*",
    "*token*",
    "*passw*",
    "*passphrase*",
    "*credential*",
    "*auth*",
    "*cookie*",
    "*jwt*",
)
"""Names whose values are secret: of variables, options and headers, in whatever case."""

_LONGEST = 1024
"""Characters of one argument that are written down."""

_MOST = 64
"""Arguments of one command that are written down."""

_USER_INFO = re.compile(r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]*+://)[^/?#\s]*@", re.IGNORECASE)
"""What stands before the host in a URL: a name and a password."""

_NAME = re.compile(r"""(?<![\w.-])([\w.-]++)(\\*+["']?+\s*+[=:]\s*+)""")
"""``TOKEN=``, ``--token=``, ``Authorization:``, ``"password":``, also with its quotes escaped."""

_VALUE = re.compile(
    r"""
    (\\++)(["']) .*? (?:(?<!\\)\1\2|\Z)                         # \"x\": a text in a text
    | (?: "(?:[^"\\]|\\.)*+(?:"|\\?\Z) | '[^']*+(?:'|\Z) )      # "x" or 'x', and what is joined to it
      (?: "(?:[^"\\]|\\.)*+(?:"|\\?\Z) | '[^']*+(?:'|\Z) | [^\s"',;&|)}\]] )*+
    | (?: (?:bearer|basic|digest|token|negotiate|apikey) \s++ )?+
      (?: \\. | "(?:[^"\\]|\\.)*+(?:"|\\?\Z) | '[^']*+(?:'|\Z) | [^\s"'\\] | \\\Z )*+
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""How far a value goes in the middle of a text."""

_CODE = re.compile(r"-[a-z]*c")
"""An option whose value is a program: more than a name and a value, though it may begin like that."""

_OPTION = re.compile(r"--?([\w.-]+)")
"""An option whose value may be the next argument."""


class Redaction:
    """The rules of one log."""

    def __init__(self, more: Sequence[str] = ()) -> None:
        """``more`` are further patterns of names: ``*`` is any run of letters, digits, dots and dashes."""
        every = [pattern.lower() for pattern in (*SECRET_NAMES, *more)]
        # Most ask for a word anywhere: those are found without looking at each character.
        self._words = re.compile("|".join(re.escape(each[1:-1]) for each in every if _is_word(each)))
        self._patterns = Wildcards([each for each in every if not _is_word(each)], special=STAR)

    def arguments(self, argv: Sequence[str]) -> list[str]:
        """The arguments of a command, as they may be written down."""
        shown: list[str] = []
        follows = code = False
        for argument in argv[:_MOST]:
            shown.append(HIDDEN if follows else self._text(argument, code=code))
            code = _CODE.fullmatch(argument) is not None
            option = _OPTION.fullmatch(argument[:_LONGEST])
            follows = option is not None and self._is_secret(option[1])
        if len(argv) > _MOST:
            shown.append(f"... {len(argv) - _MOST} more")
        return shown

    def text(self, text: str) -> str:
        """A text, as it may be written down."""
        return self._text(text, code=False)

    def _text(self, text: str, *, code: bool) -> str:
        # Cut first: the rest need not be looked through.
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        return _USER_INFO.sub(rf"\1{HIDDEN}@", self._without_values(short, code=code))

    def _without_values(self, text: str, *, code: bool) -> str:
        parts: list[str] = []
        done = at = 0
        while (found := _NAME.search(text, at)) is not None:
            at = found.end()
            if self._is_secret(found[1].lstrip("-")):
                parts += (text[done:at], HIDDEN)
                done = at = _end_of_value(text, found, code=code)
        return "".join((*parts, text[done:]))

    def _is_secret(self, name: str) -> bool:
        lower = name.lower()
        return self._words.search(lower) is not None or self._patterns.matches(lower)


def _end_of_value(text: str, name: re.Match[str], *, code: bool) -> int:
    """Where the value ends that stands behind a name."""
    begin, end = name.span()
    quote = text[begin - 1 : begin]
    if not begin and not code and not set(name[2]) & {'"', "'"}:
        return len(text)  # Nothing but the name and its value, blanks included.
    if quote in ('"', "'") and quote not in name[2]:
        # Both of them are in quotes.
        close = text.find(quote, end)
        return len(text) if close < 0 else close
    found = _VALUE.match(text, end)
    assert found is not None  # It may be empty.
    return found.end()


def _is_word(pattern: str) -> bool:
    return pattern.count("*") == 2 and pattern.startswith("*") and pattern.endswith("*")
