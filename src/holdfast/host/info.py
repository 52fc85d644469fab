"""Facts about this host, for clients that ask: its shell, its directories, an identifier."""

from __future__ import annotations

import contextlib
import os
import pwd

from holdfast import __version__
from holdfast.model import HostInfo, to_text

from .spawn import login_shell


def own_environment() -> dict[str, str]:
    """Return the server's environment, as text that stands for its bytes.

    If it has no locale, the interpreter sets ``LC_CTYPE`` for itself.  Children must not inherit that, so
    it is left out unless the kernel shows that the server was started with it.
    """
    variables = dict(os.environb)
    if b"LC_CTYPE" in variables:
        with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as file:
            if not any(each.startswith(b"LC_CTYPE=") for each in file.read().split(b"\0")):
                del variables[b"LC_CTYPE"]
    return {to_text(name): to_text(value) for name, value in variables.items()}


def host_info() -> HostInfo:
    """Return facts about this host, as they are now."""
    cwd = to_text(os.getcwdb())
    environment = own_environment()
    temp = environment.get("TMPDIR")
    temp_dir = os.path.normpath(os.path.join(cwd, temp)) if temp is not None else "/tmp"  # noqa: S108
    return HostInfo(
        shell=login_shell(),
        cwd=cwd,
        home=_home(environment),
        temp=temp_dir,
        temp_dirs=[temp_dir] if temp else [],
        provider=_provider(),
        version=__version__,
    )


def _home(environment: dict[str, str]) -> str | None:
    """Return the home directory of the server's user; None if nothing names an absolute one."""
    home = environment.get("HOME")
    if not home:
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return None
    return home if home.startswith("/") else None


def _provider() -> str:
    """Return an identifier of this host: a digest of the machine's own one, which clients must not learn."""
    machine = b""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path, "rb") as file:
                machine = file.read().strip()
            break
        except OSError:
            continue
    import hashlib  # Late: most programs never ask for this.

    digest = hashlib.sha256(b"holdfast provider\0" + (machine or os.uname().nodename.encode()))
    return f"sha256:{digest.hexdigest()}"
