"""``holdfast cp`` as a program: much data, odd names, an interrupt in the middle, what is seen of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.backends import LONG
from tests.fakes.server import program_at
from tests.fakes.terminal import HOLDFAST, SILENT, holdfast, person_at

pytestmark = pytest.mark.slow

MUCH = (256 if LONG else 24) << 20

BOUND = 96 << 20
"""Bytes of memory that must do for any amount of data: the program itself, and some blocks on their way."""

ENDLESS = 1 << 40
"""Bytes of a file that nobody waits for; it takes no space."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with program_at() as (_, url):
        yield url


def hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy(*arguments: str) -> tuple[int, int]:
    """Copy; give the exit code and the most memory that it took."""
    ours = subprocess.Popen([*HOLDFAST, "cp", *arguments], env={**os.environ, **SILENT})
    most = 0
    # The system's own account of an ended child begins with our memory, of which it was a copy.
    while ours.poll() is None:
        for line in Path(f"/proc/{ours.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                most = max(most, int(line.split()[1]) * 1024)
        with contextlib.suppress(subprocess.TimeoutExpired):
            ours.wait(0.005)
    assert most > 0
    return ours.returncode, most


@pytest.mark.stress
@pytest.mark.timeout(120)
def test_a_large_file_is_the_same_there_and_back_in_bounded_memory(server: str, tmp_path: Path) -> None:
    block = os.urandom(1 << 20)
    with (tmp_path / "a").open("wb") as file:
        for number in range(MUCH >> 20):
            file.write(number.to_bytes(8, "big") + block[8:])

    there = copy("-H", server, str(tmp_path / "a"), f":{tmp_path}/b")
    back = copy("-H", server, f":{tmp_path}/b", str(tmp_path / "c"))

    assert (there[0], back[0]) == (0, 0)
    assert hash_of(tmp_path / "a") == hash_of(tmp_path / "b") == hash_of(tmp_path / "c")
    assert max(there[1], back[1]) < BOUND


NAMES = (
    b"plain",
    b"two words",
    b"new\nline",
    b"quote'\"",
    b"-dash",
    b"not\xff\xfeutf",
    b"\xc3\xa4",
    b"100%25",
)


def planted(root: Path) -> dict[bytes, bytes]:
    """Make files of odd names, some empty, in directories of odd names; give their content."""
    files = {}
    for number, name in enumerate(NAMES):
        for path in (name, b"deep/" + name, b"dir " + name + b"/below/" + name):
            content = b"" if number == 0 else path * number * 1000
            full = os.path.join(os.fsencode(root), path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(content)
            files[path] = content
    os.symlink("plain", root / "a link")
    files[b"a link"] = files[b"plain"]
    os.mkdir(root / "empty")
    return files


def found(root: Path) -> dict[bytes, bytes]:
    top = os.fsencode(root)
    return {
        os.path.relpath(os.path.join(where, name), top): Path(
            os.fsdecode(os.path.join(where, name))
        ).read_bytes()
        for where, _, names in os.walk(top)
        for name in names
    }


def test_a_tree_with_odd_names_empty_files_and_links_is_the_same_there_and_back(
    server: str, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    files = planted(tmp_path / "a")
    os.symlink(".", tmp_path / "a" / "loop")

    there = holdfast("cp", "-r", "-H", server, str(tmp_path / "a"), f":{tmp_path}/b")
    back = holdfast("cp", "-r", "-o", "json", "-H", server, f":{tmp_path}/b", str(tmp_path / "c"))

    assert (there.returncode, back.returncode, there.stderr, back.stderr) == (0, 0, b"", b"")
    assert json.loads(back.stdout)["bytes"] == sum(map(len, files.values()))
    assert found(tmp_path / "b") == found(tmp_path / "c") == files
    assert (tmp_path / "c" / "empty").is_dir()
    assert os.readlink(tmp_path / "c" / "loop") == "."


@pytest.mark.parametrize("to_server", [True, False], ids=["server", "here"])
def test_a_program_stays_one_and_a_secret_stays_one_both_ways(
    server: str, tmp_path: Path, *, to_server: bool
) -> None:
    """Also in a tree, and whatever the umask of either side is."""
    (tmp_path / "tree").mkdir()
    bits = {"program": 0o755, "secret": 0o600, "shared": 0o664}
    for name, mode in bits.items():
        (tmp_path / "tree" / name).touch()
        (tmp_path / "tree" / name).chmod(mode)
    colons = ("", ":") if to_server else (":", "")

    for name in bits:
        done = holdfast(
            "cp", "-H", server, f"{colons[0]}{tmp_path}/tree/{name}", f"{colons[1]}{tmp_path}/{name}"
        )
        assert done.returncode == 0
    done = holdfast("cp", "-r", "-H", server, f"{colons[0]}{tmp_path}/tree", f"{colons[1]}{tmp_path}/copy")

    assert done.returncode == 0
    for root in (tmp_path, tmp_path / "copy"):
        assert {name: stat.S_IMODE((root / name).stat().st_mode) for name in bits} == bits


def test_a_file_goes_to_the_output_and_comes_from_the_input(server: str, tmp_path: Path) -> None:
    """As between programs of one host."""
    data = os.urandom(3_000_001)
    command = [*HOLDFAST, "cp", "-H", server]
    given = {"env": {**os.environ, **SILENT}, "timeout": 60}

    there = subprocess.run([*command, "-", f":{tmp_path}/x"], input=data, capture_output=True, **given)  # type: ignore[call-overload]
    back = subprocess.run([*command, f":{tmp_path}/x", "-"], capture_output=True, **given)  # type: ignore[call-overload]
    with (tmp_path / "y").open("wb") as file:
        subprocess.run([*command, f":{tmp_path}/x", "-"], stdout=file, check=True, **given)  # type: ignore[call-overload]

    assert (there.returncode, there.stdout, there.stderr) == (0, b"", b"")
    assert (back.returncode, back.stderr) == (0, b"")
    assert back.stdout == data == (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


def test_a_reader_that_has_seen_enough_ends_it_without_a_word(server: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(20 << 20))
    ours = subprocess.Popen(
        [*HOLDFAST, "cp", "-H", server, f":{tmp_path}/x", "-"],
        env={**os.environ, **SILENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert ours.stdout is not None
    assert ours.stderr is not None
    ours.stdout.read(10)
    ours.stdout.close()

    assert ours.wait(60) == 141
    assert ours.stderr.read() == b""
    ours.stderr.close()


def test_a_link_that_leads_out_comes_only_if_it_was_asked_for(server: str, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "python").symlink_to("/usr/bin/python3")
    paths = (f":{tmp_path}/tree", f"{tmp_path}/copy")

    refused = holdfast("cp", "-r", "-H", server, *paths)
    done = holdfast("cp", "-r", "--outside-links", "-H", server, *paths)

    assert refused.returncode == 125
    assert b"'python' is a link that leads out of the tree, to '/usr/bin/python3'" in refused.stderr
    assert b"outside links" in refused.stderr
    assert done.returncode == 0
    # The first one has made the directory.
    assert os.readlink(tmp_path / "copy" / "tree" / "python") == "/usr/bin/python3"


def test_without_a_server_a_program_stays_one(tmp_path: Path) -> None:
    """Whoever copies a script wants to run it."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho works\n")
    program.chmod(0o755)
    done = holdfast("cp", str(program), f":{tmp_path}/copy")

    assert done.returncode == 0
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) & 0o100
    assert subprocess.run([tmp_path / "copy"], capture_output=True, check=True).stdout == b"works\n"


@pytest.mark.parametrize("direction", ["there", "back", "here"])
def test_the_bar_is_seen_and_an_interrupt_leaves_no_half_file(
    server: str, tmp_path: Path, direction: str
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.touch()
    os.truncate(source, ENDLESS)
    paths = (f":{source}", str(target)) if direction == "back" else (str(source), f":{target}")
    options = () if direction == "here" else ("-H", server)
    with person_at("cp", *options, *paths) as person:
        person.expect(b"[....")
        person.expect(b"iB/s")
        person.type(b"\x03")
        code = person.wait()

    assert code == 130
    assert b"holdfast: interrupted: " in person.shown
    assert os.listdir(tmp_path) == ["source"]


def test_told_to_end_it_leaves_no_half_file(server: str, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.touch()
    os.truncate(source, ENDLESS)
    target.write_text("old")
    with person_at("cp", "-H", server, f":{source}", str(target)) as person:
        person.expect(b"[....")
        person.process.send_signal(signal.SIGTERM)
        code = person.wait()

    assert code == 143
    assert target.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["source", "target"]
