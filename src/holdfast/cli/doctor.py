"""``holdfast doctor``: tries out what works on this host, and names the fix for what does not."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence

from holdfast import __version__
from holdfast.config import MIB
from holdfast.errors import HoldfastError, HostUnfit
from holdfast.host import arena_probe
from holdfast.host.files.watch import IN_CREATE, Inotify
from holdfast.host.info import host_info
from holdfast.host.sandbox.backends import SandboxProbe
from holdfast.host.sandbox.confinement import Confiner
from holdfast.host.shim import PROGRAM, compiled
from holdfast.host.tree import check_proc
from holdfast.model import Enforcer
from holdfast.sandbox import Sandbox
from holdfast.value import value

from .options import wants_json
from .report import in_colour, paint, printable
from .show import tell_json
from .trials import TrialResult, try_out

_PYTHON = (3, 11)

_FILES_EACH = 4
"""Descriptors that one process takes: two outputs, its input, its shim."""

_FILES_ENOUGH = 4096
"""Open files for about a thousand processes at once."""

_PROCESSES_ENOUGH = 1024
"""Processes for about 500 commands at once: each has a shim beside it."""

_SPACE_ENOUGH = 256 * MIB

_SHORT = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""Errors of a system that is short of a resource."""

_NO_FACTS: Mapping[str, object] = {}

_COLOURS = {"ok": "green", "no": "yellow", "FAILED": "red"}

_FIXES = {
    "python": "install Python 3.11 or later, and run make PYTHON=/path/to/it",
    "kernel": (
        "run Linux 5.3 or later; in a container, one with --security-opt seccomp=unconfined"
        " or a profile that allows pidfd_open"
    ),
    "unfit": (
        "install holdfast again on this machine: pip install --force-reinstall holdfast; where there is no"
        " wheel for it a C compiler helps (apt-get install gcc)"
    ),
    "program": "see forkServer, above: that has to work first",
    "processes": "raise what the message names: ulimit -n 65536, ulimit -u 65536, or more memory",
    "terminals": "mount -t devpts -o ptmxmode=666 devpts /dev/pts && ln -sf pts/ptmx /dev/ptmx",
    "proc": "mount -t proc proc /proc, without the option hidepid",
    "first": "see processes, above: that has to work first",
    "groups": (
        "run the server in a control group that it may write to: Delegate=yes in its systemd unit, or"
        " docker run --cgroupns=private with /sys/fs/cgroup writable"
    ),
    "resources": "LimitNOFILE=65536 and LimitCPU=infinity in the systemd unit of the server",
    "files": "ulimit -Hn 65536 in the shell that starts the server, or LimitNOFILE=65536 in its systemd unit",
    "tasks": "ulimit -u 65536, or TasksMax=65536 in the systemd unit, or docker run --pids-limit 65536",
    "watching": "sysctl -w fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288",
    "temporary": "set TMPDIR to a directory that the server's user may write to: export TMPDIR=/var/tmp",
    "space": "delete files there, or set TMPDIR to a directory on another disk",
    "durability": (
        "run Linux 5.11 or later, with ulimit -f unlimited and /proc mounted; in a container, one whose"
        " seccomp profile allows memfd_create, splice and sendfile"
    ),
    "sandboxes": "see the two above: one of them is enough",
    "presets": "see the fixes of bubblewrap and landlock, above: the first one that works keeps sandboxes",
}


