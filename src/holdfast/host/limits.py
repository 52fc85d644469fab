"""Who keeps which limit: the kernel for a whole tree, the kernel for each process, or we by looking."""

from __future__ import annotations

import math
import resource

from holdfast.model import Limits
from holdfast.value import value

_MOST_SECONDS = 2**31
"""The kernel counts in nanoseconds, and its numbers end."""

_PARTING = 2
"""Seconds of processor time for whoever catches the signal that its time is over."""


def resource_limits(limits: Limits) -> list[tuple[int, int, int]]:
    """What the kernel keeps for each process of a tree: resource, soft limit, hard limit."""
    found = []
    if limits.files is not None:
        # More than we may have ourselves we cannot allow.
        files = min(limits.files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        found.append((resource.RLIMIT_NOFILE, files, files))
    if limits.cpu is not None and limits.cpu < _MOST_SECONDS:
        seconds = max(1, math.ceil(limits.cpu))
        found.append((resource.RLIMIT_CPU, seconds, seconds + _PARTING))
    return found


@value
class Kept:
    """The limits of one tree, and who keeps them."""

    limits: Limits
    controllers: frozenset[str]
    """What the tree's control group limits."""

    def keepers(self) -> dict[str, str]:
        """For each limit, by its name in ``Limits``, who keeps it."""
        found = {}
        if self.limits.memory is not None:
            found["memory"] = "cgroup" if "memory" in self.controllers else "sampled"
        if self.limits.cpu is not None:
            found["cpu"] = "rlimit"
        if self.limits.processes is not None:
            found["processes"] = "cgroup" if "pids" in self.controllers else "sampled"
        if self.limits.files is not None:
            found["files"] = "rlimit"
        return found

    def ours(self) -> Limits:
        """What is left to us to look after.

        The kernel counts processor time for each process alone; the sum is ours.
        """
        return Limits(
            memory=None if "memory" in self.controllers else self.limits.memory,
            cpu=self.limits.cpu,
            processes=None if "pids" in self.controllers else self.limits.processes,
        )


NO_LIMITS = Kept(Limits(), frozenset())
