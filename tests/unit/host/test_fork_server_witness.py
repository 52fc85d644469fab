"""The witness: what it tells of, what it does not, and what it refuses by itself."""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.host.sandbox.confinement import Confinement
from holdfast.sandbox import Access, Named, SandboxEntry, Where
from tests.fakes.fork_server import DENIAL, EMPTY, EXITED, GUARD, STARTED, Command, ForkServer, sh

pytestmark = pytest.mark.timeout(2 * GUARD)

ROOT = SandboxEntry(Named(Where.ROOT), Access.READ)
Confine = Callable[..., Confinement]
Denials = Counter[tuple[str, str]]


@pytest.fixture(params=["bubblewrap", "landlock"])
def confine(request: pytest.FixtureRequest) -> Confine:
    """The witness is the same for both."""
    made: Confine = request.getfixturevalue("wrapped" if request.param == "bubblewrap" else "locked")
    return made


def outcome(command: Command) -> tuple[int, Denials]:
    """The exit code, and what was told to have been refused just before it."""
    found: Denials = Counter()
    command.tells(STARTED)
    report = command.told()
    while report is not None and report.what == DENIAL:
        assert report.denied is not None
        assert report.denied not in found
        found[report.denied] = report.value
        report = command.told()
    assert report is not None
    assert report.what == EXITED
    command.release()
    command.tells(EMPTY)
    return report.value, found


@pytest.fixture
def ran(fork_server: ForkServer, confine: Confine, work: Path) -> Callable[[str], tuple[int, Denials]]:
    """Runs a script in a workspace beside which there are other things."""
    outside = work.with_name("outside")
    (outside / "empty").mkdir(parents=True)
    (outside / "file").write_text("whole")
    (work / "inside").write_text("own")
    confinement = confine(ROOT, SandboxEntry(str(work), Access.WRITE))
    return lambda script: outcome(fork_server.command().start(*sh(script), cwd=work, confinement=confinement))


def python(source: str) -> str:
    """A line of a script."""
    return f"{sys.executable} -I -S -c '{source}'"


Ran = Callable[[str], tuple[int, Denials]]


def test_a_command_that_does_what_it_may_is_denied_nothing(ran: Ran) -> None:
    """Whatever it says, and however it ends."""
    script = "touch a; mkdir b; mv a b/a; rm -r b; ln -s x y; chmod 600 inside; cat ../outside/file; exit 3"

    assert ran(f"{{ {script}; }} >/dev/null; echo 'sandbox: operation not permitted' >&2; exit 3") == (
        3,
        Counter(),
    )


@pytest.mark.parametrize(
    ("script", "op", "path"),
    [
        ("echo x > ../outside/file", "open", "outside/file"),
        ("echo x > ../outside/new", "open", "outside/new"),
        ("echo x >> ../outside/../outside/./file", "open", "outside/file"),
        ("mkdir ../outside/new", "mkdir", "outside/new"),
        ("rm -f ../outside/file", "unlink", "outside/file"),
        ("rmdir ../outside/empty", "rmdir", "outside/empty"),
        ("ln -s x ../outside/new", "symlink", "outside/new"),
        ("ln ../outside/file linked", "link", "outside/file"),
        ("ln inside ../outside/new", "link", "outside/new"),
        ("mv ../outside/file ../outside/new", "rename", "outside/file"),
        ("mkfifo ../outside/new", "mknod", "outside/new"),
        (python('import os; os.truncate("../outside/file", 0)'), "truncate", "outside/file"),
        (python('import os; os.rename("inside", "../outside/new")'), "rename", "outside/new"),
        (python('import os; os.open("../outside/file", os.O_RDWR)'), "open", "outside/file"),
        (python('import os; os.open("../outside/new", os.O_CREAT)'), "open", "outside/new"),
        ("cd /; echo x > $OLDPWD/../outside/file", "open", "outside/file"),
        ("ln -s ../outside/file link; echo x > link", "open", "outside/file"),
        ("ln -s ../outside dir; echo x > dir/file", "open", "outside/file"),
    ],
)
def test_what_the_sandbox_refuses_is_told_by_its_place(
    ran: Ran, work: Path, script: str, op: str, path: str
) -> None:
    """Also if nobody says a word about it on the output."""
    code, denials = ran(f"{{ {script}; }} 2>/dev/null || exit 9")

    assert code != 0
    ops = {(found, where) for found, where in denials if found == op or op == "rmdir"}
    assert {where for _, where in ops} == {f"{work.parent}/{path}"}
    assert sorted(os.listdir(work.with_name("outside"))) == ["empty", "file"]
    assert (work.with_name("outside") / "file").read_text() == "whole"