@value
class Finding:
    """The result of one check."""

    name: str
    works: bool
    essential: bool
    """Whether clients rely on it."""
    detail: str
    fix: str | None = None
    """What to do about it; None if it works."""
    facts: Mapping[str, object] = _NO_FACTS
    """Details for programs that read the JSON."""
    weaknesses: Sequence[str] = ()
    """What is weaker than it could be, and cannot be changed on this host."""

    @property
    def word(self) -> str:
        """The result in one word."""
        return "ok" if self.works else "FAILED" if self.essential else "no"

    @property
    def title(self) -> str:
        """The name as people read it: ``open files`` for ``openFiles``."""
        return re.sub("[A-Z]", lambda letter: " " + letter[0].lower(), self.name)

    def document(self) -> dict[str, object]:
        """Return the finding as JSON."""
        return {
            "name": self.name,
            "works": self.works,
            "essential": self.essential,
            "detail": self.detail,
            "fix": self.fix,
            "weaknesses": list(self.weaknesses),
            "facts": dict(self.facts),
        }


def doctor(arguments: argparse.Namespace) -> int:
    """Print all findings; return 1 if something that clients rely on does not work."""
    findings = list(examine())
    broken = [finding for finding in findings if finding.essential and not finding.works]
    if wants_json(arguments):
        documents = [finding.document() for finding in findings]
        tell_json({"version": __version__, "works": not broken, "findings": documents})
    else:
        for line in lines(findings, colour=in_colour(sys.stdout)):
            print(printable(line))
        print()
        if broken:
            print(f"Clients rely on what does not work: {', '.join(each.title for each in broken)}.")
        else:
            print("Everything that clients rely on works.")
    return int(bool(broken))


def lines(findings: list[Finding], *, colour: bool = False) -> Iterator[str]:
    """Yield the lines of the findings, for people."""
    width = max(len(finding.title) for finding in findings)
    for finding in findings:
        word = f"{finding.word:6}"
        painted = paint(_COLOURS[finding.word], word) if colour else word
        yield f"{painted}  {finding.title:{width}}  {finding.detail}"
        margin = " " * (6 + 2 + width + 2)
        for weakness in finding.weaknesses:
            yield f"{margin}but: {weakness}"
        if finding.fix:
            yield f"{margin}fix: {finding.fix}"


def examine() -> Iterator[Finding]:
    """Yield the findings, each as soon as it is known."""
    fork_server = compiled()
    confiner = Confiner(fork_server)  # Its trials run while we go on.
    try:
        yield _python()
        yield _kernel()
        yield _proc()
        yield (grown := _fork_server(fork_server))
        yield from _programs(grown)
        yield _durability()
        yield _open_files()
        yield _process_room()
        yield _file_watching()
        yield from _temporary()
        yield from _sandboxes(confiner, grown)
    finally:
        confiner.close()


# What there is.


def _finding(
    name: str,
    trial: TrialResult,
    fix: str,
    *,
    essential: bool = True,
    facts: Mapping[str, object] | None = None,
) -> Finding:
    return Finding(
        name, trial.works, essential, trial.detail, None if trial.works else _FIXES[fix], facts or {}
    )


def _python(version: tuple[int, int, int] = sys.version_info[:3]) -> Finding:
    text = ".".join(map(str, version))
    trial = TrialResult(version >= _PYTHON, f"{text}, at {sys.executable}")
    return _finding("python", trial, "python", facts={"version": text, "path": sys.executable})


def _kernel() -> Finding:
    release = os.uname().release
    try:
        os.close(os.pidfd_open(os.getpid()))
        trial = TrialResult(True, f"Linux {release}")
    except OSError as error:
        trial = TrialResult(False, f"Linux {release} has no pidfd_open: {error.strerror}")
    return _finding("kernel", trial, "kernel", facts={"release": release})


def _proc() -> Finding:
    try:
        check_proc()
        trial = TrialResult(True, "tells of processes")
    except HostUnfit as error:
        trial = TrialResult(False, error.reason)
    except OSError as error:
        trial = TrialResult(False, str(error))
    return _finding("proc", trial, "proc")


