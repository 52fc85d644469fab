"""Nobody gets out of a sandbox: what is outside is looked at from outside, before and after."""

# house: long because every way out belongs to the same question, and shares what it is asked with

from __future__ import annotations

import contextlib
import errno
import json
import os
import pty
import select
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.client import PATH, Client, Message, Refusal
from tests.fakes.intruder_calls import CALLS
from tests.fakes.intruder_tricks import WAYS
from tests.fakes.outsiders import Bystander, Ears, bystander, ears
from tests.fakes.sandboxes import (
    BACKENDS,
    EVERY_SETUP,
    INTRUDER,
    MINIMAL,
    PROJECT,
    PROTECTED,
    READ_ALL,
    SETUPS,
    ConfiningServer,
    Scene,
    confining_server,
    entry,
    glob,
    intrude,
    intrude_all,
    json_of,
    policy,
    run,
    scene,
    scenes,
    sh,
    talk,
    uri,
    workspace,
)
from tests.fakes.server import eventually
from tests.fakes.trees import Host, host_of

pytestmark = pytest.mark.slow

NEEDS_A_SANDBOX = {"uncovered", "by_calls_of_x32"}
"""Ways that lead nowhere without one: there is nothing to take away; this kernel may not know them."""
ONLY_BELOW_THE_ROOT = {"by_a_structure_in_a_root", "by_a_link_in_a_root"}

AT_ONCE = 12
"""Scenes in one sandbox: each costs mounts, the more the more there are."""

TARGETS = ("outside", "protected")

LONG_ONES = pytest.mark.parametrize("server", SETUPS, ids="-".join, indirect=True)
"""Races and floods: they take seconds each."""


@pytest.fixture(scope="module", params=EVERY_SETUP, ids="-".join)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Host]]:
    """One server for all tests of this module, of each kind and with each user's rights."""
    backend, name = request.param
    with host_of(name, "--sandbox", backend) as host:
        yield backend, host


@pytest.fixture
async def confining(server: tuple[str, Host]) -> ConfiningServer:
    return await confining_server(*server)


def about(here: Scene, target: str, **more: Any) -> Message:
    path = here.victim if target == "outside" else here.config
    return {"root": str(here.work), "target": str(path), **more}


# Files.


def changed(places: dict[str, Scene], before: dict[str, Any]) -> list[str]:
    """Where something is not as it was."""
    return [name for name, here in places.items() if facts_of(here) != before[name]]


def facts_of(here: Scene) -> Any:
    return here.outside_facts(), here.protected_facts()


async def try_all(
    confining: ConfiningServer, places: dict[str, Scene], target: str, *, sandboxed: bool
) -> dict[str, Message]:
    """Try every way in a scene of its own."""
    said: dict[str, Message] = {}
    ways = list(places)
    async with talk(confining.url) as talking:
        for start in range(0, len(ways), AT_ONCE):
            some = ways[start : start + AT_ONCE]
            sandbox = workspace(*(places[way].work for way in some)) if sandboxed else None
            jobs = [(way, about(places[way], target)) for way in some]
            said |= await intrude_all(talking, confining, sandbox, jobs, name=f"from {start}")
    return said


@pytest.mark.parametrize("target", TARGETS)
async def test_files_that_may_not_be_written_stay_as_they_are(
    confining: ConfiningServer, target: str
) -> None:
    """The purpose of it all, once for what is outside and once for what stays as it is inside."""
    with scenes(confining.uid, WAYS) as places:
        before = {way: facts_of(here) for way, here in places.items()}

        said = await try_all(confining, places, target, sandboxed=True)
        await eventually(lambda: not any(here.has_masks() for here in places.values()))

        assert changed(places, before) == []
        assert [way for way in WAYS if "refused" not in said[way]] == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("server", SETUPS[:1], ids="-".join, indirect=True)
async def test_each_way_works_without_a_sandbox(confining: ConfiningServer, target: str) -> None:
    """A way that leads nowhere anyway would prove nothing."""
    nowhere = NEEDS_A_SANDBOX if target == "protected" else NEEDS_A_SANDBOX | ONLY_BELOW_THE_ROOT
    with scenes(confining.uid, WAYS.keys() - nowhere) as places:
        before = {way: facts_of(here) for way, here in places.items()}

        await try_all(confining, places, target, sandboxed=False)

        assert sorted(changed(places, before)) == sorted(places)


NEW_NAMES = {
    "mkdir": "mkdir {0}",
    "mkdir with what is in it": "mkdir -p {0}/hooks",
    "open": "echo taken >{0}",
    "rename of a directory": "mkdir d && mv -T d {0}",
    "rename of a file": "mv -T file {0}",
    "symlink": "ln -sT sub {0}",
    "hard link": "ln -T file {0}",
    "fifo": "mkfifo {0}",
    "through a link": "ln -s {0} l && echo taken >l",
    "by dots": "mkdir sub/../{0}",
    "through own root": "mkdir /proc/self/root$PWD/{0}",
    "through own directory": "mkdir /proc/self/cwd/{0}",
}


