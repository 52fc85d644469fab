"""The fork server as the build compiles it: hardened as far as the compiler can, and without a complaint."""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import hatch_build
from docs import native_header
from holdfast.host import orders

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / hatch_build.NATIVE

SOURCES = sorted(path.name for path in NATIVE.glob("*.c"))

STATIC_PIE, PIE, STATIC, PLAIN = hatch_build.KINDS

# A compiler takes its time where others want the processor too; nothing here is measured.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def host_compiler() -> hatch_build.Compiler:
    found = hatch_build.host_compiler()
    if found is None:
        pytest.skip("there is no compiler")
    return found


@pytest.fixture(scope="module")
def compiler(host_compiler: hatch_build.Compiler) -> list[str]:
    return list(host_compiler.words)


@pytest.fixture(scope="module")
def gcc(compiler: list[str]) -> list[str]:
    """A compiler that has an analyzer: GCC has one from version 10 on."""
    asked = [*compiler, "-fanalyzer", "-fsyntax-only", "-x", "c", "/dev/null"]
    if subprocess.run(asked, check=False, capture_output=True).returncode:
        pytest.skip(f"{compiler[0]} has no analyzer")
    return compiler


def complaints(command: list[str]) -> list[str]:
    """What a compiler says beside compiling."""
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    return ran.stderr.splitlines() if ran.returncode or ran.stderr else []


# The messages.


def test_the_header_of_messages_is_that_of_pythons_table() -> None:
    """Else a shim would take one thing for another."""
    written = (ROOT / native_header.HEADER).read_text(encoding="utf-8")

    assert written == native_header.header(), "run python docs/generate.py"


