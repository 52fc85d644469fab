"""The fork server as Zig's compiler makes it: where the host has no compiler, and for wheels.

They need the package ``ziglang``, which ``make wheels`` installs.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import hatch_build
from tests.fakes.fork_server import ALONE, STARTED, ForkServer, sh

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / hatch_build.NATIVE

MACHINES = {"x86_64": 62, "aarch64": 183}
"""What wheels are made for, and the numbers that programs for it have in their headers."""

DYNAMIC, SHARED_OBJECT = 2, 3
"""Of a program header, and of a program whose addresses are drawn anew at each start."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(hatch_build.zig() is None, reason="ziglang is not installed: run make wheels"),
]


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its C libraries are compiled once, and not kept."""
    place = str(tmp_path_factory.mktemp("zig"))
    os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", place)
    os.environ.setdefault("ZIG_LOCAL_CACHE_DIR", place)


@pytest.fixture(scope="session", params=MACHINES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The program for each machine."""
    program = tmp_path_factory.mktemp(request.param) / "fork_server"
    failure = hatch_build.compile_program(NATIVE, program, request.param)
    assert failure is None, failure
    return request.param, program


def segments(program: bytes) -> list[int]:
    """The types of the segments of a 64-bit program."""
    (start,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<2H", program, 54)
    return [struct.unpack_from("<I", program, start + at * size)[0] for at in range(count)]


def test_it_is_static_and_can_lie_anywhere(made: tuple[str, Path]) -> None:
    """A wheel must not depend on the C library of a host, nor know its addresses."""
    machine, program = made
    data = program.read_bytes()
    interpreter, relro = 3, 0x6474E552

    assert struct.unpack_from("<2H", data, 16) == (SHARED_OBJECT, MACHINES[machine])
    assert interpreter not in segments(data)
    assert {DYNAMIC, relro} <= set(segments(data))


@pytest.mark.parametrize("machine", MACHINES)
def test_its_compiler_has_nothing_to_warn_of(machine: str, tmp_path: Path) -> None:
    """Another compiler and another C library: what one of them lets pass the other may not."""
    compiler = hatch_build.zig(machine)
    assert compiler is not None
    (kind,) = compiler.kinds
    flags = [flag for flag in kind if not flag.startswith("-Wl,") and flag not in ("-pie", "-static")]
    sources = map(str, sorted(NATIVE.glob("*.c")))

    ran = subprocess.run(
        [*compiler.words, *flags, "-Wall", "-Wextra", "-Werror", "-pthread", "-c", *sources],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert (ran.returncode, ran.stderr) == (0, "")


def test_it_runs_commands_where_the_host_has_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the same program: what it is told and what it tells do not depend on who compiled it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    program = tmp_path / "fork_server"

    failure = hatch_build.compile_program(NATIVE, program)

    assert failure is None, failure
    fork_server = ForkServer((str(program),))
    command = fork_server.command().start(*sh("echo hello; exit 3"))
    command.tells(STARTED)
    said, ended = command.line(), command.ended()
    fork_server.close()
    assert (said, ended) == ("hello", (3, ALONE))


def test_that_of_another_machine_can_be_run_there(made: tuple[str, Path]) -> None:
    """As far as an emulator shows it: it starts, reads its arguments and refuses them."""
    machine, program = made
    emulator = [] if machine == os.uname().machine else [shutil.which(f"qemu-{machine}") or ""]
    if emulator == [""]:
        pytest.skip(f"there is no qemu-{machine}")

    ran = subprocess.run([*emulator, str(program), "1"], check=False, capture_output=True)

    assert (ran.returncode, ran.stderr[:18]) == (2, b"usage: fork_server")


def test_a_wheel_for_another_machine_leaves_the_installed_program_alone(made: tuple[str, Path]) -> None:
    """It is built in the tree that an editable installation runs from."""
    machine, _ = made
    installed = ROOT / hatch_build.PROGRAM
    before = installed.read_bytes(), installed.stat().st_mtime_ns
    place = ROOT / "build" / f"test-wheel-{machine}"
    shutil.rmtree(place, ignore_errors=True)

    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "HOLDFAST_TARGET": machine},
    )

    (wheel,) = place.iterdir()
    shutil.unpack_archive(wheel, place, "zip")
    inside = (place / "holdfast" / "host" / "fork_server").read_bytes()
    assert wheel.name.endswith(
        f"-py3-none-manylinux2014_{machine}.manylinux_2_17_{machine}.musllinux_1_1_{machine}.whl"
    )
    assert struct.unpack_from("<H", inside, 18) == (MACHINES[machine],)
    assert not (place / "holdfast" / "host" / "native").exists()
    assert (installed.read_bytes(), installed.stat().st_mtime_ns) == before
    shutil.rmtree(place)