def scripts(places: dict[str, Scene], attempts: dict[str, str], *names: str) -> str:
    """All attempts, each in its own scene and for each name; what has worked is said."""
    lines = []
    for what, here in places.items():
        for name in names:
            script = attempts[what].format(name)
            lines.append(f"(cd {here.work} && {script}) </dev/null >/dev/null 2>&1 && echo '{what}'")
    return "\n".join(lines)


async def test_protected_names_do_not_come_into_being(confining: ConfiningServer) -> None:
    """Who can make a ``.git`` has the next ``git status`` run programs of its choice."""
    with scenes(confining.uid, NEW_NAMES) as places:
        script = scripts(places, NEW_NAMES, ".agents", ".codex", ".aws")
        async with talk(confining.url) as talking:
            told = await sh(talking, workspace(*(here.work for here in places.values())), script)
        with contextlib.suppress(AssertionError):
            await eventually(lambda: not any(here.has_masks() for here in places.values()), within=1)

        assert {what: made for what, here in places.items() if (made := here.has_masks())} == {}
        assert told.output == b""


@pytest.mark.parametrize("server", SETUPS[:1], ids="-".join, indirect=True)
async def test_without_a_sandbox_they_do(confining: ConfiningServer) -> None:
    """Or nothing was tried."""
    with scenes(confining.uid, NEW_NAMES) as places:
        async with talk(confining.url) as talking:
            await sh(talking, None, scripts(places, NEW_NAMES, ".agents"))

        made = [what for what, here in places.items() if here.has_masks() == [".agents"]]

    assert made == list(NEW_NAMES)


EXISTING = {
    "moved away": "mv .git away",
    "removed": "rm -rf .git",
    "emptied": "rm -rf .git/*",
    "replaced by a link": "mv .git away && ln -sT sub .git",
    "covered by another": "rm -rf .git/*; mkdir d; mv -T d .git",
    "moved with the workspace": 'mv -T "$PWD" "${{PWD%/work}}/outside/moved"',
    "moved into": "mv file .git/",
    "copied over": "cp file .git/config",
    "edited": "sed -i s/core/taken/ .git/config",
    "linked and written": "ln .git/config l && echo taken >l",
}


async def test_protected_names_stay_what_they_are(confining: ConfiningServer) -> None:
    """The same with a ``.git`` that is there."""
    with scenes(confining.uid, EXISTING) as places:
        before = {what: facts_of(here) for what, here in places.items()}
        async with talk(confining.url) as talking:
            sandbox = workspace(*(here.work for here in places.values()))
            told = await sh(talking, sandbox, scripts(places, EXISTING, ".git"))
        await eventually(lambda: not any(here.has_masks() for here in places.values()))

        assert changed(places, before) == []
        assert told.output == b""


@pytest.mark.parametrize("server", SETUPS[:1], ids="-".join, indirect=True)
async def test_without_a_sandbox_they_do_not(confining: ConfiningServer) -> None:
    """Or nothing was tried."""
    with scenes(confining.uid, EXISTING) as places:
        before = {what: facts_of(here) for what, here in places.items()}
        async with talk(confining.url) as talking:
            await sh(talking, None, scripts(places, EXISTING, ".git"))

        there = {what: here for what, here in places.items() if here.work.exists()}
        unchanged = there.keys() - changed(there, before)

    assert unchanged == set()


async def test_what_is_above_a_protected_name_cannot_be_moved(confining: ConfiningServer) -> None:
    """With ``/tmp`` and a project below it this is the everyday profile."""
    with scene(confining.uid) as here:
        project = here.work / "a" / "project"
        (project / ".git").mkdir(parents=True)
        (project / ".git" / "config").write_text("[core]\n")
        here.give()
        script = "mv a b; mkdir -p a/project/.git; echo taken >a/project/.git/config"
        async with talk(confining.url) as talking:
            await sh(talking, workspace(here.work, project), script, cwd=uri(here.work))

        assert (project / ".git" / "config").read_text() == "[core]\n"
        assert not (here.work / "b").exists()


async def test_a_protected_link_stays_where_it_leads(confining: ConfiningServer) -> None:
    """``.git`` may be a link; it must not lead elsewhere afterwards, nor its target change."""
    with scene(confining.uid, git=False) as here:
        (here.work / "real").mkdir()
        (here.work / "real" / "config").write_text("[core]\n")
        (here.work / ".git").symlink_to("real")
        here.give()
        script = (
            "rm .git; mkdir .git; ln -sfn sub .git; mv -T sub .git;"
            " echo taken >real/config; echo taken >.git/config"
        )
        async with talk(confining.url) as talking:
            await sh(talking, workspace(here.work), script, cwd=uri(here.work))

        assert os.readlink(here.work / ".git") == "real"
        assert (here.work / "real" / "config").read_text() == "[core]\n"


