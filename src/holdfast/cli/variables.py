"""Variables of a process, from ``--env-file`` and ``-e`` of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .report import Failure


def variables(
    own: Mapping[str, str], *, files: Iterable[str] = (), given: Iterable[str] = ()
) -> dict[str, str]:
    """Return the variables from ``--env-file`` and ``-e``.  Later ones win, ``given`` over ``files``.

    A name without a value takes its value from ``own``, and is left out if there is none.

    Args:
        own: Our own variables.
        files: Paths of files with a variable per line.
        given: ``NAME=VALUE`` or ``NAME``.

    Raises:
        Failure: A file cannot be read, or a line has no name.
    """
    overlay: dict[str, str] = {}
    for path in files:
        for place, line in _lines(path):
            _set(overlay, line, own, place)
    for one in given:
        _set(overlay, one, own, "-e")
    return overlay


def _set(overlay: dict[str, str], text: str, own: Mapping[str, str], place: str) -> None:
    name, mark, value = text.partition("=")
    if not name or "\0" in text or any(each.isspace() for each in name):
        raise Failure(f"{place}: {text!r} is not NAME=VALUE or NAME")
    if mark:
        overlay[name] = value
    elif name in own:
        overlay[name] = own[name]


def _lines(path: str) -> Iterable[tuple[str, str]]:
    """Yield the place and text of each line that is neither empty nor a comment."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
    except OSError as error:
        raise Failure(f"cannot read the file of variables {path}: {error.strerror}") from None
    # Not ``splitlines``, which also splits at characters that may be part of a value.
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        bare = line.strip()
        if bare and not bare.startswith("#"):
            yield f"{path}, line {number}", line.lstrip()
