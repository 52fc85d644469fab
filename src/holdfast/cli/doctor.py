"""``holdfast doctor``: what works on this host, tried out, with a cure beside what does not."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from holdfast.host.groups import find_groups
from holdfast.host.pty import open_terminal
from holdfast.host.sandbox.ladder import Ladder
from holdfast.host.warden import compiled
from holdfast.model import Size
from holdfast.sandbox import Backing

_CURES = {
    "no compiler": "install a C compiler (gcc or clang) and install holdfast again",
    "no bwrap": "install bubblewrap (Debian, Ubuntu, Fedora: the package is called bubblewrap)",
    "no namespaces": (
        "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, or"
        " kernel.apparmor_restrict_unprivileged_userns=0; in a container: run it with --security-opt"
        " seccomp=unconfined or a profile that allows clone and unshare"
    ),
    "no landlock": "use a kernel from 6.2 on, with landlock among the names in /sys/kernel/security/lsm",
    "no groups": "run the server in a control group that it may write to (systemd: Delegate=yes)",
    "no terminals": "mount devpts at /dev/pts",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried."""

    name: str
    works: bool
    needed: bool
    """Whether something that clients rely on is missing without it."""
    detail: str
    cure: str = ""


def doctor(arguments: argparse.Namespace) -> int:
    """Print what was found; return 1 if something is missing that clients rely on."""
    findings = list(examine())
    if arguments.output == "json":
        json.dump([asdict(finding) for finding in findings], sys.stdout, indent=2)
        print()
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            word = "ok" if finding.works else "MISSING" if finding.needed else "no"
            print(f"{word:8}{finding.name:{width}}  {finding.detail}")
            if finding.cure:
                print(f"{'':8}{'':{width}}  cure: {finding.cure}")
    return int(any(finding.needed and not finding.works for finding in findings))


def examine() -> Iterator[Finding]:
    """Try everything."""
    nursery = compiled()
    yield Finding(
        "nursery",
        works=nursery is not None,
        needed=False,
        detail=nursery or "not compiled: its Python form is used, which is slower and sees no denials",
        cure="" if nursery else _CURES["no compiler"],
    )
    yield _terminals()
    yield _groups()
    yield from _sandboxes(nursery)


def _terminals() -> Finding:
    try:
        fd, path = open_terminal(Size())
    except OSError as error:
        return Finding("terminals", False, True, str(error), _CURES["no terminals"])
    os.close(fd)
    return Finding("terminals", True, True, f"for example {os.fsdecode(path)}")


def _groups() -> Finding:
    groups = find_groups()
    names = ", ".join(sorted(groups.controllers))
    groups.close()
    if names:
        return Finding("control groups", True, False, f"limits of {names} are kept by the kernel")
    detail = "limits of memory and processes are looked after every 50 ms instead"
    return Finding("control groups", False, False, detail, _CURES["no groups"])


def _sandboxes(nursery: str | None) -> Iterator[Finding]:
    ladder = Ladder(nursery)
    best = ladder.guarantees
    for way, reason in ladder.findings.items():
        cure = _cure(way, nursery) if reason else ""
        yield Finding(f"sandbox: {way.value}", not reason, False, reason or "works", cure)
    if best.backing is None:
        detail, cure = "none: whoever asks for a sandbox is refused", "see above: one of the two is enough"
        yield Finding("sandboxes", False, True, detail, cure)
    else:
        exact = "seen by a witness" if best.exact else "guessed from the output"
        protection = best.protection.name.lower()
        detail = f"kept by {best.backing.value}; protection of subpaths: {protection}; denials: {exact}"
        yield Finding("sandboxes", True, True, detail)
        for weakness in best.weaknesses:
            yield Finding("  but", True, False, weakness)
    ladder.close()


def _cure(way: Backing, nursery: str | None) -> str:
    if way is Backing.LANDLOCK:
        return _CURES["no landlock"]
    if nursery is None:
        return _CURES["no compiler"]
    return _CURES["no bwrap" if shutil.which("bwrap") is None else "no namespaces"]
