"""The engine as far as one client may use it: grants, and quotas over all clients of a principal."""

from __future__ import annotations

import gc
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.account import AccountBackend
from holdfast.engine.local import LocalBackend
from holdfast.engine.process import LocalProcess
from holdfast.engine.ring import PIECE
from holdfast.errors import AuditFailed, Forbidden, HttpFailed, LimitReached, SpawnFailed
from holdfast.model import EnvironmentPolicy, Exit, HttpHeader, HttpRequest, Inherit, Spec
from holdfast.principal import ANYBODY, Grant, Principal
from holdfast.telemetry import Audit
from holdfast.value import replace
from tests.fakes.gate import Gate
from tests.fakes.process import command, eventually, sh
from tests.fakes.recorder import finished, record


def client(backend: LocalBackend, name: str = "a", **grant: Any) -> AccountBackend:
    """What a client of the principal of this name has, with a token that allows so much."""
    made = backend.on_behalf_of(Principal(name, "i", Grant(**grant)), "peer")
    assert isinstance(made, AccountBackend)
    return made


async def forbidden(asked: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(Forbidden) as caught:
        await asked
    return caught.value.what, caught.value.subject


async def test_whoever_was_not_asked_for_a_token_has_the_engine_itself(backend: LocalBackend) -> None:
    assert backend.on_behalf_of(ANYBODY) is backend
    assert client(backend).on_behalf_of(ANYBODY) is backend


async def test_what_is_not_restricted_is_the_engines(backend: LocalBackend) -> None:
    mine = client(backend)

    assert (mine.info, mine.files) == (backend.info, backend.files)
    await mine.aclose()
    assert (await finished(await mine.start(sh("exit 3")))).told == [("exited", 3), ("closed",)]


# Processes.


async def test_a_quota_of_processes_is_kept_over_all_clients_of_a_principal(
    backend: LocalBackend, gate: Gate
) -> None:
    first, second = client(backend, processes=2), client(backend, processes=2)
    other = client(backend, "b", processes=1)
    process = await first.start(sh(gate.shell))
    await second.start(sh("exec sleep 1000"))

    for each in (first, second):
        with pytest.raises(LimitReached) as caught:
            await each.start(sh("true"))
        assert str(caught.value) == "limit reached: processes of one principal (2)"
        assert (caught.value.value, caught.value.name) == (2, "token.processes")
    await finished(await other.start(sh("true")))
    gate.open()
    await finished(process)

    await finished(await second.start(sh("true")))


async def test_another_token_of_the_principal_may_allow_more(backend: LocalBackend) -> None:
    small, large = client(backend, processes=1), client(backend, processes=2)
    await large.start(sh("exec sleep 1000"))

    with pytest.raises(LimitReached):
        await small.start(sh("true"))
    await finished(await large.start(sh("true")))


async def test_a_start_that_fails_takes_no_place(backend: LocalBackend) -> None:
    mine = client(backend, processes=1)

    for _ in range(3):
        with pytest.raises(SpawnFailed):
            await mine.start(command("/no/such/program"))

    await finished(await mine.start(sh("true")))


async def test_what_a_process_leaves_behind_takes_its_place_until_it_is_gone(
    backend: LocalBackend, tmp_path: Path
) -> None:
    """Or a quota of one would be as many as somebody likes to leave behind."""
    mine = client(backend, processes=1)
    process = await mine.start(sh(f"sleep 1000 >/dev/null 2>&1 & echo $! >{tmp_path}/pid"))
    await finished(process)
    assert process.has_leftovers

    with pytest.raises(LimitReached):
        await mine.start(sh("true"))
    os.kill(int((tmp_path / "pid").read_text()), 9)
    await eventually(lambda: not process.has_leftovers)

    await finished(await mine.start(sh("true")))


async def test_an_account_is_there_as_long_as_somebody_uses_it(backend: LocalBackend) -> None:
    process: LocalProcess | None = await client(backend).start(sh("exec sleep 1000"))
    assert process is not None
    watcher = record(process)
    gc.collect()

    with pytest.raises(LimitReached):
        await client(backend, processes=1).start(sh("true"))
    await process.end()
    await watcher.until("closed")
    process.forget()
    process = None

    await eventually(lambda: gc.collect() >= 0 and len(backend._accounts) == 0)


# Output.


async def test_the_share_of_a_principal_is_what_its_last_token_says(backend: LocalBackend) -> None:
    mine = client(backend, retained_bytes=100_000)
    other = client(backend, "b")
    small = await mine.start(sh("head -c 500000 /dev/zero"))
    watcher = record(small)
    large = await other.start(sh("head -c 500000 /dev/zero"))
    await finished(large)
    await watcher.until("closed")

    page = await small.read()
    assert small.retained() <= 100_000
    assert page.gap is not None
    assert page.gap.size == 500_000 - small.retained()
    assert large.retained() == 500_000

    bounds = []
    for most in (10, None):
        client(backend, retained_bytes=most)
        bounds.append(mine._account.budget.most)
    assert bounds == [10, None]


async def test_what_was_packed_still_counts_in_the_share(backend: LocalBackend) -> None:
    mine = client(backend)
    process = await mine.start(sh("echo hi"))
    await finished(process)
    used = mine._account.budget.used

    packed = process.pack()
    assert packed is not None
    past = mine.unpack(packed)
    kept = past.retained()
    past.forget()

    assert (used, kept, mine._account.budget.used) == (3 + PIECE, 3, 0)


# Directories.


@pytest.fixture
def top(tmp_path: Path) -> str:
    for name in ("in/deep", "inside", "out"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "in/leads-out").symlink_to("../out")
    (tmp_path / "in/leads-in").symlink_to("deep")
    (tmp_path / "leads-in").symlink_to("in")
    return str(tmp_path.resolve())


@pytest.mark.parametrize("cwd", ["in", "in/deep", "in/leads-in"])
async def test_a_process_may_start_below_a_root(backend: LocalBackend, top: str, cwd: str) -> None:
    mine = client(backend, roots=("/nowhere", f"{top}/in"))
    process = await mine.start(command("pwd", "-P", cwd=f"{top}/{cwd}"))

    assert (await finished(process)).said() == os.path.realpath(f"{top}/{cwd}").encode() + b"\n"


@pytest.mark.parametrize("cwd", ["out", "inside", "", "in/leads-out", "leads-in", "in/../out", "nowhere"])
async def test_and_nowhere_else(backend: LocalBackend, top: str, cwd: str) -> None:
    mine = client(backend, roots=(f"{top}/in",))

    refused = await forbidden(mine.start(command("true", cwd=f"{top}/{cwd}")))

    assert refused == ("directory", f"{top}/{cwd}")


async def test_a_root_may_be_a_link(backend: LocalBackend, top: str) -> None:
    mine = client(backend, roots=(f"{top}/leads-in",))

    await finished(await mine.start(command("true", cwd=f"{top}/leads-in/deep")))
    await forbidden(mine.start(command("true", cwd=f"{top}/leads-in/leads-out")))


async def test_a_directory_that_is_missing_is_missing_inside_and_forbidden_outside(
    backend: LocalBackend, top: str
) -> None:
    """Whoever may not look there is not told what is there."""
    mine = client(backend, roots=(f"{top}/in",))

    with pytest.raises(SpawnFailed):
        await mine.start(command("true", cwd=f"{top}/in/missing"))
    there = await forbidden(mine.start(command("true", cwd=f"{top}/in/leads-out")))
    missing = await forbidden(mine.start(command("true", cwd=f"{top}/in/leads-out/x")))

    assert (there[0], missing[0]) == ("directory", "directory")


async def test_files_outside_of_the_roots_are_not_there(backend: LocalBackend, top: str) -> None:
    mine = client(backend, roots=(f"{top}/in",))

    assert [entry.name for entry in await mine.files.list(f"{top}/in")]
    assert await forbidden(mine.files.list(f"{top}/out")) == ("path", f"{top}/out")


# Variables.


def with_env(env: dict[str, str | None], policy: EnvironmentPolicy | None = None) -> Spec:
    return replace(command("env", env={}), env=env, env_policy=policy)


async def test_variables_that_the_token_does_not_allow_are_refused(backend: LocalBackend) -> None:
    mine = client(backend, variables=("A_*",))
    given = EnvironmentPolicy(Inherit.NONE, True, (), (("A_2", "x"), ("B", "x")), ())

    assert await forbidden(mine.start(with_env({"A_1": "x", "B": "x"}))) == ("variable", "B")
    assert await forbidden(mine.start(with_env({"a_1": "x"}))) == ("variable", "a_1")
    assert await forbidden(mine.start(with_env({}, given))) == ("variable", "B")
    assert await forbidden(client(backend, variables=()).start(with_env({"A": ""}))) == ("variable", "A")


async def test_others_are_there_and_one_may_always_be_taken_away(backend: LocalBackend) -> None:
    process = await client(backend, variables=("A_*",)).start(with_env({"A_1": "x", "B": None}))

    assert (await finished(process)).said() == b"A_1=x\n"


async def test_a_header_gets_no_variable_that_the_token_does_not_allow(backend: LocalBackend) -> None:
    header = HttpHeader("X-A", "", "HOME")
    request = HttpRequest("GET", "http://127.0.0.1:1/", headers=(header,))

    assert await forbidden(client(backend, variables=("A",)).http.request(request)) == ("variable", "HOME")
    with pytest.raises(HttpFailed):  # Nobody is there; it was tried.
        await client(backend, variables=()).http.request(replace(request, headers=(HttpHeader("X-A", "1"),)))


# The audit log.


class Book:
    """Implements ``audit.Audit`` and ``audit.AuditRecord``: remembers everything."""

    ref = "ref"

    def __init__(self) -> None:
        self.lines: list[tuple[object, ...]] = []
        self.full = False

    def refused(self, peer: str, reason: str) -> None: ...

    def connected(self, principal: Principal, peer: str) -> None: ...

    def gone(self, principal: Principal, peer: str) -> None: ...

    def forbidden(self, principal: Principal, peer: str, what: str, subject: str) -> None: ...

    def start(self, principal: Principal, peer: str, spec: Spec) -> Book:
        if self.full:
            raise AuditFailed("full")
        self.lines.append(("start", principal.name, peer, spec.argv[0]))
        return self

    def resume(self, ref: str, pid: int) -> Book:
        self.lines.append(("resumed", ref, pid))
        return self

    def running(self, pid: int) -> None:
        self.lines.append(("running", pid))

    def failed(self, reason: str) -> None:
        self.lines.append(("failed", reason))

    def ended(self, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        self.lines.append(("ended", exit.code))


def audited(backend: LocalBackend, book: Audit) -> AccountBackend:
    backend._audit = book
    made = backend.on_behalf_of(ANYBODY, "unix")
    assert isinstance(made, AccountBackend)
    return made


async def test_a_process_is_written_down_from_its_start_to_its_end(backend: LocalBackend) -> None:
    book = Book()
    process = await audited(backend, book).start(sh("exit 3"))
    await finished(process)

    assert book.lines == [("start", "", "unix", "sh"), ("running", process.pid), ("ended", 3)]


async def test_why_one_was_not_started_is_written_down(backend: LocalBackend) -> None:
    book = Book()
    with pytest.raises(SpawnFailed) as caught:
        await audited(backend, book).start(command("/no/such"))

    assert book.lines == [("start", "", "unix", "/no/such"), ("failed", str(caught.value))]


async def test_what_cannot_be_written_down_is_not_started(backend: LocalBackend, tmp_path: Path) -> None:
    book = Book()
    book.full = True
    mine = audited(backend, book)

    with pytest.raises(AuditFailed):
        await mine.start(sh(f"touch {tmp_path}/x"))
    book.full = False
    await finished(await mine.start(sh("true")))

    assert os.listdir(tmp_path) == []
    assert mine._account.processes == 0


async def test_watchers_hear_what_they_always_do(backend: LocalBackend) -> None:
    watcher = record(await client(backend, processes=1).start(sh("echo hi")))

    await watcher.until("closed")

    assert watcher.told == [("stdout", b"hi\n"), ("exited", 0), ("closed",)]
