"""Who keeps which limit."""

from __future__ import annotations

import resource

import pytest

from holdfast.host.limits import resource_limits
from holdfast.model import Limits
from holdfast.reports import NO_LIMITS, EnforcedLimits

FILES, CPU = resource.RLIMIT_NOFILE, resource.RLIMIT_CPU
ALL = Limits(memory=1 << 20, cpu=2.5, processes=7, files=99)


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (Limits(), []),
        (Limits(memory=1, processes=1), []),
        (Limits(files=64), [(FILES, 64, 64)]),
        (Limits(files=0), [(FILES, 0, 0)]),
        (Limits(cpu=3), [(CPU, 3, 5)]),
        (Limits(cpu=2.01), [(CPU, 3, 5)]),
        (Limits(cpu=0.1), [(CPU, 1, 3)]),
        (Limits(cpu=0), [(CPU, 1, 3)]),
        (ALL, [(FILES, 99, 99), (CPU, 3, 5)]),
    ],
)
def test_the_kernel_keeps_files_and_time_of_each_process(
    limits: Limits, kept: list[tuple[int, int, int]]
) -> None:
    """It counts whole seconds, and none as no limit at all; who catches the first signal is killed later."""
    assert resource_limits(limits) == kept


NOBODY: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("limits", "controllers", "enforcers"),
    [
        (Limits(), {"memory", "pids"}, {}),
        (
            ALL,
            {"memory", "pids"},
            {"memory": "cgroup", "cpu": "rlimit", "processes": "cgroup", "files": "rlimit"},
        ),
        (
            ALL,
            {"memory"},
            {"memory": "cgroup", "cpu": "rlimit", "processes": "sampled", "files": "rlimit"},
        ),
        (
            ALL,
            NOBODY,
            {"memory": "sampled", "cpu": "rlimit", "processes": "sampled", "files": "rlimit"},
        ),
        (
            Limits(memory=0, cpu=0, processes=0),
            {"pids"},
            {"memory": "sampled", "cpu": "rlimit"} | {"processes": "cgroup"},
        ),
    ],
)
def test_each_limit_that_was_asked_for_has_a_keeper(
    limits: Limits, controllers: set[str], enforcers: dict[str, str]
) -> None:
    """A client may want to know how sharp a limit is; a limit of nothing is a limit too."""
    assert EnforcedLimits(limits, frozenset(controllers)).enforcers() == enforcers


@pytest.mark.parametrize(
    ("controllers", "ours"),
    [
        ({"memory", "pids"}, Limits(cpu=2.5)),
        ({"memory"}, Limits(cpu=2.5, processes=7)),
        ({"pids"}, Limits(memory=1 << 20, cpu=2.5)),
        (NOBODY, Limits(memory=1 << 20, cpu=2.5, processes=7)),
    ],
)
def test_what_no_group_keeps_is_ours(controllers: set[str], ours: Limits) -> None:
    """The time of a whole tree always is: the kernel counts it for each process alone."""
    assert EnforcedLimits(ALL, frozenset(controllers)).ours() == ours


def test_without_limits_nobody_has_anything_to_keep() -> None:
    assert (NO_LIMITS.enforcers(), NO_LIMITS.ours()) == ({}, Limits())