def _fork_server(path: str | None) -> Finding:
    facts = {"path": path}
    if path is None:
        missing = TrialResult(False, f"{PROGRAM} is missing or must not be run: without it no process starts")
        return _finding("forkServer", missing, "unfit", facts=facts)
    try:
        # Without a socket it exits at once.
        subprocess.run([path], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        fix = "processes" if getattr(error, "errno", None) in _SHORT else "unfit"
        return _finding("forkServer", TrialResult(False, str(error)), fix, facts=facts)
    return _finding("forkServer", TrialResult(True, f"compiled, at {path}"), "unfit", facts=facts)


def _programs(fork_server: Finding) -> Iterator[Finding]:
    """Yield what is found out by starting programs."""
    seen = try_out()
    started = seen.processes.works
    fix = "program" if fork_server.fix == _FIXES["unfit"] else "processes"
    yield _finding("processes", seen.processes, fix)
    yield _finding("terminals", seen.terminals, "terminals" if started else "first")
    yield _finding("trees", seen.trees, "proc" if started else "first")
    names = sorted(seen.controllers)
    if names:
        groups = TrialResult(True, f"limits of {' and '.join(names)} are kept by the kernel")
    else:
        groups = TrialResult(
            False, "none may be made: limits of memory and processes are kept by looking, every 50 ms"
        )
    yield _finding("controlGroups", groups, "groups", essential=False, facts={"controllers": names})
    enforcer = Enforcer.CGROUP if "memory" in seen.controllers else Enforcer.SAMPLED
    enforced_by = "a control group" if enforcer is Enforcer.CGROUP else "looking"
    memory = TrialResult(
        seen.memory.works,
        f"{seen.memory.detail}; kept by {enforced_by}" if seen.memory.works else seen.memory.detail,
    )
    yield _finding("memoryLimit", memory, "proc" if started else "first", facts={"keptBy": enforcer})
    yield _finding(
        "resourceLimits",
        seen.resources,
        "resources" if started else "first",
        facts={"keptBy": Enforcer.RLIMIT},
    )


def _durability(look: Callable[[], str | None] = arena_probe.probe) -> Finding:
    """Whether the arena works; ``look`` says why it does not."""
    why = look()
    if why is None:
        trial = TrialResult(True, "processes of the exec endpoint outlive a crash of the server")
    else:
        trial = TrialResult(False, f"processes end with the server: {why}")
    return _finding("durability", trial, "durability", essential=False)


# Room.


def _open_files() -> Finding:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = None if hard == resource.RLIM_INFINITY else hard
    trial = _room(most, _FILES_ENOUGH, _FILES_EACH)
    return _finding("openFiles", trial, "files", essential=False, facts={"most": most})


def _process_room() -> Finding:
    """Compare the limits of the user, which do not apply to root, and of the control group."""
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    bounds = [] if os.geteuid() == 0 or soft == resource.RLIM_INFINITY else [soft]
    bounds += _group_bounds()
    most = min(bounds, default=None)
    trial = _room(most, _PROCESSES_ENOUGH, 2)
    return _finding("processLimit", trial, "tasks", essential=False, facts={"most": most})


def _room(most: int | None, enough: int, each: int) -> TrialResult:
    if most is None:
        return TrialResult(True, "no limit")
    return TrialResult(most >= enough, f"{most:,}, for about {most // each:,} programs at once")


def _group_bounds() -> Iterator[int]:
    """Yield the limits of processes of our control group, and of the root that a container sees."""
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file.read().splitlines():
            number, controllers, path = line.split(":", 2)
            if number != "0" and "pids" not in controllers.split(","):
                continue
            root = "/sys/fs/cgroup" if number == "0" else "/sys/fs/cgroup/pids"
            for folder in {root, f"{root}{path}".rstrip("/")}:
                with contextlib.suppress(OSError, ValueError), open(f"{folder}/pids.max") as bound:
                    yield int(bound.read())  # "max", for no limit, is no number.


# Files.


def _file_watching() -> Finding:
    facts = {
        "maxUserWatches": _number("/proc/sys/fs/inotify/max_user_watches"),
        "maxUserInstances": _number("/proc/sys/fs/inotify/max_user_instances"),
    }
    try:
        seen = _watch()
    except OSError as error:
        return _finding(
            "fileWatching", TrialResult(False, f"inotify: {error.strerror}"), "watching", facts=facts
        )
    if not seen:
        return _finding(
            "fileWatching", TrialResult(False, "a new file was not told"), "watching", facts=facts
        )
    watches = facts["maxUserWatches"]
    detail = "a new file was told" + (f"; {watches:,} files can be watched" if watches else "")
    return _finding("fileWatching", TrialResult(True, detail), "watching", facts=facts)


def _watch() -> bool:
    """Whether inotify reports a new file in a watched directory."""
    inotify = Inotify()
    try:
        # Any writable directory will do.  If there is none, the next check reports it.
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-doctor-"))
            folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, folder)
            inotify.add(folder, IN_CREATE)
            os.close(os.open("new", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder))
            return any(event.name == b"new" for event in inotify.read())
    finally:
        inotify.close()


