"""Starts programs: what a shim is ordered to start, with which files, and why a start failed.

The server itself is never forked: a shim starts the program.  A start that is stuck, for example on a stalled
disk, holds up nobody.  Nothing here waits, except once for the fork server when it is started.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from holdfast.errors import Fault, HostUnfit, ProgramSearch, SpawnFailed, UserFault, UserRefused
from holdfast.model import UNLIMITED, Limits, Size, Spec, Stream, to_bytes
from holdfast.reports import NO_LIMITS, EnforcedLimits, News, Report
from holdfast.sandbox import Guarantees
from holdfast.users import User
from holdfast.value import replace

from .child import ShimChild
from .environ import Environment
from .limits import Group, Groups, resource_limits
from .orders import StartOrder, StartStage, StateReport, stage_of
from .outliving import Holding, HostFacts, files_of, places_of, unexplained
from .pty import open_terminal
from .shim import ForkServer, Shim

if TYPE_CHECKING:
    from holdfast.host.sandbox.rules import PolicySearch

    from .sandbox.confinement import Confinement, Confiner

DEFAULT_PATH = b"/usr/local/bin:/bin:/usr/bin"
"""Where the program of a child is searched for whose environment has no PATH."""

_SAID_MOST = 1000
"""Bytes of what bubblewrap says about its failure that are passed on."""

_NOWHERE = b"/dev/null"
"""A PATH on which nothing is ever found."""

_SYSTEM = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC)
"""Errors of a system that is short of something.  They are never about what was asked for."""


class Spawner:
    """Starts children.  Implements ``engine.children.Children``."""

    def __init__(
        self,
        environment: Environment,
        fork_server: ForkServer | None = None,
        *,
        groups: Groups | None = None,
        confiner: Confiner | None = None,
    ) -> None:
        """
        Args:
            environment: Computes the variables of children.
            fork_server: Makes their shims.
            groups: Makes control groups, which keep limits for a whole tree.
            confiner: Makes the confinements of sandboxed commands; without one, sandboxes are refused.
        """
        self._environment = environment
        self._fork_server = fork_server or ForkServer()
        self._groups = groups or Groups({})
        self._given_confiner = confiner

    @property
    def _confiner(self) -> Confiner:
        if self._given_confiner is None:
            # Late: most programs that run a command without a server need no sandbox.
            from .sandbox.confinement import Confiner

            self._given_confiner = Confiner(None, off=True)
        return self._given_confiner

    @property
    def tried_out(self) -> bool:
        """Whether ``guarantees`` would answer at once."""
        return self._confiner.tried_out

    @property
    def guarantees(self) -> Guarantees:
        """What sandboxes are worth on this host.  Waits until the sandbox backends are tried out."""
        return self._confiner.guarantees

    def stop_trials(self) -> None:
        """Have ``guarantees`` answer at once: nobody will need a sandbox any more."""
        self._confiner.close()

    def effort(self, spec: Spec) -> int:
        """Return how much work it is to compute the variables of ``spec``, in characters to compare."""
        return self._environment.effort(spec.env_policy, spec.variables)

    def settle(self, spec: Spec) -> Spec:
        """Return ``spec`` with its variables in place of their policy.  May be called in a thread."""
        env = self._environment.child(spec.env_policy, spec.env, spec.variables)
        return replace(spec, env=env, env_policy=None)

    def confine(self, spec: Spec, search: PolicySearch | None = None) -> Confinement | None:
        """Return the confinement that keeps the sandbox of ``spec``; None if it has no sandbox.

        It asks the disk, for as long as ``search`` allows.  May be called in a thread.

        Raises:
            BadRequest: The sandbox makes no sense.
            LimitReached: There is too much to look for.
            SandboxUnavailable: The sandbox cannot be kept on this host.
        """
        if spec.sandbox is None:
            return None
        env = self._environment.child(spec.env_policy, spec.env, spec.variables)
        return self._confiner.confine(spec.sandbox, env.get("TMPDIR"), search)

    def start(
        self, spec: Spec, confinement: Confinement | None = None, holding: Holding | None = None
    ) -> ShimChild:
        """Order a shim to start what ``spec`` says.  The first report of the child says whether it runs.

        Args:
            confinement: What ``confine`` has returned for this spec.
            holding: Writes the command down, which then outlives this server.

        Raises:
            SpawnFailed: The order cannot be given.  The error names what is at fault.
        """
        ours: list[int] = []
        theirs: list[int] = []
        group = None
        try:
            env = self._environment.child(spec.env_policy, spec.env, spec.variables)
            if spec.terms.limits is not UNLIMITED:
                group = self._groups.make(spec.terms.limits)
            order, stdin, outputs = _order(spec, env, group, confinement, ours, theirs)
            # The next server cannot tell what earlier commands of a shim have used from what this one has.
            counts = holding is not None and spec.terms.limits.cpu is not None
            shim = self._fork_server.shim(unused=counts)
            try:
                if holding is None:
                    shim.start(order, theirs)
                else:
                    holds = places_of(shim, stdin, outputs, holding)
                    key = holding.begin(self._facts(group, confinement))
                    shim.start(replace(order, key=key), theirs, holds)
            except BaseException:
                self._fork_server.take_back(shim, usable=False)
                raise
        except BaseException as error:
            for fd in ours:
                os.close(fd)
            if group is not None:
                group.remove()
            if isinstance(error, OSError):
                raise _system_failure(spec, error) from error
            if isinstance(error, HostUnfit):
                raise refusal(spec, Fault.SYSTEM, "host", error.reason) from error
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        explain = partial(_explain, spec, env.get("PATH"), outputs)
        return ShimChild(
            shim,
            stdin=stdin,
            outputs=outputs,
            explain=explain,
            take_back=self._fork_server.take_back,
            group=group,
            limits=NO_LIMITS
            if spec.terms.limits is UNLIMITED
            else EnforcedLimits(
                spec.terms.limits, frozenset() if group is None else self._groups.controllers
            ),
            confined_command=None if confinement is None else confinement.command(),
            held=holding is not None,
        )

    def _facts(self, group: Group | None, confinement: Confinement | None) -> HostFacts:
        """Return what the host knows of a command that is about to be ordered."""
        command = None if confinement is None else confinement.command()
        return HostFacts(
            () if group is None else tuple(group.paths),
            () if group is None else tuple(sorted(self._groups.controllers)),
            None if command is None else (command.exact, command.enforcers),
        )

    def regain(self, shim: Shim, *, busy: bool) -> None:
        """Take a shim of the server before, which has a command if it is ``busy``."""
        self._fork_server.regain(shim, busy=busy)

    def resume(
        self, shim: Shim, state: StateReport, files: Mapping[int, int], facts: HostFacts, limits: Limits
    ) -> ShimChild:
        """Return the child of a shim whose command another server has ordered.

        Args:
            files: What the shim holds of the command, by ``HeldPlace``; whoever takes the child closes it.
            facts: What was told to ``Holding.begin``.
        """
        stdin, outputs = files_of(files)
        confined = None
        if facts.confined is not None:
            from .sandbox.confinement import ConfinedCommand

            confined = ConfinedCommand(exact=facts.confined[0], enforcers=facts.confined[1])
        child = ShimChild(
            shim,
            stdin=stdin,
            outputs=outputs,
            explain=unexplained,
            take_back=self._fork_server.take_back,
            group=Group(facts.groups) if facts.groups else None,
            limits=facts.limits(limits),
            confined_command=confined,
            held=True,
        )
        child.resume(state)
        return child

    def close(self) -> None:
        """Release everything that starts need.  Children that run are not affected.  May be called twice."""
        self._fork_server.close()
        self._groups.close()
        if self._given_confiner is not None:
            self._given_confiner.close()


def _explain(
    spec: Spec, path: str | None, outputs: tuple[tuple[Stream, int], ...], report: Report
) -> SpawnFailed:
    """Return why a command does not run.  What bubblewrap said about it is in the output of the command."""
    said = b""
    if spec.sandbox is not None:
        with contextlib.suppress(OSError):  # There is no more.
            # Again and again: a terminal gives a first piece while the kernel still moves the rest.
            while len(said) < _SAID_MOST and (more := os.read(outputs[-1][1], _SAID_MOST - len(said))):
                said += more
    return diagnosis(spec, path, report, said.decode(errors="replace").strip())


def _order(
    spec: Spec,
    env: Mapping[str, str],
    group: Group | None,
    confinement: Confinement | None,
    ours: list[int],
    theirs: list[int],
) -> tuple[StartOrder, int | None, tuple[tuple[Stream, int], ...]]:
    """Return the order for the shim, and our ends of the child's stdin and outputs.

    Args:
        ours: Gets the descriptors that we have to close if the start fails.
        theirs: Gets the descriptors for the child, which we close in any case.
    """
    try:
        argv, variables = _arguments(spec), _variables(spec, env)
        cwd, program = to_bytes(spec.cwd), to_bytes(spec.argv[0])
    except UnicodeEncodeError as error:
        raise refusal(spec, Fault.ARGUMENT, "argv, env or cwd", "text stands for no bytes") from error
    if b"\0" in cwd:
        raise refusal(spec, Fault.DIRECTORY, spec.cwd, "the path contains a NUL byte")
    stdin: int | None
    if spec.terminal is not None:
        stdin, outputs = _terminal(spec.terminal, ours, theirs)
    else:
        stdin, outputs = _pipes(spec, ours, theirs)
    order = StartOrder(
        cwd=cwd,
        program=program,
        argv=argv,
        env=variables,
        path=_search_path(spec, env),
        terminal=spec.terminal is not None,
        stdin=stdin is not None,
        limits=() if spec.terms.limits is UNLIMITED else resource_limits(spec.terms.limits),
        groups=[] if group is None else group.directories(),
        confinement=confinement,
        user=() if spec.user is None else _user(spec.user),
    )
    return order, stdin, outputs


def _user(user: User) -> tuple[int, ...]:
    """Return the numbers of a user for the order; none for the server's own."""
    found = user.credentials
    if found is None:
        raise UserRefused(user.name, UserFault.LOOKUP, "the host was not asked of it")
    return () if found.own else (found.uid, found.gid, *found.groups)