async def test_a_git_file_protects_where_it_points(confining: ConfiningServer) -> None:
    """A worktree's hooks are elsewhere."""
    with scene(confining.uid, git=False) as here:
        (here.work / "real").mkdir()
        (here.work / "real" / "config").write_text("[core]\n")
        (here.work / ".git").write_text("gitdir: real\n")
        here.give()
        script = "echo gitdir: sub >.git; echo taken >real/config; mv real other; rm .git"
        async with talk(confining.url) as talking:
            await sh(talking, workspace(here.work), script, cwd=uri(here.work))

        assert (here.work / ".git").read_text() == "gitdir: real\n"
        assert (here.work / "real" / "config").read_text() == "[core]\n"


async def test_the_devices_and_settings_of_the_kernel_are_out_of_reach(confining: ConfiningServer) -> None:
    """``core_pattern`` names a program that runs as root."""
    places = (
        "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger",
        "/sys/kernel/mm/transparent_hugepage/enabled", "/dev/kmsg", "/dev/mem", "/dev/vda", "/dev/sda",
    )  # fmt: skip
    with scene(confining.uid) as here:
        jobs = [("kernel_setting", {"root": str(here.work), "place": place}) for place in places]
        async with talk(confining.url) as talking:
            argv = confining.python(INTRUDER, "all", json.dumps(jobs))
            said = json_of(await run(talking, workspace(here.work), *argv))

    assert [place for place, answer in zip(places, said, strict=True) if "refused" not in answer] == []


# Attributes.

ATTRIBUTES = {
    "chmod": "chmod 0777 {0}",
    "touch": "touch -d 2001-01-01 {0}",
    "chown": "chown {1} {0}",
    "xattr": '{2} -c \'import os; os.setxattr("{0}", "user.taken", b"x")\'',
}


@pytest.mark.parametrize("attempt", ATTRIBUTES)
async def test_attributes_outside_change_only_if_that_is_admitted(
    confining: ConfiningServer, attempt: str
) -> None:
    """A weakness may be there, but nobody may have to find it out."""
    python = " ".join(confining.python())
    with scene(confining.uid) as here:
        before = here.outside_facts()
        script = ATTRIBUTES[attempt].format(here.victim, confining.uid, python)
        async with talk(confining.url) as talking:
            await sh(talking, workspace(here.work), script)

        if not confining.admits("attributes"):
            assert here.outside_facts() == before
        elif attempt in ("chmod", "touch"):
            assert here.outside_facts() != before, "it is admitted, and no longer true"


# Reading.


async def test_what_is_not_listed_cannot_be_read(confining: ConfiningServer) -> None:
    """Secrets lie where nobody has thought of them: only what is named is seen."""
    with scene(confining.uid) as here:
        script = f"cat {here.victim} || ls {here.outside} || cat /proc/self/root{here.victim} || cat out-file"
        sandbox = policy(MINIMAL, PROJECT, roots=(here.work,))
        async with talk(confining.url) as talking:
            told = await sh(talking, sandbox, script, cwd=uri(here.work))
            control = await sh(talking, workspace(here.work), script, cwd=uri(here.work), name="control")

    assert told.output == b""
    assert told.code != 0
    assert control.output == b"whole\n"


DENIED = {
    "a file": lambda here: entry(here.victim, "deny"),
    "a directory": lambda here: entry(here.outside, "deny"),
    "none": lambda here: entry(here.outside, "none"),
    "a pattern": lambda here: glob(f"{here.base}/out*/vic*"),
    "a deep pattern": lambda here: glob(f"{here.base}/**/victim"),
    "a relative pattern": lambda here: glob("../outside/vict?m"),
}
READS = (
    "cat {0}; cat ../outside/victim; cat out-file; cat out/victim; cat /proc/self/root{0};"
    " mv {0} x; cat x; cp {0} y; cat y"
)


@pytest.mark.parametrize("what", DENIED)
async def test_what_is_denied_cannot_be_read(confining: ConfiningServer, what: str) -> None:
    """Whoever cannot keep a denial must say so, and not start anything."""
    with scene(confining.uid) as here:
        before = here.outside_facts()
        sandbox = policy(READ_ALL, PROJECT, DENIED[what](here), roots=(here.work,), cwd=uri(here.work))
        async with talk(confining.url) as talking:
            script = READS.format(here.victim)
            if confining.backend == "landlock":
                with pytest.raises(Refusal) as refusal:
                    await sh(talking, sandbox, script, cwd=uri(here.work))
                assert refusal.value.code == -32602
                assert "Landlock cannot deny" in refusal.value.text
                return
            told = await sh(talking, sandbox, script, cwd=uri(here.work))

        assert told.output == b""
        assert here.outside_facts() == before


