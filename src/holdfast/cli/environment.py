"""Variables for a process, from ``-e`` and ``--env-file`` (pure, but for reading the file)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .failure import Failure


def variables(
    own: Mapping[str, str], *, files: Iterable[str] = (), given: Iterable[str] = ()
) -> dict[str, str]:
    """What is laid over the variables of the host, later ones over earlier ones, ``given`` over ``files``.

    ``NAME`` alone takes the value from ``own``, and is left out if there is none.

    Raises:
        Failure: A file cannot be read, or a line has no name.
    """
    laid: dict[str, str] = {}
    for path in files:
        for place, line in _lines(path):
            _lay(laid, line, own, place)
    for one in given:
        _lay(laid, one, own, "-e")
    return laid


def _lay(laid: dict[str, str], text: str, own: Mapping[str, str], place: str) -> None:
    name, mark, value = text.partition("=")
    if not name or "\0" in text or any(each.isspace() for each in name):
        raise Failure(f"{place}: {text!r} is not NAME=VALUE or NAME")
    if mark:
        laid[name] = value
    elif name in own:
        laid[name] = own[name]


def _lines(path: str) -> Iterable[tuple[str, str]]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError as error:
        raise Failure(f"cannot read the file of variables {path}: {error.strerror}") from None
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            yield f"{path}, line {number}", line.lstrip()