def _search_path(spec: Spec, env: Mapping[str, str]) -> bytes | None:
    """Return where the program is searched for; None if its name has a directory."""
    if "/" in spec.argv[0]:
        return None
    path = env.get("PATH")
    if path is not None:
        return to_bytes(path)
    # The program of a terminal is searched for in the PATH of its own environment, and nowhere else.
    return DEFAULT_PATH if spec.terminal is None else _NOWHERE


def _system_failure(spec: Spec, error: OSError) -> SpawnFailed:
    """Return the error about a system that cannot give the order; ours have no number."""
    if error.errno is None:
        return refusal(spec, Fault.SYSTEM, "fork server", str(error))
    return failed(spec, Fault.SYSTEM, spec.argv[0], error.errno)


def _terminal(size: Size, ours: list[int], theirs: list[int]) -> tuple[int, tuple[tuple[Stream, int], ...]]:
    """Open a terminal; return our descriptors for its input and its output."""
    master, peer = open_terminal(size)
    ours.append(master)
    theirs.append(peer)
    # A second descriptor, so that the poller can watch reading and writing apart.
    writer = os.dup(master)
    ours.append(writer)
    return writer, ((Stream.PTY, master),)


def _pipes(
    spec: Spec, ours: list[int], theirs: list[int]
) -> tuple[int | None, tuple[tuple[Stream, int], ...]]:
    """Open the pipes of a child; return our ends.  Without stdin, the shim gives it ``/dev/null``."""
    stdin = None
    if spec.stdin:
        stdin = _pipe(ours, theirs, child_reads=True)
    stdout = _pipe(ours, theirs, child_reads=False)
    stderr = _pipe(ours, theirs, child_reads=False)
    return stdin, ((Stream.STDOUT, stdout), (Stream.STDERR, stderr))


