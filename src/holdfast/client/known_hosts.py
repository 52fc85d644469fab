"""Servers that have a name on this machine: the configuration file, which may hold their tokens.

What must hold: a file with a token is readable by its owner alone, from the moment it exists.  One that
others can read is refused, so that nobody goes on using a token that is no secret.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.errors import BadRequest
from holdfast.value import value

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What no URL looks like, and what needs no quotes in a shell."""

_MOST_BYTES = 1 << 20
"""Bytes of a file: thousands of hosts."""

_TOKEN = re.compile(r"""(?:^|[{,.])\s*["']?token["']?\s*=""", re.MULTILINE)
"""A setting of a token, also in a file that is no TOML yet or any more."""

_SETTINGS = ("url", "token", "token-file")


@value
class KnownHost:
    """A server and how to be let in."""

    name: str
    url: str
    token: str | None = None
    token_file: str | None = None
    """The path of a file with the token."""


def is_name(text: str) -> bool:
    """Whether this is the name of a host rather than a URL."""
    return _NAME.fullmatch(text) is not None


def config_path(variables: Mapping[str, str]) -> str:
    """Return the path of the configuration file: ``$HOLDFAST_CONFIG``, or that of the platform."""
    if given := variables.get("HOLDFAST_CONFIG"):
        return given
    home = os.path.expanduser("~")
    folder = os.path.join(home, "Library", "Application Support") if sys.platform == "darwin" else ""
    folder = variables.get("XDG_CONFIG_HOME") or folder or os.path.join(home, ".config")
    return os.path.join(folder, "holdfast", "config.toml")


def read(path: str) -> dict[str, KnownHost]:
    """Return the hosts in the configuration file, by name; none if there is no file.

    Raises:
        BadRequest: It cannot be read, or has a token and others can read it.
    """
    text = _text(path)
    return _hosts(path, _parse(path, text)) if text else {}


def find(path: str, name: str) -> KnownHost:
    """Return the host of this name.

    Raises:
        BadRequest: There is none, or the file cannot be used.
    """
    found = read(path).get(name)
    if found is None:
        raise BadRequest(
            f"no host is named {name!r} in {path}; 'holdfast hosts' shows those that are,"
            " 'holdfast login --name NAME URL' adds one",
            field="url",
        )
    return found


def store(path: str, host: KnownHost) -> None:
    """Add a host to the file, or replace the one of its name; everything else stays as it is.

    Raises:
        BadRequest: The file cannot be read, or is written in a way that cannot be changed here.
        OSError: The file cannot be written.
    """
    lines = [f"[hosts.{_quoted(host.name)}]", f"url = {_quoted(host.url)}"]
    entry = {"url": host.url}
    for setting, given in (("token", host.token), ("token-file", host.token_file)):
        if given is not None:
            lines.append(f"{setting} = {_quoted(given)}")
            entry[setting] = given
    _change(path, host.name, "\n".join(lines) + "\n", entry)


def remove(path: str, name: str) -> None:
    """Remove a host from the file.

    Raises:
        BadRequest: There is none, or the file is written in a way that cannot be changed here.
        OSError: The file cannot be written.
    """
    find(path, name)
    _change(path, name, "", None)


# Reading.


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
            mode = os.fstat(file.fileno()).st_mode
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}", field="config") from None
    if len(data) > _MOST_BYTES:
        raise BadRequest(f"{path} is no configuration: it is larger than 1 MiB", field="config")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise BadRequest(f"{path} is no configuration: it is not UTF-8", field="config") from None
    if mode & 0o077 and _TOKEN.search(text):
        raise BadRequest(
            f"{path} holds a token, and others may read or change it: 'chmod 600 {path}' keeps them out",
            field="config",
        )
    return text


def _parse(path: str, text: str) -> dict[str, Any]:
    import tomllib  # Late: most commands need no configuration.

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadRequest(f"{path} is not TOML: {error}", field="config") from None


def _hosts(path: str, document: Mapping[str, Any]) -> dict[str, KnownHost]:
    entries = document.get("hosts", {})
    if not isinstance(entries, dict):
        raise BadRequest(f"{path}: hosts are written as [hosts.NAME]", field="config")
    return {name: _host(path, name, entry) for name, entry in entries.items()}


def _host(path: str, name: str, entry: Any) -> KnownHost:
    place = f"{path}: host {name!r}"
    if not is_name(name):
        raise BadRequest(f"{place}: a name has letters, digits, dots and dashes", field="config")
    if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
        raise BadRequest(f'{place} has no url = "ws://HOST:PORT"', field="config")
    for setting, given in entry.items():
        if setting not in _SETTINGS or not isinstance(given, str):
            known = ", ".join(_SETTINGS)
            raise BadRequest(f"{place}: {setting} is no setting; those are texts: {known}", field="config")
    token_file = entry.get("token-file")
    if token_file is not None:
        token_file = os.path.join(os.path.dirname(path), os.path.expanduser(token_file))
    return KnownHost(name, entry["url"], entry.get("token"), token_file)


# Writing.


def _change(path: str, name: str, section: str, entry: Mapping[str, str] | None) -> None:
    """Replace the section of a host, which is what ``entry`` says; None removes it."""
    path = os.path.realpath(path)  # A link to it stays one.
    if os.path.exists(path) and not os.path.isfile(path):
        raise BadRequest(f"{path} is no file, so no host can be kept in it", field="config")
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with _locked(os.path.dirname(path)):
        before = _text(path)
        document = _parse(path, before)
        _hosts(path, document)
        wanted = dict(document.get("hosts", {}))
        wanted.pop(name, None)
        kept = _without(before, name).rstrip()
        after = "\n\n".join(part for part in (kept, section) if part)
        if entry is not None:
            wanted[name] = dict(entry)
        # Sections may be written in ways that ``_without`` does not know.  So the result is read.
        is_right = {"hosts": {}, **_parse(path, after)} == {**document, "hosts": wanted}
        if not is_right:
            raise BadRequest(f"{path} has {name!r} in no section [hosts.{name}] of its own: edit the file")
        _write(path, after.rstrip() + "\n")


def _without(text: str, name: str) -> str:
    """Leave out the section of a host."""
    head = re.compile(rf"""\s*\[\s*["']?hosts["']?\s*\.\s*(["']?){re.escape(name)}\1\s*\]\s*(#.*)?""")
    lines = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = head.fullmatch(line.rstrip("\r\n")) is not None
        if not inside:
            lines.append(line)
    return "".join(lines)


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise BadRequest(f"{text!r} has characters that cannot be written to a configuration")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Keep others of us from writing a file in the folder, so that two changes at once are both kept."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _write(path: str, text: str) -> None:
    """Put a new file in the place of the old one, at once and readable by its owner only."""
    import tempfile

    fd, new = tempfile.mkstemp(prefix=".config-", dir=os.path.dirname(path))  # It has mode 0600.
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(fd)
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def default_name(url: str, known: Mapping[str, KnownHost]) -> str:
    """Return a name for the server at ``url``: the one that it has, or its host's, with the port if need be.

    Raises:
        BadRequest: The URL is none, or of a program, which has no name.
    """
    from . import address  # Late: what only reads names does without it.

    for host in known.values():
        if host.url == url:
            return host.name
    match address.parse(url):
        case address.TcpAddress(host=host_name, port=port):
            words, more = host_name, f"-{port}"
        case address.UnixAddress(path=path):
            words, more = os.path.splitext(os.path.basename(path))[0], "-socket"
        case _:
            raise BadRequest("a program needs a name: add --name NAME", field="name")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", words).strip("-._")[:48] or "host"
    return f"{name}{more}" if name in known else name