@pytest.mark.parametrize(
    ("place", "name", "changed"),
    [
        (orders.StartFlag, "TERMINAL", 99),
        (orders.OrderKind, "KILL", 99),
        (orders, "VERSION", 99),
        (orders, "SURVIVORS_MOST", 99),
        (orders, "REPORT_FIELDS", orders.REPORT_FIELDS[:-1]),
    ],
)
def test_a_change_of_the_table_is_noticed(
    place: object, name: str, changed: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that cannot fail is none."""
    monkeypatch.setattr(place, name, changed)

    assert (ROOT / native_header.HEADER).read_text(encoding="utf-8") != native_header.header()


# What the compiler says.


@pytest.mark.parametrize("name", SOURCES)
def test_the_compiler_has_nothing_to_warn_of(compiler: list[str], name: str, tmp_path: Path) -> None:
    """Here a warning is an error; not in an installation, where other compilers warn of other things."""
    flags = [*hatch_build.HARDENED, "-Wall", "-Wextra", "-Werror", "-pthread", "-fPIE"]

    assert complaints([*compiler, *flags, "-c", "-o", str(tmp_path / "made.o"), str(NATIVE / name)]) == []


@pytest.mark.parametrize("level", ["as it is built", "as it is written"])
@pytest.mark.parametrize("name", SOURCES)
def test_the_analyzer_finds_nothing(gcc: list[str], name: str, level: str, tmp_path: Path) -> None:
    """It follows each way through a function, for leaks and for what is used before it is there or too late.

    Once with optimization, which lets it see through more functions, and once without, which lets it see
    what is otherwise thrown away before it looks.
    """
    flags = [
        *(hatch_build.HARDENED if level == "as it is built" else ["-O0"]),
        "-fanalyzer",
        "-Werror",
        "-fPIE",
    ]

    assert (
        complaints([*gcc, *flags, "-pthread", "-c", "-o", str(tmp_path / "made.o"), str(NATIVE / name)]) == []
    )


@pytest.mark.parametrize(
    ("flags", "mistake"),
    [
        (["-O2", "-Wall", "-Wextra", "-Werror"], "int f(unsigned a) { int b = 0; return a < b; }"),
        (
            ["-fanalyzer", "-Werror"],
            "#include <stdlib.h>\nvoid f(void) { void *p = malloc(1); free(p); free(p); }",
        ),
    ],
    ids=["warning", "analyzer"],
)
def test_a_mistake_would_be_found(gcc: list[str], flags: list[str], mistake: str, tmp_path: Path) -> None:
    """A check that cannot complain is no check."""
    source = tmp_path / "mistake.c"
    source.write_text(f"{mistake}\n")

    said = complaints([*gcc, *flags, "-c", "-o", str(tmp_path / "made.o"), str(source)])

    assert any("error" in line for line in said)


# What the program is.


def elf(program: Path, *questions: str) -> str:
    if shutil.which("readelf") is None:
        pytest.skip("there is no readelf")
    return subprocess.run(
        ["readelf", "--wide", *questions, program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout


def built(compiler: hatch_build.Compiler, kind: tuple[str, ...], place: Path) -> Path:
    made = place / "fork_server"
    failure = hatch_build.build(compiler, NATIVE, made, *kind)
    if failure is not None:
        pytest.skip(f"this compiler cannot do that: {failure}")
    return made


@pytest.mark.parametrize("kind", [STATIC_PIE, PIE], ids=["static-pie", "pie"])
def test_nobody_knows_where_it_lies_and_nobody_writes_its_tables(
    host_compiler: hatch_build.Compiler, kind: tuple[str, ...], tmp_path: Path
) -> None:
    """Addresses are drawn anew at each start, what points to functions is read-only, the stack no code."""
    said = elf(built(host_compiler, kind, tmp_path), "--file-header", "--program-headers", "--dynamic")

    assert re.search(r"Type:\s+DYN", said)
    assert re.search(r"FLAGS_1\).*NOW.*PIE", said)
    assert "GNU_RELRO" in said
    stack = re.search(r"GNU_STACK.*", said)
    assert stack is not None
    assert " RW " in stack.group()
    assert ("INTERP" in said) == (kind is PIE)


def test_it_notices_when_it_writes_too_far(host_compiler: hatch_build.Compiler, tmp_path: Path) -> None:
    """Who overwrites a buffer ends the program: on the stack, and where the C library knows the size."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("other C libraries do not check sizes")

    said = elf(built(host_compiler, PIE, tmp_path), "--dyn-syms")

    assert "__stack_chk_fail" in said
    assert "_chk@" in said.replace("__stack_chk_fail", "")


def test_the_build_makes_the_best_kind(host_compiler: hatch_build.Compiler, tmp_path: Path) -> None:
    """Not only each kind by itself."""

    def works(kind: tuple[str, ...]) -> bool:
        return hatch_build.build(host_compiler, NATIVE, tmp_path / "try", *kind) is None

    best = next(filter(works, hatch_build.KINDS), PLAIN)

    assert hatch_build.compile_program(NATIVE, tmp_path / "fork_server") is None

    said = elf(tmp_path / "fork_server", "--file-header", "--program-headers")
    assert ("DYN" in said) == (best in (STATIC_PIE, PIE))
    assert ("INTERP" in said) == (best in (PIE, PLAIN))


# What compilers cannot do.

REFUSALS = {
    "nothing": ([], "-static-pie"),
    "static-pie": (["-static-pie"], "-pie"),
    "anything that is moved": (["-static-pie", "-pie"], "-static"),
    "all but the simplest": (["-static-pie", "-pie", "-static"], "-O2"),
    "the protection of stacks": (["-fstack-protector-strong"], "-O2"),
}


def compiler_without(refused: list[str], place: Path) -> Path:
    """A compiler that does not know some options; what it makes says which ones it was given."""
    script = place / "compiler"
    cases = "|".join(refused) or "-no-such-option"
    script.write_text(
        "#!/bin/sh\n"
        f'for word; do case $word in {cases}) echo "unknown option: $word" >&2; exit 1;; esac; done\n'
        'said="$*"\n'
        'while [ "$1" != -o ]; do shift; done\n'
        'echo "$said" >"$2"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


@pytest.mark.parametrize("cannot", REFUSALS)
def test_it_goes_down_step_by_step(cannot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old compiler makes a program, too, as good as it can."""
    refused, best = REFUSALS[cannot]
    monkeypatch.setenv("CC", str(compiler_without(refused, tmp_path)))

    failure = hatch_build.compile_program(NATIVE, tmp_path / "fork_server")

    assert failure is None
    given = (tmp_path / "fork_server").read_text().split()
    assert best in given
    assert not set(refused) & set(given)


@pytest.mark.parametrize("cannot", REFUSALS)
def test_no_installation_fails_because_of_a_warning(
    cannot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler of next year warns of something that nobody knows of today."""
    monkeypatch.setenv("CC", str(compiler_without(REFUSALS[cannot][0], tmp_path)))

    hatch_build.compile_program(NATIVE, tmp_path / "fork_server")

    assert "-Werror" not in (tmp_path / "fork_server").read_text()


# Without a compiler of the host.

NO_COMPILERS = {
    "": "CC is empty",
    "/nowhere/cc": "No such file",
    "false": "the compiler ended with 1",
}


@pytest.fixture
def no_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package were not installed."""
    monkeypatch.setattr(hatch_build, "zig", lambda target=None: None)


def hook(target: str = "wheel") -> hatch_build.ForkServerHook:
    builder = WheelBuilder(str(ROOT))
    return hatch_build.ForkServerHook(
        str(ROOT), {}, builder.config, builder.metadata, str(ROOT / "dist"), target, builder.app
    )


@pytest.mark.usefixtures("no_zig")
@pytest.mark.parametrize("compiler", NO_COMPILERS)
def test_without_any_compiler_the_build_says_why_and_what_to_do(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no other form of the program: an installation without it would be of no use."""
    monkeypatch.setenv("CC", compiler)

    failure = hatch_build.compile_program(NATIVE, tmp_path / "fork_server")

    assert failure is not None
    assert NO_COMPILERS[compiler] in failure
    assert "apt-get install gcc" in failure
    assert "pip install 'ziglang" in failure
    assert not (tmp_path / "fork_server").exists()


def test_a_compiler_without_headers_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some hosts have gcc and neither a C library's headers nor those of the kernel."""
    script = tmp_path / "cc"
    script.write_text("#!/bin/sh\necho 'fatal error: pthread.h: No such file or directory' >&2; exit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))

    assert hatch_build.host_compiler() is None
    assert "pthread.h" in str(hatch_build.host_defect())


@pytest.mark.parametrize("compiler", NO_COMPILERS)
def test_where_there_is_no_compiler_pip_is_asked_for_one(
    compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that an installation from source works there, too."""
    monkeypatch.setenv("CC", compiler)

    assert hook().dependencies() == [hatch_build.ZIG]
    assert hook("sdist").dependencies() == []


@pytest.mark.usefixtures("host_compiler")
def test_where_there_is_a_compiler_none_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for a wheel for other machines."""
    assert hook().dependencies() == []

    monkeypatch.setenv("HOLDFAST_TARGET", "aarch64")

    assert hook().dependencies() == [hatch_build.ZIG]


@pytest.mark.usefixtures("no_zig")
def test_a_build_that_cannot_compile_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And the program of an older source does not stay: it would mean other messages."""
    monkeypatch.setenv("CC", "/nowhere/cc")
    shutil.copytree(NATIVE, tmp_path / hatch_build.NATIVE)
    older = tmp_path / hatch_build.PROGRAM
    older.write_text("older")
    building = hook()
    monkeypatch.setattr(building, "_BuildHookInterface__root", str(tmp_path))

    with pytest.raises(SystemExit):
        building.initialize("standard", {"artifacts": []})

    said = capfd.readouterr()
    assert "the fork server cannot be compiled: " in said.out + said.err
    assert not older.exists()