def _pipe(ours: list[int], theirs: list[int], *, child_reads: bool) -> int:
    """Open a pipe; return our end, which does not block."""
    reader, writer = os.pipe()
    child_end, our_end = (reader, writer) if child_reads else (writer, reader)
    ours.append(our_end)
    theirs.append(child_end)
    os.set_blocking(our_end, False)
    return our_end


def _arguments(spec: Spec) -> list[bytes]:
    """Return the arguments of the command, the first of which is the name it shall have."""
    argv = [to_bytes(argument) for argument in spec.argv]
    if not argv or not argv[0]:
        raise refusal(spec, Fault.PROGRAM, "", "the program's name is empty")
    if spec.arg0 is not None:
        argv.append(argv[0])  # It is checked with the rest, and cut off again below.
        argv[0] = to_bytes(spec.arg0)
    if any(b"\0" in argument for argument in argv):
        raise refusal(spec, Fault.ARGUMENT, "argv", "an argument contains a NUL byte")
    return argv[: len(spec.argv)]


def _variables(spec: Spec, env: Mapping[str, str]) -> list[bytes]:
    """Return the variables of the command as ``execve`` takes them; one with a terminal has ``SHELL``."""
    if spec.terminal is not None and "SHELL" not in env:
        env = {**env, "SHELL": login_shell()}
    # Sorted, so that the same request gives the same bytes.
    variables = [to_bytes(f"{name}={value}") for name, value in sorted(env.items())]
    if any(b"\0" in variable for variable in variables):
        raise refusal(spec, Fault.ARGUMENT, "env", "a variable contains a NUL byte")
    return variables


