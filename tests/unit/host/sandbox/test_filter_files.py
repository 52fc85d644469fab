"""The filter for system calls: what it refuses to be done with files that Landlock and mounts let pass."""

from __future__ import annotations

import pytest

from holdfast.host.sandbox.filter import Machine
from tests.fakes.filters import ALLOW, BOTH, ENOSYS, EPERM, NOTIFY, Decisions

MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
"""Which argument has the mode."""


@BOTH
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("name", MODES)
def test_no_file_becomes_a_program_that_runs_as_its_owner(
    machine: Machine, name: str, *, witness: bool
) -> None:
    """Whoever runs it outside would have all that the sandbox keeps from the command."""
    if name not in machine.calls:
        pytest.skip("the machine has no such call")
    before = [0] * MODES[name]
    kept = Decisions(machine, witness=witness)
    free = Decisions(machine, witness=witness, files=False)

    told = NOTIFY if witness and name != "fchmod" else ALLOW
    assert {kept.on(name, *before, mode) for mode in (0o4755, 0o104000, 0o6711)} == {EPERM}
    assert {kept.on(name, *before, mode) for mode in (0, 0o777, 0o2755, 0o1777)} == {told}
    assert free.on(name, *before, 0o4755) == ALLOW


NEW = {"creat": 1, "mknod": 1, "mknodat": 2}
OPENS = {"open": 1, "openat": 2}
"""Which argument has the flags; the mode is behind it."""
O_CREAT, O_WRONLY, O_TMPFILE = 0o100, 0o1, 0o20200001


@BOTH
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("name", NEW)
def test_no_file_is_made_as_a_program_that_runs_as_its_owner(
    machine: Machine, name: str, *, witness: bool
) -> None:
    """It is empty, but somebody with more rights may fill it."""
    if name not in machine.calls:
        pytest.skip("the machine has no such call")
    before = [0] * NEW[name]
    kept = Decisions(machine, witness=witness)
    free = Decisions(machine, witness=witness, files=False)

    told = NOTIFY if witness else ALLOW
    assert {kept.on(name, *before, mode) for mode in (0o4755, 0o104000, 0o6711)} == {EPERM}
    assert {kept.on(name, *before, mode) for mode in (0, 0o777, 0o2755, 0o1777)} == {told}
    assert free.on(name, *before, 0o4755) == ALLOW


@BOTH
@pytest.mark.parametrize("witness", [False, True])
@pytest.mark.parametrize("name", OPENS)
def test_no_file_is_opened_into_being_as_such_a_program(
    machine: Machine, name: str, *, witness: bool
) -> None:
    """A mode counts only if there may be a new file: otherwise anything may be in its place."""
    if name not in machine.calls:
        pytest.skip("the machine has no such call")
    before = [0] * OPENS[name]
    kept = Decisions(machine, witness=witness)
    free = Decisions(machine, witness=witness, files=False)

    told = NOTIFY if witness else ALLOW
    assert {kept.on(name, *before, flags, 0o4755) for flags in (O_CREAT, O_CREAT | O_WRONLY, O_TMPFILE)} == {
        EPERM
    }
    assert {kept.on(name, *before, flags, 0o2755) for flags in (O_CREAT, O_WRONLY, O_TMPFILE)} == {told}
    assert kept.on(name, *before, O_WRONLY, 0o4755) == told
    assert kept.on(name, *before, 0, 0o4755) == ALLOW
    assert free.on(name, *before, O_CREAT, 0o4755) == ALLOW


@BOTH
@pytest.mark.parametrize("witness", [False, True])
def test_a_mode_that_no_filter_can_see_is_seen_by_the_guard_or_not_at_all(
    machine: Machine, *, witness: bool
) -> None:
    """In between the command could change it."""
    assert Decisions(machine, witness=witness).on("openat2") == ENOSYS
    assert Decisions(machine, witness=True, guard=True).on("openat2") == NOTIFY
    assert Decisions(machine, witness=witness, files=False).on("openat2") == ALLOW


CLONES = {"FICLONE": 0x40049409, "FICLONERANGE": 0x4020940D, "FIDEDUPERANGE": 0xC0189436}
TREES = {
    "BTRFS_IOC_SNAP_CREATE": 0x50009401,
    "BTRFS_IOC_SUBVOL_CREATE": 0x5000940E,
    "BTRFS_IOC_SNAP_DESTROY": 0x5000940F,
    "BTRFS_IOC_SNAP_CREATE_V2": 0x50009417,
    "BTRFS_IOC_SUBVOL_CREATE_V2": 0x50009418,
    "BTRFS_IOC_SUBVOL_SETFLAGS": 0x4008941A,
    "BTRFS_IOC_SNAP_DESTROY_V2": 0x5000943F,
    "BCH_IOCTL_SUBVOLUME_CREATE": 0x4020BC10,
    "BCH_IOCTL_SUBVOLUME_DESTROY": 0x4020BC11,
    "OCFS2_IOC_REFLINK": 0x40186F04,
    "FS_IOC_ENABLE_VERITY": 0x40806685,
    "FS_IOC_SET_ENCRYPTION_POLICY": 0x800C6613,
}
OTHERS = {"TCGETS": 0x5401, "FIONREAD": 0x541B, "FS_IOC_GETFLAGS": 0x80086601, "TIOCGPTPEER": 0x5441}


@BOTH
@pytest.mark.parametrize("witness", [False, True])
def test_file_systems_make_and_remove_no_trees_by_commands_of_their_own(
    machine: Machine, *, witness: bool
) -> None:
    """A directory that may only be read can be given them, and Landlock is not asked."""
    kept = Decisions(machine, witness=witness)
    free = Decisions(machine, witness=witness, files=False)

    assert {name for name, number in TREES.items() if kept.on("ioctl", 3, number) != EPERM} == set()
    assert {
        name for name, number in (CLONES | OTHERS).items() if kept.on("ioctl", 3, number) != ALLOW
    } == set()
    # The kernel looks at no more than 32 bits.
    assert kept.on("ioctl", 3, 0x5000940E | 1 << 32) == EPERM
    assert free.on("ioctl", 3, 0x5000940E) == ALLOW
