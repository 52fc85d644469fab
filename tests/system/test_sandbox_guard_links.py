"""Under bubblewrap the guard keeps protected names that are links.  Nothing gets past it, or by way of it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.sandboxes import (
    EVERY_SETUP,
    READ_ALL,
    ConfiningServer,
    confining_server,
    entry,
    policy,
    run,
    scene,
    sh,
    talk,
    uri,
    workspace,
)
from tests.fakes.trees import USERS, Host, host_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=USERS)
def mounting(request: pytest.FixtureRequest) -> Iterator[Host]:
    """Where only links are kept by the guard."""
    with host_of(request.param, "--sandbox", "bubblewrap") as host:
        yield host


@pytest.fixture
async def mounted(mounting: Host) -> ConfiningServer:
    return await confining_server("bubblewrap", mounting)


PAST_A_LINK = {
    "through the network's view of a process": """if True:
        import os
        work = "/proc/net/../../.." + os.getcwd()
        os.rename(work + "/.git", work + "/moved")""",
    "through the directory of another thread": """if True:
        import ctypes, os, threading
        work = os.getcwd()
        os.chdir("sub")
        def other():
            assert ctypes.CDLL(None).unshare(0x200) == 0  # A directory of its own.
            os.chdir(work)
            os.unlink("/proc/self/cwd/.git")
        thread = threading.Thread(target=other); thread.start(); thread.join()""",
    "from a directory that nobody may search": """if True:
        import os
        work = os.open(".", os.O_RDONLY)
        os.chmod(".", 0o200)
        try:
            os.unlink(".git", dir_fd=work)
        finally:
            os.chmod(f"/proc/self/fd/{work}", 0o755)""",
    "from a directory that is gone": """if True:
        import os
        os.mkdir("gone"); gone = os.open("gone", os.O_PATH); os.rmdir("gone")
        os.rename("../.git", "../moved", src_dir_fd=gone, dst_dir_fd=gone)""",
    "by another link over it": """if True:
        import os
        os.symlink("sub", "other")
        os.rename("other", ".git")""",
    "with the directory around it": """if True:
        import os
        work = os.getcwd()
        os.rename(work, work + "-moved")""",
}


@pytest.mark.parametrize("way", PAST_A_LINK)
async def test_nothing_leads_past_the_guard_of_a_link(mounted: ConfiningServer, way: str) -> None:
    """The same where no mount covers the name, because it is a link."""
    with scene(mounted.uid, git=False) as here:
        (here.base / "real").mkdir()
        (here.work / ".git").symlink_to("../real")
        here.give()

        async with talk(mounted.url) as talking:
            program = mounted.python("-c", PAST_A_LINK[way])
            await run(talking, workspace(here.work), *program, cwd=uri(here.work))

        assert os.readlink(here.work / ".git") == "../real"
        assert here.work.stat().st_mode & 0o777


WAYS = {
    "by way of a link": {".git": "a", "a": "real"},
    "by way of a link in a directory": {".git": "sub/a", "sub/a": "../real"},
    "through a link to a directory": {".git": "mid/inner", "mid": "far"},
    "past a directory": {".git": "sub/../real"},
    "to nothing": {".git": "none"},
    "to nothing, by way of a link": {".git": "a/none", "a": "sub"},
    "below a file": {".git": "file/../real"},
}
"""Links of a workspace, by where ``.git`` leads."""

REDIRECTED = """
exec 2>/dev/null
for name in a mid sub file none sub/a sub/none far far/inner real .git; do
    mv $name moved; ln -s other moved; mv -T moved $name
    rm -rf $name; ln -sfn $PWD/other $name; mkdir -p $name
