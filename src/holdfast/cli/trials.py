"""What ``holdfast doctor`` finds out by starting programs: terminals, the end of whole trees, limits.

Each trial starts a real program in a real engine, and reports what it saw.  The advice is in ``doctor.py``.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import Awaitable, Callable

from holdfast.config import MIB, EngineLimits
from holdfast.engine.local import LocalBackend
from holdfast.engine.process import LocalProcess
from holdfast.errors import HoldfastError
from holdfast.host.environ import Environment
from holdfast.host.info import host_info, own_environment
from holdfast.host.limits import find_groups
from holdfast.host.shim import ForkServer
from holdfast.host.spawn import Spawner
from holdfast.model import Exit, Kind, Limits, ProcessTerms, Size, Spec, Stream
from holdfast.value import value

_PATIENCE = 5.0
"""Seconds that one trial may take.  Where everything works it takes milliseconds."""

_BEFORE = Size(rows=33, cols=101)
_AFTER = Size(rows=44, cols=122)

_TERMINAL = """
import os, signal
def show(*_): os.write(1, b"%d %d\\n" % os.get_terminal_size(0))
signal.signal(signal.SIGWINCH, show)
show()
os.read(0, 1)
"""

_TREE = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setpgid(0, 0)
        print(os.getpid(), flush=True)
        signal.pause()
    os._exit(0)
os.wait()
signal.pause()
"""
"""A program whose grandchild has left its process group, its session and its parent."""

_MEMORY = 64 * MIB
_HOG = f"held = b'x' * {4 * _MEMORY}; input()"

_CPU = 60
_FILES = 32
_RESOURCES = "import resource as r; print(r.getrlimit(r.RLIMIT_CPU)[0], r.getrlimit(r.RLIMIT_NOFILE)[0])"


@value
class TrialResult:
    """Whether something works, and a sentence about what was seen."""

    works: bool
    detail: str


_UNTRIED = TrialResult(False, "not tried: a tree that takes too much could not be ended")


@value
class TrialResults:
    """The result of each trial."""

    processes: TrialResult
    terminals: TrialResult
    trees: TrialResult
    memory: TrialResult
    resources: TrialResult
    controllers: frozenset[str]
    """The resources that control groups limit here."""


def try_out() -> TrialResults:
    """Run all trials.  Takes less than a second where everything works."""
    try:
        return asyncio.run(_try_out())
    except (HoldfastError, OSError) as error:
        # Not even an engine can be made.
        failed = TrialResult(False, str(error))
        return TrialResults(failed, failed, failed, failed, failed, frozenset())


async def _try_out() -> TrialResults:
    groups = find_groups()
    spawner = Spawner(Environment(own_environment()), ForkServer(), groups=groups)
    limits = EngineLimits(stop_seconds=1.0)  # What cannot be killed in a second cannot be killed later.
    backend = LocalBackend(spawner, host_info, asyncio.get_running_loop(), limits=limits)
    try:
        return TrialResults(
            processes=await _safely(_process, backend),
            terminals=await _safely(_terminal, backend),
            trees=(trees := await _safely(_tree, backend)),
            memory=await _safely(_memory, backend) if trees.works else _UNTRIED,
            resources=await _safely(_resources, backend),
            controllers=groups.controllers,
        )
    finally:
        await backend.aclose()


async def _safely(
    trial: Callable[[LocalBackend], Awaitable[TrialResult]], backend: LocalBackend
) -> TrialResult:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await trial(backend)
    except TimeoutError:
        return TrialResult(False, f"a program that was tried did nothing for {_PATIENCE:g} s")
    except (HoldfastError, OSError) as error:
        return TrialResult(False, str(error))


# The trials.


async def _process(backend: LocalBackend) -> TrialResult:
    program = await backend.start(_spec("import os; os.write(1, b'out'); os.write(2, b'err'); os._exit(3)"))
    said, end = await _ending(program)
    seen = {"stdout": said.get(Stream.STDOUT), "stderr": said.get(Stream.STDERR), "exit code": end.code}
    if seen == {"stdout": b"out", "stderr": b"err", "exit code": 3}:
        return TrialResult(True, "a program was started, and its output and its exit code came back")
    return TrialResult(False, f"a program came back with {seen}")


