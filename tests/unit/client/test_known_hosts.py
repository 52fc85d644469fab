"""The configuration file: what is read of it, who may read it, and what a change leaves alone."""

from __future__ import annotations

import os
import threading
import tomllib
from pathlib import Path

import pytest

from holdfast.client.known_hosts import (
    KnownHost,
    config_path,
    default_name,
    find,
    is_name,
    read,
    remove,
    store,
)
from holdfast.errors import BadRequest

BOX = KnownHost("box", "ws://h:1", "secret")

WRITTEN = """\
# Mine.
theme = "dark"

[hosts.box]  # the old one
url = "ws://old:1"
token = "old"

# Of the other one.
[hosts."other.box"]
url = "unix:///run/hf.sock"
token-file = "other.token"

[more]
x = [
  1,
]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def written(path: Path, text: str = WRITTEN, mode: int = 0o600) -> str:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return str(path)


# Where it is.


def test_the_file_is_where_the_platform_keeps_such_files() -> None:
    home = os.path.expanduser("~")

    assert config_path({}) == f"{home}/.config/holdfast/config.toml"
    assert config_path({"XDG_CONFIG_HOME": "/etc/mine"}) == "/etc/mine/holdfast/config.toml"
    assert config_path({"XDG_CONFIG_HOME": "/x", "HOLDFAST_CONFIG": "/one.toml"}) == "/one.toml"


@pytest.mark.parametrize("name", ["box", "build-box", "10.0.0.1", "a_b", "a" * 64])
def test_a_name_is_no_url(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "text", ["", "ws://h:1", "unix:///x", "stdio:ssh", "-x", ".x", "a b", "a\n", "a" * 65]
)
def test_a_url_is_no_name(text: str) -> None:
    assert not is_name(text)


# Reading.


def test_hosts_are_read_by_name(path: Path) -> None:
    assert read(written(path)) == {
        "box": KnownHost("box", "ws://old:1", "old"),
        "other.box": KnownHost(
            "other.box", "unix:///run/hf.sock", token_file=str(path.parent / "other.token")
        ),
    }


def test_no_file_has_no_hosts_and_says_how_to_add_one(path: Path) -> None:
    assert read(str(path)) == {}
    with pytest.raises(BadRequest, match=r"no host is named 'box' in .*; 'holdfast hosts' shows those"):
        find(str(path), "box")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o622])
def test_a_token_that_others_can_read_or_change_is_refused(mode: int, path: Path) -> None:
    """It is no secret any more, and to go on with it in silence would hide that."""
    with pytest.raises(BadRequest, match=f"'chmod 600 {path}' keeps them out"):
        read(written(path, mode=mode))


@pytest.mark.parametrize(
    "text", ['hosts = {a = {url = "ws://h:1", token = "t"}}', '[hosts.a]\n"token"="t"', 'hosts.a.token = "t"']
)
def test_a_token_is_found_however_it_is_written(text: str, path: Path) -> None:
    with pytest.raises(BadRequest, match="holds a token"):
        read(written(path, text, 0o644))


def test_a_file_without_a_token_may_be_read_by_all(path: Path) -> None:
    assert list(read(written(path, '[hosts.a]\nurl = "ws://h:1"\ntoken-file = "~/t"\n', 0o644))) == ["a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[hosts", "is not TOML"),
        ("hosts = 1", r"hosts are written as \[hosts.NAME\]"),
        ("[hosts.a]", "host 'a' has no url"),
        ("hosts.a = 1", "host 'a' has no url"),
        ('[hosts."a b"]\nurl = "ws://h:1"', "a name has letters"),
        ('[hosts.a]\nurl = "ws://h:1"\ntokn = "x"', "tokn is no setting"),
        ('[hosts.a]\nurl = "ws://h:1"\ntoken = 1', "token is no setting; those are texts"),
        ("x = " + "[" * 10_000, "is not TOML"),
        ("#" * (1 << 20) + "#", "larger than 1 MiB"),
    ],
)
def test_what_cannot_be_meant_is_called_so(text: str, words: str, path: Path) -> None:
    with pytest.raises(BadRequest, match=words):
        read(written(path, text))


def test_a_file_that_is_no_text_or_no_file_is_called_so(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"\xff")

    with pytest.raises(BadRequest, match="not UTF-8"):
        read(str(path))
    with pytest.raises(BadRequest, match="Is a directory"):
        read(str(tmp_path))


# Writing.


def test_a_host_is_stored_where_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    before = os.umask(0)
    try:
        store(str(path), BOX)
    finally:
        os.umask(before)

    assert read(str(path)) == {"box": BOX}
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert os.listdir(path.parent) == ["config.toml"]


def test_a_change_leaves_everything_else_as_it_was_written(path: Path) -> None:
    store(written(path), BOX)

    assert path.read_text() == (
        '# Mine.\ntheme = "dark"\n\n[hosts."other.box"]\nurl = "unix:///run/hf.sock"\n'
        'token-file = "other.token"\n\n[more]\nx = [\n  1,\n]\n\n'
        '[hosts."box"]\nurl = "ws://h:1"\ntoken = "secret"\n'
    )
    remove(str(path), "box")
    assert list(read(str(path))) == ["other.box"]


@pytest.mark.parametrize("text", ['hosts = {box = {url = "ws://o:1"}}', 'hosts.box.url = "ws://o:1"'])
def test_what_is_written_in_another_way_is_left_to_its_writer(text: str, path: Path) -> None:
    written(path, text)
    with pytest.raises(BadRequest, match=r"edit the file|is not TOML"):
        store(str(path), BOX)
    with pytest.raises(BadRequest, match="edit the file"):
        remove(str(path), "box")
    assert path.read_text() == text


@pytest.mark.parametrize("token", ['a"b\\c', "t=", "[hosts.x]"])
def test_any_token_comes_back_as_it_was(token: str, path: Path) -> None:
    store(str(path), KnownHost("box", "ws://h:1", token))

    assert find(str(path), "box").token == token
    assert tomllib.loads(path.read_text())["hosts"]["box"]["token"] == token


def test_what_a_configuration_cannot_say_is_refused(path: Path) -> None:
    with pytest.raises(BadRequest, match="cannot be written"):
        store(str(path), KnownHost("box", "ws://h:1", "a\nb"))
    assert not path.exists()


def test_a_link_to_the_file_stays_a_link(path: Path, tmp_path: Path) -> None:
    """Some keep their configuration in a repository, and link to it."""
    link = tmp_path / "link.toml"
    link.symlink_to(written(path))
    store(str(link), BOX)

    assert link.is_symlink()
    assert read(str(path))["box"] == BOX


def test_the_last_host_can_be_removed_and_an_unknown_one_cannot(path: Path) -> None:
    store(str(path), BOX)
    remove(str(path), "box")

    assert read(str(path)) == {}
    with pytest.raises(BadRequest, match="no host is named 'box'"):
        remove(str(path), "box")


def test_changes_at_once_are_all_kept(path: Path) -> None:
    names = [f"box{number}" for number in range(8)]
    threads = [
        threading.Thread(target=store, args=(str(path), KnownHost(name, "ws://h:1"))) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(read(str(path))) == names


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    """Some name /dev/null to have no configuration; as root it could be replaced."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadRequest, match="is no file"):
        store(str(tmp_path / "folder"), BOX)
    with pytest.raises(BadRequest, match="is no file"):
        store(str(tmp_path / "pipe"), BOX)

    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_a_change_that_fails_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*names: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        store(written(path), BOX)

    assert (path.read_text(), os.listdir(path.parent)) == (WRITTEN, ["config.toml"])


# Names.


def test_a_host_is_called_after_its_url_unless_it_has_a_name() -> None:
    known = {"box": BOX, "h": KnownHost("h", "ws://h:2")}

    assert default_name("ws://h:1", known) == "box"
    assert default_name("wss://build.example", known) == "build.example"
    assert default_name("ws://h:3", known) == "h-3"
    assert default_name("ws://[::1]:3", known) == "1"
    assert default_name("unix:///run/hf.sock", known) == "hf"
    assert default_name("unix:///run/box.sock", known) == "box-socket"
    with pytest.raises(BadRequest, match="--name"):
        default_name("stdio:ssh box holdfast serve", known)
    with pytest.raises(BadRequest, match="ws://HOST:PORT"):
        default_name("http://x", known)
