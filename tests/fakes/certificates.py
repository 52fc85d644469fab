"""Certificates that are good for nothing but tests: an authority, and a server on this host."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

OPENSSL = shutil.which("openssl")


@dataclass(frozen=True)
class Authority:
    """Paths of what an authority has made."""

    root: str
    """What clients have to trust."""
    certificate: str
    key: str
    both: str
    locked: str
    """The key, with a passphrase."""
    stranger: str
    """A key that belongs to no certificate."""

    def trusting(self) -> ssl.SSLContext:
        """A client that knows the authority."""
        return ssl.create_default_context(cafile=self.root)


def authority(directory: Path) -> Authority:
    """A new one, with a certificate for loopback addresses; without openssl the test is skipped."""
    if OPENSSL is None:
        pytest.skip("there is no openssl to make certificates with")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")

    def made(name: str) -> str:
        return str(directory / name)

    def openssl(*arguments: str) -> None:
        subprocess.run([OPENSSL or "", *arguments], check=True, capture_output=True, timeout=60)

    usage = "keyUsage=critical,keyCertSign,cRLSign"
    openssl(
        *("req", "-x509", *curve, "-subj", "/CN=test authority", "-addext", usage),
        *("-keyout", made("root.key"), "-out", made("root.pem")),
    )
    names = "subjectAltName=IP:127.0.0.1,IP:::1,DNS:localhost"
    openssl(
        *("req", "-x509", *curve, "-subj", "/CN=test server", "-addext", names),
        *("-addext", "basicConstraints=critical,CA:FALSE"),
        *("-CA", made("root.pem"), "-CAkey", made("root.key")),
        *("-keyout", made("server.key"), "-out", made("server.pem")),
    )
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", made("stranger.key"))
    openssl(
        *("ec", "-in", made("server.key"), "-aes128", "-passout", "pass:secret", "-out", made("locked.key"))
    )
    both = directory / "both.pem"
    both.write_text((directory / "server.key").read_text() + (directory / "server.pem").read_text())
    return Authority(
        root=made("root.pem"),
        certificate=made("server.pem"),
        key=made("server.key"),
        both=str(both),
        locked=made("locked.key"),
        stranger=made("stranger.key"),
    )