async def test_a_denied_directory_inside_of_what_can_be_written_stays_hidden(
    confining: ConfiningServer,
) -> None:
    """Neither by a new name, nor by a second one, nor by moving what is around it."""
    with scene(confining.uid) as here:
        secret = here.work / "sub" / "secret"
        secret.mkdir()
        (secret / "key").write_text("whole\n")
        here.give()
        sandbox = policy(READ_ALL, PROJECT, entry(secret, "deny"), roots=(here.work,))
        script = (
            "cat sub/secret/key; mv sub other; cat other/secret/key; ln other/secret/key k; cat k; ls -R ."
        )
        async with talk(confining.url) as talking:
            if confining.backend == "landlock":
                with pytest.raises(Refusal, match="Landlock cannot deny"):
                    await sh(talking, sandbox, script, cwd=uri(here.work))
                return
            told = await sh(talking, sandbox, script, cwd=uri(here.work))

    assert b"whole" not in told.output
    assert b"key" not in told.output


@pytest.mark.parametrize("kind", ["link", "git file"])
@pytest.mark.parametrize("listed", ["unlisted", "denied"])
async def test_a_protected_name_opens_nothing(confining: ConfiningServer, kind: str, listed: str) -> None:
    """What a workspace contains must not decide what else can be read."""
    with scene(confining.uid, git=False) as here:
        if kind == "link":
            (here.work / ".aws").symlink_to(here.outside)
        else:
            (here.work / ".git").write_text(f"gitdir: {here.outside}\n")
        here.give()
        entries = (
            [MINIMAL, PROJECT] if listed == "unlisted" else [READ_ALL, PROJECT, entry(here.base, "deny")]
        )
        sandbox = policy(*entries, roots=(here.work,))
        async with talk(confining.url) as talking:
            script = f"cat {here.victim} .aws/victim"
            if confining.backend == "landlock" and listed == "denied":
                with pytest.raises(Refusal, match="Landlock cannot deny"):
                    await sh(talking, sandbox, script, cwd=uri(here.work))
                return
            told = await sh(talking, sandbox, script, cwd=uri(here.work))

    assert told.output == b""


async def test_no_command_can_widen_what_the_next_may_write(confining: ConfiningServer) -> None:
    """A place that is named in a policy may be a link by the time of the next command."""
    with scene(confining.uid) as here:
        before = here.outside_facts()
        env = {"PATH": PATH, "TMPDIR": str(here.work / "temporary")}
        for name in ("build", "temporary"):
            (here.work / name).mkdir()
        here.give()
        temporary = {"path": {"type": "special", "value": {"kind": "tmpdir"}}, "access": "write"}
        sandbox = policy(
            READ_ALL, PROJECT, entry(here.work / "build", "write"), temporary, roots=(here.work,)
        )
        swap = "rm -rf build temporary; ln -s ../outside build; ln -s ../outside temporary"
        async with talk(confining.url) as talking:
            for name, script in (
                ("first", swap),
                ("second", "echo taken >../outside/victim; echo x >build/new"),
            ):
                await sh(talking, sandbox, script, cwd=uri(here.work), env=env, name=name)

        assert here.outside_facts() == before


async def test_denied_files_inside_of_what_can_be_written_stay_hidden(confining: ConfiningServer) -> None:
    """Neither moved, nor linked, nor copied, nor replaced."""
    with scene(confining.uid) as here:
        (here.work / "sub" / "a.env").write_text("whole\n")
        here.give()
        sandbox = policy(READ_ALL, PROJECT, glob(f"{here.work}/**/*.env"), roots=(here.work,))
        script = (
            "cat sub/a.env; mv sub/a.env x; cat x; ln sub/a.env y; cat y; cp sub/a.env z; cat z;"
            " mv sub other; cat other/a.env; rm -f sub/a.env"
        )
        async with talk(confining.url) as talking:
            if confining.backend == "landlock":
                with pytest.raises(Refusal, match="Landlock cannot deny"):
                    await sh(talking, sandbox, script, cwd=uri(here.work))
                return
            told = await sh(talking, sandbox, script, cwd=uri(here.work))

        assert told.output == b""
        assert (here.work / "sub" / "a.env").read_text() == "whole\n"


@pytest.mark.parametrize("backend", BACKENDS)
async def test_no_command_can_open_denied_files_for_the_next(backend: str) -> None:
    """What stands in for denied files must not be anybody's to change."""
    # A place of its own for what the server keeps there, so that nobody else's is touched.
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", place)
        with host_of("self", "--sandbox", backend) as host, scene(os.getuid()) as here:
            confining = await confining_server(backend, host)
            if backend == "landlock":
                pytest.skip("it refuses every policy with denied files")
            sandbox = policy(
                READ_ALL, PROJECT, entry(place, "write"), entry(here.victim, "deny"), roots=(here.work,)
            )
            find = f"find {place} -name denied -user $(id -u)"
            script = f"for f in $({find}); do rm -f $f; ln -s {here.victim} $f; done"
            async with talk(confining.url) as talking:
                first = await sh(talking, sandbox, script + f"; cat {here.victim}", name="first")
                second = await sh(talking, sandbox, f"cat {here.victim}", name="second")

    assert first.output == second.output == b""


# Others.