@pytest.mark.parametrize(
    "script",
    [
        "cat /none/such",
        "echo x > /none/such/file",
        "mkdir ../outside/empty",
        "rm ../outside/none",
        "mv none other",
        "rmdir ../outside/file",
        "ln -s x ../outside/file",
        "ls /none",
        "exit 1",
    ],
)
def test_what_would_have_failed_anyway_is_not_worth_a_word(ran: Ran, script: str) -> None:
    """To be told of a sandbox there would send people looking in the wrong place."""
    code, denials = ran(f"{{ {script}; }} 2>/dev/null")

    assert code != 0
    assert denials == Counter() or script.startswith("rmdir")


def test_what_is_tried_again_is_counted(ran: Ran, work: Path) -> None:
    code, denials = ran("for i in 1 2 3; do (echo x > ../outside/file) 2>/dev/null; done; mkdir ../outside/d")

    assert code != 0
    outside = f"{work.parent}/outside"
    assert denials == {("open", f"{outside}/file"): 3, ("mkdir", f"{outside}/d"): 1}


def test_only_the_first_are_listed_and_the_rest_are_counted(ran: Ran, work: Path) -> None:
    """A command that copies a tree to the wrong place must not fill the memory of those who listen."""
    tries = (
        "import os\n"
        "for n in range(140):\n"
        ' try: os.mkdir(f"../outside/{n // 2:02}")\n'
        " except OSError: pass\n"
        "raise SystemExit(1)"
    )

    code, denials = ran(python(tries))

    listed = {("mkdir", f"{work.parent}/outside/{number:02}"): 2 for number in range(64)}
    assert (code, denials) == (1, {**listed, ("", ""): 12})


def test_a_path_of_any_bytes_and_any_length_is_told(ran: Ran, work: Path) -> None:
    name = "x" * 200
    source = (
        f'import os\nfor name in (b"\\xff", b"a b", b"{name}"):\n'
        ' try: os.mkdir(b"../outside/" + name)\n'
        " except OSError: pass"
    )

    _, denials = ran(python(source))

    names = {os.fsdecode(b"\xff"), "a b", name}
    assert denials == {("mkdir", f"{work.parent}/outside/{each}"): 1 for each in names}


@pytest.mark.parametrize(
    ("source", "denial"),
    [
        ("socket.socket(socket.AF_INET)", ("socket", "AF_INET")),
        ("socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)", ("socket", "AF_INET6")),
        ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", ("socket", "AF_NETLINK")),
        ("socket.socket(40)", ("socket", "AF_VSOCK")),
        ("socket.socket(21)", ("socket", "AF_21")),
        ("socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", ("socket", "AF_UNIX")),
        ("socket.socket(socket.AF_UNIX).listen()", ("listen", "")),
    ],
)
def test_the_network_is_refused_and_that_is_told(ran: Ran, source: str, denial: tuple[str, str]) -> None:
    code, denials = ran(python(f"import socket; {source}") + " 2>/dev/null")

    assert (code, denials) == (1, {denial: 1})


def test_local_sockets_with_a_peer_work(ran: Ran) -> None:
    source = 'import socket; a, b = socket.socketpair(); a.sendall(b"x"); assert b.recv(1) == b"x"'

    assert ran(python(source)) == (0, Counter())


