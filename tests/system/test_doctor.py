"""``holdfast doctor`` on hosts that lack something: each is made by taking it away from a child."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.sandbox import landlock
from holdfast.host.shim import PROGRAM

pytestmark = pytest.mark.slow

DOCTOR = (sys.executable, "-m", "holdfast", "doctor")

WITHOUT_CALLS = """
import ctypes, os, struct, sys
calls = [int(number) for number in sys.argv[1].split(",")]
steps = [struct.pack("HBBI", 0x20, 0, 0, 0)]
steps += [struct.pack("HBBI", 0x15, len(calls) - at, 0, number) for at, number in enumerate(calls)]
steps += [struct.pack("HBBI", 6, 0, 0, 0x7FFF0000), struct.pack("HBBI", 6, 0, 0, 0x00050000 | 38)]
code = ctypes.create_string_buffer(b"".join(steps))
program = ctypes.create_string_buffer(struct.pack("H6xQ", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
for option in ((38, 1), (22, 2, program)):
    assert libc.prctl(*option, *(0,) * (5 - len(option))) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[2], sys.argv[2:])
"""
"""A program that lets another run on a kernel that has never heard of some system calls."""

PIDFD_OPEN = 434
LANDLOCK = 444
"""The same numbers on every machine, because both are young."""


def examine(
    *before: str, doctor: Sequence[str] = DOCTOR, env: Mapping[str, str] | None = None
) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code and the findings, by name, of a doctor that was started by ``before``."""
    done = subprocess.run(
        [*before, *doctor, "-o", "json"],
        capture_output=True,
        text=True,
        timeout=19,
        check=False,
        env={**os.environ, **(env or {})},
    )
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    findings = {finding["name"]: finding for finding in document["findings"]}
    broken = [finding for finding in findings.values() if finding["essential"] and not finding["works"]]
    assert (done.returncode, document["works"]) == ((1, False) if broken else (0, True))
    return done.returncode, findings


def broken(findings: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {name for name, finding in findings.items() if not finding["works"]}


@pytest.fixture(scope="module")
def here() -> set[str]:
    """What does not work on this host anyway."""
    return broken(examine()[1])


def mounted(*options: str) -> tuple[str, ...]:
    """A command that runs another with other things mounted; skips the test where that cannot be."""
    command = ("bwrap", "--dev-bind", "/", "/", *options, "--")
    if shutil.which("bwrap") is None or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("bubblewrap does not work here")
    return command


def limited(resource: str, most: int) -> tuple[str, ...]:
    limit = f"resource.setrlimit(resource.{resource}, ({most}, {most}))"
    script = f"import os, resource, sys; {limit}; os.execv(sys.argv[1], sys.argv[1:])"
    return (sys.executable, "-c", script)


def deaf_to_children() -> tuple[str, ...]:
    """As some supervisors start everything."""
    ignore = "signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    return (sys.executable, "-c", f"import os, signal, sys; {ignore}; os.execv(sys.argv[1], sys.argv[1:])")


def without_calls(*numbers: int) -> tuple[str, ...]:
    return (sys.executable, "-c", WITHOUT_CALLS, ",".join(map(str, numbers)))


# Processes.


def test_who_started_it_may_ignore_the_end_of_children(here: set[str]) -> None:
    """That is handed down; but whoever waits for a program needs its exit code."""
    _, findings = examine(*deaf_to_children())

    assert broken(findings) == here


def test_a_host_without_terminals(here: set[str]) -> None:
    code, findings = examine(*mounted("--dev-bind", "/dev/null", "/dev/ptmx"))

    assert code == 1
    assert broken(findings) - here == {"terminals"}
    assert "Inappropriate ioctl" in findings["terminals"]["detail"]
    assert "devpts" in findings["terminals"]["fix"]


def test_a_host_where_trees_cannot_be_seen() -> None:
    """Without /proc a killer does not know whom to kill; so nothing is started."""
    code, findings = examine(*mounted("--tmpfs", "/proc"))

    assert code == 1
    assert broken(findings) >= {"proc", "processes", "trees", "memoryLimit", "controlGroups"}
    assert findings["proc"]["detail"].startswith("/proc cannot be read: No such file or directory; ")
    assert findings["proc"]["detail"] in findings["processes"]["detail"]
    assert findings["proc"]["fix"].startswith("mount -t proc proc /proc")


def test_a_host_that_can_start_nothing() -> None:
    """One reason is told once; the others point at it."""
    code, findings = examine(*limited("RLIMIT_NOFILE", 12))

    assert code == 1
    assert broken(findings) >= {"processes", "terminals", "trees", "memoryLimit", "resourceLimits"}
    assert "Too many open files" in findings["processes"]["detail"]
    assert "ulimit -n" in findings["processes"]["fix"]
    assert findings["trees"]["fix"].startswith("see processes")


def test_a_kernel_without_pidfds() -> None:
    code, findings = examine(*without_calls(PIDFD_OPEN))

    assert code == 1
    assert "kernel" in broken(findings)
    assert "pidfd_open" in findings["kernel"]["fix"]


def test_an_installation_without_its_compiled_program() -> None:
    """Nothing can be started, and one fix is for all of it."""
    code, findings = examine(*mounted("--ro-bind", "/dev/null", PROGRAM))

    assert code == 1
    assert broken(findings) >= {"forkServer", "processes", "trees", "bubblewrap"}
    assert findings["forkServer"]["detail"].startswith(f"{PROGRAM} is missing or must not be run")
    assert findings["forkServer"]["facts"] == {"path": None}
    assert findings["forkServer"]["fix"] == findings["bubblewrap"]["fix"]
    assert "install holdfast again" in findings["forkServer"]["fix"]
    assert findings["processes"]["fix"].startswith("see forkServer")
    assert findings["trees"]["fix"].startswith("see processes")


def test_an_installation_for_another_machine(tmp_path: Path) -> None:
    other = tmp_path / "fork_server"
    other.write_bytes(b"\x7fELF of another kind")
    other.chmod(0o755)

    code, findings = examine(*mounted("--ro-bind", str(other), PROGRAM))

    assert code == 1
    assert broken(findings) >= {"forkServer", "processes", "trees", "bubblewrap"}
    assert "Exec format error" in findings["forkServer"]["detail"]
    assert "install holdfast again" in findings["forkServer"]["fix"]


# Limits.


def test_a_host_without_control_groups(here: set[str]) -> None:
    """Memory is limited all the same, by looking."""
    _, findings = examine(*mounted("--ro-bind", "/sys", "/sys"))

    assert broken(findings) - here <= {"controlGroups"}
    assert findings["controlGroups"]["facts"] == {"controllers": []}
    assert "Delegate=yes" in findings["controlGroups"]["fix"]
    assert (findings["memoryLimit"]["works"], findings["memoryLimit"]["facts"]) == (
        True,
        {"keptBy": "sampled"},
    )


def test_a_host_with_few_open_files(here: set[str]) -> None:
    _, findings = examine(*limited("RLIMIT_NOFILE", 256))

    assert broken(findings) - here == {"openFiles"}
    assert findings["openFiles"]["facts"] == {"most": 256}
    assert findings["openFiles"]["detail"] == "256, for about 64 programs at once"
    assert "ulimit -Hn" in findings["openFiles"]["fix"]


def test_a_user_who_may_have_few_processes() -> None:
    """Root may have as many as it likes, so it has to be another user."""
    _, findings = examine(*mounted("--unshare-user", "--uid", "1000"), *limited("RLIMIT_NPROC", 100))

    assert not findings["processLimit"]["works"]
    assert findings["processLimit"]["facts"] == {"most": 100}
    assert "TasksMax" in findings["processLimit"]["fix"]


# Files.


@pytest.mark.parametrize("is_there", [True, False], ids=["no files there", "not there"])
def test_a_place_for_temporary_files_that_cannot_be_written(
    here: set[str], tmp_path: Path, *, is_there: bool
) -> None:
    place = "/proc" if is_there else str(tmp_path / "missing")

    code, findings = examine(env={"TMPDIR": place})

    assert code == 1
    assert broken(findings) - here == {"temporaryFiles", "diskSpace"}
    assert findings["temporaryFiles"]["facts"] == {"path": place}
    assert "TMPDIR" in findings["temporaryFiles"]["fix"]


def test_a_disk_that_is_nearly_full(here: set[str], tmp_path: Path) -> None:
    """Things work until it is full, so it is a warning."""
    mount = mounted("--size", str(8 << 20), "--tmpfs", str(tmp_path))

    _, findings = examine(*mount, env={"TMPDIR": str(tmp_path)})

    assert broken(findings) - here == {"diskSpace"}
    assert findings["diskSpace"]["facts"]["freeBytes"] <= 8 << 20


def test_a_host_that_cannot_watch_files(here: set[str]) -> None:
    """The bound is that of a user namespace of its own."""
    script = 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"'
    before = ("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh")
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], check=False).returncode:
        pytest.skip("there are no user namespaces here, or they have no such bound")

    code, findings = examine(*before)

    assert code == 1
    assert "fileWatching" in broken(findings) - here
    assert "max_user_instances" in findings["fileWatching"]["fix"]


