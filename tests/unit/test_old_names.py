"""Names of the version before: they still work, and a warning says the new ones."""

from __future__ import annotations

from importlib import import_module

import pytest

from holdfast.sandbox import Guarantees, SandboxBackendName

OLD = [
    ("api.stdin", "Stdin", "StdinWriter"),
    ("config", "Limits", "ServerLimits"),
    ("errors", "Search", "ProgramSearch"),
    ("files", "Metadata", "FileMetadata"),
    ("model", "EnvPolicy", "EnvironmentPolicy"),
    ("model", "Terms", "ProcessTerms"),
    ("sandbox", "Backing", "SandboxBackendName"),
    ("sandbox", "Entry", "SandboxEntry"),
]


@pytest.mark.parametrize(("home", "old", "new"), OLD)
def test_an_old_name_still_works_and_says_the_new_one(home: str, old: str, new: str) -> None:
    """Whoever updates reads the warning before the name is gone, and changes it when there is time."""
    module = import_module(f"holdfast.{home}")

    with pytest.warns(DeprecationWarning, match=f"^holdfast.{home}.{old} is now called {new}$") as seen:
        found = getattr(module, old)

    assert found is getattr(module, new)
    assert [each.filename for each in seen] == [__file__]


def test_an_import_statement_finds_an_old_name() -> None:
    """This is how it is written in programs; the warning names the line of the import."""
    with pytest.warns(DeprecationWarning, match="Terms is now called ProcessTerms") as seen:
        exec(compile("from holdfast.model import Terms", "program.py", "exec"), {})  # noqa: S102

    assert [each.filename for each in seen] == ["program.py"]


@pytest.mark.parametrize("home", sorted({home for home, _, _ in OLD}))
def test_a_name_that_never_was_is_still_an_error(home: str) -> None:
    """The error reads like that of any other module."""
    module = import_module(f"holdfast.{home}")

    with pytest.raises(AttributeError, match=f"^module 'holdfast.{home}' has no attribute 'Nothing'$"):
        module.Nothing  # noqa: B018


@pytest.mark.parametrize(("backend", "expected"), [("landlock", SandboxBackendName.LANDLOCK), (None, None)])
def test_the_old_name_of_the_backend_of_sandboxes_still_works(
    backend: str | None, expected: SandboxBackendName | None
) -> None:
    """It was a member of the enum, and programs may have compared it with ``is``."""
    with pytest.warns(DeprecationWarning, match="^Guarantees.backing is now called backend$") as seen:
        found = Guarantees(backend).backing

    assert found is expected
    assert [each.filename for each in seen] == [__file__]
