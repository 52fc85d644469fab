"""Renaming, as far as the rules allow.  The whole way is a contract test."""

from __future__ import annotations

import errno
from pathlib import Path

from holdfast.host.files.renaming import rename
from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access
from tests.fakes.rules import fails, raw, ruled


def test_a_link_is_moved_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")

    rename(Resolver(), raw(tmp_path / "link"), raw(tmp_path / "other"))

    assert (tmp_path / "other").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_directory_with_something_denied_in_it_stays_where_it_is(tmp_path: Path) -> None:
    """Under another path the rule would not find it."""
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "secret").write_bytes(b"x")
    resolver = ruled((tmp_path, Access.WRITE), (tmp_path / "dir" / "secret", Access.DENY))

    with fails(errno.EROFS):
        rename(resolver, raw(tmp_path / "dir"), raw(tmp_path / "other"))
    with fails(errno.EACCES):
        rename(resolver, raw(tmp_path / "dir" / "secret"), raw(tmp_path / "plain"))
    rename(ruled((tmp_path, Access.WRITE)), raw(tmp_path / "dir"), raw(tmp_path / "other"))

    assert (tmp_path / "other" / "secret").read_bytes() == b"x"
