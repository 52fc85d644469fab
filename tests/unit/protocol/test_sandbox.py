"""What a sandboxed command may do, from the wire to the values of the model."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config import SandboxLimits
from holdfast.dialects.exec.decoding import decode_start
from holdfast.errors import BadRequest, LimitReached
from holdfast.protocol.sandbox import SandboxContext, sandbox_of
from holdfast.protocol.shapes import Undecodable, decoded
from holdfast.sandbox import Access, Named, Pattern, Protection, Sandbox, SandboxEntry, Where

READ, WRITE, DENY = Access.READ, Access.WRITE, Access.DENY
ROOT = {"type": "special", "value": {"kind": "root"}}
FULL = {"type": "unrestricted"}


def restricted(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"type": "restricted", "entries": list(entries), **more}


def managed(files: dict[str, Any], network: str = "restricted") -> dict[str, Any]:
    return {"type": "managed", "file_system": files, "network": network}


def context(permissions: Any, **more: Any) -> dict[str, Any]:
    return {"permissions": permissions, "windowsSandboxLevel": "disabled", **more}


def read(params: Any) -> SandboxContext:
    return decoded(params, SandboxContext)


def made(permissions: Any, directory: str | None = "/desk", **more: Any) -> Sandbox | None:
    """For a process in a directory."""
    return sandbox_of(read(context(permissions, **more)), directory)


def entries(*given: Any, **more: Any) -> tuple[SandboxEntry, ...] | None:
    found = made(managed(restricted(*given)), **more)
    assert found is not None
    return found.entries


# Permissions.


def test_without_a_sandbox_there_is_none() -> None:
    assert sandbox_of(None, "/desk") is None
    assert made({"type": "disabled"}) is None


def test_all_files_may_still_be_without_network() -> None:
    """Also where somebody else keeps the files."""
    expected = Sandbox(None, network=False, cwd="/desk")

    assert made(managed(FULL, "restricted")) == expected
    assert made({"type": "external", "network": "restricted"}) == expected


def test_what_forbids_nothing_is_no_sandbox() -> None:
    """Or a client would be told of one."""
    assert made(managed(FULL, "enabled")) is None
    assert made({"type": "external", "network": "enabled"}) is None


def test_nothing_listed_is_nothing_allowed_and_not_everything() -> None:
    assert entries() == ()


@pytest.mark.parametrize(
    ("word", "access"), [("read", READ), ("write", WRITE), ("deny", DENY), ("none", DENY)]
)
def test_an_entry_has_an_access(word: str, access: Access) -> None:
    assert entries({"path": ROOT, "access": word}) == (SandboxEntry(Named(Where.ROOT), access),)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ({"type": "path", "path": "file:///a%20b/%FF"}, "/a b/\udcff"),
        ({"type": "glob_pattern", "pattern": "**/*.env"}, Pattern("**/*.env")),
        (ROOT, Named(Where.ROOT)),
        ({"type": "special", "value": {"kind": "minimal"}}, Named(Where.MINIMAL)),
        ({"type": "special", "value": {"kind": "tmpdir"}}, Named(Where.TMPDIR)),
        ({"type": "special", "value": {"kind": "slash_tmp"}}, Named(Where.SLASH_TMP)),
        ({"type": "special", "value": {"kind": "project_roots"}}, Named(Where.PROJECT_ROOTS)),
        (
            {"type": "special", "value": {"kind": "project_roots", "subpath": "sub"}},
            Named(Where.PROJECT_ROOTS, "sub"),
        ),
        (
            {"type": "special", "value": {"kind": "project_roots", "subpath": None}},
            Named(Where.PROJECT_ROOTS),
        ),
        (
            {"type": "special", "value": {"kind": "current_working_directory", "subpath": "sub"}},
            Named(Where.PROJECT_ROOTS, "sub"),
        ),
    ],
)
def test_an_entry_has_a_place(path: dict[str, Any], place: str | Named | Pattern) -> None:
    assert entries({"path": path, "access": "deny"}) == (SandboxEntry(place, DENY),)


def test_a_place_that_nobody_knows_is_passed_over() -> None:
    """As the reference has it: it may be one of a later day, and grants nothing."""
    unknown = {"type": "special", "value": {"kind": "unknown", "path": ":later", "subpath": None}}

    assert entries({"path": unknown, "access": "write"}, {"path": ROOT, "access": "read"}) == (
        SandboxEntry(Named(Where.ROOT), READ),
    )


@pytest.mark.parametrize(("more", "if_there"), [({}, False), ({"missing_path_behavior": "skip"}, True)])
def test_an_entry_may_be_about_what_is_there_only(more: dict[str, str], *, if_there: bool) -> None:
    entry = {"path": {"type": "path", "path": "file:///a"}, "access": "deny", **more}

    assert entries(entry) == (SandboxEntry("/a", DENY, if_there=if_there),)


@pytest.mark.parametrize("depth", [None, 1, 7, 2**64 - 1])
def test_patterns_may_be_looked_for_no_deeper_than_asked(depth: int | None) -> None:
    found = made(managed(restricted(glob_scan_max_depth=depth)))

    assert found is not None
    assert found.pattern_depth == depth


# Around them.


def test_roots_are_paths_of_this_host() -> None:
    found = made(managed(restricted()), workspaceRoots=["file:///a", "file:///b%20c", "/d%20e"])

    assert found == Sandbox((), False, "/desk", ("/a", "/b c", "/d%20e"))


@pytest.mark.parametrize(
    ("more", "roots"),
    [
        ({"cwd": "/work"}, ("/work",)),
        ({"cwd": "/work", "workspaceRoots": []}, ()),
        ({"cwd": "/work", "workspaceRoots": ["/a"]}, ("/a",)),
        ({"cwd": "file:///work"}, ()),
        ({}, ()),
    ],
)
def test_an_old_client_that_names_no_roots_means_its_directory(
    more: dict[str, Any], roots: tuple[str, ...]
) -> None:
    """Clients of 0.130 do not know the member.  Those of today mean that there are none."""
    found = made(managed(restricted()), **more)

    assert found is not None
    assert found.roots == roots


@pytest.mark.parametrize(
    ("given", "process", "directory"),
    [
        ("file:///other", "/desk", "/other"),
        (None, "/desk", "/desk"),
        ("file:///other", None, "/other"),
        (None, None, "/"),
    ],
)
def test_the_directory_is_its_own_or_that_of_the_process(
    given: str | None, process: str | None, directory: str
) -> None:
    found = made(managed(restricted()), process, cwd=given)

    assert found is not None
    assert found.cwd == directory


@pytest.mark.parametrize(
    ("word", "least"),
    [
        (None, Protection.SOFT),
        ("hard", Protection.HARD),
        ("soft", Protection.SOFT),
        ("none", Protection.NONE),
    ],
)
def test_a_client_says_what_it_is_content_with(word: str | None, least: Protection) -> None:
    found = made(managed(restricted()), protectsSubpaths=word)

    assert found is not None
    assert found.least is least


def test_what_means_nothing_here_is_accepted() -> None:
    """The same request goes to servers on other systems."""
    more: dict[str, Any] = {
        "windowsSandboxPrivateDesktop": True,
        "windowsSandboxProxySettingsMode": "preserve-during-bootstrap",
        "useLegacyLandlock": True,
        "sandboxOverride": "bypassSandboxFirstAttempt",
        "userHomeDir": "file:///home/x",
        "temporaryDirectories": ["file:///tmp"],
    }

    assert made(managed(restricted()), **more) == made(managed(restricted()))


@pytest.mark.parametrize("level", ["disabled", "restricted-token", "elevated", "mxc"])
def test_a_level_of_another_system_is_needed_and_means_nothing(level: str) -> None:
    given = context({"type": "disabled"}) | {"windowsSandboxLevel": level}

    assert sandbox_of(read(given), "/") is None
    with pytest.raises(Undecodable, match="windowsSandboxLevel"):
        read({"permissions": {"type": "disabled"}})


# What is refused.

DYNAMIC = "file system sandbox context with dynamic permissions requires cwd"


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ({"type": "special", "value": {"kind": "project_roots"}}, True),
        ({"type": "special", "value": {"kind": "current_working_directory"}}, True),
        ({"type": "glob_pattern", "pattern": "*.env"}, True),
        ({"type": "glob_pattern", "pattern": "/tmp/*.env"}, False),
        ({"type": "path", "path": "file:///a"}, False),
        (ROOT, False),
    ],
)
def test_what_depends_on_the_directory_needs_one(path: dict[str, Any], *, needed: bool) -> None:
    """Calls about files have no process whose directory it could be."""
    permissions = managed(restricted({"path": path, "access": "deny"}))

    if needed:
        with pytest.raises(BadRequest) as caught:
            made(permissions, None)
        assert str(caught.value) == DYNAMIC
    else:
        assert made(permissions, None) is not None
    assert made(permissions, "/desk") is not None


FOREIGN = "file:///C:/x"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"cwd": FOREIGN}, "sandbox cwd URI"),
        ({"workspaceRoots": ["file:///a", FOREIGN]}, "sandbox workspace root URI"),
    ],
)
@pytest.mark.parametrize("permissions", [{"type": "disabled"}, managed(FULL)])
def test_a_path_of_another_system_is_refused(
    permissions: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        made(permissions, **more)

    assert str(caught.value) == (
        f"{words} `{FOREIGN}` is not valid on this exec-server host: '{FOREIGN}' is invalid on 'linux'"
    )


@pytest.mark.parametrize(
    ("permissions", "words"),
    [
        ({}, "type"),
        ({"type": "other"}, "other"),
        ({"type": "managed", "network": "restricted"}, "file_system"),
        (managed({"type": "unrestricted"}, "sometimes"), "sometimes"),
        (managed({"type": "restricted"}), "entries"),
        (managed(restricted(glob_scan_max_depth=0)), "glob_scan_max_depth|0"),
        (managed(restricted(glob_scan_max_depth=2**64)), "number"),
        (managed(restricted({"path": ROOT})), "access"),
        (managed(restricted({"path": ROOT, "access": "execute"})), "execute"),
        (managed(restricted({"access": "read"})), "path"),
        (managed(restricted({"path": {"type": "special", "value": {"kind": "x"}}, "access": "read"})), "x"),
        (
            managed(restricted({"path": ROOT, "access": "read", "missing_path_behavior": "make"})),
            "make",
        ),
    ],
)
def test_what_is_no_policy_is_refused(permissions: dict[str, Any], words: str) -> None:
    """Nothing is read into it that it does not say."""
    start = {"processId": "p", "argv": ["x"], "cwd": "file:///", "env": {}, "tty": False}

    with pytest.raises(Undecodable, match=words):
        decode_start({**start, "sandbox": context(permissions)})


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        (FOREIGN, f"invalid sandbox permission path URI: '{FOREIGN}' is invalid on 'linux'"),
        ("file://host/x", "invalid sandbox permission path URI: 'file://host/x' is invalid on 'linux'"),
        ("x", "relative URL without a base"),
        ("http://x", "unsupported path URI scheme `http`"),
    ],
)
@pytest.mark.parametrize("access", ["read", "write", "deny"])
def test_a_permission_for_a_path_of_another_system_is_refused(uri: str, words: str, access: str) -> None:
    """A denial that is left out protects nothing."""
    with pytest.raises((BadRequest, Undecodable)) as caught:
        entries({"path": {"type": "path", "path": uri}, "access": access})

    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("bound", "permissions", "more"),
    [
        ("sandbox.entries", managed(restricted(*[{"path": ROOT, "access": "read"}] * 4)), {}),
        ("sandbox.roots", managed(FULL), {"workspaceRoots": ["file://other/x"] * 3}),
        ("sandbox.roots", {"type": "disabled"}, {"workspaceRoots": ["file://other/x"] * 3}),
        ("sandbox.text_bytes", managed(FULL), {"workspaceRoots": ["/" + "\u00e9" * 50]}),
        ("sandbox.roots", managed(FULL), {"workspaceRoots": ["/x"], "temporaryDirectories": ["/y", "/z"]}),
        ("sandbox.text_bytes", managed(FULL), {"cwd": "/" + "x" * 100}),
        *(
            ("sandbox.text_bytes", managed(restricted({"path": path, "access": "read"})), {})
            for path in (
                {"type": "path", "path": "/" + "x" * 100},
                {"type": "glob_pattern", "pattern": "*" * 101},
                {"type": "special", "value": {"kind": "project_roots", "subpath": "x" * 101}},
            )
        ),
    ],
)
def test_how_much_there_is_is_looked_at_before_any_of_it_is_read(
    bound: str, permissions: Any, more: dict[str, Any]
) -> None:
    """It is read on the loop; a path of another system in it would be told otherwise."""
    limits = SandboxLimits(entries=3, roots=2, text_bytes=100)

    with pytest.raises(LimitReached) as caught:
        sandbox_of(read(context(permissions, **more)), "/desk", limits)

    assert caught.value.name == bound