NETWORK = (
    "tcp", "udp", "raw", "packet", "netlink", "vsock", "inet6", "alg", "unix_stream", "unix_datagram",
    "unix_raw", "unix_message", "pair_of_datagrams", "pair_message", "packets_in_order", "abstract",
    "in_a_network_of_the_hosts",
)  # fmt: skip
ON_OTHERS = (
    "kill", "tgkill", "tkill", "queued", "by_pidfd", "by_owner", "trace", "write_memory", "write_memory_file",
    "read_memory_file", "read_variables", "their_root", "their_directory", "their_file", "their_descriptor",
    "their_limits", "their_priority", "their_scheduler", "their_processors", "their_disk_priority",
    "their_namespaces", "their_shared_memory", "their_oom_score",
)  # fmt: skip
ON_THE_KERNEL = ("ring", "keys", "new_key", "program_of_the_kernels", "host_name", "no_filter", "device")
ADMITTED = {
    "their_priority": ("priorit", "nice"),
    "their_scheduler": ("priorit", "policy"),
    "their_processors": ("priorit", "processors"),
    "their_disk_priority": ("priorit", "disk"),
    "their_shared_memory": ("System V", "shared"),
}
"""What a server may say of itself that it cannot refuse, in which words, and where it shows."""
REFUSALS = (errno.EPERM, errno.EACCES, errno.ESRCH, errno.ENOENT)
ON_THE_PARENT = ("first_process", "tracing_the_first_process")


def network(here: Scene, outside: Ears, pid: int) -> Message:
    """What is outside to be spoken to."""
    return {
        "root": str(here.work), "port": outside.port, "place": outside.stream_path,
        "also": outside.datagram_path, "pid": pid,
    }  # fmt: skip


async def test_nobody_outside_is_spoken_to(confining: ConfiningServer) -> None:
    """A socket leads to daemons that do what they are told."""
    with scene(confining.uid) as here, ears(here.outside) as outside, bystander(confining) as other:
        jobs = [(way, network(here, outside, other.reach["pid"])) for way in NETWORK]
        async with talk(confining.url) as talking:
            said = await intrude_all(talking, confining, workspace(here.work), jobs)

        assert [way for way in NETWORK if "refused" not in said[way]] == []
        assert outside.heard() == []
        assert other.state() == other.before


async def test_nobody_is_spoken_to_by_another_who_may(confining: ConfiningServer) -> None:
    """Our own parent is not under the filter, but it must not be ours to use."""
    with scene(confining.uid) as here, ears(here.outside) as outside, bystander(confining) as other:
        params = network(here, outside, other.reach["pid"])
        async with talk(confining.url) as talking:
            await sh(talking, None, "true")  # So that there is a connection to be sure of.
            said = await intrude_or_end(
                talking, confining, workspace(here.work), "through_the_first_process", params
            )

        assert outside.heard() == []
        assert "refused" in said


async def intrude_or_end(
    talking: Client, confining: ConfiningServer, sandbox: Message, way: str, params: Message
) -> Message:
    """The same for ways that may end whoever takes them."""
    told = await run(talking, sandbox, *confining.python(INTRUDER, way, json.dumps(params)), name="q")
    return json_of(told) if told.output else {"ended": told.code}


@pytest.mark.parametrize("server", SETUPS[:1], ids="-".join, indirect=True)
async def test_without_a_sandbox_they_are_spoken_to(confining: ConfiningServer) -> None:
    """Or nobody would have listened."""
    with scene(confining.uid) as here, ears(here.outside) as outside:
        ways = ("tcp", "udp", "unix_stream", "unix_datagram", "abstract")
        async with talk(confining.url) as talking:
            await intrude_all(talking, confining, None, [(way, network(here, outside, 1)) for way in ways])

        assert outside.heard() == sorted(outside.all)


def others(here: Scene, other: Bystander) -> Message:
    """What can be reached of somebody outside."""
    return {
        "root": str(here.work), "pid": other.reach["pid"], "address": other.reach["address"],
        "also": str(other.reach["segment"]),
    }  # fmt: skip


async def test_processes_outside_are_left_alone(confining: ConfiningServer) -> None:
    """The same user's other processes are its editor, its agent and this server."""
    with scene(confining.uid) as here, bystander(confining) as other:
        async with talk(confining.url) as talking:
            jobs = [(way, others(here, other)) for way in ON_OTHERS]
            said = await intrude_all(talking, confining, workspace(here.work), jobs)

        # To name an owner of a descriptor is nothing yet.
        reached = [way for way in ON_OTHERS if "refused" not in said[way] and way != "by_owner"]
        assert [way for way in reached if not confining.admits(ADMITTED.get(way, ("never", ""))[0])] == []
        expected = {ADMITTED[way][1] for way in reached}
        before, after = other.before, other.state()
        assert {name for name in before if before[name] != after[name]} <= expected


@pytest.mark.parametrize(
    "way", ["kill", "by_owner", "write_memory_file", "their_limits", "their_priority", "their_shared_memory"]
)
@pytest.mark.parametrize("server", SETUPS[:1], ids="-".join, indirect=True)
async def test_without_a_sandbox_they_are_not(confining: ConfiningServer, way: str) -> None:
    """Or there was nothing to see."""
    with scene(confining.uid) as here, bystander(confining) as other:
        async with talk(confining.url) as talking:
            await intrude(talking, confining, None, way, others(here, other))

        assert other.state() != other.before