async def _terminal(backend: LocalBackend) -> TrialResult:
    program = await backend.start(_spec(_TERMINAL, terminal=_BEFORE))
    first, seq = await _line(program, 0)
    await program.resize(_AFTER)
    second, _ = await _line(program, seq)
    await program.write(b"\n")
    _, end = await _ending(program)
    sizes = [f"{size.cols} {size.rows}" for size in (_BEFORE, _AFTER)]
    if [first, second] == sizes and end.code == 0:
        return TrialResult(True, "a program saw its terminal, the size of it, and a change of the size")
    return TrialResult(False, f"a program in a terminal saw the sizes {first!r} and {second!r}, not {sizes}")


async def _tree(backend: LocalBackend) -> TrialResult:
    program = await backend.start(_spec(_TREE))
    line, _ = await _line(program, 0)
    runaway = os.pidfd_open(int(line))
    try:
        ended = await program.end()
        left = [*ended.survivors] or ([] if _gone(runaway) else [int(line)])
    finally:
        os.close(runaway)
    if left:
        return TrialResult(False, f"a program was ended, and of what it had started {left} still live")
    if not ended.exact:
        return TrialResult(False, "a program was ended, but not everything that it had started could be seen")
    return TrialResult(
        True, "a program that forked twice and left its session was ended with all its children"
    )


async def _memory(backend: LocalBackend) -> TrialResult:
    terms = ProcessTerms(timeout=_PATIENCE / 2, limits=Limits(memory=_MEMORY))
    program = await backend.start(_spec(_HOG, terms=terms, stdin=True))
    _, end = await _ending(program)
    if end.outcome.kind is Kind.OOM:
        return TrialResult(True, f"a program with {_MEMORY // MIB} MiB was ended when it took more")
    return TrialResult(
        False, f"a program with {_MEMORY // MIB} MiB took more, and ended with {end.outcome.kind.value!r}"
    )


async def _resources(backend: LocalBackend) -> TrialResult:
    terms = ProcessTerms(limits=Limits(cpu=_CPU, files=_FILES))
    said, _ = await _ending(await backend.start(_spec(_RESOURCES, terms=terms)))
    seen = said.get(Stream.STDOUT, b"").decode().split()
    if seen == [str(_CPU), str(_FILES)]:
        return TrialResult(
            True, "processor time: the kernel per process, the sum by looking; open files: the kernel"
        )
    return TrialResult(False, f"a program with {_CPU} s and {_FILES} open files saw the limits {seen}")


# Programs.


def _spec(
    program: str, *, terminal: Size | None = None, stdin: bool = False, terms: ProcessTerms | None = None
) -> Spec:
    argv = [sys.executable, "-I", "-S", "-c", program]
    return Spec(argv, "/", {}, terminal=terminal, stdin=stdin, terms=terms or ProcessTerms())


async def _line(program: LocalProcess, after: int) -> tuple[str, int]:
    """Return the next line of output, and the number of the chunk that completed it."""
    text = b""
    while b"\n" not in text:
        page = await program.read(after=after, wait=_PATIENCE)
        text += b"".join(chunk.data for chunk in page.chunks)
        after = page.next_seq - 1
        if page.closed:
            break
    return text.decode(errors="replace").strip(), after


async def _ending(program: LocalProcess) -> tuple[dict[Stream, bytes], Exit]:
    """Wait for the end of a program; return its output and how it ended."""
    said: dict[Stream, bytes] = {}
    after = 0
    while True:
        page = await program.read(after=after, wait=_PATIENCE)
        for chunk in page.chunks:
            said[chunk.stream] = said.get(chunk.stream, b"") + chunk.data
        after = page.next_seq - 1
        if page.closed:
            assert page.exit is not None  # It comes before the close.
            return said, page.exit


def _gone(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(1000))
