"""What the host is like, for clients who ask."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import __version__
from holdfast.host.info import host_info, own_environment
from holdfast.model import HostInfo


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("TMPDIR", raising=False)


def test_the_facts_of_this_host() -> None:
    info = host_info()

    assert info == HostInfo(
        shell=pwd.getpwuid(os.getuid()).pw_shell,
        cwd=os.getcwd(),
        home="/home/somebody",
        temp="/tmp",
        temp_dirs=[],
        provider=info.provider,
        version=__version__,
    )


def test_the_provider_is_opaque_and_stays_the_same() -> None:
    """Clients compare it; the machine's own identifier is not theirs to know."""
    provider = host_info().provider

    assert re.fullmatch("sha256:[0-9a-f]{64}", provider)
    assert host_info().provider == provider
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        if os.path.exists(path):
            assert Path(path).read_text().strip() not in provider


@pytest.mark.parametrize(
    ("value", "temp", "dirs"),
    [
        ("/var/tmp", "/var/tmp", ["/var/tmp"]),
        ("/var/tmp/../x/", "/var/x", ["/var/x"]),
        ("below", "{cwd}/below", ["{cwd}/below"]),
        ("", "{cwd}", []),
    ],
)
def test_the_directory_for_temporary_files_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, temp: str, dirs: list[str]
) -> None:
    monkeypatch.setenv("TMPDIR", value)

    info = host_info()

    cwd = os.getcwd()
    assert (info.temp, info.temp_dirs) == (temp.format(cwd=cwd), [path.format(cwd=cwd) for path in dirs])


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_home_the_users_own_is_told(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", value)

    assert host_info().home == pwd.getpwuid(os.getuid()).pw_dir


def test_a_home_that_is_not_absolute_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "somewhere")

    assert host_info().home is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user that does not exist")
def test_a_user_nobody_knows_has_no_home_and_the_standard_shell() -> None:
    """Containers often run as such a user."""
    source = """if True:
        import hashlib, os  # Now: that user may not be able to read it.
        from holdfast.host.info import host_info
        os.environ.pop("HOME", None)
        os.setuid(54321)
        info = host_info()
        print(info.home, info.shell)
    """
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, check=True)

    assert result.stdout == b"None /bin/sh\n"


def test_the_servers_environment_is_told_whatever_bytes_are_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One variable that is not UTF-8 must not stop every start that inherits."""
    monkeypatch.setitem(os.environb, b"N\xff", b"v\xfe")

    environment = own_environment()

    assert environment["N\udcff"] == "v\udcfe"
    assert environment["HOME"] == "/home/somebody"


@pytest.mark.parametrize(("given", "told"), [({}, b"None"), ({"LC_CTYPE": "C.UTF-8"}, b"C.UTF-8")])
def test_a_locale_that_the_interpreter_set_for_itself_is_not_passed_on(
    given: dict[str, str], told: bytes
) -> None:
    """Children get what the server was given."""
    source = "from holdfast.host.info import own_environment; print(own_environment().get('LC_CTYPE'))"

    result = subprocess.run([sys.executable, "-c", source], capture_output=True, check=True, env=given)

    assert result.stdout.strip() == told
