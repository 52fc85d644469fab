"""What may be seen of procfs, wherever it is mounted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.host.files import paths

SELF = str(os.getpid())


@contextmanager
def opened(path: str | Path) -> Iterator[int]:
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("path", "place", "is_visible"),
    [
        ("/proc", b"/", True),
        ("/proc/meminfo", b"/meminfo", True),
        ("/proc/self", b"/self", False),
        ("/proc/thread-self", b"/thread-self", False),
        ("/proc/mounts", b"/mounts", False),
        ("/proc/kmsg", b"/kmsg", False),
        ("/proc/sys", b"/sys", False),
        ("/proc/PID", b"/PID", False),
        ("/proc/PID/stat", b"/PID/stat", False),
        ("/proc/PID/cwd", b"/PID/cwd", False),
    ],
)
def test_only_what_is_about_the_host_can_be_seen(path: str, place: bytes, *, is_visible: bool) -> None:
    path, place = path.replace("PID", SELF), place.replace(b"PID", SELF.encode())
    with opened(path) as fd:
        # Where a container has mounted something over it, it is another file system.
        if paths.procfs_names(fd) is None:
            pytest.skip(f"{path} is not on procfs here")
        assert paths.procfs_place(fd) == place
        assert paths.is_visible(fd) is is_visible
        assert paths.procfs_names(fd) == (paths.PROCFS_READABLE if path == "/proc" else set())


@pytest.mark.parametrize("name", sorted(paths.PROCFS_READABLE))
def test_what_can_be_seen_is_a_file_that_everybody_may_read(name: bytes) -> None:
    with opened(f"/proc/{name.decode()}") as fd:
        assert os.fstat(fd).st_mode & 0o100444 == 0o100444


def test_other_file_systems_can_be_seen(tmp_path: Path) -> None:
    (tmp_path / "self").touch()
    for path in (tmp_path, tmp_path / "self"):
        with opened(path) as fd:
            assert paths.is_visible(fd)
            assert paths.procfs_names(fd) is None
            assert not paths.is_memory(fd)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/proc/PID/mem", True),
        ("/proc/PID/task/PID/mem", True),
        ("/proc/1/mem", True),
        ("/proc/PID/status", False),
        ("/proc/meminfo", False),
    ],
)
def test_memory_is_told_from_other_files(path: str, *, expected: bool) -> None:
    with opened(path.replace("PID", SELF)) as fd:
        assert paths.is_memory(fd) is expected


_ELSEWHERE = """
import json, os, sys
from holdfast.host.files import paths
told = {}
for name in sys.argv[1:]:
    fd = os.open(name, os.O_PATH)
    told[name] = [paths.is_visible(fd), paths.is_memory(fd), (paths.procfs_place(fd) or b"").decode()]
print(json.dumps(told))
"""


def test_a_part_of_it_on_another_path_is_still_a_process(tmp_path: Path) -> None:
    """Nothing but the kernel can tell then: not the path, and not the names on it."""
    for name in ("a process", "sys"):
        (tmp_path / name).mkdir()
    for name in ("memory", "cpuinfo"):
        (tmp_path / name).touch()
    pid = os.getpid()
    mounts = {"a process": f"{pid}", "sys": "", "memory": f"{pid}/mem", "cpuinfo": "cpuinfo"}
    script = "".join(f'mount --bind "/proc/{what}" "{tmp_path}/{name}" && ' for name, what in mounts.items())
    ways = ["a process", "a process/status", "sys", f"sys/{pid}/environ", "memory", "cpuinfo", "sys/uptime"]
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare")

    done = subprocess.run(
        [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", f'{script} exec "$@"', "sh",
         sys.executable, "-c", _ELSEWHERE, *(f"{tmp_path}/{way}" for way in ways)],
        capture_output=True,
        check=False,
        text=True,
    )  # fmt: skip

    if done.returncode:
        pytest.skip(f"mounts cannot be made here: {done.stderr.strip()}")
    found = json.loads(done.stdout).items()
    told = {Path(path).relative_to(tmp_path).as_posix(): facts for path, facts in found}
    assert told == {
        "a process": [False, False, f"/{pid}"],
        "a process/status": [False, False, f"/{pid}/status"],
        "sys": [True, False, "/"],
        f"sys/{pid}/environ": [False, False, f"/{pid}/environ"],
        "memory": [False, True, f"/{pid}/mem"],
        "cpuinfo": [True, False, "/cpuinfo"],
        "sys/uptime": [True, False, "/uptime"],
    }


def test_what_is_mounted_nowhere_we_know_of_is_taken_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link of procfs may lead into another namespace."""
    monkeypatch.setattr(paths, "procfs_place", lambda fd: None)

    for name, is_memory in (("mem", True), ("status", False)):
        with opened(f"/proc/{SELF}/{name}") as fd:
            assert (paths.is_visible(fd), paths.is_memory(fd)) == (False, is_memory)


@pytest.mark.parametrize(
    ("root", "point", "path", "expected"),
    [
        (b"/", b"/proc", b"/proc", b"/"),
        (b"/", b"/proc", b"/proc/1/mem", b"/1/mem"),
        (b"/1", b"/x", b"/x", b"/1"),
        (b"/1", b"/x", b"/x/mem", b"/1/mem"),
        (b"/", b"/", b"/1", b"/1"),
        (b"/", b"/", b"/", b"/"),
        (b"/1", b"/", b"/mem", b"/1/mem"),
        (b"/", b"/proc", b"/process/1", None),
    ],
)
def test_a_place_is_counted_from_the_root_of_the_file_system(
    root: bytes, point: bytes, path: bytes, expected: bytes | None
) -> None:
    assert paths._inside(root, point, path) == expected
    assert paths._plain(rb"/a\040b\134") == b"/a b\\"