def _number(path: str) -> int | None:
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _temporary() -> Iterator[Finding]:
    place = host_info().temp
    facts: dict[str, object] = {"path": place}
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(bytes(4096))
            file.flush()
    except OSError as error:
        failed = TrialResult(False, f"{place} cannot be written: {error.strerror}")
        yield _finding("temporaryFiles", failed, "temporary", facts=facts)
    else:
        yield _finding(
            "temporaryFiles", TrialResult(True, f"{place} can be written"), "temporary", facts=facts
        )
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        failed = TrialResult(False, f"{place}: {error.strerror}")
        yield _finding("diskSpace", failed, "space", essential=False, facts={**facts, "freeBytes": None})
        return
    space = TrialResult(free >= _SPACE_ENOUGH, f"{free // MIB:,} MiB free in {place}")
    yield _finding("diskSpace", space, "space", essential=False, facts={**facts, "freeBytes": free})


# Sandboxes.


def _sandboxes(confiner: Confiner, fork_server: Finding) -> Iterator[Finding]:
    best = confiner.guarantees
    for name, probe in confiner.findings.items():
        fix = None if probe.works else _sandbox_fix(probe, fork_server)
        yield Finding(name, probe.works, False, probe.reason or "works", fix)
    if best.backend is None:
        trial = TrialResult(False, "none: whoever asks for a sandbox is refused")
        yield _finding("sandboxes", trial, "sandboxes", facts={"keptBy": None})
        return
    protection = best.protection.name.lower()
    facts = {
        "keptBy": best.backend,
        "protection": protection,
        "exactDenials": best.exact,
    }
    exact = "seen by a witness" if best.exact else "guessed from the output"
    detail = f"kept by {best.backend}; protection of subpaths: {protection}; denials: {exact}"
    yield Finding("sandboxes", True, True, detail, facts=facts, weaknesses=best.weaknesses)
    yield _presets(confiner)


def _presets(confiner: Confiner) -> Finding:
    """Make the sandboxes that have a name, and see which of them would be refused."""
    wanted = {
        "read-only": Sandbox.read_only(),
        "workspace-write": Sandbox.workspace(),
        "--deny": Sandbox.read_only(deny=["/etc/passwd"]),
    }
    refused: dict[str, str] = {}
    for name, sandbox in wanted.items():
        try:
            confiner.confine(sandbox.at(tempfile.gettempdir()), None)
        except (HoldfastError, OSError) as error:
            refused[name] = str(error)
    kept = ", ".join(name for name in wanted if name not in refused)
    detail = "; ".join([f"kept: {kept}", *(f"refused: {name} ({why})" for name, why in refused.items())])
    fix = _FIXES["presets"] if refused else None
    return Finding("sandboxPresets", not refused, False, detail, fix, facts={"refused": list(refused)})


def _sandbox_fix(probe: SandboxProbe, fork_server: Finding) -> str:
    if probe.needs_fork_server and fork_server.fix:
        return fork_server.fix
    return probe.cure