done
mkdir -p .git; ln -s ../other sub/none; echo taken >.git/config
"""


def led_to(path: Path) -> tuple[int | None, ...]:
    """What the kernel finds at a path, or why it finds nothing."""
    try:
        facts = path.stat()
    except OSError as error:
        return (error.errno,)
    return facts.st_dev, facts.st_ino


@pytest.fixture(scope="module", params=EVERY_SETUP, ids="-".join)
def either(request: pytest.FixtureRequest) -> Iterator[tuple[str, Host]]:
    backend, user = request.param
    with host_of(user, "--sandbox", backend) as host:
        yield backend, host


@pytest.mark.parametrize("way", WAYS)
async def test_a_protected_name_leads_where_it_led_whatever_is_done_on_the_way(
    either: tuple[str, Host], way: str
) -> None:
    """To change a link further along is to change what the name stands for."""
    confining = await confining_server(*either)
    with scene(confining.uid, git=False) as here:
        for name in ("real", "far/inner", "other"):
            (here.work / name).mkdir(parents=True)
        for name, target in WAYS[way].items():
            (here.work / name).symlink_to(target)
        here.give()
        before = led_to(here.work / ".git")

        async with talk(confining.url) as talking:
            await sh(talking, workspace(here.work), REDIRECTED, cwd=uri(here.work))

        assert led_to(here.work / ".git") == before
        assert not list(here.work.rglob("config"))


MOVED = """if True:
    import ctypes, json, os
    EXCHANGE, AT_FDCWD = 2, -100
    libc = ctypes.CDLL(None, use_errno=True)
    def exchange(one, other):
        if libc.syscall(316, AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), EXCHANGE):
            raise OSError(ctypes.get_errno(), "")
    def new(name):
        (os.mkdir if os.path.isdir(name) else lambda path: open(path, "w").close())("new-" + name)
        return "new-" + name
    deeds = {
        "away": lambda name: os.rename(name, "moved-" + name),
        "gone": lambda name: (os.rmdir if os.path.isdir(name) else os.unlink)(name),
        "over": lambda name: os.rename(new(name), name),
        "exchanged": lambda name: exchange("new-" + name, name),
        "with a slash": lambda name: os.rename(name + "/" * os.path.isdir(name), "moved-" + name),
    }
    told = {}
    for name in os.environ["NAMES"].split():
        for deed, do in deeds.items():
            try: do(name); told[name + " " + deed] = 0
            except OSError as error: told[name + " " + deed] = error.errno
    print(json.dumps(told))"""


async def test_what_mounts_keep_stays_where_a_link_is_guarded(mounted: ConfiningServer) -> None:
    """The guard then makes the calls of the command, from where the mounts of the sandbox are no mounts.

    A name that is covered by one must not be moved, removed or replaced: the mount would be gone with it,
    and what was hidden could be read by the next command.
    """
    with scene(mounted.uid, git=False) as here:
        (here.base / "real").mkdir()
        (here.work / ".git").symlink_to("../real")
        for name in ("hidden", "kept"):
            (here.work / name).write_text("precious")
            (here.work / f"{name}-dir").mkdir()
            (here.work / f"{name}-dir" / "file").write_text("precious")
        here.give()
        names = ["hidden", "hidden-dir", "kept", "kept-dir", ".codex"]
        sandbox = policy(
            READ_ALL,
            entry(here.work, "write"),
            *(entry(here.work / name, "deny") for name in names[:2]),
            *(entry(here.work / name, "read") for name in names[2:4]),
        )

        async with talk(mounted.url) as talking:
            program = mounted.python("-c", MOVED)
            told = await run(talking, sandbox, *program, cwd=uri(here.work), env={"NAMES": " ".join(names)})
            after = await sh(talking, sandbox, "cat hidden hidden-dir/file", cwd=uri(here.work), name="after")

        answers = json.loads(told.output)
        assert answers == dict.fromkeys(answers, errno.EBUSY)
        assert len(answers) == 5 * len(names)
        assert b"precious" not in after.output
        for name in ("hidden", "hidden-dir/file", "kept", "kept-dir/file"):
            assert (here.work / name).read_text() == "precious"


OPENED = """if True:
    import json, os, resource, signal
    fifo, told = os.environ["FIFO"], {}
    def reopened(flags):
        known = os.open(fifo, flags)
        os.write(os.open(f"/proc/self/fd/{known}", os.O_WRONLY | os.O_NONBLOCK), b"x")
    def lengthened():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        open("long", "w").close()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        os.truncate("long", 1 << 20)
    deeds = {
        "memory": lambda: os.open("/proc/1/mem", os.O_RDWR),
        "map": lambda: os.open("/proc/1/setgroups", os.O_WRONLY),
        "output": lambda: os.open("/proc/1/fd/1", os.O_WRONLY),
        "pipe": lambda: reopened(os.O_RDONLY | os.O_NONBLOCK),
        "length": lengthened,
    }
    for deed, do in deeds.items():
        try: do(); told[deed] = ""
        except OSError as error: told[deed] = type(error).__name__ + str(error.errno)
    print(json.dumps(told))"""


async def test_a_guarded_command_opens_nothing_more_than_others(mounted: ConfiningServer) -> None:
    """What guards has more rights than the command, and is in no Landlock domain: it must not open for it.

    By the memory of the first process in the sandbox, which has no filter, a command could do anything.
    """
    told = []
    with scene(mounted.uid, git=False) as here:
        (here.base / "real").mkdir()
        os.mkfifo(here.base / "pipe", 0o666)
        reader = os.open(here.base / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        here.give()
        for linked in (True, False):
            if linked:
                (here.work / ".git").symlink_to("../real")
            async with talk(mounted.url) as talking:
                program = mounted.python("-c", OPENED)
                env = {"FIFO": str(here.base / "pipe")}
                done = await run(talking, workspace(here.work), *program, cwd=uri(here.work), env=env)
            (here.work / ".git").unlink(missing_ok=True)
            told.append(json.loads(done.output))
        os.close(reader)

    assert told[0] == told[1]
    assert told[0]["memory"] != ""
    assert told[0]["length"] == f"OSError{errno.EFBIG}"


@pytest.mark.parametrize("linked", [True, False], ids=["guarded", "not guarded"])
async def test_another_name_of_the_workspace_leads_past_no_mount(
    mounted: ConfiningServer, *, linked: bool
) -> None:
    """What is denied or read-only below a place is so by each of its names."""
    with scene(mounted.uid, git=False) as here:
        alias = here.base / "alias"
        alias.symlink_to(here.work.name)
        if linked:
            (here.base / "real").mkdir()
            (here.work / ".git").symlink_to("../real")
        for name in ("hidden", "kept"):
            (here.work / name).write_text("precious")
        here.give()
        sandbox = policy(
            *(entry(path, "read") for path in ("/usr", "/bin", "/lib", "/lib64")),
            entry(alias, "write"),
            entry(here.work / "hidden", "deny"),
            entry(here.work / "kept", "read"),
        )
        deeds = "cat hidden; echo taken >kept; mv hidden h; mv kept k; rm -f kept; echo made >new; cat new"

        async with talk(mounted.url) as talking:
            told = await sh(talking, sandbox, f"cd {alias}; {deeds}", cwd=uri(here.work))

        assert told.output == b"made\n"
        assert [(here.work / name).read_text() for name in ("hidden", "kept", "new")] == ["precious"] * 2 + [
            "made\n"
        ]
