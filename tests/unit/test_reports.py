"""The values between engine and host."""

from __future__ import annotations

import pytest

from holdfast.model import UNLIMITED, Limits
from holdfast.reports import LOST, NO_LIMITS, EnforcedLimits, ExitFlag, News, Pulse, Report


def test_an_exit_says_whether_it_came_by_a_signal_and_who_is_left() -> None:
    found = [Report(News.EXITED, 9, flags) for flags in range(4)]

    assert [(each.by_signal, each.alone) for each in found] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]
    assert (ExitFlag.BY_SIGNAL, ExitFlag.ALONE) == (1, 2)
    assert (LOST.news, LOST.usage) == (News.LOST, None)


QUIET = Pulse(at_work=False, switches={5: 10}, known=True)


@pytest.mark.parametrize(
    ("now", "before", "quiet"),
    [
        (QUIET, None, False),
        (QUIET, QUIET, True),
        (Pulse(at_work=False, switches={5: 11}, known=True), QUIET, False),
        (Pulse(at_work=True, switches={5: 10}, known=True), QUIET, False),
        (Pulse(at_work=False, switches={5: 10}, known=False), QUIET, False),
        (Pulse(at_work=False, switches={}, known=True), None, True),
    ],
)
def test_holders_are_quiet_if_all_of_them_are_known_to_have_slept(
    now: Pulse, before: Pulse | None, *, quiet: bool
) -> None:
    """What one look cannot show is no quiet: somebody may have run between two looks."""
    assert now.is_quiet_since(before) is quiet


def test_what_no_control_group_keeps_is_ours_to_keep() -> None:
    limits = Limits(memory=1, cpu=2.0, processes=3, files=4)
    kept = EnforcedLimits(limits, frozenset({"memory"}))

    assert kept.enforcers() == {
        "memory": "cgroup",
        "cpu": "rlimit",
        "processes": "sampled",
        "files": "rlimit",
    }
    assert kept.ours() == Limits(cpu=2.0, processes=3)
    assert (NO_LIMITS.limits, NO_LIMITS.enforcers(), NO_LIMITS.ours()) == (UNLIMITED, {}, Limits())
