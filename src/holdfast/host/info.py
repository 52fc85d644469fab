"""What the host is like, for clients who ask."""

from __future__ import annotations

import contextlib
import os
import pwd

from holdfast import __version__
from holdfast.model import HostInfo

from .environ import to_text
from .spawn import login_shell


def own_environment() -> dict[str, str]:
    """The server's environment, whatever bytes are in it.

    Without a locale in it the interpreter sets one for itself, which is nobody's
    wish for our children: what the kernel was given does not have it.
    """
    variables = dict(os.environb)
    if b"LC_CTYPE" in variables:
        with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as file:
            if not any(each.startswith(b"LC_CTYPE=") for each in file.read().split(b"\0")):
                del variables[b"LC_CTYPE"]
    return {to_text(name): to_text(value) for name, value in variables.items()}


def host_info() -> HostInfo:
    """Facts about this host, as they are now."""
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
    home = environment.get("HOME")
    if not home:
        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return None
    return home if home.startswith("/") else None


def _provider() -> str:
    """Derived from the machine's own identifier, which itself is not given away."""
    machine = b""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path, "rb") as file:
                machine = file.read().strip()
            break
        except OSError:
            continue
    import hashlib  # Late: not everybody asks who we are.

    digest = hashlib.sha256(b"holdfast provider\0" + (machine or os.uname().nodename.encode()))
    return f"sha256:{digest.hexdigest()}"