def test_a_socket_of_somebody_elses_cannot_be_reached(ran: Ran, work: Path) -> None:
    """A local server may do anything for who talks to it."""

    path = str(work.with_name("outside") / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        source = f'import socket; socket.socket(socket.AF_UNIX).connect("{path}")'
        code, denials = ran(python(source) + " 2>/dev/null")

    assert (code, denials) == (1, {("connect", path): 1})


def test_a_denial_that_a_child_met_is_told_too(ran: Ran, work: Path) -> None:
    code, denials = ran("(sh -c 'mkdir ../outside/new' & wait) 2>/dev/null; exit 4")

    assert (code, denials) == (4, {("mkdir", f"{work.parent}/outside/new"): 1})


def test_a_thread_is_seen_like_everybody_else(ran: Ran, work: Path) -> None:
    source = (
        'import os, threading; t = threading.Thread(target=lambda: os.mkdir("../outside/new"));'
        " threading.excepthook = lambda *a: None; t.start(); t.join()"
    )

    assert ran(python(source)) == (0, {("mkdir", f"{work.parent}/outside/new"): 1})


def test_a_signal_that_is_handled_does_not_make_a_call_happen_twice(ran: Ran, work: Path) -> None:
    source = (
        "import os, signal\n"
        "signal.signal(signal.SIGALRM, lambda *a: None)\n"
        "signal.siginterrupt(signal.SIGALRM, False)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)\n"
        "for n in range(300):\n"
        ' os.mkdir(f"d{n}"); os.rmdir(f"d{n}")\n'
        "signal.setitimer(signal.ITIMER_REAL, 0)"
    )

    assert ran(python(source)) == (0, Counter())


def test_one_command_is_not_told_of_anothers_denials(
    fork_server: ForkServer, confine: Confine, work: Path
) -> None:
    """A shim has one after the other."""
    confinement = confine(ROOT, SandboxEntry(str(work), Access.WRITE))
    command = fork_server.command()

    first = outcome(command.start(*sh("mkdir ../x 2>/dev/null"), cwd=work, confinement=confinement))
    second = outcome(command.start(*sh("exit 1"), cwd=work, confinement=confinement))
    third = outcome(command.start(*sh("mkdir ../x; rmdir ../x"), cwd=work))

    assert first == (1, {("mkdir", f"{work.parent}/x"): 1})
    assert (second, third) == ((1, Counter()), (0, Counter()))


def test_a_command_that_is_killed_while_it_asks_is_gone(
    fork_server: ForkServer, confine: Confine, work: Path
) -> None:
    confinement = confine(ROOT, SandboxEntry(str(work), Access.WRITE))
    command = fork_server.command().start(
        *sh("echo ready; while :; do mkdir d; rmdir d; done"), cwd=work, confinement=confinement
    )
    command.tells(STARTED)
    assert command.line() == "ready"

    command.kill()

    command.tells(EXITED)
    command.tells(EMPTY)
    assert command.members() == set()


# Where the kernel cannot keep a rule.


@pytest.mark.parametrize(
    "script",
    [
        "mkdir .git",
        "touch .git",
        "ln -s x .git",
        "mv inside .git",
        "mkdir .aws",
        "echo x > .agents",
        "ln inside .codex",
        python('import os; os.mkdir(os.getcwd() + "/sub/../.git")'),
        python('import os; fd = os.open(".", os.O_RDONLY); os.mkdir(".git", dir_fd=fd)'),
        "cd sub; mkdir ../.git",
        "ln -s .. up; mkdir up/work/.git",
    ],
)
def test_a_protected_name_does_not_come_into_being(ran: Ran, work: Path, script: str) -> None:
    """By a mount, or by the witness who guards it."""
    (work / "sub").mkdir()

    code, denials = ran(f"{{ {script}; }} 2>/dev/null")

    assert code != 0
    names = {os.path.relpath(path, work).split("/")[0] for _, path in denials}
    assert names & {".git", ".aws", ".agents", ".codex"}
    assert not {".git", ".aws", ".agents", ".codex"} & set(os.listdir(work))


@pytest.fixture
def guarded(fork_server: ForkServer, confine: Confine, work: Path) -> Ran:
    """A workspace with a repository."""
    (work / ".git").mkdir()
    (work / ".git" / "config").write_text("old")
    confinement = confine(ROOT, SandboxEntry(str(work), Access.WRITE))
    return lambda script: outcome(fork_server.command().start(*sh(script), cwd=work, confinement=confinement))


@pytest.mark.parametrize(
    "script",
    [
        "echo new > .git/config",
        "touch .git/new",
        "rm .git/config",
        "mv .git away",
        "mv .git/config config",
        "ln .git/config config && echo new > config",
        "rm -r .git",
        "mkdir .git/hooks",
        python('import os; os.truncate(".git/config", 0)'),
        "mkdir d && mv -T d .git",
    ],
)
def test_a_protected_directory_stays_as_it_is(guarded: Ran, work: Path, script: str) -> None:
    code, denials = guarded(f"{{ {script}; }} 2>/dev/null")

    assert code != 0
    assert denials
    assert all(path.startswith(f"{work}/.git") for _, path in denials)
    assert os.listdir(work / ".git") == ["config"]
    assert (work / ".git" / "config").read_text() == "old"


def test_a_protected_directory_can_be_read_and_what_is_beside_it_written(guarded: Ran, work: Path) -> None:
    assert guarded("cat .git/config > copy; mkdir -p sub/.git; touch sub/.git/x .gitignore") == (0, Counter())
    assert (work / "copy").read_text() == "old"


def test_a_protected_link_stays_a_link(fork_server: ForkServer, confine: Confine, work: Path) -> None:
    """No mount can cover it: so it is guarded."""
    (work / "real").mkdir()
    (work / ".git").symlink_to("real")
    confinement = confine(ROOT, SandboxEntry(str(work), Access.WRITE))
    script = "rm .git; mv .git x; ln -sfn other .git; touch .git/x; touch real/x; true"

    _, denials = outcome(
        fork_server.command().start(*sh(f"{{ {script}; }} 2>/dev/null"), cwd=work, confinement=confinement)
    )

    assert os.readlink(work / ".git") == "real"
    assert os.listdir(work / "real") == []
    assert {path for _, path in denials} >= {f"{work}/.git", f"{work}/real/x"}