async def test_the_kernel_and_the_parent_refuse(confining: ConfiningServer) -> None:
    """Whatever is not under the filter, or could end it."""
    with scene(confining.uid) as here:
        jobs = [(way, {"root": str(here.work)}) for way in ON_THE_KERNEL + ON_THE_PARENT]
        async with talk(confining.url) as talking:
            said = await intrude_all(talking, confining, workspace(here.work), jobs)

    assert {way: answer for way, answer in said.items() if answer.get("refused") not in REFUSALS} == {}


async def test_a_command_has_no_power_and_no_way_to_it(confining: ConfiningServer) -> None:
    """Not even root's: what is left is to be a user."""
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            said = await intrude(talking, confining, workspace(here.work), "status", {"root": str(here.work)})
            privileges = await intrude(
                talking, confining, workspace(here.work), "new_privileges", {"root": str(here.work)}, name="q"
            )

    status = said["done"]
    assert {name: status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapAmb"), "0" * 16
    )
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert privileges == {"done": 1}


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
async def test_a_command_inherits_its_standard_files_only(confining: ConfiningServer, tty: bool) -> None:  # noqa: FBT001
    """A forgotten descriptor is a door."""
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            said = await intrude(
                talking, confining, workspace(here.work), "descriptors", {"root": str(here.work)}, tty=tty
            )

    assert said == {"done": ["0", "1", "2"]}


LEAVE = """if True:
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)

    def program(name, mode=0o755):
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        os.write(fd, b"x")
        return fd

    def by_descriptor():
        os.fchmod(program("fchmod"), 0o6755)

    def by_a_newer_call():
        program("fchmodat2")
        if libc.syscall(ctypes.c_long(452), -100, b"fchmodat2", 0o4755, 0):
            raise OSError(ctypes.get_errno(), "")

    def by_struct(name, mode, flags=os.O_CREAT | os.O_RDWR):
        how = (ctypes.c_uint64 * 3)(flags, mode, 0)
        fd = libc.syscall(ctypes.c_long(437), -100, name, how, ctypes.c_size_t(24))
        if fd < 0:
            raise OSError(ctypes.get_errno(), "")
        return fd

    def unnamed(fd, name):
        libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, name.encode(), 0x400)

    def in_memory():
        fd = os.open("memory", os.O_CREAT | os.O_RDWR, 0o4755)
        os.truncate(fd, 1)

    ways = [
        lambda: program("chmod") and os.chmod("chmod", 0o4755),
        lambda: program("fchmodat") and os.chmod("fchmodat", 0o4755, dir_fd=os.open(".", os.O_RDONLY)),
        lambda: program("open", 0o4755),
        lambda: (os.mknod("mknod", 0o104755), os.write(os.open("mknod", os.O_WRONLY), b"x")),
        by_descriptor, by_a_newer_call, in_memory,
        lambda: os.open("empty", os.O_CREAT | os.O_RDWR, 0o4755),
        lambda: os.mknod("node", 0o104755),
        lambda: by_struct(b"struct", 0o4755),
        lambda: unnamed(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o4755), "unnamed"),
        lambda: unnamed(by_struct(b".", 0o4755, os.O_TMPFILE | os.O_RDWR), "both"),
    ]
    for way in ways:
        try:
            way()
        except OSError:
            pass
"""


def powerful(here: Scene) -> set[str]:
    """Programs that run as their owner, or will when somebody fills them."""
    found = {path.name: path.stat() for path in here.work.iterdir() if path.is_file()}
    return {name for name, facts in found.items() if facts.st_mode & stat.S_ISUID}


async def test_no_program_is_left_that_runs_as_its_owner(confining: ConfiningServer) -> None:
    """Somebody outside would run it, with all that the sandbox keeps from the command."""
    with scene(confining.uid) as here, scene(confining.uid) as control:
        async with talk(confining.url) as talking:
            told = await run(
                talking, workspace(here.work), *confining.python("-c", LEAVE), cwd=uri(here.work)
            )
            await run(talking, None, *confining.python("-c", LEAVE), cwd=uri(control.work), name="control")

        assert (told.code, told.output) == (0, b"")
        assert powerful(here) == set()
        assert powerful(control) >= {
            "chmod",
            "fchmod",
            "fchmodat",
            "empty",
            "node",
            "struct",
            "unnamed",
            "both",
        }


TREES = """if True:
    import fcntl, os, struct
    for number in (0x5000940e, 0x50009401, 0x5000940f, 0x50009418, 0x4020bc10, 0x40186f04):
        try:
            fcntl.ioctl(os.open("..", os.O_RDONLY), number, bytearray(4096))
            print("done")
        except OSError as error:
            print(error.errno)
"""