# Sandboxes.


def test_a_host_without_bubblewrap(here: set[str]) -> None:
    code, findings = examine(env={"PATH": "/nonexistent"})

    assert broken(findings) - here <= {"bubblewrap", "sandboxPresets"}
    assert code == int(landlock.version() < landlock.LEAST)
    assert "apt-get install bubblewrap" in findings["bubblewrap"]["fix"]
    if code == 0:
        assert findings["sandboxes"]["facts"]["keptBy"] == "landlock"
        assert findings["sandboxes"]["weaknesses"] == landlock.weaknesses(landlock.version())
        presets = findings["sandboxPresets"]
        assert presets["facts"]["refused"][-1] == "--deny"
        assert "refused: --deny" in presets["detail"]
        assert presets["fix"].startswith("see the fixes of bubblewrap and landlock")


def test_a_host_without_namespaces() -> None:
    """bubblewrap is there and cannot do anything."""
    _, findings = examine(*mounted("--unshare-user", "--disable-userns"))

    assert not findings["bubblewrap"]["works"]
    assert "userns" in findings["bubblewrap"]["fix"]


def test_a_host_without_any_sandbox() -> None:
    """Who asks for one is refused there, so it is not fine."""
    code, findings = examine(*without_calls(LANDLOCK), env={"PATH": "/nonexistent"})

    assert code == 1
    assert broken(findings) >= {"bubblewrap", "landlock", "sandboxes"}
    assert "6.2" in findings["landlock"]["fix"]
    assert findings["sandboxes"]["fix"].startswith("see the two above")


# Colours.


@pytest.mark.parametrize(
    ("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals_of_those_who_want_them(
    env: Mapping[str, str],
    coloured: bool,  # noqa: FBT001
) -> None:
    import pty

    ours, theirs = pty.openpty()
    done = subprocess.Popen(DOCTOR, stdout=theirs, env={**os.environ, "TERM": "xterm", **env})
    os.close(theirs)
    said = b""
    try:
        while data := os.read(ours, 65536):
            said += data
    except OSError:
        pass  # The end of a terminal.
    finally:
        os.close(ours)
        done.wait()

    assert b"python" in said
    assert (b"\x1b[32mok" in said) == coloured
