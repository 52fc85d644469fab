"""The table of sandbox backends: what is in it, and in which order."""

from __future__ import annotations

from holdfast.host.sandbox.backends import SANDBOX_BACKENDS
from holdfast.sandbox import SandboxBackendName


def test_every_name_that_clients_know_has_a_row_and_the_best_is_first() -> None:
    """Our client takes another name for no sandboxes at all."""
    assert [row.name for row in SANDBOX_BACKENDS] == [
        SandboxBackendName.BUBBLEWRAP,
        SandboxBackendName.LANDLOCK,
    ]
    assert {row.name for row in SANDBOX_BACKENDS} == set(SandboxBackendName)


def test_what_keeps_the_rules_about_files_is_told_by_another_name_where_it_has_one() -> None:
    """Clients of the first version read it."""
    assert [row.filesystem for row in SANDBOX_BACKENDS] == ["mount", ""]