async def test_no_file_system_is_told_to_make_trees(confining: ConfiningServer) -> None:
    """On btrfs a snapshot could be put into any directory that can be read, and Landlock was not asked."""
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            argv = confining.python("-c", TREES)
            told = await run(talking, workspace(here.work), *argv, cwd=uri(here.work))
            control = await run(talking, None, *argv, cwd=uri(here.work), name="control")

    assert set(told.output.split()) == {b"%d" % errno.EPERM}
    assert control.output != told.output


async def test_directories_are_watched_only_if_that_is_admitted(confining: ConfiningServer) -> None:
    """Who may not list a directory learns by a watch which names come and go there."""
    source = (
        "import ctypes, sys; libc = ctypes.CDLL(None);"
        " print(libc.inotify_add_watch(libc.inotify_init1(0), sys.argv[1].encode(), 0xfff) > 0)"
    )
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        pytest.skip("the system has no Python of its own, and others cannot be seen there")
    with scene(confining.uid) as here:
        sandbox = policy(MINIMAL, PROJECT, roots=(here.work,))
        async with talk(confining.url) as talking:
            argv = (python, "-I", "-S", "-c", source, str(here.outside))
            told = await run(talking, sandbox, *argv, cwd=uri(here.work))

    assert told.output.strip() == str(confining.admits("watched")).encode()


async def test_hard_links_are_admitted(confining: ConfiningServer) -> None:
    """What a file is called elsewhere no mount and no rule about names can know."""
    with scene(confining.uid) as here:
        protected, before = here.config, here.config.read_text()
        os.link(protected, here.work / "other")
        async with talk(confining.url) as talking:
            await sh(talking, workspace(here.work), "echo evil > .git/config", cwd=uri(here.work))
            by_its_name = protected.read_text()
            await sh(talking, workspace(here.work), "echo evil > other", cwd=uri(here.work), name="other")
        left = protected.read_text() != before

    assert by_its_name == before
    assert confining.admits("hard links") is left


async def test_programs_of_the_group_are_admitted(confining: ConfiningServer) -> None:
    """The bit cannot be refused: on directories it says who owns what is made there."""
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            await sh(talking, workspace(here.work), "chmod 2755 file", cwd=uri(here.work))
        left = bool((here.work / "file").stat().st_mode & stat.S_ISGID)

    assert confining.admits("set-gid") is left


SETUID = (
    '#include <unistd.h>\n#include <stdio.h>\nint main(void) { printf("%d\\n", (int)geteuid()); return 0; }\n'
)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make such a program")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")
async def test_programs_of_others_do_not_run_as_them(confining: ConfiningServer) -> None:
    """Neither ``sudo`` nor ``su`` nor ``ping``."""
    if confining.uid == 0:
        pytest.skip("who is root already gains nothing")
    with scene(confining.uid) as here:
        program = here.outside / "whoami"
        command = ["gcc", "-x", "c", "-o", str(program), "-"]
        subprocess.run(command, input=SETUID.encode(), check=True)
        os.chmod(program, 0o4755)  # noqa: S103  (that is the question)
        params = {"root": str(here.work), "place": str(program)}
        async with talk(confining.url) as talking:
            said = await intrude(talking, confining, workspace(here.work), "privileged_program", params)
            control = await intrude(talking, confining, None, "privileged_program", params, name="control")

    assert control == {"done": 0}
    assert said == {"done": confining.uid}


@pytest.mark.parametrize("way", ["other_terminal", "type_on_other_terminal"])
async def test_other_terminals_are_left_alone(confining: ConfiningServer, way: str) -> None:
    """Who can type on a terminal is its user."""
    ours, theirs = pty.openpty()
    try:
        path = os.ttyname(theirs)
        os.chown(path, confining.uid, -1)
        with scene(confining.uid) as here:
            params = {"root": str(here.work), "place": path}
            async with talk(confining.url) as talking:
                said = await intrude(talking, confining, workspace(here.work), way, params)

        assert select.select([ours, theirs], [], [], 0)[0] == []
        assert "refused" in said
    finally:
        os.close(ours)
        os.close(theirs)


# Races and floods.


@pytest.mark.stress
@LONG_ONES
async def test_no_race_leads_outside(confining: ConfiningServer) -> None:
    """The walls are the kernel's, which looks once."""
    with scene(confining.uid) as here:
        before = here.outside_facts()
        async with talk(confining.url) as talking:
            said = await intrude(
                talking,
                confining,
                workspace(here.work),
                "swapped_links",
                about(here, "outside", tries=5000),
                within=19,
            )

        assert here.outside_facts() == before
        assert said["done"]["refused"] > 0, "or it was no race"
        assert said["done"]["done"] > 0, "the same"