@cache
def login_shell() -> str:
    """Return the login shell of the user that the server runs as."""
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"


# Why a start failed.  Errors name what was asked for, not what the system was told.


def refusal(spec: Spec, fault: Fault, subject: str, reason: str) -> SpawnFailed:
    """Return the error about something that we refuse before the system is asked."""
    return SpawnFailed(fault, subject, reason, terminal=spec.terminal is not None)


def diagnosis(spec: Spec, path: str | None, report: Report, said: str = "") -> SpawnFailed:
    """Return the error that says which of the things named in ``spec`` the report is about.

    Args:
        path: The PATH of the child, if it has one.
        said: What bubblewrap wrote to standard error.
    """
    if report.news is not News.FAILED:
        return refusal(spec, Fault.SYSTEM, "shim", "it ended before the program ran")
    number, search = report.value or errno.EIO, None
    if stage_of(report) in (StartStage.SANDBOX, StartStage.HIDDEN) and number not in _SYSTEM:
        return _of_sandbox(spec, stage_of(report), number, said)
    if stage_of(report) is StartStage.NO_GROUP and number not in _SYSTEM:
        return refusal(spec, Fault.SYSTEM, "control group", "what was found in its place is none")
    fault, subject = Fault.PROGRAM, spec.argv[0]
    match stage_of(report):
        case StartStage.DIRECTORY:
            fault, subject = Fault.DIRECTORY, spec.cwd
        case StartStage.FORK | StartStage.TERMINAL | StartStage.GROUP:
            fault = Fault.SYSTEM
        case StartStage.LIMIT:
            fault, subject = Fault.ARGUMENT, "limits"
        case StartStage.USER:
            fault, subject = Fault.USER, "" if spec.user is None else spec.user.name
        case StartStage.SEARCH:
            search = ProgramSearch(path)
    if number in _SYSTEM:
        fault, search = Fault.SYSTEM, None
    elif number == errno.E2BIG:
        fault, subject = Fault.ARGUMENT, "argv and env"
    return failed(spec, fault, subject, number, search=search)


def _of_sandbox(spec: Spec, stage: StartStage, number: int, said: str) -> SpawnFailed:
    """Return the error about a sandbox that cannot be made, or that hides the program."""
    if stage is StartStage.SANDBOX:
        return refusal(spec, Fault.SANDBOX, "sandbox", said or os.strerror(number))
    reason = f"the sandbox keeps it from being run: {os.strerror(number)}"
    return refusal(spec, Fault.SANDBOX, spec.argv[0], reason)


def failed(
    spec: Spec, fault: Fault, subject: str, number: int, *, search: ProgramSearch | None = None
) -> SpawnFailed:
    """Return the error with the number and the words of the system."""
    reason = os.strerror(number)
    if spec.user is not None and number == errno.EACCES:
        reason += f" for user {spec.user.name!r}"  # The server may well do what its child may not.
    return SpawnFailed(
        fault,
        subject,
        reason,
        number=number,
        terminal=spec.terminal is not None,
        search=search,
    )