@pytest.mark.stress
@LONG_ONES
async def test_no_race_leads_to_what_is_protected_by_the_kernel(confining: ConfiningServer) -> None:
    """Whoever says ``hard`` means it; whoever does not says ``soft``."""
    with scene(confining.uid) as here:
        before = here.protected_facts()
        params = about(here, "protected", tries=5000, place=str(here.work / "file"))
        async with talk(confining.url) as talking:
            said = await intrude(talking, confining, workspace(here.work), "swapped_words", params, within=19)
            after, told = here.protected_facts(), said["done"]
            single = await intrude(
                talking, confining, workspace(here.work), "write", about(here, "protected"), name="single"
            )

        assert told["refused"] > 0
        assert "refused" in single
        assert confining.info["protectsSubpaths"] == ("hard" if confining.backend == "bubblewrap" else "soft")
        if confining.is_hard:
            await eventually(lambda: not here.has_masks())
            assert {**after, **here.protected_facts()} == {**after, **before}
            assert here.protected_facts() == before


async def test_a_protected_link_is_never_said_to_be_kept_by_the_kernel(confining: ConfiningServer) -> None:
    """No mount can cover a link: whoever asks for more than the witness can do is refused."""
    with scene(confining.uid, git=False) as here:
        (here.work / "real").mkdir()
        (here.work / ".git").symlink_to("real")
        here.give()
        hard = {**workspace(here.work), "protectsSubpaths": "hard"}
        async with talk(confining.url) as talking:
            with pytest.raises(Refusal) as refused:
                await talking.start("h", "true", cwd=uri(here.work), sandbox=hard)
            told = await sh(talking, workspace(here.work), f"rm {here.work}/.git")

        assert refused.value.code == -32602
        assert "cannot" in str(refused.value)
        assert told.ops == {("unlink", str(here.work / ".git"))}
        assert os.path.islink(here.work / ".git")
        if confining.backend == "bubblewrap":
            assert any("symbolic link" in weakness for weakness in confining.info["weaknesses"])


@pytest.mark.stress
@LONG_ONES
async def test_a_flooded_witness_still_sees_and_keeps_little(confining: ConfiningServer) -> None:
    """A client that is told everything could be drowned in it."""
    with scene(confining.uid) as here:
        before = here.outside_facts()
        params = about(here, "outside", tries=20000)
        async with talk(confining.url) as talking:
            said = await intrude(talking, confining, workspace(here.work), "flood", params, within=19)
            (end,) = (told for kind, told in talking.tale("p").events if kind == "exited")
            after = await sh(talking, workspace(here.work), f"echo x >{here.victim}", name="after")

        assert said == {"done": 20000}
        assert here.outside_facts() == before
        counts = [one["count"] for one in end["denials"]]
        assert sum(counts) == 20000
        assert len(counts) <= 65
        assert after.ops == {("open", str(here.victim))}


@pytest.mark.stress
@LONG_ONES
async def test_a_witness_stands_a_storm_of_processes(confining: ConfiningServer) -> None:
    """Those who ask and are gone before the answer."""
    with scene(confining.uid) as here:
        before = here.outside_facts()
        params = about(here, "outside", tries=40)
        async with talk(confining.url) as talking:
            said = await intrude(
                talking, confining, workspace(here.work), "flood_of_threads", params, within=19
            )
            (end,) = (told for kind, told in talking.tale("p").events if kind == "exited")

        assert said == {"done": 320}
        assert here.outside_facts() == before
        assert end["denials"] == [{"op": "open", "path": str(here.victim), "count": 320}]


async def test_a_witness_cannot_be_held(confining: ConfiningServer) -> None:
    """A command that cannot be ended because its shim waits for it has escaped as well."""
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            argv = confining.python(INTRUDER, "hold_the_witness")
            await talking.start(
                "p", *argv, f'{{"root": "{here.work}"}}', sandbox=workspace(here.work), cwd=uri(here.work)
            )
            tale = talking.tale("p")
            await talking.until(lambda: b"held" in tale.data() or tale.is_closed)
            if b"held" not in tale.data():
                pytest.skip("no such memory can be had here")
            answer = await talking.call("process/terminate", {"processId": "p"})
            await talking.closed("p")

    assert answer["survivors"] == []


async def test_nobody_can_end_who_watches(confining: ConfiningServer) -> None:
    """Under bubblewrap the parent cannot be named; under Landlock it cannot be reached."""
    with scene(confining.uid) as here:
        async with talk(confining.url) as talking:
            said = await intrude(
                talking, confining, workspace(here.work), "stop_the_parent", {"root": str(here.work)}
            )
            told = await sh(
                talking, workspace(here.work), "kill -9 $PPID; kill -STOP $PPID; exit 7", name="q"
            )

    # The first process of a namespace hears no signal of its children, and they are not told.
    assert said == ({"done": None} if confining.backend == "bubblewrap" else {"refused": errno.EPERM})
    assert told.code == 7
    assert told.kind == "exit"


def test_all_ways_are_tried() -> None:
    """A way that is forgotten in the lists above is never taken."""
    elsewhere = {
        "kernel_setting", "status", "descriptors", "privileged_program", "other_terminal",
        "type_on_other_terminal", "hold_the_witness", "new_privileges", "stop_the_parent",
        "through_the_first_process",
    }  # fmt: skip

    assert {*NETWORK, *ON_OTHERS, *ON_THE_KERNEL, *ON_THE_PARENT, *elsewhere} == CALLS.keys()
    assert PROTECTED[0] == ".git"
